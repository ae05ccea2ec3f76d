import { beforeEach, describe, expect, it } from 'vitest';
import { Refusal } from '../api/client.ts';
import { i18n } from '../i18n/i18n.svelte.ts';
import { makeCard, POSTPONED, RESCHEDULED } from './make.ts';
import { addressLines, badgeOf, cardWhen, languageWords, whyNot, zoneOf } from './told.ts';

beforeEach(() => i18n.choose('en'));

describe('the badge', () => {
	const now = new Date('2027-03-01T08:00:00Z');

	it.each([
		[{}, 'On sale'],
		[{ sale_state: 'over' }, 'The sale is over'],
		[{ sale_state: 'not_yet' }, 'Not on sale yet'],
		[{ sale_state: 'not_yet', sale_start_at: '2027-03-05T08:00:00Z' }, 'On sale from 5 Mar 2027'],
		[{ sale_state: 'not_yet', sale_start_at: '2027-03-01T21:00:00Z' }, 'On sale today, 23:00'],
		[{ sale_state: 'not_yet', sale_start_at: '2027-03-01T22:00:00Z' }, 'On sale from 2 Mar 2027'],
		[{ status: 'live' }, 'On now'],
		[POSTPONED, 'Postponed'],
		[RESCHEDULED, 'Postponed to 24 Apr 2027'],
		[{ sale_state: 'closed' }, undefined],
	] as const)('of %j says %s', (over, words) => {
		expect(badgeOf(makeCard(over), now)?.words).toBe(words);
	});
});

describe('when, on a card', () => {
	it('is the day and the time at the venue, or the days', () => {
		expect(cardWhen(makeCard())).toBe('Fri 12 Mar 2027 · 19:30');
		expect(cardWhen(makeCard({ days: ['2027-03-12', '2027-03-13'] }))).toBe('Fri 12 – Sat 13 Mar 2027');
	});

	it('is nothing while there is no date, also not the old one', () => {
		expect(cardWhen(makeCard(POSTPONED))).toBeNull();
	});
});

describe('the zone', () => {
	it('is also said of an event without a date, whose old one is still shown', () => {
		const venue = { ...makeCard().venue, timezone: 'Pacific/Kiritimati' };

		expect(zoneOf(makeCard({ ...POSTPONED, venue }))).toBe('Kiritimati time (GMT+14)');
	});
});

describe('an address', () => {
	it('has as many lines as there is to say', () => {
		const town = { postal_code: '2531', city: 'Potchefstroom', country: 'South Africa' };
		const whole = { street: '12 Kerk Street', suburb: 'Die Bult', ...town };

		expect(addressLines(whole)).toEqual(['12 Kerk Street, Die Bult', '2531 Potchefstroom', 'South Africa']);
		expect(addressLines({ city: 'Potchefstroom', latitude: -26.7, street: ' ' })).toEqual(['Potchefstroom']);
		expect(addressLines({})).toEqual([]);
	});
});

describe('a language', () => {
	it('is named in the language of the person, or as it was written', () => {
		expect(languageWords('zu')).toBe('Zulu');
		expect(languageWords('Afrikaans with English surtitles')).toBe('Afrikaans with English surtitles');
		i18n.choose('af');
		expect(languageWords('en')).toBe('Engels');
	});
});

describe('why it is not shown', () => {
	it('never doubts what was done, since reading does nothing', () => {
		const words = whyNot(new Refusal({ kind: 'network', isEffectKnown: true }));

		expect(words).toContain('Nothing of yours is lost.');
		expect(words).not.toContain('whether this was done');
		expect(whyNot(new Refusal({ kind: 'refused', code: 'busy', isEffectKnown: true }))).toContain('very busy');
	});
});
