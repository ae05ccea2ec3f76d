import { describe, expect, it } from 'vitest';
import { fit, isWhole, kept, moved, zoomed, type View } from './view.ts';

const BOX = { left: -1_000, top: 0, right: 1_000, bottom: 500 };
const SIZE = { width: 1_040, height: 640 };
const whole = fit(BOX, SIZE);
const onScreen = (view: View, x: number, y: number) => [
	(x - view.x) * view.scale + SIZE.width / 2,
	(y - view.y) * view.scale + SIZE.height / 2,
];

describe('a view', () => {
	it('shows the whole plan in the middle', () => {
		expect(whole).toEqual({ x: 0, y: 250, scale: 0.5 });
		expect(onScreen(whole, -1_000, 250)).toEqual([20, 320]);
	});

	it('zooms about the point that is pointed at', () => {
		const before = onScreen(whole, 400, 100);
		const near = zoomed(whole, 4, { x: before[0] ?? 0, y: before[1] ?? 0 }, SIZE);

		expect(near.scale).toBe(2);
		expect(onScreen(near, 400, 100)).toEqual(before);
	});

	it('follows the hand', () => {
		const near = zoomed(whole, 2, { x: 520, y: 320 }, SIZE);
		const before = onScreen(near, 10, 10);

		expect(onScreen(moved(near, 30, -7), 10, 10)).toEqual([(before[0] ?? 0) + 30, (before[1] ?? 0) - 7]);
	});

	it('is kept within the plan, neither too small nor too large', () => {
		expect(kept({ x: 900, y: 0, scale: 0.01 }, BOX, SIZE, 3)).toEqual(whole);
		expect(kept({ x: 9_000, y: -9_000, scale: 99 }, BOX, SIZE, 3)).toEqual({ x: 1_000, y: 0, scale: 3 });
		expect(isWhole(whole, BOX, SIZE)).toBe(true);
		expect(isWhole({ ...whole, scale: 1 }, BOX, SIZE)).toBe(false);
	});

	it('does not fail without room or without a plan', () => {
		expect(fit({ left: 5, top: 5, right: 5, bottom: 5 }, { width: 0, height: 0 }).scale).toBe(1);
	});
});
