import { describe, expect, it } from 'vitest';
import small from './fixtures/small.json';
import { CATEGORIES, COMPANION, decode, WHEELCHAIR } from './geometry.ts';

// Written by the server's own encoder from the small hall of its tests, beside every seat as the server knows it.
const geometry = decode(small.document);

describe('a geometry document', () => {
	it('gives every seat its id, zone, row, label, place and category', () => {
		const seats = Array.from({ length: geometry.seatCount }, (_, ordinal) => ({
			id: geometry.seatId(ordinal),
			zone: geometry.zones[geometry.zoneOf[ordinal] ?? -1]?.name,
			row: geometry.rowLabel(geometry.rowOf[ordinal] ?? -1),
			label: geometry.label(ordinal),
			x: geometry.x[ordinal],
			y: geometry.y[ordinal],
			category: CATEGORIES[geometry.category[ordinal] ?? -1],
		}));

		expect(seats).toEqual(small.seats.map(({ segment: _, ...seat }) => seat));
	});

	it('finds a seat by its id, and no seat of another layout', () => {
		small.seats.forEach(({ id }, ordinal) => expect(geometry.ordinalOf(id)).toBe(ordinal));
		expect(geometry.ordinalOf(`02933b5c${small.seats[0]?.id.slice(8)}`)).toBeNull();
		expect(geometry.ordinalOf(`${small.document.id_prefix}0000ffff`)).toBeNull();
		expect(geometry.ordinalOf('')).toBeNull();
	});

	it('knows where nobody sits to the left', () => {
		const expected = small.seats.map((seat, at) => {
			const left = small.seats[at - 1];
			return left?.row === seat.row && left.zone === seat.zone && left.segment === seat.segment ? 0 : 1;
		});

		expect([...geometry.isFirst]).toEqual(expected);
	});

	it('ties companions to their wheelchair space', () => {
		expect([...geometry.companions]).toEqual([5, 4]);
		expect(geometry.category[5]).toBe(COMPANION);
		expect(geometry.category[4]).toBe(WHEELCHAIR);
	});

	it('keeps rows, zones without seats, shapes and groups', () => {
		expect([...geometry.rowStarts]).toEqual([0, 4, 10, 13]);
		expect(geometry.zones.map((zone) => [zone.name, zone.capacity, zone.count])).toEqual([
			['Stalls', 10, 10],
			['Members', 3, 3],
			['Pit', 300, 0],
		]);
		expect(geometry.shapes[0]?.kind).toBe('stage');
		expect(geometry.groups[0]?.seats).toEqual([4, 5]);
	});

	it('is refused in another format', () => {
		expect(() => decode({ ...small.document, format: 'voelgoed-geometry/2' })).toThrow('voelgoed-geometry/1');
		expect(() => decode(null)).toThrow();
	});

	it('unfolds a hundred thousand seats in well under 100 ms', () => {
		const [rows, seats] = [2_000, 50];
		const each = <T>(count: number, value: (at: number) => T) => Array.from({ length: count }, (_, at) => value(at));
		const large = {
			...small.document,
			seat_count: rows * seats,
			row_names: each(rows, String),
			rows: {
				zone: each(rows, (row) => (row === 1_000 ? 1 : 0)),
				name: each(rows, (row) => row),
				count: each(rows, () => seats),
				labels: each(rows, () => 0),
			},
			label_patterns: [{ start: 1 }],
			serials: [[1, rows * seats]],
			x: each(rows * seats, () => 1),
			y: each(rows * seats, () => 2),
			categories: {},
			breaks: [],
			companions: [],
		};
		const begin = performance.now();
		const decoded = decode(large);
		const took = performance.now() - begin;

		expect(took).toBeLessThan(100);
		expect([decoded.x.at(-1), decoded.zoneOf.at(-1), decoded.label(99_999)]).toEqual([100_000, 1, '50']);
	});
});
