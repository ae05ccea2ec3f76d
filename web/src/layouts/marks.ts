// What two versions of a layout have differently, seat by seat, to be marked on a plan. Seats are told by their serials,
// which a seat keeps from version to version.
import type { Geometry } from './geometry.ts';

export interface Marks {
	/** By ordinal of the later version. */
	readonly added: readonly number[];
	/** Another label, row, zone or category. */
	readonly changed: readonly number[];
	/** From where a seat was to where it is. */
	readonly moved: readonly { readonly ordinal: number; readonly x: number; readonly y: number }[];
	/** Where seats were that are gone. */
	readonly removed: readonly { readonly x: number; readonly y: number }[];
}

export function marksOf(before: Geometry, after: Geometry): Marks {
	const added: number[] = [];
	const changed: number[] = [];
	const moved: { ordinal: number; x: number; y: number }[] = [];
	for (let ordinal = 0; ordinal < after.seatCount; ordinal++) {
		const old = before.ordinalOfSerial(after.serials[ordinal] as number);
		if (old === null) {
			added.push(ordinal);
			continue;
		}
		const [x, y] = [before.x[old] as number, before.y[old] as number];
		if (x !== after.x[ordinal] || y !== after.y[ordinal]) moved.push({ ordinal, x, y });
		if (differs(before, old, after, ordinal)) changed.push(ordinal);
	}
	const removed: { x: number; y: number }[] = [];
	for (let ordinal = 0; ordinal < before.seatCount; ordinal++) {
		if (after.ordinalOfSerial(before.serials[ordinal] as number) === null) {
			removed.push({ x: before.x[ordinal] as number, y: before.y[ordinal] as number });
		}
	}
	return { added, changed, moved, removed };
}

function differs(before: Geometry, old: number, after: Geometry, now: number): boolean {
	const zone = (geometry: Geometry, ordinal: number) => geometry.zones[geometry.zoneOf[ordinal] as number]?.zone_id;
	const row = (geometry: Geometry, ordinal: number) => geometry.rowLabel(geometry.rowOf[ordinal] as number);
	return (
		before.category[old] !== after.category[now] ||
		before.label(old) !== after.label(now) ||
		row(before, old) !== row(after, now) ||
		zone(before, old) !== zone(after, now)
	);
}
