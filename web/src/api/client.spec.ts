import { afterEach, describe, expect, it, vi } from 'vitest';
import { done, problem, serve } from '../test/server.ts';
import { api, ask, BY_COOKIE, keepCsrfToken, Refusal, watchRefusals } from './client.ts';

const login = () =>
	ask(
		api.POST('/api/auth/login', {
			params: BY_COOKIE,
			body: { organization: 'passievol', email: 'lerato@voorbeeld.co.za', password: 'a good password' },
		}),
	);

async function refusalOf(call: Promise<unknown>): Promise<Refusal> {
	const failure: unknown = await call.then(
		() => null,
		(reason: unknown) => reason,
	);
	if (!(failure instanceof Refusal)) throw new Error(`expected a refusal, got ${String(failure)}`);
	return failure;
}

afterEach(() => {
	keepCsrfToken(null);
	watchRefusals(() => {});
});

describe('the client', () => {
	it('sends the CSRF token with every change and never with a question', async () => {
		const asked = serve({ 'POST /api/auth/logout': done, 'GET /api/me/sessions': () => Response.json({ data: [] }) });
		await ask(api.POST('/api/auth/logout'));
		keepCsrfToken('csrf-1');
		await ask(api.POST('/api/auth/logout'));
		await ask(api.GET('/api/me/sessions'));

		expect(asked.map(({ headers }) => headers.get('X-CSRF-Token'))).toEqual([null, 'csrf-1', null]);
	});

	it('asks for the session as a cookie', async () => {
		const asked = serve({ 'POST /api/auth/login': () => Response.json({ data: {} }, { status: 201 }) });
		await login();

		expect(asked[0]?.headers.get('X-Session')).toBe('cookie');
		expect(asked[0]?.body).toEqual({
			organization: 'passievol',
			email: 'lerato@voorbeeld.co.za',
			password: 'a good password',
		});
	});

	it('turns the envelope into a refusal, and tells whoever watches', async () => {
		serve({ 'POST /api/auth/login': () => problem('credentials_wrong', 401) });
		const watcher = vi.fn();
		watchRefusals(watcher);
		const refusal = await refusalOf(login());

		expect(refusal).toMatchObject({
			kind: 'refused',
			code: 'credentials_wrong',
			isEffectKnown: true,
			requestId: 'request-1',
			retryAfterS: null,
			fields: [],
		});
		expect(watcher).toHaveBeenCalledExactlyOnceWith(refusal);
	});

	it('names the fields of an invalid request, and the effect that is not known', async () => {
		const details = { errors: [{ path: 'body.email', code: 'x', message: 'x' }, { path: 'body.password' }, null] };
		serve({ 'POST /api/auth/login': () => problem('invalid_request', 400, { details, effect: 'unknown' }) });

		expect(await refusalOf(login())).toMatchObject({ fields: ['email', 'password'], isEffectKnown: false });
	});

	it('reads how long to wait', async () => {
		serve({ 'POST /api/auth/login': () => problem('rate_limited', 429, {}, { 'Retry-After': '712' }) });

		expect(await refusalOf(login())).toMatchObject({ code: 'rate_limited', retryAfterS: 712 });
	});

	it('does not know what became of a change when no answer came', async () => {
		vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockRejectedValue(new TypeError('Failed to fetch')));

		expect(await refusalOf(login())).toMatchObject({ kind: 'network', code: null, isEffectKnown: false });
		expect(await refusalOf(ask(api.GET('/api/me')))).toMatchObject({ kind: 'network', isEffectKnown: true });
	});

	it.each([
		['a page of a proxy', () => new Response('<h1>502</h1>', { status: 502 })],
		['a page in place of an answer', () => new Response('<h1>Sign in to the Wi-Fi</h1>', { status: 200 })],
		['JSON of another kind', () => Response.json({ detail: 'no' }, { status: 500 })],
		['nothing at all', () => new Response(null, { status: 500 })],
	])('does not trust %s', async (_, reply) => {
		serve({ 'POST /api/auth/login': reply });

		expect(await refusalOf(login())).toMatchObject({ kind: 'unreadable', code: null, isEffectKnown: false });
	});
});
