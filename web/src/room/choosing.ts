// Which seats a click, a row and a frame take, and what is said of those that were chosen. Pure.
import type { Box } from '../layouts/view.ts';
import type { Hall } from '../map/hall.ts';
import { SOLD, STATUS, STATUSES, type Status } from '../map/looks.ts';

export type Reach = 'seat' | 'row' | 'box';

/** More at once are a zone, and zones are closed in the seating. */
export const CHOSEN_MAX = 5000;

export function rowOf(hall: Hall, seat: number): number[] {
	const [first, end] = hall.rowSeats(hall.geometry.rowOf[seat] as number);
	return Array.from({ length: end - first }, (_, at) => first + at);
}

/** Every seat in the frame that two seats span, both with it: what stands a little outside a straight line belongs to it. */
export function boxBetween(hall: Hall, one: number, other: number): Box {
	const [[x, y], [toX, toY]] = [hall.place(one), hall.place(other)];
	const reach = hall.seatCm / 2;
	return { left: Math.min(x, toX) - reach, top: Math.min(y, toY) - reach, right: Math.max(x, toX) + reach, bottom: Math.max(y, toY) + reach };
}

/** Chosen seats with some more; without them where all of them were chosen already. */
export function toggled(chosen: ReadonlySet<number>, seats: readonly number[]): ReadonlySet<number> {
	const next = new Set(chosen);
	if (seats.length > 0 && seats.every((seat) => chosen.has(seat))) for (const seat of seats) next.delete(seat);
	else for (const seat of seats) if (next.size < CHOSEN_MAX) next.add(seat);
	return next;
}

/** Of many at once only those that something can be done with: what is sold stays sold. */
export function unsold(looks: Uint8Array, seats: readonly number[]): number[] {
	return seats.filter((seat) => ((looks[seat] ?? 0) & STATUS) !== SOLD);
}

/** The seats by what they are now. */
export function byStatus(looks: Uint8Array, seats: Iterable<number>): Record<Status, number[]> {
	const found: Record<Status, number[]> = { available: [], held: [], sold: [], blocked: [] };
	for (const seat of seats) found[STATUSES[(looks[seat] ?? 0) & STATUS] as Status].push(seat);
	return found;
}
