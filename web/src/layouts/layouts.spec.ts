import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { VENUE } from '../admin/sample.ts';
import App from '../App.svelte';
import { i18n } from '../i18n/i18n.svelte.ts';
import { router } from '../lib/router.svelte.ts';
import { session } from '../lib/session.svelte.ts';
import { account, forgetCookies, problem, serve } from '../test/server.ts';
import small from './fixtures/small.json';

class Silent extends EventTarget {
	close(): void {}
}

const LAYOUT = '0190f6a1-0000-7000-8000-0000000000aa';
const one = (data: object) => Response.json({ data });
const listed = (data: readonly object[]) => Response.json({ data, next_cursor: null });
const drawn = () => Response.json(small.document);
const faulty = (...errors: object[]) => problem('layout_invalid', 400, { details: { errors, error_count: errors.length } });
const version = (number: number, status: string) => ({
	layout_id: LAYOUT,
	version: number,
	status,
	name: 'Small hall',
	description: null,
	total_capacity: 313,
	seat_count: 13,
	geometry_url: '',
	created_by: null,
	created_at: '2027-01-01T08:00:00Z',
	updated_at: '2027-01-01T08:00:00Z',
});
const stored = (number: number | null) => ({
	name: 'Small hall',
	total_capacity: 313,
	seat_count: 13,
	zones: [{ code: 'S', name: 'Stalls', zone_type: 'reserved_seating', capacity: 10, seat_count: 10, row_count: 2 }],
	version: number === null ? null : version(number, 'draft'),
});

let stop = () => {};

async function open(path: string, role: string, replies: Record<string, () => Response | Promise<Response>> = {}) {
	const asked = serve({
		'GET /api/me': () => account({ role }),
		'GET /api/admin/event-policy': () => one({ staff_may_change_venues: false }),
		[`GET /api/admin/venues/${VENUE.id}`]: () => one(VENUE),
		[`GET /api/admin/venues/${VENUE.id}/gates`]: () => listed([]),
		'POST /api/admin/layouts/preview': drawn,
		[`GET /api/admin/layouts/${LAYOUT}/versions`]: () => listed([version(2, 'draft'), version(1, 'active')]),
		[`GET /api/admin/layouts/${LAYOUT}/versions/1`]: () => one({ ...version(1, 'active'), venue_id: VENUE.id, zones: [] }),
		[`GET /api/admin/layouts/${LAYOUT}/versions/2`]: () => one({ ...version(2, 'draft'), venue_id: VENUE.id, zones: [] }),
		[`GET /api/layouts/${LAYOUT}/v1/geometry`]: drawn,
		[`GET /api/layouts/${LAYOUT}/v2/geometry`]: drawn,
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

const NEW = `/passievol/admin/venues/${VENUE.id}/layouts/new`;
const PAGE = `/passievol/admin/layouts/${LAYOUT}`;
const slow = { timeout: 5000 };
const previews = (asked: readonly { what: string }[]) => asked.filter(({ what }) => what.endsWith('/preview'));

beforeEach(() => {
	i18n.choose('en');
	vi.stubGlobal('EventSource', Silent);
});

afterEach(() => {
	stop();
	cleanup();
	forgetCookies();
});

describe('the layouts of a venue', () => {
	it('are listed with what is in use', async () => {
		await open(`/passievol/admin/venues/${VENUE.id}`, 'staff', {
			'GET /api/admin/layouts': () =>
				listed([{ id: LAYOUT, venue_id: VENUE.id, name: 'Main house', latest_version: 3, active_version: 2, created_at: '2027-01-01T08:00:00Z', updated_at: '2027-01-01T08:00:00Z' }]),
		});

		const link = await screen.findByRole('link', { name: /Main house.*Version 2 in use/ }, slow);
		expect(link.getAttribute('href')).toBe(PAGE);
		expect(screen.getByRole('link', { name: 'New layout' }).getAttribute('href')).toBe(NEW);
	});

	it('cannot be begun by those who scan', async () => {
		await open(`/passievol/admin/venues/${VENUE.id}`, 'scanner', { 'GET /api/admin/layouts': () => listed([]) });

		expect(await screen.findByText('There are no layouts here yet.', {}, slow)).toBeTruthy();
		expect(screen.queryByRole('link', { name: 'New layout' })).toBeNull();
	});
});

describe('the generator', () => {
	it('opens with a theatre, drawn and counted', async () => {
		const asked = await open(NEW, 'staff');

		expect(await screen.findByText('313', {}, slow)).toBeTruthy();
		expect(previews(asked)[0]).toMatchObject({ body: { spec: { name: 'Main house', blocks: [{ code: 'STALLS' }, { code: 'BALCONY' }] } } });
		expect(within(screen.getByRole('table')).getByRole('row', { name: /Pit Standing – 300/ })).toBeTruthy();
	});

	it('asks anew when a number changes, and shows a fault at its field', async () => {
		const answers = [drawn(), faulty({ path: 'blocks[0].rows', code: 'out_of_range', message: 'rows is 2000, not between 1 and 1000.', hint: '' })];
		const asked = await open(NEW, 'owner', { 'POST /api/admin/layouts/preview': () => answers.shift() ?? drawn() });
		await screen.findByText('313', {}, slow);
		const rows = screen.getByRole('textbox', { name: 'Rows' });
		await fireEvent.input(rows, { target: { value: '2000' } });

		await screen.findByText('Between 1 and 1000.', {}, slow);
		expect(rows.getAttribute('aria-invalid')).toBe('true');
		expect(previews(asked)).toHaveLength(2);
		await fireEvent.click(screen.getByRole('button', { name: 'Rows: less' }));
		expect((rows as HTMLInputElement).value).toBe('1999');
		await waitFor(() => expect(rows.getAttribute('aria-invalid')).toBe('false'), slow);
	});

	it('does not ask about what is no number', async () => {
		const asked = await open(NEW, 'owner');
		await screen.findByText('313', {}, slow);
		await fireEvent.input(screen.getByRole('textbox', { name: 'Rows' }), { target: { value: 'many' } });

		expect(await screen.findByText('Give a whole number.')).toBeTruthy();
		await new Promise((done) => setTimeout(done, 300));
		expect(previews(asked)).toHaveLength(1);
	});

	it('lets the last answer win', async () => {
		let letGo = (_: Response) => {};
		const first = new Promise<Response>((done) => (letGo = done));
		const larger = { ...small.document, zones: small.document.zones.map((zone) => ({ ...zone, capacity: zone.capacity * 2 })) };
		const answers: (() => Promise<Response> | Response)[] = [() => first, () => Response.json(larger)];
		const asked = await open(NEW, 'owner', { 'POST /api/admin/layouts/preview': () => answers.shift()?.() ?? drawn() });
		const rows = await screen.findByRole('textbox', { name: 'Rows' }, slow);
		await waitFor(() => expect(previews(asked)).toHaveLength(1));
		await fireEvent.input(rows, { target: { value: '13' } });
		await screen.findByText('626', {}, slow);
		letGo(drawn());
		await new Promise((done) => setTimeout(done, 20));

		expect(screen.queryByText('313')).toBeNull();
	});

	it('saves a draft and opens it', async () => {
		const asked = await open(NEW, 'staff', {
			[`POST /api/admin/venues/${VENUE.id}/layouts/generate`]: () => one(stored(1)),
		});
		await screen.findByText('313', {}, slow);
		await fireEvent.input(screen.getByRole('textbox', { name: 'Name of the layout' }), { target: { value: 'Great hall' } });
		await fireEvent.click(screen.getByRole('button', { name: 'Save as draft' }));

		await screen.findByRole('heading', { level: 1, name: 'Small hall' }, slow);
		const sent = asked.find(({ what }) => what.endsWith('/generate'));
		expect(sent?.body).toMatchObject({ spec: { name: 'Great hall' } });
		expect(sent?.headers.get('Idempotency-Key')).toBeTruthy();
		expect(location.pathname).toBe(PAGE);
	});
});

describe('an import', () => {
	const text = JSON.stringify({ name: 'x', zones: [{ code: '' }] });
	const paste = async () => {
		await fireEvent.click(await screen.findByRole('button', { name: 'Import' }, slow));
		const area = screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Or paste the text' });
		await fireEvent.input(area, { target: { value: text } });
		return area;
	};

	it('is tried at once, tells every fault, and goes to its place', async () => {
		await open(NEW, 'staff', {
			[`POST /api/admin/venues/${VENUE.id}/layouts`]: () =>
				faulty(
					{ path: 'zones[0].code', code: 'blank', message: '“” is empty.', hint: 'Write something.' },
					{ path: 'name', code: 'blank', message: 'It is blank.', hint: 'Write something.' },
				),
		});
		const area = await paste();

		expect(await screen.findByText('2 things are wrong.', {}, slow)).toBeTruthy();
		const list = within(screen.getByRole('region', { name: 'What is wrong' }));
		expect(list.getAllByRole('listitem')).toHaveLength(2);
		await fireEvent.click(list.getByRole('button', { name: 'Go to zones[0].code' }));
		expect(text.slice(area.selectionStart, area.selectionEnd)).toBe('""');
		expect(screen.queryByRole('button', { name: 'Store the layout' })).toBeNull();
	});

	it('tells the first fifty of many', async () => {
		const many = Array.from({ length: 60 }, (_, at) => ({ path: `zones[${at}]`, code: 'missing', message: 'No.', hint: 'Add it.' }));
		await open(NEW, 'staff', { [`POST /api/admin/venues/${VENUE.id}/layouts`]: () => faulty(...many) });
		await paste();
		await screen.findByText('60 things are wrong.', {}, slow);
		const list = within(screen.getByRole('region', { name: 'What is wrong' }));

		expect(list.getAllByRole('listitem')).toHaveLength(50);
		await fireEvent.click(list.getByRole('button', { name: 'Show more (10)' }));
		expect(list.getAllByRole('listitem')).toHaveLength(60);
	});

	it('is summed up and stored when nothing is wrong', async () => {
		const answers = [one(stored(null)), one(stored(1))];
		const asked = await open(NEW, 'staff', { [`POST /api/admin/venues/${VENUE.id}/layouts`]: () => answers.shift() ?? one({}) });
		await paste();
		expect(await screen.findByText('“Small hall” is right.', {}, slow)).toBeTruthy();
		await fireEvent.click(screen.getByRole('button', { name: 'Store the layout' }));

		await screen.findByRole('heading', { level: 1, name: 'Small hall' }, slow);
		expect(asked.filter(({ what }) => what.endsWith('/layouts')).map(({ body }) => body)).toEqual([JSON.parse(text), JSON.parse(text)]);
	});
});

describe('a layout', () => {
	it('shows what is in use first, and offers staff no moves', async () => {
		await open(PAGE, 'staff');

		await screen.findByRole('heading', { level: 1, name: 'Small hall' }, slow);
		expect(screen.getByRole('button', { name: /Version 1/, pressed: true })).toBeTruthy();
		await fireEvent.click(screen.getByRole('button', { name: /Version 2/ }));
		expect(screen.queryByRole('button', { name: 'Put into use' })).toBeNull();
		expect(screen.queryByRole('button', { name: 'Archive' })).toBeNull();
		expect(screen.getByRole('button', { name: 'New version' })).toBeTruthy();
		expect(screen.getByRole('link', { name: 'JSON' }).getAttribute('href')).toBe(`/api/admin/layouts/${LAYOUT}/versions/2/export?format=json`);
	});

	it('is put into use with a reason', async () => {
		const asked = await open(PAGE, 'admin', {
			[`POST /api/admin/layouts/${LAYOUT}/versions/2/activate`]: () => one(version(2, 'active')),
		});
		await fireEvent.click(await screen.findByRole('button', { name: /Version 2/ }, slow));
		await fireEvent.click(await screen.findByRole('button', { name: 'Put into use' }));
		const dialog = within(screen.getByRole('dialog'));
		expect(dialog.getByText(/Version 1 is archived/)).toBeTruthy();
		await fireEvent.input(dialog.getByRole('textbox'), { target: { value: ' New seats ' } });
		await fireEvent.click(dialog.getByRole('button', { name: 'Put it into use' }));

		expect(await screen.findByText(/Version 2 is in use/)).toBeTruthy();
		expect(asked.find(({ what }) => what.endsWith('/activate'))?.body).toEqual({ reason: 'New seats' });
		expect(screen.queryByRole('dialog')).toBeNull();
	});

	it('is compared with counts and the first seats', async () => {
		const seat = { seat_code: 'S-A-1', zone_code: 'S', row: 'A', label: '1', category: 'standard', x: 0, y: 0 };
		const none = { count: 0, seats: [] };
		await open(PAGE, 'scanner', {
			[`GET /api/admin/layouts/${LAYOUT}/diff`]: () =>
				one({
					added: { count: 1, seats: [seat] },
					removed: none,
					moved: { count: 1, seats: [{ before: seat, after: { ...seat, x: 30, y: 40 } }] },
					relabelled: { count: 1, seats: [{ before: seat, after: { ...seat, label: '1A' } }] },
					rezoned: none,
					recategorised: none,
					zones_added: ['V'],
					zones_removed: [],
					zones_changed: [{ zone_code: 'S', fields: ['name'] }],
				}),
		});
		await fireEvent.click(await screen.findByRole('button', { name: 'Compare' }, slow));

		expect(await screen.findByRole('button', { name: /Added 1/, pressed: true }, slow)).toBeTruthy();
		expect(screen.getByText('S · row A · seat 1')).toBeTruthy();
		await fireEvent.click(screen.getByRole('button', { name: /Moved 1/ }));
		expect(screen.getByText('50 cm away')).toBeTruthy();
		await fireEvent.click(screen.getByRole('button', { name: /Renamed 1/ }));
		expect(screen.getByText('S · row A · seat 1A')).toBeTruthy();
		expect(screen.getByText('S (name)')).toBeTruthy();
		expect(screen.queryByRole('button', { name: 'New version' })).toBeNull();
	});

	it('says so when it is not there', async () => {
		await open(PAGE, 'owner', { [`GET /api/admin/layouts/${LAYOUT}/versions`]: () => problem('layout_not_found', 404) });

		expect(await screen.findByText('There is no such layout here.', {}, slow)).toBeTruthy();
	});
});
