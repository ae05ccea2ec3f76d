import { cleanup, fireEvent, render, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import App from '../App.svelte';
import { i18n } from '../i18n/i18n.svelte.ts';
import { router } from '../lib/router.svelte.ts';
import { session } from '../lib/session.svelte.ts';
import { account, forgetCookies, problem, serve } from '../test/server.ts';
import { makeEvent, VENUE } from './sample.ts';
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
		await open('/passievol/admin', 'customer');

		expect((await heading()).textContent).toBe('This part is for the people behind the scenes.');
		expect(screen.getByText(/with the role Customer.*ask an owner/)).toBeTruthy();
		expect(screen.queryByRole('link', { name: 'Organise' })).toBeNull();
		expect(Silent.all).toHaveLength(0);
	});

	it('has its way in the bar for those who work here', async () => {
		await open('/passievol/admin/venues', 'scanner');

		await heading('Venues');
		expect(screen.getByRole('link', { name: 'Organise' }).getAttribute('href')).toBe('/passievol/admin/events');
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
		makeEvent({ id: '2', name: 'Fées', status: 'postponed', on_sale: false, effective_start_at: '2027-02-01T17:00:00Z' }),
		makeEvent({ id: '3', name: 'Konsep', status: 'draft', on_sale: false, effective_start_at: '2027-05-01T17:00:00Z' }),
	];
	// The server is asked for two parts; the test answers the first with everything and the second with nothing.
	const replies = (first: readonly object[]) => {
		const answers = [first, []];
		return { 'GET /api/admin/events': () => listed(answers.shift() ?? []) };
	};
	const rows = () => main().getAllByRole('link', { name: /Die Skouburg/ });
	const names = () => rows().map((row) => row.querySelector('b')?.textContent);

	it('begins with what needs somebody, and goes on in the order of time', async () => {
		await open('/passievol/admin', 'owner', replies(events));

		const care = await screen.findByRole('region', { name: /Needs attention/ });
		expect(within(care).getAllByRole('link').map((link) => link.textContent)).toEqual([
			expect.stringContaining('FéesPostponed without a new date.'),
			expect.stringContaining('SomerkonsertPublished, but its sale is over.'),
		]);
		expect(names()).toEqual(['Fées', 'Somerkonsert', 'Konsep']);
	});

	it('filters by status with counts, and by name without minding accents', async () => {
		await open('/passievol/admin', 'staff', replies(events));
		await fireEvent.click(await screen.findByRole('button', { name: 'Draft 1' }));
		expect(names()).toEqual(['Konsep']);
		await fireEvent.click(screen.getByRole('button', { name: 'All 3' }));

		await fireEvent.input(screen.getByRole('searchbox'), { target: { value: 'fee' } });
		expect(names()).toEqual(['Fées']);
		await fireEvent.input(screen.getByRole('searchbox'), { target: { value: 'nothing' } });
		expect(screen.getByText(/No event in this list has that name/)).toBeTruthy();
	});

	it('asks for the archive only when it is wanted', async () => {
		const asked = await open('/passievol/admin', 'owner', {
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
		await open('/passievol/admin', 'owner', {
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
		await open('/passievol/admin', 'owner', replies(events));
		await screen.findByRole('button', { name: 'All 3' });
		Silent.all[0]?.say('hello');
		expect(await screen.findByText('Up to date')).toBeTruthy();
		Silent.all[0]?.say('error');

		expect(await screen.findByText('May be a little old, reconnecting')).toBeTruthy();
	});

	it('offers to try again when the server refuses', async () => {
		await open('/passievol/admin', 'owner', { 'GET /api/admin/events': () => problem('busy', 503) });

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

	it('explains that somebody else was faster, and shows what they did', async () => {
		const answers = [makeEvent(), makeEvent({ status: 'cancelled', verbs: ['archive'], version: 4, on_sale: false })];
		await open(path, 'owner', {
			[`GET /api/admin/events/${ID}`]: () => one(answers.shift() ?? makeEvent()),
			[`POST /api/admin/events/${ID}/go-live`]: () => problem('event_changed', 409),
		});
		await fireEvent.click(await screen.findByRole('button', { name: 'Go live' }));
		await fireEvent.click(within(screen.getByRole('dialog')).getByRole('button', { name: 'Go live' }));

		expect(await screen.findByText(/Somebody else was faster/)).toBeTruthy();
		expect(screen.getByText(/It is now: Cancelled\./)).toBeTruthy();
		expect(screen.queryByRole('dialog')).toBeNull();
		expect(screen.queryByRole('button', { name: 'Go live' })).toBeNull();
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
						reason: 'Ready',
						data: { verb: 'publish', actor_type: 'owner', changes: { status: ['draft', 'published'] } },
					},
					{
						...fact,
						recorded_at: '2027-01-31T06:00:00Z',
						kind: 'event_updated',
						version: 1,
						actor_id: null,
						reason: null,
						data: { actor_type: 'operator', changes: { name: ['A', 'B'], start_at: ['2027-03-11T17:30:00+00:00', '2027-03-12T17:30:00+00:00'] } },
					},
				]),
			'GET /api/admin/members/p1': () => one({ user_id: 'p1', name: 'Lerato' }),
		});

		await heading('Die Laaste Boemeltrein');
		expect(await screen.findByText('Lerato published it.')).toBeTruthy();
		expect(screen.getByText('“Ready”')).toBeTruthy();
		expect(screen.getByText('Mon 1 Feb 2027, 08:00')).toBeTruthy();
		expect(screen.getByText('The operator changed: name, date and time.')).toBeTruthy();
	});

	it('keeps the journal and the lifecycle from staff', async () => {
		const asked = await open(path, 'staff', get(makeEvent()));

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
