// How full the events are that the home shows: each is asked for once, and from then on the organization's feed tells.
import { api, ask, Refusal } from '../api/client.ts';
import type { Counted } from '../admin/feed.svelte.ts';
import type { EventView } from '../admin/model.ts';
import { hasPlaces } from './attention.ts';

/** More than these nobody takes in at a glance; the others are counted in their own rooms. */
export const COUNTED_MAX = 30;

export class Fills {
	known = $state.raw<ReadonlyMap<string, Counted>>(new Map());

	/** One more with each count: an answer that comes too late changes nothing. */
	#era = 0;

	async count(events: readonly EventView[]): Promise<void> {
		const era = ++this.#era;
		const counted = events.filter((event) => hasPlaces(event) && event.status !== 'draft').slice(0, COUNTED_MAX);
		const found = await Promise.all(counted.map(({ id }) => this.#one(id)));
		if (era !== this.#era) return;
		this.known = new Map(found.flatMap((one) => (one === null ? [] : [[one.event_id, this.#newer(one)] as const])));
	}

	/** The feed has counted one of them. */
	take(counts: Counted): void {
		if (this.known.has(counts.event_id)) this.known = new Map([...this.known, [counts.event_id, this.#newer(counts)]]);
	}

	/** What was counted in another process may have come by a longer way. */
	#newer(counts: Counted): Counted {
		const shown = this.known.get(counts.event_id);
		const isOlder = shown && (counts.epoch < shown.epoch || (counts.epoch === shown.epoch && counts.map_version < shown.map_version));
		return isOlder ? shown : counts;
	}

	async #one(id: string): Promise<Counted | null> {
		try {
			return (await ask(api.GET('/api/events/{event_id}/occupancy', { params: { path: { event_id: id } } }))).data;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			return this.known.get(id) ?? null;
		}
	}
}
