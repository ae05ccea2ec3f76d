import { cleanup, fireEvent, render, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import { router } from '../lib/router.svelte.ts';
import { session } from '../lib/session.svelte.ts';
import { account, done, forgetCookies, PASSIEVOL, problem, serve, signedIn } from '../test/server.ts';
import Account from './Account.svelte';
import ForgotPassword from './ForgotPassword.svelte';
import NewPassword from './NewPassword.svelte';
import Register from './Register.svelte';
import SignIn from './SignIn.svelte';

const props = { organization: PASSIEVOL };
const field = (label: string) => screen.getByLabelText<HTMLInputElement>(label);
const type = (label: string, value: string) => fireEvent.input(field(label), { target: { value } });
const press = (name: string) => fireEvent.click(screen.getByRole('button', { name }));
/** What a screen reader says after the name of the field. */
const lineOf = (label: string) =>
	document.getElementById(field(label).getAttribute('aria-describedby') ?? '')?.textContent.trim();

let stop = () => {};

function at(path: string): void {
	history.replaceState(null, '', path);
	const stops = [router.start(), session.start()];
	stop = () => stops.forEach((end) => end());
}

beforeEach(async () => {
	forgetCookies();
	localStorage.clear();
	i18n.choose('en');
	await session.restore();
});

afterEach(() => {
	stop();
	cleanup();
});

describe('signing in', () => {
	it('says beside each field what is missing, and asks nobody', async () => {
		const asked = serve({});
		at('/passievol/sign-in');
		render(SignIn, props);
		await press('Sign in');

		expect(lineOf('E-mail')).toBe('Give your e-mail address.');
		expect(lineOf('Password')).toBe('Give your password.');
		expect(field('E-mail').getAttribute('aria-invalid')).toBe('true');
		expect(document.activeElement).toBe(field('E-mail'));
		expect(asked).toEqual([]);

		await type('E-mail', 'lerato@voorbeeld.co.za');
		expect(field('E-mail').getAttribute('aria-invalid')).toBe('false');
		expect(field('Password').getAttribute('aria-invalid')).toBe('true');
	});

	it('is made for password managers, and shows the password on request', async () => {
		at('/passievol/sign-in');
		render(SignIn, props);
		expect(field('E-mail').autocomplete).toBe('email');
		expect(field('Password').autocomplete).toBe('current-password');
		expect(field('Password').type).toBe('password');

		await press('Show: Password');
		expect(field('Password').type).toBe('text');
		await press('Hide: Password');
		expect(field('Password').type).toBe('password');
	});

	it('says that the address or the password is wrong, and keeps what was typed', async () => {
		serve({ 'POST /api/auth/login': () => problem('credentials_wrong', 401) });
		at('/passievol/sign-in');
		render(SignIn, props);
		await type('E-mail', ' lerato@voorbeeld.co.za ');
		await type('Password', 'wrong password');
		await press('Sign in');

		const alert = screen.getByRole('alert');
		expect(await within(alert).findByText(/The e-mail address or the password is wrong/)).toBeTruthy();
		expect(alert.textContent).not.toContain('raw words');
		expect(field('Password').value).toBe('wrong password');
	});

	it('says how long to wait after too many tries', async () => {
		serve({ 'POST /api/auth/login': () => problem('rate_limited', 429, {}, { 'Retry-After': '712' }) });
		at('/passievol/sign-in');
		render(SignIn, props);
		await type('E-mail', 'lerato@voorbeeld.co.za');
		await type('Password', 'a good password');
		await press('Sign in');

		expect(await screen.findByText(/Try again in 12 minutes\./)).toBeTruthy();
	});

	it('sends once however often it is pressed, shows a long wait, and goes where the person wanted to', async () => {
		let answer: (response: Response) => void = () => {};
		const asked = serve({
			'POST /api/auth/login': () => new Promise((resolve) => (answer = resolve)),
			'GET /api/me': account,
		});
		at('/passievol/sign-in?next=%2Fpassievol%2Faccount');
		render(SignIn, props);
		await type('E-mail', 'lerato@voorbeeld.co.za');
		await type('Password', 'a good password');
		await press('Sign in');
		await press('Sign in');
		expect(screen.getByRole('button', { name: 'Sign in' }).getAttribute('aria-disabled')).toBe('true');
		expect(screen.queryByText('One moment')).toBeNull();
		expect(await screen.findByText('One moment')).toBeTruthy();

		await vi.waitFor(() => expect(asked).toHaveLength(1));
		answer(signedIn());
		await vi.waitFor(() => expect(location.pathname).toBe('/passievol/account'));
		expect(asked.filter(({ what }) => what === 'POST /api/auth/login')).toHaveLength(1);
	});

	it('tells a guest that what they hold stays theirs, and a stranger nothing of it', async () => {
		serve({
			'POST /api/auth/guest': () => signedIn({ id: '3', name: 'Guest', role: 'customer', is_guest: true }),
			'GET /api/me': () => account({ is_guest: true }),
		});
		at('/passievol/sign-in');
		render(SignIn, props);
		expect(screen.queryByText('What you hold as a guest stays yours.')).toBeNull();
		await session.continueAsGuest('passievol');
		expect(await screen.findByText('What you hold as a guest stays yours.')).toBeTruthy();
	});

	it('lets a guest through', async () => {
		const asked = serve({
			'POST /api/auth/guest': () => signedIn({ id: '3', name: 'Guest', role: 'customer', is_guest: true }),
			'GET /api/me': () => account({ is_guest: true }),
		});
		at('/passievol/sign-in');
		render(SignIn, props);
		await press('Continue as a guest');

		await vi.waitFor(() => expect(location.pathname).toBe('/passievol'));
		expect(asked[0]?.body).toEqual({ organization: 'passievol', locale: 'en' });
	});
});

describe('registering', () => {
	async function fill(password: string): Promise<void> {
		await type('Name', 'Lerato Mokoena');
		await type('E-mail', 'lerato@voorbeeld.co.za');
		await type('Password', password);
		await press('Make the account');
	}

	it('says the rule before it is broken, and again when it is', async () => {
		at('/passievol/register');
		render(Register, props);
		expect(lineOf('Password')).toContain('At least 10 characters.');
		expect(field('Password').autocomplete).toBe('new-password');

		await fill('too short');
		expect(lineOf('Password')).toBe('Use at least 10 characters.');
		await fill('aaaaaaaaaaaa');
		expect(lineOf('Password')).toBe('Use more than three different characters.');
	});

	it('says beside the address that it is taken', async () => {
		serve({ 'POST /api/auth/register': () => problem('email_taken', 409) });
		at('/passievol/register');
		render(Register, props);
		await fill('a good password');

		await vi.waitFor(() => expect(lineOf('E-mail')).toContain('There is already an account'));
		expect(document.activeElement).toBe(field('E-mail'));
	});

	it('marks the field that the server does not accept', async () => {
		serve({ 'POST /api/auth/register': () => problem('invalid_request', 400, { details: { errors: [{ path: 'body.name' }] } }) });
		at('/passievol/register');
		render(Register, props);
		await fill('a good password');

		await vi.waitFor(() => expect(lineOf('Name')).toBe('This cannot be used. Please change it.'));
		expect(screen.getByRole('alert').textContent).toContain('nothing was changed');
	});

	it('signs the new person in, in the language of the page', async () => {
		const asked = serve({ 'POST /api/auth/register': signedIn, 'GET /api/me': account });
		at('/passievol/register');
		render(Register, props);
		await fill('a good password');

		await vi.waitFor(() => expect(location.pathname).toBe('/passievol'));
		expect(asked[0]?.body).toEqual({
			organization: 'passievol',
			name: 'Lerato Mokoena',
			email: 'lerato@voorbeeld.co.za',
			password: 'a good password',
			locale: 'en',
		});
	});
});

describe('a forgotten password', () => {
	it('gets the same answer whoever asks', async () => {
		serve({ 'POST /api/auth/password-reset': () => Response.json({ data: 'raw words of the server' }, { status: 202 }) });
		at('/passievol/forgot-password');
		render(ForgotPassword, props);
		await type('E-mail', 'lerato@voorbeeld.co.za');
		await press('Send the link');

		const heading = await screen.findByRole('heading', { name: 'Look in your mail' });
		expect(document.activeElement).toBe(heading);
		expect(screen.getByRole('status').textContent).toContain('If there is an account with the address lerato@');
	});

	it('is replaced with the secret of the mail, which goes to one call only', async () => {
		const asked = serve({ 'POST /api/auth/password-reset/confirm': done });
		at('/passievol/new-password#one-time.secret');
		render(NewPassword, props);
		await type('New password', 'a good password');
		await press('Use this password');

		expect(await screen.findByRole('heading', { name: 'That is done' })).toBeTruthy();
		expect(asked).toHaveLength(1);
		expect(asked[0]?.body).toEqual({ token: 'one-time.secret', password: 'a good password' });
		expect(location.href).not.toContain('secret');
	});

	it('leads to a new link when the old one is used up or torn', async () => {
		serve({ 'POST /api/auth/password-reset/confirm': () => problem('token_invalid', 400) });
		at('/passievol/new-password#one-time.secret');
		const { unmount } = render(NewPassword, props);
		await type('New password', 'a good password');
		await press('Use this password');
		const link = await within(screen.getByRole('alert')).findByRole('link', { name: 'Ask for a new link' });
		expect(link.getAttribute('href')).toBe('/passievol/forgot-password');
		unmount();

		render(NewPassword, props);
		expect(screen.getByRole('link', { name: 'Ask for a new link' })).toBeTruthy();
		expect(screen.queryByLabelText('New password')).toBeNull();
	});
});

describe('the account', () => {
	const here = { id: 's1', organization: 'passievol', created_at: '2027-03-12T08:00:00Z', last_seen_at: '2027-03-12T09:00:00Z', is_current: true };
	const there = { ...here, id: 's2', created_at: '2027-03-10T08:00:00Z', is_current: false };
	const replies = {
		'POST /api/auth/login': signedIn,
		'GET /api/me': () => account(),
		'GET /api/me/sessions': () => Response.json({ data: [there, here] }),
	};

	async function open(more: Parameters<typeof serve>[0] = {}) {
		const asked = serve({ ...replies, ...more });
		at('/passievol/account');
		await session.signIn('passievol', 'lerato@voorbeeld.co.za', 'a good password');
		render(Account, props);
		await screen.findByText('This device');
		return asked;
	}

	it('sends a stranger to sign in, and remembers where they wanted to go', async () => {
		document.cookie = 'vg_signed_in=1; Path=/';
		serve({ 'GET /api/me': () => problem('unauthorized', 401) });
		at('/passievol/account');
		render(Account, props);
		await session.restore();

		await vi.waitFor(() => expect(location.pathname).toBe('/passievol/sign-in'));
		expect(router.next).toBe('/passievol/account');
	});

	it('changes name and language, and speaks it at once', async () => {
		const asked = await open({ 'PATCH /api/me': done });
		await type('Name', 'Lerato Mokoena');
		await fireEvent.change(screen.getByLabelText('Your language'), { target: { value: 'af' } });
		await press('Save');

		expect(await screen.findByText('Gestoor.')).toBeTruthy();
		expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('Jou rekening');
		expect(asked.at(-1)?.body).toEqual({ name: 'Lerato Mokoena', locale: 'af' });
	});

	it('says beside the field that the current password is wrong', async () => {
		await open({ 'PUT /api/me/password': () => problem('credentials_wrong', 401) });
		await type('Current password', 'wrong');
		await type('New password', 'a better password');
		await press('Change the password');

		await vi.waitFor(() => expect(lineOf('Current password')).toBe('This is not your password. Try again.'));
		expect(session.standing).toBe('known');
	});

	it('changes the password and empties the fields', async () => {
		await open({ 'PUT /api/me/password': done });
		await type('Current password', 'a good password');
		await type('New password', 'a better password');
		await press('Change the password');

		expect(await screen.findByText(/Your password is changed/)).toBeTruthy();
		expect(field('Current password').value).toBe('');
		expect(field('New password').value).toBe('');
	});

	it('signs out another device', async () => {
		const asked = await open({ 'DELETE /api/me/sessions/s2': done });
		await fireEvent.click(screen.getByRole('button', { name: /^Sign out there/ }));

		expect(await screen.findByText('Signed out there.')).toBeTruthy();
		expect(screen.queryByRole('button', { name: /^Sign out there/ })).toBeNull();
		expect(asked.at(-1)?.what).toBe('DELETE /api/me/sessions/s2');
	});

	it('signs out and goes to the storefront, not to the sign-in', async () => {
		await open({ 'POST /api/auth/logout': done });
		await press('Sign out');

		await vi.waitFor(() => expect(location.pathname).toBe('/passievol'));
		expect(session.standing).toBe('anonymous');
	});

	it('is deleted only with the password, after saying what that means', async () => {
		const asked = await open({ 'POST /api/me/delete': done });
		await press('Delete my account');
		const dialog = within(await screen.findByRole('dialog'));
		expect(dialog.getByText(/Tickets that were bought stay valid/)).toBeTruthy();

		await fireEvent.click(dialog.getByRole('button', { name: 'Delete it' }));
		expect(await dialog.findByText('Give your password.')).toBeTruthy();
		await fireEvent.input(dialog.getByLabelText('Password'), { target: { value: 'a good password' } });
		await fireEvent.click(dialog.getByRole('button', { name: 'Delete it' }));

		await vi.waitFor(() => expect(location.pathname).toBe('/passievol'));
		expect(asked.at(-1)).toMatchObject({ what: 'POST /api/me/delete', body: { password: 'a good password' } });
		expect(session.notice).toBe('session.notice.deleted');
	});

	it('says in words what a membership is worth', async () => {
		const base = { status: 'active', valid_from: '2020-01-01T00:00:00Z', valid_to: null };
		const memberships = [
			{ ...base, id: '1', tier: 'Gold' },
			{ ...base, id: '2', tier: 'Silver', valid_to: '2021-01-01T12:00:00Z' },
			{ ...base, id: '3', tier: 'Friend', valid_from: '2099-01-01T12:00:00Z' },
			{ ...base, id: '4', tier: 'Patron', status: 'revoked' },
		];
		await open({
			'GET /api/me': async () => {
				const { data } = await account().json();
				return Response.json({ data: { ...data, memberships } });
			},
		});

		const rows = screen.getByRole('region', { name: 'Memberships' }).querySelectorAll('li');
		expect([...rows].map((row) => row.textContent.replace(/\s+/g, ' ').trim())).toEqual([
			'Gold Without an end date Active',
			'Silver Was valid until 1 January 2021 Expired',
			'Friend From 1 January 2099 Not begun yet',
			'Patron Without an end date Ended by the organization',
		]);
	});
});
