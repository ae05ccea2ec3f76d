// The routes of seating, prices and policy, with what their refusals carry beyond a code.
import { ifMatch } from '../admin/model.ts';
import { api, ask, Refusal, type Schemas } from '../api/client.ts';
import type { Fault, InUse, PolicyValue, PolicyView, PriceBody, PriceRule, SeatingBody, SeatingView } from './contract.ts';

export type LayoutView = Schemas['LayoutView'];
export type LayoutZone = Schemas['ZoneView'];

/** A refusal of the server, with the facts that came with it. */
export class Objection {
	readonly refusal: Refusal;
	readonly #details: Readonly<Record<string, unknown>>;

	constructor(refusal: Refusal, details: Readonly<Record<string, unknown>>) {
		this.refusal = refusal;
		this.#details = details;
	}

	get code(): string | null {
		return this.refusal.code;
	}

	get faults(): readonly Fault[] {
		return Array.isArray(this.#details.errors) ? (this.#details.errors as Fault[]) : [];
	}

	/** What is wrong, by field. */
	get fields(): Readonly<Record<string, string>> {
		const { fields } = this.#details;
		if (Array.isArray(fields)) return Object.fromEntries(fields.map((name) => [String(name), '']));
		return typeof fields === 'object' && fields !== null ? (fields as Record<string, string>) : {};
	}

	get inUse(): InUse {
		const { seats, zones, seat_count: count } = this.#details;
		const found = Array.isArray(seats) ? (seats as InUse['seats']) : [];
		return {
			seats: found,
			zones: Array.isArray(zones) ? (zones as InUse['zones']) : [],
			seat_count: typeof count === 'number' ? count : found.length,
		};
	}

	/** Events that have what was to be removed. */
	get events(): readonly { readonly id: string; readonly name: string }[] {
		return Array.isArray(this.#details.events) ? (this.#details.events as { id: string; name: string }[]) : [];
	}
}

interface Answer<T> {
	data?: T;
	error?: unknown;
	response: Response;
}

/** The answer, or what the server objects to; where no answer came at all, that is thrown. */
async function heard<T>(call: Promise<Answer<T>>): Promise<T | Objection> {
	let details: Record<string, unknown> = {};
	try {
		return await ask(
			call.then((answer) => {
				details = (answer.error as Partial<Schemas['Problem']> | undefined)?.details ?? {};
				return answer;
			}),
		);
	} catch (failure) {
		if (failure instanceof Refusal && failure.kind === 'refused') return new Objection(failure, details);
		throw failure;
	}
}

const one = (eventId: string) => ({ event_id: eventId });
const sent = (body: SeatingBody) => body as Schemas['SeatingBody'];

export async function fetchSeating(eventId: string): Promise<SeatingView> {
	return (await ask(api.GET('/api/admin/events/{event_id}/seating', { params: { path: one(eventId) } }))).data as SeatingView;
}

export async function saveSeating(eventId: string, body: SeatingBody, version: number): Promise<SeatingView | Objection> {
	const params = { path: one(eventId), header: ifMatch(version) };
	const answer = await heard(api.PUT('/api/admin/events/{event_id}/seating', { params, body: sent(body) }));
	return answer instanceof Objection ? answer : (answer.data as SeatingView);
}

/** What would come of it, without a trace. */
export async function trySeating(
	eventId: string,
	body: SeatingBody,
	version: number,
	signal: AbortSignal,
): Promise<SeatingView | Objection> {
	const params = { path: one(eventId), header: ifMatch(version), query: { dry_run: true } };
	const answer = await heard(api.PUT('/api/admin/events/{event_id}/seating', { params, body: sent(body), signal }));
	return answer instanceof Objection ? answer : (answer.data as SeatingView);
}

const PAGE = 200;
/** As many prices as an organization may have, and as many layouts as a venue sensibly has. */
const PAGES_MAX = 5;

export async function fetchRules(): Promise<readonly PriceRule[]> {
	const found: PriceRule[] = [];
	let cursor: string | null = null;
	for (let page = 0; page < PAGES_MAX; page++) {
		const query: { limit: number; cursor?: string } = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
		const answer = await ask(api.GET('/api/admin/pricing-rules', { params: { query } }));
		found.push(...answer.data);
		cursor = answer.next_cursor;
		if (cursor === null) break;
	}
	return found;
}

export async function createRule(body: PriceBody, key: string): Promise<PriceRule | Objection> {
	const params = { header: { 'Idempotency-Key': key } };
	const answer = await heard(api.POST('/api/admin/pricing-rules', { params, body }));
	return answer instanceof Objection ? answer : answer.data;
}

export async function changeRule(rule: PriceRule, body: Partial<PriceBody>): Promise<PriceRule | Objection> {
	const params = { path: { rule_id: rule.id }, header: ifMatch(rule.version) };
	const answer = await heard(api.PATCH('/api/admin/pricing-rules/{rule_id}', { params, body }));
	return answer instanceof Objection ? answer : answer.data;
}

export async function removeRule(rule: PriceRule): Promise<Objection | null> {
	const params = { path: { rule_id: rule.id }, header: ifMatch(rule.version) };
	const answer = await heard(api.DELETE('/api/admin/pricing-rules/{rule_id}', { params }));
	return answer instanceof Objection ? answer : null;
}

export async function fetchPolicy(): Promise<PolicyView> {
	return (await ask(api.GET('/api/admin/seating-policy'))).data;
}

export async function changePolicy(values: Readonly<Record<string, PolicyValue>>, version: number): Promise<PolicyView | Objection> {
	const params = { header: ifMatch(version) };
	const answer = await heard(api.PATCH('/api/admin/seating-policy', { params, body: { values } }));
	return answer instanceof Objection ? answer : answer.data;
}

export async function fetchLayouts(venueId: string): Promise<readonly LayoutView[]> {
	const found: LayoutView[] = [];
	let cursor: string | null = null;
	for (let page = 0; page < PAGES_MAX; page++) {
		const query: { venue_id: string; limit: number; cursor?: string } = { venue_id: venueId, limit: PAGE, ...(cursor === null ? {} : { cursor }) };
		const answer = await ask(api.GET('/api/admin/layouts', { params: { query } }));
		found.push(...answer.data);
		cursor = answer.next_cursor;
		if (cursor === null) break;
	}
	return found;
}

/** The zones as the layout itself has them, before an event says anything. */
export async function fetchLayoutZones(layoutId: string, version: number): Promise<readonly LayoutZone[]> {
	const params = { path: { layout_id: layoutId, version } };
	return (await ask(api.GET('/api/admin/layouts/{layout_id}/versions/{version}', { params }))).data.zones;
}
