import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hearTime } from '../lib/server-time.ts';
import { stayFresh, untilNextTurn } from './fresh.ts';
import { makeCard } from './make.ts';

const NOW = Date.parse('2027-03-05T07:00:00Z');
const notYet = makeCard({ sale_state: 'not_yet', sale_start_at: '2027-03-05T08:00:00Z' });
const HOUR_MS = 3_600_000;

beforeEach(() => void vi.useFakeTimers({ now: NOW }));
afterEach(() => void vi.useRealTimers());

describe('how long a list stays true', () => {
	it.each([
		['a sale opens', [notYet], HOUR_MS],
		['a sale ends', [makeCard({ sale_end_at: '2027-03-05T09:00:00Z' })], 2 * HOUR_MS],
		['the first of them turns', [makeCard({ sale_end_at: '2027-03-05T09:00:00Z' }), notYet], HOUR_MS],
		['an event ends that is sold until then', [makeCard({ effective_end_at: '2027-03-05T07:30:00Z' })], HOUR_MS / 2],
		['the server agrees that it has', [{ ...notYet, sale_start_at: '2027-03-05T06:00:00Z' }], 15_000],
	])('is until %s', (_, events, pause) => {
		expect(untilNextTurn(events, NOW)).toBe(pause);
	});

	it.each([
		['nothing is sold', [makeCard({ sale_state: 'closed' }), makeCard({ sale_state: 'over' })]],
		['it is days away', [{ ...notYet, sale_start_at: '2027-04-05T08:00:00Z' }]],
		['there is nothing', []],
	])('is not known where %s', (_, events) => {
		expect(untilNextTurn(events, NOW)).toBeNull();
	});
});

describe('staying fresh', () => {
	it('asks again once a sale has opened, and not after it was stopped', () => {
		const again = vi.fn();
		const stop = stayFresh([notYet], again);
		vi.advanceTimersByTime(HOUR_MS - 1);
		expect(again).not.toHaveBeenCalled();
		vi.advanceTimersByTime(2_001);
		expect(again).toHaveBeenCalledTimes(1);

		stop();
		document.dispatchEvent(new Event('visibilitychange'));
		expect(again).toHaveBeenCalledTimes(1);
	});

	it('asks again when somebody comes back after a while', () => {
		const again = vi.fn();
		const stop = stayFresh([], again);
		document.dispatchEvent(new Event('visibilitychange'));
		expect(again).not.toHaveBeenCalled();

		vi.advanceTimersByTime(60_000);
		document.dispatchEvent(new Event('visibilitychange'));
		expect(again).toHaveBeenCalledTimes(1);
		stop();
	});
});

describe('a clock that is wrong', () => {
	it.each([['slow', -HOUR_MS], ['fast', HOUR_MS]])('opens nothing late or early where it is %s', (_, off) => {
		const again = vi.fn();
		hearTime(new Date(NOW).toUTCString());
		vi.setSystemTime(NOW + off);
		const stop = stayFresh([{ ...notYet, sale_start_at: new Date(NOW + 60_000).toISOString() }], again);
		vi.advanceTimersByTime(59_000);
		expect(again).not.toHaveBeenCalled();
		vi.advanceTimersByTime(3_001);
		expect(again).toHaveBeenCalledTimes(1);
		stop();
	});
});
