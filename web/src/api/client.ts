// The one way to the server: typed by openapi.json, and every "no" comes back as a Refusal.
import createClient from 'openapi-fetch';
import { hearTime } from '../lib/server-time.ts';
import type { components, paths } from './schema.d.ts';

export type Schemas = components['schemas'];
export type RefusalCode = Schemas['Problem']['error'];

/** Longer than the server gives itself. */
const ANSWER_MAX_MS = 20_000;
const SAFE_METHODS = new Set(['GET', 'HEAD']);
/** The session comes as an HttpOnly cookie; the token in the body is for programs, and is not kept here. */
export const BY_COOKIE = { header: { 'X-Session': 'cookie' } } as const;

interface RefusalFacts {
	/** `refused`: the server said no. `network`: no answer came. `unreadable`: something else answered in its place. */
	readonly kind: 'refused' | 'network' | 'unreadable';
	/** A newer server may know more codes than this page. */
	readonly code?: RefusalCode | (string & {});
	readonly isEffectKnown: boolean;
	readonly requestId?: string | null;
	readonly retryAfterS?: number | null;
	/** The fields the server objects to, by their names in the contract. */
	readonly fields?: readonly string[];
}

export class Refusal extends Error {
	readonly kind: RefusalFacts['kind'];
	readonly code: string | null;
	/** False: it may or may not have been done. */
	readonly isEffectKnown: boolean;
	readonly requestId: string | null;
	readonly retryAfterS: number | null;
	readonly fields: readonly string[];

	constructor(facts: RefusalFacts) {
		super(facts.code ?? facts.kind);
		this.name = 'Refusal';
		this.kind = facts.kind;
		this.code = facts.code ?? null;
		this.isEffectKnown = facts.isEffectKnown;
		this.requestId = facts.requestId ?? null;
		this.retryAfterS = facts.retryAfterS ?? null;
		this.fields = facts.fields ?? [];
	}
}

let csrfToken: string | null = null;
let onRefusal: (refusal: Refusal) => void = () => {};

/** Proves on every change that this page belongs to the session. Kept in memory only. */
export function keepCsrfToken(token: string | null): void {
	csrfToken = token;
}

/** Whoever looks after the session hears of every refusal. */
export function watchRefusals(listener: (refusal: Refusal) => void): void {
	onRefusal = listener;
}

export const api = createClient<paths>({
	// Looked up on each call, not once: a test puts its own in its place.
	fetch: (request) => globalThis.fetch(request, { signal: AbortSignal.timeout(ANSWER_MAX_MS) }),
});

api.use({
	onRequest({ request }) {
		if (csrfToken !== null && !SAFE_METHODS.has(request.method)) request.headers.set('X-CSRF-Token', csrfToken);
		return request;
	},
	onResponse({ response }) {
		hearTime(response.headers.get('Date'));
	},
	onError({ request }) {
		return new Refusal({ kind: 'network', isEffectKnown: SAFE_METHODS.has(request.method) });
	},
});

/** The answer's body; what is not an answer is thrown as a Refusal. */
export async function ask<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
	try {
		const { data, error, response } = await call;
		if (error !== undefined || !response.ok) throw refusalOf(error, response);
		return data as T;
	} catch (failure) {
		// A body that is not JSON fails inside the call.
		const refusal =
			failure instanceof Refusal ? failure : new Refusal({ kind: 'unreadable', isEffectKnown: false });
		onRefusal(refusal);
		throw refusal;
	}
}

function refusalOf(body: unknown, response: Response): Refusal {
	if (!isProblem(body)) return new Refusal({ kind: 'unreadable', isEffectKnown: false });
	return new Refusal({
		kind: 'refused',
		code: body.error,
		isEffectKnown: body.effect === 'none',
		requestId: body.request_id,
		retryAfterS: secondsOf(response.headers.get('Retry-After')),
		fields: fieldsOf(body.details),
	});
}

/** A proxy may answer in the server's place, so the shape is looked at, not trusted. */
function isProblem(body: unknown): body is Schemas['Problem'] {
	const problem = body as Partial<Schemas['Problem']> | null;
	return typeof problem === 'object' && typeof problem?.error === 'string' && typeof problem.effect === 'string';
}

function secondsOf(header: string | null): number | null {
	return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : null;
}

/** `details.errors` of an invalid request: [{path: "body.email", ...}]. */
function fieldsOf(details: Record<string, unknown> | undefined): string[] {
	if (!Array.isArray(details?.errors)) return [];
	return details.errors.flatMap((error: { path?: unknown } | null) =>
		typeof error?.path === 'string' ? [error.path.split('.').at(-1) ?? ''] : [],
	);
}
