import { describe, expect, it } from 'vitest';
import base from '../i18n/en.json';
import { i18n } from '../i18n/i18n.svelte.ts';
import af from './words/af.json';
import en from './words/en.json';
import { t } from './words.ts';

const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();

describe('the words of the panel', () => {
	it('are the same in both languages, and none stands with the words of other pages', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
		expect(Object.keys(en).filter((key) => key in base)).toEqual([]);
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		if (!key.endsWith('.one')) expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});

	it('know one from many, and follow the language', () => {
		expect([t('demo.deaths', { count: 1 }), t('demo.deaths', { count: 3 })]).toEqual(['died once', 'died 3 times']);
		i18n.choose('af');
		expect(t('demo.crowd')).toBe('Die skare');
		i18n.choose('en');
	});
});
