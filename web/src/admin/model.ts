// What the organiser's pages know of events: where each status leads, what needs somebody, what can be done.
import type { Schemas } from '../api/client.ts';
import type { Rights } from './rights.ts';

export type EventView = Schemas['EventView'];
export type VenueView = Schemas['VenueView'];
export type GateView = Schemas['GateView'];
export type Status = Schemas['Status'];
export type Verb = Schemas['Verb'];
/** What is asked in a dialog: the lifecycle's verbs, and two that belong to it in people's eyes. */
export type Deed = Verb | 'change-venue' | 'delete';

export const STATUSES: readonly Status[] = ['draft', 'published', 'live', 'postponed', 'ended', 'cancelled', 'archived'];

/** Where each status leads, as docs/states/event.md says. Drawn from this; what can be done is said by the server. */
export const EDGES: Readonly<Record<Status, readonly Status[]>> = {
	draft: ['published', 'archived'],
	published: ['live', 'postponed', 'cancelled', 'draft'],
	live: ['ended', 'postponed', 'cancelled'],
	postponed: ['published', 'live', 'cancelled'],
	ended: ['archived'],
	cancelled: ['archived'],
	archived: [],
};

/** Postponed, and nobody knows yet until when. */
export function isUndated(event: EventView): boolean {
	return event.effective_start_at === null;
}

export type Attention = 'undated' | 'unsold' | 'overrun';

/** Why somebody should look at an event now; null when nobody need. */
export function attention(event: EventView, now: number): Attention | null {
	if (isUndated(event)) return 'undated';
	if (event.status === 'live' && Date.parse(event.effective_end_at ?? '') <= now) return 'overrun';
	return event.status === 'published' && event.sale_state === 'over' ? 'unsold' : null;
}

/**
 * What this person may do to this event, the most likely first and what cannot be taken back last. The server says which
 * verbs; whoever may give an event another date may also give it another place, and a draft is deleted by those who lead.
 */
export function deedsOf(event: EventView, rights: Rights): Deed[] {
	const offered: Deed[] = [...event.verbs];
	if (event.verbs.includes('reschedule')) offered.push('change-venue');
	if (event.status === 'draft' && rights.lead) offered.push('delete');
	return ORDER.filter((deed) => offered.includes(deed));
}

/** Those that somebody who watches the sale may need at once; the others are with the event itself. */
export function urgentOf(event: EventView, deeds: readonly Deed[]): Deed[] {
	const urgent: readonly Deed[] = ['publish', 'go-live', 'end', 'postpone', 'cancel', ...(isUndated(event) ? (['reschedule'] as const) : [])];
	return deeds.filter((deed) => urgent.includes(deed));
}

const ORDER: readonly Deed[] = [
	'publish',
	'go-live',
	'end',
	'reschedule',
	'postpone',
	'change-venue',
	'unpublish',
	'archive',
	'cancel',
	'delete',
];

/** The deed that stands out, where there is one that somebody waits for. */
export function forwardOf(event: EventView): Deed | null {
	if (event.status === 'draft') return 'publish';
	if (event.status !== 'postponed') return null;
	return isUndated(event) ? 'reschedule' : 'publish';
}

export const isDangerous = (deed: Deed): boolean => deed === 'cancel' || deed === 'delete';

/** What differs between two states of an event, by the names under which the page speaks of it. */
export const ASPECTS = {
	status: ['status'],
	name: ['name'],
	slug: ['slug'],
	description: ['description'],
	venue: ['venue'],
	times: ['start_at', 'end_at', 'rescheduled_at', 'rescheduled_end_at'],
	sale: ['sale_start_at', 'sale_end_at'],
	capacity: ['capacity'],
	settings: ['settings'],
	automatic: ['is_automatic'],
	replacement: ['replaced_by_event_id'],
	postponement: ['postponement_reason'],
} as const satisfies Record<string, readonly (keyof EventView)[]>;
export type Aspect = keyof typeof ASPECTS;

export function differences(before: EventView, after: EventView): Aspect[] {
	const differs = (field: keyof EventView) => JSON.stringify(before[field]) !== JSON.stringify(after[field]);
	return (Object.keys(ASPECTS) as Aspect[]).filter((aspect) => ASPECTS[aspect].some(differs));
}

/** An address made from a name: "Wáár is die see?" becomes "waar-is-die-see". */
export function slugOf(name: string): string {
	return name
		.normalize('NFD')
		.replace(/\p{M}/gu, '')
		.toLowerCase()
		.replace(/[^a-z0-9]+/g, '-')
		.slice(0, 63)
		.replace(/^-|-$/g, '');
}

export const ifMatch = (version: number) => ({ 'If-Match': `"${version}"` });
