import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const OWN = Date.parse('2027-03-05T06:00:00Z');
const said = (ms: number) => new Date(OWN + 3_600_000 + ms).toUTCString();

/** A page that has just been opened. */
async function fresh() {
	vi.resetModules();
	return import('./server-time.ts');
}

beforeEach(() => void vi.useFakeTimers({ now: OWN, toFake: ['Date', 'performance', 'setTimeout'] }));
afterEach(() => void vi.useRealTimers());

describe('the time at the server', () => {
	it('is the own clock until something was heard, and what was heard from then on', async () => {
		const { hearTime, serverNow } = await fresh();
		expect(serverNow()).toBe(OWN);
		hearTime(null);
		hearTime('yesterday');
		expect(serverNow()).toBe(OWN);
		hearTime(said(0));
		expect(serverNow()).toBe(OWN + 3_600_000);
	});

	it('goes on though somebody sets the own clock', async () => {
		const { hearTime, serverNow } = await fresh();
		hearTime(said(0));
		vi.advanceTimersByTime(5_000);
		vi.setSystemTime(OWN - 86_400_000);
		expect(serverNow()).toBe(OWN + 3_605_000);
	});

	it('does not go back by an answer that was kept, and catches up after a sleep that nothing counted', async () => {
		const { hearTime, serverNow } = await fresh();
		hearTime(said(0));
		hearTime(said(-600_000));
		expect(serverNow()).toBe(OWN + 3_600_000);
		hearTime(said(600_000));
		expect(serverNow()).toBe(OWN + 4_200_000);
	});
});
