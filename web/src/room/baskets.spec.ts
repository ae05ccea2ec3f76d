import { describe, expect, it } from 'vitest';
import { basketsOf, claimsOf, expiriesAhead, heldAt, type StaffHold } from './baskets.ts';

const NOW = 1_000_000;
function hold(user: string, seconds: number, over: Partial<StaffHold> = {}): StaffHold {
	return {
		hold_id: `${user}-${seconds}`,
		seat_id: 'seat',
		zone_id: 'zone',
		quantity: 1,
		user_id: user,
		holder_name: user,
		is_guest: false,
		source: 'web',
		created_at: '2027-03-12T08:00:00Z',
		held_until: '2027-03-12T08:10:00Z',
		expires_in_seconds: seconds,
		extended: false,
		status: 'active',
		...over,
	};
}
const claims = (...holds: StaffHold[]) => claimsOf(holds, NOW);

describe('who holds what', () => {
	it('is told by person, the next to lapse first', () => {
		const found = basketsOf(claims(hold('Anna', 300), hold('Ben', 120, { quantity: 4, seat_id: null }), hold('Anna', 240, { extended: true })), NOW);
		expect(found.map(({ name, places, isExtended, endsAt }) => [name, places, isExtended, endsAt - NOW])).toEqual([
			['Ben', 4, false, 120_000],
			['Anna', 2, true, 240_000],
		]);
	});

	it('leaves out what has lapsed meanwhile', () => {
		expect(basketsOf(claims(hold('Anna', 10)), NOW + 10_000)).toEqual([]);
	});

	it('knows since when, by the seconds that the server counts', () => {
		const [claim] = claims(hold('Anna', 540));
		expect(NOW - heldAt(claim as never)).toBe(60_000);
	});
});

describe('what lapses in the next minutes', () => {
	const all = claims(hold('a', 5), hold('b', 59, { quantity: 3 }), hold('c', 60), hold('d', 119), hold('e', 600), hold('f', 0));

	it('is counted in places, minute by minute', () => {
		expect(expiriesAhead(all, NOW, 3)).toEqual([4, 2, 0]);
	});

	it('comes nearer as time goes', () => {
		expect(expiriesAhead(all, NOW + 30_000, 3)).toEqual([4, 1, 0]);
		expect(expiriesAhead(all, NOW + 590_000, 2)).toEqual([1, 0]);
	});
});
