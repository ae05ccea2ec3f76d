import { describe, expect, it } from 'vitest';
import { nearOf, OWN, pack, runsOf, TURNING, unpack } from './looks.ts';
import { diceOf } from './make.ts';

describe('statuses in two bits', () => {
	it('are read in the order of ordinals, the first in the lowest bits', () => {
		expect([...unpack(btoa(String.fromCharCode(0b11_10_01_00, 0b01)), 5)]).toEqual([0, 1, 2, 3, 1]);
	});

	it.each([0, 1, 3, 4, 5, 127, 1000])('are what was packed, for %i seats', (count) => {
		const dice = diceOf(count);
		const statuses = Array.from({ length: count }, () => dice(4));

		expect([...unpack(pack(statuses), count)]).toEqual(statuses);
		expect(pack(statuses.map((status) => status | OWN | TURNING))).toBe(pack(statuses));
	});

	it('are refused where they are of another hall', () => {
		expect(() => unpack(pack([0, 0, 0, 0, 0]), 4)).toThrow('2 bytes are not 4 seats');
	});
});

describe('runs of changed seats', () => {
	it('hold every changed seat, do not overlap, and lie at least a gap apart', () => {
		for (let seed = 1; seed <= 60; seed++) {
			const dice = diceOf(seed);
			const [gap, ordinals] = [1 + dice(30), Array.from({ length: dice(40) }, () => dice(500))];
			const runs = runsOf(ordinals, gap);

			expect(ordinals.every((one) => runs.some(([first, end]) => first <= one && one < end))).toBe(true);
			expect(runs.every(([first, end], at) => first < end && (at === 0 || first >= (runs[at - 1]?.[1] ?? 0) + gap))).toBe(true);
			expect(runs.every(([first, end]) => ordinals.includes(first) && ordinals.includes(end - 1))).toBe(true);
		}
	});

	it('leave what was given as it was', () => {
		const ordinals = [9, 3, 4];
		expect(runsOf(ordinals, 1)).toEqual([[3, 5], [9, 10]]);
		expect(ordinals).toEqual([9, 3, 4]);
	});
});

it('goes from sections to seats without a jump', () => {
	expect([nearOf(1), nearOf(20)]).toEqual([0, 1]);
	for (let px = 1; px < 8; px += 0.1) expect(nearOf(px + 0.1)).toBeGreaterThanOrEqual(nearOf(px));
});
