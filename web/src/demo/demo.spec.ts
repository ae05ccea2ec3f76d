import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Audit, Demo, levelOf, lineThrough, MINUTE, type Figures, type State } from './demo.svelte.ts';

const figures = (holds: number): Figures => ({
	per_s: { arrivals: 1, holds, sold: 0, refused: 0 },
	totals: { failed: 0 },
	people: 1,
	watching: 0,
	p50_ms: 4,
	p95_ms: 9,
});
const state = (holds: number | null, history?: Figures[]): State => ({
	organization: { slug: 'passievol' },
	logins: {},
	password: 'x',
	crowd: { per_s: 8, figures: holds === null ? null : figures(holds) },
	levels: [0, 2, 8, 25, 60],
	processes: [],
	redis: { is_up: true },
	seen: { readiness: 'ready', breaker: 'closed', tiers: null },
	...(history ? { history } : {}),
});

/** A stream that says what a test lets it say. */
class Stream extends EventTarget {
	static CLOSED = 2;
	static opened: Stream[] = [];
	readyState = 1;
	readonly url: string;
	constructor(url: string) {
		super();
		this.url = url;
		Stream.opened.push(this);
	}
	say(name: string, said: unknown) {
		this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(said) }));
	}
	fail(readyState: number) {
		this.readyState = readyState;
		this.dispatchEvent(new Event('error'));
	}
	close() {
		this.readyState = Stream.CLOSED;
	}
}

beforeEach(() => {
	Stream.opened = [];
	vi.stubGlobal('EventSource', Stream);
	vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

describe('the demonstration', () => {
	it('keeps a minute of what the crowd did, and what was told twice once', () => {
		const demo = new Demo();
		demo.take(state(1, [figures(0), figures(1)]));
		demo.take(state(1));
		demo.take(state(2));
		expect(demo.past.map((one) => one.per_s.holds)).toEqual([0, 1, 2]);
		for (let holds = 3; holds < 100; holds++) demo.take(state(holds));
		expect(demo.past).toHaveLength(MINUTE);
		expect(demo.past.at(-1)?.per_s.holds).toBe(99);
	});

	it('says when the line broke, and comes back by itself when it was refused', () => {
		const demo = new Demo();
		const end = demo.follow();
		Stream.opened[0]?.say('state', state(1));
		expect(demo.isLive).toBe(true);
		Stream.opened[0]?.fail(0);
		expect([demo.isLive, Stream.opened.length]).toEqual([false, 1]);
		Stream.opened[0]?.fail(Stream.CLOSED);
		vi.advanceTimersByTime(1000);
		expect(Stream.opened).toHaveLength(2);
		end();
		Stream.opened[1]?.fail(Stream.CLOSED);
		vi.advanceTimersByTime(5000);
		expect(Stream.opened).toHaveLength(2);
	});

	it('asks without the cookie and with the header, and says when it was not done', async () => {
		const asked = vi.fn(async () => new Response(null, { status: 204 }));
		vi.stubGlobal('fetch', asked);
		const demo = new Demo();
		await demo.turnRedis(false);
		expect(asked).toHaveBeenCalledWith('/api/demo/redis', { method: 'POST', credentials: 'omit', headers: { 'X-Demo': '1' }, body: '{"up":false}' });
		expect(demo.hasFailed).toBe(false);
		vi.stubGlobal('fetch', async () => new Response(null, { status: 503 }));
		await demo.kill('web');
		expect([demo.hasFailed, demo.doing]).toEqual([true, null]);
	});
});

describe('the audit', () => {
	it('shows each question as it is answered, then the verdict, and does not begin anew', () => {
		const audit = new Audit();
		audit.run();
		const [stream] = Stream.opened;
		stream?.say('begin', { checks: 2 });
		stream?.say('check', { name: 'a', found: 0 });
		expect([audit.all, audit.checks.length, audit.standing]).toEqual([2, 1, 'asking']);
		stream?.say('done', { is_well: true, seconds: 0.5, findings: [] });
		expect([audit.standing, audit.verdict?.is_well, stream?.readyState]).toEqual(['done', true, Stream.CLOSED]);
	});

	it('says when the answer broke off', () => {
		const audit = new Audit();
		audit.run();
		Stream.opened[0]?.fail(0);
		expect([audit.standing, Stream.opened[0]?.readyState]).toEqual(['broken', Stream.CLOSED]);
	});
});

describe('drawing', () => {
	it('finds the step of the slider, also for a number in between', () => {
		const levels = [0, 2, 8, 25, 60];
		expect([0, 2, 3, 7, 60].map((perS) => levelOf(levels, perS))).toEqual([0, 1, 1, 2, 4]);
	});

	it('draws the newest at the right, from the ground to the top', () => {
		expect(lineThrough([0, 10], 10)).toBe('M98.3 29.0L100.0 2.0');
		expect(lineThrough([], 10)).toBe('');
	});
});
