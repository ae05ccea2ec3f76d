// What a drawing needs to know of a geometry beyond its columns, worked out once: how large seats are, which way they look,
// which colour a zone has, where tables and the floor are.
import type { Geometry, Point, Zone } from './geometry.ts';
import type { Box } from './view.ts';

/** The four colours of the tokens; `vip` has its own. */
export type Tint = 0 | 1 | 2 | 3 | 'vip';

export interface Table {
	readonly x: number;
	readonly y: number;
	readonly radius: number;
	readonly label: string;
}
export interface ZoneMark {
	readonly name: string;
	readonly x: number;
	readonly y: number;
	readonly width: number;
	readonly tint: Tint;
}

const TINTS = 4;
/** How much of the way to its neighbour a seat takes. */
const SEAT_SHARE = 0.82;
const SEAT_CM_DEFAULT = 45;
const SAMPLES = 24;
const DIRECTIONS = 72;

export class Scene {
	readonly geometry: Geometry;
	/** By zone. */
	readonly tints: readonly Tint[];
	readonly seatCm: Float32Array;
	/** By ordinal, in radians: how far a seat is turned from looking up the page. */
	readonly angle: Float32Array;
	/** By row: whether it goes round a table. */
	readonly isTable: Uint8Array;
	readonly tables: readonly Table[];
	readonly zoneMarks: readonly ZoneMark[];
	/** The floor under everything that people sit or stand on. */
	readonly floor: readonly Point[];
	readonly box: Box;

	constructor(geometry: Geometry) {
		this.geometry = geometry;
		this.tints = tintsOf(geometry.zones);
		this.angle = new Float32Array(geometry.seatCount);
		this.isTable = new Uint8Array(geometry.rowCount);
		this.#turnRows();
		this.tables = this.#seatTables();
		const rows: number[][] = geometry.zones.map(() => []);
		geometry.rowZone.forEach((zone, row) => rows[zone]?.push(row));
		this.seatCm = Float32Array.from(rows, (of) => this.#seatSize(of));
		this.zoneMarks = this.#markZones();
		this.floor = hullOf(this.#edge(), Math.max(90, ...this.seatCm) * 1.6);
		this.box = boxOf([...this.floor, ...geometry.shapes.flatMap((shape) => shape.outline)]);
	}

	/** The seat at a place, no farther than half its size; null where there is none. */
	seatAt(x: number, y: number): number | null {
		const { geometry } = this;
		let [best, nearest] = [-1, Infinity];
		for (let seat = 0; seat < geometry.seatCount; seat++) {
			const across = (geometry.x[seat] as number) - x;
			const down = (geometry.y[seat] as number) - y;
			const distance = across * across + down * down;
			if (distance < nearest) [best, nearest] = [seat, distance];
		}
		const reach = (this.seatCm[geometry.zoneOf[best] ?? 0] ?? 0) * 0.6;
		return best >= 0 && nearest <= reach * reach ? best : null;
	}

	/** Seats are listed from the left as one sits, so the way to the next one is the seat's own right. */
	#turnRows(): void {
		const { x, y, rowStarts, rowZone, zones } = this.geometry;
		for (let row = 0; row + 1 < rowStarts.length; row++) {
			const [first, end] = [rowStarts[row] as number, rowStarts[row + 1] as number];
			for (let seat = first; seat < end; seat++) {
				const [from, to] = [Math.max(first, seat - 1), Math.min(end - 1, seat + 1)];
				if (from === to) {
					const focus = zones[rowZone[row] as number]?.focal_point;
					if (focus) this.angle[seat] = Math.atan2(focus[0] - (x[seat] as number), (y[seat] as number) - focus[1]);
				} else {
					const across = (x[to] as number) - (x[from] as number);
					this.angle[seat] = Math.atan2((y[to] as number) - (y[from] as number), across);
				}
			}
		}
	}

	/** Seats round a table look at its middle. */
	#seatTables(): Table[] {
		const { x, y, groups, rowOf } = this.geometry;
		return groups.flatMap((group) => {
			if (group.kind !== 'vip_table' || group.seats.length < 3) return [];
			const mean = (column: Int32Array) =>
				group.seats.reduce((sum, seat) => sum + (column[seat] as number), 0) / group.seats.length;
			const [middleX, middleY] = [mean(x), mean(y)];
			let radius = Infinity;
			for (const seat of group.seats) {
				const [across, down] = [middleX - (x[seat] as number), middleY - (y[seat] as number)];
				this.angle[seat] = Math.atan2(across, -down);
				this.isTable[rowOf[seat] as number] = 1;
				radius = Math.min(radius, Math.hypot(across, down));
			}
			const label = this.geometry.rowLabel(rowOf[group.seats[0] as number] as number);
			return [{ x: middleX, y: middleY, radius, label }];
		});
	}

	/** The usual way to the neighbour, to the side or behind, whichever is shorter; from a few rows of the zone. */
	#seatSize(rows: readonly number[]): number {
		const { x, y, rowStarts, isFirst } = this.geometry;
		if (rows.length === 0) return SEAT_CM_DEFAULT;
		const every = Math.max(1, Math.floor(rows.length / SAMPLES));
		const away = (one: number, other: number) =>
			Math.hypot((x[one] as number) - (x[other] as number), (y[one] as number) - (y[other] as number));
		const beside: number[] = [];
		const behind: number[] = [];
		for (let at = 0; at < rows.length; at += every) {
			const row = rows[at] as number;
			const [first, end] = [rowStarts[row] as number, rowStarts[row + 1] as number];
			for (let seat = first + 1; seat < Math.min(end, first + SAMPLES); seat++) {
				if (!isFirst[seat]) beside.push(away(seat, seat - 1));
			}
			if (at + 1 < rows.length && !this.isTable[row]) {
				const middle = Math.floor((first + end) / 2);
				let nearest = Infinity;
				for (let seat = end; seat < (rowStarts[row + 2] as number); seat++) nearest = Math.min(nearest, away(middle, seat));
				behind.push(nearest);
			}
		}
		const pitch = Math.min(median(beside), median(behind) * 0.9);
		return Number.isFinite(pitch) && pitch > 0 ? pitch * SEAT_SHARE : SEAT_CM_DEFAULT;
	}

	/** Where the name of a zone with seats is written when it is seen from afar. */
	#markZones(): ZoneMark[] {
		const { x, y, zones } = this.geometry;
		return zones.flatMap((zone, index) => {
			if (zone.count === 0) return [];
			let [left, right, sumX, sumY] = [Infinity, -Infinity, 0, 0];
			for (let seat = zone.first; seat < zone.first + zone.count; seat++) {
				const across = x[seat] as number;
				left = Math.min(left, across);
				right = Math.max(right, across);
				sumX += across;
				sumY += y[seat] as number;
			}
			const tint = this.tints[index] ?? 0;
			return [{ name: zone.name, x: sumX / zone.count, y: sumY / zone.count, width: right - left, tint }];
		});
	}

	/** Points that the floor goes around: the ends and the middles of rows, and standing areas. */
	#edge(): Point[] {
		const { x, y, rowStarts, zones } = this.geometry;
		const points: Point[] = zones.flatMap((zone) => zone.outline);
		for (let row = 0; row + 1 < rowStarts.length; row++) {
			const [first, last] = [rowStarts[row] as number, (rowStarts[row + 1] as number) - 1];
			const quarter = (last - first) / 4;
			for (let step = 0; step <= 4; step++) {
				const seat = Math.round(first + step * quarter);
				points.push([x[seat] as number, y[seat] as number]);
			}
		}
		return points;
	}
}

/** A colour for each zone; where there are many, the sections of one tier, which begin with one digit, share theirs. */
export function tintsOf(zones: readonly Zone[]): Tint[] {
	const isVip = (zone: Zone) => zone.zone_type.startsWith('vip_');
	const plain = zones.filter((zone) => !isVip(zone));
	const tier = (zone: Zone) => /(\d+)\d\d$/.exec(zone.name)?.[1];
	const areTiers = plain.length > TINTS && plain.filter((zone) => tier(zone) !== undefined).length > plain.length / 2;
	const keyOf = (zone: Zone, at: number) => (areTiers ? (tier(zone) ?? 'none') : String(at));
	const keys = [...new Set(plain.map(keyOf))];
	let at = 0;
	return zones.map((zone) => (isVip(zone) ? 'vip' : ((keys.indexOf(keyOf(zone, at++)) % TINTS) as Tint)));
}

/** The outline around points, so much wider than they are: where its tangents in many directions meet. */
function hullOf(points: readonly Point[], margin: number): Point[] {
	if (points.length === 0) return [];
	const turns = Array.from({ length: DIRECTIONS }, (_, at) => (at * 2 * Math.PI) / DIRECTIONS);
	const reach = turns.map((turn) => {
		const [across, down] = [Math.cos(turn), Math.sin(turn)];
		let farthest = -Infinity;
		for (const [x, y] of points) farthest = Math.max(farthest, x * across + y * down);
		return farthest + margin;
	});
	const step = (2 * Math.PI) / DIRECTIONS;
	return turns.map((turn, at) => {
		const [here, next] = [reach[at] as number, reach[(at + 1) % DIRECTIONS] as number];
		const aside = (next - here * Math.cos(step)) / Math.sin(step);
		return [here * Math.cos(turn) - aside * Math.sin(turn), here * Math.sin(turn) + aside * Math.cos(turn)];
	});
}

export function boxOf(points: readonly Point[]): Box {
	let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
	for (const [x, y] of points) {
		[left, right] = [Math.min(left, x), Math.max(right, x)];
		[top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
	}
	return points.length === 0 ? { left: -500, top: -500, right: 500, bottom: 500 } : { left, top, right, bottom };
}

function median(values: number[]): number {
	values.sort((one, other) => one - other);
	return values[Math.floor(values.length / 2)] ?? Infinity;
}
