import { beforeEach, describe, expect, it, vi } from 'vitest';
import af from './af.json';
import en from './en.json';
import { I18n } from './i18n.svelte.ts';

const placeholders = (message: string) => (message.match(/\{\w+\}/g) ?? []).sort();

describe('the two languages', () => {
	it('have the same keys', () => {
		expect(Object.keys(af)).toEqual(Object.keys(en));
	});

	it.each(Object.keys(en) as (keyof typeof en)[])('have the same placeholders in %s', (key) => {
		expect(placeholders(af[key])).toEqual(placeholders(en[key]));
	});
});

describe('I18n', () => {
	beforeEach(() => localStorage.clear());

	it('starts in the language of the browser', () => {
		vi.spyOn(navigator, 'language', 'get').mockReturnValue('af-ZA');

		expect(new I18n().language).toBe('af');
		expect(document.documentElement.lang).toBe('af');
	});

	it('starts in English when the browser speaks neither', () => {
		vi.spyOn(navigator, 'language', 'get').mockReturnValue('nl-NL');

		expect(new I18n().language).toBe('en');
	});

	it('remembers the choice, and the choice wins over the browser', () => {
		const i18n = new I18n();
		i18n.choose('af');

		expect(i18n.t('status.ready')).toBe(af['status.ready']);
		expect(document.documentElement.lang).toBe('af');
		vi.spyOn(navigator, 'language', 'get').mockReturnValue('en-ZA');
		expect(new I18n().language).toBe('af');
	});

	it('works when the browser refuses storage', () => {
		vi.spyOn(Storage.prototype, 'getItem').mockImplementation(() => {
			throw new DOMException('refused', 'SecurityError');
		});
		vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
			throw new DOMException('refused', 'SecurityError');
		});
		const i18n = new I18n();
		i18n.choose('af');

		expect(i18n.language).toBe('af');
	});

	it('fills in the placeholders', () => {
		const i18n = new I18n();
		i18n.choose('en');

		expect(i18n.t('status.version', { version: '0.1.0' })).toBe('Version 0.1.0');
		expect(i18n.clock(new Date(2027, 2, 12, 9, 5, 7))).toBe('09:05:07');
	});
});
