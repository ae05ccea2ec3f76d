// An event while it is being sold, to those who run it: its places as they are this moment, how they came to be so, who holds
// what, and what can be done about it.
import { Refusal } from '../api/client.ts';
import { offerOf, seatMapOf, type OfferedZone } from '../buy/asking.ts';
import { clock } from '../buy/countdown.ts';
import { geometryOf } from '../layouts/asking.ts';
import { serverNow } from '../lib/server-time.ts';
import { Live } from '../map/live.svelte.ts';
import { pack } from '../map/looks.ts';
import { SeatMapState, type Counts } from '../map/map.svelte.ts';
import { minutesOf } from './asking.ts';
import { Blocking } from './blocking.svelte.ts';
import { HoldList } from './holds.svelte.ts';
import { extended, joined, pointsOf, totalOf, type Point } from './series.ts';

export const SPANS_S = { hour: 3600, day: 24 * 3600, week: 7 * 24 * 3600 } as const;
export type Span = keyof typeof SPANS_S;
const TICK_MS = 1000;

export interface Rights {
	/** See who holds what. */
	readonly change: boolean;
	/** Take seats out of sale. */
	readonly lead: boolean;
}

export class Room {
	readonly eventId: string;
	/** `none`: there is nothing to watch, since nobody can see the event's places. */
	standing = $state<'asking' | 'shown' | 'none' | 'failed'>('asking');
	refusal = $state.raw<Refusal | null>(null);
	zones = $state.raw<readonly OfferedZone[]>([]);
	/** Null where nobody chooses a seat. */
	map = $state.raw<SeatMapState | null>(null);
	live = $state.raw<Live | null>(null);
	counts = $state.raw<ReadonlyMap<string, Counts>>(new Map());
	total = $derived.by(() => totalOf(this.counts.values()));
	span = $state<Span>('day');
	points = $state.raw<readonly Point[]>([]);
	/** Null for those who may not see who holds what, or take seats out of sale. */
	holds = $state.raw<HoldList | null>(null);
	blocking = $state.raw<Blocking | null>(null);
	/** By the page's own clock, every second. */
	now = $state(clock());

	readonly #rights: Rights;
	#stop: () => void = () => {};
	#isOver = false;

	constructor(eventId: string, rights: Rights) {
		this.eventId = eventId;
		this.#rights = rights;
	}

	async load(): Promise<void> {
		this.#stop();
		this.standing = 'asking';
		try {
			await this.#begin();
			this.standing = 'shown';
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.refusal = failure;
			this.standing = failure.code === 'event_not_found' ? 'none' : 'failed';
		}
	}

	close(): void {
		this.#isOver = true;
		this.#stop();
	}

	/** How it was for so long back. */
	async look(span: Span): Promise<void> {
		this.span = span;
		const seen = this.points;
		try {
			const read = pointsOf(await minutesOf(this.eventId, new Date(serverNow() - SPANS_S[span] * 1000)));
			if (this.span === span) this.points = joined(read, seen);
		} catch (failure) {
			// The figures beside it are right all the same; the chart goes on with what is seen from now on.
			if (!(failure instanceof Refusal)) throw failure;
		}
	}

	async #begin(): Promise<void> {
		const [offer, { snapshot: first, id }] = await Promise.all([offerOf(this.eventId), seatMapOf(this.eventId), this.look(this.span)]);
		const { layout } = offer;
		const geometry = layout && layout.seat_count > 0 ? await geometryOf(layout.layout_id, layout.layout_version) : null;
		if (this.#isOver) return;
		const map = geometry && new SeatMapState(geometry, offer.zones, { isDesk: true });
		const live = new Live(this.eventId, {
			snapshot: (snapshot, isReplacing) => {
				// Another hall than the one that is shown, or other zones: everything is to be had anew.
				if (snapshot.epoch !== first.epoch || snapshot.seat_count !== first.seat_count) {
					void this.load();
					return;
				}
				map?.load(snapshot, { isReplacing });
				this.#count(snapshot.zones);
			},
			delta: (delta) => {
				map?.apply(delta);
				this.#count(delta.zones ?? []);
			},
			// The organization's feed tells of the event itself.
			status: () => {},
			shown: () => ({ seat_count: first.seat_count, statuses: map ? pack(map.looks) : first.statuses, zones: [...this.counts.values()] }),
		});
		const holds = this.#rights.change ? new HoldList(this.eventId) : null;
		[this.zones, this.map, this.live, this.holds, this.counts] = [offer.zones, map, live, holds, new Map()];
		this.blocking = map && this.#rights.lead ? new Blocking(this.eventId, map) : null;
		live.load(first, id);
		const stopLive = live.start();
		const ticking = setInterval(() => (this.now = clock()), TICK_MS);
		this.#stop = () => {
			stopLive();
			clearInterval(ticking);
			holds?.close();
		};
	}

	#count(zones: readonly Counts[]): void {
		if (zones.length > 0) this.counts = new Map([...this.counts, ...zones.map((zone) => [zone.zone_id, zone] as const)]);
		this.points = extended(this.points, serverNow() / 1000, this.total);
		this.holds?.touch();
	}
}
