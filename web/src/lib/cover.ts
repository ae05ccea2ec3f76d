// A picture for an event that has none: one of a few drawings, chosen by what the event is and varied by who it is. The
// same event always gives the same picture. Everything is a path on a field of 400 by 250, made to be cropped.
import { flower, randomFrom } from './petals.ts';

export interface Stroke {
	readonly d: string;
	readonly fill?: string;
	readonly stroke?: string;
	readonly width?: number;
	readonly dash?: string;
	readonly opacity?: number;
	readonly transform?: string;
}

export interface Drawing {
	readonly family: Family;
	readonly ground: string;
	readonly strokes: readonly Stroke[];
}

export interface Subject {
	readonly id: string;
	readonly category: string | null;
	/** The organiser's wish: the name of a drawing, or any words, or both; words stand for the event in its place. */
	readonly cover: string | null;
}

type Random = () => number;
type Colours = readonly [string, string, string, string, string, string];
type Family = keyof typeof DRAWINGS;

const MIDDLE = { x: 200, y: 125 };
const round = (value: number) => Math.round(value * 10) / 10;
const within = (random: Random, least: number, most: number) => least + random() * (most - least);
const several = <T>(count: number, make: (place: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

function circle(x: number, y: number, radius: number): string {
	const [r, across] = [round(radius), round(2 * radius)];
	return `M${round(x - radius)} ${round(y)}a${r} ${r} 0 1 0 ${across} 0a${r} ${r} 0 1 0 ${-across} 0Z`;
}

const rounded = (x: number, y: number, width: number, height: number, r: number) =>
	`M${round(x + r)} ${round(y)}h${round(width - 2 * r)}a${r} ${r} 0 0 1 ${r} ${r}v${round(height - 2 * r)}` +
	`a${r} ${r} 0 0 1 ${-r} ${r}h${round(2 * r - width)}a${r} ${r} 0 0 1 ${-r} ${-r}v${round(2 * r - height)}` +
	`a${r} ${r} 0 0 1 ${r} ${-r}Z`;

/** A ring between an ellipse and a rectangle, as the tiers of a stadium are. */
function tier(rx: number, ry: number): string {
	const { x, y } = MIDDLE;
	const [cx, cy] = [round(rx * 0.71), round(ry * 0.71)];
	return (
		`M${x + rx} ${y}C${x + rx} ${y + cy} ${x + cx} ${y + ry} ${x} ${y + ry}S${x - rx} ${y + cy} ${x - rx} ${y}` +
		`S${x - cx} ${y - ry} ${x} ${y - ry}S${x + rx} ${y - cy} ${x + rx} ${y}Z`
	);
}

function hills(random: Random, [ground, sun, far, middle, near, train]: Colours): Stroke[] {
	const x = within(random, 150, 285);
	const y = within(random, 84, 106);
	const sway = within(random, 0.7, 1.3);
	const slopes = ([[150, 18, far], [176, 24, middle], [206, 16, near]] as const).map(([top, rise, fill]) => {
		const h = rise * sway;
		const points = [top - h * 2, top + h, top - h * 0.4, top + h, top - h].map(round);
		const d = `M-10 ${top}C90 ${points[0]} 150 ${points[1]} 230 ${points[2]}S360 ${points[3]} 420 ${points[4]}V260H-10Z`;
		return { d, fill };
	});
	return [
		{ d: circle(x, y, 52), fill: sun },
		...several(7, (k) => ({ d: `M${round(x - 54)} ${round(y + k * 8)}h108`, stroke: ground, width: 1 + k * 0.55 })),
		...slopes,
		{ d: 'M-10 222C120 192 250 240 420 192', stroke: sun, width: 2 },
		{ d: 'M-10 228C120 198 250 246 420 198', stroke: sun, width: 7, dash: '2 9', opacity: 0.75 },
		...several(5, (k) => {
			const at = 96 + k * 27;
			const d = rounded(at, 200 + Math.sin(k * 0.7 + 1.2) * 4, 23, 13, 3);
			return { d, fill: train, transform: `rotate(${round(2 + k * 1.6)} ${at} 206)` };
		}),
	];
}

function pitch(random: Random, [ground, a, b, ball, c, field]: Colours): Stroke[] {
	const tiers = [a, b, ball, c];
	const shift = Math.floor(random() * 4);
	const isRound = random() < 0.5;
	const lines = `M200 82v86M160 82v86M240 82v86${isRound ? circle(200, 125, 24) : ''}`;
	return [
		...several(8, (back) => {
			const k = 7 - back;
			const stroke = tiers[(k + shift) % 4] as string;
			return { d: tier(110 + k * 26, 62 + k * 22), stroke, width: 11, dash: `${[17, 21, 15, 25][k % 4]} 4` };
		}),
		{ d: rounded(122, 82, 156, 86, 5), fill: field },
		{ d: lines, stroke: ground, width: 1.6, opacity: 0.5 },
		isRound
			? { d: circle(200, 125, 13), fill: ball }
			: { d: 'M180 125a20 12.5 0 1 0 40 0a20 12.5 0 1 0-40 0Z', fill: ball, transform: 'rotate(-28 200 125)' },
	];
}

function bars(random: Random, [, moon, bar, accent]: Colours): Stroke[] {
	const x = within(random, 170, 230);
	return [
		{ d: circle(x, 120, within(random, 78, 96)), fill: moon },
		...several(25, (k) => {
			const height = 16 + Math.exp(-(((k - 12) / 8) ** 2)) * 108 * within(random, 0.55, 1.15);
			return { d: rounded(26 + k * 14.5, 125 - height / 2, 7.4, height, 3.7), fill: k % 6 === 2 ? accent : bar };
		}),
	];
}

function stars(random: Random, [, dim, bright, gold, land]: Colours): Stroke[] {
	const [x, y] = [within(random, 150, 270), within(random, 50, 84)];
	const trails = several(26, (k) => {
		const r = 14 + k * 11.5;
		const start = random() * 360;
		return several(1 + Math.floor(random() * 3), (j) => {
			const from = ((start + j * 120 + random() * 40) * Math.PI) / 180;
			const to = from + within(random, 0.25, 1.35);
			const point = (angle: number) => `${round(x + Math.cos(angle) * r)} ${round(y + Math.sin(angle) * r)}`;
			const chance = random();
			const stroke = chance < 0.12 ? gold : chance < 0.55 ? dim : bright;
			return { d: `M${point(from)}A${r} ${r} 0 0 1 ${point(to)}`, stroke, width: round(within(random, 1.2, 3.8)) };
		});
	});
	return [...trails.flat(), { d: 'M-10 214Q60 186 120 204T240 196T420 204V260H-10Z', fill: land }];
}

function tiles(random: Random, [ground, ...paints]: Colours): Stroke[] {
	const size = 50;
	const quarters = [
		'h50a50 50 0 0 1-50 50Z',
		'm50 0v50a50 50 0 0 1-50-50Z',
		'm50 50h-50a50 50 0 0 1 50-50Z',
		'm0 50v-50a50 50 0 0 1 50 50Z',
	];
	return several(40, (place) => {
		const [x, y] = [(place % 8) * size, Math.floor(place / 8) * size];
		const fill = paints[Math.floor(random() * 4)] ?? ground;
		const quarter = quarters[Math.floor(random() * 5)];
		if (quarter) return [{ d: `M${x} ${y}${quarter}`, fill }];
		return [
			{ d: circle(x + 25, y + 25, 17), fill },
			{ d: circle(x + 25, y + 25, 8), fill: ground },
		];
	}).flat();
}

function voices(random: Random, [, a, b, c]: Colours): Stroke[] {
	const paints = [a, b, c];
	const shift = Math.floor(random() * 3);
	const y = within(random, 130, 152);
	const isUpFirst = random() < 0.5;
	return [118, 286].flatMap((x, side) =>
		several(6, (back) => {
			const r = (6 - back) * 19;
			const sweep = (side === 0) === isUpFirst ? 1 : 0;
			const d = `M${x - r} ${round(y)}A${r} ${r} 0 0 ${sweep} ${x + r} ${round(y)}Z`;
			return { d, fill: paints[(back + shift) % 3] as string };
		}),
	);
}

function spots(random: Random, [, left, middle, right, floor, seat]: Colours): Stroke[] {
	const lean = within(random, 16, 24);
	const beams = [[70, -lean, left], [200, within(random, -6, 6), middle], [330, lean, right]] as const;
	return [
		...beams.map(([x, turn, fill]) => ({
			d: 'M0-20L66 260H-66Z',
			fill,
			opacity: 0.8,
			transform: `translate(${x}) rotate(${round(turn)})`,
		})),
		{ d: 'M50 208a150 26 0 1 0 300 0a150 26 0 1 0-300 0Z', fill: floor },
		...several(13, (place) => {
			const i = place - 6;
			return { d: rounded(200 + i * 26 - 9, 226 - i * i * 0.55, 18, 40, 7), fill: seat };
		}),
	];
}

function petals(random: Random, [ground, a, b, c, d, halo]: Colours): Stroke[] {
	const bloom = flower(String(random()));
	const [x, y] = [within(random, 190, 235), within(random, 115, 135)];
	const at = `translate(${round(x)} ${round(y)})`;
	const rows = [...new Set(bloom.petals.map((petal) => petal.path))];
	return [
		{ d: circle(x, y, 204), fill: halo, opacity: 0.55 },
		...bloom.petals.map(({ path, turn }) => ({
			d: path,
			fill: [a, b, c, d][rows.indexOf(path)] ?? a,
			stroke: ground,
			width: 1.6,
			transform: `${at} rotate(${turn})`,
		})),
		{ d: circle(x, y, bloom.heart), fill: ground },
		{ d: bloom.seeds.map((dot) => circle(x + dot.x, y + dot.y, 1.7)).join(''), fill: d },
	];
}

const DRAWINGS = { hills, pitch, bars, stars, tiles, voices, spots, petals };

/** The ground first; a drawing takes what it needs of the rest. */
const PALETTES: Record<Family, readonly Colours[]> = {
	hills: [
		['#123a52', '#f6bf5f', '#1b5368', '#124458', '#0c2f42', '#ee7d57'],
		['#4a1f4f', '#ff9e6b', '#6b2f63', '#57265a', '#36153f', '#ffd08a'],
		['#bfe0dd', '#f4a24c', '#5fa39d', '#3b827f', '#1f5f61', '#c8455f'],
	],
	pitch: [
		['#103f33', '#1d6b50', '#2b8a63', '#f2c14e', '#e9e1cf', '#175843'],
		['#16244f', '#27407f', '#3f66b5', '#f58a5b', '#e8e4f2', '#1f5a4a'],
	],
	bars: [
		['#1d1440', '#4b35a8', '#f3b0c8', '#f9c65a', '#0a1130', '#7a4fc0'],
		['#0f3b3f', '#14686a', '#f2d7a6', '#f27d57', '#0a2629', '#2f9c94'],
		['#f6dccb', '#e9a58c', '#7a2f57', '#c5523a', '#7a2f57', '#e6a13c'],
	],
	stars: [
		['#101a45', '#40559f', '#a7b8f5', '#ffd88f', '#0a1130', '#20306f'],
		['#2b1238', '#7b4a8f', '#e0b8ee', '#ffc98a', '#190a22', '#4b1a58'],
	],
	tiles: [
		['#f2dcc4', '#c5523a', '#6e7a2f', '#7a2f57', '#e6a13c', '#c5523a'],
		['#d6ece6', '#0f7a70', '#ef7d52', '#f2b94a', '#2f5f9e', '#0f7a70'],
		['#ece3f4', '#6e3488', '#d9475c', '#3f66b5', '#f2a65a', '#6e3488'],
	],
	voices: [
		['#f7d9cf', '#e2604f', '#7a2f57', '#f2a65a', '#e2604f', '#7a2f57'],
		['#dcebd9', '#2b8a63', '#16535a', '#f2b94a', '#2b8a63', '#16535a'],
		['#1d1440', '#7a4fc0', '#f3b0c8', '#4b35a8', '#7a4fc0', '#f3b0c8'],
	],
	spots: [
		['#2a1036', '#c8455f', '#f5b04d', '#7a4fc0', '#f8dfae', '#120719'],
		['#0d2a3a', '#1f7f8c', '#f2d08a', '#3f66b5', '#f4e6c8', '#06141d'],
	],
	petals: [
		['#34103f', '#8c2f6b', '#d9475c', '#f58a3c', '#fcc65b', '#4b1a58'],
		['#0f3b3f', '#1f6f6b', '#4fa58f', '#f2b94a', '#fbe3a4', '#14686a'],
	],
};

const SUITABLE: Record<string, readonly Family[]> = {
	theatre: ['spots', 'hills', 'voices'],
	music: ['bars', 'voices', 'stars'],
	sport: ['pitch'],
	family: ['tiles', 'stars', 'hills'],
	festival: ['petals', 'tiles'],
	talk: ['voices', 'tiles'],
};
const ANY: readonly Family[] = ['hills', 'stars', 'tiles', 'voices', 'petals'];

export function drawingOf({ id, category, cover }: Subject): Drawing {
	const words = cover?.trim().toLowerCase().split(/\s+/) ?? [];
	const asked = words[0] !== undefined && Object.hasOwn(DRAWINGS, words[0]) ? (words[0] as Family) : null;
	const random = randomFrom((asked ? words.slice(1) : words).join(' ') || id);
	const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
	const suitable = pick((category !== null && Object.hasOwn(SUITABLE, category) && SUITABLE[category]) || ANY);
	const family = asked ?? suitable;
	const colours = pick(PALETTES[family]);
	return { family, ground: colours[0], strokes: DRAWINGS[family](random, colours) };
}
