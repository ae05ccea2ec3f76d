import { beforeEach, describe, expect, it } from 'vitest';
import { HELD, OWN, PENDING, RESERVED, SOLD, STATUS } from './looks.ts';
import { diceOf, makeCounts, makeGeometry, makeOffer, makeSnapshot, zoneId } from './make.ts';
import { SeatMapState } from './map.svelte.ts';

const GEOMETRY = makeGeometry(
	[
		{ name: 'Front', rows: 2, seats: 5, at: [0, 200] },
		{ name: 'Back', rows: 2, seats: 5, at: [0, 500] },
		{ name: 'Pit', rows: 0, seats: 0, at: [0, 0] },
	],
	{ categories: { wheelchair: [0], companion: [1] }, companions: [[1, 0]] },
);
const FREE = Array.from({ length: 20 }, () => 0);
let map: SeatMapState;

beforeEach(() => {
	map = new SeatMapState(GEOMETRY, makeOffer(3, [650, 180, 95]));
	map.load(makeSnapshot(FREE, { map_version: 10, zones: [makeCounts(0, 10, 10), makeCounts(1, 10, 10)] }));
});
const statuses = () => Array.from(map.looks, (look) => look & STATUS);

describe('what the server says', () => {
	it('is taken whole, and then change by change', () => {
		expect(map.apply({ mapVersion: 12, ordinals: [3, 4], statuses: [HELD, SOLD], zones: [makeCounts(0, 8, 10, 1)] })).toBe(true);
		expect(statuses().slice(2, 6)).toEqual([0, HELD, SOLD, 0]);
		expect([map.counts[0]?.available, map.counts[1]?.available, map.left]).toEqual([8, 10, 18]);
	});

	it('is ignored when it is not newer than what is shown', () => {
		for (const mapVersion of [9, 10]) expect(map.apply({ mapVersion, ordinals: [3], statuses: [SOLD] })).toBe(false);
		expect(statuses()).toEqual(FREE);
		expect(map.load(makeSnapshot(FREE.map(() => SOLD), { map_version: 9 }))).toBe(false);
		expect(statuses()).toEqual(FREE);
	});

	it('from elsewhere frees a seat only when nothing else was heard of it for a moment', () => {
		map.apply({ mapVersion: 11, ordinals: [2, 3, 4], statuses: [HELD, HELD, SOLD] });
		// Another process knows of more, and not yet that 2 and 4 are gone; 3 was let go.
		const told = FREE.map((_, seat) => (seat === 6 ? HELD : 0));
		expect(map.load(makeSnapshot(told, { map_version: 14 }), { isDoubted: true })).toBe(true);
		expect([2, 3, 4, 6].map((seat) => map.statusOf(seat))).toEqual(['held', 'held', 'sold', 'held']);
		map.apply({ mapVersion: 16, ordinals: [2, 4], statuses: [HELD, SOLD] });
		map.free();
		expect([2, 3, 4, 6].map((seat) => map.statusOf(seat))).toEqual(['held', 'available', 'sold', 'held']);
		const before = map.revision;
		map.free();
		expect(map.revision).toBe(before);
		// What replaces, and another epoch, is believed at once.
		map.load(makeSnapshot(FREE, { map_version: 12 }), { isReplacing: true, isDoubted: true });
		expect(map.statusOf(4)).toBe('available');
	});

	it('begins anew with another epoch', () => {
		expect(map.load(makeSnapshot(FREE.map(() => SOLD), { epoch: 2, map_version: 1 }))).toBe(true);
		expect(map.statusOf(7)).toBe('sold');
		expect(map.load(makeSnapshot(FREE, { epoch: 1, map_version: 99 }))).toBe(false);
	});

	it.each([[1, 4], [0, 50]])('may have to be taken back to map %i:%i, and goes on from there', (epoch, map_version) => {
		expect(map.load(makeSnapshot(FREE.map(() => SOLD), { epoch, map_version }), { isReplacing: true })).toBe(true);
		expect(map.statusOf(7)).toBe('sold');
		expect(map.apply({ mapVersion: map_version, ordinals: [7], statuses: [HELD] })).toBe(false);
		expect(map.apply({ mapVersion: map_version + 1, ordinals: [7], statuses: [HELD] })).toBe(true);
	});

	it('comes to the same by any changes as by one snapshot', () => {
		for (let seed = 1; seed <= 30; seed++) {
			const dice = diceOf(seed);
			const truth = [...FREE];
			const own = new SeatMapState(GEOMETRY);
			own.load(makeSnapshot(FREE));
			for (let mapVersion = 2; mapVersion < 12; mapVersion++) {
				const ordinals = Array.from({ length: dice(6) }, () => dice(20));
				const changed = Uint8Array.from(ordinals, () => dice(4));
				ordinals.forEach((seat, at) => (truth[seat] = changed[at] as number));
				own.apply({ mapVersion, ordinals: Uint32Array.from(ordinals), statuses: changed });
			}
			expect(Array.from(own.looks, (look) => look & STATUS)).toEqual(truth);
		}
	});

	it('is not believed about seats that there are not, nor about another hall', () => {
		map.apply({ mapVersion: 11, ordinals: [20, 4_000_000], statuses: [SOLD, SOLD] });
		expect(statuses()).toEqual(FREE);
		expect(() => map.load(makeSnapshot([0], { map_version: 99 }))).toThrow('a map of 1 seats for 20');
	});
});

describe('what has to be drawn again', () => {
	it('is exactly what changed since the last time', () => {
		map.touchedSince(-1);
		map.drawn();
		const { revision } = map;
		map.apply({ mapVersion: 11, ordinals: [3, 9], statuses: [HELD, HELD] });
		expect(map.touchedSince(revision)).toEqual([3, 9]);
		map.drawn();
		expect(map.touchedSince(map.revision)).toEqual([]);
	});

	it('is everything after a snapshot, and for one who has drawn nothing', () => {
		map.drawn();
		const { revision } = map;
		map.load(makeSnapshot(FREE, { map_version: 20 }));
		expect(map.touchedSince(revision)).toBeNull();
		expect(map.touchedSince(-1)).toBeNull();
	});

	it('always covers the difference to what was drawn', () => {
		const dice = diceOf(5);
		let shown = Uint8Array.from(map.looks);
		let revision = -1;
		for (let step = 0; step < 300; step++) {
			const seat = dice(20);
			const deed = dice(6);
			if (deed === 0) map.pend(seat);
			else if (deed === 1) map.confirm(seat);
			else if (deed === 2) map.takeBack(seat, 'gone');
			else map.apply({ mapVersion: 100 + step, ordinals: [seat, dice(20)], statuses: [dice(4), dice(4)] });
			if (dice(3) > 0) continue;
			const touched = map.touchedSince(revision);
			const next = touched === null ? Uint8Array.from(map.looks) : shown.map((look, at) => (touched.includes(at) ? (map.looks[at] as number) : look));
			expect([...next]).toEqual([...map.looks]);
			[shown, revision] = [next, map.revision];
			map.drawn();
		}
	});
});

describe('what a person asks for', () => {
	it('looks theirs at once, and is theirs when it is confirmed', () => {
		map.pend(7);
		expect([map.answer(7), (map.looks[7] as number) & (OWN | PENDING)]).toEqual(['pending', OWN | PENDING]);
		map.confirm(7);
		expect([map.answer(7), (map.looks[7] as number) & (OWN | PENDING), [...map.own]]).toEqual(['own', OWN, [7]]);
	});

	it('goes back with its reason when it is refused', () => {
		map.pend(7);
		map.takeBack(7, 'gone');
		expect([map.answer(7), map.notice, map.own.size]).toEqual(['free', { seat: 7, reason: 'gone' }, 0]);
	});

	it('is given back the same way, and stays where that is refused', () => {
		map.hold([7]);
		map.pend(7);
		map.takeBack(7, 'lost');
		expect(map.answer(7)).toBe('own');
		map.pend(7);
		map.confirm(7);
		expect([map.answer(7), map.own.size]).toEqual(['free', 0]);
	});

	it('is not undone by what the server tells of everybody', () => {
		map.hold([7]);
		map.apply({ mapVersion: 11, ordinals: [7], statuses: [HELD] });
		expect(map.answer(7)).toBe('own');
		map.load(makeSnapshot(FREE.map(() => HELD), { map_version: 12 }));
		expect([map.answer(7), map.answer(8)]).toEqual(['own', 'held']);
		map.hold([]);
		expect(map.answer(7)).toBe('held');
	});

	it('reserves the companion seat of a wheelchair space, until it is somebody’s', () => {
		map.hold([0]);
		expect([map.isReserved(1), map.answer(1)]).toEqual([true, 'free']);
		map.hold([0, 1]);
		expect(map.isReserved(1)).toBe(false);
		map.hold([0]);
		map.apply({ mapVersion: 11, ordinals: [1], statuses: [SOLD] });
		expect((map.looks[1] as number) & RESERVED).toBe(0);
	});
});

describe('zones', () => {
	it('are locked where they are not for everybody, and open for whom they are', () => {
		map.sell(makeOffer(3, [650, 180], { access_mode: 'membership_tier' }));
		expect([map.answer(0), map.locked]).toEqual(['locked', [true, true, true]]);
		map.open([zoneId(0)]);
		expect([map.answer(0), map.answer(10)]).toEqual(['free', 'locked']);
	});

	it('may be sold by number though they have seats', () => {
		map.sell(makeOffer(3, [650, 180], { place: 'ga_seated' }));
		expect(map.answer(3)).toBe('pooled');
	});

	it('are coloured by price, the dearest first', () => {
		expect([...map.tints.slice(0, 2)]).toEqual([0, 1]);
		map.sell(makeOffer(3, [100, 400]));
		expect([...map.tints.slice(0, 2)]).toEqual([1, 0]);
	});

	it('have a line each in the legend, or one for a price where they are many', () => {
		expect(map.groups.map(({ name, from }) => [name, from?.amount_minor])).toEqual([['Front', 65_000], ['Back', 18_000], ['Pit', 9_500]]);
		const many = Array.from({ length: 12 }, (_, at) => ({ name: `Section ${at + 101}`, rows: 1, seats: 2, at: [at * 200, 0] as const }));
		const large = new SeatMapState(makeGeometry(many), makeOffer(12, many.map((_, at) => (at < 6 ? 300 : 100))));
		expect(large.groups.map(({ name, zones, tint }) => [name, zones.length, tint])).toEqual([[null, 6, 0], [null, 6, 1]]);
	});

	/** So many zones, each with a price of its own. */
	function priced(count: number): SeatMapState {
		const blocks = Array.from({ length: count }, (_, at) => ({ name: `Block ${at}`, rows: 1, seats: 2, at: [0, at * 200] as const }));
		return new SeatMapState(makeGeometry(blocks), makeOffer(count, blocks.map((_, at) => 1000 - at * 50)));
	}

	it.each([5, 6, 7, 8])('have a colour each for %i prices, and none of the first four is missing', (count) => {
		const { tints } = priced(count);
		expect(new Set(tints).size).toBe(count);
		expect([...tints].sort()).toEqual(Array.from({ length: count }, (_, at) => at));
		expect([...tints].filter((tint) => tint < 4)).toEqual([0, 1, 2, 3]);
	});

	it('share colours past eight prices, and the legend says from what to what', () => {
		const { groups, tints } = priced(12);
		expect(groups).toHaveLength(8);
		expect(new Set(groups.map(({ tint }) => tint)).size).toBe(8);
		expect(groups.flatMap(({ zones }) => zones).sort((one, other) => one - other)).toEqual([...tints.keys()]);
		expect(groups.some(({ from, to }) => from && to && from.amount_minor < to.amount_minor)).toBe(true);
	});

	it('without seats and without a place on the map stand below it', () => {
		expect(map.unplaced).toEqual([]);
		const nowhere = makeGeometry([{ name: 'Front', rows: 1, seats: 2, at: [0, 0] }, { name: 'Lawn', rows: 0, seats: 0, at: [0, 0], isDrawn: false }]);
		const offer = makeOffer(2, [300, 100]);
		expect(new SeatMapState(nowhere, offer).unplaced.map(({ name }) => name)).toEqual(['Lawn']);
		expect(new SeatMapState(nowhere, offer.map((zone) => ({ ...zone, is_enabled: false }))).unplaced).toEqual([]);
		expect(new SeatMapState(nowhere, offer, { isDesk: true }).unplaced).toEqual([]);
	});
});

it('shows a box as large as the screen allows, between what stands at its edges', () => {
	map.size = { width: 800, height: 600 };
	map.inset = { top: 60, bottom: 40 };
	const { k, x, y } = map.fitting({ left: 0, top: 0, right: 1000, bottom: 100 });
	expect(k).toBeCloseTo(752 / 1000);
	expect([x + 500 * k, y + 50 * k]).toEqual([400, 310]);
});
