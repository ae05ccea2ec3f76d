// Seats that somebody who leads has chosen on the map, and what is done with them: out of sale, back on sale, and back again.
import { Refusal } from '../api/client.ts';
import type { Box } from '../layouts/view.ts';
import type { SeatMapState } from '../map/map.svelte.ts';
import { setBlocked, type Verb, type Why } from './asking.ts';
import { boxBetween, byStatus, rowOf, toggled, unsold, type Reach } from './choosing.ts';

/** What became of a deed. */
export interface Told {
	readonly verb: Verb;
	readonly done: readonly number[];
	/** Seats that were left as they are, by why. */
	readonly left: ReadonlyMap<Why, readonly number[]>;
	/** How many of those that were done somebody held. */
	readonly lost: number;
	/** It took back the deed before it. */
	readonly isUndo: boolean;
	/** Why the rest was not asked for any more. */
	readonly refusal: Refusal | null;
}

export class Blocking {
	readonly map: SeatMapState;
	readonly #eventId: string;
	/** What a click takes. */
	reach = $state<Reach>('seat');
	chosen = $state.raw<ReadonlySet<number>>(new Set());
	reason = $state('');
	isBusy = $state(false);
	told = $state.raw<Told | null>(null);

	/** The chosen seats by what they are this moment. */
	sorted = $derived.by(() => {
		void this.map.revision;
		return byStatus(this.map.looks, this.chosen);
	});
	#last: number | null = null;

	constructor(eventId: string, map: SeatMapState) {
		this.#eventId = eventId;
		this.map = map;
	}

	/** A seat was clicked: it, its row, or with the shift key everything between the last one and it. */
	pick(seat: number, isSpan: boolean): void {
		const { hall, looks } = this.map;
		if (isSpan && this.#last !== null) this.#choose(new Set([...this.chosen, ...unsold(looks, hall.seatsIn(boxBetween(hall, this.#last, seat)))]));
		else this.#choose(toggled(this.chosen, this.reach === 'row' ? unsold(looks, rowOf(hall, seat)) : [seat]));
		this.#last = seat;
	}

	/** A frame was drawn around seats. */
	frame(box: Box): void {
		this.#choose(toggled(this.chosen, unsold(this.map.looks, this.map.hall.seatsIn(box))));
	}

	clear(): void {
		this.#choose(new Set());
		this.#last = null;
	}

	/** What could not be asked for stays chosen. */
	async do(verb: Verb, seats: readonly number[]): Promise<void> {
		await this.#ask(verb, seats, this.reason.trim() || null, false);
		if (this.told?.refusal) return;
		this.reason = '';
		this.#show(new Set());
		this.#last = null;
	}

	/** Takes back the last deed, as far as it was done. Who lost a hold by it does not get it back. */
	async undo(): Promise<void> {
		const { told } = this;
		if (told && told.done.length > 0) await this.#ask(told.verb === 'block' ? 'unblock' : 'block', told.done, null, true);
	}

	async #ask(verb: Verb, seats: readonly number[], reason: string | null, isUndo: boolean): Promise<void> {
		if (this.isBusy || seats.length === 0) return;
		const { geometry } = this.map.hall;
		const held = new Set(byStatus(this.map.looks, seats).held);
		const done: number[] = [];
		const left = new Map<Why, number[]>();
		let refusal: Refusal | null = null;
		this.isBusy = true;
		this.told = null;
		try {
			const ids = seats.map((seat) => geometry.seatId(seat));
			await setBlocked(this.#eventId, verb, ids, reason, (said) => {
				for (const [id, outcome] of said) {
					const seat = geometry.ordinalOf(id);
					if (seat === null) continue;
					if (outcome === 'done') done.push(seat);
					else left.set(outcome, [...(left.get(outcome) ?? []), seat]);
				}
			});
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			refusal = failure;
		} finally {
			this.isBusy = false;
		}
		const lost = verb === 'block' ? done.filter((seat) => held.has(seat)).length : 0;
		this.told = { verb, done, left, lost, isUndo, refusal };
	}

	#choose(seats: ReadonlySet<number>): void {
		this.told = null;
		this.#show(seats);
	}

	#show(seats: ReadonlySet<number>): void {
		this.chosen = seats;
		this.map.hold(seats);
	}
}
