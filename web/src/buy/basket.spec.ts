import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { session } from '../lib/session.svelte.ts';
import { makeGeometry, makeOffer, makeSnapshot } from '../map/make.ts';
import { SeatMapState } from '../map/map.svelte.ts';
import { account, done, forgetCookies, problem, serve, signedIn } from '../test/server.ts';
import type { Hold, Offer } from './asking.ts';
import { Basket } from './basket.svelte.ts';

const GUEST = { id: '9', name: 'Guest', role: 'customer', is_guest: true };
const HOLD = { event_id: 'e', zone_id: 'zone-0', block_name: 'Stalls', quantity: 1, status: 'held', held_until: '2027-03-12T17:30:00Z', held_until_unix: 0, can_extend: true, cart_token: 'c', message: '' };
const MINE = 'GET /api/events/e/holds/mine';
const RESERVE = 'POST /api/events/e/seats/seat-00000003/reserve';

function hold(serial: number, over: Partial<Hold> = {}): Hold {
	return { ...HOLD, hold_id: `hold-${serial}`, seat_id: `seat-0000000${serial}`, row: 'A', seat_number: String(serial), expires_in_seconds: 300, ...over };
}
const answer = (data: unknown, status = 200) => () => Response.json({ data }, { status });

let now = 0;
let changes = 0;
let basket: Basket;
let map: SeatMapState;

function open(): Basket {
	const zones = [
		...makeOffer(1, [450]).map((zone) => ({ ...zone, name: 'Stalls' })),
		{ ...makeOffer(2, [0, 95])[1], place: 'standing', name: 'Pit' },
	];
	const offer = { event_id: 'e', zones, booking: { max_seats_per_booking: 6, hold_minutes: 5 } } as unknown as Offer;
	map = new SeatMapState(makeGeometry([{ name: 'Stalls', rows: 1, seats: 8, at: [0, 0] }]), zones as never);
	map.load(makeSnapshot([0, 0, 0, 0, 0, 0, 0, 0]));
	basket = new Basket('passievol', offer, map, () => changes++, () => now);
	return basket;
}

/** Lets so much time pass for the clock and for what waits. */
async function pass(ms: number): Promise<void> {
	for (let left = ms; left > 0; left -= 100) {
		now += Math.min(100, left);
		await vi.advanceTimersByTimeAsync(Math.min(100, left));
	}
}

const replies = { 'POST /api/auth/guest': () => signedIn(GUEST), 'GET /api/me': () => account(GUEST), [MINE]: answer([]) };

beforeEach(() => {
	vi.useFakeTimers();
	now = 1000;
	changes = 0;
	forgetCookies();
	session.standing = 'anonymous';
	session.user = session.organization = session.account = null;
	open();
});
afterEach(() => {
	basket.close();
	vi.useRealTimers();
});

describe('a seat that is tapped', () => {
	it('is theirs at once, with a guest made on the way, and is confirmed', async () => {
		const asked = serve({ ...replies, [RESERVE]: answer(hold(3), 201) });
		const picked = basket.pick([2]);
		expect(map.answer(2)).toBe('pending');
		await picked;
		expect(map.answer(2)).toBe('own');
		expect(basket.held.map(({ row, label, zone, price }) => [row, label, zone, price?.amount_minor])).toEqual([['A', '3', 'Stalls', 45_000]]);
		expect([basket.face, basket.places, basket.total?.amount_minor, changes]).toEqual(['5:00', 1, 45_000, 1]);
		expect(asked.filter(({ what }) => what === 'POST /api/auth/guest')).toHaveLength(1);
	});

	it('makes one guest, however many are tapped at once', async () => {
		const asked = serve({ ...replies, [RESERVE]: answer(hold(3), 201), 'POST /api/events/e/seats/seat-00000004/reserve': answer(hold(4), 201) });
		await Promise.all([basket.pick([2]), basket.pick([3])]);
		expect(basket.places).toBe(2);
		expect(asked.filter(({ what }) => what === 'POST /api/auth/guest')).toHaveLength(1);
	});

	it('makes no guest of somebody whose session is still being asked about', async () => {
		document.cookie = 'vg_signed_in=1; Path=/';
		session.standing = 'asking';
		const asked = serve({ ...replies, 'GET /api/me': () => account(), [RESERVE]: answer(hold(3), 201) });
		await basket.pick([2]);
		expect([basket.places, session.user?.is_guest]).toEqual([1, false]);
		expect(asked.map(({ what }) => what)).not.toContain('POST /api/auth/guest');
	});

	it('is taken back with the reason when somebody was faster', async () => {
		serve({ ...replies, [RESERVE]: () => problem('seat_no_longer_available', 409) });
		await basket.pick([2]);
		expect(map.answer(2)).toBe('free');
		expect(map.notice?.reason).toBe('Somebody was faster: Row A, seat 3 was taken at the same moment. Try another seat.');
		expect(basket.lines).toEqual([]);
	});

	it('is asked for again when no answer came, and is the same hold', async () => {
		let times = 0;
		serve({ ...replies, [RESERVE]: () => (++times === 1 ? Promise.reject(new TypeError('cut')) : answer(hold(3))()) });
		await basket.pick([2]);
		expect([times, map.answer(2), basket.places]).toEqual([2, 'own', 1]);
	});

	it('is looked at when nothing is answered, and is not lost while the server holds it', async () => {
		serve({
			...replies,
			[RESERVE]: () => problem('outcome_unknown', 503, { effect: 'unknown' }),
			'GET /api/events/e/seats/seat-00000003': answer({ own_hold_id: 'hold-3' }),
			[MINE]: answer([hold(3)]),
		});
		await basket.pick([2]);
		expect([map.answer(2), basket.places, map.notice]).toEqual(['own', 1, null]);
	});

	it('and again before that was answered, is given back when it is; a third time, it stays', async () => {
		const asked = serve({ ...replies, [RESERVE]: answer(hold(3), 201), 'DELETE /api/holds/hold-3': () => done() });
		let picked = basket.pick([2]);
		basket.turn(2);
		expect(map.notice?.reason).toBe('Row A, seat 3 will be given back as soon as the server has answered.');
		await picked;
		await pass(100);
		expect([map.answer(2), basket.places, map.notice]).toEqual(['free', 0, null]);
		picked = basket.pick([2]);
		basket.turn(2);
		basket.turn(2);
		await picked;
		await pass(100);
		expect([map.answer(2), basket.places, map.notice]).toEqual(['own', 1, null]);
		expect(asked.filter(({ what }) => what.startsWith('DELETE'))).toHaveLength(1);

		const released = basket.release(basket.held);
		basket.turn(2);
		expect(map.notice?.reason).toContain('will be held for you again');
		await released;
		await pass(100);
		expect([map.answer(2), basket.places]).toEqual(['own', 1]);
	});

	it('and again, but refused, is not asked for or given back by that', async () => {
		const asked = serve({ ...replies, [RESERVE]: () => problem('seat_no_longer_available', 409) });
		const picked = basket.pick([2]);
		basket.turn(2);
		await picked;
		await pass(100);
		expect([map.answer(2), asked.filter(({ what }) => what.startsWith('DELETE')).length]).toEqual(['free', 0]);
		serve({ ...replies, [RESERVE]: answer(hold(3), 201) });
		await basket.pick([2]);
		expect(map.answer(2)).toBe('own');
	});

	it('in doubt is looked for again later', async () => {
		let isBack = false;
		serve({ ...replies, [RESERVE]: () => Promise.reject(new TypeError('cut')), 'GET /api/events/e/seats/seat-00000003': () => Promise.reject(new TypeError('cut')), [MINE]: () => answer(isBack ? [hold(3)] : [])() });
		await basket.pick([2]);
		expect(map.notice?.reason).toContain('we do not know yet whether it is held');
		isBack = true;
		await pass(1300);
		expect([map.answer(2), basket.places]).toEqual(['own', 1]);
	});
});

it('several are held together or not at all', async () => {
	const asked = serve({ ...replies, 'POST /api/events/e/holds': answer([hold(3), hold(4)], 201) });
	await basket.pick([2, 3]);
	expect(basket.places).toBe(2);
	const ask = asked.find(({ what }) => what === 'POST /api/events/e/holds');
	expect(ask?.body).toMatchObject({ seat_ids: ['seat-00000003', 'seat-00000004'] });
	expect(ask?.headers.get('Idempotency-Key')).toMatch(/^[0-9a-f-]{36}$/);
	serve({ ...replies, 'POST /api/events/e/holds': () => problem('seats_refused', 409) });
	await basket.pick([5, 6]);
	expect([map.answer(5), map.answer(6), basket.places]).toEqual(['free', 'free', 2]);
});

it('places without numbers are one line with their price', async () => {
	serve({ ...replies, 'POST /api/events/e/zones/zone-1/reserve': answer(hold(1, { seat_id: null, row: null, seat_number: null, block_name: null, zone_id: 'zone-1', quantity: 4 }), 201) });
	expect(await basket.takePlaces('zone-1', 4)).toBe(true);
	expect([basket.places, basket.total?.amount_minor, basket.held[0]?.zone]).toEqual([4, 38_000, 'Pit']);
	serve({ ...replies, 'POST /api/events/e/zones/zone-1/reserve': () => problem('block_at_capacity', 409) });
	expect(await basket.takePlaces('zone-1', 4)).toBe(false);
	expect(basket.trouble).toContain('Pit: there are not so many places left');
});

describe('time', () => {
	beforeEach(async () => {
		serve({ ...replies, [RESERVE]: answer(hold(3, { expires_in_seconds: 40 }), 201) });
		await basket.pick([2]);
	});

	it('that ran out behind another tab is told to whoever comes back, before the server is asked', async () => {
		serve({ ...replies, [MINE]: answer([]) });
		now += 45_000; // timers of a hidden page wait
		expect(basket.held).toHaveLength(1);
		basket.wake();
		expect([basket.held.length, basket.lapsed.length, map.answer(2)]).toEqual([0, 1, 'free']);
		expect(basket.said).toBe('The time is up: 1 place is no longer held for you.');
		await pass(1300);
		expect([basket.lapsed.length, basket.said]).toEqual([1, 'The time is up: 1 place is no longer held for you.']);
	});

	it('is counted down every second, warned of once, and ends', async () => {
		expect([basket.face, basket.isEnding]).toEqual(['0:40', false]);
		await pass(10_000);
		expect([basket.face, basket.isEnding, basket.said]).toEqual(['0:30', true, '30 seconds left for what you hold.']);
		basket.said = '';
		await pass(5000);
		expect([basket.face, basket.said]).toEqual(['0:25', '']);
		await pass(25_000);
		expect([basket.held.length, basket.lapsed.length, map.answer(2)]).toEqual([0, 1, 'free']);
		expect(basket.said).toBe('The time is up: 1 place is no longer held for you.');
	});

	it('that the server gave elsewhere brings it back', async () => {
		serve({ ...replies, [MINE]: answer([hold(3, { expires_in_seconds: 200 })]) });
		await pass(40_000);
		expect(basket.lapsed).toHaveLength(1);
		await pass(1300);
		expect([basket.held.length, basket.lapsed.length, map.answer(2)]).toEqual([1, 0, 'own']);
	});

	it('is had again by asking for the seat anew', async () => {
		await pass(42_000);
		const [lapsed] = basket.lapsed;
		serve({ ...replies, [RESERVE]: answer(hold(3, { hold_id: 'another' }), 201) });
		if (lapsed) await basket.takeAgain(lapsed);
		expect(basket.lines.map(({ id, isLapsed }) => [id, isLapsed])).toEqual([['another', false]]);
	});

	it('is extended once', async () => {
		serve({ ...replies, 'POST /api/holds/hold-3/extend': answer(hold(3, { expires_in_seconds: 340, can_extend: false })) });
		await basket.extend();
		expect([basket.face, basket.canExtend, basket.said]).toEqual(['5:40', false, 'You have more time: 5:40.']);
	});
});

describe('what is held', () => {
	it('is read again, and what is gone may be taken again', async () => {
		serve({ ...replies, [RESERVE]: answer(hold(3), 201) });
		await basket.pick([2]);
		serve({ ...replies, [MINE]: answer([hold(5)]) });
		await basket.read();
		expect(basket.lines.map(({ label, isLapsed }) => [label, isLapsed])).toEqual([['3', true], ['5', false]]);
		expect([map.answer(2), map.answer(4)]).toEqual(['free', 'own']);
	});

	it('stays as it is when nobody answers', async () => {
		serve({ ...replies, [RESERVE]: answer(hold(3), 201) });
		await basket.pick([2]);
		serve({ ...replies, [MINE]: () => Promise.reject(new TypeError('cut')) });
		await basket.read();
		expect(basket.places).toBe(1);
	});

	it('is given back, also where it was let go already', async () => {
		serve({ ...replies, [RESERVE]: answer(hold(3), 201), 'DELETE /api/holds/hold-3': done });
		await basket.pick([2]);
		await basket.release(basket.held);
		expect([basket.lines, map.answer(2)]).toEqual([[], 'free']);
		serve({ ...replies, [RESERVE]: answer(hold(3), 201), 'DELETE /api/holds/hold-3': () => problem('hold_not_found', 404) });
		await basket.pick([2]);
		await basket.release(basket.held);
		expect(basket.lines).toEqual([]);
	});
});
