import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Feed, type Counted, type Frame } from './feed.svelte.ts';

class FakeSource extends EventTarget {
	static all: FakeSource[] = [];
	isClosed = false;

	constructor(readonly url: string) {
		super();
		FakeSource.all.push(this);
	}

	say(kind: string, data = '{}'): void {
		this.dispatchEvent(new MessageEvent(kind, { data }));
	}

	close(): void {
		this.isClosed = true;
	}
}

let feed: Feed;
let stop: () => void;
let frames: Frame[];
let resyncs: number;
const source = () => FakeSource.all.at(-1) as FakeSource;

beforeEach(() => {
	vi.useFakeTimers();
	vi.stubGlobal('EventSource', FakeSource);
	FakeSource.all = [];
	frames = [];
	resyncs = 0;
	feed = new Feed();
	feed.listen({ frame: (frame) => frames.push(frame), resync: () => resyncs++ });
	stop = feed.start();
});

afterEach(() => {
	stop();
	vi.useRealTimers();
});

describe('Feed', () => {
	it('is live once the server has greeted, and passes on what happens', () => {
		expect(feed.standing).toBe('opening');
		source().say('hello');
		source().say('event_updated', '{"event_id":"1","version":4}');

		expect(feed.standing).toBe('live');
		expect(frames).toEqual([{ kind: 'event_updated', event_id: '1', version: 4 }]);
		expect(resyncs).toBe(0);
	});

	it('comes back after a break, within a second the first time, and looks at everything again', () => {
		source().say('hello');
		source().say('error');
		expect(feed.standing).toBe('away');
		expect(source().isClosed).toBe(true);

		vi.advanceTimersByTime(1000);
		expect(FakeSource.all).toHaveLength(2);
		expect(resyncs).toBe(0);
		source().say('hello');
		expect(feed.standing).toBe('live');
		expect(resyncs).toBe(1);
	});

	it('waits longer each time, never all at the same moment, and never more than half a minute', () => {
		const waits: number[] = [];
		vi.spyOn(Math, 'random').mockReturnValue(0);
		const timeout = vi.spyOn(globalThis, 'setTimeout');
		for (let n = 0; n < 8; n++) {
			source().say('error');
			waits.push(Number(timeout.mock.lastCall?.[1]));
			vi.advanceTimersToNextTimer();
		}

		expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
		vi.spyOn(Math, 'random').mockReturnValue(0.5);
		source().say('error');
		expect(timeout.mock.lastCall?.[1]).toBe(22_500);
	});

	it.each(['resync', 'event_updated'])('looks at everything again when told to, or when it cannot read (%s)', (kind) => {
		source().say('hello');
		source().say(kind, 'not json');

		expect(resyncs).toBe(1);
		expect(frames).toEqual([]);
	});

	it('says nothing more once it is stopped', () => {
		const first = source();
		stop();
		first.say('error');
		vi.advanceTimersByTime(60_000);

		expect(first.isClosed).toBe(true);
		expect(FakeSource.all).toHaveLength(1);
	});

	it('tells how full a sale is only to those who count', () => {
		const counted: Counted[] = [];
		feed.listen({ frame: () => {}, counted: (counts) => counted.push(counts), resync: () => {} });
		source().say('hello');
		source().say('occupancy', '{"event_id":"1","held":2}');

		expect(counted).toEqual([{ event_id: '1', held: 2 }]);
		expect(frames).toEqual([]);
	});

	it('leaves alone whoever stopped listening', () => {
		let heard = 0;
		const deaf = feed.listen({ frame: () => heard++, resync: () => {} });
		source().say('gate_updated');
		deaf();
		source().say('gate_updated');

		expect(heard).toBe(1);
	});
});
