// What a buyer asks of the server. A hold that was not answered is asked for again: it is the same hold, never a second one.
import { api, ask, Refusal, type Schemas } from '../api/client.ts';
import { session } from '../lib/session.svelte.ts';

export type Hold = Schemas['HoldView'];
export type Offer = Schemas['OfferView'];
export type OfferedZone = Schemas['OfferedZoneView'];

/** Longer than a hold ever takes; after that it is asked for again, or looked at. */
const HOLD_ANSWER_MAX_MS = 30_000;
const patient = (request: Request) => globalThis.fetch(request, { signal: AbortSignal.timeout(HOLD_ANSWER_MAX_MS) });

/** The server gives everybody one basket per event. */
const FROM_WEB = { source: 'web', cart_token: null } as const;

export async function offerOf(eventId: string): Promise<Offer> {
	return (await ask(api.GET('/api/events/{event_id}/layout', { params: { path: { event_id: eventId } } }))).data;
}

/** All places, and what the server calls that map: who names it to the stream is told what came after it. */
export async function seatMapOf(eventId: string): Promise<{ snapshot: Schemas['SeatMapView']; id: string }> {
	const asked = api.GET('/api/events/{event_id}/seatmap', { params: { path: { event_id: eventId } } });
	const { data: snapshot } = await ask(asked);
	const tag = (await asked).response.headers.get('ETag');
	return { snapshot, id: /"([\d:]+)"/.exec(tag ?? '')?.[1] ?? '' };
}

export async function ownHolds(eventId: string): Promise<Hold[]> {
	return (await ask(api.GET('/api/events/{event_id}/holds/mine', { params: { path: { event_id: eventId } } }))).data;
}

/** The seats, all of them or none. */
export async function holdSeats(org: string, eventId: string, seatIds: readonly string[]): Promise<Hold[]> {
	const [only] = seatIds;
	if (seatIds.length === 1 && only !== undefined) {
		const path = { event_id: eventId, seat_id: only };
		const hold = await insist(org, () => ask(api.POST('/api/events/{event_id}/seats/{seat_id}/reserve', { params: { path }, body: FROM_WEB, fetch: patient })));
		return [hold.data];
	}
	const params = { path: { event_id: eventId }, header: { 'Idempotency-Key': crypto.randomUUID() } };
	const body = { seat_ids: [...seatIds], ...FROM_WEB };
	return (await insist(org, () => ask(api.POST('/api/events/{event_id}/holds', { params, body, fetch: patient })))).data;
}

/** So many places of a zone without numbers. */
export async function holdPlaces(org: string, eventId: string, zoneId: string, quantity: number): Promise<Hold> {
	const params = { path: { event_id: eventId, zone_id: zoneId }, header: { 'Idempotency-Key': crypto.randomUUID() } };
	const body = { quantity, ...FROM_WEB };
	return (await insist(org, () => ask(api.POST('/api/events/{event_id}/zones/{zone_id}/reserve', { params, body, fetch: patient })))).data;
}

/** What has ended already is let go as well. */
export async function letGo(org: string, holdId: string): Promise<void> {
	try {
		await insist(org, () => ask(api.DELETE('/api/holds/{hold_id}', { params: { path: { hold_id: holdId } }, fetch: patient })));
	} catch (failure) {
		if (!(failure instanceof Refusal && failure.code === 'hold_not_found')) throw failure;
	}
}

export async function extend(org: string, holdId: string): Promise<Hold> {
	return (await insist(org, () => ask(api.POST('/api/holds/{hold_id}/extend', { params: { path: { hold_id: holdId } }, fetch: patient })))).data;
}

/** A seat by itself: whether it is this person's, when no answer said so, and for how long somebody holds it. */
export async function seatOf(eventId: string, seatId: string): Promise<Schemas['SeatDetailView']> {
	const path = { event_id: eventId, seat_id: seatId };
	return (await ask(api.GET('/api/events/{event_id}/seats/{seat_id}', { params: { path } }))).data;
}

let entering: Promise<void> | null = null;

/** Nobody has to say who they are to hold a seat: strangers become guests, once however many seats they tap. */
function enter(org: string): Promise<void> {
	if (session.isAt(org)) return Promise.resolve();
	entering ??= come(org).finally(() => (entering = null));
	return entering;
}

/** Who has a session is not made a guest because it has not been told yet whose it is. */
async function come(org: string): Promise<void> {
	if (session.standing === 'asking' || session.standing === 'unreachable') await session.restore();
	if (session.isAt(org)) return;
	if (session.standing === 'unreachable') throw new Refusal({ kind: 'network', isEffectKnown: true });
	await session.continueAsGuest(org);
}

/** Asks as somebody the server knows, and once more where the first time says nothing about the matter itself. */
async function insist<T>(org: string, asking: () => Promise<T>): Promise<T> {
	await enter(org);
	const wasGuest = session.user?.is_guest === true;
	try {
		return await asking();
	} catch (failure) {
		if (!(failure instanceof Refusal)) throw failure;
		if (failure.code === 'csrf_failed') await session.restore();
		// A guest whose session has ended is a new guest. Somebody with an account is not made one behind their back.
		else if (failure.code === 'unauthorized' && wasGuest) await enter(org);
		else if (failure.isEffectKnown) throw failure;
		return asking();
	}
}
