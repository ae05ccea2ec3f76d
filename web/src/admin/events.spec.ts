import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Events, Search, TYPING_MS } from './events.svelte.ts';
import type { EventView } from './model.ts';
import { makeEvent, UNDATED } from './sample.ts';

interface Question {
	readonly path: string;
	readonly query: URLSearchParams;
	/** A list, or one event where one was asked for. */
	answer(data: EventView | readonly EventView[], next_cursor?: string | null): Promise<void>;
}

let questions: Question[];

/** A server that answers when the test says so, in whatever order. */
beforeEach(() => {
	vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
	questions = [];
	vi.stubGlobal(
		'fetch',
		vi.fn<typeof fetch>((input) => {
			const { pathname, searchParams } = new URL((input as Request).url);
			return new Promise((resolve) => {
				const answer: Question['answer'] = async (data, next_cursor = null) => {
					resolve(Response.json(Array.isArray(data) ? { data, next_cursor } : { data }));
					await settle();
				};
				questions.push({ path: pathname, query: searchParams, answer });
			});
		}),
	);
});
afterEach(() => void vi.useRealTimers());

/** Lets everything happen that does not wait for the server or the clock. */
async function settle(): Promise<void> {
	await vi.advanceTimersByTimeAsync(0);
}

/** The question that was asked at this place, counted from the first or from the last. */
async function question(at: number): Promise<Question> {
	await settle();
	const found = questions.at(at);
	if (!found) throw new Error(`the server was asked ${questions.length} times`);
	return found;
}

const many = (from: number, count: number, over: Partial<EventView> = {}) =>
	Array.from({ length: count }, (_, n) =>
		makeEvent({
			id: `id-${String(from + n).padStart(4, '0')}`,
			name: `Event ${from + n}`,
			effective_start_at: new Date(Date.UTC(2027, 0, 1, from + n)).toISOString(),
			...over,
		}),
	);
const namesOf = (events: Events, part: Parameters<Events['in']>[0] = 'current') => events.in(part).map(({ name }) => name);

async function loaded(current: readonly EventView[], next: string | null = null, over: readonly EventView[] = []): Promise<Events> {
	const events = new Events();
	void events.load();
	await (await question(0)).answer(current, next);
	await (await question(1)).answer(over);
	expect(events.standing).toBe('here');
	return events;
}

describe('the order', () => {
	it('is that of the server: what is over and what is archived the latest first', async () => {
		const over = many(1, 3, { status: 'ended' }).reverse();
		const events = await loaded(many(10, 2), null, over);
		events.want('archived');
		await (await question(2)).answer(many(20, 2, { status: 'archived' }).reverse());

		expect(questions.map(({ query }) => query.get('order'))).toEqual(['asc', 'desc', 'desc']);
		expect(namesOf(events)).toEqual(['Event 10', 'Event 11']);
		expect(namesOf(events, 'over')).toEqual(['Event 3', 'Event 2', 'Event 1']);
		expect(namesOf(events, 'archived')).toEqual(['Event 21', 'Event 20']);
	});

	it('keeps what has no date where its old one was', async () => {
		const [first, second, third] = many(1, 3) as [EventView, EventView, EventView];
		const lost = { ...second, ...UNDATED, start_at: second.effective_start_at as string };

		expect(namesOf(await loaded([first, lost, third]))).toEqual(['Event 1', 'Event 2', 'Event 3']);
	});
});

describe('an answer that comes late', () => {
	const [row] = many(1, 1) as [EventView];
	const newer = { ...row, name: 'Newer', version: row.version + 1 };

	it('does not put an older row in the place of a newer one: a page', async () => {
		const events = await loaded([row], 'next');
		void events.more('current');
		const page = await question(2);
		events.frame({ kind: 'event_updated', event_id: row.id });
		await (await question(3)).answer(newer);
		await page.answer([row, ...many(2, 1)]);

		expect(namesOf(events)).toEqual(['Newer', 'Event 2']);
	});

	it('nor does the whole list, which also keeps what was made since it was asked for', async () => {
		const events = await loaded([row]);
		const [made] = many(5, 1) as [EventView];
		void events.load();
		const [current, over] = [await question(2), await question(3)];
		events.frame({ kind: 'event_updated', event_id: row.id });
		events.frame({ kind: 'event_created', event_id: made.id });
		await (await question(4)).answer(newer);
		await (await question(5)).answer(made);
		await current.answer([row]);
		await over.answer([]);

		expect(namesOf(events)).toEqual(['Newer', 'Event 5']);
	});

	it('does not bring back what was deleted', async () => {
		const events = await loaded(many(1, 2));
		void events.load();
		const [current, over] = [await question(2), await question(3)];
		events.frame({ kind: 'event_deleted', event_id: row.id });
		await current.answer(many(1, 2));
		await over.answer([]);

		expect(namesOf(events)).toEqual(['Event 2']);
	});

	it('does not hide a page that came meanwhile, nor the way on from there', async () => {
		const events = await loaded(many(1, 1), 'two');
		void events.load();
		const [current, over] = [await question(2), await question(3)];
		void events.more('current');
		await (await question(4)).answer(many(2, 1), 'three');
		await current.answer(many(1, 1), 'two');
		await over.answer([]);
		void events.more('current');

		expect(namesOf(events)).toEqual(['Event 1', 'Event 2']);
		expect((await question(-1)).query.get('cursor')).toBe('three');
	});

	it('but an equal version is taken: the venue may have another name', async () => {
		const events = await loaded([row]);
		void events.load();
		await (await question(2)).answer([{ ...row, venue: { ...row.venue, name: 'Die Nuwe Skouburg' } }]);
		await (await question(3)).answer([]);

		expect(events.all[0]?.venue.name).toBe('Die Nuwe Skouburg');
	});

	it('drops what the list no longer has', async () => {
		const events = await loaded(many(1, 2));
		void events.load();
		await (await question(2)).answer(many(2, 1));
		await (await question(3)).answer([]);

		expect(namesOf(events)).toEqual(['Event 2']);
	});
});

describe('a venue that is changed', () => {
	it('has as many rows loaded again as are shown', async () => {
		const events = await loaded(many(1, 100), 'two');
		void events.more('current');
		await (await question(2)).answer(many(101, 100), 'three');
		expect(events.all).toHaveLength(200);
		const moved = { venue: { ...makeEvent().venue, name: 'Die Nuwe Skouburg' } };
		events.frame({ kind: 'venue_updated', venue_id: moved.venue.id });
		await (await question(3)).answer(many(1, 100, moved), 'two');
		await (await question(4)).answer([]);
		expect((await question(5)).query.get('cursor')).toBe('two');
		await (await question(5)).answer(many(101, 100, moved), 'three');

		expect(events.all.filter(({ venue }) => venue.name === 'Die Nuwe Skouburg')).toHaveLength(200);
		expect(events.hasMore('current')).toBe(true);
		expect(questions).toHaveLength(6);
	});

	it('is loaded once more for all that happens meanwhile', async () => {
		const events = await loaded(many(1, 1));
		for (let times = 0; times < 5; times++) events.frame({ kind: 'venue_updated' });
		await (await question(2)).answer(many(1, 1));
		await (await question(3)).answer([]);
		await (await question(4)).answer(many(1, 1));
		await (await question(5)).answer([]);
		await settle();

		expect(questions).toHaveLength(6);
	});
});

it('can be counted only once all of it is here', async () => {
	const events = await loaded(many(1, 1), 'next');
	expect([events.isWhole('current'), events.isWhole('over'), events.isWhole('archived')]).toEqual([false, true, false]);
	void events.more('current');
	await (await question(2)).answer(many(2, 1));

	expect(events.isWhole('current')).toBe(true);
});

it('keeps what was archived out of the list, until the archive is wanted', async () => {
	const events = await loaded(many(1, 2));
	const [first] = many(1, 1, { status: 'archived', version: 9 }) as [EventView];
	events.frame({ kind: 'event_status_changed', event_id: first.id });
	await (await question(2)).answer(first);
	expect(events.all.map(({ name }) => name)).toEqual(['Event 2']);
	events.want('archived');
	await (await question(3)).answer([first]);

	expect(namesOf(events, 'archived')).toEqual(['Event 1']);
});

describe('a search', () => {
	const pause = () => vi.advanceTimersByTimeAsync(TYPING_MS);

	/** Answers both parts of a search. */
	async function found(at: number, events: readonly EventView[]): Promise<void> {
		await (await question(at)).answer(events);
		await (await question(at + 1)).answer([]);
	}

	it('asks once nobody types, with what is typed then', async () => {
		const search = new Search();
		for (const typed of ['b', 'bo', ' boe ']) {
			search.seek(typed);
			await vi.advanceTimersByTimeAsync(TYPING_MS - 1);
		}
		expect(questions).toHaveLength(0);
		await pause();
		await found(0, many(1, 1));

		expect(questions.map(({ query }) => query.get('q'))).toEqual(['boe', 'boe']);
		expect(search.found?.all).toHaveLength(1);
	});

	it('shows the answer to the last question, in whatever order they come', async () => {
		const search = new Search();
		search.seek('a');
		await pause();
		search.seek('ab');
		await pause();
		await found(2, many(2, 1));
		expect(search.found?.words).toBe('ab');
		await found(0, many(1, 1));

		expect(search.found?.words).toBe('ab');
		expect(search.found?.all.map(({ name }) => name)).toEqual(['Event 2']);
	});

	it('shows no answer once nothing is looked for', async () => {
		const search = new Search();
		search.seek('a');
		await pause();
		search.seek('');
		await found(0, many(1, 1));

		expect(search.found).toBeNull();
	});

	it('asks again when something happens, since only the server knows whose name has the words', async () => {
		const search = new Search();
		search.seek('a');
		await pause();
		await found(0, many(1, 1));
		search.frame({ kind: 'event_created', event_id: 'another' });
		await found(2, many(1, 2));
		expect(search.found?.all).toHaveLength(2);

		search.seek('ab');
		await pause();
		// Told while the answer is on its way, which may not know of it.
		const [current, over] = [await question(4), await question(5)];
		search.frame({ kind: 'event_created', event_id: 'another' });
		// The list that is still shown asks too.
		await found(6, many(1, 2));
		await current.answer([]);
		await over.answer([]);
		expect(search.found?.words).toBe('ab');
		await found(8, many(3, 1));
		expect(search.found?.all.map(({ name }) => name)).toEqual(['Event 3']);
	});
});
