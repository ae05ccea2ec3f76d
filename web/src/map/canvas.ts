// The seats on a plain canvas, for browsers without WebGL 2: the same shapes, colours and marks, only slower.
import { COMPANION, RESTRICTED, WHEELCHAIR } from '../layouts/geometry.ts';
import { BARRED, BODY, bodyPath, GLYPHS, HALF, HOLLOW, MARK_Y, markPath, notchedPath, NUMBER, PIP, RING, ROUND, roundPath, UNIT, type GlyphName } from './glyphs.ts';
import { NO_NUMBER } from './hall.ts';
import { DIMMED, softInk, zoneInk, type InkName, type Shot } from './inks.ts';
import { AVAILABLE, HELD, MARK_PX, NUMBER_PX, OWN, PENDING, RESERVED, SOLD, smoothstep, STATUS } from './looks.ts';
import type { SeatMapState } from './map.svelte.ts';

type Shape = 'body' | 'hollow' | 'barred' | 'pip' | 'ring' | 'half' | 'space' | 'companion' | 'roundring' | 'roundown' | 'roundpip' | 'roundhollow' | 'roundbarred' | 'notched' | GlyphName;
/** Made when first drawn: there is no `Path2D` where there is no page. */
let shapes: Record<Shape, Path2D> | null = null;

function makeShapes(): Record<Shape, Path2D> {
	const path = (data: string) => new Path2D(data);
	const signs = Object.fromEntries(Object.entries(GLYPHS).map(([name, glyph]) => [name, path(glyph.path)])) as Record<GlyphName, Path2D>;
	return {
		...signs,
		body: path(bodyPath(BODY)),
		hollow: path(bodyPath(HOLLOW)),
		barred: path(bodyPath(BARRED)),
		pip: path(bodyPath(PIP)),
		ring: path(bodyPath(RING)),
		half: path(HALF),
		space: path(roundPath(ROUND.space)),
		companion: path(roundPath(ROUND.companion)),
		roundown: path(roundPath(ROUND.own)),
		roundring: path(roundPath(ROUND.ring)),
		roundpip: path(roundPath(PIP.across)),
		roundhollow: path(roundPath(HOLLOW.across)),
		roundbarred: path(roundPath(BARRED.across)),
		notched: path(notchedPath()),
	};
}

interface Seat {
	readonly px: number;
	readonly tint: number;
	readonly category: number;
	readonly label: string;
	readonly marks: number;
	readonly numbers: number;
	/** In radians. */
	readonly turn: number;
}

export class CanvasSeats {
	readonly canvas: HTMLCanvasElement;
	readonly #ctx: CanvasRenderingContext2D;
	#shot!: Shot;
	#alpha = 1;

	constructor(canvas: HTMLCanvasElement) {
		this.canvas = canvas;
		this.#ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
	}

	draw(map: SeatMapState, shot: Shot): void {
		const ctx = this.#ctx;
		this.#shot = shot;
		ctx.setTransform(1, 0, 0, 1, 0, 0);
		ctx.globalAlpha = 1;
		ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
		map.drawn();
		if (shot.near === 0) return;
		const lit = map.lit && new Set(map.lit.zones);
		for (const { zone, isArea } of map.hall.sections) {
			if (isArea) continue;
			this.#zone(map, zone, (lit && !lit.has(zone) ? DIMMED : 1) * shot.near);
		}
	}

	finish(): void {
		this.#ctx.getImageData(0, 0, 1, 1);
	}

	close(): void {
		this.canvas.width = this.canvas.height = 0;
	}

	#zone(map: SeatMapState, zone: number, strength: number): void {
		const { geometry, scene } = map.hall;
		const { ratio, transform } = this.#shot;
		const { k, x: left, y: top } = transform;
		const { first, count } = geometry.zones[zone] as { first: number; count: number };
		const px = (scene.seatCm[zone] as number) * k * ratio;
		const [marks, numbers] = [smoothstep(...MARK_PX, px / ratio), smoothstep(...NUMBER_PX, px / ratio)];
		const [width, height, tint] = [this.canvas.width + px, this.canvas.height + px, map.tints[zone] ?? 0];
		for (let seat = first; seat < first + count; seat++) {
			const [x, y] = [((geometry.x[seat] as number) * k + left) * ratio, ((geometry.y[seat] as number) * k + top) * ratio];
			if (x < -px || y < -px || x > width || y > height) continue;
			const look = map.looks[seat] as number;
			this.#alpha = this.#ctx.globalAlpha = look & (OWN | RESERVED) ? this.#shot.near : strength;
			const closed = map.locked[zone] ? 1 : map.isPooled(zone) ? 2 : 0;
			const number = map.hall.numbers[seat] as number;
			const label = numbers > 0 && number !== NO_NUMBER ? String(number) : '';
			const one = { px, tint, category: geometry.category[seat] as number, label, marks, numbers, turn: scene.angle[seat] as number };
			this.#to(x, y, one.turn, px);
			this.#seat(look, closed, one, () => this.#to(x, y, 0, px));
		}
	}

	/** `upright` turns the pen back: seats look at the stage, signs and numbers at the reader. */
	#seat(look: number, closed: number, seat: Seat, upright: () => void): void {
		const status = look & STATUS;
		const isRound = seat.category === WHEELCHAIR || seat.category === COMPANION;
		if (look & OWN) this.#own((look & PENDING) !== 0, seat, isRound, upright);
		else if (look & RESERVED) this.#companion('yours-soft', 'yours-line', seat, upright, [4.1, 3.02]);
		else if (status !== AVAILABLE) this.#taken(status, seat, isRound, upright);
		else if (closed === 1) {
			this.#fill('hollow', 'seat-vip-fill');
			this.#stroke('hollow', 'seat-vip', 1.6);
			upright();
			this.#sign('lock', 'seat-vip', seat.marks);
		} else if (closed === 2) this.#fill('roundpip', zoneInk(seat.tint));
		else this.#free(seat, upright);
	}

	#free(seat: Seat, upright: () => void): void {
		const ink = zoneInk(seat.tint);
		if (seat.category === COMPANION) {
			this.#companion(softInk(seat.tint), ink, seat, upright);
			return;
		}
		if (seat.category === WHEELCHAIR) {
			this.#fill('space', ink);
			upright();
			this.#sign('wheelchair', 'on-zone', seat.marks);
			return;
		}
		this.#fill(seat.category === RESTRICTED ? 'notched' : 'body', ink);
		if (seat.marks <= 0) return;
		upright();
		this.#fillWith('on-zone');
		this.#ctx.globalAlpha = this.#alpha * seat.marks;
		this.#ctx.fill(new Path2D(markPath(seat.tint, MARK_Y * seat.numbers, 1.35 - 0.35 * seat.numbers)));
		this.#ctx.globalAlpha = this.#alpha;
		this.#number(seat, 'on-zone');
	}

	#own(isPending: boolean, seat: Seat, isRound: boolean, upright: () => void): void {
		const ring = isRound ? 'roundring' : 'ring';
		if (!isPending) {
			this.#fill(ring, 'map-floor');
			this.#stroke(ring, 'yours-line', 2.2);
		}
		this.#fill(isRound ? 'roundown' : 'body', 'yours');
		upright();
		if (isRound) {
			this.#sign(seat.category === WHEELCHAIR ? 'wheelchair' : 'person', 'on-yours', seat.marks);
			return;
		}
		this.#number(seat, 'on-yours');
		if (isPending) return;
		if (seat.numbers > 0) this.#ctx.translate(0, 8.2);
		this.#sign(seat.numbers > 0 ? 'smalltick' : 'tick', 'on-yours', seat.marks);
	}

	#companion(fill: InkName, line: InkName, seat: Seat, upright: () => void, dash: number[] = []): void {
		this.#fill('companion', fill);
		this.#ctx.setLineDash(dash);
		this.#stroke('companion', line, 2);
		this.#ctx.setLineDash([]);
		upright();
		this.#sign('person', line, seat.marks);
	}

	#taken(status: number, seat: Seat, isRound: boolean, upright: () => void): void {
		const ctx = this.#ctx;
		if (status === SOLD) {
			this.#fill(isRound ? 'roundpip' : 'pip', 'seat-sold');
		} else if (status === HELD) {
			const shape = isRound ? 'roundhollow' : 'hollow';
			this.#fill(shape, 'map-floor');
			ctx.save();
			ctx.clip(this.#shape(shape));
			this.#fill('half', 'seat-held-fill');
			ctx.restore();
			this.#stroke(shape, 'seat-held', 1.6);
		} else {
			const shape = isRound ? 'roundbarred' : 'barred';
			this.#fill(shape, 'map-floor');
			this.#stroke(shape, 'seat-blocked', 1.4);
			upright();
			this.#sign('cross', 'seat-blocked', seat.marks);
		}
	}

	/** One unit is a 28th of a seat, turned, at a place of the canvas. */
	#to(x: number, y: number, angle: number, px: number): void {
		const [across, down] = [(Math.cos(angle) * px) / UNIT, (Math.sin(angle) * px) / UNIT];
		this.#ctx.setTransform(across, down, -down, across, x, y);
	}

	#shape(name: Shape): Path2D {
		shapes ??= makeShapes();
		return shapes[name];
	}

	#fillWith(ink: InkName): void {
		this.#ctx.fillStyle = this.#shot.inks.css[ink];
	}

	#fill(shape: Shape, ink: InkName): void {
		this.#fillWith(ink);
		this.#ctx.fill(this.#shape(shape));
	}

	#stroke(shape: Shape, ink: InkName, width: number): void {
		this.#ctx.strokeStyle = this.#shot.inks.css[ink];
		this.#ctx.lineWidth = width;
		this.#ctx.stroke(this.#shape(shape));
	}

	#sign(name: GlyphName, ink: InkName, alpha: number): void {
		if (alpha <= 0) return;
		const ctx = this.#ctx;
		const glyph = GLYPHS[name];
		ctx.globalAlpha = this.#alpha * alpha;
		ctx.lineCap = ctx.lineJoin = 'round';
		this.#stroke(name, ink, glyph.width);
		ctx.lineCap = 'butt';
		if (glyph.fill) {
			this.#fillWith(ink);
			ctx.fill(new Path2D(glyph.fill));
		}
		ctx.globalAlpha = this.#alpha;
	}

	#number(seat: Seat, ink: InkName): void {
		if (seat.label === '') return;
		const ctx = this.#ctx;
		const size = NUMBER.size * (seat.label.length < 3 ? 1 : seat.label.length === 3 ? 0.82 : 0.64);
		ctx.font = `600 ${size}px ${this.#shot.inks.font}`;
		ctx.textAlign = 'center';
		ctx.globalAlpha = this.#alpha * seat.numbers;
		this.#fillWith(ink);
		ctx.fillText(seat.label, 0, NUMBER.y + size * 0.364);
		ctx.globalAlpha = this.#alpha;
	}
}
