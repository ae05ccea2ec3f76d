import { describe, expect, it } from 'vitest';
import { Hall } from '../map/hall.ts';
import { BLOCKED, HELD, OWN, SOLD } from '../map/looks.ts';
import { makeGeometry } from '../map/make.ts';
import { boxBetween, byStatus, CHOSEN_MAX, rowOf, toggled, unsold } from './choosing.ts';

/** Two rows of five, 50 apart, 90 behind one another. */
const hall = new Hall(makeGeometry([{ name: 'Front', rows: 2, seats: 5, at: [0, 200] }]));
const sorted = (seats: Iterable<number>) => [...seats].sort((one, other) => one - other);

describe('what is taken', () => {
	it('is the row of a seat', () => {
		expect(rowOf(hall, 7)).toEqual([5, 6, 7, 8, 9]);
	});

	it('is everything in the frame that two seats span, whichever is first', () => {
		for (const [one, other] of [[1, 8], [8, 1], [3, 6]] as const) {
			expect(sorted(hall.seatsIn(boxBetween(hall, one, other)))).toEqual([1, 2, 3, 6, 7, 8]);
		}
		expect(hall.seatsIn(boxBetween(hall, 4, 4))).toEqual([4]);
	});

	it('is what lies in a frame that was drawn', () => {
		expect(sorted(hall.seatsIn({ left: 40, top: 190, right: 160, bottom: 230 }))).toEqual([1, 2, 3]);
		expect(hall.seatsIn({ left: 300, top: 0, right: 400, bottom: 100 })).toEqual([]);
	});
});

describe('choosing', () => {
	it('adds what is not chosen, and leaves what is', () => {
		const one = toggled(new Set(), [1, 2]);
		expect(sorted(one)).toEqual([1, 2]);
		expect(sorted(toggled(one, [2, 3]))).toEqual([1, 2, 3]);
		expect(sorted(toggled(new Set([1, 2, 3]), [2, 3]))).toEqual([1]);
		expect(sorted(toggled(one, []))).toEqual([1, 2]);
	});

	it('has an end', () => {
		expect(toggled(new Set(), Array.from({ length: CHOSEN_MAX + 5 }, (_, seat) => seat)).size).toBe(CHOSEN_MAX);
	});

	it('tells by what seats are, whether or not they are chosen', () => {
		const looks = Uint8Array.of(0, OWN, HELD | OWN, SOLD, BLOCKED | OWN);
		expect(byStatus(looks, [4, 3, 2, 1, 0])).toEqual({ available: [1, 0], held: [2], sold: [3], blocked: [4] });
		expect(unsold(looks, [0, 2, 3])).toEqual([0, 2]);
	});
});
