import { describe, expect, it } from 'vitest';
import type { EventZone, Fault } from './contract.ts';
import { faultsAt, partsOf, roomOf } from './totals.ts';

const TOTALS = { reserved: 300, ga_seated: 50, standing: 50, blocked: 12, total: 400 };

describe('the room there is', () => {
	it('is the event’s where it takes fewer than the venue, and the venue’s otherwise', () => {
		expect(roomOf(TOTALS, 500, 800)).toMatchObject({ most: 500, by: 'event', left: 100, mark: 1, shares: [0.6, 0.1, 0.1] });
		expect(roomOf(TOTALS, null, 800)).toMatchObject({ most: 800, by: 'venue', left: 400 });
		expect(roomOf(TOTALS, 900, 800)).toMatchObject({ most: 800, by: 'venue' });
	});

	it('is marked on the bar where too much is offered', () => {
		expect(roomOf(TOTALS, 200, 800)).toMatchObject({ left: -200, mark: 0.5, shares: [0.75, 0.125, 0.125] });
		expect(roomOf({ ...TOTALS, reserved: 0, ga_seated: 0, standing: 0, total: 0 }, 0, 800).shares).toEqual([0, 0, 0]);
	});
});

describe('a zone', () => {
	it('is a bar of what it has, without what it has not', () => {
		const zone = { sold: 10, held: 0, blocked: 15, available: 75 } as EventZone;

		expect(partsOf(zone).map(({ part, share }) => [part, share])).toEqual([['sold', 0.1], ['blocked', 0.15], ['available', 0.75]]);
	});
});

describe('faults', () => {
	it('are found at their place and below it, and not at one that only begins alike', () => {
		const at = (path: string): Fault => ({ path, code: 'x', message: '', hint: '' });
		const faults = ['zone_overrides.z1', 'zone_overrides.z1.capacity', 'zone_overrides.z12', 'blocked_seat_ids[3]', '$'].map(at);
		const paths = (...places: string[]) => faultsAt(faults, ...places).map(({ path }) => path);

		expect(paths('zone_overrides.z1')).toEqual(['zone_overrides.z1', 'zone_overrides.z1.capacity']);
		expect(paths('blocked_seat_ids', '$')).toEqual(['blocked_seat_ids[3]', '$']);
	});
});
