// How full the events are that the home shows. Each is counted by the server from memory; nobody is asked on a clock.
import { api, ask, Refusal } from '../api/client.ts';
import type { EventView } from '../admin/model.ts';
import { hasPlaces, type Occupancy } from './attention.ts';

/** More than these nobody takes in at a glance; the others are counted in their own rooms. */
export const COUNTED_MAX = 30;

export class Fills {
	known = $state.raw<ReadonlyMap<string, Occupancy>>(new Map());
	countedAt = $state.raw<Date | null>(null);
	isCounting = $state(false);

	/** One more with each count: an answer that comes too late changes nothing. */
	#era = 0;

	async count(events: readonly EventView[]): Promise<void> {
		const era = ++this.#era;
		this.isCounting = true;
		const counted = events.filter((event) => hasPlaces(event) && event.status !== 'draft').slice(0, COUNTED_MAX);
		const found = await Promise.all(counted.map(({ id }) => this.#one(id)));
		if (era !== this.#era) return;
		this.known = new Map(found.flatMap((one) => (one === null ? [] : [[one.event_id, one] as const])));
		this.countedAt = new Date();
		this.isCounting = false;
	}

	async #one(id: string): Promise<Occupancy | null> {
		try {
			return (await ask(api.GET('/api/events/{event_id}/occupancy', { params: { path: { event_id: id } } }))).data;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			return this.known.get(id) ?? null;
		}
	}
}
