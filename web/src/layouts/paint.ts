// Draws a hall on a canvas: from the whole stadium, every seat a speck, to single seats with their numbers. The shapes are
// those of the seat map: solid seats that are rounder at the back, circles for wheelchairs, outlines for members.
import { COMPANION, RESTRICTED, WHEELCHAIR, type Point, type Shape, type Zone } from './geometry.ts';
import type { Marks } from './marks.ts';
import type { Scene, Tint } from './scene.ts';
import type { Size, View } from './view.ts';

const TOKENS = [
	'map-bg', 'map-floor', 'map-line', 'stage', 'on-stage', 'on-zone', 'surface-3', 'raised', 'text', 'text-2', 'ok', 'bad', 'warn', 'seat-ring', 'seat-blocked', 'seat-sold',
	'zone-1', 'zone-2', 'zone-3', 'zone-4', 'zone-1-soft', 'zone-2-soft', 'zone-3-soft', 'zone-4-soft', 'seat-vip', 'seat-vip-fill',
] as const;
export type Palette = Readonly<Record<(typeof TOKENS)[number] | 'font', string>>;

/** The tokens as the theme of this moment has them. A canvas does not know custom properties, so an element says them. */
export function readPalette(element: HTMLElement): Palette {
	const probe = element.appendChild(document.createElement('span'));
	const style = getComputedStyle(probe);
	const said = TOKENS.map((token) => {
		probe.style.color = `var(--${token})`;
		return [token, style.color] as const;
	});
	const font = style.fontFamily;
	probe.remove();
	return { ...(Object.fromEntries(said) as Record<(typeof TOKENS)[number], string>), font };
}

export interface Picture {
	readonly scene: Scene;
	readonly view: View;
	readonly size: Size;
	/** Pixels of the screen for one of the page. */
	readonly ratio: number;
	readonly palette: Palette;
	readonly marks: Marks | null;
	/** By ordinal, as `STATES` numbers them; null where every seat is for sale. */
	readonly states: Uint8Array | null;
	/** The ids of zones that are not for sale. */
	readonly off: ReadonlySet<string> | null;
	/** The seat that is pointed at. */
	readonly pointed: number | null;
	/** How an area without seats is described: its name and how many it takes. */
	readonly sayArea: (zone: Zone) => readonly [string, string];
}

/** What became of a seat: for sale by itself, out of sale, out of sale with its zone, one of many places without a number. */
export const STATES = { open: 0, blocked: 1, off: 2, pooled: 3 } as const;

/** From so many pixels a seat is turned, has its own shape, its mark, its number. */
const TURNED_PX = 4;
const SHAPED_PX = 5.5;
/** Smaller than that, zones are named. */
const NAMED_PX = 7;
const MARKED_PX = 8.5;
const NUMBERED_PX = 15;
const ROWS_PX = 7.5;
const DIMMED = 0.28;
/** Names are written when so many of them find room. */
const NAMED_SHARE = 0.75;
const NUMBER = /\d+$/;

/** A seat of one unit, looking up: rounder at the back, as everywhere. Made when it is first drawn. */
let body: Path2D | null = null;

export function paint(ctx: CanvasRenderingContext2D, picture: Picture): void {
	new Painter(ctx, picture).paint();
}

class Painter {
	readonly #ctx: CanvasRenderingContext2D;
	readonly #picture: Picture;

	constructor(ctx: CanvasRenderingContext2D, picture: Picture) {
		this.#ctx = ctx;
		this.#picture = picture;
	}

	paint(): void {
		const { size, palette, scene, marks } = this.#picture;
		const ctx = this.#ctx;
		this.#toScreen();
		ctx.globalAlpha = 1;
		ctx.fillStyle = palette['map-bg'];
		ctx.fillRect(0, 0, size.width, size.height);
		ctx.lineJoin = 'round';
		this.#floor();
		for (const shape of scene.geometry.shapes) this.#shape(shape);
		scene.geometry.zones.forEach((zone, at) => this.#area(zone, scene.tints[at] ?? 0));
		ctx.globalAlpha = marks ? DIMMED : 1;
		this.#tables();
		this.#ties();
		this.#seats();
		ctx.globalAlpha = 1;
		this.#toScreen();
		this.#rowLabels();
		if (marks) this.#marks(marks);
		else this.#zoneNames();
		this.#pointed();
	}

	#x(x: number): number {
		const { view, size } = this.#picture;
		return (x - view.x) * view.scale + size.width / 2;
	}

	#y(y: number): number {
		const { view, size } = this.#picture;
		return (y - view.y) * view.scale + size.height / 2;
	}

	#isSeen(x: number, y: number, reach: number): boolean {
		const { size } = this.#picture;
		return x > -reach && y > -reach && x < size.width + reach && y < size.height + reach;
	}

	#toScreen(): void {
		const { ratio } = this.#picture;
		this.#ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
	}

	/** One unit is so many pixels, turned, at a place of the screen. */
	#toSeat(x: number, y: number, angle: number, px: number): void {
		const { ratio } = this.#picture;
		const [across, down] = [Math.cos(angle) * px * ratio, Math.sin(angle) * px * ratio];
		this.#ctx.setTransform(across, down, -down, across, x * ratio, y * ratio);
	}

	#trace(outline: readonly Point[]): void {
		const ctx = this.#ctx;
		ctx.beginPath();
		outline.forEach(([x, y], at) => (at ? ctx.lineTo(this.#x(x), this.#y(y)) : ctx.moveTo(this.#x(x), this.#y(y))));
		ctx.closePath();
	}

	#font(px: number, weight = 600): void {
		this.#ctx.font = `${weight} ${px}px ${this.#picture.palette.font}`;
		this.#ctx.textAlign = 'center';
		this.#ctx.textBaseline = 'middle';
	}

	#floor(): void {
		const { scene, palette } = this.#picture;
		this.#trace(scene.floor);
		this.#ctx.fillStyle = palette['map-floor'];
		this.#ctx.fill();
		this.#ctx.strokeStyle = palette['map-line'];
		this.#ctx.lineWidth = 1;
		this.#ctx.stroke();
	}

	#shape(shape: Shape): void {
		const { palette } = this.#picture;
		const ctx = this.#ctx;
		const isStage = shape.kind === 'stage' || shape.kind === 'screen';
		this.#trace(shape.outline);
		ctx.fillStyle = isStage ? palette.stage : shape.kind === 'pitch' ? palette['zone-4-soft'] : palette['surface-3'];
		ctx.fill();
		const [left, top, right, bottom] = this.#extent(shape.outline);
		if (shape.kind === 'pitch' && shape.outline.length === 4) this.#lines(left, top, right, bottom);
		const px = Math.min(15, (right - left) / 8, (bottom - top) / 2);
		if (px < 7) return;
		this.#font(px);
		ctx.fillStyle = isStage ? palette['on-stage'] : palette['text-2'];
		this.#spaced(shape.label, (left + right) / 2, (top + bottom) / 2, right - left - 8);
	}

	/** Chalk: a border, the halfway line and the circle. */
	#lines(left: number, top: number, right: number, bottom: number): void {
		const { palette } = this.#picture;
		const ctx = this.#ctx;
		const inset = Math.min(right - left, bottom - top) * 0.06;
		const [middleX, middleY] = [(left + right) / 2, (top + bottom) / 2];
		const isWide = right - left >= bottom - top;
		const radius = Math.min(right - left, bottom - top) * 0.2;
		ctx.strokeStyle = palette['map-floor'];
		ctx.lineWidth = Math.min(3, Math.max(1, inset / 8));
		ctx.beginPath();
		ctx.rect(left + inset, top + inset, right - left - 2 * inset, bottom - top - 2 * inset);
		if (isWide) {
			ctx.moveTo(middleX, top + inset);
			ctx.lineTo(middleX, bottom - inset);
		} else {
			ctx.moveTo(left + inset, middleY);
			ctx.lineTo(right - inset, middleY);
		}
		ctx.moveTo(middleX + radius, middleY);
		ctx.arc(middleX, middleY, radius, 0, 2 * Math.PI);
		ctx.stroke();
	}

	#area(zone: Zone, tint: Tint): void {
		if (zone.outline.length === 0) return;
		const { sayArea, palette, off } = this.#picture;
		const ctx = this.#ctx;
		const [ink, soft] = off?.has(zone.zone_id) ? [palette['seat-blocked'], palette['map-bg']] : this.#inks(tint);
		this.#trace(zone.outline);
		ctx.fillStyle = soft;
		ctx.fill();
		ctx.strokeStyle = ink;
		ctx.lineWidth = 1.5;
		ctx.setLineDash([6, 4]);
		ctx.stroke();
		ctx.setLineDash([]);
		const [left, top, right, bottom] = this.#extent(zone.outline);
		const [name, capacity] = sayArea(zone);
		const px = Math.min(15, (right - left) / 7, (bottom - top) / 3.2);
		if (px < 6.5) return;
		const [x, y] = [(left + right) / 2, (top + bottom) / 2];
		ctx.fillStyle = palette.text;
		this.#font(px);
		this.#spaced(name, x, y - px * 0.65, right - left - 8);
		ctx.fillStyle = palette['text-2'];
		this.#font(px * 0.9, 500);
		this.#spaced(capacity, x, y + px * 0.65, right - left - 8);
	}

	#tables(): void {
		const { scene, view, palette } = this.#picture;
		const ctx = this.#ctx;
		for (const table of scene.tables) {
			const [x, y] = [this.#x(table.x), this.#y(table.y)];
			const radius = (table.radius - (scene.seatCm[0] ?? 45) * 0.62) * view.scale;
			if (radius < 1 || !this.#isSeen(x, y, radius)) continue;
			ctx.beginPath();
			ctx.arc(x, y, radius, 0, 2 * Math.PI);
			ctx.fillStyle = palette['surface-3'];
			ctx.fill();
			if (radius < 9) continue;
			ctx.fillStyle = palette['text-2'];
			this.#font(Math.min(14, radius * 0.62));
			this.#spaced(table.label, x, y, radius * 2 - 2);
		}
	}

	/** Companion seats are tied to their wheelchair space. */
	#ties(): void {
		const { scene, view } = this.#picture;
		const { geometry, seatCm, tints } = scene;
		const ctx = this.#ctx;
		for (let at = 0; at < geometry.companions.length; at += 2) {
			const [seat, space] = [geometry.companions[at] as number, geometry.companions[at + 1] as number];
			const zone = geometry.zoneOf[seat] as number;
			const px = (seatCm[zone] as number) * view.scale;
			if (px < SHAPED_PX) continue;
			ctx.strokeStyle = this.#inks(tints[zone] ?? 0)[0];
			ctx.lineWidth = px * 0.1;
			ctx.beginPath();
			ctx.moveTo(this.#x(geometry.x[seat] as number), this.#y(geometry.y[seat] as number));
			ctx.lineTo(this.#x(geometry.x[space] as number), this.#y(geometry.y[space] as number));
			ctx.stroke();
		}
	}

	#seats(): void {
		const { scene, view } = this.#picture;
		const { geometry, seatCm, tints } = scene;
		geometry.zones.forEach((zone, index) => {
			if (zone.count === 0) return;
			const px = (seatCm[index] as number) * view.scale;
			const tint = tints[index] ?? 0;
			if (px < TURNED_PX) this.#specks(zone, tint, px);
			else for (let seat = zone.first; seat < zone.first + zone.count; seat++) this.#seat(seat, tint, px);
		});
	}

	/** Seats from afar: so many that nothing but their place and colour can be seen. */
	#specks(zone: Zone, tint: Tint, px: number): void {
		const { scene, view, size } = this.#picture;
		const { x, y } = scene.geometry;
		const ctx = this.#ctx;
		const { states, palette } = this.#picture;
		const side = Math.max(1, px * 1.18);
		const [offsetX, offsetY] = [size.width / 2 - view.x * view.scale - side / 2, size.height / 2 - view.y * view.scale - side / 2];
		const [ink, soft] = this.#inks(tint);
		const inks = [ink, palette['seat-blocked'], palette['seat-sold'], soft];
		let last = -1;
		for (let seat = zone.first; seat < zone.first + zone.count; seat++) {
			const state = states?.[seat] ?? STATES.open;
			if (state !== last) ctx.fillStyle = inks[(last = state)] ?? ink;
			const [left, top] = [(x[seat] as number) * view.scale + offsetX, (y[seat] as number) * view.scale + offsetY];
			if (left > -side && top > -side && left < size.width && top < size.height) ctx.fillRect(left, top, side, side);
		}
	}

	#seat(seat: number, tint: Tint, px: number): void {
		const { scene, palette } = this.#picture;
		const { geometry, angle } = scene;
		const ctx = this.#ctx;
		const [x, y] = [this.#x(geometry.x[seat] as number), this.#y(geometry.y[seat] as number)];
		if (!this.#isSeen(x, y, px)) return;
		const turn = angle[seat] as number;
		const category = geometry.category[seat] as number;
		const [ink, soft] = this.#inks(tint);
		const state = this.#picture.states?.[seat] ?? STATES.open;
		if (state !== STATES.open) {
			this.#closedSeat(x, y, turn, px, state, ink);
			return;
		}
		const isHollow = category === COMPANION || category === RESTRICTED || tint === 'vip';
		this.#toSeat(x, y, turn, px);
		ctx.fillStyle = isHollow && px >= SHAPED_PX ? soft : ink;
		ctx.strokeStyle = ink;
		ctx.lineWidth = 0.07;
		if (category === WHEELCHAIR || category === COMPANION) {
			ctx.beginPath();
			ctx.arc(0, 0, category === WHEELCHAIR ? 0.54 : 0.48, 0, 2 * Math.PI);
			ctx.fill();
			if (isHollow) ctx.stroke();
		} else if (px < SHAPED_PX) {
			ctx.fillRect(-0.5, -0.5, 1, 1);
		} else {
			body ??= bodyOf(1, 0.96);
			ctx.fill(body);
			if (isHollow) ctx.stroke(body);
		}
		if (px < MARKED_PX) return;
		this.#toSeat(x, y, 0, px);
		const face = isHollow ? ink : palette['on-zone'];
		ctx.fillStyle = ctx.strokeStyle = face;
		if (category === WHEELCHAIR) this.#wheelchair();
		else if (category === COMPANION) this.#person();
		else if (px < NUMBERED_PX) this.#zoneSign(tint, 0, 1.35);
		else {
			this.#zoneSign(tint, 0.31, 1);
			this.#toScreen();
			this.#font(px * (geometry.label(seat).length > 3 ? 0.32 : 0.44));
			ctx.fillText(geometry.label(seat), x, y - px * 0.05, px * 0.88);
		}
	}

	/** A cross in an outline where it is out of sale; a dot where nobody buys this very seat. */
	#closedSeat(x: number, y: number, turn: number, px: number, state: number, ink: string): void {
		const { palette } = this.#picture;
		const ctx = this.#ctx;
		this.#toSeat(x, y, turn, px);
		body ??= bodyOf(1, 0.96);
		if (state !== STATES.blocked) {
			ctx.fillStyle = state === STATES.pooled ? ink : palette['seat-sold'];
			ctx.beginPath();
			ctx.arc(0, 0, 0.22, 0, 2 * Math.PI);
			ctx.fill();
			return;
		}
		ctx.fillStyle = palette['map-floor'];
		ctx.fill(body);
		ctx.strokeStyle = palette['seat-blocked'];
		ctx.lineWidth = px < MARKED_PX ? 0.16 : 0.08;
		ctx.stroke(body);
		ctx.beginPath();
		ctx.moveTo(-0.2, -0.2);
		ctx.lineTo(0.2, 0.2);
		ctx.moveTo(0.2, -0.2);
		ctx.lineTo(-0.2, 0.2);
		ctx.stroke();
	}

	/** Two bars, one bar, two dots, one dot: the zones without their colours. */
	#zoneSign(tint: Tint, y: number, size: number): void {
		const ctx = this.#ctx;
		const [unit, half] = [0.036 * size, 0.072 * size];
		if (tint === 0) {
			ctx.fillRect(-6 * unit, y - unit, 5 * unit, half);
			ctx.fillRect(unit, y - unit, 5 * unit, half);
		} else if (tint === 1) {
			ctx.fillRect(-5 * unit, y - unit, 10 * unit, half);
		} else if (tint !== 'vip') {
			ctx.beginPath();
			for (const x of tint === 2 ? [-2.8, 2.8] : [0]) {
				ctx.moveTo(x * unit + 1.4 * unit, y);
				ctx.arc(x * unit, y, 1.4 * unit, 0, 2 * Math.PI);
			}
			ctx.fill();
		}
	}

	#wheelchair(): void {
		const ctx = this.#ctx;
		ctx.lineWidth = 0.07;
		ctx.lineCap = 'round';
		ctx.beginPath();
		ctx.arc(-0.02, -0.26, 0.045, 0, 2 * Math.PI);
		ctx.fill();
		ctx.beginPath();
		ctx.moveTo(-0.02, -0.14);
		ctx.lineTo(-0.02, 0.06);
		ctx.lineTo(0.13, 0.06);
		ctx.lineTo(0.22, 0.24);
		ctx.moveTo(-0.02, -0.05);
		ctx.lineTo(0.12, -0.05);
		ctx.moveTo(-0.11, -0.02);
		ctx.arc(-0.05, 0.14, 0.16, -1.9, 0.75, true);
		ctx.stroke();
		ctx.lineCap = 'butt';
	}

	#person(): void {
		const ctx = this.#ctx;
		ctx.lineWidth = 0.065;
		ctx.lineCap = 'round';
		ctx.beginPath();
		ctx.arc(0, -0.12, 0.105, 0, 2 * Math.PI);
		ctx.moveTo(-0.2, 0.26);
		ctx.bezierCurveTo(-0.18, 0.0, 0.18, 0.0, 0.2, 0.26);
		ctx.stroke();
		ctx.lineCap = 'butt';
	}

	/** Beside the first and the last seat of each row. */
	#rowLabels(): void {
		const { scene, view, palette } = this.#picture;
		const { geometry, seatCm, angle, isTable } = scene;
		const ctx = this.#ctx;
		ctx.fillStyle = palette['text-2'];
		for (let row = 0; row < geometry.rowCount; row++) {
			const px = (seatCm[geometry.rowZone[row] as number] as number) * view.scale;
			if (px < ROWS_PX || isTable[row]) continue;
			const label = geometry.rowLabel(row);
			const ends = [
				[geometry.rowStarts[row] as number, -1],
				[(geometry.rowStarts[row + 1] as number) - 1, 1],
			] as const;
			for (const [seat, side] of ends) {
				const turn = angle[seat] as number;
				const away = side * (px * 0.78 + 6);
				const x = this.#x(geometry.x[seat] as number) + Math.cos(turn) * away;
				const y = this.#y(geometry.y[seat] as number) + Math.sin(turn) * away;
				if (!this.#isSeen(x, y, 12)) continue;
				this.#font(Math.min(12, Math.max(8, px * 0.6)), 500);
				ctx.fillText(label, x, y);
			}
		}
	}

	/** From afar seats have no numbers, but their sections have names. Where too many would not fit, none is written. */
	#zoneNames(): void {
		const { scene, view, palette } = this.#picture;
		const ctx = this.#ctx;
		const px = (scene.seatCm[0] ?? 45) * view.scale;
		const seen = scene.zoneMarks.filter((mark) => this.#isSeen(this.#x(mark.x), this.#y(mark.y), 0));
		if (scene.zoneMarks.length < 2 || px >= NAMED_PX) return;
		// Sections that are numbered are all called by their number, or by none.
		const isNumbered = scene.zoneMarks.length > 4 && scene.zoneMarks.every((mark) => NUMBER.test(mark.name));
		this.#font(isNumbered && px < 2.5 ? 11 : 12);
		const taken: { x: number; y: number; half: number }[] = [];
		const names = seen.flatMap((mark) => {
			const words = (isNumbered ? NUMBER.exec(mark.name)?.[0] : null) ?? mark.name;
			const half = ctx.measureText(words).width / 2 + (isNumbered ? 2 : 9);
			const [x, y] = [this.#x(mark.x), this.#y(mark.y)];
			if (isNumbered && 2 * half > mark.width * view.scale * 1.3) return [];
			if (taken.some((one) => Math.abs(one.x - x) < one.half + half && Math.abs(one.y - y) < 13)) return [];
			taken.push({ x, y, half });
			return [{ words, x, y, half }];
		});
		if (names.length < seen.length * NAMED_SHARE) return;
		for (const { words, x, y, half } of names) {
			if (isNumbered) {
				ctx.lineWidth = 4;
				ctx.strokeStyle = palette['map-floor'];
				ctx.strokeText(words, x, y);
			} else {
				ctx.beginPath();
				ctx.roundRect(x - half, y - 11, 2 * half, 22, 11);
				ctx.fillStyle = palette.raised;
				ctx.fill();
				ctx.lineWidth = 1;
				ctx.strokeStyle = palette['map-line'];
				ctx.stroke();
			}
			ctx.fillStyle = palette.text;
			ctx.fillText(words, x, y + 0.5);
		}
	}

	#marks(marks: Marks): void {
		const { scene, view, palette } = this.#picture;
		const { geometry, seatCm } = scene;
		const ctx = this.#ctx;
		const pxOf = (seat: number) => Math.max(7, (seatCm[geometry.zoneOf[seat] as number] as number) * view.scale);
		const usual = Math.max(7, (seatCm[0] ?? 45) * view.scale);
		for (const { x, y } of marks.removed) this.#sign(this.#x(x), this.#y(y), usual, palette.bad, 'cross');
		for (const { ordinal, x, y } of marks.moved) {
			const [toX, toY] = [this.#x(geometry.x[ordinal] as number), this.#y(geometry.y[ordinal] as number)];
			ctx.strokeStyle = palette['seat-ring'];
			ctx.lineWidth = 1.5;
			ctx.beginPath();
			ctx.moveTo(this.#x(x), this.#y(y));
			ctx.lineTo(toX, toY);
			ctx.stroke();
			this.#sign(toX, toY, pxOf(ordinal), palette['seat-ring'], 'ring');
		}
		for (const seat of marks.changed) this.#signSeat(seat, pxOf(seat), palette.warn, 'square');
		for (const seat of marks.added) this.#signSeat(seat, pxOf(seat), palette.ok, 'plus');
	}

	#signSeat(seat: number, px: number, ink: string, sign: Sign): void {
		const { x, y } = this.#picture.scene.geometry;
		this.#sign(this.#x(x[seat] as number), this.#y(y[seat] as number), px, ink, sign);
	}

	#sign(x: number, y: number, px: number, ink: string, sign: Sign): void {
		if (!this.#isSeen(x, y, px)) return;
		const ctx = this.#ctx;
		const half = px / 2;
		ctx.strokeStyle = ink;
		ctx.fillStyle = ink;
		ctx.lineWidth = Math.max(1.5, px * 0.1);
		ctx.beginPath();
		if (sign === 'ring') {
			ctx.arc(x, y, half + 1, 0, 2 * Math.PI);
		} else if (sign === 'square') {
			ctx.rect(x - half, y - half, px, px);
		} else if (sign === 'plus') {
			ctx.moveTo(x - half, y);
			ctx.lineTo(x + half, y);
			ctx.moveTo(x, y - half);
			ctx.lineTo(x, y + half);
		} else {
			const arm = half * 0.75;
			ctx.moveTo(x - arm, y - arm);
			ctx.lineTo(x + arm, y + arm);
			ctx.moveTo(x + arm, y - arm);
			ctx.lineTo(x - arm, y + arm);
		}
		ctx.stroke();
	}

	#pointed(): void {
		const { pointed, scene, view, palette } = this.#picture;
		if (pointed === null) return;
		const { geometry, seatCm } = scene;
		const px = (seatCm[geometry.zoneOf[pointed] as number] as number) * view.scale;
		const ctx = this.#ctx;
		ctx.strokeStyle = palette['seat-ring'];
		ctx.lineWidth = 2;
		ctx.beginPath();
		ctx.arc(this.#x(geometry.x[pointed] as number), this.#y(geometry.y[pointed] as number), Math.max(5, px * 0.72), 0, 2 * Math.PI);
		ctx.stroke();
	}

	#inks(tint: Tint): readonly [string, string] {
		const { palette } = this.#picture;
		if (tint === 'vip') return [palette['seat-vip'], palette['seat-vip-fill']];
		const number = (tint + 1) as 1 | 2 | 3 | 4;
		return [palette[`zone-${number}`], palette[`zone-${number}-soft`]];
	}

	/** Words that are not wider than their room; the browser narrows them where they would be. */
	#spaced(words: string, x: number, y: number, room: number): void {
		this.#ctx.fillText(words, x, y, Math.max(1, room));
	}

	#extent(outline: readonly Point[]): [number, number, number, number] {
		const across = outline.map(([x]) => this.#x(x));
		const down = outline.map(([, y]) => this.#y(y));
		return [Math.min(...across), Math.min(...down), Math.max(...across), Math.max(...down)];
	}
}

type Sign = 'ring' | 'square' | 'plus' | 'cross';

function bodyOf(width: number, height: number): Path2D {
	const [a, b, front, back] = [width / 2, height / 2, width * 0.24, width * 0.42];
	return new Path2D(
		`M${-a + front} ${-b}H${a - front}Q${a} ${-b} ${a} ${-b + front}V${b - back}Q${a} ${b} ${a - back} ${b}` +
			`H${-a + back}Q${-a} ${b} ${-a} ${b - back}V${-b + front}Q${-a} ${-b} ${-a + front} ${-b}Z`,
	);
}
