// Seats by what people call them: "Stalls A 1-6, B 3" read into seats, and seats written back in the same way. Pure.
import type { Geometry } from '../layouts/geometry.ts';

/** Why a piece of a list was not understood, or not found. */
export type Why = 'zone' | 'row' | 'seat' | 'which' | 'bare';
export interface Unknown {
	/** As it was typed. */
	readonly words: string;
	readonly why: Why;
}
export interface Found {
	/** Each once, in the order of the plan. */
	readonly ordinals: readonly number[];
	readonly unknown: readonly Unknown[];
}
/** A run of seats of one row that stand side by side in the plan. */
export interface Run {
	readonly zone: string;
	readonly row: string;
	readonly seats: string;
	readonly ordinals: readonly number[];
}

const PIECES = /[,;\n]+/;
const RANGE = /^(.+?)\s*[-–]\s*(.+)$/;
const fold = (words: string) =>
	words.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().replace(/\s+/g, ' ').trim();

interface Where {
	readonly zone: number | null;
	readonly row: number | null;
}

/**
 * Reads a list. A piece is a zone, a row and seats of it, or a row alone for all of them. What a piece leaves out is as in the
 * one before it; a zone may be left out where only one has such a row.
 */
export function seatsOf(text: string, geometry: Geometry, codes: ReadonlyMap<string, string> = new Map()): Found {
	const hall = new Hall(geometry, codes);
	const ordinals = new Set<number>();
	const unknown: Unknown[] = [];
	let where: Where = { zone: null, row: null };
	for (const piece of text.split(PIECES)) {
		const words = piece.trim();
		if (words === '') continue;
		const read = hall.read(words, where);
		where = read.where;
		for (const seat of read.ordinals) ordinals.add(seat);
		unknown.push(...read.unknown);
	}
	return { ordinals: [...ordinals].sort((one, other) => one - other), unknown };
}

interface Read {
	readonly where: Where;
	readonly ordinals: readonly number[];
	readonly unknown: readonly Unknown[];
}

class Hall {
	readonly #geometry: Geometry;
	/** By name and by code, both folded. */
	readonly #zones = new Map<string, number>();
	/** By folded label: the rows that are called so. */
	readonly #rows = new Map<string, number[]>();

	constructor(geometry: Geometry, codes: ReadonlyMap<string, string>) {
		this.#geometry = geometry;
		geometry.zones.forEach((zone, index) => {
			const code = codes.get(zone.zone_id);
			if (code !== undefined) this.#zones.set(fold(code), index);
		});
		geometry.zones.forEach((zone, index) => this.#zones.set(fold(zone.name), index));
		for (let row = 0; row < geometry.rowCount; row++) {
			const label = fold(geometry.rowLabel(row));
			const same = this.#rows.get(label);
			if (same) same.push(row);
			else this.#rows.set(label, [row]);
		}
	}

	read(words: string, before: Where): Read {
		const [zone, rest] = this.#takeZone(fold(words.replaceAll(':', ' ')));
		const where: Where = zone === null ? before : { zone, row: null };
		if (rest === '') return { where, ordinals: [], unknown: [{ words, why: 'bare' }] };
		const [label = '', ...more] = rest.split(' ');
		const seats = more.join(' ');
		const rows = (this.#rows.get(label) ?? []).filter(
			(row) => where.zone === null || this.#geometry.rowZone[row] === where.zone,
		);
		const [row] = rows;
		if (row === undefined || (seats === '' && this.#isSeatOf(label, where.row))) {
			return this.#readOn(words, rest, where, zone !== null);
		}
		if (rows.length > 1) return { where, ordinals: [], unknown: [{ words, why: 'which' }] };
		const here: Where = { zone: this.#geometry.rowZone[row] ?? null, row };
		const picked = seats === '' ? this.#seats(row) : this.#pick(row, seats);
		return picked === null ? { where: here, ordinals: [], unknown: [{ words, why: 'seat' }] } : { where: here, ...this.#told(picked, words) };
	}

	/** "A 1-6, 9": the row is that of the piece before. */
	#readOn(words: string, seats: string, where: Where, isNewZone: boolean): Read {
		const isKnownZone = where.zone !== null;
		if (where.row === null || isNewZone) return { where, ordinals: [], unknown: [{ words, why: isKnownZone || isNewZone ? 'row' : 'zone' }] };
		const picked = this.#pick(where.row, seats);
		return picked === null ? { where, ordinals: [], unknown: [{ words, why: 'seat' }] } : { where, ...this.#told(picked, words) };
	}

	#told(picked: readonly number[], words: string): Pick<Read, 'ordinals' | 'unknown'> {
		return { ordinals: picked, unknown: picked.length === 0 ? [{ words, why: 'seat' }] : [] };
	}

	/** The zone that a piece begins with, by the longest name that fits, and what comes after it. */
	#takeZone(words: string): [number | null, string] {
		let best = '';
		for (const name of this.#zones.keys()) {
			if (name.length > best.length && (words === name || words.startsWith(`${name} `))) best = name;
		}
		// A zone called "A" with a row called "A": "A 1" is a seat of the row, "A A 1" names both.
		const rest = words.slice(best.length).trim();
		if (best !== '' && this.#rows.has(best) && !this.#rows.has(rest.split(' ', 1)[0] ?? '')) return [null, words];
		return best === '' ? [null, words] : [this.#zones.get(best) ?? null, rest];
	}

	#isSeatOf(label: string, row: number | null): boolean {
		return row !== null && this.#seats(row).some((seat) => fold(this.#geometry.label(seat)) === label);
	}

	#seats(row: number): number[] {
		const { rowStarts } = this.#geometry;
		const [first, end] = [rowStarts[row] ?? 0, rowStarts[row + 1] ?? 0];
		return Array.from({ length: end - first }, (_, at) => first + at);
	}

	/** The seats of a row that a text names; null where one of them is not there. */
	#pick(row: number, text: string): number[] | null {
		const seats = this.#seats(row);
		const at = (label: string) => seats.find((seat) => fold(this.#geometry.label(seat)) === label) ?? null;
		const one = at(text);
		if (one !== null) return [one];
		const range = RANGE.exec(text);
		if (!range) {
			const named = text.split(' ').map(at);
			return named.length > 1 && named.every((seat) => seat !== null) ? (named as number[]) : null;
		}
		const [from, to] = [at((range[1] ?? '').trim()), at((range[2] ?? '').trim())];
		if (from === null || to === null) return null;
		return this.#between(seats, from, to);
	}

	/** By number where both ends are numbers, since rows are not always counted from the left; otherwise by place. */
	#between(seats: readonly number[], from: number, to: number): number[] {
		const number = (seat: number) => Number.parseInt(/\d+$/.exec(this.#geometry.label(seat))?.[0] ?? '', 10);
		const prefix = (seat: number) => this.#geometry.label(seat).replace(/\d+$/, '');
		if (Number.isNaN(number(from)) || Number.isNaN(number(to)) || prefix(from) !== prefix(to)) {
			const [low, high] = [Math.min(from, to), Math.max(from, to)];
			return seats.filter((seat) => seat >= low && seat <= high);
		}
		const [low, high] = [Math.min(number(from), number(to)), Math.max(number(from), number(to))];
		return seats.filter((seat) => prefix(seat) === prefix(from) && number(seat) >= low && number(seat) <= high);
	}
}

/** Seats as people would write them: neighbours as one run, each with its zone and its row. */
export function runsOf(ordinals: Iterable<number>, geometry: Geometry): Run[] {
	const runs: { row: number; ordinals: number[] }[] = [];
	for (const ordinal of [...ordinals].sort((one, other) => one - other)) {
		const row = geometry.rowOf[ordinal] ?? 0;
		const last = runs.at(-1);
		if (last?.row === row && last.ordinals.at(-1) === ordinal - 1) last.ordinals.push(ordinal);
		else runs.push({ row, ordinals: [ordinal] });
	}
	return runs.map(({ row, ordinals: seats }) => {
		const [first, last] = [geometry.label(seats[0] ?? 0), geometry.label(seats.at(-1) ?? 0)];
		return {
			zone: geometry.zones[geometry.rowZone[row] ?? 0]?.name ?? '',
			row: geometry.rowLabel(row),
			seats: seats.length === 1 ? first : `${first}–${last}`,
			ordinals: seats,
		};
	});
}
