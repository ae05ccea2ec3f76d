import { describe, expect, it } from 'vitest';
import { Scene } from '../layouts/scene.ts';
import { makeGeometry } from './make.ts';
import { isBoxInside, isInside, outlineOf, type Outline } from './outlines.ts';

const scene = new Scene(
	makeGeometry([
		{ name: 'Block', rows: 10, seats: 10, at: [-225, 200] },
		{ name: 'One row', rows: 1, seats: 6, at: [-125, 1500] },
		{ name: 'One seat', rows: 1, seats: 1, at: [900, 900] },
	]),
);
const rows = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at);
const area = (outline: readonly (readonly [number, number])[]) =>
	Math.abs(outline.reduce((sum, [x, y], at) => sum + x * (outline[(at + 1) % outline.length]?.[1] ?? 0) - (outline[(at + 1) % outline.length]?.[0] ?? 0) * y, 0)) / 2;

describe('the outline of a section', () => {
	const block = outlineOf(scene, rows(0, 10), [0, 0]) as Outline;

	it('holds its seats, whatever it is made of', () => {
		for (const [from, count] of [[0, 10], [10, 1], [11, 1]] as const) {
			const { whole } = outlineOf(scene, rows(from, count), [0, 0]) as Outline;
			const { rowStarts, x, y } = scene.geometry;
			for (let seat = rowStarts[from] as number; seat < (rowStarts[from + count] as number); seat++) expect(isInside(whole, [x[seat] as number, y[seat] as number])).toBe(true);
		}
	});

	it('is free from the front: the part grows with its share and never leaves the whole', () => {
		let before = 0;
		for (let share = 0.1; share <= 1; share += 0.1) {
			const part = block.part(0, share);
			expect(area(part)).toBeGreaterThan(before);
			before = area(part);
		}
		expect(area(block.part(0, 0.5)) / area(block.whole)).toBeCloseTo(0.5, 1);
		expect(Math.min(...block.part(0, 0.2).map(([, y]) => y))).toBeLessThan(200);
		expect(Math.max(...block.part(0, 0.2).map(([, y]) => y))).toBeLessThan(500);
	});

	it('has its front where the stage is, however rows are counted', () => {
		const seenFromBehind = outlineOf(scene, rows(0, 10), [0, 5000]) as Outline;
		expect(Math.min(...seenFromBehind.part(0, 0.2).map(([, y]) => y))).toBeGreaterThan(700);
	});

	it('has room for small words and none for large ones', () => {
		expect(isBoxInside(block.whole, block.middle, 200, 300)).toBe(true);
		expect(isBoxInside(block.whole, block.middle, 300, 10)).toBe(false);
	});
});
