import { cleanup, fireEvent, render, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import App from './App.svelte';
import { i18n } from './i18n/i18n.svelte.ts';
import { router } from './lib/router.svelte.ts';
import { session } from './lib/session.svelte.ts';
import { problem } from './test/server.ts';

const RAW = 'raw words of the server';
const check = (state: string) => ({ state, message: RAW });

function serve(status: string, redis: string): void {
	vi.stubGlobal(
		'fetch',
		vi.fn<typeof fetch>(async () =>
			Response.json({
				status,
				version: '0.1.0',
				checks: { database: check('ok'), schema: check('ok'), redis: check(redis) },
			}),
		),
	);
}

let stop = () => {};

function open(path: string): void {
	history.replaceState(null, '', path);
	const stops = [router.start(), session.start()];
	stop = () => stops.forEach((end) => end());
	render(App);
}

beforeEach(async () => {
	i18n.choose('en');
	await session.restore();
});

afterEach(() => {
	stop();
	cleanup();
});

describe('the front page', () => {
	it('says that nothing is on sale and how the installation is doing', async () => {
		serve('ready', 'ok');
		open('/');

		expect(screen.getByRole('heading', { level: 1 }).textContent).toContain('Nothing is on sale yet.');
		expect(await screen.findByText('Everything it needs is in place.')).toBeTruthy();
		expect(screen.getAllByText('In order')).toHaveLength(3);
		expect(screen.getByText(/^Checked at \d\d:\d\d:\d\d$/)).toBeTruthy();
		expect(screen.getByText('Version 0.1.0')).toBeTruthy();
		expect(document.title).toBe('Nothing on sale yet · VoelgoedEvents');
	});

	it('says that selling goes on without Redis, in words of its own', async () => {
		serve('degraded', 'away');
		open('/');

		expect(await screen.findByText('Ready, without Redis')).toBeTruthy();
		expect(screen.getByText('Redis does not answer. Selling goes on without it, only slower.')).toBeTruthy();
		expect(document.body.textContent).not.toContain(RAW);
	});

	it('offers to try again when the server is silent, and shows what it then says', async () => {
		vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockRejectedValue(new TypeError('Failed to fetch')));
		open('/');
		const again = await screen.findByRole('button', { name: 'Try again' });
		expect(screen.getByText('No answer so far')).toBeTruthy();

		serve('ready', 'ok');
		await fireEvent.click(again);
		expect(await screen.findByText('Everything it needs is in place.')).toBeTruthy();
	});

	it('speaks Afrikaans as soon as it is chosen', async () => {
		serve('ready', 'ok');
		open('/');
		await screen.findByText('Everything it needs is in place.');

		await fireEvent.change(screen.getByRole('combobox', { name: 'Language' }), { target: { value: 'af' } });
		expect(await screen.findByText('Alles wat dit nodig het, is in plek.')).toBeTruthy();
		expect(document.documentElement.lang).toBe('af');
	});

	it('pins the other theme, and hands the choice back to the system', async () => {
		serve('ready', 'ok');
		open('/');

		await fireEvent.click(screen.getByRole('button', { name: 'Use the dark theme' }));
		expect(document.documentElement.dataset.theme).toBe('dark');
		expect(localStorage.getItem('voelgoed.theme')).toBe('dark');

		await fireEvent.click(screen.getByRole('button', { name: 'Use the light theme' }));
		expect(document.documentElement.dataset.theme).toBeUndefined();
		expect(localStorage.getItem('voelgoed.theme')).toBeNull();
	});
});

describe('any other path', () => {
	it('says so inside the shell and leads back', () => {
		open('/no/such/page');

		expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('There is no seat here.');
		const main = within(screen.getByRole('main'));
		expect(main.getByRole('link').getAttribute('href')).toBe('/');
		expect(screen.getByRole('banner')).toBeTruthy();
	});
});

describe('the address of an organization', () => {
	const PASSIEVOL = { id: '1', slug: 'passievol', name: 'Passievol', is_suspended: false };
	const answer = (response: () => Response) =>
		vi.stubGlobal(
			'fetch',
			vi.fn<typeof fetch>(async (input) =>
				(input as Request).url.includes('/events') ? Response.json({ data: [], next_cursor: null }) : response(),
			),
		);
	const heading = () => screen.findByRole('heading', { level: 1 });

	it('says whose it is, that nothing is on sale, and where to sign in', async () => {
		answer(() => Response.json({ data: PASSIEVOL }));
		open('/passievol');

		expect((await heading()).textContent).toBe('Passievol');
		expect(await screen.findByText('Nothing is on sale yet.')).toBeTruthy();
		const main = within(screen.getByRole('main'));
		expect(main.getByRole('link', { name: 'Sign in' }).getAttribute('href')).toBe('/passievol/sign-in');
		expect(main.getByRole('link', { name: 'Make an account' }).getAttribute('href')).toBe('/passievol/register');
		expect(document.title).toBe('Passievol · VoelgoedEvents');
	});

	it('moves on without loading the page, and puts the focus on the new heading', async () => {
		answer(() => Response.json({ data: PASSIEVOL }));
		open('/passievol');
		await fireEvent.click(await screen.findByRole('link', { name: 'Make an account' }));

		const arrived = await screen.findByRole('heading', { level: 1, name: 'Make an account' }, { timeout: 5000 });
		expect(document.activeElement).toBe(arrived);
		expect(location.pathname).toBe('/passievol/register');
		expect(document.title).toBe('Make an account · Passievol');
	});

	it('is answered kindly when there is none', async () => {
		answer(() => problem('organization_not_found', 404));
		open('/nobody');

		expect((await heading()).textContent).toBe('There is no seat here.');
	});

	it('says calmly that it is closed for now', async () => {
		answer(() => Response.json({ data: { ...PASSIEVOL, is_suspended: true } }));
		open('/passievol/sign-in');

		expect((await heading()).textContent).toBe('Passievol is closed for now.');
		expect(screen.queryByLabelText('E-mail')).toBeNull();
	});

	it('offers to try again when the server is silent', async () => {
		vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockRejectedValue(new TypeError('Failed to fetch')));
		open('/passievol');
		const again = await screen.findByRole('button', { name: 'Try again' });

		answer(() => Response.json({ data: PASSIEVOL }));
		await fireEvent.click(again);
		expect(await screen.findByText('Nothing is on sale yet.')).toBeTruthy();
	});
});
