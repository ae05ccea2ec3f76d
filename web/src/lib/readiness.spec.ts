import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS, Readiness, REFRESH_MS } from './readiness.svelte.ts';

const OK = { state: 'ok', message: 'raw words of the server' };

function answer(status: string, checks: Record<string, unknown> = {}, httpStatus = 200): Response {
	return Response.json(
		{ status, version: '0.1.0', checks: { database: OK, schema: OK, redis: OK, ...checks } },
		{ status: httpStatus },
	);
}

/** Gives the answers one by one, then the last for ever. */
function serverSaying(...answers: (() => Response | Promise<Response>)[]) {
	let asked = 0;
	return vi.fn<typeof fetch>(async () => {
		const next = answers[Math.min(asked++, answers.length - 1)];
		if (next === undefined) throw new Error('a server needs at least one answer');
		return next();
	});
}

const silence = () => Promise.reject(new TypeError('Failed to fetch'));
const states = (readiness: Readiness) => readiness.checks.map((check) => check.standing);

function show(visibility: DocumentVisibilityState): void {
	vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(visibility);
	document.dispatchEvent(new Event('visibilitychange'));
}

describe('Readiness', () => {
	let readiness: Readiness;

	beforeEach(() => {
		vi.useFakeTimers({ now: new Date('2027-03-12T17:30:00Z') });
		show('visible');
	});

	afterEach(() => {
		readiness.stop();
		vi.useRealTimers();
	});

	it('knows nothing before the first answer', () => {
		readiness = new Readiness(serverSaying(() => answer('ready')));

		expect(readiness.status).toBe('waiting');
		expect(readiness.version).toBeNull();
		expect(readiness.answeredAt).toBeNull();
	});

	it('is ready when every check is', async () => {
		const server = serverSaying(() => answer('ready'));
		readiness = new Readiness(server);
		await readiness.ask();

		expect(server.mock.calls[0]?.[0]).toBe('/readyz');
		expect(readiness.status).toBe('ready');
		expect(states(readiness)).toEqual(['database.ok', 'schema.ok', 'redis.ok']);
		expect(readiness.version).toBe('0.1.0');
		expect(readiness.answeredAt).toEqual(new Date('2027-03-12T17:30:00Z'));
	});

	it('is degraded, not failed, without Redis', async () => {
		readiness = new Readiness(serverSaying(() => answer('degraded', { redis: { state: 'away', message: '' } })));
		await readiness.ask();

		expect(readiness.status).toBe('degraded');
		expect(states(readiness)).toEqual(['database.ok', 'schema.ok', 'redis.away']);
	});

	it('reads the body of a 503 like any other', async () => {
		readiness = new Readiness(
			serverSaying(() => answer('not_ready', { schema: { state: 'failed', message: '' } }, 503)),
		);
		await readiness.ask();

		expect(readiness.status).toBe('not_ready');
		expect(states(readiness)).toEqual(['database.ok', 'schema.failed', 'redis.ok']);
	});

	it('claims nothing about the tables of a database that is gone', async () => {
		const failed = { state: 'failed', message: '' };
		readiness = new Readiness(serverSaying(() => answer('not_ready', { database: failed, schema: failed }, 503)));
		await readiness.ask();

		expect(states(readiness)).toEqual(['database.failed', 'schema.unknown', 'redis.ok']);
	});

	it.each([
		['a dropped connection', silence],
		['a page of a proxy', () => new Response('<h1>502</h1>', { status: 502 })],
		['JSON of another kind', () => Response.json({ status: 'fine' })],
		['a missing check', () => answer('ready', { redis: undefined })],
	])('is unreachable after %s', async (_, reply) => {
		readiness = new Readiness(serverSaying(reply));
		await readiness.ask();

		expect(readiness.status).toBe('unreachable');
		expect(states(readiness)).toEqual(['database.unknown', 'schema.unknown', 'redis.unknown']);
		expect(readiness.answeredAt).toBeNull();
	});

	it('keeps the time of the last answer while the server is silent, and recovers by itself', async () => {
		readiness = new Readiness(serverSaying(() => answer('ready'), silence, () => answer('ready')));
		readiness.start();
		await vi.advanceTimersByTimeAsync(0);
		expect(readiness.status).toBe('ready');

		await vi.advanceTimersByTimeAsync(REFRESH_MS);
		expect(readiness.status).toBe('unreachable');
		expect(readiness.version).toBe('0.1.0');
		expect(readiness.answeredAt).toEqual(new Date('2027-03-12T17:30:00Z'));

		await vi.advanceTimersByTimeAsync(REFRESH_MS);
		expect(readiness.status).toBe('ready');
		expect(readiness.answeredAt).toEqual(new Date('2027-03-12T17:30:20Z'));
	});

	it('shows a wait only when it is long, and asks once at a time', async () => {
		let reply: (response: Response) => void = () => {};
		const server = serverSaying(() => new Promise((resolve) => (reply = resolve)));
		readiness = new Readiness(server);
		const asking = readiness.ask();
		void readiness.ask();

		await vi.advanceTimersByTimeAsync(PATIENCE_MS - 1);
		expect(readiness.isSlow).toBe(false);
		await vi.advanceTimersByTimeAsync(1);
		expect(readiness.isSlow).toBe(true);

		reply(answer('ready'));
		await asking;
		expect(readiness.isSlow).toBe(false);
		expect(server).toHaveBeenCalledTimes(1);
	});

	it('asks nothing in the background, and at once on coming back', async () => {
		const server = serverSaying(() => answer('ready'));
		readiness = new Readiness(server);
		readiness.start();
		await vi.advanceTimersByTimeAsync(0);

		show('hidden');
		await vi.advanceTimersByTimeAsync(10 * REFRESH_MS);
		expect(server).toHaveBeenCalledTimes(1);

		show('visible');
		await vi.advanceTimersByTimeAsync(0);
		expect(server).toHaveBeenCalledTimes(2);
	});

	it('asks nothing after it is stopped', async () => {
		const server = serverSaying(() => answer('ready'));
		readiness = new Readiness(server);
		readiness.start();
		await vi.advanceTimersByTimeAsync(0);

		readiness.stop();
		await vi.advanceTimersByTimeAsync(10 * REFRESH_MS);
		show('visible');
		expect(server).toHaveBeenCalledTimes(1);
	});
});
