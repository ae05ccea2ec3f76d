// A hall as somebody who chooses a seat meets it: sections seen from afar, rows, seats, what is under a finger and which
// seat lies which way. Worked out once for a version of a layout; what changes while people buy is not in here.
import Flatbush from 'flatbush';
import { COMPANION, WHEELCHAIR, type Geometry, type Point, type Zone } from '../layouts/geometry.ts';
import { Scene } from '../layouts/scene.ts';
import type { Box } from '../layouts/view.ts';
import { boxAround, isInside, outlineOf, type Outline } from './outlines.ts';

/** A zone as a place in the hall. Without seats it is an area where people stand or sit as they come. */
export interface Section {
	/** The index of its zone. */
	readonly zone: number;
	readonly zoneId: string;
	readonly name: string;
	/** As short as it can be said on the map: the number of a numbered section. */
	readonly short: string;
	readonly outline: Outline | null;
	readonly firstRow: number;
	readonly endRow: number;
	readonly isArea: boolean;
}

export type Arrow = 'left' | 'right' | 'up' | 'down';
const ARROWS: Readonly<Record<Arrow, Point>> = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };
/** Along the row when the arrow points nearly there. */
const ALONG = 0.7;
/** An arrow reaches what lies within 60 degrees of it. */
const CONE = 0.5;
/** How many neighbours are looked at before there is said to be nothing that way. */
const NEIGHBOURS = [32, 512] as const;
/** A seat whose label is no plain number. */
export const NO_NUMBER = 0xffff;
const NUMBER_MAX = 9999;
const TRAILING_NUMBER = /\d+[A-Za-z]?$/;

export class Hall {
	readonly geometry: Geometry;
	readonly scene: Scene;
	/** By zone. */
	readonly sections: readonly Section[];
	/** The size of most seats, in centimetres. */
	readonly seatCm: number;
	readonly box: Box;
	/** By companion seat: its wheelchair space. And the other way. */
	readonly spaceOf: ReadonlyMap<number, number>;
	readonly companionsOf: ReadonlyMap<number, readonly number[]>;
	#index: Flatbush | null = null;
	#isPlain: boolean | null = null;
	#numbers: Uint16Array | null = null;

	constructor(geometry: Geometry) {
		this.geometry = geometry;
		this.scene = new Scene(geometry);
		this.sections = this.#makeSections();
		const sizes = [...this.scene.seatCm].filter((_, zone) => (geometry.zones[zone]?.count ?? 0) > 0).sort((one, other) => one - other);
		this.seatCm = sizes[sizes.length >> 1] ?? 45;
		this.box = this.scene.box;
		const spaces = new Map<number, number>();
		const companions = new Map<number, number[]>();
		for (let at = 0; at < geometry.companions.length; at += 2) {
			const [companion, space] = [geometry.companions[at] as number, geometry.companions[at + 1] as number];
			spaces.set(companion, space);
			companions.set(space, [...(companions.get(space) ?? []), companion]);
		}
		this.spaceOf = spaces;
		this.companionsOf = companions;
	}

	place(seat: number): Point {
		return [this.geometry.x[seat] as number, this.geometry.y[seat] as number];
	}

	sectionOf(seat: number): Section {
		return this.sections[this.geometry.zoneOf[seat] as number] as Section;
	}

	seatCmOf(seat: number): number {
		return this.scene.seatCm[this.geometry.zoneOf[seat] as number] ?? this.seatCm;
	}

	/** The first seat of a row, and the one after its last. */
	rowSeats(row: number): readonly [number, number] {
		return [this.geometry.rowStarts[row] ?? 0, this.geometry.rowStarts[row + 1] ?? 0];
	}

	/** Whether it has a round sign: a wheelchair space or the seat of its companion. */
	isRound(seat: number): boolean {
		const category = this.geometry.category[seat];
		return category === WHEELCHAIR || category === COMPANION;
	}

	/** By seat: its label where that is a plain number, `NO_NUMBER` where it is not. */
	get numbers(): Uint16Array {
		return (this.#numbers ??= this.#readNumbers());
	}

	/** Whether every seat is called by a number alone. */
	get isPlain(): boolean {
		return (this.#isPlain ??= !this.numbers.includes(NO_NUMBER));
	}

	rowOutline(row: number): readonly Point[] | null {
		return outlineOf(this.scene, [row], null)?.whole ?? null;
	}

	boxOfSection(section: Section): Box {
		return section.outline?.box ?? this.box;
	}

	/** The nearest seat to a place that is no farther than that; null where there is none. */
	seatAt(x: number, y: number, reachCm: number): number | null {
		if (this.geometry.seatCount === 0) return null;
		return this.#seats().neighbors(x, y, 1, reachCm)[0] ?? null;
	}

	/** All seats in a box, in no order. */
	seatsIn({ left, top, right, bottom }: Box): number[] {
		return this.geometry.seatCount === 0 ? [] : this.#seats().search(left, top, right, bottom);
	}

	sectionAt(x: number, y: number): Section | null {
		return this.sections.find((section) => section.outline && isInside(section.outline.whole, [x, y])) ?? null;
	}

	/** The seat that an arrow leads to: the next in the row, or the nearest in that direction; the same where nothing is. */
	step(seat: number, arrow: Arrow): number {
		const { rowOf } = this.geometry;
		const way = ARROWS[arrow];
		const turn = this.scene.angle[seat] as number;
		const along = way[0] * Math.cos(turn) + way[1] * Math.sin(turn);
		const next = seat + Math.sign(along);
		const isAlong = Math.abs(along) >= ALONG && !this.scene.isTable[rowOf[seat] as number];
		if (isAlong && rowOf[next] === rowOf[seat] && next >= 0) return next;
		return this.#nearestSeat(seat, way, isAlong ? null : (rowOf[seat] as number)) ?? seat;
	}

	/** The section that an arrow leads to. */
	stepSection(from: Section, arrow: Arrow): Section {
		const way = ARROWS[arrow];
		const here = from.outline?.middle;
		if (!here) return from;
		let [best, least] = [from, Infinity];
		for (const section of this.sections) {
			if (section === from || !section.outline) continue;
			const cost = costOf(here, section.outline.middle, way);
			if (cost < least) [best, least] = [section, cost];
		}
		return best;
	}

	/** A tree over a hundred thousand seats takes a moment: it is made when somebody first points at one. */
	#seats(): Flatbush {
		if (this.#index) return this.#index;
		const { seatCount, x, y } = this.geometry;
		const index = new Flatbush(seatCount, 16, Int32Array);
		for (let seat = 0; seat < seatCount; seat++) index.add(x[seat] as number, y[seat] as number);
		index.finish();
		return (this.#index = index);
	}

	#readNumbers(): Uint16Array {
		const numbers = new Uint16Array(this.geometry.seatCount);
		for (let seat = 0; seat < numbers.length; seat++) {
			const label = this.geometry.label(seat);
			const number = Number(label);
			numbers[seat] = label !== '' && number <= NUMBER_MAX && String(number) === label ? number : NO_NUMBER;
		}
		return numbers;
	}

	#nearestSeat(from: number, way: Point, exceptRow: number | null): number | null {
		const { rowOf } = this.geometry;
		const here = this.place(from);
		for (const count of NEIGHBOURS) {
			const near = this.#seats().neighbors(here[0], here[1], count, Infinity, (seat) => seat !== from && rowOf[seat] !== exceptRow);
			let [best, least] = [-1, Infinity];
			for (const seat of near) {
				const cost = costOf(here, this.place(seat), way);
				if (cost < least) [best, least] = [seat, cost];
			}
			if (best >= 0) return best;
		}
		return null;
	}

	#makeSections(): Section[] {
		const { zones, rowZone } = this.geometry;
		const rows: number[][] = zones.map(() => []);
		rowZone.forEach((zone, row) => rows[zone]?.push(row));
		const isNumbered = zones.filter((zone) => TRAILING_NUMBER.test(zone.name)).length > Math.max(4, zones.length * 0.6);
		return zones.map((zone, index) => {
			const own = rows[index] ?? [];
			return {
				zone: index,
				zoneId: zone.zone_id,
				name: zone.name,
				short: (isNumbered && TRAILING_NUMBER.exec(zone.name)?.[0]) || zone.name,
				outline: zone.count > 0 ? outlineOf(this.scene, own, zone.focal_point) : areaOutline(zone),
				firstRow: own[0] ?? 0,
				endRow: (own.at(-1) ?? -1) + 1,
				isArea: zone.count === 0,
			};
		});
	}
}

function areaOutline(zone: Zone): Outline | null {
	if (zone.outline.length === 0) return null;
	const box = boxAround(zone.outline);
	const middle: Point = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
	return { whole: zone.outline, middle, box, part: () => zone.outline, middleOf: () => middle };
}

/** How far it is, and farther the more it lies off the way; infinite outside the cone. */
function costOf(from: Point, to: Point, way: Point): number {
	const [across, down] = [to[0] - from[0], to[1] - from[1]];
	const distance = Math.hypot(across, down);
	const ahead = (across * way[0] + down * way[1]) / Math.max(1e-9, distance);
	return ahead < CONE ? Infinity : distance * (2 - ahead);
}
