import { beforeEach, describe, expect, it } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import { blockOf, fieldOf, numberOf, oneMore, sayFault, specOf, TEMPLATES, type Draft } from './draft.ts';

const hall = (...blocks: Draft['blocks']): Draft => ({ name: ' Hall ', stage: { kind: 'none', width: '1', depth: '1' }, blocks });
const fault = (path: string, code: string, message = '') => ({ path, code, message, hint: '' });

beforeEach(() => i18n.choose('en'));

describe('a draft as a spec', () => {
	it('begins with a theatre', () => {
		const { spec, faults } = specOf(TEMPLATES.theatre());

		expect(faults).toEqual([]);
		expect(spec.blocks).toMatchObject([
			{ kind: 'rows', code: 'STALLS', rows: 12, seats: 16, seats_step: 1, distance: 450, segments: [1, 2, 1], wheelchair_spaces: 4, wheelchair_row: -1 },
			{ kind: 'rows', code: 'BALCONY', rows: 4, row_scheme: 'custom', row_names: ['AA', 'BB', 'CC', 'DD'], seat_scheme: 'continental' },
		]);
		expect(spec.shapes).toMatchObject([{ kind: 'stage', label: 'Stage' }]);
	});

	it('sends metres as centimetres, with a comma or a point', () => {
		expect(['4.5', '4,5', '-2', '−0.25', '18'].map((typed) => numberOf(typed, 'distance'))).toEqual([450, 450, -200, -25, 1800]);
		expect(['', 'x', '4.555', '1e3', '--2'].map((typed) => numberOf(typed, 'distance'))).toEqual([null, null, null, null, null]);
		expect(['12', '1.5', ''].map((typed) => numberOf(typed, 'rows'))).toEqual([12, null, null]);
	});

	it('bends a row by its share of half a circle', () => {
		const straight = blockOf('rows', 'A', { curve: '0' });
		const half = blockOf('rows', 'B', { curve: '100', seats: '20', seat_pitch: '50' }, { aisles: 'none' });
		const { spec } = specOf(hall(straight, half));

		expect(spec.blocks.map((block) => 'curve_radius' in block && block.curve_radius)).toEqual([null, Math.round(1_000 / Math.PI)]);
	});

	it('gives each block a code of its own, made from its name', () => {
		const { spec } = specOf(hall(blockOf('rows', 'Süd-Tribüne!'), blockOf('rows', 'süd tribüne'), blockOf('area', ' ')));

		expect(spec.blocks.map(({ code }) => code)).toEqual(['SUD-TRIBUNE', 'SUD-TRIBUNE-2', 'ZONE']);
	});

	it.each([
		['rows', false, '', 'reserved_seating', 'public'],
		['tables', false, 'gold', 'vip_reserved', 'membership_tier'],
		['area', false, '', 'ga_standing', 'public'],
		['area', true, 'gold', 'ga_seated', 'membership_tier'],
		['area', false, 'gold', 'vip_standing', 'membership_tier'],
	] as const)('makes %s, seated %s, for members of “%s”, a %s zone', (kind, is_seated, membership_tier, zone_type, access_mode) => {
		const { spec } = specOf(hall(blockOf(kind, 'A', {}, { is_seated, membership_tier })));

		expect(spec.blocks[0]).toMatchObject({ zone_type, access_mode, membership_tier: membership_tier || null });
	});

	it('draws an area where it is put', () => {
		const { spec } = specOf(hall(blockOf('area', 'Pit', { width: '10', depth: '4', distance: '3', offset: '1' })));

		expect(spec.blocks[0]).toMatchObject({ outline: [[-400, 300], [600, 300], [600, 700], [-400, 700]] });
	});

	it('says which numbers are none, by the path that the server would use', () => {
		const draft = { ...hall(blockOf('rows', 'A', { seats: 'many', distance: '' })), stage: { kind: 'stage' as const, width: '0', depth: '3' } };

		expect(specOf(draft).faults.map(({ path }) => path)).toEqual(['blocks[0].seats', 'blocks[0].distance', 'stage.width']);
	});

	it('puts one more block behind all others', () => {
		const draft = hall(blockOf('rows', 'A', { rows: '10', row_pitch: '100', distance: '4' }));

		expect(oneMore(draft, 'tables').numbers.distance).toBe('16.5');
	});
});

describe('a fault', () => {
	it.each([
		['blocks[1].seats', '1.seats'],
		['blocks[0].curve_radius', '0.curve'],
		['blocks[2].row_names[3]', '2.row_names'],
		['blocks[2].code', '2.name'],
		['zones[1].rows[0].seats[3]', '1.'],
		['blocks', 'blocks'],
		['name', 'name'],
	])('at %s belongs to the field %s', (path, field) => {
		expect(fieldOf(path)).toBe(field);
	});

	it('is said in the words and the units of the form', () => {
		expect(sayFault(fault('', 'out_of_range', 'rows is 0, not between 1 and 1000.'), 'rows')).toBe('Between 1 and 1000.');
		expect(sayFault(fault('', 'out_of_range', 'distance is -1, not between 0 and 100000.'), 'distance')).toBe('Between 0 and 1000.');
		expect(sayFault(fault('', 'out_of_range', 'curve_radius is 1, not between 9 and 99.'), 'curve')).toMatch(/flatter/);
		expect(sayFault(fault('', 'not_a_number'), 'rows')).toBe('Give a whole number.');
		expect(sayFault(fault('', 'seat_overlap', 'raw'), '')).toMatch(/stand where others are/);
		expect(sayFault(fault('', 'too_many', 'As the server says.'), '')).toBe('As the server says.');
	});
});
