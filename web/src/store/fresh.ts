// Keeps what is shown true while somebody looks at it: a sale that opens or ends is seen without loading the page anew.
import type { Schemas } from '../api/client.ts';
import { serverNow } from '../lib/server-time.ts';

type Sold = Pick<Schemas['EventCard'], 'sale_state' | 'sale_start_at' | 'sale_end_at' | 'effective_end_at'>;

/** What ought to have turned, and was not said to have, is asked for again after this. */
const PAUSE_MIN_MS = 15_000;
/** Longer than that nobody looks; setTimeout would also not hold it for long. */
const PAUSE_MAX_MS = 12 * 3_600_000;
/** Those who wait for a sale do not all ask in the same moment. */
const SPREAD_MS = 2_000;

/** How long it stays as it is: until the first sale opens or ends. Null: nothing will change today. */
export function untilNextTurn(events: readonly Sold[], now: number): number | null {
	const turns = events.flatMap((event) => {
		if (event.sale_state === 'not_yet') return event.sale_start_at ?? [];
		return event.sale_state === 'open' ? (event.sale_end_at ?? event.effective_end_at ?? []) : [];
	});
	if (turns.length === 0) return null;
	const pause = Math.min(...turns.map((iso) => Date.parse(iso))) - now;
	if (pause <= 0) return PAUSE_MIN_MS;
	return pause <= PAUSE_MAX_MS ? pause : null;
}

/** Asks again when a sale turns, and when somebody comes back to the page. Returns how to stop. */
export function stayFresh(events: readonly Sold[], again: () => unknown): () => void {
	const pause = untilNextTurn(events, serverNow());
	const timer = pause === null ? undefined : setTimeout(again, pause + Math.random() * SPREAD_MS);
	// By the own clock: this one has gone on while the device slept.
	const began = Date.now();
	const onReturn = () => {
		if (document.visibilityState === 'visible' && Date.now() - began > PAUSE_MIN_MS) again();
	};
	document.addEventListener('visibilitychange', onReturn);
	return () => {
		clearTimeout(timer);
		document.removeEventListener('visibilitychange', onReturn);
	};
}
