import { describe, expect, it } from 'vitest';
import { Refusal } from '../api/client.ts';
import base from '../i18n/en.json';
import { i18n } from '../i18n/i18n.svelte.ts';
import map from '../map/words/en.json';
import { sayRefused } from './say.ts';
import af from './words/af.json';
import en from './words/en.json';
import { t } from './words.ts';

const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();
const refused = (code: string, retryAfterS: number | null = null) => new Refusal({ kind: 'refused', code, isEffectKnown: true, retryAfterS });

describe('the words of buying', () => {
	it('are the same in both languages, and none stands with the words of other pages', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
		expect(Object.keys(en).filter((key) => key in base || key in map)).toEqual([]);
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});

	it('know one from many, and follow the language', () => {
		expect([t('buy.held', { count: 1 }), t('buy.held', { count: 3 })]).toEqual(['1 place held for you', '3 places held for you']);
		i18n.choose('af');
		expect([t('buy.basket'), t('map.mode.list'), t('common.close')]).toEqual(['Jou sitplekke', 'Lys', 'Maak toe']);
		i18n.choose('en');
	});

	it('say why something was not held, what it means and what to do', () => {
		expect(sayRefused('Row E, seat 12', refused('seat_no_longer_available'))).toBe('Somebody was faster: Row E, seat 12 was taken at the same moment. Try another seat.');
		expect(sayRefused('Row E, seat 12', refused('rate_limited', 40))).toContain('Try again in 40 seconds.');
		expect(sayRefused('Row E, seat 12', refused('max_seats_exceeded'), 6)).toContain('at most 6');
		expect(sayRefused('Row E, seat 12', new Refusal({ kind: 'network', isEffectKnown: false }))).toContain('We look again by ourselves');
		expect(sayRefused('', refused('holds_expired'))).toBe(base['error.holds_expired']);
	});
});
