import { describe, expect, it } from 'vitest';
import {
	aspectsOf,
	bodyOf,
	changed,
	changedValues,
	choicesOf,
	differences,
	kept,
	layoutOf,
	merged,
	offKey,
	policyKey,
	priceKey,
	seatKey,
	withoutLayout,
	zoneKey,
	type Choices,
} from './choices.ts';
import type { SeatingView } from './contract.ts';

const LAYOUT = { layout_id: 'hall', layout_version: 3 } as SeatingView['layout'];
const OVERRIDES = {
	blocked_seat_ids: ['s1', 's2'],
	disabled_zones: ['z1'],
	zone_overrides: { z2: { zone_type: 'ga_standing', capacity: 40 } },
	pricing_zones: { z2: { pricing_rule_id: 'p1' } },
	seating_overrides: { max_seats_per_booking: 4, max_holds_per_user: null },
} as const;
const SAVED = choicesOf({ layout: LAYOUT, overrides: OVERRIDES });
const EMPTY: Choices = new Map();

describe('choices', () => {
	it('are sent as they were read', () => {
		expect(bodyOf(SAVED)).toEqual({ layout_id: 'hall', layout_version: 3, overrides: OVERRIDES });
		expect(layoutOf(SAVED)).toEqual({ id: 'hall', version: 3 });
	});

	it('say nothing of what is left to the layout', () => {
		const none = { blocked_seat_ids: [], disabled_zones: [], zone_overrides: {}, pricing_zones: {}, seating_overrides: {} };
		expect(bodyOf(choicesOf({ layout: null, overrides: {} }))).toEqual({ layout_id: null, layout_version: null, overrides: none });
		const back = changed(SAVED, [zoneKey('z2', 'zone_type'), undefined], [zoneKey('z2', 'capacity'), undefined], [offKey('z1'), undefined]);
		expect(bodyOf(back).overrides).toMatchObject({ zone_overrides: {}, disabled_zones: [] });
	});

	it('differ by what was added, taken back and set otherwise', () => {
		const after = changed(SAVED, [seatKey('s3'), true], [seatKey('s1'), undefined], [priceKey('z2'), 'p2'], [policyKey('max_holds_per_user'), null]);
		expect(differences(SAVED, after).sort()).toEqual(['price/z2', 'seat/s1', 'seat/s3']);
		expect(aspectsOf(differences(SAVED, after))).toEqual(['price', 'seat']);
		expect(differences(SAVED, changed(after, [seatKey('s3'), undefined], [seatKey('s1'), true], [priceKey('z2'), 'p1']))).toEqual([]);
	});

	it('take lists as sets', () => {
		const one = changed(EMPTY, [zoneKey('z', 'allowed_roles'), ['staff', 'owner']]);
		const other = changed(EMPTY, [zoneKey('z', 'allowed_roles'), ['owner', 'staff']]);
		expect(differences(one, other)).toEqual([]);
	});
});

describe('two people at once', () => {
	it('keep what each did, and are told where both did something else', () => {
		const mine = changed(SAVED, [seatKey('s9'), true], [priceKey('z2'), 'mine'], [policyKey('max_seats_per_booking'), 6]);
		const theirs = changed(SAVED, [seatKey('s1'), undefined], [priceKey('z2'), 'theirs'], [policyKey('max_seats_per_booking'), 6]);
		const both = merged(SAVED, mine, theirs);

		expect(bodyOf(both.choices).overrides).toMatchObject({
			blocked_seat_ids: ['s2', 's9'],
			pricing_zones: { z2: { pricing_rule_id: 'mine' } },
			seating_overrides: { max_seats_per_booking: 6 },
		});
		expect(both.disputed).toEqual(['price/z2']);
		expect(aspectsOf(both.theirs)).toEqual(['price', 'seat', 'policy']);
	});

	it('do not bring back what only one of them took away', () => {
		const mine = changed(SAVED, [offKey('z1'), undefined]);
		const both = merged(SAVED, mine, SAVED);

		expect([...both.choices.keys()]).not.toContain('off/z1');
		expect(both.disputed).toEqual([]);
		expect(both.theirs).toEqual([]);
	});
});

describe('another version', () => {
	it('leaves out what it does not have, and counts it', () => {
		const left = kept(SAVED, (seat) => seat === 's1', (zone) => zone === 'z1');

		expect(left).toMatchObject({ seats: 1, zones: 1 });
		expect([...left.choices.keys()].sort()).toEqual(['layout', 'off/z1', 'policy/max_holds_per_user', 'policy/max_seats_per_booking', 'seat/s1']);
	});

	it('of another hall keeps only what holds whatever the hall', () => {
		expect([...withoutLayout(SAVED).keys()].sort()).toEqual(['policy/max_holds_per_user', 'policy/max_seats_per_booking']);
	});
});

describe('the policy', () => {
	it('is sent only where it is another', () => {
		const fields = [
			{ name: 'allow_vip_zones', value: false },
			{ name: 'max_seats_per_booking', value: 10 },
			{ name: 'max_holds_per_user', value: 4 },
			{ name: 'allowed_access_modes', value: ['public', 'role_based'] },
		];
		const values = { allow_vip_zones: true, max_seats_per_booking: 10, max_holds_per_user: null, allowed_access_modes: ['role_based', 'public'] };

		expect(changedValues(fields, values)).toEqual({ allow_vip_zones: true, max_holds_per_user: null });
		expect(changedValues(fields, {})).toEqual({});
	});
});
