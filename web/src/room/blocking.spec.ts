import { beforeEach, describe, expect, it } from 'vitest';
import { makeGeometry, makeSnapshot } from '../map/make.ts';
import { BLOCKED, HELD, SOLD } from '../map/looks.ts';
import { SeatMapState } from '../map/map.svelte.ts';
import { problem, serve } from '../test/server.ts';
import { Blocking } from './blocking.svelte.ts';

const GEOMETRY = makeGeometry([{ name: 'Front', rows: 2, seats: 5, at: [0, 200] }]);
const [BLOCK, UNBLOCK] = ['POST /api/admin/events/event/seats/block', 'POST /api/admin/events/event/seats/unblock'] as const;
const said = (...outcomes: readonly (readonly [number, string])[]) => () =>
	Response.json({ data: outcomes.map(([seat, outcome]) => ({ seat_id: GEOMETRY.seatId(seat), outcome })) });
let blocking: Blocking;

beforeEach(() => {
	const map = new SeatMapState(GEOMETRY, [], { isDesk: true });
	map.load(makeSnapshot([0, HELD, SOLD, BLOCKED, 0, 0, 0, 0, 0, 0]));
	blocking = new Blocking('event', map);
});
const chosen = () => [...blocking.chosen].sort((one, other) => one - other);

describe('seats are chosen', () => {
	it('one by one, and shown as chosen', () => {
		blocking.pick(0, false);
		blocking.pick(2, false);
		expect([chosen(), [...blocking.map.own]]).toEqual([[0, 2], [0, 2]]);
		blocking.pick(0, false);
		expect(chosen()).toEqual([2]);
	});

	it('by row and by frame, without what is sold', () => {
		blocking.reach = 'row';
		blocking.pick(4, false);
		expect(chosen()).toEqual([0, 1, 3, 4]);
		blocking.pick(0, false);
		expect(chosen()).toEqual([]);
		blocking.frame({ left: -10, top: 190, right: 110, bottom: 300 });
		expect(chosen()).toEqual([0, 1, 5, 6, 7]);
	});

	it('up to another with the shift key; the first such click has nothing to begin from', () => {
		blocking.pick(5, true);
		blocking.pick(7, true);
		expect(chosen()).toEqual([5, 6, 7]);
	});
});

describe('a deed', () => {
	it('says what was done, who lost what, and why the rest was left', async () => {
		const asked = serve({ [BLOCK]: said([0, 'done'], [1, 'done'], [2, 'seat_not_available']) });
		for (const seat of [0, 1, 2]) blocking.pick(seat, false);
		blocking.reason = ' A camera ';
		await blocking.do('block', [0, 1, 2]);
		expect(asked[0]?.body).toEqual({ seat_ids: [0, 1, 2].map((seat) => GEOMETRY.seatId(seat)), reason: 'A camera' });
		expect(blocking.told).toMatchObject({ verb: 'block', done: [0, 1], lost: 1, refusal: null, isUndo: false });
		expect([...(blocking.told?.left ?? [])]).toEqual([['seat_not_available', [2]]]);
		expect([chosen(), blocking.reason]).toEqual([[], '']);
	});

	it('is undone as far as it was done', async () => {
		const asked = serve({ [BLOCK]: said([0, 'done'], [2, 'seat_not_available']), [UNBLOCK]: said([0, 'done']) });
		await blocking.do('block', [0, 2]);
		await blocking.undo();
		expect(asked.map(({ what, body }) => [what, (body as { seat_ids: string[] }).seat_ids])).toEqual([
			[BLOCK, [GEOMETRY.seatId(0), GEOMETRY.seatId(2)]],
			[UNBLOCK, [GEOMETRY.seatId(0)]],
		]);
		expect(blocking.told).toMatchObject({ verb: 'unblock', done: [0], isUndo: true });
	});

	it('that is refused leaves everything chosen', async () => {
		serve({ [BLOCK]: () => problem('permission_denied', 403) });
		blocking.pick(0, false);
		await blocking.do('block', [0]);
		expect([chosen(), blocking.told?.done, blocking.told?.refusal?.code, blocking.isBusy]).toEqual([[0], [], 'permission_denied', false]);
	});
});
