// The outline of a section, and of the part of it that is still free. A section of rows is a band that is bent as its rows
// are; where rows do not lie one behind the other (tables, loose seats) it is what a rubber band around them would hold.
import type { Geometry, Point } from '../layouts/geometry.ts';
import type { Scene } from '../layouts/scene.ts';
import type { Box } from '../layouts/view.ts';

/** Points along a row; enough for the tightest bend. */
const SAMPLES = 9;
/** A band that covers so little or so much of its hull is none: rows cross each other or lie apart. */
const BAND_SHARE = [0.45, 1.02] as const;
/** Rows farther apart than that many of the usual steps leave a hole that a band would paint over. */
const GAP_STEPS = 6;
/** How many margins a row may end beside the straight side of its section. */
const EVEN_STEPS = 4;

export interface Outline {
	readonly whole: readonly Point[];
	readonly middle: Point;
	readonly box: Box;
	/** From the front, so much of it: 0 is nothing, 1 all. */
	part(from: number, to: number): readonly Point[];
	/** Where words about that part stand. */
	middleOf(from: number, to: number): Point;
}

/** Of the rows from `first` to `end`; null without seats. */
export function outlineOf(scene: Scene, rows: readonly number[], focus: Point | null): Outline | null {
	const { geometry } = scene;
	const lines = rows.map((row) => sampled(geometry, row)).filter((line) => line.length > 0);
	const zone = geometry.rowZone[rows[0] ?? 0] ?? 0;
	const margin = (scene.seatCm[zone] ?? 45) * 0.68;
	if (lines.length === 0) return null;
	const hull = widened(hullOf(lines.flat()), margin);
	if (rows.some((row) => scene.isTable[row])) return blobOf(hull);
	const band = bandOf(lines, margin, focus);
	const share = areaOf(band.whole) / Math.max(1, areaOf(hull));
	return share < BAND_SHARE[0] || share > BAND_SHARE[1] || hasHole(lines) ? blobOf(hull) : band;
}

function sampled(geometry: Geometry, row: number): Point[] {
	const [first, last] = [geometry.rowStarts[row] as number, (geometry.rowStarts[row + 1] as number) - 1];
	if (last < first) return [];
	return Array.from({ length: SAMPLES }, (_, at) => {
		const place = first + ((last - first) * at) / (SAMPLES - 1);
		const [from, to] = [Math.floor(place), Math.ceil(place)];
		return between(
			[geometry.x[from] as number, geometry.y[from] as number],
			[geometry.x[to] as number, geometry.y[to] as number],
			place - from,
		);
	});
}

const middlePoint = (line: readonly Point[]) => line[SAMPLES >> 1] as Point;

function hasHole(lines: readonly (readonly Point[])[]): boolean {
	const steps = lines.slice(1).map((line, at) => away(middlePoint(line), middlePoint(lines[at] as Point[])));
	const usual = [...steps].sort((one, other) => one - other)[steps.length >> 1] ?? 0;
	return steps.some((step) => step > usual * GAP_STEPS);
}

function bandOf(rows: readonly (readonly Point[])[], margin: number, focus: Point | null): Outline {
	const isBackwards =
		focus !== null && away(middlePoint(rows.at(-1) as Point[]), focus) < away(middlePoint(rows[0] as Point[]), focus);
	const ordered = isBackwards ? rows.toReversed() : rows;
	const lines = ordered.map((line) => longer(line, margin));
	const [front, back] = [lines[0] as Point[], lines.at(-1) as Point[]];
	const behind = lines[1] ?? front.map((_, at) => aside(front, at));
	const before = lines.at(-2) ?? back.map((_, at) => mirrored(aside(back, at), back[at] as Point));
	const grid = evened([
		front.map((point, at) => pushed(point, behind[at] as Point, margin)),
		...lines.slice(1, -1),
		back.map((point, at) => pushed(point, before[at] as Point, margin)),
	], margin);
	const lineAt = (share: number): readonly Point[] => {
		const place = Math.min(1, Math.max(0, share)) * (grid.length - 1);
		const [from, to] = [grid[Math.floor(place)] as Point[], grid[Math.ceil(place)] as Point[]];
		return from.map((point, at) => between(point, to[at] as Point, place % 1));
	};
	const part = (from: number, to: number): readonly Point[] => {
		const inner = grid.filter((_, at) => at > from * (grid.length - 1) && at < to * (grid.length - 1));
		return [
			...lineAt(from),
			...inner.map((line) => line[SAMPLES - 1] as Point),
			...lineAt(to).toReversed(),
			...inner.map((line) => line[0] as Point).reverse(),
		];
	};
	const whole = part(0, 1);
	return {
		whole,
		middle: middlePoint(lineAt(0.5)),
		box: boxAround(whole),
		part,
		middleOf: (from, to) => middlePoint(lineAt((from + to) / 2)),
	};
}

/** Rows that end a seat sooner or later than their neighbours do not make a saw of a side that is straight as a whole. */
function evened(grid: Point[][], margin: number): Point[][] {
	const [front, back] = [grid[0] as Point[], grid.at(-1) as Point[]];
	const straight = (side: number, row: number) => between(front[side] as Point, back[side] as Point, row / (grid.length - 1));
	const isStraight = [0, SAMPLES - 1].map((side) => grid.every((line, row) => away(line[side] as Point, straight(side, row)) < margin * EVEN_STEPS));
	return grid.map((line, row) => line.map((point, at) => (at === 0 && isStraight[0] ? straight(0, row) : at === SAMPLES - 1 && isStraight[1] ? straight(at, row) : point)));
}

/** What has no front is free from the middle outwards. */
function blobOf(hull: readonly Point[]): Outline {
	const box = boxAround(hull);
	const middle: Point = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
	return {
		whole: hull,
		middle,
		box,
		part: (from, to) => (from > 0 ? hull : hull.map((point) => between(middle, point, Math.sqrt(to)))),
		middleOf: () => middle,
	};
}

/** Whether a box around a place, so wide and so high to each side, lies within the outline. */
export function isBoxInside(outline: readonly Point[], [x, y]: Point, across: number, down: number): boolean {
	const corners: Point[] = [[x - across, y - down], [x + across, y - down], [x + across, y + down], [x - across, y + down]];
	return corners.every((corner) => isInside(outline, corner));
}

export function isInside(outline: readonly Point[], [x, y]: Point): boolean {
	let inside = false;
	outline.forEach(([fromX, fromY], at) => {
		const [toX, toY] = outline[(at + 1) % outline.length] as Point;
		if (fromY > y !== toY > y && x < fromX + ((y - fromY) / (toY - fromY)) * (toX - fromX)) inside = !inside;
	});
	return inside;
}

export function boxAround(points: readonly Point[]): Box {
	let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
	for (const [x, y] of points) {
		[left, right] = [Math.min(left, x), Math.max(right, x)];
		[top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
	}
	return { left, top, right, bottom };
}

function between(from: Point, to: Point, share: number): Point {
	return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
}

function away(one: Point, other: Point): number {
	return Math.hypot(one[0] - other[0], one[1] - other[1]);
}

/** A point moved away from another. */
function pushed(point: Point, from: Point, by: number): Point {
	const distance = away(point, from);
	return distance === 0 ? point : between(point, from, -by / distance);
}

/** A row as long as its seats are wide. */
function longer(line: readonly Point[], by: number): Point[] {
	const [first, second] = [line[0] as Point, line[1] as Point];
	const [last, before] = [line.at(-1) as Point, line.at(-2) as Point];
	if (away(first, last) === 0) {
		return line.map((point, at) => [point[0] + by * ((2 * at) / (SAMPLES - 1) - 1), point[1]]);
	}
	return [pushed(first, second, by), ...line.slice(1, -1), pushed(last, before, by)];
}

/** A point beside a single row, as if another row lay behind it. */
function aside(line: readonly Point[], at: number): Point {
	const [from, to] = [line[Math.max(0, at - 1)] as Point, line[Math.min(line.length - 1, at + 1)] as Point];
	const here = line[at] as Point;
	return [here[0] - (to[1] - from[1]), here[1] + (to[0] - from[0])];
}

function mirrored(point: Point, about: Point): Point {
	return [2 * about[0] - point[0], 2 * about[1] - point[1]];
}

function areaOf(outline: readonly Point[]): number {
	let twice = 0;
	outline.forEach(([x, y], at) => {
		const [nextX, nextY] = outline[(at + 1) % outline.length] as Point;
		twice += x * nextY - nextX * y;
	});
	return Math.abs(twice) / 2;
}

/** The smallest convex outline of points, by Andrew's chains. */
function hullOf(points: readonly Point[]): Point[] {
	const sorted = [...points].sort((one, other) => one[0] - other[0] || one[1] - other[1]);
	const chain = (along: readonly Point[]) => {
		const kept: Point[] = [];
		for (const point of along) {
			while (kept.length > 1 && turn(kept.at(-2) as Point, kept.at(-1) as Point, point) <= 0) kept.pop();
			kept.push(point);
		}
		return kept.slice(0, -1);
	};
	const hull = [...chain(sorted), ...chain(sorted.toReversed())];
	return hull.length > 0 ? hull : sorted.slice(0, 1);
}

function turn(from: Point, over: Point, to: Point): number {
	return (over[0] - from[0]) * (to[1] - from[1]) - (over[1] - from[1]) * (to[0] - from[0]);
}

/** A hull with a margin: what circles around its corners would be held by. */
function widened(hull: readonly Point[], margin: number): Point[] {
	const around = Array.from({ length: 8 }, (_, at) => [Math.cos((at * Math.PI) / 4) * margin, Math.sin((at * Math.PI) / 4) * margin] as const);
	return hullOf(hull.flatMap(([x, y]) => around.map(([across, down]): Point => [x + across, y + down])));
}
