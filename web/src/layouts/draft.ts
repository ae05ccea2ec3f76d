// A hall as the fields of the generator's form, and as the spec that the server makes a layout of. Numbers are kept as they
// are typed, so that the form can say what is wrong with them; lengths that people pace out are in metres.
import type { Schemas } from '../api/client.ts';
import type { Fault } from './asking.ts';
import { t } from './words.ts';

export type Kind = 'rows' | 'tables' | 'area';
export type StageKind = 'stage' | 'screen' | 'pitch' | 'none';
type Spec = Schemas['Spec'];
type Block = Spec['blocks'][number];

export const AISLES = { none: [1], centre: [1, 1], two: [1, 2, 1], three: [1, 1, 1, 1] } as const;
export const ROW_SCHEMES = ['letters', 'numbers'] as const;
export const SEAT_SCHEMES = ['left_to_right', 'right_to_left', 'odd_even', 'centre_out', 'continental'] as const;

/** What each number of a block is counted in; metres are sent as centimetres. */
const UNITS = {
	rows: 'whole',
	seats: 'whole',
	seats_step: 'whole',
	curve: 'whole',
	aisle_width: 'whole',
	seat_pitch: 'whole',
	row_pitch: 'whole',
	distance: 'metres',
	offset: 'metres',
	facing: 'whole',
	first_row: 'whole',
	first_number: 'whole',
	wheelchair_spaces: 'whole',
	companions: 'whole',
	tables: 'whole',
	seats_per_table: 'whole',
	tables_per_rank: 'whole',
	table_pitch: 'metres',
	table_radius: 'whole',
	capacity: 'whole',
	width: 'metres',
	depth: 'metres',
} as const;
export type NumberField = keyof typeof UNITS;
export const isMetres = (field: string): boolean => UNITS[field as NumberField] === 'metres';

const NUMBERS: Record<Kind, readonly NumberField[]> = {
	rows: [
		'rows', 'seats', 'seats_step', 'curve', 'aisle_width', 'seat_pitch', 'row_pitch', 'distance', 'offset', 'facing',
		'first_row', 'first_number', 'wheelchair_spaces', 'companions',
	],
	tables: ['tables', 'seats_per_table', 'tables_per_rank', 'table_pitch', 'table_radius', 'distance', 'facing'],
	area: ['capacity', 'width', 'depth', 'distance', 'offset'],
};

export interface BlockDraft {
	/** Tells blocks apart while they are moved about. */
	readonly key: string;
	readonly kind: Kind;
	name: string;
	numbers: Record<NumberField, string>;
	aisles: keyof typeof AISLES;
	row_scheme: string;
	/** Instead of a scheme, where there is something here: AA, BB, CC. */
	row_names: string;
	seat_scheme: string;
	wheelchair_row: 'front' | 'back';
	is_seated: boolean;
	/** Empty: everybody may book. */
	membership_tier: string;
}

export interface Draft {
	name: string;
	stage: { kind: StageKind; width: string; depth: string };
	blocks: BlockDraft[];
}

const DEFAULTS: Record<NumberField, string> = {
	rows: '10', seats: '20', seats_step: '0', curve: '20', aisle_width: '110', seat_pitch: '55', row_pitch: '95', distance: '4',
	offset: '0', facing: '90', first_row: '1', first_number: '1', wheelchair_spaces: '0', companions: '1',
	tables: '12', seats_per_table: '8', tables_per_rank: '4', table_pitch: '3.5', table_radius: '110',
	capacity: '300', width: '20', depth: '8',
};
const STAGE_FRONT_CM = 200;
const BETWEEN_M = 2.5;
const HALF_CIRCLE = Math.PI;
const RADIUS_MAX_CM = 1_000_000;

let made = 0;

export function blockOf(kind: Kind, name: string, numbers: Partial<Record<NumberField, string>> = {}, over: Partial<BlockDraft> = {}): BlockDraft {
	return {
		key: `block-${++made}`,
		kind,
		name,
		numbers: { ...DEFAULTS, ...numbers },
		aisles: 'two',
		row_scheme: 'letters',
		row_names: '',
		seat_scheme: 'left_to_right',
		wheelchair_row: 'back',
		is_seated: false,
		membership_tier: '',
		...over,
	};
}

/** The halls that a draft can begin with; each can be changed in every part. */
export const TEMPLATES = {
	theatre: (): Draft => ({
		name: t('layout.template.theatre.name'),
		stage: { kind: 'stage', width: '12', depth: '3.5' },
		blocks: [
			blockOf('rows', t('layout.block.stalls'), {
				rows: '12', seats: '16', seats_step: '1', curve: '32', distance: '4.5', wheelchair_spaces: '4',
			}),
			blockOf(
				'rows',
				t('layout.block.balcony'),
				{ rows: '4', seats: '23', curve: '19', distance: '18.5' },
				{ row_names: 'AA, BB, CC, DD', seat_scheme: 'continental' },
			),
		],
	}),
	tables: (): Draft => ({
		name: t('layout.template.tables.name'),
		stage: { kind: 'stage', width: '10', depth: '3' },
		blocks: [
			blockOf('tables', t('layout.block.tables'), { tables: '20', tables_per_rank: '5', distance: '5' }),
			blockOf('rows', t('layout.block.gallery'), { rows: '3', seats: '26', curve: '0', distance: '19.5' }, { aisles: 'centre' }),
		],
	}),
	festival: (): Draft => ({
		name: t('layout.template.festival.name'),
		stage: { kind: 'stage', width: '20', depth: '6' },
		blocks: [
			blockOf(
				'rows',
				t('layout.block.orchestra'),
				{ rows: '10', seats: '30', curve: '10', distance: '29.5', wheelchair_spaces: '4' },
				{ wheelchair_row: 'front' },
			),
			blockOf('area', t('layout.block.floor'), { capacity: '400', width: '32', depth: '13', distance: '14' }, { is_seated: true }),
			blockOf('area', t('layout.block.pit'), { capacity: '300', width: '30', depth: '9', distance: '3.5' }),
			blockOf(
				'rows',
				t('layout.block.vip'),
				{ rows: '5', seats: '10', curve: '8', distance: '27', facing: '30', seat_pitch: '70', row_pitch: '120', wheelchair_spaces: '1' },
				{ aisles: 'none', membership_tier: 'voelgoed_vriendinne' },
			),
		],
	}),
} as const;
export type TemplateName = keyof typeof TEMPLATES;

/** Made by the server as they are: too many sections to change one by one. */
export const READY_MADE = ['arena-20k', 'stadium-60k', 'stadium-100k'] as const;
export type ReadyMade = (typeof READY_MADE)[number];

/** A block more, behind all that is there. */
export function oneMore(draft: Draft, kind: Kind): BlockDraft {
	const behind = Math.max(1.5, ...draft.blocks.map(endOf)) + BETWEEN_M;
	const names = { rows: t('layout.block.rows'), tables: t('layout.block.tables'), area: t('layout.block.standing') };
	const numbers = { distance: String(Math.round(behind * 10) / 10), rows: '6' };
	return blockOf(kind, names[kind], kind === 'rows' ? numbers : { distance: numbers.distance });
}

/** How far from the stage a block reaches, in metres. */
function endOf(block: BlockDraft): number {
	const of = (field: NumberField) => numberOf(block.numbers[field], field) ?? 0;
	const deep = {
		rows: (of('rows') * of('row_pitch')) / 100,
		tables: Math.ceil(of('tables') / Math.max(1, of('tables_per_rank'))) * (of('table_pitch') / 100),
		area: of('depth') / 100,
	}[block.kind];
	return of('distance') / 100 + deep;
}

/** What was typed as a number for the server; null when it is none. */
export function numberOf(typed: string, field: string): number | null {
	const text = typed.trim().replace(',', '.').replace(/^−/, '-');
	if (isMetres(field)) return /^-?\d{1,5}(\.\d{1,2})?$/.test(text) ? Math.round(Number(text) * 100) : null;
	return /^-?\d{1,7}$/.test(text) ? Number(text) : null;
}

/** What the server is asked for, and what keeps it from being asked. */
export function specOf(draft: Draft): { spec: Spec; faults: Fault[] } {
	const faults: Fault[] = [];
	const codes = new Set<string>();
	const blocks = draft.blocks.map((block, at) => {
		const numbers = {} as Record<NumberField, number>;
		for (const field of NUMBERS[block.kind]) {
			const value = numberOf(block.numbers[field], field);
			if (value === null) faults.push({ path: `blocks[${at}].${field}`, code: 'not_a_number', message: '', hint: '' });
			numbers[field] = value ?? 0;
		}
		return sent(block, numbers, codeOf(block.name, codes));
	});
	return { spec: { name: draft.name.trim(), blocks, shapes: shapesOf(draft, faults) }, faults };
}

function sent(block: BlockDraft, n: Record<NumberField, number>, code: string): Block {
	const tier = block.membership_tier.trim();
	const zone = {
		code,
		name: block.name.trim(),
		access_mode: tier === '' ? ('public' as const) : ('membership_tier' as const),
		membership_tier: tier === '' ? null : tier,
		allowed_roles: [],
		focal_point: [0, 0] as [number, number],
	};
	if (block.kind === 'area') {
		const zone_type = block.is_seated ? 'ga_seated' : tier === '' ? 'ga_standing' : 'vip_standing';
		return { ...zone, kind: 'area', zone_type, capacity: n.capacity, outline: outlineOf(n) };
	}
	const zone_type = tier === '' ? 'reserved_seating' : 'vip_reserved';
	if (block.kind === 'tables') {
		const { tables, seats_per_table, tables_per_rank, table_pitch, table_radius, distance, facing } = n;
		return {
			...zone, zone_type, kind: 'tables', tables, seats_per_table, tables_per_rank, table_pitch, table_radius, distance, facing,
			group_kind: 'vip_table', label: 'T',
		};
	}
	const { curve, width: _, depth: __, ...numbers } = n;
	const segments = [...AISLES[block.aisles]];
	const wide = n.seats * n.seat_pitch + (segments.length - 1) * n.aisle_width;
	const row_names = block.row_names.split(',').map((name) => name.trim()).filter(Boolean);
	return {
		...zone,
		...numbers,
		zone_type,
		kind: 'rows',
		seat_counts: [],
		curve_radius: curve > 0 ? Math.min(RADIUS_MAX_CM, Math.round(wide / ((HALF_CIRCLE * curve) / 100))) : null,
		segments,
		row_scheme: (row_names.length > 0 ? 'custom' : block.row_scheme) as Schemas['RowScheme'],
		row_names,
		seat_scheme: block.seat_scheme as Schemas['SeatScheme'],
		seat_names: [],
		wheelchair_row: block.wheelchair_row === 'front' ? 0 : -1,
	};
}

function outlineOf({ width, depth, distance, offset }: Record<NumberField, number>): [number, number][] {
	const [left, right] = [offset - Math.round(width / 2), offset + Math.round(width / 2)];
	return [[left, distance], [right, distance], [right, distance + depth], [left, distance + depth]];
}

function shapesOf(draft: Draft, faults: Fault[]): Spec['shapes'] {
	const { kind } = draft.stage;
	if (kind === 'none') return [];
	const [width, depth] = [numberOf(draft.stage.width, 'width'), numberOf(draft.stage.depth, 'depth')];
	for (const [field, value] of Object.entries({ width, depth })) {
		if (value === null || value <= 0) faults.push({ path: `stage.${field}`, code: 'not_a_number', message: '', hint: '' });
	}
	const [half, back] = [Math.round((width ?? 0) / 2), STAGE_FRONT_CM - (depth ?? 0)];
	const front = kind === 'stage' ? Math.round(half * 0.75) : half;
	const outline: [number, number][] = [[-half, back], [half, back], [front, STAGE_FRONT_CM], [-front, STAGE_FRONT_CM]];
	return [{ kind, label: t(`layout.shape.${kind}`), outline }];
}

/** A short code from a name, another one for each block: "Stalls left" is STALLS-LEFT. */
function codeOf(name: string, taken: Set<string>): string {
	const plain = name
		.normalize('NFD')
		.replace(/\p{M}/gu, '')
		.toUpperCase()
		.replace(/[^A-Z0-9]+/g, '-')
		.replace(/^-|-$/g, '')
		.slice(0, 30);
	const stem = plain || 'ZONE';
	let code = stem;
	for (let more = 2; taken.has(code); more++) code = `${stem}-${more}`;
	taken.add(code);
	return code;
}

/** The field of the form that a fault's path means: `1.seats`, `name`; a block as a whole is `1.`. */
export function fieldOf(path: string): string {
	const [, block, rest = ''] = /^blocks\[(\d+)\]\.?(.*)$/.exec(path) ?? [];
	if (block !== undefined) return `${block}.${RENAMED[rest.replace(/\[.*$/, '')] ?? rest.replace(/\[.*$/, '')}`;
	// Blocks become zones one by one, so that what is wrong with a zone is wrong with its block.
	const zone = /^zones\[(\d+)\]/.exec(path)?.[1];
	return zone === undefined ? path.replace(/\[.*$/, '') : `${zone}.`;
}
const RENAMED: Readonly<Record<string, string>> = { curve_radius: 'curve', segments: 'aisles', code: 'name', outline: 'width', focal_point: '' };

/** What a fault says in the form; the server's own words where we have none. */
export function sayFault(fault: Fault, field: string): string {
	if (fault.code === 'not_a_number') return t(isMetres(field) ? 'layout.fault.metres' : 'layout.fault.whole');
	if (fault.code === 'seat_overlap') return t('layout.fault.overlap');
	if (field === 'curve') return t('layout.fault.curve');
	if (fault.code === 'blank') return t('layout.fault.blank');
	const [, low, high] = /not between (-?[\d.]+) and (-?[\d.]+)\.$/.exec(fault.message) ?? [];
	if (low === undefined || high === undefined) return fault.message;
	const unit = isMetres(field) ? 100 : 1;
	return t('layout.fault.range', { low: Number(low) / unit, high: Number(high) / unit });
}
