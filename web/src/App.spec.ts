import { cleanup, fireEvent, render, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import App from './App.svelte';
import { i18n } from './i18n/i18n.svelte.ts';

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

beforeEach(() => i18n.choose('en'));
afterEach(cleanup);

describe('the front page', () => {
	it('says that nothing is on sale and how the installation is doing', async () => {
		serve('ready', 'ok');
		render(App, { path: '/' });

		expect(screen.getByRole('heading', { level: 1 }).textContent).toContain('Nothing is on sale yet.');
		expect(await screen.findByText('Everything it needs is in place.')).toBeTruthy();
		expect(screen.getAllByText('In order')).toHaveLength(3);
		expect(screen.getByText(/^Checked at \d\d:\d\d:\d\d$/)).toBeTruthy();
		expect(screen.getByText('Version 0.1.0')).toBeTruthy();
		expect(document.title).toBe('Nothing on sale yet · VoelgoedEvents');
	});

	it('says that selling goes on without Redis, in words of its own', async () => {
		serve('degraded', 'away');
		render(App, { path: '/' });

		expect(await screen.findByText('Ready, without Redis')).toBeTruthy();
		expect(screen.getByText('Redis does not answer. Selling goes on without it, only slower.')).toBeTruthy();
		expect(document.body.textContent).not.toContain(RAW);
	});

	it('offers to try again when the server is silent, and shows what it then says', async () => {
		vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockRejectedValue(new TypeError('Failed to fetch')));
		render(App, { path: '/' });
		const again = await screen.findByRole('button', { name: 'Try again' });
		expect(screen.getByText('No answer so far')).toBeTruthy();

		serve('ready', 'ok');
		await fireEvent.click(again);
		expect(await screen.findByText('Everything it needs is in place.')).toBeTruthy();
	});

	it('speaks Afrikaans as soon as it is chosen', async () => {
		serve('ready', 'ok');
		render(App, { path: '/' });
		await screen.findByText('Everything it needs is in place.');

		await fireEvent.change(screen.getByRole('combobox', { name: 'Language' }), { target: { value: 'af' } });
		expect(await screen.findByText('Alles wat dit nodig het, is in plek.')).toBeTruthy();
		expect(document.documentElement.lang).toBe('af');
	});

	it('pins the other theme, and hands the choice back to the system', async () => {
		serve('ready', 'ok');
		render(App, { path: '/' });

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
		render(App, { path: '/nowhere' });

		expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('There is no seat here.');
		const main = within(screen.getByRole('main'));
		expect(main.getByRole('link').getAttribute('href')).toBe('/');
		expect(screen.getByRole('banner')).toBeTruthy();
	});
});
