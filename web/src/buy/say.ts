// Buying in sentences: what a line of the basket is called, and why something was not held.
import { Refusal } from '../api/client.ts';
import { i18n } from '../i18n/i18n.svelte.ts';
import { say } from '../i18n/refusals.ts';
import type { Line } from './basket.svelte.ts';
import { isWordKey, t } from './words.ts';

/** "Row F, seat 11", or "3 places". */
export function sayLine(line: Pick<Line, 'seat' | 'seatId' | 'row' | 'label' | 'quantity'>): string {
	return line.seatId === null ? t('buy.places', { count: line.quantity }) : t('map.seat', { row: line.row, seat: line.label });
}

/** Why zones that are shown are not for this person: whose they are, and what to do. */
export function sayLocked(zones: string, tier: string | null, isSignedIn: boolean, name: string): string {
	const key = tier === null ? 'buy.members.other' : isSignedIn ? 'buy.members.signed' : 'buy.members.guest';
	return t(key, { zones, tier: (tier ?? '').replaceAll('_', ' '), name });
}

/** What happened to what was asked for, what it means and what to do; `what` names it, `most` is how much one may have. */
export function sayRefused(what: string, failure: unknown, most = 0): string {
	if (!(failure instanceof Refusal)) throw failure;
	const key = `buy.refused.${failure.isEffectKnown ? failure.code : 'doubt'}`;
	if (what === '' || !isWordKey(key)) return say(failure);
	return t(key, { what, most, wait: i18n.wait(failure.retryAfterS) });
}
