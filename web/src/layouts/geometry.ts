// The geometry document of a layout's version, unfolded into columns by ordinal: where every seat is and what it is called.
// Nothing here touches the page, so that whatever draws or searches a hall can stand on it.

export type Point = readonly [number, number];
export type ZoneType = 'reserved_seating' | 'vip_reserved' | 'ga_seated' | 'ga_standing' | 'vip_standing';
export type ShapeKind = 'stage' | 'pitch' | 'screen' | 'bar' | 'entrance' | 'other';
export type GroupKind = 'wheelchair_pair' | 'family_block' | 'vip_table' | 'reserved_block';

export interface Zone {
	readonly zone_id: string;
	readonly name: string;
	readonly zone_type: ZoneType;
	readonly capacity: number;
	/** The ordinal of its first seat; the others follow. */
	readonly first: number;
	readonly count: number;
	readonly focal_point: Point | null;
	readonly outline: readonly Point[];
}

export interface Shape {
	readonly kind: ShapeKind;
	readonly label: string;
	readonly outline: readonly Point[];
}

export interface Group {
	readonly kind: GroupKind;
	readonly label: string;
	/** By ordinal. */
	readonly seats: readonly number[];
}

/** How the seats of a row are labelled: a beginning and numbers after it, or one by one. */
type Pattern = { readonly prefix?: string; readonly start: number; readonly step?: number } | readonly string[];

interface GeometryDocument {
	readonly format: string;
	readonly layout_id: string;
	readonly version: number;
	readonly seat_count: number;
	readonly id_prefix: string;
	readonly zones: readonly Zone[];
	readonly shapes: readonly Shape[];
	readonly groups: readonly Group[];
	readonly row_names: readonly string[];
	readonly rows: {
		readonly zone: readonly number[];
		readonly name: readonly number[];
		readonly count: readonly number[];
		readonly labels: readonly number[];
	};
	readonly label_patterns: readonly Pattern[];
	readonly serials: readonly (readonly [number, number])[];
	readonly x: readonly number[];
	readonly y: readonly number[];
	readonly categories: Readonly<Record<string, readonly number[]>>;
	readonly breaks: readonly number[];
	readonly companions: readonly (readonly [number, number])[];
}

const FORMAT = 'voelgoed-geometry/1';
const ID_DIGITS = 8;

/** The place of a category in this list is its number in `Geometry.category`. */
export const CATEGORIES = ['standard', 'wheelchair', 'companion', 'restricted_view', 'aisle'] as const;
export type Category = (typeof CATEGORIES)[number];
export const WHEELCHAIR = CATEGORIES.indexOf('wheelchair');
export const COMPANION = CATEGORIES.indexOf('companion');
export const RESTRICTED = CATEGORIES.indexOf('restricted_view');

/** One version of a layout. Columns are by ordinal; what is by row says so. */
export class Geometry {
	readonly layoutId: string;
	readonly version: number;
	readonly seatCount: number;
	readonly zones: readonly Zone[];
	readonly shapes: readonly Shape[];
	readonly groups: readonly Group[];
	/** Centimetres, seen from above; y grows downwards. */
	readonly x: Int32Array;
	readonly y: Int32Array;
	/** The index of its zone and of its row. */
	readonly zoneOf: Uint16Array;
	readonly rowOf: Uint32Array;
	/** The index of its category in `CATEGORIES`. */
	readonly category: Uint8Array;
	/** What the end of its id is made of. */
	readonly serials: Uint32Array;
	/** 1 where a row begins or an aisle is to the left: nobody sits beside it there. */
	readonly isFirst: Uint8Array;
	/** A companion seat and its wheelchair space, in turn. */
	readonly companions: Uint32Array;
	/** By row: its first ordinal; one more at the end, so that a row is what lies between two. */
	readonly rowStarts: Uint32Array;
	/** By row: the index of its zone. */
	readonly rowZone: Uint16Array;

	readonly #idPrefix: string;
	readonly #rowNames: readonly string[];
	readonly #rowName: readonly number[];
	readonly #rowPattern: readonly number[];
	readonly #patterns: readonly Pattern[];
	#ordinals: ReadonlyMap<number, number> | null = null;

	constructor(document: GeometryDocument) {
		const count = document.seat_count;
		const { rows } = document;
		this.layoutId = document.layout_id;
		this.version = document.version;
		this.seatCount = count;
		this.zones = document.zones;
		this.shapes = document.shapes;
		this.groups = document.groups;
		this.x = summed(document.x, new Int32Array(count));
		this.y = summed(document.y, new Int32Array(count));
		this.rowZone = summed(rows.zone, new Uint16Array(rows.zone.length));
		this.rowStarts = new Uint32Array(rows.count.length + 1);
		this.zoneOf = new Uint16Array(count);
		this.rowOf = new Uint32Array(count);
		this.isFirst = new Uint8Array(count);
		let start = 0;
		rows.count.forEach((length, row) => {
			const end = start + length;
			this.zoneOf.fill(this.rowZone[row] ?? 0, start, end);
			this.rowOf.fill(row, start, end);
			this.isFirst[start] = 1;
			this.rowStarts[row + 1] = start = end;
		});
		for (const ordinal of summed(document.breaks, new Uint32Array(document.breaks.length))) this.isFirst[ordinal] = 1;
		this.category = new Uint8Array(count);
		for (const [word, steps] of Object.entries(document.categories)) {
			const number = Math.max(0, CATEGORIES.indexOf(word as Category));
			for (const ordinal of summed(steps, new Uint32Array(steps.length))) this.category[ordinal] = number;
		}
		this.serials = new Uint32Array(count);
		let place = 0;
		for (const [first, length] of document.serials) {
			for (let serial = first; serial < first + length; serial++) this.serials[place++] = serial;
		}
		this.companions = Uint32Array.from(document.companions.flat());
		this.#idPrefix = document.id_prefix;
		this.#rowNames = document.row_names;
		this.#rowName = rows.name;
		this.#rowPattern = rows.labels;
		this.#patterns = document.label_patterns;
	}

	get rowCount(): number {
		return this.rowZone.length;
	}

	/** The label of a row, by its index. */
	rowLabel(row: number): string {
		return this.#rowNames[this.#rowName[row] ?? -1] ?? '';
	}

	/** What a seat is called in its row. */
	label(ordinal: number): string {
		const row = this.rowOf[ordinal] ?? 0;
		const place = ordinal - (this.rowStarts[row] ?? 0);
		const pattern = this.#patterns[this.#rowPattern[row] ?? -1];
		if (pattern === undefined) return '';
		return isList(pattern)
			? (pattern[place] ?? '')
			: `${pattern.prefix ?? ''}${pattern.start + (pattern.step ?? 1) * place}`;
	}

	seatId(ordinal: number): string {
		return this.#idPrefix + (this.serials[ordinal] ?? 0).toString(16).padStart(ID_DIGITS, '0');
	}

	/** The ordinal of a seat's id; null when it is no seat of this version. */
	ordinalOf(id: string): number | null {
		const digits = id.slice(this.#idPrefix.length);
		if (!id.startsWith(this.#idPrefix) || digits.length !== ID_DIGITS) return null;
		return this.ordinalOfSerial(Number.parseInt(digits, 16));
	}

	ordinalOfSerial(serial: number): number | null {
		this.#ordinals ??= new Map(Array.from(this.serials, (known, ordinal) => [known, ordinal]));
		return this.#ordinals.get(serial) ?? null;
	}
}

/** A document as it came from the server, which is asked for this format and no other. */
export function decode(document: unknown): Geometry {
	const known = document as GeometryDocument | null;
	if (known?.format !== FORMAT) throw new Error(`not a ${FORMAT} document`);
	return new Geometry(known);
}

/** Undoes the writing of each number as its difference to the one before. */
function summed<Column extends Int32Array | Uint32Array | Uint16Array>(steps: readonly number[], column: Column): Column {
	let sum = 0;
	for (let at = 0; at < steps.length; at++) column[at] = sum += steps[at] as number;
	return column;
}

function isList(pattern: Pattern): pattern is readonly string[] {
	return Array.isArray(pattern);
}
