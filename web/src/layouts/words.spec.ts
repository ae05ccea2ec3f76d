import { describe, expect, it } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import base from '../i18n/en.json';
import af from './words/af.json';
import en from './words/en.json';
import { count, t } from './words.ts';

const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();

describe('the words of the layout pages', () => {
	it('are the same in both languages, and none stands with the words of every page', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
		expect(Object.keys(en).filter((key) => key in base)).toEqual([]);
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});

	it('follow the language, with those of every page', () => {
		i18n.choose('af');
		expect(t('layout.version', { version: 3 })).toBe('Weergawe 3');
		expect(t('common.close')).toBe('Maak toe');
		i18n.choose('en');
		expect(t('layout.version', { version: 3 })).toBe('Version 3');
		expect(count(60_000)).toMatch(/^60\s000$/);
	});
});
