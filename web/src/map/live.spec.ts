import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { frameOf, Live, type Surroundings } from './live.svelte.ts';

const ZONES = [{ zone_id: 'z', total: 8, available: 8, held: 0, sold: 0, blocked: 0 }];
const snapshot = (epoch: number, map_version: number) => ({ epoch, map_version, seat_count: 8, statuses: 'AAA=', zones: ZONES });
const wire = (name: string, data: object, id = '') => `${id ? `id: ${id}\n` : ''}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const delta = (version: number, seats: number[], statuses: string) => ({ map_version: version, seats, statuses, zones: [] });

/** Tabs of one browser: a lock that waits its turn, a channel that all others hear. */
class Browser {
	readonly streams: { send: (text: string) => void; end: () => void; headers: Record<string, string>; isAborted: () => boolean }[] = [];
	#waiting: (() => Promise<void> | undefined)[] = [];
	#isLocked = false;
	readonly #channels = new Set<{ onmessage: ((event: MessageEvent) => void) | null }>();

	around(over: Partial<Surroundings> = {}): Surroundings {
		return {
			random: () => 1,
			fetch: vi.fn(async (_: unknown, init?: RequestInit) => {
				let control!: ReadableStreamDefaultController<Uint8Array>;
				const body = new ReadableStream<Uint8Array>({ start: (made) => void (control = made) });
				const signal = init?.signal as AbortSignal;
				this.streams.push({
					send: (text) => control.enqueue(new TextEncoder().encode(text)),
					end: () => control.close(),
					headers: init?.headers as Record<string, string>,
					isAborted: () => signal.aborted,
				});
				return new Response(body as BodyInit, { status: 200 });
			}) as unknown as typeof fetch,
			locks: {
				request: (async (_: string, { signal }: LockOptions, work: () => Promise<void> | undefined) => {
					signal?.addEventListener('abort', () => (this.#waiting = this.#waiting.filter((one) => one !== work)));
					this.#waiting.push(work);
					void this.#next();
				}) as unknown as LockManager['request'],
			},
			channel: () => {
				const own = {
					onmessage: null as ((event: MessageEvent) => void) | null,
					close: () => void this.#channels.delete(own),
					postMessage: (data: unknown) => {
						for (const other of this.#channels) if (other !== own) other.onmessage?.({ data: structuredClone(data) } as MessageEvent);
					},
				};
				this.#channels.add(own);
				return own;
			},
			...over,
		};
	}

	async #next(): Promise<void> {
		if (this.#isLocked) return;
		const work = this.#waiting.shift();
		if (!work) return;
		this.#isLocked = true;
		await work();
		this.#isLocked = false;
		void this.#next();
	}
}

/** A tab that shows a map already, as a page does, or none. */
function follow(around: Surroundings, shown?: readonly [epoch: number, version: number, id?: string]) {
	const told: string[] = [];
	const live = new Live(
		'e',
		{
			snapshot: ({ epoch, map_version }, isReplacing) => told.push(`map ${epoch}:${map_version}${isReplacing ? ' instead' : ''}`),
			delta: ({ mapVersion, ordinals, statuses }) => told.push(`delta ${mapVersion} ${[...Array.from(ordinals)].join()}=${[...Array.from(statuses)].join()}`),
			status: (status) => told.push(status),
			shown: () => ({ seat_count: 8, statuses: 'AAA=', zones: ZONES }),
		},
		() => told.push('basket'),
		around,
	);
	if (shown) live.load(snapshot(shown[0], shown[1]), shown[2]);
	return { live, told, stop: live.start() };
}

const settle = () => vi.advanceTimersByTimeAsync(5);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('the stream', () => {
	it('is read frame by frame, however it is cut into pieces', async () => {
		const browser = new Browser();
		const { told, live, stop } = follow(browser.around());
		await settle();
		const text = wire('event_status', { status: 'published' }) + wire('snapshot', snapshot(1, 4), '1:4') + ': still here\n\n' + wire('delta', delta(5, [2, 3], '12'), '1:5');
		for (const part of text.match(/[\s\S]{1,7}/g) ?? []) browser.streams[0]?.send(part);
		await settle();
		expect(told).toEqual(['published', 'map 1:4', 'delta 5 2,3=1,2']);
		expect(live.standing).toBe('live');
		stop();
		expect(browser.streams[0]?.isAborted()).toBe(true);
	});

	it('changes nothing by what is not newer, and keeps what comes before its map', async () => {
		const browser = new Browser();
		const { told, live, stop } = follow(browser.around());
		await settle();
		live.take({ name: 'delta', data: JSON.stringify(delta(7, [1], '1')), id: '1:7' });
		expect(told).toEqual([]);
		expect(live.load(snapshot(1, 6))).toBe(true);
		expect(told).toEqual(['map 1:6', 'delta 7 1=1']);
		for (const [version, epoch] of [[7, 1], [5, 1], [99, 0]]) live.take({ name: 'delta', data: JSON.stringify(delta(version ?? 0, [1], '0')), id: `${epoch}:${version}` });
		expect(live.load(snapshot(1, 6))).toBe(false);
		expect(live.load(snapshot(0, 50))).toBe(false);
		expect(told).toHaveLength(2);
		// A new epoch counts from the beginning; what was early for it follows at once.
		live.take({ name: 'delta', data: JSON.stringify(delta(2, [4], '2')), id: '2:2' });
		live.take({ name: 'snapshot', data: JSON.stringify(snapshot(2, 1)), id: '2:1' });
		expect(told.slice(2)).toEqual(['map 2:1', 'delta 2 4=2']);
		stop();
	});

	it.each([[3, 6], [2, 40]])('goes back to map %i:%i where the server says so, and only then', async (epoch, version) => {
		const browser = new Browser();
		const { told, stop } = follow(browser.around(), [3, 9, '3:9:77']);
		await settle();
		const older = wire('snapshot', snapshot(epoch, version), `${epoch}:${version}:5`);
		browser.streams[0]?.send(older);
		await settle();
		expect(told).toEqual(['map 3:9']);
		browser.streams[0]?.send(wire('resync', {}) + older + wire('delta', delta(version, [1], '1'), `${epoch}:${version}:5`));
		browser.streams[0]?.send(wire('delta', delta(version + 1, [2], '1'), `${epoch}:${version + 1}:6`));
		await settle();
		expect(told.slice(1)).toEqual([`map ${epoch}:${version} instead`, `delta ${version + 1} 2=1`]);
		// What came once in place of another does not open the door for the next.
		browser.streams[0]?.send(older);
		await settle();
		expect(told).toHaveLength(3);
		stop();
	});

	it('that does not know what is shown replaces it', async () => {
		const browser = new Browser();
		const { told, stop } = follow(browser.around(), [3, 9]);
		await settle();
		expect(browser.streams[0]?.headers['Last-Event-ID']).toBeUndefined();
		browser.streams[0]?.send(wire('snapshot', snapshot(3, 8), '3:8:5') + wire('delta', delta(9, [2], '1'), '3:9:6'));
		await settle();
		expect(told).toEqual(['map 3:9', 'map 3:8 instead', 'delta 9 2=1']);
		stop();
	});

	it('tells of every change of the event itself, once', async () => {
		const browser = new Browser();
		const [one, other] = [follow(browser.around()), follow(browser.around())];
		await settle();
		const now = (status: string, version: number) => browser.streams[0]?.send(wire('event_status', { status, version }));
		for (const version of [4, 4, 5]) now('published', version);
		now('postponed', 6);
		await settle();
		expect([one.told, other.told]).toEqual(Array(2).fill(['published', 'published', 'postponed']));
		const late = follow(browser.around());
		await settle();
		expect([late.told, other.told.length]).toEqual([['postponed'], 3]);
		for (const { stop } of [one, other, late]) stop();
	});

	it('says quietly that it is away, and comes back later each time with what it has seen', async () => {
		const browser = new Browser();
		const { live, stop } = follow(browser.around());
		await settle();
		expect(browser.streams[0]?.headers['Last-Event-ID']).toBeUndefined();
		browser.streams[0]?.send(wire('snapshot', snapshot(3, 9), '3:9:77') + wire('bye', {}));
		await settle();
		expect(live.standing).toBe('away');
		await vi.advanceTimersByTimeAsync(1000);
		expect(browser.streams).toHaveLength(2);
		expect(browser.streams[1]?.headers['Last-Event-ID']).toBe('3:9:77');
		browser.streams[1]?.end();
		await vi.advanceTimersByTimeAsync(1500);
		expect(browser.streams).toHaveLength(2);
		await vi.advanceTimersByTimeAsync(600);
		expect(browser.streams).toHaveLength(3);
		stop();
	});

	it('that is silent for too long is opened anew', async () => {
		const browser = new Browser();
		const { live, stop } = follow(browser.around());
		await settle();
		browser.streams[0]?.send(': still here\n\n');
		await vi.advanceTimersByTimeAsync(39_000);
		expect(live.standing).toBe('live');
		await vi.advanceTimersByTimeAsync(3000);
		expect(browser.streams).toHaveLength(2);
		expect(browser.streams[0]?.isAborted()).toBe(true);
		stop();
	});

	it('of an event that nobody may see is not asked for again', async () => {
		const fetch = vi.fn(async () => new Response(null, { status: 404 }));
		const { told, stop } = follow(new Browser().around({ fetch: fetch as unknown as typeof globalThis.fetch }));
		await vi.advanceTimersByTimeAsync(60_000);
		expect(told).toEqual(['gone']);
		expect(fetch).toHaveBeenCalledTimes(1);
		stop();
	});

	it('rests while the browser keeps the page for whoever goes back, and goes on from there', async () => {
		const browser = new Browser();
		const { told, live, stop } = follow(browser.around());
		const waiting = follow(browser.around());
		await settle();
		browser.streams[0]?.send(wire('snapshot', snapshot(1, 4), '1:4:7'));
		await settle();
		waiting.stop();
		dispatchEvent(new Event('pagehide'));
		await settle();
		expect(browser.streams.map(({ isAborted }) => isAborted())).toEqual([true]);
		await vi.advanceTimersByTimeAsync(120_000);
		expect(browser.streams).toHaveLength(1);
		dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
		await settle();
		expect(browser.streams).toHaveLength(2);
		expect(browser.streams[1]?.headers['Last-Event-ID']).toBe('1:4:7');
		browser.streams[1]?.send(wire('delta', delta(5, [2], '1'), '1:5:8'));
		await settle();
		expect([told.at(-1), live.standing]).toEqual(['delta 5 2=1', 'live']);
		stop();
		dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
		await settle();
		expect(browser.streams).toHaveLength(2);
	});

	it('waits as long as the server asks for', async () => {
		const fetch = vi.fn(async () => new Response(null, { status: 429, headers: { 'Retry-After': '5' } }));
		const { stop } = follow(new Browser().around({ fetch: fetch as unknown as typeof globalThis.fetch }));
		await vi.advanceTimersByTimeAsync(4900);
		expect(fetch).toHaveBeenCalledTimes(1);
		await vi.advanceTimersByTimeAsync(5000);
		expect(fetch).toHaveBeenCalledTimes(2);
		stop();
	});
});

describe('tabs of one browser', () => {
	it('share one stream, and another takes over where the first has got to', async () => {
		const browser = new Browser();
		const [one, other] = [follow(browser.around()), follow(browser.around(), [1, 4, '1:4:7'])];
		await settle();
		expect(browser.streams).toHaveLength(1);
		browser.streams[0]?.send(wire('snapshot', snapshot(1, 4), '1:4:7') + wire('delta', delta(5, [2], '1'), '1:5:8'));
		await settle();
		expect(one.told).toEqual(['map 1:4', 'delta 5 2=1']);
		expect(other.told.at(-1)).toBe('delta 5 2=1');
		expect(other.live.standing).toBe('live');

		one.stop();
		await settle();
		expect(browser.streams).toHaveLength(2);
		expect(browser.streams[1]?.headers['Last-Event-ID']).toBe('1:5:8');
		other.stop();
	});

	it('are given the map that changes count from, when they come', async () => {
		const browser = new Browser();
		const one = follow(browser.around());
		await settle();
		browser.streams[0]?.send(wire('snapshot', snapshot(1, 4), '1:4:7') + wire('delta', delta(6, [2], '1'), '1:6:8'));
		await settle();
		// Another process has answered them: not as far as the first tab, then the very same, then farther.
		const late = follow(browser.around(), [1, 5, '1:5:3']);
		const same = follow(browser.around(), [1, 6, '1:6:8']);
		const ahead = follow(browser.around(), [1, 7, '1:7:9']);
		await settle();
		expect([late.told, same.told, ahead.told]).toEqual([['map 1:5', 'map 1:6'], ['map 1:6'], ['map 1:7']]);

		browser.streams[0]?.send(wire('delta', delta(7, [3], '1'), '1:7:10'));
		await settle();
		expect(ahead.told).toEqual(['map 1:7']);
		browser.streams[0]?.send(wire('delta', delta(8, [4], '1'), '1:8:11'));
		await settle();
		expect([late, same].map(({ told }) => told.slice(-2))).toEqual(Array(2).fill(['delta 7 3=1', 'delta 8 4=1']));
		expect(ahead.told.slice(-2)).toEqual(['delta 8 4=1', 'map 1:8']);
		for (const { stop } of [one, late, same, ahead]) stop();
	});

	it('tell each other when what they hold has changed', async () => {
		const browser = new Browser();
		const [one, other] = [follow(browser.around()), follow(browser.around())];
		other.live.tellBasket();
		expect([one.told, other.told]).toEqual([['basket'], []]);
		one.stop();
		other.stop();
	});

	it('do without each other when the one that should read is silent', async () => {
		const browser = new Browser();
		const [one, other] = [follow(browser.around()), follow(browser.around())];
		await vi.advanceTimersByTimeAsync(39_000);
		expect(browser.streams).toHaveLength(1);
		await vi.advanceTimersByTimeAsync(3000);
		expect(browser.streams.length).toBeGreaterThan(1);
		one.stop();
		other.stop();
	});

	it.each([{ locks: null }, { channel: null }])('read each by itself where there is no %j', async (missing) => {
		const browser = new Browser();
		const tabs = [follow(browser.around(missing)), follow(browser.around(missing))];
		await settle();
		expect(browser.streams).toHaveLength(2);
		for (const { stop } of tabs) stop();
	});
});

it('a sign of life is no frame', () => {
	expect(frameOf(': still here')).toBeNull();
	expect(frameOf('retry: 1500')).toBeNull();
	expect(frameOf('id: 1:2\nevent: delta\ndata: {}')).toEqual({ name: 'delta', data: '{}', id: '1:2' });
});
