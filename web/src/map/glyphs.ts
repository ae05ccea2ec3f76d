// The shapes and signs of seats, once for all that draw them: the graphics card, the plain canvas and the legend. Lengths
// are in 28ths of a seat, from its middle, and a seat looks up.

export const UNIT = 28;
/** Half the sides of a seat, and the radii of its corners: rounder at the back. */
export const BODY = { across: 14, down: 13.5, front: 5.6, back: 9.6 } as const;
export const HOLLOW = { across: 13.2, down: 12.7, front: 5, back: 9 } as const;
export const BARRED = { across: 12, down: 11.5, front: 4.6, back: 8.2 } as const;
export const PIP = { across: 6.5, down: 6.3, front: 2.6, back: 4.4 } as const;
export const RING = { across: 17.6, down: 17.1, front: 9.2, back: 13.2 } as const;
/** Radii of round ones: a wheelchair space, an own one, its companion seat, the ring around one. */
export const ROUND = { space: 15, own: 14, companion: 13.6, ring: 17.6 } as const;
/** A restricted view: the right front corner is missing, where x - y is more than this. */
export const NOTCH = 16.5;

export interface Glyph {
	readonly path: string;
	readonly width: number;
	/** What is filled as well. */
	readonly fill?: string;
}

export type GlyphName = 'wheelchair' | 'person' | 'lock' | 'tick' | 'cross' | 'smalltick';
export const GLYPHS: Readonly<Record<GlyphName, Glyph>> = {
	wheelchair: {
		path: 'M-.5-3.1v4.5h3.7l2 3.8M-.4-1.3h3.1M-2.7-.8a3.9 3.9 0 1 0 5.2 5.1',
		width: 1.9,
		fill: 'M-1.8-6.1a1.4 1.4 0 1 0 2.8 0 1.4 1.4 0 1 0-2.8 0z',
	},
	person: { path: 'M-2.9-3.4a2.9 2.9 0 1 0 5.8 0 2.9 2.9 0 1 0-5.8 0zM-5.4 7c.4-3.3 2.6-5 5.4-5s5 1.7 5.4 5', width: 1.7 },
	lock: {
		path: 'M-3-1.2v-2.2a3 3 0 0 1 6 0v2.2',
		width: 1.7,
		fill: 'M-3.2-1.4h6.4a1.8 1.8 0 0 1 1.8 1.8v4a1.8 1.8 0 0 1-1.8 1.8h-6.4a1.8 1.8 0 0 1-1.8-1.8v-4a1.8 1.8 0 0 1 1.8-1.8z',
	},
	tick: { path: 'M-5.8.4l3.9 3.9 7.8-8.2', width: 2.3 },
	cross: { path: 'M-4.5-4.5l9 9M4.5-4.5l-9 9', width: 1.6 },
	smalltick: { path: 'M-4 .2l2.6 2.5 5-5', width: 2 },
};

/** The square that a sign is drawn into. */
export const CELL = 20;
/** Where a number stands, how large, and where the mark under it. */
export const NUMBER = { y: -1.6, size: 12.8, advance: 0.62 } as const;
export const MARK_Y = 8.7;

/** Two bars, one bar, two dots, one dot, diamond, plus, triangle, three dots: what tells prices apart without their colours. */
export function markPath(tint: number, y: number, k: number): string {
	const bar = (from: number, length: number) => `M${from * k} ${y - k}h${length * k}v${2 * k}h${-length * k}z`;
	const dot = (x: number, r: number) => `M${(x - r) * k} ${y}a${r * k} ${r * k} 0 1 0 ${2 * r * k} 0 ${r * k} ${r * k} 0 1 0 ${-2 * r * k} 0z`;
	if (tint === 0) return bar(-6, 5) + bar(1, 5);
	if (tint === 1) return bar(-5, 10);
	if (tint === 2) return dot(-2.8, 1.35) + dot(2.8, 1.35);
	if (tint === 3) return dot(0, 1.5);
	const lines = (...points: (readonly [number, number])[]) => `M${points.map(([x, down]) => `${x * k} ${y + down * k}`).join('L')}z`;
	if (tint === 4) return lines([0, -2.7], [2.7, 0], [0, 2.7], [-2.7, 0]);
	// Clockwise like the other arm: where they cross is filled and not left out.
	if (tint === 5) return lines([-2.7, -0.9], [2.7, -0.9], [2.7, 0.9], [-2.7, 0.9]) + lines([-0.9, -2.7], [0.9, -2.7], [0.9, 2.7], [-0.9, 2.7]);
	if (tint === 6) return lines([0, -3], [2.6, 1.5], [-2.6, 1.5]);
	return dot(-4.4, 1.35) + dot(0, 1.35) + dot(4.4, 1.35);
}

/** A seat's outline as an SVG path; canvases take it too. */
export function bodyPath({ across: a, down: b, front, back }: { readonly across: number; readonly down: number; readonly front: number; readonly back: number }): string {
	const corner = (r: number, x: number, y: number) => `a${r} ${r} 0 0 1 ${x * r} ${y * r}`;
	return (
		`M${-a + front} ${-b}H${a - front}${corner(front, 1, 1)}V${b - back}${corner(back, -1, 1)}` +
		`H${-a + back}${corner(back, -1, -1)}V${-b + front}${corner(front, 1, -1)}Z`
	);
}

/** A seat with a restricted view. */
export function notchedPath(): string {
	const { across: a, down: b, front, back } = BODY;
	return (
		`M${-a + front} ${-b}H${NOTCH - b}L${a} ${a - NOTCH}V${b - back}a${back} ${back} 0 0 1 ${-back} ${back}` +
		`H${-a + back}a${back} ${back} 0 0 1 ${-back} ${-back}V${-b + front}a${front} ${front} 0 0 1 ${front} ${-front}Z`
	);
}

export function roundPath(r: number): string {
	return `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0 ${r} ${r} 0 1 0 ${-2 * r} 0z`;
}

/** The free half of a seat that somebody holds: below the diagonal. */
export const HALF = 'M14-9.5V14H-14V9.6z';
