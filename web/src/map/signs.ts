// What stands above the seats: names of sections and what is left, letters of rows, labels that are no numbers, and rings
// around what is pointed at or has the focus.
import type { Point } from '../layouts/geometry.ts';
import { NUMBER, RING, UNIT } from './glyphs.ts';
import { NO_NUMBER, type Section } from './hall.ts';
import { DIMMED, type Shot } from './inks.ts';
import { frontNames, RAIL_PX, railLetters, rowLetters, sectionLabels } from './labels.ts';
import { NUMBER_PX, smoothstep } from './looks.ts';
import type { SeatMapState } from './map.svelte.ts';
import { count, t } from './words.ts';

/** Labels in one view; beyond that they could not be read. */
const LABELS_MAX = 3000;
const widths = new Map<string, number>();

export function paintSigns(ctx: CanvasRenderingContext2D, map: SeatMapState, shot: Shot): void {
	const { hall, lit } = map;
	const { transform, size } = shot;
	const seatPx = hall.seatCm * transform.k;
	const toScreen = ([x, y]: Point): [number, number] => [x * transform.k + transform.x, y * transform.k + transform.y];
	const { css, font } = shot.inks;
	const numbers = smoothstep(...NUMBER_PX, seatPx);
	ctx.setTransform(shot.ratio, 0, 0, shot.ratio, 0, 0);
	ctx.clearRect(0, 0, size.width, size.height);
	ctx.textAlign = 'center';
	ctx.textBaseline = 'middle';
	if (numbers > 0) writeLabels();
	writeLetters();
	writeSections();
	const focus = map.focus;
	if (map.hover && 'section' in map.hover) ringSection(map.hover.section, 2);
	if (map.hasFocus && focus?.level === 'section') ringSection(hall.sections[focus.zone] as Section, 3);
	if (map.hasFocus && focus?.level === 'row') ringRow(focus.row);
	if (map.hover && 'seat' in map.hover) ringSeat(map.hover.seat, 2);
	if (map.hasFocus && focus?.level === 'seat') ringSeat(focus.seat, 2.5);
	ctx.globalAlpha = 1;

	function write(words: string, x: number, y: number, px: number, ink: string, weight = 600): void {
		ctx.font = `${weight} ${px}px ${font}`;
		ctx.fillStyle = ink;
		ctx.fillText(words, x, y);
	}

	/** Text is measured once for a size: asking costs more than writing. */
	function measure(words: string, px: number): number {
		const key = `${px} ${words} ${font}`;
		const known = widths.get(key);
		if (known !== undefined) return known;
		ctx.font = `600 ${px}px ${font}`;
		const { width } = ctx.measureText(words);
		if (widths.size > LABELS_MAX) widths.clear();
		widths.set(key, width);
		return width;
	}

	function writeSections(): void {
		const share = (zone: number) => {
			const { available, total } = map.counts[zone] ?? { available: 0, total: 0 };
			return total > 0 && !map.locked[zone] ? available / total : 0;
		};
		const left = (zone: number) => {
			if (!map.isLoaded || map.locked[zone]) return '';
			const free = count(map.counts[zone]?.available ?? 0);
			return hall.sections[zone]?.isArea ? t('map.area.left', { free }) : free;
		};
		for (const label of sectionLabels(hall, transform, size, share, left, measure)) {
			const { isArea } = hall.sections[label.zone] as Section;
			ctx.globalAlpha = (isArea ? 1 : 1 - shot.near) * (lit && !lit.zones.includes(label.zone) ? DIMMED * 2 : 1);
			if (ctx.globalAlpha === 0) continue;
			const isGone = !isArea && map.isLoaded && !map.locked[label.zone] && share(label.zone) === 0;
			const ink = label.isOnSolid ? css['on-zone'] : isGone ? css['text-2'] : css.text;
			const hasCount = label.count !== null && label.count !== '' && !isGone;
			write(label.name, label.x, label.y - (hasCount ? label.px * 0.55 : 0), label.px, ink);
			if (hasCount) write(label.count ?? '', label.x, label.y + label.px * 0.6, label.px * 0.88, ink, 500);
		}
	}

	function writeLetters(): void {
		ctx.globalAlpha = smoothstep(9, 11, seatPx);
		if (ctx.globalAlpha === 0) return;
		const rail = railLetters(hall, transform, size);
		for (const { label, x, y } of rowLetters(hall, transform, size)) {
			if (rail.length === 0 || x > RAIL_PX + 6) write(label, x, y, Math.min(13, Math.max(9, seatPx * 0.5)), css['text-2']);
		}
		for (const { label, x, y, align } of frontNames(hall, transform, size)) {
			ctx.textAlign = align;
			write(label, x, y, 13, css.text, 700);
		}
		ctx.textAlign = 'center';
		if (rail.length === 0) return;
		ctx.fillStyle = css['map-bg'];
		ctx.fillRect(0, 0, RAIL_PX, size.height);
		ctx.fillStyle = css['map-line'];
		ctx.fillRect(RAIL_PX, 0, 1, size.height);
		for (const { label, x, y } of rail) write(label, x, y, label.length > 2 ? 11 : 14, css.text);
	}

	/** Seats that are called by more than a number; the card writes the others. */
	function writeLabels(): void {
		if (hall.isPlain) return;
		const box = { left: -transform.x / transform.k, top: -transform.y / transform.k, right: (size.width - transform.x) / transform.k, bottom: (size.height - transform.y) / transform.k };
		for (const seat of hall.seatsIn(box).slice(0, LABELS_MAX)) {
			const label = hall.geometry.label(seat);
			const answer = map.answer(seat);
			if (hall.numbers[seat] !== NO_NUMBER || (answer !== 'free' && answer !== 'own' && answer !== 'pending') || hall.isRound(seat)) continue;
			const zone = hall.geometry.zoneOf[seat] as number;
			const px = hall.seatCmOf(seat) * transform.k;
			const [x, y] = toScreen(hall.place(seat));
			ctx.globalAlpha = numbers * (lit && !lit.zones.includes(zone) ? DIMMED : 1);
			const ink = answer === 'free' ? css['on-zone'] : css['on-yours'];
			const size_ = Math.min(NUMBER.size / UNIT, 1.3 / Math.max(1, label.length)) * px;
			write(label, x, y + (NUMBER.y / UNIT) * px, size_, ink);
		}
	}

	function ring(outline: readonly Point[], width: number): void {
		ctx.globalAlpha = 1;
		ctx.beginPath();
		outline.forEach((point, at) => {
			const [x, y] = toScreen(point);
			if (at) ctx.lineTo(x, y);
			else ctx.moveTo(x, y);
		});
		ctx.closePath();
		ctx.lineJoin = 'round';
		ctx.strokeStyle = css['seat-ring'];
		ctx.lineWidth = width;
		ctx.stroke();
	}

	function ringSection(section: Section, width: number): void {
		if (section.outline) ring(section.outline.whole, width);
	}

	function ringRow(row: number): void {
		const outline = hall.rowOutline(row);
		if (outline) ring(outline, 2.5);
	}

	function ringSeat(seat: number, width: number): void {
		const px = Math.max(9, hall.seatCmOf(seat) * transform.k);
		const [x, y] = toScreen(hall.place(seat));
		const unit = px / UNIT;
		ctx.globalAlpha = 1;
		ctx.save();
		ctx.translate(x, y);
		ctx.rotate(hall.isRound(seat) ? 0 : (hall.scene.angle[seat] as number));
		ctx.beginPath();
		const { across, down, front, back } = RING;
		if (hall.isRound(seat)) ctx.arc(0, 0, across * unit, 0, 2 * Math.PI);
		else ctx.roundRect(-across * unit, -down * unit, 2 * across * unit, 2 * down * unit, [front * unit, front * unit, back * unit, back * unit]);
		ctx.strokeStyle = css['map-floor'];
		ctx.lineWidth = width + 2.5;
		ctx.stroke();
		ctx.strokeStyle = css['seat-ring'];
		ctx.lineWidth = width;
		ctx.stroke();
		ctx.restore();
	}
}
