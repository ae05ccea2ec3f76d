import { describe, expect, it } from 'vitest';
import small from '../layouts/fixtures/small.json';
import { decode } from '../layouts/geometry.ts';
import { runsOf, seatsOf } from './labels.ts';

// Stalls have the rows A (4 seats, ordinals 0 to 3) and B (6 seats, 4 to 9), Members a row A (3 seats, 10 to 12).
const geometry = decode(small.document);
const codes = new Map([[geometry.zones[0]?.zone_id ?? '', 'S']]);
const read = (text: string) => seatsOf(text, geometry, codes);
const words = (text: string) => read(text).unknown.map((one) => [one.words, one.why]);

describe('a list of seats', () => {
	it.each([
		['Stalls A 1', [0]],
		['stalls a 1-3', [0, 1, 2]],
		['S A 2 – 4', [1, 2, 3]],
		['Stalls: A 1-2, B 3', [0, 1, 6]],
		['Stalls A 1, 3, B 5-6', [0, 2, 8, 9]],
		['Stalls A 1; Members A 2\nB 1', [0, 11]],
		['Stalls A 4-2', [1, 2, 3]],
		['Stalls A 1 3', [0, 2]],
		['Stalls B', [4, 5, 6, 7, 8, 9]],
		['B 2', [5]],
		['Stalls A 1, Stalls A 1-2', [0, 1]],
		['', []],
	])('reads %j', (text, ordinals) => {
		expect(read(text).ordinals).toEqual(ordinals);
	});

	it.each([
		['A 1', [['A 1', 'which']]],
		['Gallery A 1', [['Gallery A 1', 'zone']]],
		['Stalls', [['Stalls', 'bare']]],
		['Stalls Z 1', [['Stalls Z 1', 'row']]],
		['Stalls A 9', [['Stalls A 9', 'seat']]],
		['Stalls A 1-9', [['Stalls A 1-9', 'seat']]],
		['Pit A 1', [['Pit A 1', 'row']]],
	])('says what it does not know in %j', (text, unknown) => {
		expect(words(text)).toEqual(unknown);
	});

	it('keeps what it found beside what it does not know', () => {
		expect(read('Stalls A 1, A 99, B 2')).toEqual({ ordinals: [0, 5], unknown: [{ words: 'A 99', why: 'seat' }] });
	});

	it('is written as runs of neighbours, and read again', () => {
		const runs = runsOf([9, 0, 1, 3, 11], geometry);

		expect(runs.map(({ zone, row, seats }) => `${zone} ${row} ${seats}`)).toEqual(['Stalls A 1–2', 'Stalls A 4', 'Stalls B 6', 'Members A 2']);
		expect(read(runs.map(({ zone, row, seats }) => `${zone} ${row} ${seats}`).join(', ')).ordinals).toEqual([0, 1, 3, 9, 11]);
	});

	it('counts by number in rows that are not counted from the left', () => {
		const document = { ...small.document, label_patterns: [['3', '1', '2', '4', '6', '8']] };
		const odd = decode(document);

		expect(seatsOf('Stalls A 1-3', odd).ordinals.map((seat) => odd.label(seat)).sort()).toEqual(['1', '2', '3']);
	});
});
