import { cleanup, fireEvent, render, screen, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import { PASSIEVOL, problem, serve } from '../test/server.ts';
import EventPage from './EventPage.svelte';
import { makePage, POSTPONED, RESCHEDULED, SKOUBURG } from './make.ts';

const EVENT = 'GET /api/storefronts/passievol/events/boemeltrein';
const open = () => render(EventPage, { organization: PASSIEVOL, slug: 'boemeltrein' });
const heading = () => screen.findByRole('heading', { level: 1 });

async function show(over: Parameters<typeof makePage>[0] = {}): Promise<void> {
	serve({ [EVENT]: () => Response.json({ data: makePage(over) }) });
	open();
	await heading();
}

const part = (name: string) => screen.getByRole('region', { name });
const plain = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, ' ').trim();
const factOf = (term: string) => plain(screen.getByText(term).closest('div')?.querySelector('dd'));

beforeEach(() => i18n.choose('en'));
afterEach(cleanup);

describe('the page of an event', () => {
	it('says what, when, where, and what else there is to know', async () => {
		await show({
			doors_at: '2027-03-12T16:30:00Z',
			address: { street: '12 Kerk Street', city: 'Potchefstroom' },
			description: 'A night train.\n\nWritten by Hanlie\nDirected by Themba',
			age_min: 12,
			language: 'af',
			access_rules: 'Bring your ticket.',
			bag_policy: 'Small bags only.',
			step_free: true,
		});

		expect((await heading()).textContent).toBe('Die Laaste Boemeltrein');
		expect(document.title).toBe('Die Laaste Boemeltrein · Passievol');
		expect(factOf('When')).toContain('Friday 12 March 2027 19:30 – 22:00 Doors open at 18:30');
		expect(factOf('Where')).toBe('Die Skouburg 12 Kerk StreetPotchefstroom Step-free access');
		expect(screen.getByText('A night train.').tagName).toBe('P');
		expect(screen.getByText(/Written by Hanlie/).textContent).toBe('Written by Hanlie\nDirected by Themba');
		expect(['Age', 'Language', 'Getting in', 'Bags'].map(factOf)).toEqual([
			'From 12 years',
			'Afrikaans',
			'Bring your ticket.',
			'Small bags only.',
		]);
		expect(screen.getByRole('link', { name: 'All events at Passievol' }).getAttribute('href')).toBe('/passievol');
	});

	it('asks the server once', async () => {
		const asked = serve({ [EVENT]: () => Response.json({ data: makePage() }) });
		open();
		await heading();
		await new Promise((resolve) => setTimeout(resolve));

		expect(asked).toHaveLength(1);
	});

	it('takes the words of the organiser as words', async () => {
		await show({ description: '<img src=x onerror=alert(1)>' });

		expect(screen.getByText('<img src=x onerror=alert(1)>')).toBeTruthy();
		expect(document.querySelector('img')).toBeNull();
	});

	it('shows the days of an event that lasts for some, and when it begins and ends', async () => {
		await show({ effective_end_at: '2027-03-14T20:00:00Z', days: ['2027-03-12', '2027-03-13', '2027-03-14'] });

		expect(factOf('When')).toContain('Friday 12 – Sunday 14 March 2027');
		expect(factOf('When')).toContain('Fri 12 Mar 2027, 19:30 – Sun 14 Mar 2027, 22:00');
	});

	it('says whose times these are where the own clock shows others', async () => {
		await show({ venue: { ...SKOUBURG, timezone: 'Pacific/Kiritimati' }, days: ['2027-03-13'] });

		expect(factOf('When')).toContain('Saturday 13 March 2027 07:30 – 10:00');
		expect(factOf('When')).toContain('Times are those of the venue: Kiritimati time (GMT+14).');
	});

	it('speaks Afrikaans, dates and reasons too', async () => {
		i18n.choose('af');
		await show(POSTPONED);

		expect(part('Uitgestel. ’n Nuwe datum is nog nie bekend nie.').textContent).toContain('Rede: Slegte weer');
		expect(part('Uitgestel. ’n Nuwe datum is nog nie bekend nie.').textContent).toContain('Vr 12 Mrt 2027');
		expect(factOf('Wanneer')).toContain('’n Nuwe datum volg');
	});
});

describe('what has become of it', () => {
	it('is nothing special, most of the time', async () => {
		await show();

		expect(screen.queryByText(/postponed|tickets stay valid|takes its place/i)).toBeNull();
	});

	it('is postponed without a date: the old one is struck out, and tickets stay valid', async () => {
		await show(POSTPONED);

		const notice = part('Postponed. A new date is not known yet.');
		expect(within(notice).getByText('Fri 12 Mar 2027 · 19:30 – 22:00').tagName).toBe('S');
		expect(notice.textContent).toContain('Your tickets stay valid');
		expect(notice.textContent).toContain('Reason: Bad weather');
		expect(factOf('When')).toContain('A new date follows');
		expect(factOf('When')).not.toContain('2027');
		expect(screen.getAllByText(/12 Mar 2027/)).toHaveLength(1);
		expect(part('Tickets').textContent).toContain('Nothing is sold until there is a new date.');
	});

	it('is postponed to a date, which is then the date', async () => {
		await show({ ...RESCHEDULED, postponement_reason: 'Die dak lek.' });

		const notice = part('Postponed to Saturday 24 April 2027, 18:00');
		expect(within(notice).getByText('Fri 12 Mar 2027 · 19:30 – 22:00').tagName).toBe('S');
		expect(notice.textContent).toContain('Your tickets stay valid for the new date.');
		expect(notice.textContent).toContain('Reason: Die dak lek.');
		expect(factOf('When')).toContain('Saturday 24 April 2027 18:00 – 20:30');
	});

	it('is replaced by another, and there is the way to it', async () => {
		await show({ replaced_by: { id: '2', slug: 'tweede', name: 'Die Tweede Trein' } });

		const link = within(part('Another event takes its place.')).getByRole('link');
		expect(link.textContent).toContain('Go to Die Tweede Trein');
		expect(link.getAttribute('href')).toBe('/passievol/events/tweede');
	});
});

describe('the sale', () => {
	const START = { sale_start_at: '2027-03-01T08:00:00Z' };

	it.each([
		[
			{ ...START, sale_end_at: '2027-03-12T16:00:00Z' },
			['On sale', 'Since Monday 1 March 2027, 10:00', 'Until Friday 12 March 2027, 18:00'],
		],
		[{}, ['On sale', 'Until Friday 12 March 2027, 22:00', 'Choose seats']],
		[
			{ ...START, sale_state: 'not_yet' },
			['Not on sale yet', 'The sale opens Monday 1 March 2027, 10:00', 'Seats go on sale here.'],
		],
		[
			{ sale_state: 'over', sale_end_at: '2027-03-02T08:00:00Z' },
			['The sale is over', 'It ended on Tuesday 2 March 2027, 10:00.'],
		],
		[{ sale_state: 'closed' }, ['Not on sale']],
	] as const)('of %j says %j', async (over, said) => {
		await show(over);

		const words = plain(part('Tickets'));
		for (const line of said) expect(words).toContain(line);
	});

	it('has no button that does nothing', async () => {
		await show();

		expect(screen.queryAllByRole('button')).toEqual([]);
	});
});

describe('an event that cannot be shown', () => {
	it('is not there, or not any more, and there is a way back', async () => {
		serve({ [EVENT]: () => problem('event_not_found', 404) });
		open();

		expect((await heading()).textContent).toBe('There is no such event (any more).');
		expect(document.title).toBe('No such event · Passievol');
		expect(screen.getByRole('link', { name: 'See what is coming up' }).getAttribute('href')).toBe('/passievol');
	});

	it('vanishes for whoever comes back to the page after it was cancelled', async () => {
		vi.useFakeTimers({ toFake: ['Date'] });
		await show();
		serve({ [EVENT]: () => problem('event_not_found', 404) });
		vi.setSystemTime(Date.now() + 60_000);
		document.dispatchEvent(new Event('visibilitychange'));

		expect(await screen.findByRole('heading', { level: 1, name: 'There is no such event (any more).' })).toBeTruthy();
		expect(screen.queryByText('Die Laaste Boemeltrein')).toBeNull();
		vi.useRealTimers();
	});

	it('says what happened and what to do, and does it', async () => {
		vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockRejectedValue(new TypeError('Failed to fetch')));
		open();
		const again = await screen.findByRole('button', { name: 'Try again' });
		expect((await heading()).textContent).toBe('We cannot show this event now.');
		expect(screen.getByText(/See that you are online/)).toBeTruthy();

		serve({ [EVENT]: () => Response.json({ data: makePage() }) });
		await fireEvent.click(again);
		expect(await screen.findByRole('heading', { level: 1, name: 'Die Laaste Boemeltrein' })).toBeTruthy();
	});
});
