// Everybody's holds of an event as those who run it want them: by person, the next to lapse first, and what lapses when. Pure.
import type { Schemas } from '../api/client.ts';

export type StaffHold = Schemas['StaffHoldView'];
/** A hold with its end by the page's own clock, in milliseconds. */
export interface Claim {
	readonly hold: StaffHold;
	readonly endsAt: number;
}
/** What one person holds. */
export interface Basket {
	readonly userId: string;
	/** Null where nobody knows any more who it is. */
	readonly name: string | null;
	readonly isGuest: boolean;
	readonly isExtended: boolean;
	readonly source: string;
	readonly claims: readonly Claim[];
	readonly places: number;
	/** Since when the oldest of it is held, and until when the first of it. */
	readonly heldAt: number;
	readonly endsAt: number;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** By the seconds that the server counts, so that a clock that is wrong changes nothing. */
export function claimsOf(holds: readonly StaffHold[], now: number): Claim[] {
	return holds.map((hold) => ({ hold, endsAt: now + hold.expires_in_seconds * SECOND_MS }));
}

/** How long ago it was made, by the server's own two moments. */
export function heldAt({ hold, endsAt }: Claim): number {
	return endsAt - (Date.parse(hold.held_until) - Date.parse(hold.created_at));
}

export function basketsOf(claims: readonly Claim[], now: number): Basket[] {
	const people = new Map<string, Claim[]>();
	for (const claim of claims) {
		if (claim.endsAt <= now) continue;
		const of = people.get(claim.hold.user_id);
		if (of) of.push(claim);
		else people.set(claim.hold.user_id, [claim]);
	}
	return [...people]
		.map(([userId, own]): Basket => {
			const [first] = own as [Claim];
			return {
				userId,
				name: first.hold.holder_name,
				isGuest: first.hold.is_guest,
				isExtended: own.some(({ hold }) => hold.extended),
				source: first.hold.source,
				claims: own,
				places: own.reduce((sum, { hold }) => sum + hold.quantity, 0),
				heldAt: Math.min(...own.map(heldAt)),
				endsAt: Math.min(...own.map(({ endsAt }) => endsAt)),
			};
		})
		.sort((one, other) => one.endsAt - other.endsAt);
}

/** How many places lapse in each of the next minutes, if nobody buys them or asks for more time. */
export function expiriesAhead(claims: readonly Claim[], now: number, minutes: number): number[] {
	const ahead = Array.from({ length: minutes }, () => 0);
	for (const { hold, endsAt } of claims) {
		const at = Math.floor((endsAt - now) / MINUTE_MS);
		if (endsAt > now && at < minutes) ahead[at] = (ahead[at] ?? 0) + hold.quantity;
	}
	return ahead;
}
