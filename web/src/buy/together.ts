// Seats beside each other: which ones somebody gets who wants several and taps on one of them.
import type { SeatMapState } from '../map/map.svelte.ts';

/** So many seats with the tapped one among them, nobody between and no aisle; null where they are not free. */
export function together(map: SeatMapState, seat: number, wanted: number): number[] | null {
	const [start, end] = runOf(map, seat);
	if (end - start < wanted) return null;
	const first = Math.max(start, seat - wanted + 1);
	const last = Math.min(seat, end - wanted);
	const middle = seat - (wanted - 1) / 2;
	// As near round the tapped seat as can be; but a free seat is left alone beside them only where it must be.
	const lonely = (at: number) => Number(at - start === 1) + Number(end - (at + wanted) === 1);
	const places = Array.from({ length: last - first + 1 }, (_, at) => first + at);
	places.sort((one, other) => lonely(one) - lonely(other) || Math.abs(one - middle) - Math.abs(other - middle));
	const [best] = places as [number];
	return Array.from({ length: wanted }, (_, at) => best + at);
}

/** The free seats round a seat, up to an aisle or to somebody: the first, and the one after the last. */
function runOf(map: SeatMapState, seat: number): [number, number] {
	const { rowOf, isFirst } = map.hall.geometry;
	const isFree = (at: number) => rowOf[at] === rowOf[seat] && map.answer(at) === 'free';
	let [start, end] = [seat, seat + 1];
	while (!isFirst[start] && isFree(start - 1)) start--;
	while (end < map.looks.length && !isFirst[end] && isFree(end)) end++;
	return [start, end];
}
