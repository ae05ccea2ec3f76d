import { afterEach, describe, expect, it } from 'vitest';
import base from '../i18n/en.json';
import { i18n } from '../i18n/i18n.svelte.ts';
import map from '../map/words/en.json';
import af from './words/af.json';
import en from './words/en.json';
import { percent, t } from './words.ts';

const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();
const plain = (words: string) => words.replace(/[\u00a0\u202f]/g, ' ');
afterEach(() => i18n.choose('en'));

describe('the words of the room', () => {
	it('are the same in both languages, and none stands with the words of other pages', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
		expect(Object.keys(en).filter((key) => key in base || key in map)).toEqual([]);
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});

	it('know one from many, and follow the language', () => {
		expect([t('room.choice', { count: 1 }), t('room.choice', { count: 3 })]).toEqual(['1 seat chosen', '3 seats chosen']);
		i18n.choose('af');
		expect([t('room.sold'), t('map.mode.list'), t('common.close')]).toEqual(['Verkoop', 'Lys', 'Maak toe']);
	});
});

it('shares are rounded so that nothing is told as all, or as nothing, that is not', () => {
	expect([percent(250, 352), percent(0, 5), percent(5, 5), percent(3, 0)].map(plain)).toEqual(['71%', '0%', '100%', '–']);
	expect([percent(1, 1000), percent(999, 1000)].map(plain)).toEqual(['0,1%', '99,9%']);
});
