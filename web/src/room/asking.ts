// What the room asks of the server.
import { api, ask, type Schemas } from '../api/client.ts';
import type { EventView, Status } from '../admin/model.ts';
import type { StaffHold } from './baskets.ts';
import type { Minute } from './series.ts';

export type Ends = Schemas['HoldEndsView'];
export type Tiers = Schemas['TiersView'];
/** Why a seat was left as it is. */
export type Why = 'seat_not_available' | 'blocked' | 'not_blocked' | 'blocked_by_layout' | 'seat_not_found';
export type Outcome = 'done' | Why;
export type Verb = 'block' | 'unblock';

export const HOLDS_MAX = 200;
const SEATS_PER_ASK_MAX = 1000;
const SALES_MAX = 200;
/** What has places that people can buy, or soon can. */
const SELLING: readonly Status[] = ['live', 'published', 'postponed'];

const at = (eventId: string) => ({ path: { event_id: eventId } });

/** The events whose sale can be watched, by their dates. */
export async function salesOf(): Promise<EventView[]> {
	return (await ask(api.GET('/api/admin/events', { params: { query: { status: [...SELLING], limit: SALES_MAX } } }))).data;
}

export async function minutesOf(eventId: string, since: Date): Promise<Minute[]> {
	const params = { ...at(eventId), query: { since: since.toISOString() } };
	return (await ask(api.GET('/api/admin/events/{event_id}/occupancy/minutes', { params }))).data;
}

/** The next to lapse, and whether there are more than that. */
export async function holdsOf(eventId: string): Promise<{ holds: StaffHold[]; hasMore: boolean }> {
	const params = { ...at(eventId), query: { limit: HOLDS_MAX } };
	const { data, next_cursor } = await ask(api.GET('/api/admin/events/{event_id}/holds', { params }));
	return { holds: data, hasMore: next_cursor !== null };
}

export async function endsOf(eventId: string): Promise<Ends> {
	return (await ask(api.GET('/api/admin/events/{event_id}/holds/ends', { params: at(eventId) }))).data;
}

export async function tiersOf(eventId: string): Promise<Tiers> {
	return (await ask(api.GET('/api/admin/events/{event_id}/registry', { params: at(eventId) }))).data;
}

/** Has the places made anew in every tier; says what was found before. */
export async function reconcile(eventId: string): Promise<Tiers> {
	return (await ask(api.POST('/api/admin/events/{event_id}/registry/reconcile', { params: at(eventId) }))).data;
}

/** What is said to each seat; many are asked for in pieces, and `onpart` hears of each, since a later one may fail. */
export async function setBlocked(
	eventId: string,
	verb: Verb,
	seatIds: readonly string[],
	reason: string | null,
	onpart: (said: ReadonlyMap<string, Outcome>) => void,
): Promise<void> {
	for (let from = 0; from < seatIds.length; from += SEATS_PER_ASK_MAX) {
		const body = { seat_ids: seatIds.slice(from, from + SEATS_PER_ASK_MAX), reason };
		const { data } = await (verb === 'block'
			? ask(api.POST('/api/admin/events/{event_id}/seats/block', { params: at(eventId), body }))
			: ask(api.POST('/api/admin/events/{event_id}/seats/unblock', { params: at(eventId), body })));
		onpart(new Map(data.map(({ seat_id, outcome }) => [seat_id, outcome as Outcome])));
	}
}
