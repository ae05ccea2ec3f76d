import { describe, expect, it } from 'vitest';
import { makeGeometry, makeOffer, makeSnapshot } from '../map/make.ts';
import { SeatMapState } from '../map/map.svelte.ts';
import { together } from './together.ts';

/** Two rows of eight; `x` is taken. */
function hall(first: string, second = '........'): SeatMapState {
	const map = new SeatMapState(makeGeometry([{ name: 'Stalls', rows: 2, seats: 8, at: [0, 0] }]), makeOffer(1, [100]));
	map.load(makeSnapshot(Array.from(first + second, (one) => (one === 'x' ? 2 : 0))));
	return map;
}

describe('seats beside each other', () => {
	it.each([
		['........', 4, 1, [4]],
		['........', 4, 3, [3, 4, 5]],
		['........', 0, 3, [0, 1, 2]],
		['........', 7, 2, [6, 7]],
		// Nobody is left alone where it can be helped.
		['........', 2, 3, [0, 1, 2]],
		['.....xxx', 3, 2, [3, 4]],
		['xx...xxx', 3, 3, [2, 3, 4]],
	])('of %j round %d are, for %d, %j', (row, seat, wanted, found) => {
		expect(together(hall(row), seat, wanted)).toEqual(found);
	});

	it.each([
		['..x.....', 1, 3],
		['xxxxx..x', 5, 3],
	])('of %j round %d there are none for %d', (row, seat, wanted) => {
		expect(together(hall(row), seat, wanted)).toBeNull();
	});

	it('end with the row', () => {
		expect(together(hall('xxxxxx..'), 7, 3)).toBeNull();
	});
});
