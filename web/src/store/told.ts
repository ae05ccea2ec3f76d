// What the storefront tells of an event, worked out from what the server says of it. Words only; no screen.
import type { Refusal, Schemas } from '../api/client.ts';
import { i18n, isMessageKey, t } from '../i18n/i18n.svelte.ts';
import { say } from '../i18n/refusals.ts';
import type { IconName } from '../lib/Icon.svelte';
import { serverNow } from '../lib/server-time.ts';
import { dateLine, dayRange, timeLine, toLocalInput, whenLine, zoneNote } from '../lib/venue-time.ts';

export type Card = Schemas['EventCard'];

export interface Badge {
	readonly tone: 'ok' | 'warn' | 'brand' | '';
	readonly icon: IconName;
	readonly words: string;
}

/** The one thing to know about an event at a glance; the first that is true. */
export function badgeOf(event: Card, now = new Date(serverNow())): Badge | null {
	if (event.notice === 'postponed') return { tone: 'warn', icon: 'pause', words: t('event.status.postponed') };
	if (event.notice === 'rescheduled' && event.effective_start_at !== null) {
		const date = brief(event.effective_start_at, event.venue.timezone);
		return { tone: 'brand', icon: 'calendar', words: t('store.badge.postponed_to', { date }) };
	}
	if (event.status === 'live') return { tone: 'brand', icon: 'bolt', words: t('event.status.live') };
	switch (event.sale_state) {
		case 'open':
			return { tone: 'ok', icon: 'check', words: t('event.sale.open') };
		case 'not_yet':
			return { tone: '', icon: 'clock', words: opensWords(event, now) };
		case 'over':
			return { tone: '', icon: 'x', words: t('event.sale.over') };
		default:
			return null;
	}
}

function opensWords({ sale_start_at, venue }: Card, now: Date): string {
	if (sale_start_at === null) return t('event.sale.not_yet');
	const dayOf = (iso: string) => toLocalInput(iso, venue.timezone).slice(0, 10);
	const isToday = dayOf(sale_start_at) === dayOf(now.toISOString());
	return isToday
		? t('store.badge.today', { time: timeLine(sale_start_at, venue.timezone, i18n.language) })
		: t('store.badge.from', { date: brief(sale_start_at, venue.timezone) });
}

/** "12 Mar 2027": the day of the week is said where there is room. */
function brief(iso: string, timeZone: string): string {
	return dateLine(iso, timeZone, i18n.language).split(' ').slice(1).join(' ');
}

/** When it takes place, for a card: the day and the time, or the days. Null while it has no date. */
export function cardWhen({ days, effective_start_at: start, venue }: Card): string | null {
	if (start === null) return null;
	if (days.length > 1) return dayRange(days, i18n.language);
	return `${dateLine(start, venue.timezone, i18n.language)} · ${timeLine(start, venue.timezone, i18n.language)}`;
}

/** From when to when it takes place; null while it has no date. */
export function datesOf({ effective_start_at, effective_end_at }: Card): { readonly start: string; readonly end: string } | null {
	if (effective_start_at === null || effective_end_at === null) return null;
	return { start: effective_start_at, end: effective_end_at };
}

/** "Friday 12 March 2027, 19:30". */
export function longMoment(iso: string, timeZone: string): string {
	return `${dateLine(iso, timeZone, i18n.language, 'long')}, ${timeLine(iso, timeZone, i18n.language)}`;
}

/** What had been announced, before it was postponed. */
export function announcedWhen({ start_at, end_at, venue }: Card): string {
	return whenLine(start_at, end_at, venue.timezone, i18n.language);
}

/** The zone of the times of this event, where the person's own clock shows others. */
export function zoneOf(event: Card): string | null {
	const { start, end } = datesOf(event) ?? { start: event.start_at, end: event.end_at };
	return zoneNote(event.venue.timezone, i18n.language, start, end);
}

export function categoryWords(category: string): string {
	const key = `store.category.${category}`;
	return isMessageKey(key) ? t(key) : category;
}

/** "af" is the name of a language in the person's own; what is no such code stands as it was written. */
export function languageWords(language: string): string {
	try {
		return new Intl.DisplayNames(`${i18n.language}-ZA`, { type: 'language' }).of(language) ?? language;
	} catch {
		return language;
	}
}

/** What else there is to know, as far as anybody has said it. */
export function factsOf(event: Schemas['EventPage']): { readonly term: string; readonly words: string }[] {
	const age = event.age_min === null ? null : event.age_min ? t('store.age', { age: event.age_min }) : t('store.age.all');
	return [
		{ term: t('store.fact.age'), words: age },
		{ term: t('store.fact.language'), words: event.language && languageWords(event.language) },
		{ term: t('store.fact.access'), words: event.access_rules },
		{ term: t('store.fact.bags'), words: event.bag_policy },
	].flatMap(({ term, words }) => (words ? { term, words } : []));
}

/** The lines of an address; what the organiser has not given leaves no gap. */
export function addressLines(address: Schemas['EventPage']['address']): string[] {
	const said = (key: string) => (typeof address[key] === 'string' ? address[key].trim() : '');
	const together = (words: string[], between: string) => words.filter(Boolean).join(between);
	const town = together([said('postal_code'), said('city')], ' ');
	const lines = [[said('street'), said('suburb')], [town], [said('region'), said('country')]];
	return lines.map((words) => together(words, ', ')).filter(Boolean);
}

/** Reading changes nothing, so there is no doubt about what was done. */
export function whyNot(refusal: Refusal): string {
	return refusal.kind === 'refused' ? say(refusal) : t('store.failed.network');
}
