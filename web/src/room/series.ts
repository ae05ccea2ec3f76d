// How full an event was over time: what the server wrote down minute by minute, and after it what is seen live. Pure.
import type { Counts } from '../map/map.svelte.ts';

/** How full it was from that moment on, until the next point. Moments are seconds since 1970, as the chart wants them. */
export interface Point {
	readonly at: number;
	readonly sold: number;
	readonly held: number;
	readonly blocked: number;
}
export interface Minute extends Omit<Point, 'at'> {
	readonly taken_at: string;
}

/** What happens within that time is one point. */
const LIVE_S = 5;
const POINTS_MAX = 3000;

export function pointsOf(minutes: readonly Minute[]): Point[] {
	return minutes.map(({ taken_at, sold, held, blocked }) => ({ at: Date.parse(taken_at) / 1000, sold, held, blocked }));
}

/** The points with what is so now. A minute is written down at its end and named by its beginning: what is live is never before it. */
export function extended(points: readonly Point[], now: number, { sold, held, blocked }: Omit<Point, 'at'>): readonly Point[] {
	const last = points.at(-1);
	if (last && last.sold === sold && last.held === held && last.blocked === blocked) return points;
	// The first of all stays: without it nobody would know from where it rose.
	const isSame = last !== undefined && points.length > 1 && now - last.at < LIVE_S;
	const at = isSame ? last.at : now;
	const kept = isSame ? points.slice(0, -1) : points.slice(-(POINTS_MAX - 1));
	return [...kept, { at, sold, held, blocked }];
}

/** What was read again, and what was seen since its last point. */
export function joined(read: readonly Point[], seen: readonly Point[]): readonly Point[] {
	const end = read.at(-1)?.at ?? -Infinity;
	return [...read, ...seen.filter(({ at }) => at > end)];
}

/** Moments, sold and held between two moments: what was so at the first, every change, and what is so at the last. */
export function columnsOf(points: readonly Point[], from: number, to: number): [number[], number[], number[]] {
	const before = points.findLast(({ at }) => at <= from);
	const within = points.filter(({ at }) => at > from && at <= to);
	const shown = before ? [{ ...before, at: from }, ...within] : within;
	const last = shown.at(-1);
	if (last && last.at < to) shown.push({ ...last, at: to });
	return [shown.map(({ at }) => at), shown.map(({ sold }) => sold), shown.map(({ held }) => held)];
}

export function totalOf(zones: Iterable<Counts>): Omit<Counts, 'zone_id'> {
	const sum = { total: 0, available: 0, held: 0, sold: 0, blocked: 0 };
	for (const zone of zones) for (const part of Object.keys(sum) as (keyof typeof sum)[]) sum[part] += zone[part];
	return sum;
}
