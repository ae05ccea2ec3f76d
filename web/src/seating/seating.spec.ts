import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeEvent, VENUE } from '../admin/sample.ts';
import App from '../App.svelte';
import { i18n } from '../i18n/i18n.svelte.ts';
import { router } from '../lib/router.svelte.ts';
import { session } from '../lib/session.svelte.ts';
import small from '../layouts/fixtures/small.json';
import { account, forgetCookies, problem, serve } from '../test/server.ts';

class Silent extends EventTarget {
	close(): void {}
}

const EVENT = makeEvent({ status: 'draft', capacity: 313 });
const LAYOUT = small.document.layout_id;
const [STALLS = '', MEMBERS = '', PIT = ''] = small.document.zones.map((zone) => zone.zone_id);
const RULE = { id: 'rule-1', name: 'Adult', currency: 'ZAR', amount_minor: 45_000, by_category: {}, version: 1, created_at: '', updated_at: '' };
const one = (data: object) => Response.json({ data });
const listed = (data: readonly object[]) => Response.json({ data, next_cursor: null });

const zone = (at: number, over: object = {}) => {
	const { zone_id, name, zone_type, capacity } = small.document.zones[at]!;
	return {
		zone_id, name, zone_type, capacity, code: name[0], place: zone_type === 'ga_standing' ? 'standing' : 'reserved', access_mode: 'public',
		membership_tier: null, allowed_roles: [], is_enabled: true, available: capacity, held: 0, sold: 0, blocked: 0, availability: 'available',
		pricing_rule_id: null, prices: [], from_price: null, ...over,
	};
};
const seating = (over: object = {}) => ({
	event_id: EVENT.id,
	version: 4,
	layout: { layout_id: LAYOUT, layout_version: 3, name: 'Small hall', status: 'active', seat_count: 13, geometry_url: '' },
	overrides: {},
	zones: [zone(0), zone(1), zone(2)],
	counts: {},
	totals: { reserved: 13, ga_seated: 0, standing: 300, blocked: 0, total: 313 },
	event_capacity: 313,
	venue_capacity: 400,
	is_hybrid: true,
	is_materialised: false,
	can_repin: true,
	inventory_epoch: 0,
	from_price: null,
	faults: [],
	unpriced_zones: [STALLS, MEMBERS],
	policy: [
		{ name: 'max_seats_per_booking', kind: 'whole', value: 10, origin: 'default', is_locked: false, is_overridable: true, least: 1, most: 40, is_nullable: false },
		{ name: 'orphan_avoidance_strict', kind: 'flag', value: true, origin: 'organization', is_locked: true, is_overridable: true, least: null, most: null, is_nullable: false },
		{ name: 'allow_vip_zones', kind: 'flag', value: false, origin: 'default', is_locked: false, is_overridable: false, least: null, most: null, is_nullable: false },
	],
	...over,
});
const base = small.document.zones.map(({ zone_id, name, zone_type, capacity }) => ({
	zone_id, name, zone_type, capacity, code: name[0], access_mode: 'public', membership_tier: null, allowed_roles: [], row_count: 1, metadata: {},
}));

const SEATING = `/api/admin/events/${EVENT.id}/seating`;
const slow = { timeout: 5000 };
let stop = () => {};

async function open(path: string, role: string, replies: Record<string, () => Response | Promise<Response>> = {}) {
	const asked = serve({
		'GET /api/me': () => account({ role }),
		'GET /api/admin/event-policy': () => one({ staff_may_change_venues: false }),
		[`GET /api/admin/events/${EVENT.id}`]: () => one(EVENT),
		[`GET ${SEATING}`]: () => one(seating()),
		[`PUT ${SEATING}`]: () => one(seating()),
		'GET /api/admin/pricing-rules': () => listed([RULE]),
		'GET /api/admin/layouts': () => listed([{ id: LAYOUT, venue_id: VENUE.id, name: 'Small hall', latest_version: 3, active_version: 3, created_at: '', updated_at: '' }]),
		[`GET /api/admin/layouts/${LAYOUT}/versions/3`]: () => one({ layout_id: LAYOUT, version: 3, zones: base }),
		[`GET /api/layouts/${LAYOUT}/v3/geometry`]: () => Response.json(small.document),
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

const PAGE = `/passievol/admin/events/${EVENT.id}/seating`;
const sent = (asked: readonly { what: string; body: unknown; headers: Headers }[]) => asked.filter(({ what }) => what.startsWith('PUT'));
const save = () => fireEvent.click(screen.getByRole('button', { name: 'Save' }));

async function block(seats: string): Promise<void> {
	await fireEvent.input(await screen.findByLabelText('Seats by name', {}, slow), { target: { value: seats } });
	await fireEvent.click(screen.getByRole('button', { name: 'Block' }));
}

beforeEach(() => {
	i18n.choose('en');
	vi.stubGlobal('EventSource', Silent);
});

afterEach(() => {
	// What is not saved would wait for the next one.
	const discard = screen.queryByRole('button', { name: 'Discard' });
	if (discard) discard.click();
	stop();
	cleanup();
	forgetCookies();
});

describe('the seating of an event', () => {
	it('shows what adds up, what has no price, and who said what holds', async () => {
		await open(PAGE, 'owner');

		expect(await screen.findByText('Exactly as many as the event takes: 313.', {}, slow)).toBeTruthy();
		expect(screen.getByText('2 zones have no price.')).toBeTruthy();
		const locked = screen.getByText('No lonely seats').closest('li') as HTMLElement;
		expect(within(locked).getByText('Set by the platform')).toBeTruthy();
		expect(within(locked).queryByRole('button')).toBeNull();
		const fixed = screen.getByText('VIP zones').closest('li') as HTMLElement;
		expect(within(fixed).getByText('The same for every event')).toBeTruthy();
	});

	it('offers no zone of another hall while the chosen one is asked for', async () => {
		let answer: (response: Response) => void = () => {};
		const own = { ...zone(0), zone_id: 'everywhere', name: 'Everywhere' };
		const asked = await open(PAGE, 'owner', {
			[`GET ${SEATING}`]: () => one(seating({ layout: null, zones: [own], unpriced_zones: [own.zone_id] })),
			[`PUT ${SEATING}`]: () => new Promise((done) => (answer = done)),
		});
		expect(await screen.findByLabelText('Price', {}, slow)).toBeTruthy();

		await fireEvent.click(screen.getByRole('radio', { name: /^Small hall/ }));
		expect(screen.queryByLabelText('Price')).toBeNull();
		await waitFor(() => expect(sent(asked)).toHaveLength(1), slow);
		answer(one(seating()));
		await waitFor(() => expect(screen.getAllByLabelText('Price')).toHaveLength(3), slow);
	});

	it('tries what is chosen without saving it, then saves it with the version it was seen at', async () => {
		const asked = await open(PAGE, 'staff');
		await block('Stalls A 1-2');
		await fireEvent.click(screen.getByRole('switch', { name: 'Sell Pit' }));
		await fireEvent.change(screen.getAllByLabelText('Price')[0]!, { target: { value: RULE.id } });

		const overrides = {
			blocked_seat_ids: small.seats.slice(0, 2).map(({ id }) => id),
			disabled_zones: [PIT],
			zone_overrides: {},
			pricing_zones: { [STALLS]: { pricing_rule_id: RULE.id } },
			seating_overrides: {},
		};
		await waitFor(() => expect(sent(asked)).toHaveLength(1), slow);
		expect(sent(asked)[0]?.body).toEqual({ layout_id: LAYOUT, layout_version: 3, overrides });
		await save();
		await screen.findByText('The seating is saved.', {}, slow);
		expect(sent(asked)).toHaveLength(2);
		expect(sent(asked)[1]?.headers.get('If-Match')).toBe('"4"');
		expect(screen.queryByRole('button', { name: 'Save' })).toBeNull();
	});

	it('tells a fault at its place', async () => {
		const fault = { path: `zone_overrides.${PIT}.capacity`, code: 'out_of_range', message: 'raw', hint: '' };
		await open(PAGE, 'owner', { [`PUT ${SEATING}`]: () => problem('seating_invalid', 400, { details: { errors: [fault] } }) });
		const field = await screen.findByLabelText('How many people', {}, slow);
		await fireEvent.input(field, { target: { value: '999' } });

		expect(await screen.findByText('Between 1 and 300.', {}, slow)).toBeTruthy();
		expect(field.getAttribute('aria-invalid')).toBe('true');
		expect(screen.getByText('One thing is wrong.')).toBeTruthy();
	});

	it('says which places stand in the way', async () => {
		const details = {
			seats: [{ seat_id: 's', zone: 'Stalls', row: 'A', seat_number: '1', status: 'sold' }],
			zones: [{ zone_id: PIT, name: 'Pit', held: 2, sold: 40, room: 10 }],
			seat_count: 3,
		};
		await open(PAGE, 'owner', { [`PUT ${SEATING}`]: () => problem('seating_in_use', 409, { details }) });
		await block('Stalls A 1');

		expect(await screen.findByText('Stalls, row A, seat 1: sold', {}, slow)).toBeTruthy();
		expect(screen.getByText('Pit: 2 held and 40 sold, room for 10')).toBeTruthy();
		expect(screen.getByText('and 2 more seats')).toBeTruthy();
	});

	it('keeps what was done here when somebody else was faster', async () => {
		let now = seating();
		const asked = await open(PAGE, 'owner', {
			[`GET ${SEATING}`]: () => one(now),
			[`PUT ${SEATING}`]: () => {
				const body = sent(asked).at(-1)!;
				return body.headers.get('If-Match') === `"${now.version}"` ? one(now) : problem('seating_changed', 409);
			},
		});
		await block('Stalls A 1');
		now = seating({ version: 5, overrides: { disabled_zones: [PIT] } });
		await save();

		expect(await screen.findByText(/nothing of yours was saved/, {}, slow)).toBeTruthy();
		expect(screen.getByText(/They changed: zones that are on or off\./)).toBeTruthy();
		expect(screen.getByText('Stalls A 1')).toBeTruthy();
		await save();
		await waitFor(() => expect(sent(asked).at(-1)?.headers.get('If-Match')).toBe('"5"'), slow);
		expect(sent(asked).at(-1)?.body).toMatchObject({ overrides: { disabled_zones: [PIT], blocked_seat_ids: [small.seats[0]?.id] } });
	});

	it('is looked at by those who scan', async () => {
		await open(PAGE, 'scanner');

		expect(await screen.findByText(/You can look at the seating/, {}, slow)).toBeTruthy();
		expect(screen.queryByRole('switch')).toBeNull();
		expect(screen.queryByRole('link', { name: 'Policy' })).toBeNull();
	});
});

describe('the policy', () => {
	const field = (name: string, over: object = {}) => ({
		name, kind: 'flag', value: false, default: false, origin: 'default', is_locked: false, is_overridable: true, may_change: true,
		least: null, most: null, is_nullable: false, words: [], ...over,
	});
	const policy = (over: object = {}) => ({
		version: 2,
		updated_at: '2027-01-01T08:00:00Z',
		fields: [
			field('allow_vip_zones'),
			field('max_seats_per_booking', { kind: 'whole', value: 6, default: 10, origin: 'organization', least: 1, most: 40 }),
			field('max_holds_per_ip', { kind: 'whole', value: 50, default: null, is_locked: true, may_change: false, least: 1, most: 10_000, is_nullable: true }),
		],
		...over,
	});

	it('sends only what was changed, and shows the lock', async () => {
		const asked = await open('/passievol/admin/policy', 'owner', {
			'GET /api/admin/seating-policy': () => one(policy()),
			'PATCH /api/admin/seating-policy': () => one(policy({ version: 3 })),
		});
		await fireEvent.click(await screen.findByRole('switch', { name: /VIP zones/ }, slow));
		await fireEvent.click(screen.getByRole('button', { name: 'Seats in one booking: more' }));
		await fireEvent.click(screen.getByRole('button', { name: 'Seats in one booking: less' }));
		expect(screen.getByText('Set by the platform')).toBeTruthy();
		expect(screen.getByText('One change is not saved.')).toBeTruthy();
		await save();

		await screen.findByText(/The policy is saved/, {}, slow);
		const patch = asked.find(({ what }) => what.startsWith('PATCH'));
		expect(patch?.body).toEqual({ values: { allow_vip_zones: true } });
		expect(patch?.headers.get('If-Match')).toBe('"2"');
	});

	it('says what is wrong with a field, and keeps what was set when somebody else was faster', async () => {
		const answers = [
			problem('policy_invalid', 400, { details: { fields: { max_seats_per_booking: 'must be smaller' } } }),
			problem('policy_changed', 409),
		];
		const asked = await open('/passievol/admin/policy', 'owner', {
			'GET /api/admin/seating-policy': () => one(policy()),
			'PATCH /api/admin/seating-policy': () => answers.shift() ?? one(policy()),
		});
		await fireEvent.click(await screen.findByRole('button', { name: 'Seats in one booking: more' }, slow));
		await save();
		expect(await screen.findByText('must be smaller', {}, slow)).toBeTruthy();
		await save();
		expect(await screen.findByText(/Somebody else changed the policy/, {}, slow)).toBeTruthy();
		expect((screen.getByRole('textbox', { name: 'Seats in one booking' }) as HTMLInputElement).value).toBe('7');
		expect(asked.filter(({ what }) => what === 'GET /api/admin/seating-policy')).toHaveLength(2);
	});
});
