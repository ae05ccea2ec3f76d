import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api, ask } from '../api/client.ts';
import { i18n } from '../i18n/i18n.svelte.ts';
import { account, done, forgetCookies, LERATO, problem, serve, signedIn } from '../test/server.ts';
import { Session } from './session.svelte.ts';

const HINT = 'vg_signed_in=1';

describe('Session', () => {
	let session: Session;
	let otherTab: BroadcastChannel;
	let told: unknown[];
	let stop: () => void;

	beforeEach(() => {
		forgetCookies();
		localStorage.clear();
		session = new Session();
		stop = session.start();
		otherTab = new BroadcastChannel('session');
		told = [];
		otherTab.onmessage = (event) => told.push(event.data);
	});

	afterEach(() => {
		stop();
		otherTab.close();
	});

	async function signIn(): Promise<void> {
		await session.signIn('passievol', 'lerato@voorbeeld.co.za', 'a good password');
		await vi.waitFor(() => expect(session.account).not.toBeNull());
	}

	it('asks nothing about a stranger', async () => {
		const asked = serve({});
		await session.restore();

		expect(session.standing).toBe('anonymous');
		expect(session.notice).toBeNull();
		expect(asked).toEqual([]);
	});

	it('restores itself from the cookie, and follows the language of the account', async () => {
		document.cookie = `${HINT}; Path=/`;
		serve({ 'GET /api/me': () => account({ locale: 'af' }) });
		await session.restore();

		expect(session.isAt('passievol')).toBe(true);
		expect(session.isAt('another')).toBe(false);
		expect(session.user?.name).toBe('Lerato');
		expect(i18n.language).toBe('af');
	});

	it('says that it has ended when the cookie is too old', async () => {
		document.cookie = `${HINT}; Path=/`;
		serve({ 'GET /api/me': () => problem('unauthorized', 401) });
		await session.restore();

		expect(session.standing).toBe('anonymous');
		expect(session.notice).toBe('session.notice.ended');
		expect(document.cookie).not.toContain(HINT);
	});

	it('is neither in nor out while the server is silent', async () => {
		document.cookie = `${HINT}; Path=/`;
		vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockRejectedValue(new TypeError('Failed to fetch')));
		await session.restore();
		expect(session.standing).toBe('unreachable');

		serve({ 'GET /api/me': account });
		await session.restore();
		expect(session.standing).toBe('known');
	});

	it('signs in by cookie, keeps no token, and proves changes from then on', async () => {
		const asked = serve({ 'POST /api/auth/login': signedIn, 'GET /api/me': account, 'PATCH /api/me': done });
		await signIn();
		await session.change('Lerato M', 'en');

		expect(asked.map(({ what }) => what)).toEqual(['POST /api/auth/login', 'GET /api/me', 'PATCH /api/me']);
		expect(asked[0]?.headers.get('X-Session')).toBe('cookie');
		expect(asked[2]?.headers.get('X-CSRF-Token')).toBe('csrf-1');
		expect(session.user?.name).toBe('Lerato M');
		expect(session.account?.user.name).toBe('Lerato M');
		expect(document.cookie).toContain(HINT);
		expect(JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])).not.toMatch(/secret|csrf/);
		await vi.waitFor(() => expect(told).toEqual(['began', 'changed']));
	});

	it('says what had to be given back, and is silent where everything came along', async () => {
		serve({ 'POST /api/auth/login': () => signedIn(LERATO, 'csrf-1', { kept: 2, released: 1 }), 'GET /api/me': account });
		await signIn();
		expect(session.notice).toBe('session.notice.released');
		expect(session.basket).toEqual({ kept: 2, released: 1 });

		serve({ 'POST /api/auth/login': () => signedIn(LERATO, 'csrf-1', { kept: 3, released: 0 }), 'GET /api/me': account });
		await signIn();
		expect(session.notice).toBeNull();
	});

	it('stays a stranger after a wrong password', async () => {
		serve({ 'POST /api/auth/login': () => problem('credentials_wrong', 401) });
		await session.restore();

		await expect(session.signIn('passievol', 'x@y', 'wrong')).rejects.toMatchObject({ code: 'credentials_wrong' });
		expect(session.standing).toBe('anonymous');
		expect(session.notice).toBeNull();
	});

	it('survives a wrong current password, which is a 401 as well', async () => {
		serve({
			'POST /api/auth/login': signedIn,
			'GET /api/me': account,
			'PUT /api/me/password': () => problem('credentials_wrong', 401),
		});
		await signIn();

		await expect(session.changePassword('wrong', 'a new password')).rejects.toMatchObject({ code: 'credentials_wrong' });
		expect(session.standing).toBe('known');
	});

	it('ends with a 401 on any call, says so, and tells the other tabs', async () => {
		serve({
			'POST /api/auth/login': signedIn,
			'GET /api/me': account,
			'GET /api/me/sessions': () => problem('unauthorized', 401),
		});
		await signIn();

		await expect(ask(api.GET('/api/me/sessions'))).rejects.toMatchObject({ code: 'unauthorized' });
		expect(session.standing).toBe('anonymous');
		expect(session.user).toBeNull();
		expect(session.notice).toBe('session.notice.ended');
		await vi.waitFor(() => expect(told).toEqual(['began', 'ended']));
	});

	it('signs out here and everywhere', async () => {
		serve({ 'POST /api/auth/login': signedIn, 'GET /api/me': account, 'POST /api/auth/logout': done });
		await signIn();
		await session.signOut();

		expect(session.standing).toBe('anonymous');
		expect(session.notice).toBe('session.notice.signed_out');
		expect(document.cookie).not.toContain(HINT);
		await vi.waitFor(() => expect(told).toEqual(['began', 'signed_out']));
	});

	it('stays signed in when signing out did not reach the server', async () => {
		serve({ 'POST /api/auth/login': signedIn, 'GET /api/me': account, 'POST /api/auth/logout': () => problem('busy', 503) });
		await signIn();

		await expect(session.signOut()).rejects.toMatchObject({ code: 'busy' });
		expect(session.standing).toBe('known');
	});

	it('follows another tab out, and in', async () => {
		serve({ 'POST /api/auth/login': signedIn, 'GET /api/me': () => account({ name: 'Thabo' }) });
		await signIn();

		otherTab.postMessage('signed_out');
		await vi.waitFor(() => expect(session.standing).toBe('anonymous'));
		expect(session.notice).toBe('session.notice.signed_out_elsewhere');

		document.cookie = `${HINT}; Path=/`;
		otherTab.postMessage('began');
		await vi.waitFor(() => expect(session.user?.name).toBe('Thabo'));
		expect(session.standing).toBe('known');
	});

	it('does not come back to life by an answer that was late', async () => {
		let answer: (response: Response) => void = () => {};
		serve({
			'POST /api/auth/login': signedIn,
			'GET /api/me': () => new Promise((resolve) => (answer = resolve)),
			'POST /api/auth/logout': done,
		});
		await session.signIn('passievol', 'lerato@voorbeeld.co.za', 'a good password');
		await session.signOut();
		answer(account());
		await new Promise((resolve) => setTimeout(resolve));

		expect(session.standing).toBe('anonymous');
		expect(session.user).toBeNull();
	});

	it('fetches the right CSRF token when its own is out of date', async () => {
		const tokens = ['csrf-1', 'csrf-2'];
		let changes = 0;
		const asked = serve({
			'POST /api/auth/login': signedIn,
			'GET /api/me': () => account({}, tokens.shift()),
			'PATCH /api/me': () => (changes++ ? done() : problem('csrf_failed', 403)),
		});
		await signIn();
		await expect(session.change('A', 'en')).rejects.toMatchObject({ code: 'csrf_failed' });
		await vi.waitFor(() => expect(tokens).toEqual([]));
		await session.change('A', 'en');

		expect(asked.at(-1)?.headers.get('X-CSRF-Token')).toBe('csrf-2');
	});

	it('lets a guest in without a name, and forgets a deleted account', async () => {
		const asked = serve({
			'POST /api/auth/guest': () => signedIn({ ...LERATO, name: 'Guest', is_guest: true }),
			'GET /api/me': () => account({ is_guest: true, email: null }),
			'POST /api/me/delete': done,
		});
		await session.continueAsGuest('passievol');
		expect(session.user?.is_guest).toBe(true);

		await session.deleteAccount(null);
		expect(asked.at(-1)?.body).toEqual({ password: null });
		expect(session.standing).toBe('anonymous');
		expect(session.notice).toBe('session.notice.deleted');
	});
});
