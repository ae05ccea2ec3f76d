// Halls for specs: rows of seats as a document of the server would have them.
import { decode, type Geometry, type Zone } from '../layouts/geometry.ts';
import { pack } from './looks.ts';
import type { Counts, Snapshot } from './map.svelte.ts';
import type { OfferedZone } from './offer.ts';

export interface Block {
	readonly name: string;
	readonly rows: number;
	readonly seats: number;
	/** Where the first seat of the first row is. */
	readonly at: readonly [number, number];
	/** From seat to seat, and from row to row. */
	readonly along?: readonly [number, number];
	readonly behind?: readonly [number, number];
	readonly type?: Zone['zone_type'];
	readonly prefix?: string;
	/** Of one without seats: whether it has a place on the map. */
	readonly isDrawn?: boolean;
}

export const zoneId = (index: number) => `zone-${index}`;

export function makeGeometry(blocks: readonly Block[], more: { categories?: Record<string, number[]>; companions?: [number, number][] } = {}): Geometry {
	const rows = blocks.flatMap((block, zone) => Array.from({ length: block.rows }, (_, row) => ({ block, zone, row })));
	const seats = rows.flatMap(({ block, row }) =>
		Array.from({ length: block.seats }, (_, seat) => {
			const [along, behind] = [block.along ?? [50, 0], block.behind ?? [0, 90]];
			return [block.at[0] + seat * along[0] + row * behind[0], block.at[1] + seat * along[1] + row * behind[1]] as const;
		}),
	);
	const steps = (values: readonly number[]) => values.map((value, at) => value - (values[at - 1] ?? 0));
	let first = 0;
	return decode({
		format: 'voelgoed-geometry/1',
		layout_id: 'layout',
		version: 1,
		seat_count: seats.length,
		id_prefix: 'seat-',
		zones: blocks.map((block, index) => {
			const count = block.rows * block.seats;
			first += count;
			return { zone_id: zoneId(index), name: block.name, zone_type: block.type ?? 'reserved_seating', capacity: count, first: first - count, count, focal_point: [0, 0], outline: count || block.isDrawn === false ? [] : [[0, 0], [400, 0], [400, 200], [0, 200]] };
		}),
		shapes: [],
		groups: [],
		row_names: 'ABCDEFGHJKLMNPQRSTUVWXYZ'.split(''),
		rows: {
			zone: steps(rows.map(({ zone }) => zone)),
			name: rows.map(({ row }) => row),
			count: rows.map(({ block }) => block.seats),
			labels: rows.map(({ zone }) => zone),
		},
		label_patterns: blocks.map((block) => ({ ...(block.prefix ? { prefix: block.prefix } : {}), start: 1 })),
		serials: [[1, seats.length]],
		x: steps(seats.map(([x]) => x)),
		y: steps(seats.map(([, y]) => y)),
		categories: Object.fromEntries(Object.entries(more.categories ?? {}).map(([word, ordinals]) => [word, steps(ordinals)])),
		breaks: [],
		companions: more.companions ?? [],
	});
}

export function makeOffer(count: number, rands: readonly number[], over: Partial<OfferedZone> = {}): OfferedZone[] {
	return Array.from({ length: count }, (_, zone) => {
		const price = { amount_minor: (rands[zone] ?? 100) * 100, currency: 'ZAR' };
		return { zone_id: zoneId(zone), place: 'reserved', access_mode: 'public', is_enabled: true, prices: [{ category: 'standard', price }], from_price: price, ...over };
	});
}

export function makeSnapshot(statuses: readonly number[], over: Partial<Snapshot> = {}): Snapshot {
	return { epoch: 1, map_version: 1, seat_count: statuses.length, statuses: pack(statuses), zones: [], ...over };
}

export function makeCounts(zone: number, available: number, total: number, held = 0): Counts {
	return { zone_id: zoneId(zone), total, available, held, sold: total - available - held, blocked: 0 };
}

/** The same numbers for the same seed: mulberry32, as it is known. */
export function diceOf(seed: number): (sides: number) => number {
	let state = seed;
	return (sides) => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
	};
}
