// The layout routes beyond the plain ones: answers that carry a list of faults, and files that take long to send.
import { api, ask, Refusal, type Schemas } from '../api/client.ts';
import { decode, type Geometry } from './geometry.ts';

/** One thing that is wrong with a layout: where, what kind, what in words, and what to do about it. */
export interface Fault {
	readonly path: string;
	readonly code: string;
	readonly message: string;
	readonly hint: string;
}
export interface Faulty {
	readonly faults: readonly Fault[];
	/** How many there are in all; not every one of very many is told. */
	readonly faultCount: number;
}
export type LayoutView = Schemas['LayoutView'];
export type VersionView = Schemas['VersionView'];
export type StoredView = Schemas['StoredView'];
export type GenerateBody = Schemas['GenerateBody'];
export type Format = 'json' | 'csv' | 'pretix';
/** Where a file goes: a new layout of a venue, or a new version of a layout. */
export type Target = { readonly venueId: string } | { readonly layoutId: string };

/** As long as the server lets a file take, and somewhat more. */
const UPLOAD_MAX_MS = 130_000;
const TYPES: Record<Format, string> = { json: 'application/json', csv: 'text/csv', pretix: 'application/json' };

interface Answer<T> {
	data?: T;
	error?: unknown;
	response: Response;
}

/** The answer, or the faults of what was sent; every other "no" is thrown. */
async function tried<T>(call: Promise<Answer<T>>): Promise<T | Faulty> {
	let found: Faulty | null = null;
	try {
		return await ask(
			call.then((answer) => {
				found = faultsOf(answer.error);
				return answer;
			}),
		);
	} catch (failure) {
		if (failure instanceof Refusal && found !== null) return found;
		throw failure;
	}
}

export function isFaulty(answer: unknown): answer is Faulty {
	return typeof answer === 'object' && answer !== null && 'faults' in answer;
}

function faultsOf(body: unknown): Faulty | null {
	const problem = body as Partial<Schemas['Problem']> | null | undefined;
	const { errors, error_count: all } = (problem?.details ?? {}) as { errors?: unknown; error_count?: unknown };
	if (problem?.error !== 'layout_invalid' || !Array.isArray(errors)) return null;
	return { faults: errors as Fault[], faultCount: typeof all === 'number' ? all : errors.length };
}

const within = (signal?: AbortSignal) => (request: Request) => {
	const limit = AbortSignal.timeout(UPLOAD_MAX_MS);
	return globalThis.fetch(request, { signal: signal ? AbortSignal.any([signal, limit]) : limit });
};

/** What would be generated, drawn. */
export async function preview(body: GenerateBody, signal: AbortSignal): Promise<Geometry | Faulty> {
	const answer = await tried(api.POST('/api/admin/layouts/preview', { body, fetch: within(signal) }));
	return isFaulty(answer) ? answer : decode(answer);
}

export async function generate(venueId: string, body: GenerateBody, key: string): Promise<StoredView | Faulty> {
	const params = { path: { venue_id: venueId }, header: { 'Idempotency-Key': key } };
	const answer = await tried(api.POST('/api/admin/venues/{venue_id}/layouts/generate', { params, body, fetch: within() }));
	return isFaulty(answer) ? answer : answer.data;
}

interface Sending {
	readonly target: Target;
	readonly content: Blob;
	readonly format: Format;
	readonly isDryRun: boolean;
	readonly key?: string;
	readonly signal?: AbortSignal;
}

/** Sends a file, to be tried or to be stored. */
export async function sendFile({ target, content, format, isDryRun, key, signal }: Sending): Promise<StoredView | Faulty> {
	const header = key === undefined ? {} : { 'Idempotency-Key': key };
	const sending = {
		// The contract knows it as a document; it goes as the bytes it is, so that the server says what is wrong with them.
		body: content as unknown as Record<string, never>,
		bodySerializer: (bytes: unknown) => bytes as Blob,
		headers: { 'Content-Type': TYPES[format] },
		fetch: within(signal),
	};
	const answer = await tried(
		'venueId' in target
			? api.POST('/api/admin/venues/{venue_id}/layouts', {
					...sending,
					params: {
						path: { venue_id: target.venueId },
						query: { format: format === 'pretix' ? 'pretix' : 'json', dry_run: isDryRun },
						header,
					},
				})
			: api.POST('/api/admin/layouts/{layout_id}/versions', {
					...sending,
					params: { path: { layout_id: target.layoutId }, query: { format, dry_run: isDryRun }, header },
				}),
	);
	return isFaulty(answer) ? answer : answer.data;
}

/** Where the seats of a version are. The browser keeps it: it never changes. */
export async function geometryOf(layoutId: string, version: number): Promise<Geometry> {
	const params = { path: { layout_id: layoutId, version } };
	return decode(await ask(api.GET('/api/layouts/{layout_id}/v{version}/geometry', { params })));
}

export const exportUrl = (layoutId: string, version: number, format: 'json' | 'csv') =>
	`/api/admin/layouts/${layoutId}/versions/${version}/export?format=${format}`;
