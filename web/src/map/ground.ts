// What lies under the seats: the floor, the stage, standing areas, tables, and the sections as they are seen from afar.
import type { Point, Shape } from '../layouts/geometry.ts';
import { DIMMED, softInk, zoneInk, type Shot } from './inks.ts';
import { smoothstep } from './looks.ts';
import type { SeatMapState } from './map.svelte.ts';

/** From so many pixels a companion seat is seen to be tied to its space. */
const TIE_PX = 8;
const HATCH_PX = 7;

export function paintGround(ctx: CanvasRenderingContext2D, map: SeatMapState, shot: Shot): void {
	const { hall, lit } = map;
	const { size, transform } = shot;
	const { css } = shot.inks;
	const seatPx = hall.seatCm * transform.k;
	const toScreen = ([x, y]: Point): [number, number] => [x * transform.k + transform.x, y * transform.k + transform.y];
	const trace = (outline: readonly Point[]) => {
		ctx.beginPath();
		outline.forEach((point, at) => {
			const [left, top] = toScreen(point);
			if (at) ctx.lineTo(left, top);
			else ctx.moveTo(left, top);
		});
		ctx.closePath();
	};
	const alphaOf = (zone: number) => (lit && !lit.zones.includes(zone) ? DIMMED : 1);

	ctx.setTransform(shot.ratio, 0, 0, shot.ratio, 0, 0);
	ctx.globalAlpha = 1;
	ctx.fillStyle = css['map-bg'];
	ctx.fillRect(0, 0, size.width, size.height);
	ctx.lineJoin = 'round';
	trace(hall.scene.floor);
	ctx.fillStyle = css['map-floor'];
	ctx.fill();
	ctx.strokeStyle = css['map-line'];
	ctx.lineWidth = 1;
	ctx.stroke();
	for (const shape of hall.geometry.shapes) paintShape(shape);
	paintTables();
	if (shot.near > 0) paintTies();
	if (shot.near < 1) paintSections();
	paintAreas();
	ctx.globalAlpha = 1;

	function paintShape(shape: Shape): void {
		const isStage = shape.kind === 'stage' || shape.kind === 'screen';
		trace(shape.outline);
		ctx.fillStyle = isStage ? css.stage : shape.kind === 'pitch' ? css['zone-4-soft'] : css['surface-3'];
		ctx.fill();
		const across = shape.outline.map(([x]) => x * transform.k + transform.x);
		const down = shape.outline.map(([, y]) => y * transform.k + transform.y);
		const [left, right, top, bottom] = [Math.min(...across), Math.max(...across), Math.min(...down), Math.max(...down)];
		if (shape.kind === 'pitch') paintField(left, top, right, bottom);
		const px = Math.min(16, (right - left) / 8, (bottom - top) / 2);
		if (px < 7 || shape.kind === 'pitch') return;
		write(shape.label, (left + right) / 2, (top + bottom) / 2, px, isStage ? css['on-stage'] : css['text-2'], right - left - 12);
	}

	/** Mown stripes and chalk: a border, the halfway line, the circle. */
	function paintField(left: number, top: number, right: number, bottom: number): void {
		const [width, height] = [right - left, bottom - top];
		ctx.save();
		ctx.clip();
		ctx.fillStyle = css['zone-4'];
		ctx.globalAlpha = 0.08;
		for (let stripe = 0; stripe < 12; stripe += 2) ctx.fillRect(left + (stripe * width) / 12, top, width / 12, height);
		ctx.restore();
		const inset = Math.min(width, height) * 0.06;
		const [middleX, middleY] = [(left + right) / 2, (top + bottom) / 2];
		const radius = Math.min(width, height) * 0.16;
		ctx.globalAlpha = 0.5;
		ctx.strokeStyle = css['on-stage'];
		ctx.lineWidth = Math.min(3, Math.max(1, inset / 7));
		ctx.beginPath();
		ctx.rect(left + inset, top + inset, width - 2 * inset, height - 2 * inset);
		ctx.moveTo(middleX, top + inset);
		ctx.lineTo(middleX, bottom - inset);
		ctx.moveTo(middleX + radius, middleY);
		ctx.arc(middleX, middleY, radius, 0, 2 * Math.PI);
		ctx.stroke();
		ctx.globalAlpha = 1;
	}

	function paintTables(): void {
		for (const table of hall.scene.tables) {
			const radius = (table.radius - hall.seatCm * 0.62) * transform.k;
			if (radius < 1) continue;
			const [x, y] = toScreen([table.x, table.y]);
			ctx.beginPath();
			ctx.arc(x, y, radius, 0, 2 * Math.PI);
			ctx.fillStyle = css['surface-3'];
			ctx.fill();
			if (radius > 9) write(table.label, x, y, Math.min(14, radius * 0.62), css['text-2'], radius * 2 - 2);
		}
	}

	function paintTies(): void {
		if (seatPx < TIE_PX) return;
		ctx.lineWidth = seatPx * 0.1;
		for (const [companion, space] of hall.spaceOf) {
			const zone = hall.geometry.zoneOf[companion] as number;
			// A pair of which one is gone is no pair any more.
			if (map.statusOf(companion) !== 'available' && !map.own.has(companion)) continue;
			if (map.statusOf(space) !== 'available' && !map.own.has(space)) continue;
			ctx.globalAlpha = shot.near * alphaOf(zone);
			ctx.strokeStyle = map.own.has(space) ? css['yours-line'] : css[zoneInk(map.tints[zone] ?? 0)];
			ctx.beginPath();
			ctx.moveTo(...toScreen(hall.place(companion)));
			ctx.lineTo(...toScreen(hall.place(space)));
			ctx.stroke();
		}
	}

	/** Solid is what is free, from the front; what is sold out is hatched. Near, they go and leave their ground behind. */
	function paintSections(): void {
		const hatch = hatchOf(ctx, css['seat-sold']);
		for (const { zone, outline, isArea } of hall.sections) {
			if (!outline || isArea) continue;
			const { available, total } = map.counts[zone] ?? { available: 0, total: 0 };
			const share = total > 0 ? available / total : 0;
			const tint = map.tints[zone] ?? 0;
			const isLocked = map.locked[zone] === true;
			ctx.globalAlpha = (1 - shot.near) * alphaOf(zone);
			trace(outline.whole);
			ctx.fillStyle = isLocked ? css['seat-vip-fill'] : map.isLoaded && share === 0 ? css['map-floor'] : css[softInk(tint)];
			ctx.fill();
			if (map.isLoaded && share === 0) {
				ctx.fillStyle = hatch;
				ctx.fill();
			} else if (!isLocked && share > 0) {
				trace(outline.part(0, share));
				ctx.fillStyle = css[zoneInk(tint)];
				ctx.fill();
			}
			trace(outline.whole);
			ctx.strokeStyle = css[isLocked ? 'seat-vip' : share === 0 ? 'map-line' : 'map-floor'];
			ctx.lineWidth = Math.min(1.5, seatPx * 1.5);
			ctx.stroke();
		}
	}

	function paintAreas(): void {
		for (const { zone, outline, isArea } of hall.sections) {
			if (!outline || !isArea) continue;
			const tint = map.tints[zone] ?? 0;
			const isGone = map.isLoaded && map.counts[zone]?.available === 0;
			ctx.globalAlpha = alphaOf(zone);
			trace(outline.whole);
			ctx.fillStyle = map.locked[zone] ? css['seat-vip-fill'] : isGone ? hatchOf(ctx, css['seat-sold']) : css[softInk(tint)];
			ctx.fill();
			ctx.strokeStyle = map.locked[zone] ? css['seat-vip'] : isGone ? css['seat-blocked'] : css[zoneInk(tint)];
			ctx.lineWidth = 1.5;
			ctx.setLineDash([7, 5]);
			ctx.stroke();
			ctx.setLineDash([]);
		}
	}

	function write(words: string, x: number, y: number, px: number, ink: string, room: number): void {
		ctx.globalAlpha = smoothstep(6.5, 9, px);
		ctx.font = `600 ${px}px ${shot.inks.font}`;
		ctx.textAlign = 'center';
		ctx.textBaseline = 'middle';
		ctx.fillStyle = ink;
		ctx.fillText(words, x, y, Math.max(1, room));
		ctx.globalAlpha = 1;
	}
}

/** Slanted lines, as thick on every screen. */
function hatchOf(ctx: CanvasRenderingContext2D, ink: string): CanvasPattern {
	const tile = document.createElement('canvas');
	const fine = 4;
	tile.width = tile.height = HATCH_PX * fine;
	const pen = tile.getContext('2d') as CanvasRenderingContext2D;
	pen.scale(fine, fine);
	pen.strokeStyle = ink;
	pen.lineWidth = 1.1;
	pen.beginPath();
	for (const shift of [-HATCH_PX, 0, HATCH_PX]) {
		pen.moveTo(shift, HATCH_PX);
		pen.lineTo(shift + HATCH_PX, 0);
	}
	pen.stroke();
	const pattern = ctx.createPattern(tile, 'repeat') as CanvasPattern;
	pattern.setTransform(new DOMMatrix([1 / fine, 0, 0, 1 / fine, 0, 0]));
	return pattern;
}
