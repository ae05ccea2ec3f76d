import { beforeEach, describe, expect, it } from 'vitest';
import contract from '../../../openapi.json';
import { Refusal } from '../api/client.ts';
import af from './af.json';
import en from './en.json';
import { i18n } from './i18n.svelte.ts';
import { say } from './refusals.ts';

const codes: string[] = contract.components.schemas.Problem.properties.error.enum;
const refused = (code: string, facts: object = {}) =>
	new Refusal({ kind: 'refused', code, isEffectKnown: true, requestId: 'request-1', ...facts });

describe('every refusal in the contract', () => {
	it.each(codes)('%s has words in both languages', (code) => {
		const key = `error.${code}` as keyof typeof en;

		expect(en[key]).toMatch(/\w.*[.].*\w.*[.]$|\w.*; .*\w.*[.]$/);
		expect(af[key]).toMatch(/\w.*[.].*\w.*[.]$|\w.*; .*\w.*[.]$/);
		expect(af[key]).not.toBe(en[key]);
	});
});

describe('what is said', () => {
	beforeEach(() => i18n.choose('en'));

	it.each([
		[1, '1 second'],
		[59, '59 seconds'],
		[60, '1 minute'],
		[712, '12 minutes'],
		[3600, '1 hour'],
		[null, 'a little while'],
	])('after %s seconds one may try again in %s', (retryAfterS, words) => {
		expect(say(refused('rate_limited', { retryAfterS }))).toContain(`Try again in ${words}.`);
	});

	it('is Afrikaans where that is chosen', () => {
		i18n.choose('af');

		expect(say(refused('rate_limited', { retryAfterS: 712 }))).toContain('Probeer weer oor 12 minute.');
	});

	it('gives the reference only where we cannot say what happened', () => {
		expect(say(refused('email_taken'))).toBe(en['error.email_taken']);
		expect(say(refused('from_a_newer_server'))).toBe(`${en['error.general']} Reference: request-1`);
		expect(say(refused('outcome_unknown', { isEffectKnown: false }))).toContain('Reference: request-1');
	});

	it('has words for silence and for strangers', () => {
		expect(say(new Refusal({ kind: 'network', isEffectKnown: false }))).toBe(en['error.network']);
		expect(say(new Refusal({ kind: 'unreadable', isEffectKnown: false }))).toBe(en['error.unreadable']);
	});
});
