import { describe, expect, it } from 'vitest';
import { Hall, NO_NUMBER, type Arrow } from './hall.ts';
import { diceOf, makeGeometry } from './make.ts';

const BLOCKS = [
	{ name: 'Left', rows: 3, seats: 4, at: [-400, 200] },
	{ name: 'Right', rows: 3, seats: 4, at: [100, 200] },
	// Looks to the left: its rows run down the page.
	{ name: 'Side', rows: 2, seats: 5, at: [600, 150], along: [0, 50], behind: [90, 0] },
] as const;
const hall = new Hall(makeGeometry(BLOCKS));
const ARROWS: readonly Arrow[] = ['left', 'right', 'up', 'down'];

describe('what is under a finger', () => {
	it('is the nearest seat, as looking at every seat would find it', () => {
		const dice = diceOf(3);
		for (let time = 0; time < 200; time++) {
			const [x, y] = [dice(1400) - 500, dice(600)];
			const distances = Array.from({ length: hall.geometry.seatCount }, (_, seat) => Math.hypot(hall.place(seat)[0] - x, hall.place(seat)[1] - y));
			const found = hall.seatAt(x, y, 60);
			const least = Math.min(...distances);

			if (found === null) expect(least).toBeGreaterThan(60);
			else expect(distances[found]).toBe(least);
		}
	});

	it('is no farther than the reach', () => {
		expect(hall.seatAt(-400, 200 - 30, 31)).toBe(0);
		expect(hall.seatAt(-400, 200 - 30, 29)).toBeNull();
	});

	it('is a section from afar: every seat lies in its own', () => {
		for (let seat = 0; seat < hall.geometry.seatCount; seat++) {
			expect(hall.sectionAt(...hall.place(seat))?.zone).toBe(hall.geometry.zoneOf[seat]);
		}
	});

	it('is nothing in an empty hall', () => {
		expect(new Hall(makeGeometry([])).seatAt(0, 0, 1e6)).toBeNull();
	});
});

describe('arrow keys', () => {
	it('go along a row, and over the aisle at its end', () => {
		expect([hall.step(0, 'right'), hall.step(1, 'left'), hall.step(3, 'right')]).toEqual([1, 0, 12]);
	});

	it('go to the seat behind and before', () => {
		expect([hall.step(1, 'down'), hall.step(5, 'up')]).toEqual([5, 1]);
	});

	it('mean the screen where rows run down it: down is along, right is behind', () => {
		const first = 24;
		expect([hall.step(first, 'down'), hall.step(first, 'right')]).toEqual([first + 1, first + 5]);
	});

	it('never lead the other way, and stay where nothing is', () => {
		const ways = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] } as const;
		for (let seat = 0; seat < hall.geometry.seatCount; seat++) {
			for (const arrow of ARROWS) {
				const [from, to] = [hall.place(seat), hall.place(hall.step(seat, arrow))];
				expect((to[0] - from[0]) * ways[arrow][0] + (to[1] - from[1]) * ways[arrow][1]).toBeGreaterThanOrEqual(0);
			}
		}
		expect(hall.step(0, 'left')).toBe(0);
	});

	it('reach every seat from any seat', () => {
		const reached = new Set([0]);
		for (const seat of reached) for (const arrow of ARROWS) reached.add(hall.step(seat, arrow));

		expect(reached.size).toBe(hall.geometry.seatCount);
	});

	it('go from section to section, and reach them all', () => {
		const reached = new Set([hall.sections[0]]);
		for (const section of reached) for (const arrow of ARROWS) if (section) reached.add(hall.stepSection(section, arrow));

		expect(reached.size).toBe(3);
	});
});

it('knows plain numbers from other labels', () => {
	const mixed = new Hall(makeGeometry([{ name: 'A', rows: 1, seats: 2, at: [0, 0] }, { name: 'B', rows: 1, seats: 1, at: [0, 90], prefix: 'W' }]));

	expect([...mixed.numbers]).toEqual([1, 2, NO_NUMBER]);
	expect([mixed.isPlain, hall.isPlain]).toEqual([false, true]);
});

it('calls numbered sections by their number', () => {
	const blocks = Array.from({ length: 8 }, (_, at) => ({ name: `Section ${101 + at}`, rows: 1, seats: 1, at: [at * 100, 0] as const }));

	expect(new Hall(makeGeometry(blocks)).sections.map(({ short }) => short)).toEqual(['101', '102', '103', '104', '105', '106', '107', '108']);
	expect(hall.sections[0]?.short).toBe('Left');
});
