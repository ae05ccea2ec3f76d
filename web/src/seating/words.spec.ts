import { describe, expect, it } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import base from '../i18n/en.json';
import layouts from '../layouts/words/en.json';
import { grouped, sayValue } from './fields.ts';
import af from './words/af.json';
import en from './words/en.json';
import { explainField, sayFault, sayField, t } from './words.ts';

const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();

describe('the words of the seating pages', () => {
	it('are the same in both languages, and none stands with the words of other pages', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
		expect(Object.keys(en).filter((key) => key in base || key in layouts)).toEqual([]);
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});

	it('follow the language, with those of layouts and of every page', () => {
		i18n.choose('af');
		expect([t('seating.title'), t('layout.zones'), t('common.close')]).toEqual(['Sitplekke', 'Sones', 'Maak toe']);
		i18n.choose('en');
		expect([t('seating.title'), t('layout.zones'), t('common.close')]).toEqual(['Seating', 'Zones', 'Close']);
	});

	it('say a fault by its kind where it is known, and by the server’s words otherwise', () => {
		const fault = { path: '$', message: 'raw words', hint: '' };
		expect(sayFault({ ...fault, code: 'named_twice' })).toBe('It is named twice.');
		expect(sayFault({ ...fault, code: 'something_new' })).toBe('raw words');
	});

	it('know every field of a policy, and name one that is new by its own name', () => {
		expect(sayField('allow_vip_zones')).toBe('VIP zones');
		expect(sayField('some_new_field')).toBe('some new field');
		expect(explainField('some_new_field')).toBe('');
		expect([sayValue(true), sayValue(null), sayValue(12), sayValue(['public', 'whitelist'])]).toEqual(['Yes', 'No limit', '12', 'Everybody, People on a list']);
	});

	it('put fields into groups, and hide the list of locks', () => {
		const groups = grouped([{ name: 'max_group_split' }, { name: 'locked_fields' }, { name: 'allow_vip_zones' }, { name: 'some_new_field' }]);
		expect(groups.map(([group, fields]) => [group, fields.map(({ name }) => name)])).toEqual([
			['offer', ['allow_vip_zones']],
			['together', ['max_group_split']],
			['access', ['some_new_field']],
		]);
	});
});
