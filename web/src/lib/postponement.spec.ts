import { beforeEach, expect, it } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import { REASONS, reasonWords } from './postponement.ts';

beforeEach(() => i18n.choose('en'));

it('translates the reasons everybody knows', () => {
	for (const reason of REASONS) expect(reasonWords(reason)).not.toBe(reason);
	expect(reasonWords('low_sales')).toBe('Too few tickets were sold');
	i18n.choose('af');
	expect(reasonWords('weather')).toBe('Slegte weer');
});

it.each(['Die dak lek.', 'constructor', ''])('quotes anything else as it was written, such as %j', (reason) => {
	expect(reasonWords(reason)).toBe(reason);
});
