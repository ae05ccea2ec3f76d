import { describe, expect, it } from 'vitest';
import { columnsOf, extended, joined, pointsOf, totalOf, type Point } from './series.ts';

const point = (at: number, sold: number, held = 0, blocked = 0): Point => ({ at, sold, held, blocked });

describe('how full it was', () => {
	it('is read from the minutes that the server wrote down', () => {
		const minutes = [{ taken_at: '2027-03-12T08:00:00Z', available: 9, sold: 1, held: 2, blocked: 3 }];
		expect(pointsOf(minutes)).toEqual([point(Date.parse('2027-03-12T08:00:00Z') / 1000, 1, 2, 3)]);
	});

	it('goes on with what is seen live, and says nothing twice', () => {
		const read = [point(100, 5, 2)];
		expect(extended(read, 160, { sold: 5, held: 2, blocked: 0 })).toBe(read);
		const on = extended(read, 160, { sold: 5, held: 3, blocked: 0 });
		expect(on).toEqual([point(100, 5, 2), point(160, 5, 3)]);
		expect(extended([], 7, { sold: 1, held: 0, blocked: 0 })).toEqual([point(7, 1)]);
	});

	it('makes one point of what happens in the same moment', () => {
		const on = extended([point(100, 5), point(160, 5, 3)], 163, { sold: 6, held: 2, blocked: 0 });
		expect(on).toEqual([point(100, 5), point(160, 6, 2)]);
		expect(extended([point(100, 5)], 101, { sold: 6, held: 0, blocked: 0 })).toEqual([point(100, 5), point(101, 6)]);
		expect(extended(on, 165, { sold: 7, held: 1, blocked: 0 })).toHaveLength(3);
	});

	it('forgets the oldest when there is too much', () => {
		let points: readonly Point[] = [];
		for (let at = 0; at < 3010; at++) points = extended(points, at * 10, { sold: at, held: 0, blocked: 0 });
		expect([points.length, points[0]?.sold, points.at(-1)?.sold]).toEqual([3000, 10, 3009]);
	});

	it('keeps what was seen after what is read again', () => {
		expect(joined([point(60, 1), point(120, 2)], [point(100, 9), point(130, 3)])).toEqual([point(60, 1), point(120, 2), point(130, 3)]);
		expect(joined([], [point(130, 3)])).toEqual([point(130, 3)]);
	});
});

describe('the columns of the chart', () => {
	const points = [point(10, 1, 4), point(50, 2, 5), point(90, 3, 6)];

	it('begin with what was so then, and end with what is so now', () => {
		expect(columnsOf(points, 20, 100)).toEqual([
			[20, 50, 90, 100],
			[1, 2, 3, 3],
			[4, 5, 6, 6],
		]);
	});

	it('begin with the first change where nothing was before', () => {
		expect(columnsOf(points, 0, 90)[0]).toEqual([10, 50, 90]);
		expect(columnsOf([], 0, 90)).toEqual([[], [], []]);
		expect(columnsOf(points, 95, 100)).toEqual([
			[95, 100],
			[3, 3],
			[6, 6],
		]);
	});
});

it('adds zones up', () => {
	const zone = { zone_id: 'a', total: 10, available: 4, held: 3, sold: 2, blocked: 1 };
	expect(totalOf([zone, { ...zone, zone_id: 'b', sold: 0, available: 6 }])).toEqual({ total: 20, available: 10, held: 6, sold: 2, blocked: 2 });
	expect(totalOf([])).toEqual({ total: 0, available: 0, held: 0, sold: 0, blocked: 0 });
});
