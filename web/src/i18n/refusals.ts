// What a refusal says to people: what happened, what it means, what to do next.
import type { Refusal } from '../api/client.ts';
import { i18n, isMessageKey } from './i18n.svelte.ts';

export function say(refusal: Refusal): string {
	if (refusal.kind === 'network') return i18n.t('error.network');
	if (refusal.kind === 'unreadable') return i18n.t('error.unreadable');
	const key = `error.${refusal.code}`;
	const isKnown = isMessageKey(key);
	const words = i18n.t(isKnown ? key : 'error.general', { wait: i18n.wait(refusal.retryAfterS) });
	// Where we cannot say what happened, the reference lets us find out.
	const hasReference = refusal.requestId !== null && (!isKnown || !refusal.isEffectKnown);
	return hasReference ? `${words} ${i18n.t('error.reference', { id: refusal.requestId ?? '' })}` : words;
}
