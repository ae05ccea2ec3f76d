import { beforeEach, describe, expect, it } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import { minorOf, sayMoney, typedOf } from './money.ts';

beforeEach(() => i18n.choose('en'));

describe('money', () => {
	it.each([
		['450', 45_000],
		['450.5', 45_050],
		['450,50', 45_050],
		['R 1 250,50', 125_050],
		['1,250.50', 125_050],
		['ZAR 12', 1200],
		['0', 0],
		['0.05', 5],
		['10000000', 1_000_000_000],
	])('is read from %j', (text, minor) => {
		expect(minorOf(text)).toBe(minor);
	});

	it.each(['', 'R', '-5', '4.505', '1.2.3', '4e2', 'free', '10000000.01', '0x10'])('is not read from %j', (text) => {
		expect(minorOf(text)).toBeNull();
	});

	it('knows currencies without small change', () => {
		expect(minorOf('1200', 'JPY')).toBe(1200);
		expect(minorOf('1200.5', 'JPY')).toBeNull();
		expect(typedOf(1200, 'JPY')).toBe('1200');
	});

	it('is typed again as it was, and read by people in their way', () => {
		for (const minor of [0, 5, 4500, 45_050, 125_005]) expect(minorOf(typedOf(minor))).toBe(minor);
		expect(sayMoney({ amount_minor: 45_000, currency: 'ZAR' }).replace(/\s/g, ' ')).toBe('R 450');
		expect(sayMoney({ amount_minor: 45_050, currency: 'ZAR' }).replace(/\s/g, ' ')).toMatch(/^R 450[,.]50$/);
	});
});
