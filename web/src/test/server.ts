// A server for tests: answers by method and path, and remembers what it was asked.
import { vi } from 'vitest';

export const PASSIEVOL = { id: '1', slug: 'passievol', name: 'Passievol', is_suspended: false };
const ORGANIZATION = { id: '1', slug: 'passievol', name: 'Passievol' };
export const LERATO = { id: '2', name: 'Lerato', role: 'customer', is_guest: false };

export const signedIn = (user = LERATO, csrf_token = 'csrf-1', basket = { kept: 0, released: 0 }) =>
	Response.json(
		{ data: { token: 'secret', csrf_token, expires_at: '2027-03-12T17:30:00Z', user, organization: ORGANIZATION, basket } },
		{ status: 201 },
	);

export const account = (user: object = {}, csrf_token = 'csrf-1') =>
	Response.json({
		data: {
			user: { ...LERATO, email: 'lerato@voorbeeld.co.za', locale: 'en', platform_roles: [], ...user },
			organization: ORGANIZATION,
			organizations: [{ slug: 'passievol', name: 'Passievol', role: 'customer' }],
			memberships: [],
			csrf_token,
		},
	});

export const done = () => new Response(null, { status: 204 });

export function problem(error: string, status: number, extra: object = {}, headers: Record<string, string> = {}): Response {
	return Response.json(
		{ error, message: 'raw words of the server', details: {}, effect: 'none', request_id: 'request-1', ...extra },
		{ status, headers },
	);
}

type Reply = () => Response | Promise<Response>;

/** Stands in for fetch; "POST /api/auth/login" names an answer. What is not named is a mistake of the test. */
export function serve(replies: Record<string, Reply>) {
	const asked: { what: string; headers: Headers; body: unknown }[] = [];
	vi.stubGlobal(
		'fetch',
		vi.fn<typeof fetch>(async (input) => {
			const request = input as Request;
			const what = `${request.method} ${new URL(request.url).pathname}`;
			const text = await request.clone().text();
			asked.push({ what, headers: request.headers, body: text ? JSON.parse(text) : null });
			const reply = replies[what];
			if (!reply) throw new Error(`the test's server has no answer to ${what}`);
			return reply();
		}),
	);
	return asked;
}

/** Forgets the cookies and the session of the test before. */
export function forgetCookies(): void {
	for (const cookie of document.cookie.split('; ')) document.cookie = `${cookie.split('=')[0]}=; Max-Age=0; Path=/`;
}
