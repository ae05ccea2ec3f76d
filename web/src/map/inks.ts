// The colours of the tokens as the theme of this moment has them, for canvases, which know no custom properties.
import type { Size } from '../layouts/view.ts';
import type { Transform } from './map.svelte.ts';

/** The order is the shader's. */
export const INKS = [
	'zone-1', 'zone-2', 'zone-3', 'zone-4', 'zone-5', 'zone-6', 'zone-7', 'zone-8',
	'zone-1-soft', 'zone-2-soft', 'zone-3-soft', 'zone-4-soft', 'zone-5-soft', 'zone-6-soft', 'zone-7-soft', 'zone-8-soft',
	'on-zone', 'yours', 'yours-line', 'yours-soft', 'on-yours', 'seat-held', 'seat-held-fill', 'seat-sold', 'seat-blocked', 'seat-vip', 'seat-vip-fill', 'map-floor',
	'map-bg', 'map-line', 'stage', 'on-stage', 'text', 'text-2', 'surface-3', 'raised', 'seat-ring', 'line',
] as const;
export type InkName = (typeof INKS)[number];
/** Colours of prices. */
export const TINTS = INKS.indexOf('zone-1-soft');
/** How many of them seats are drawn with. */
export const SEAT_INKS = INKS.indexOf('map-floor') + 1;

export interface Inks {
	readonly css: Readonly<Record<InkName, string>>;
	/** Red, green and blue from 0 to 1, ink after ink. */
	readonly rgb: Float32Array;
	readonly font: string;
}

/** An element says what the tokens are where it stands. */
export function readInks(within: HTMLElement): Inks {
	const probe = within.appendChild(document.createElement('span'));
	const style = getComputedStyle(probe);
	const css = {} as Record<InkName, string>;
	const rgb = new Float32Array(INKS.length * 3);
	INKS.forEach((name, at) => {
		probe.style.color = `var(--${name})`;
		css[name] = style.color;
		const parts = style.color.match(/[\d.]+/g) ?? [];
		for (let part = 0; part < 3; part++) rgb[at * 3 + part] = Number(parts[part] ?? 0) / 255;
	});
	const font = style.fontFamily;
	probe.remove();
	return { css, rgb, font };
}

/** What a drawing is given beside the map: from where it is seen, on what, and when. */
export interface Shot {
	readonly inks: Inks;
	readonly transform: Transform;
	readonly size: Size;
	/** How many pixels of the screen there are to one of the page. */
	readonly ratio: number;
	/** 0 for sections only, 1 for seats only. */
	readonly near: number;
	/** How far seats have turned from their last look to this one, 0 to 1. */
	readonly turn: number;
}

export const zoneInk = (tint: number): InkName => INKS[tint] ?? 'zone-1';
export const softInk = (tint: number): InkName => INKS[tint + TINTS] ?? 'zone-1-soft';
/** What steps back while a line of the legend is chosen. */
export const DIMMED = 0.28;
