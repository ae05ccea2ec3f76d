import { describe, expect, it } from 'vitest';
import { Hall } from './hall.ts';
import { frontNames, railLetters, RAIL_PX, rowLetters, sectionLabels } from './labels.ts';
import { makeGeometry } from './make.ts';
import { isInside } from './outlines.ts';

const hall = new Hall(
	makeGeometry(Array.from({ length: 6 }, (_, at) => ({ name: `Section ${101 + at}`, rows: 8, seats: 10, at: [at * 700, 200] as const }))),
);
const SIZE = { width: 1000, height: 600 };
const measure = (words: string, px: number) => words.length * px * 0.6;
const labels = (k: number, share = 0.3) => sectionLabels(hall, { k, x: 20, y: 20 }, SIZE, () => share, () => '1 234', measure);

describe('the names of sections', () => {
	it('stand inside their section, with what is left where there is room', () => {
		for (const k of [0.05, 0.1, 0.2, 0.23]) {
			for (const { zone, x, y, px, name, count } of labels(k)) {
				const half = Math.max(measure(name, px), count === null ? 0 : measure(count, px * 0.9)) / 2;
				const outline = hall.sections[zone]?.outline?.whole.map(([left, top]) => [left * k + 20, top * k + 20] as const) ?? [];
				for (const side of [-1, 1]) expect(isInside(outline, [x + side * half, y])).toBe(true);
			}
		}
		expect(labels(0.2).map(({ count }) => count)).toEqual(['1 234', '1 234', '1 234', '1 234', '1 234', '1 234']);
	});

	it('have one size in a view, and are left out where they could not be read', () => {
		expect(new Set(labels(0.2).map(({ px }) => px)).size).toBe(1);
		expect(labels(0.01)).toEqual([]);
	});

	it('are left out where only a few of many could be read', () => {
		const sections = (wide: number) => Array.from({ length: 30 }, (_, at) => ({ name: `Section ${101 + at}`, rows: 8, seats: at < wide ? 12 : 2, at: [at * 700, 200] as const }));
		const named = (wide: number) => {
			const { length } = sectionLabels(new Hall(makeGeometry(sections(wide))), { k: 0.04, x: 20, y: 20 }, SIZE, () => 0, () => '', measure);
			return length;
		};
		expect([named(30), named(15), named(5)]).toEqual([30, 15, 0]);
	});

	it('stand in the larger part, and say so', () => {
		expect(labels(0.2, 0.9).every(({ isOnSolid }) => isOnSolid)).toBe(true);
		expect(labels(0.2, 0.2).some(({ isOnSolid }) => isOnSolid)).toBe(false);
		expect((labels(0.2, 0.2)[0]?.y ?? 0) > (labels(0.2, 0.9)[0]?.y ?? 0)).toBe(true);
	});

	it('are not written for what is outside the screen', () => {
		expect(sectionLabels(hall, { k: 0.2, x: -5000, y: 0 }, SIZE, () => 0, () => '', measure)).toEqual([]);
	});

	it('stand before the first row where seats are seen', () => {
		expect(frontNames(hall, { k: 0.3, x: 0, y: 0 }, SIZE)).toEqual([]);
		const [first] = frontNames(hall, { k: 0.6, x: 0, y: 0 }, SIZE);
		expect(first?.label).toBe('101');
		expect(first?.y).toBeLessThan(120);
	});
});

describe('the letters of rows', () => {
	it('stand at both ends, where they can be read', () => {
		const letters = rowLetters(hall, { k: 0.5, x: 40, y: 0 }, SIZE);
		expect(letters.filter(({ x }) => x < 60).map(({ label }) => label)).toEqual(['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H']);
		expect(rowLetters(hall, { k: 0.05, x: 40, y: 0 }, SIZE)).toEqual([]);
	});

	it('never stand on one another', () => {
		for (const k of [0.25, 0.3, 0.4, 0.6]) {
			const letters = rowLetters(hall, { k, x: 0, y: 0 }, SIZE);
			letters.forEach((one, at) => {
				for (const other of letters.slice(at + 1)) expect(Math.abs(one.x - other.x) > 7 || Math.abs(one.y - other.y) > 0).toBe(true);
			});
		}
	});

	it('do not stay at the edge where a row bends away from it', () => {
		const slanted = new Hall(makeGeometry([{ name: 'Bent', rows: 4, seats: 30, at: [0, 200], along: [50, 8] }]));
		expect(railLetters(slanted, { k: 0.6, x: -100, y: 0 }, SIZE)).toEqual([]);
	});

	it('stay at the edge for rows that begin outside it', () => {
		const rail = railLetters(hall, { k: 0.6, x: -100, y: 0 }, SIZE);
		expect(rail.map(({ label }) => label)).toEqual(['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H']);
		expect(rail.every(({ x }) => x === RAIL_PX / 2)).toBe(true);
		expect(railLetters(hall, { k: 0.6, x: 100, y: 0 }, SIZE)).toEqual([]);
	});
});
