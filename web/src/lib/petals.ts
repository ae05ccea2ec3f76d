// Cover art from a word: a flower whose petals stand in rows like seats. The same word always gives the same flower,
// so a cover needs no picture, no storage and no request.

export interface Petal {
	readonly path: string;
	readonly colour: string;
	readonly turn: number;
}

export interface Flower {
	readonly petals: readonly Petal[];
	readonly seeds: readonly { readonly x: number; readonly y: number; readonly colour: string }[];
	readonly heart: number;
}

/** Outermost row first: each row is painted over the one behind it. */
const COLOURS = ['#8c2f6b', '#d9475c', '#f58a3c', '#fcc65b'] as const;
const SEEDS_COUNT = 60;
/** The angle at which a sunflower sets its seeds: no two ever line up. */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

/** FNV-1a. */
function hash(word: string): number {
	let value = 0x811c9dc5;
	for (const letter of word) value = Math.imul(value ^ (letter.codePointAt(0) ?? 0), 0x01000193);
	return value;
}

/** Mulberry32: numbers from 0 up to 1, the same ones for the same word. */
export function randomFrom(word: string): () => number {
	let state = hash(word);
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}

const round = (value: number) => Math.round(value * 10) / 10;

function petalPath(length: number, width: number): string {
	const [low, high, tip] = [-length * 0.35, -length * 0.8, -length].map(round);
	const [belly, shoulder] = [width, width * 0.9].map(round);
	return `M0 0C${belly} ${low} ${shoulder} ${high} 0 ${tip}C-${shoulder} ${high} -${belly} ${low} 0 0Z`;
}

/** A flower about the origin, at most 180 from its heart to its outermost tip. */
export function flower(word: string): Flower {
	const random = randomFrom(word);
	const reach = 164 + random() * 16;
	const start = random() * 24;
	const twist = 10 + random() * 4;
	const petalsMin = 13 + Math.floor(random() * 3);
	const heart = round(29 + random() * 4);
	const petals = COLOURS.flatMap((colour, row) => {
		const count = petalsMin + 2 - row;
		const path = petalPath(reach - row * 32, 36 - row * 5.2);
		return Array.from({ length: count }, (_, place) => ({
			path,
			colour,
			turn: round(start + row * twist + (place * 360) / count),
		}));
	});
	const seeds = Array.from({ length: SEEDS_COUNT }, (_, place) => {
		const distance = (heart * 0.9 * Math.sqrt(place)) / Math.sqrt(SEEDS_COUNT);
		return {
			x: round(Math.cos(place * GOLDEN_ANGLE) * distance),
			y: round(Math.sin(place * GOLDEN_ANGLE) * distance),
			colour: place % 5 === 0 ? COLOURS[1] : COLOURS[3],
		};
	});
	return { petals, seeds, heart };
}
