import { beforeEach, describe, expect, it } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import { addressOf, askedOf, changesOf, detailsOf, filterOf, KINDS, sayFact, sayPath, sayValue, type Fact } from './facts.ts';

const EVENT = '0190f6a1-7c1e-7d2a-9b1c-2f6a1c3d4e5f';
const ANNA = '0190f6a1-7c1e-7d2a-9b1c-2f6a1c3d4e60';
const names = new Map([[EVENT, 'Boemeltrein']]);
const nameOf = (id: string) => names.get(id);

function make(over: Partial<Fact>): Fact {
	return {
		recorded_at: '2027-03-12T17:30:00Z',
		kind: 'event_updated',
		event_id: null,
		seat_id: null,
		version: 1,
		actor_id: ANNA,
		actor_name: 'Anna',
		person_name: null,
		request_id: null,
		reason: null,
		data: {},
		ip: null,
		user_agent: null,
		...over,
	};
}
const said = (fact: Fact) =>
	changesOf(fact).map((told) => {
		const value = (what: unknown) => sayValue(what, told.path, fact, nameOf) ?? JSON.stringify(what);
		return 'before' in told ? `${sayPath(told.path, nameOf)}: ${value(told.before)} -> ${value(told.after)}` : `${sayPath(told.path, nameOf)}: ${value(told.after)}`;
	});

beforeEach(() => i18n.choose('en'));

describe('what a fact changed', () => {
	it('is said field by field, before and after, in words', () => {
		const changes = {
			status: ['published', 'cancelled'],
			capacity: [null, 1200],
			is_automatic: [true, false],
			replaced_by_event_id: [null, EVENT],
			something_new: ['a', 'b'],
		};
		expect(said(make({ data: { changes } }))).toEqual([
			'Status: Published -> Cancelled',
			'Capacity: nothing -> 1 200',
			'Left to the clock: yes -> no',
			'Takes its place: nothing -> Boemeltrein',
			'something new: a -> b',
		].map((line) => line.replace('1 200', new Intl.NumberFormat('en-ZA').format(1200))));
	});

	it('shows moments as people read them, and ids that nobody knows as such', () => {
		const changes = { start_at: ['2027-03-12T17:30:00+00:00', '2027-03-13T17:30:00+00:00'], venue_id: [ANNA, EVENT] };
		const [start, venue] = said(make({ data: { changes } }));
		expect(start).toBe(`Begins: ${i18n.moment(new Date('2027-03-12T17:30:00Z'))} -> ${i18n.moment(new Date('2027-03-13T17:30:00Z'))}`);
		expect(venue).toBe('Venue: unknown (…3d4e60) -> Boemeltrein');
	});

	it('tells of settings only which were touched, as the journal keeps no more', () => {
		const changes = { settings: [['age_min', 'category'], ['age_min', 'language']] };
		expect(said(make({ data: { changes } }))).toEqual([
			'Details · Youngest age: changed',
			'Details · Kind: removed',
			'Details · Language on stage: added',
		]);
	});

	it('goes into what is nested, zone by zone and field by field', () => {
		const changes = {
			pricing_zones: { STALLS: [null, { pricing_rule_id: EVENT }], [EVENT]: [null, EVENT] },
			zone_overrides: { VIP: [{ capacity: 5, name: 'x' }, { capacity: 7, name: 'x' }] },
			disabled_zones: [[], ['BALCONY']],
		};
		expect(said(make({ data: { changes } }))).toEqual([
			'Prices · STALLS · Price: nothing -> Boemeltrein',
			'Prices · Boemeltrein: nothing -> Boemeltrein',
			'Zones · VIP · Capacity: 5 -> 7',
			'Closed zones: nothing -> BALCONY',
		]);
	});

	it('finds roles, versions and statuses where they stand beside the changes', () => {
		expect(said(make({ kind: 'member_role_changed', data: { role_before: 'staff', role_after: 'admin' } }))).toEqual(['Role: Staff -> Administrator']);
		expect(said(make({ data: { version_before: null, version_after: 1 } }))).toEqual(['Version: nothing -> 1']);
		expect(said(make({ kind: 'event_created', data: { old_status: null, new_status: 'draft', changes: { inventory_epoch: [0, 1] } } }))).toEqual([]);
		expect(said(make({ data: { old_status: 'draft', new_status: 'published', changes: { status: ['draft', 'published'] } } }))).toEqual([
			'Status: Draft -> Published',
		]);
	});

	it('says money as money', () => {
		const fact = make({ data: { currency: 'ZAR', changes: { amount_minor: [10_000, 12_550] } } });
		const rand = (amount: number) => new Intl.NumberFormat('en-ZA', { style: 'currency', currency: 'ZAR' }).format(amount);
		expect(said(fact)).toEqual([`Price: ${rand(100)} -> ${rand(125.5)}`]);
	});

	it('shows data itself only where no words are left', () => {
		expect(sayValue({ odd: 1 }, ['x'], make({}), nameOf)).toBeNull();
		expect(sayValue([{ odd: 1 }], ['x'], make({}), nameOf)).toBeNull();
	});

	it('leaves the rest to the details, without what is said already', () => {
		const fact = make({ data: { name: 'K', actor_type: 'owner', seat_count: 12, role: 'staff', user_id: ANNA, gates: null } });
		expect(detailsOf(fact).map(({ path }) => path[0])).toEqual(['seat_count', 'role']);
	});
});

describe('what happened', () => {
	it('is a sentence with who, what and whom', () => {
		expect(sayFact(make({ kind: 'event_status_changed', event_id: EVENT, data: { verb: 'cancel' } }), nameOf)).toBe('Anna cancelled “Boemeltrein”.');
		expect(sayFact(make({ kind: 'member_role_changed', person_name: 'Berta', data: { role_after: 'admin' } }), nameOf)).toBe('Anna made Berta Administrator.');
		expect(sayFact(make({ kind: 'membership_granted', data: { tier: 'gold' } }), nameOf)).toBe('Anna gave somebody who is no longer here the tier gold.');
	});

	it('is told of the platform, the clock and whoever is unknown without a name', () => {
		const platform = make({ kind: 'organization_suspended', actor_name: null });
		const clock = make({ kind: 'event_status_changed', actor_id: null, actor_name: null, data: { actor_type: 'clock', verb: 'end', name: 'X' } });
		expect(sayFact(platform, nameOf)).toBe('The platform suspended the organization.');
		expect(sayFact(clock, nameOf)).toBe('The clock ended “X”.');
		expect(sayFact(make({ kind: 'brand_new', actor_name: null }), nameOf)).toBe('Somebody: brand new.');
	});
});

describe('a search', () => {
	const search = `what=people&who=${ANNA}&event=${EVENT}&since=2027-03-01T00%3A00%3A00.000Z`;

	it('stands in the address and comes back from it', () => {
		expect(addressOf(askedOf(new URLSearchParams(search)))).toBe(search);
	});

	it('leaves out what makes no sense', () => {
		expect(addressOf(askedOf(new URLSearchParams('what=everything&who=anna&since=soon&until=&odd=1')))).toBe('');
	});

	it('asks the server for a topic, for one kind, or for all', () => {
		expect(filterOf(askedOf(new URLSearchParams(search)))).toEqual({
			kind: [...KINDS.people],
			actor_id: ANNA,
			event_id: EVENT,
			since: '2027-03-01T00:00:00.000Z',
		});
		expect(filterOf(askedOf(new URLSearchParams('what=seat_sold')))).toEqual({ kind: ['seat_sold'] });
		expect(filterOf(askedOf(new URLSearchParams()))).toEqual({});
	});

	it('never asks for more kinds than the server takes', () => {
		expect(Object.values(KINDS).every((kinds) => kinds.length <= 20)).toBe(true);
	});
});
