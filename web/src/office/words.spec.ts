import { describe, expect, it } from 'vitest';
import base from '../i18n/en.json';
import { i18n } from '../i18n/i18n.svelte.ts';
import { KINDS, TOPICS } from './facts.ts';
import af from './words/af.json';
import en from './words/en.json';
import { isWordKey, t } from './words.ts';

const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();

describe('the words of the office', () => {
	it('are the same in both languages, and none stands with the words of other pages', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
		expect(Object.keys(en).filter((key) => key in base)).toEqual([]);
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});

	it('have a name and a sentence for every kind of fact', () => {
		const kinds = TOPICS.flatMap((topic) => KINDS[topic] as readonly string[]);
		expect(kinds.filter((kind) => !isWordKey(`journal.name.${kind}`) || !isWordKey(`journal.kind.${kind}`))).toEqual([]);
	});

	it('know one from many, and follow the language', () => {
		expect([t('home.sum.drafts', { count: 1 }), t('home.sum.drafts', { count: 3 })]).toEqual(['1 draft', '3 drafts']);
		i18n.choose('af');
		expect([t('office.journal'), t('common.close')]).toEqual(['Joernaal', 'Maak toe']);
		i18n.choose('en');
	});
});
