import { describe, expect, it } from 'vitest';
import small from './fixtures/small.json';
import { decode, type Zone } from './geometry.ts';
import { marksOf } from './marks.ts';
import { Scene, tintsOf } from './scene.ts';

const geometry = decode(small.document);
const zone = (name: string, zone_type: Zone['zone_type'] = 'reserved_seating') => ({ name, zone_type }) as Zone;

describe('a scene', () => {
	const scene = new Scene(geometry);

	it('turns seats to what their row looks at', () => {
		expect([...scene.angle.slice(0, 4)]).toEqual([0, 0, 0, 0]);
		expect(scene.angle[10]).toBeCloseTo(Math.atan2(1, 50));
	});

	it('knows how large seats are by how far apart they stand', () => {
		expect(scene.seatCm[0]).toBeCloseTo(41, 0);
	});

	it('has a floor around all seats, and everything in its box', () => {
		const { left, top, right, bottom } = scene.box;

		expect(scene.floor).toHaveLength(72);
		for (let seat = 0; seat < geometry.seatCount; seat++) {
			expect(geometry.x[seat]).toBeGreaterThan(left);
			expect(geometry.x[seat]).toBeLessThan(right);
			expect(geometry.y[seat]).toBeLessThan(bottom);
		}
		expect(top).toBeLessThanOrEqual(0);
	});

	it('finds the seat that is pointed at, and none beside it', () => {
		expect(scene.seatAt(103, 98)).toBe(1);
		expect(scene.seatAt(75, 150)).toBeNull();
	});

	it('stands an empty hall', () => {
		const empty = decode({ ...small.document, seat_count: 0, zones: [], rows: { zone: [], name: [], count: [], labels: [] }, serials: [], x: [], y: [], categories: {}, breaks: [], companions: [], groups: [], shapes: [] });

		expect(new Scene(empty).box.right).toBeGreaterThan(0);
	});
});

describe('the colours of zones', () => {
	it('follow their order, and members have their own', () => {
		expect(tintsOf([zone('A'), zone('V', 'vip_reserved'), zone('B'), zone('C', 'ga_standing')])).toEqual([0, 'vip', 1, 2]);
	});

	it('are shared by the sections of a tier', () => {
		const names = ['Section 101', 'Section 102', 'Section 201', 'Section 202', 'Section 301'];

		expect(tintsOf(names.map((name) => zone(name)))).toEqual([0, 0, 1, 1, 2]);
	});
});

describe('the marks of a comparison', () => {
	const { document } = small;

	it('are none between a version and itself', () => {
		expect(marksOf(geometry, decode(document))).toEqual({ added: [], changed: [], moved: [], removed: [] });
	});

	it('tell seats that are new, gone, moved and renamed by their serials', () => {
		// The first seat is another one, the second stands ten to the right, row B is called C.
		const [first, ...runs] = document.serials as [number, number][];
		const [start = 0, length = 0] = first ?? [];
		const after = decode({
			...document,
			serials: [[99, 1], [start + 1, length - 1], ...runs],
			x: document.x.map((step, at) => (at === 1 ? step + 10 : at === 2 ? step - 10 : step)),
			row_names: ['A', 'C'],
		});

		expect(marksOf(geometry, after)).toEqual({
			added: [0],
			changed: [4, 5, 6, 7, 8, 9],
			moved: [{ ordinal: 1, x: 100, y: 100 }],
			removed: [{ x: 50, y: 100 }],
		});
	});
});
