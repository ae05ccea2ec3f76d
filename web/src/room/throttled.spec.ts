import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Throttled } from './throttled.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('works at once, and once more for all that ask while it works or rests', async () => {
	const work = vi.fn(async () => {});
	const throttled = new Throttled(work, 1000);
	for (let time = 0; time < 5; time++) throttled.ask();
	expect(work).toHaveBeenCalledTimes(1);
	await vi.advanceTimersByTimeAsync(900);
	throttled.ask();
	expect(work).toHaveBeenCalledTimes(1);
	await vi.advanceTimersByTimeAsync(200);
	expect(work).toHaveBeenCalledTimes(2);
	await vi.advanceTimersByTimeAsync(60_000);
	expect(work).toHaveBeenCalledTimes(2);
	throttled.ask();
	expect(work).toHaveBeenCalledTimes(3);
});

it('never works twice at a time', async () => {
	let finish = () => {};
	const work = vi.fn(() => new Promise<void>((done) => (finish = done)));
	const throttled = new Throttled(work, 1000);
	throttled.ask();
	throttled.ask();
	await vi.advanceTimersByTimeAsync(5000);
	expect(work).toHaveBeenCalledTimes(1);
	finish();
	await vi.advanceTimersByTimeAsync(1000);
	expect(work).toHaveBeenCalledTimes(2);
});

it('is done when it is closed', async () => {
	const work = vi.fn(async () => {});
	const throttled = new Throttled(work, 1000);
	throttled.ask();
	throttled.ask();
	throttled.close();
	await vi.advanceTimersByTimeAsync(5000);
	throttled.ask();
	expect(work).toHaveBeenCalledTimes(1);
});
