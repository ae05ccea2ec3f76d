import { beforeEach, describe, expect, it } from 'vitest';
import base from '../i18n/en.json';
import { i18n } from '../i18n/i18n.svelte.ts';
import { makeCounts, makeGeometry, makeOffer, makeSnapshot } from './make.ts';
import { SeatMapState } from './map.svelte.ts';
import { sayNotice, sayPrice, speakPrice, speakRow, speakSeat, speakSection } from './say.ts';
import af from './words/af.json';
import en from './words/en.json';

const RAND = (rands: number) => ({ amount_minor: Math.round(rands * 100), currency: 'ZAR' });
const plain = (words: string) => words.replace(/[\u00a0\u202f]/g, ' ');
let map: SeatMapState;

beforeEach(() => {
	i18n.choose('en');
	const geometry = makeGeometry([{ name: 'Stalls', rows: 3, seats: 12, at: [0, 100] }], { categories: { wheelchair: [35], companion: [34] }, companions: [[34, 35]] });
	map = new SeatMapState(geometry, makeOffer(1, [450]));
	map.load(makeSnapshot([1, 2, 3, ...Array.from({ length: 33 }, () => 0)], { zones: [makeCounts(0, 33, 36, 1)] }));
});

describe('what is spoken', () => {
	it('names a seat with its place, price, state and kind', () => {
		expect(plain(speakSeat(map, 35))).toBe('Stalls, row C, seat 12, 450 rand, available, wheelchair space');
		expect(plain(speakSeat(map, 0))).toBe('Stalls, row A, seat 1, 450 rand, held by someone else');
		expect(plain(speakSeat(map, 1))).toBe('Stalls, row A, seat 2, 450 rand, sold');
		map.hold([35]);
		expect(plain(speakSeat(map, 35))).toBe('Stalls, row C, seat 12, 450 rand, yours, wheelchair space');
		expect(plain(speakSeat(map, 34))).toBe('Stalls, row C, seat 11, 450 rand, available, companion seat, reserved for you');
	});

	it('says of a seat that another holds when it may come back, and only of that one', () => {
		map.awaited = { seat: 0, minutes: 4 };
		expect(plain(speakSeat(map, 0))).toBe('Stalls, row A, seat 1, 450 rand, held by someone else, may come back within 4 minutes');
		map.awaited = { seat: 0, minutes: 1 };
		expect(speakSeat(map, 0)).toContain('may come back within a minute');
		map.apply({ mapVersion: 2, ordinals: [0], statuses: [0] });
		expect([speakSeat(map, 0), speakSeat(map, 1)].join()).not.toContain('come back');
	});

	it('tells those who run the event what a seat is, beside whether they have chosen it', () => {
		const desk = new SeatMapState(map.hall.geometry, [], { isDesk: true });
		desk.load(makeSnapshot([1, 2, 3, ...Array.from({ length: 33 }, () => 0)]));
		desk.hold([1, 35]);
		expect([0, 1, 2, 3].map((seat) => speakSeat(desk, seat).split(', ').slice(3).join(', '))).toEqual(['held', 'chosen, sold', 'out of sale', 'available']);
		expect(speakSeat(desk, 34)).toBe('Stalls, row C, seat 11, available, companion seat');
	});

	it('does so in Afrikaans', () => {
		i18n.choose('af');
		expect(plain(speakSeat(map, 35))).toBe('Stalls, ry C, sitplek 12, 450 rand, beskikbaar, rolstoelplek');
	});

	it('says of rows and sections what is left', () => {
		expect(speakRow(map, 0)).toBe('Row A, 9 of 12 available');
		expect(plain(speakSection(map, map.hall.sections[0] as never))).toBe('Stalls, 450 rand, 33 of 36 left');
	});

	it('leaves out what is not known', () => {
		map.sell([]);
		expect(speakSeat(map, 5)).toBe('Stalls, row A, seat 6, available');
	});

	it('gives a reason by its code, and any other in its own words', () => {
		expect(sayNotice(map, { seat: 5, reason: 'gone' })).toMatch(/^Row A, seat 6 was taken a moment before you/);
		expect(sayNotice(map, { seat: 5, reason: 'The doors are closed.' })).toBe('The doors are closed.');
	});
});

it('writes money for the eye and for the ear', () => {
	expect([plain(sayPrice(RAND(450))), plain(sayPrice(RAND(99.5)))]).toEqual(['R 450', 'R 99,50']);
	expect([plain(speakPrice(RAND(1))), plain(speakPrice(RAND(1250)))]).toEqual(['1 rand', '1 250 rand']);
	expect(plain(speakPrice({ amount_minor: 500, currency: 'USD' }))).toBe('5 US dollars');
});

describe('the words of the map', () => {
	const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();

	it('are the same in both languages, and none stands with the words of every page', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
		expect(Object.keys(en).filter((key) => key in base)).toEqual([]);
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});
});
