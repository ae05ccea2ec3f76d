// Where words stand on the map, and which of them: only what can be read, never two on one another. Pure.
import type { Size } from '../layouts/view.ts';
import type { Hall } from './hall.ts';
import type { Transform } from './map.svelte.ts';
import { isBoxInside } from './outlines.ts';

export interface SectionLabel {
	readonly zone: number;
	readonly name: string;
	/** Null where there is only room for the name. */
	readonly count: string | null;
	readonly x: number;
	readonly y: number;
	readonly px: number;
	/** Whether it stands on the part that is free, in its full colour. */
	readonly isOnSolid: boolean;
}
export interface RowLetter {
	readonly label: string;
	readonly x: number;
	readonly y: number;
}
export interface FrontName extends RowLetter {
	/** Where its place is in the words: a section that looks aside is named to that side of it. */
	readonly align: 'left' | 'center' | 'right';
}

/** How wide words of a size are, in pixels. */
export type Measure = (words: string, px: number) => number;

/** Names have one size in a view: the largest that so many of them fit in. */
const NAME_PX = [14, 12.5, 11, 9.5, 8.5, 8] as const;
const FITTING_SHARE = 0.7;
const COUNT_SHARE = 0.9;
/** Of many sections so many must be named, or none is: some numbers here and there say nothing. */
const MANY = 24;
const NAMED_SHARE = 0.4;
const ROW_PX = 9;
const LETTERS_MAX = 400;
const LETTER_PX = [14, 11] as const;
/** Across an aisle the same row is named once. */
const LETTERS_ASIDE = 3;
const FRONTS_MIN = 9;
const FRONTS_SEAT_PX = 22;
const FRONT_PX = 13;
/** The strip at the left where rows that begin outside the screen are named. */
export const RAIL_PX = 30;
/** The rail is for seats that are picked from, and rows that cross it squarely. */
const RAIL_SEAT_PX = 17;
const RAIL_SQUARE = 0.9;
/** So much of a seat a row may bend between the edge and the middle; more, and a letter would seem to name the next row. */
const RAIL_BEND = 0.6;

/** The name of each section, and what is left of it, in the larger of its two parts. */
export function sectionLabels(
	hall: Hall,
	transform: Transform,
	size: Size,
	shareOf: (zone: number) => number,
	countOf: (zone: number) => string,
	measure: Measure,
): SectionLabel[] {
	const places = hall.sections.flatMap(({ zone, outline, isArea, short }) => {
		if (!outline) return [];
		const share = isArea ? 0 : shareOf(zone);
		const isOnSolid = share >= 0.5;
		const [from, to] = isOnSolid ? [0, share] : [share, 1];
		const middle = outline.middleOf(from, to);
		const [x, y] = [middle[0] * transform.k + transform.x, middle[1] * transform.k + transform.y];
		if (x < 0 || y < 0 || x > size.width || y > size.height) return [];
		const part = outline.part(from, to);
		const fits = (width: number, height: number) => isBoxInside(part, middle, (width / 2 + 0.5) / transform.k, (height / 2) / transform.k);
		return [{ zone, name: short, x, y, isOnSolid, fits, words: countOf(zone) }];
	});
	const isNamed = ({ name, fits }: (typeof places)[number], px: number) => fits(measure(name, px), px);
	const px = NAME_PX.find((one) => places.filter((place) => isNamed(place, one)).length >= places.length * FITTING_SHARE) ?? 8;
	const named = places.filter((place) => isNamed(place, Math.min(px, NAME_PX.at(-1) as number)));
	const isSparse = places.length >= MANY && named.length < places.length * NAMED_SHARE;
	return places.flatMap((place): SectionLabel[] => {
		const { zone, name, x, y, isOnSolid, words, fits } = place;
		if (isSparse && !hall.sections[zone]?.isArea) return [];
		const width = Math.max(measure(name, px), measure(words, px * COUNT_SHARE));
		if (words !== '' && fits(width, px * 2.2)) return [{ zone, name, count: words, x, y, px, isOnSolid }];
		const small = NAME_PX.find((one) => one <= px && isNamed(place, one));
		return small === undefined ? [] : [{ zone, name, count: null, x, y, px: small, isOnSolid }];
	});
}

/** Beside the ends of each row that is seen; where two would touch, one is enough. */
export function rowLetters(hall: Hall, transform: Transform, size: Size): RowLetter[] {
	const { geometry, scene } = hall;
	const letters: RowLetter[] = [];
	const taken = new Map<string, string>();
	for (const { zone, outline, isArea, firstRow, endRow } of hall.sections) {
		const px = (scene.seatCm[zone] as number) * transform.k;
		if (isArea || px < ROW_PX || !outline || !isSeen(outline.box, transform, size)) continue;
		for (let row = firstRow; row < endRow && letters.length < LETTERS_MAX; row++) {
			if (scene.isTable[row]) continue;
			const label = geometry.rowLabel(row);
			for (const [seat, side] of endsOf(hall, row, px >= RAIL_SEAT_PX)) {
				const turn = scene.angle[seat] as number;
				const away = side * (px * 0.62 + Math.min(13, px * 0.6));
				const x = (geometry.x[seat] as number) * transform.k + transform.x + Math.cos(turn) * away;
				const y = (geometry.y[seat] as number) * transform.k + transform.y + Math.sin(turn) * away;
				if (x < -8 || y < -8 || x > size.width + 8 || y > size.height + 8 || !claim(taken, label, x, y)) continue;
				letters.push({ label, x, y });
			}
		}
	}
	return letters;
}

/** The first and the last seat of a row and the side that is free; near, those behind an aisle as well. */
function endsOf(hall: Hall, row: number, withAisles: boolean): [number, -1 | 1][] {
	const [first, end] = hall.rowSeats(row);
	const ends: [number, -1 | 1][] = [[first, -1], [end - 1, 1]];
	if (withAisles) for (let seat = first + 1; seat < end; seat++) if (hall.geometry.isFirst[seat]) ends.push([seat, -1]);
	return ends;
}

/** Takes a place for a letter; false where it, or one beside it, is taken, and where the same letter stands nearby. */
function claim(taken: Map<string, string>, label: string, x: number, y: number): boolean {
	const [column, line] = [Math.round(x / LETTER_PX[0]), Math.round(y / LETTER_PX[1])];
	for (let across = -LETTERS_ASIDE; across <= LETTERS_ASIDE; across++) {
		for (let down = -1; down <= 1; down++) {
			const other = taken.get(`${column + across} ${line + down}`);
			if (other === label || (other !== undefined && down === 0 && Math.abs(across) < 2)) return false;
		}
	}
	taken.set(`${column} ${line}`, label);
	return true;
}

/** The name of each section before its first row: where sections are many, or there is room between the rows. */
export function frontNames(hall: Hall, transform: Transform, size: Size): FrontName[] {
	if (hall.sections.length < FRONTS_MIN && hall.seatCm * transform.k < FRONTS_SEAT_PX) return [];
	return hall.sections.flatMap(({ outline, isArea, short }): FrontName[] => {
		if (!outline || isArea || !isSeen(outline.box, transform, size)) return [];
		const [front, behind] = [outline.middleOf(0, 0), outline.middleOf(0.2, 0.2)];
		const [across, down] = [front[0] - behind[0], front[1] - behind[1]];
		const away = FRONT_PX / Math.max(1e-9, Math.hypot(across, down));
		const align = Math.abs(across) <= Math.abs(down) ? 'center' : across > 0 ? 'left' : 'right';
		return [{ label: short, align, x: front[0] * transform.k + transform.x + across * away, y: front[1] * transform.k + transform.y + down * away }];
	});
}

/** Rows that begin to the left of the screen and go on in it: their letters stay at the edge. None where rows run slanted or bent. */
export function railLetters(hall: Hall, transform: Transform, size: Size): RowLetter[] {
	const { geometry, scene } = hall;
	const letters: RowLetter[] = [];
	const edge = (RAIL_PX - transform.x) / transform.k;
	for (const { zone, outline, isArea, firstRow, endRow } of hall.sections) {
		const px = (scene.seatCm[zone] as number) * transform.k;
		if (isArea || px < RAIL_SEAT_PX || !outline || outline.box.left > edge || outline.box.right < edge) continue;
		if (!isSeen(outline.box, transform, size)) continue;
		for (let row = firstRow; row < endRow; row++) {
			const found = crossing(hall, row, edge);
			if (found === null) continue;
			const at = found.y * transform.k + transform.y;
			if (at < 0 || at > size.height) continue;
			const middle = crossing(hall, row, (size.width / 2 - transform.x) / transform.k);
			const bend = middle === null ? 0 : Math.abs(middle.y - found.y) * transform.k;
			if (Math.abs(Math.cos(scene.angle[found.seat] as number)) < RAIL_SQUARE || bend > px * RAIL_BEND) return [];
			if (letters.every((one) => Math.abs(one.y - at) >= 11)) letters.push({ label: geometry.rowLabel(row), x: RAIL_PX / 2, y: at });
		}
	}
	return letters;
}

/** Where a row crosses a line from top to bottom, and the seat before that; null where it does not. */
function crossing(hall: Hall, row: number, edge: number): { readonly y: number; readonly seat: number } | null {
	const { x, y } = hall.geometry;
	const [first, end] = hall.rowSeats(row);
	let [low, high] = [first, end - 1];
	if ((x[low] as number) > (x[high] as number)) [low, high] = [high, low];
	if ((x[low] as number) > edge || (x[high] as number) < edge) return null;
	while (Math.abs(high - low) > 1) {
		const middle = (low + high) >> 1;
		if ((x[middle] as number) <= edge) low = middle;
		else high = middle;
	}
	const across = (x[high] as number) - (x[low] as number);
	const share = across === 0 ? 0 : (edge - (x[low] as number)) / across;
	return { y: (y[low] as number) + ((y[high] as number) - (y[low] as number)) * share, seat: low };
}

export function isSeen(box: { left: number; top: number; right: number; bottom: number }, { k, x, y }: Transform, size: Size): boolean {
	return box.right * k + x > 0 && box.left * k + x < size.width && box.bottom * k + y > 0 && box.top * k + y < size.height;
}
