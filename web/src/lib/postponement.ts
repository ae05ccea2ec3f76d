// Why an event is postponed, as the public is told it: one of the reasons everybody knows, or the organiser's own words.
import { t } from '../i18n/i18n.svelte.ts';

export const REASONS = ['weather', 'restrictions', 'low_sales', 'illness', 'venue'] as const;

/** A reason everybody knows, in the person's language; anything else as the organiser wrote it. */
export function reasonWords(reason: string): string {
	const known = REASONS.find((one) => one === reason);
	return known ? t(`event.reason.${known}`) : reason;
}
