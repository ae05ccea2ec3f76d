import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { i18n } from '../i18n/i18n.svelte.ts';
import { PASSIEVOL, problem, serve } from '../test/server.ts';
import { makeCard, POSTPONED, RESCHEDULED } from './make.ts';
import { Programme } from './programme.svelte.ts';
import Storefront from './Storefront.svelte';

const EVENTS = 'GET /api/storefronts/passievol/events';
type Card = ReturnType<typeof makeCard>;
const listed = (data: Card[], next_cursor: string | null = null) => Response.json({ data, next_cursor });
const many = (from: number, count: number, over: Partial<Card> = {}) =>
	Array.from({ length: count }, (_, n) => from + n).map((n) =>
		makeCard({ id: `${n}`, slug: `event-${n}`, name: `Event ${n}`, ...over }),
	);
const names = () => screen.getAllByRole('heading', { level: 3 }).map((heading) => heading.textContent);
const open = (programme = new Programme()) => render(Storefront, { organization: PASSIEVOL, programme });
const cardOf = (name: string) => within(screen.getByText(name).closest('article') as HTMLElement);
const askedFor = () => new URL((vi.mocked(fetch).mock.calls.at(-1)?.[0] as Request).url).searchParams;

beforeEach(() => i18n.choose('en'));
afterEach(cleanup);

describe('the programme', () => {
	it('shows of each event what, when and where, and leads to its page', async () => {
		const asked = serve({ [EVENTS]: () => listed([makeCard()]) });
		open();

		const link = await screen.findByRole('link', { name: 'Die Laaste Boemeltrein' });
		expect(link.getAttribute('href')).toBe('/passievol/events/boemeltrein');
		const card = cardOf('Die Laaste Boemeltrein');
		expect(card.getByText('Fri 12 Mar 2027 · 19:30')).toBeTruthy();
		expect(card.getByText('Die Skouburg')).toBeTruthy();
		expect(card.getByText('On sale')).toBeTruthy();
		expect(screen.getByRole('status').textContent).toBe('1 event');
		expect(asked).toHaveLength(1);
	});

	it('shows no date of what is postponed without a new one, and the new date of the rest', async () => {
		const moved = makeCard({ id: '2', name: 'Stemme', ...RESCHEDULED });
		serve({ [EVENTS]: () => listed([makeCard(POSTPONED), moved]) });
		open();
		await screen.findByText('Stemme');

		const postponed = cardOf('Die Laaste Boemeltrein');
		expect(postponed.queryByText(/2027/)).toBeNull();
		expect(postponed.getByText('A new date follows')).toBeTruthy();
		expect(postponed.getByText('Postponed')).toBeTruthy();
		expect(cardOf('Stemme').getByText('Sat 24 Apr 2027 · 18:00')).toBeTruthy();
		expect(cardOf('Stemme').getByText('Postponed to 24 Apr 2027')).toBeTruthy();
	});

	it('offers the kinds there are, and shows one of them', async () => {
		const [theatre] = many(1, 1);
		const [sport] = many(2, 1, { category: 'sport' });
		serve({ [EVENTS]: () => listed([sport as Card, theatre as Card]) });
		open();

		const chips = within(await screen.findByRole('group', { name: 'Which events to show' }));
		expect(chips.getAllByRole('button').map((chip) => chip.textContent?.trim())).toEqual(['Everything', 'Theatre', 'Sport']);
		await fireEvent.click(chips.getByRole('button', { name: 'Sport' }));
		expect(names()).toEqual(['Event 2']);
		expect(chips.getByRole('button', { name: 'Sport' }).getAttribute('aria-pressed')).toBe('true');

		await fireEvent.click(chips.getByRole('button', { name: 'Everything' }));
		expect(names()).toEqual(['Event 2', 'Event 1']);
	});

	it('has no chips where everything is of one kind', async () => {
		serve({ [EVENTS]: () => listed(many(1, 2)) });
		open();
		await screen.findByText('Event 1');

		expect(screen.queryByRole('group')).toBeNull();
	});

	it('shows more on request, and goes on reading there', async () => {
		const replies = [listed(many(1, 2), 'next'), listed(many(2, 2))];
		serve({ [EVENTS]: () => replies.shift() as Response });
		open();
		await fireEvent.click(await screen.findByRole('button', { name: 'Show more events' }));

		await screen.findByText('Event 3');
		expect(askedFor().get('cursor')).toBe('next');
		expect(names()).toEqual(['Event 1', 'Event 2', 'Event 3']);
		await waitFor(() => expect(document.activeElement?.textContent).toBe('Event 3'));
		expect(screen.queryByRole('button', { name: 'Show more events' })).toBeNull();
	});

	it('looks for more of the chosen kind, not only at the next page', async () => {
		const sport = { category: 'sport' };
		const replies = [
			listed([...many(1, 1), ...many(2, 1, sport)], 'two'),
			listed(many(3, 2), 'three'),
			listed(many(5, 1, sport), 'four'),
		];
		serve({ [EVENTS]: () => replies.shift() as Response });
		open();
		await fireEvent.click(await screen.findByRole('button', { name: 'Sport' }));
		await fireEvent.click(screen.getByRole('button', { name: 'Show more events' }));

		await screen.findByText('Event 5');
		expect(askedFor().get('cursor')).toBe('three');
		expect(names()).toEqual(['Event 2', 'Event 5']);
	});

	it('keeps what is there when the rest cannot be had, and says why', async () => {
		const replies = [() => listed(many(1, 1), 'next'), () => problem('busy', 503)];
		serve({ [EVENTS]: () => (replies.shift() as () => Response)() });
		open();
		await fireEvent.click(await screen.findByRole('button', { name: 'Show more events' }));

		await waitFor(() => expect(screen.getByRole('alert').textContent).toContain('very busy'));
		expect(names()).toEqual(['Event 1']);
		expect(screen.getByRole('button', { name: 'Show more events' })).toBeTruthy();
	});
});

describe('whoever comes back from an event', () => {
	it('finds the list as it was, and it is renewed as a whole', async () => {
		const programme = new Programme();
		const replies = [listed(many(1, 24), 'next'), listed(many(25, 24), 'more')];
		serve({ [EVENTS]: () => replies.shift() ?? listed(many(2, 47), 'more') });
		open(programme);
		await fireEvent.click(await screen.findByRole('button', { name: 'Show more events' }));
		await screen.findByText('Event 48');
		cleanup();

		open(programme);
		expect(names()).toHaveLength(48);
		await waitFor(() => expect(names()).toHaveLength(47));
		expect(askedFor().get('limit')).toBe('48');
		expect(askedFor().get('cursor')).toBeNull();
	});

	it('keeps the list when it cannot be renewed', async () => {
		const programme = new Programme();
		serve({ [EVENTS]: () => listed(many(1, 2)) });
		await programme.show('passievol');
		serve({ [EVENTS]: () => problem('busy', 503) });
		await programme.show('passievol');

		expect(programme.standing).toBe('shown');
		expect(programme.all).toHaveLength(2);
	});

	it('sees nothing of another organization', async () => {
		const programme = new Programme();
		serve({ [EVENTS]: () => listed(many(1, 2)), 'GET /api/storefronts/other/events': () => new Promise(() => {}) });
		await programme.show('passievol');
		void programme.show('other');

		expect(programme.all).toEqual([]);
		expect(programme.standing).toBe('asking');
	});
});

describe('the zone of the times', () => {
	const inZone = (timezone: string, n: number) =>
		makeCard({ id: `${n}`, name: `Event ${n}`, venue: { ...makeCard().venue, timezone } });

	it('is said once where it is the same for all', async () => {
		serve({ [EVENTS]: () => listed([inZone('Pacific/Kiritimati', 1), inZone('Pacific/Kiritimati', 2)]) });
		open();

		expect(await screen.findByText('All times are Kiritimati time (GMT+14).')).toBeTruthy();
		expect(screen.getAllByText(/Kiritimati/)).toHaveLength(1);
	});

	it('is said on each card where they differ', async () => {
		serve({ [EVENTS]: () => listed([inZone('Pacific/Kiritimati', 1), inZone('Pacific/Marquesas', 2)]) });
		open();
		await screen.findByText('Event 2');

		expect(cardOf('Event 1').getByText('Kiritimati time (GMT+14)')).toBeTruthy();
		expect(cardOf('Event 2').getByText('Marquesas time (GMT-9:30)')).toBeTruthy();
		expect(screen.queryByText(/All times/)).toBeNull();
	});
});

describe('where there is nothing to show', () => {
	it('says so and how to be ready', async () => {
		serve({ [EVENTS]: () => listed([]) });
		open();

		expect(await screen.findByRole('heading', { level: 2, name: 'Nothing is on sale yet.' })).toBeTruthy();
		expect(screen.getByRole('link', { name: 'Make an account' }).getAttribute('href')).toBe('/passievol/register');
		expect(screen.queryByRole('link', { name: 'See the programme' })).toBeNull();
	});

	it('says what happened and what to do, and does it', async () => {
		vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockRejectedValue(new TypeError('Failed to fetch')));
		open();
		const again = await screen.findByRole('button', { name: 'Try again' });
		expect(screen.getByRole('alert').textContent).toContain('See that you are online');

		serve({ [EVENTS]: () => listed([makeCard()]) });
		await fireEvent.click(again);
		expect(await screen.findByText('Die Laaste Boemeltrein')).toBeTruthy();
	});

	it('says that it is being asked for, and draws no event', () => {
		serve({ [EVENTS]: () => new Promise(() => {}) });
		open();

		expect(screen.getByRole('status').textContent).toBe('One moment');
		expect(screen.queryByRole('article')).toBeNull();
	});
});
