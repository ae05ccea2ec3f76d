import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import App from '../App.svelte';
import { i18n } from '../i18n/i18n.svelte.ts';
import { router } from '../lib/router.svelte.ts';
import { session } from '../lib/session.svelte.ts';
import { account, forgetCookies, problem, serve } from '../test/server.ts';
import { makeEvent, UNDATED, VENUE } from './sample.ts';
import type { EventView } from './model.ts';

class Silent extends EventTarget {
	static all: Silent[] = [];
	constructor() {
		super();
		Silent.all.push(this);
	}
	close(): void {}
	say(kind: string, data: object = {}): void {
		this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data) }));
	}
}

const listed = (data: readonly object[], next_cursor: string | null = null) => Response.json({ data, next_cursor });
const one = (data: object) => Response.json({ data });
const ID = makeEvent().id;

let stop = () => {};

/** Opens an address as somebody with a role; what the server knows besides is up to the test. */
async function open(path: string, role: string, replies: Record<string, () => Response> = {}) {
	const asked = serve({
		'GET /api/me': () => account({ role }),
		'GET /api/admin/event-policy': () => one({ staff_may_change_venues: false }),
		'GET /api/admin/events': () => listed([]),
		'GET /api/admin/venues': () => listed([VENUE]),
		'GET /api/admin/audit': () => listed([]),
		...replies,
	});
	document.cookie = 'vg_signed_in=1; Path=/';
	history.replaceState(null, '', path);
	const stops = [router.start(), session.start()];
	stop = () => stops.forEach((end) => end());
	await session.restore();
	render(App);
	return asked;
}

const main = () => within(screen.getByRole('main'));
const heading = (name?: string) => screen.findByRole('heading', { level: 1, ...(name ? { name } : {}) }, { timeout: 5000 });

beforeEach(() => {
	i18n.choose('en');
	Silent.all = [];
	vi.stubGlobal('EventSource', Silent);
});

afterEach(() => {
	stop();
	cleanup();
	forgetCookies();
});

describe('behind the scenes', () => {
	it('tells a customer what to do', async () => {
		await open('/passievol/admin/events', 'customer');

		expect((await heading()).textContent).toBe('This part is for the people behind the scenes.');
		expect(screen.getByText(/with the role Customer.*ask an owner/)).toBeTruthy();
		expect(screen.queryByRole('link', { name: 'Organise' })).toBeNull();
		expect(Silent.all).toHaveLength(0);
	});

	it('has its way in the bar for those who work here', async () => {
		await open('/passievol/admin/venues', 'scanner');

		await heading('Venues');
		expect(screen.getByRole('link', { name: 'Organise' }).getAttribute('href')).toBe('/passievol/admin');
		expect(await screen.findByRole('link', { name: /Die Skouburg/ })).toBeTruthy();
		expect(screen.queryByRole('link', { name: 'New venue' })).toBeNull();
		expect(screen.queryByRole('switch')).toBeNull();
	});

	it('lets a leader set the policy, and shows what is and not what was asked for', async () => {
		const asked = await open('/passievol/admin/venues', 'owner', {
			'PUT /api/admin/event-policy': () => one({ staff_may_change_venues: true }),
		});
		const policy = await screen.findByRole('switch', { name: /Staff may change venues/ });
		await fireEvent.click(policy);

		await screen.findByText(/Staff make and change venues/);
		expect((policy as HTMLInputElement).checked).toBe(true);
		expect(asked.find(({ what }) => what === 'PUT /api/admin/event-policy')?.body).toEqual({
			staff_may_change_venues: true,
		});
	});
});

describe('the list of events', () => {
	const events: EventView[] = [
		makeEvent({ id: '1', name: 'Somerkonsert', sale_state: 'over', on_sale: false }),
		makeEvent({ id: '2', name: 'Fées', ...UNDATED, start_at: '2027-02-01T17:00:00Z' }),
		makeEvent({ id: '3', name: 'Konsep', status: 'draft', on_sale: false, effective_start_at: '2027-05-01T17:00:00Z' }),
	];
	// The server is asked for two parts; the test answers the first with everything and the second with nothing.
	const replies = (first: readonly object[]) => {
		const answers = [first, []];
		return { 'GET /api/admin/events': () => listed(answers.shift() ?? []) };
	};
	const asked = () =>
		vi.mocked(fetch).mock.calls.map(([input]) => new URL((input as Request).url)).filter(({ pathname }) => pathname === '/api/admin/events');
	const rows = () => main().getAllByRole('link', { name: /Die Skouburg/ });
	const names = () => rows().map((row) => row.querySelector('b')?.textContent);

	it('begins with what needs somebody, and goes on in the order of time', async () => {
		await open('/passievol/admin/events', 'owner', replies(events));

		const care = await screen.findByRole('region', { name: /Needs attention/ });
		expect(within(care).getAllByRole('link').map((link) => link.textContent)).toEqual([
			expect.stringContaining('FéesPostponed without a new date.'),
			expect.stringContaining('SomerkonsertPublished, but its sale is over.'),
		]);
		expect(names()).toEqual(['Fées', 'Somerkonsert', 'Konsep']);
		expect(rows()[0]?.textContent).toContain('No new date yet · Die Skouburg');
	});

	it('filters by status with counts', async () => {
		await open('/passievol/admin/events', 'staff', replies(events));
		await fireEvent.click(await screen.findByRole('button', { name: 'Draft 1' }));
		expect(names()).toEqual(['Konsep']);
		await fireEvent.click(screen.getByRole('button', { name: 'All 3' }));
		expect(names()).toHaveLength(3);
		expect(screen.queryByRole('button', { name: /Ended/ })).toBeNull();
	});

	it('counts only what is all there', async () => {
		const answers = [listed(events, 'next'), listed([makeEvent({ id: '4', name: 'Verby', status: 'ended', verbs: [] })])];
		await open('/passievol/admin/events', 'owner', { 'GET /api/admin/events': () => answers.shift() ?? listed([]) });

		expect(await screen.findByRole('button', { name: 'Ended 1' })).toBeTruthy();
		// A page that nobody has asked for may have more of them, or the first live one.
		for (const name of ['All', 'Draft', 'Live']) expect(screen.getByRole('button', { name })).toBeTruthy();
		await fireEvent.click(screen.getByRole('button', { name: 'Load more' }));
		expect(await screen.findByRole('button', { name: 'All 4' })).toBeTruthy();
		expect(screen.queryByRole('button', { name: /Live/ })).toBeNull();
	});

	it('asks the server for a name, also among the archived, and counts what it found', async () => {
		const answers = [events, [], [events[1]], [], [makeEvent({ id: '9', name: 'Ou Fees', status: 'archived', verbs: [] })]];
		await open('/passievol/admin/events', 'staff', { 'GET /api/admin/events': () => listed((answers.shift() ?? []) as object[]) });
		await screen.findByRole('button', { name: 'All 3' });
		await fireEvent.input(screen.getByRole('searchbox'), { target: { value: ' fée ' } });

		await screen.findByRole('button', { name: 'All 1' });
		expect(names()).toEqual(['Fées']);
		// What needs somebody is not a matter of what is looked for.
		expect(within(screen.getByRole('region', { name: /Needs attention/ })).getAllByRole('link')).toHaveLength(2);
		await fireEvent.click(screen.getByRole('button', { name: 'Archived' }));
		await waitFor(() => expect(names()).toEqual(['Ou Fees']));
		expect(asked().map(({ searchParams }) => searchParams.get('q'))).toEqual([null, null, 'fée', 'fée', 'fée']);
	});

	it('says so when nothing has the name, and shows everything again when nothing is looked for', async () => {
		await open('/passievol/admin/events', 'staff', replies(events));
		await screen.findByRole('button', { name: 'All 3' });
		await fireEvent.input(screen.getByRole('searchbox'), { target: { value: 'nothing' } });
		expect(await screen.findByText(/No event in this list has that name/)).toBeTruthy();
		await fireEvent.input(screen.getByRole('searchbox'), { target: { value: '' } });

		expect(names()).toHaveLength(3);
	});

	it('says what went wrong with a search, and tries again', async () => {
		const answers = [() => listed(events), () => listed([]), () => problem('busy', 503), () => problem('busy', 503)];
		await open('/passievol/admin/events', 'owner', { 'GET /api/admin/events': () => (answers.shift() ?? (() => listed([])))() });
		await screen.findByRole('button', { name: 'All 3' });
		await fireEvent.input(screen.getByRole('searchbox'), { target: { value: 'fee' } });
		expect((await screen.findByRole('alert')).textContent).toContain('very busy');
		expect(screen.queryByText(/has that name/)).toBeNull();
		await fireEvent.click(screen.getByRole('button', { name: 'Try again' }));

		expect(await screen.findByText(/No event in this list has that name/)).toBeTruthy();
	});

	it('asks for the archive only when it is wanted', async () => {
		const asked = await open('/passievol/admin/events', 'owner', {
			...replies(events),
		});
		await screen.findByRole('button', { name: 'All 3' });
		const before = asked.filter(({ what }) => what === 'GET /api/admin/events').length;
		await fireEvent.click(screen.getByRole('button', { name: 'Archived' }));

		expect(await screen.findByText('There is nothing here.')).toBeTruthy();
		expect(before).toBe(2);
		expect(asked.filter(({ what }) => what === 'GET /api/admin/events')).toHaveLength(3);
	});

	it('takes a change from the feed, row by row, and forgets what is deleted', async () => {
		await open('/passievol/admin/events', 'owner', {
			...replies(events),
			'GET /api/admin/events/3': () => one({ ...events[2], name: 'Nuwe naam', version: 9 }),
		});
		await screen.findByRole('button', { name: 'All 3' });
		Silent.all[0]?.say('event_updated', { event_id: '3', version: 9 });
		await screen.findByText('Nuwe naam');
		Silent.all[0]?.say('event_deleted', { event_id: '1' });

		await screen.findByRole('button', { name: 'All 2' });
		expect(names()).toEqual(['Fées', 'Nuwe naam']);
	});

	it('says quietly when it is cut off', async () => {
		await open('/passievol/admin/events', 'owner', replies(events));
		await screen.findByRole('button', { name: 'All 3' });
		Silent.all[0]?.say('hello');
		expect(await screen.findByText('Up to date')).toBeTruthy();
		Silent.all[0]?.say('error');

		expect(await screen.findByText('May be a little old, reconnecting')).toBeTruthy();
	});

	it('offers to try again when the server refuses', async () => {
		await open('/passievol/admin/events', 'owner', { 'GET /api/admin/events': () => problem('busy', 503) });

		expect(await screen.findByText(/We are very busy/)).toBeTruthy();
		expect(screen.getByRole('button', { name: 'Try again' })).toBeTruthy();
	});
});

describe('an event', () => {
	const path = `/passievol/admin/events/${ID}`;
	const get = (event: EventView) => ({ [`GET /api/admin/events/${ID}`]: () => one(event) });

	it('sends a verb with its reason and the version that was seen', async () => {
		const asked = await open(path, 'owner', {
			...get(makeEvent()),
			[`POST /api/admin/events/${ID}/postpone`]: () => one(makeEvent({ status: 'postponed', version: 4 })),
		});
		await fireEvent.click(await screen.findByRole('button', { name: 'Postpone' }));
		await fireEvent.click(screen.getByRole('radio', { name: /It is known/ }));
		await fireEvent.input(screen.getByLabelText('New beginning'), { target: { value: '2027-04-24T19:30' } });
		await fireEvent.input(screen.getByLabelText('Why'), { target: { value: ' The roof leaks ' } });
		await fireEvent.change(screen.getByLabelText(/What the public is told/), { target: { value: 'weather' } });
		await fireEvent.click(screen.getByRole('button', { name: 'Postpone it' }));

		expect(await screen.findByText('It is postponed, and the storefront says so.')).toBeTruthy();
		const sent = asked.find(({ what }) => what.endsWith('/postpone'));
		expect(sent?.body).toEqual({
			reason: 'The roof leaks',
			postponement_reason: 'weather',
			start_at: '2027-04-24T17:30:00.000Z',
		});
		expect(sent?.headers.get('If-Match')).toBe('"3"');
		expect(screen.queryByRole('dialog')).toBeNull();
	});

	it('does not send a cancellation without a reason', async () => {
		const asked = await open(path, 'admin', get(makeEvent()));
		await fireEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
		await fireEvent.click(screen.getByRole('button', { name: 'Yes, cancel it' }));

		expect(screen.getByText('Say why, for the journal.')).toBeTruthy();
		expect(asked.some(({ what }) => what.startsWith('POST'))).toBe(false);
	});

	it('explains in the dialog that somebody else was faster, and takes back what cannot be done any more', async () => {
		const answers = [makeEvent(), makeEvent({ status: 'cancelled', verbs: ['archive'], version: 4, on_sale: false })];
		await open(path, 'owner', {
			[`GET /api/admin/events/${ID}`]: () => one(answers.shift() ?? makeEvent()),
			[`POST /api/admin/events/${ID}/go-live`]: () => problem('event_changed', 409),
		});
		await fireEvent.click(await screen.findByRole('button', { name: 'Go live' }));
		const dialog = within(screen.getByRole('dialog'));
		await fireEvent.click(dialog.getByRole('button', { name: 'Go live' }));

		const told = (await dialog.findByText(/Somebody else was faster/)).closest('.note');
		expect(told?.textContent).toContain('It is now: Cancelled.');
		expect(told?.textContent).toContain('this cannot be done any more');
		await waitFor(() => expect(document.activeElement === told).toBe(true));
		expect(dialog.queryByRole('button', { name: 'Go live' })).toBeNull();
		await fireEvent.click(dialog.getByRole('button', { name: 'Close' }));
		await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
		expect(screen.queryByText(/Somebody else was faster/)).toBeNull();
		expect(screen.queryByRole('button', { name: 'Go live' })).toBeNull();
	});

	it('decides about the event as it was when the dialog was opened, whatever the feed tells meanwhile', async () => {
		const answers = [makeEvent(), makeEvent({ name: 'Boemeltrein', version: 4 })];
		const after = makeEvent({ name: 'Boemeltrein', status: 'live', verbs: ['end'], version: 5 });
		const asked = await open(path, 'owner', {
			[`GET /api/admin/events/${ID}`]: () => one(answers.shift() ?? makeEvent({ name: 'Boemeltrein', version: 4 })),
			// The server's own rule: only what was seen can be changed.
			[`POST /api/admin/events/${ID}/postpone`]: () =>
				asked.at(-1)?.headers.get('If-Match') === '"4"' ? one(after) : problem('event_changed', 409),
		});
		await fireEvent.click(await screen.findByRole('button', { name: 'Postpone' }));
		const dialog = within(screen.getByRole('dialog'));
		await fireEvent.input(dialog.getByLabelText('Why'), { target: { value: 'The roof leaks' } });
		Silent.all[0]?.say('event_updated', { event_id: ID, version: 4 });
		await heading('Boemeltrein');
		expect(dialog.getByRole('heading', { name: /Die Laaste Boemeltrein/ })).toBeTruthy();
		await fireEvent.click(dialog.getByRole('button', { name: 'Postpone it' }));

		const sent = () => asked.filter(({ what }) => what.endsWith('/postpone')).map(({ headers }) => headers.get('If-Match'));
		expect((await dialog.findByText(/Somebody else was faster/)).closest('.note')?.textContent).toContain('Changed: name.');
		expect(sent()).toEqual(['"3"']);
		// Told what is different, they may still want it; what they typed is still there.
		expect((dialog.getByLabelText('Why') as HTMLTextAreaElement).value).toBe('The roof leaks');
		const again = dialog.getByRole('button', { name: 'Postpone it' });
		await waitFor(() => expect(again.getAttribute('aria-disabled')).toBe('false'));
		await fireEvent.click(again);
		await waitFor(() => expect(screen.queryByRole('dialog') === null).toBe(true));
		expect(sent()).toEqual(['"3"', '"4"']);
	});

	it('shows no date where there is none, and the doors as the server says', async () => {
		const reason = { postponement_reason: 'weather', settings: { doors_open_minutes_before: 60 } };
		await open(path, 'owner', get(makeEvent({ ...UNDATED, ...reason })));
		await heading('Die Laaste Boemeltrein');
		const facts = within(screen.getByRole('region', { name: 'What it is' }));
		expect(facts.getByText('Takes place').nextElementSibling?.textContent).toMatch(/^\s*No new date yet\s*It was to be Fri 12 Mar 2027/);
		expect(facts.getByText(/Bad weather/)).toBeTruthy();
		expect(facts.queryByText(/Doors/)).toBeNull();
		cleanup();

		await open(path, 'owner', get(makeEvent({ doors_at: '2027-03-12T16:45:00Z' })));
		expect(await screen.findByText('Doors open at 18:45')).toBeTruthy();
	});

	it('offers to edit exactly what the server says, whoever asks', async () => {
		await open(path, 'staff', get(makeEvent({ verbs: [], editable_fields: ['description', 'capacity'] })));
		await fireEvent.click(await screen.findByRole('button', { name: 'Edit' }));
		await screen.findByLabelText(/Description/);

		expect(screen.getByLabelText(/Capacity/)).toBeTruthy();
		expect(screen.queryByLabelText(/Begins|Sale ends/)).toBeNull();
		cleanup();
		await open(path, 'owner', get(makeEvent({ editable_fields: [] })));
		await heading('Die Laaste Boemeltrein');
		expect(screen.queryByRole('button', { name: 'Edit' })).toBeNull();
	});

	it('does not take the echo of its own deed for news', async () => {
		const after = makeEvent({ status: 'live', version: 4, verbs: ['end'] });
		const asked = await open(path, 'owner', {
			...get(makeEvent()),
			[`POST /api/admin/events/${ID}/go-live`]: () => {
				// The feed is faster than the answer.
				Silent.all[0]?.say('event_status_changed', { event_id: ID, version: 4 });
				return one(after);
			},
		});
		await fireEvent.click(await screen.findByRole('button', { name: 'Go live' }));
		await fireEvent.click(within(screen.getByRole('dialog')).getByRole('button', { name: 'Go live' }));

		expect(await screen.findByText('It is live. Scans count.')).toBeTruthy();
		expect(screen.queryByText(/Somebody else/)).toBeNull();
		expect(asked.filter(({ what }) => what === `GET /api/admin/events/${ID}`)).toHaveLength(1);
	});

	it('tells its story with names, reasons and the venue’s time', async () => {
		const fact = { event_id: ID, seat_id: null, request_id: null, ip: null, user_agent: null };
		await open(path, 'owner', {
			...get(makeEvent()),
			'GET /api/admin/audit': () =>
				listed([
					{
						...fact,
						recorded_at: '2027-02-01T06:00:00Z',
						kind: 'event_status_changed',
						version: 2,
						actor_id: 'p1',
						actor_name: 'Lerato',
						reason: 'Ready',
						data: { verb: 'publish', actor_type: 'owner', changes: { status: ['draft', 'published'] } },
					},
					{
						...fact,
						recorded_at: '2027-01-31T06:00:00Z',
						kind: 'event_updated',
						version: 1,
						actor_id: null,
						actor_name: null,
						reason: null,
						data: { actor_type: 'operator', changes: { name: ['A', 'B'], start_at: ['2027-03-11T17:30:00+00:00', '2027-03-12T17:30:00+00:00'] } },
					},
				]),
		});

		await heading('Die Laaste Boemeltrein');
		expect(await screen.findByText('Lerato published it.')).toBeTruthy();
		expect(screen.getByText('“Ready”')).toBeTruthy();
		expect(screen.getByText('Mon 1 Feb 2027, 08:00')).toBeTruthy();
		expect(screen.getByText('The operator changed: name, date and time.')).toBeTruthy();
	});

	it('keeps the journal and the lifecycle from staff', async () => {
		const asked = await open(path, 'staff', get(makeEvent({ verbs: [] })));

		expect(await screen.findByText(/Administrators and owners publish/)).toBeTruthy();
		expect(screen.queryByRole('button', { name: 'Cancel' })).toBeNull();
		expect(screen.queryByRole('heading', { name: 'What happened' })).toBeNull();
		expect(asked.some(({ what }) => what.includes('audit'))).toBe(false);
	});

	it('says so when it is gone', async () => {
		await open(path, 'owner', { [`GET /api/admin/events/${ID}`]: () => problem('event_not_found', 404) });

		expect(await screen.findByText('There is no such event any more.')).toBeTruthy();
	});
});
