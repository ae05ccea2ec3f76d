// Money as people type and read it, and as whole minor units between. Pure.
import { i18n } from '../i18n/i18n.svelte.ts';
import type { Money } from './contract.ts';

export const AMOUNT_MINOR_MAX = 1_000_000_000;

const form = (currency: string) => new Intl.NumberFormat(`${i18n.language}-ZA`, { style: 'currency', currency });

/** How many digits stand after the comma. */
export function decimalsOf(currency: string): number {
	return form(currency).resolvedOptions().maximumFractionDigits ?? 2;
}

/** "R 1 250,50", "1250.5" and "1,250.50" are 125050 cents; null for what is no amount, or is too much. */
export function minorOf(text: string, currency = 'ZAR'): number | null {
	const digits = decimalsOf(currency);
	const plain = text.replace(/[\s\u00a0\u202f]/g, '').replace(new RegExp(`^(?:R|${currency})`, 'i'), '');
	const grouped = /^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(plain) && plain.includes('.') ? plain.replaceAll(',', '') : plain;
	const read = /^(\d{1,10})(?:[.,](\d+))?$/.exec(grouped);
	const cents = read?.[2] ?? '';
	if (!read || cents.length > digits) return null;
	const minor = Number(`${read[1]}${cents.padEnd(digits, '0')}`);
	return minor <= AMOUNT_MINOR_MAX ? minor : null;
}

/** An amount as it is typed again: "450" or "450.50". */
export function typedOf(minor: number, currency = 'ZAR'): string {
	const digits = decimalsOf(currency);
	const text = (minor / 10 ** digits).toFixed(digits);
	return text.replace(/\.0+$/, '');
}

/** An amount as it is read here: "R 450" or "R 450,50". */
export function sayMoney({ amount_minor: minor, currency }: Money): string {
	const digits = decimalsOf(currency);
	const isWhole = minor % 10 ** digits === 0;
	const options = { style: 'currency', currency, ...(isWhole ? { maximumFractionDigits: 0 } : {}) } as const;
	return new Intl.NumberFormat(`${i18n.language}-ZA`, options).format(minor / 10 ** digits);
}
