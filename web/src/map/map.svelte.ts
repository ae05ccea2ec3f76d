// Everything the seat map shows, in one place: what the server says of seats, what this person holds or has asked for, where
// they look and what they point at. The parent feeds it by method calls; the drawings read it and keep nothing.
import type { Geometry } from '../layouts/geometry.ts';
import type { Box, Size } from '../layouts/view.ts';
import { Hall, type Section } from './hall.ts';
import { AVAILABLE, BEFORE_SHIFT, nearOf, OWN, PENDING, RESERVED, SOLD, STATUS, STATUSES, TURNING, unpack, type Status } from './looks.ts';
import { groupsOf, priceOf, tintsOf, type Money, type OfferedZone, type PriceGroup } from './offer.ts';

export interface Counts {
	readonly zone_id: string;
	readonly total: number;
	readonly available: number;
	readonly held: number;
	readonly sold: number;
	readonly blocked: number;
}
/** All seats, as `GET /api/events/{id}/seatmap` and the stream tell them. */
export interface Snapshot {
	readonly epoch: number;
	readonly map_version: number;
	readonly seat_count: number;
	readonly statuses: string;
	readonly zones: readonly Counts[];
}
/** Some seats and what became of them. */
export interface Delta {
	readonly mapVersion: number;
	readonly ordinals: ArrayLike<number>;
	readonly statuses: ArrayLike<number>;
	readonly zones?: readonly Counts[];
}
/** Where the keyboard is: on a section, on a row of it, on a seat. */
export type Focus =
	| { readonly level: 'section'; readonly zone: number }
	| { readonly level: 'row'; readonly row: number }
	| { readonly level: 'seat'; readonly seat: number };
/** Pixels of the page = centimetres × k + x or y. */
export interface Transform {
	readonly k: number;
	readonly x: number;
	readonly y: number;
}
/** What a seat answers to somebody who wants it. */
export type Answer = 'free' | 'own' | 'pending' | 'pooled' | 'locked' | Exclude<Status, 'available'>;
/** Something that was asked for and refused. */
export interface Notice {
	/** Null where it is about more than one seat. */
	readonly seat: number | null;
	readonly reason: string;
}

/** As near as a seat gets. */
export const SEAT_PX_MAX = 56;
const MARGIN_PX = 24;
/** More seats than that changing at once are drawn anew as a whole. */
const TOUCHED_MAX = 8192;
const NONE: Counts = { zone_id: '', total: 0, available: 0, held: 0, sold: 0, blocked: 0 };

export class SeatMapState {
	readonly hall: Hall;
	readonly isDesk: boolean;
	/** By ordinal, as `looks.ts` says. Changed in place: `revision` says when. */
	readonly looks: Uint8Array<ArrayBuffer>;
	/** Grows with every change of a look. */
	revision = $state(0);
	/** By zone. */
	offer = $state.raw<readonly (OfferedZone | undefined)[]>([]);
	counts = $state.raw<readonly Counts[]>([]);
	isLoaded = $state(false);
	own = $state.raw<ReadonlySet<number>>(new Set());
	/** What was asked for and is not answered: to have a seat, or to give it back. */
	pending = $state.raw<ReadonlyMap<number, 'pick' | 'release'>>(new Map());
	notice = $state.raw<Notice | null>(null);
	mode = $state<'map' | 'list'>('map');
	/** Where the keyboard is, or was when it went elsewhere. */
	focus = $state.raw<Focus | null>(null);
	hasFocus = $state(false);
	hover = $state.raw<{ readonly seat: number } | { readonly section: Section } | null>(null);
	/** In how many minutes a seat that somebody else holds may come back, where that was asked for. */
	awaited = $state.raw<{ readonly seat: number; readonly minutes: number } | null>(null);
	/** The zones of the legend's line that was chosen; the others step back. */
	lit = $state.raw<PriceGroup | null>(null);
	size = $state.raw<Size>({ width: 0, height: 0 });
	/** Pixels at the edges that controls stand on; the whole hall is shown between them. */
	inset = $state.raw({ top: 0, bottom: 0 });
	transform = $state.raw<Transform>({ k: 0, x: 0, y: 0 });

	/** The seat that is pointed at, or else the one that the keyboard is on. */
	pointed = $derived.by(() => {
		if (this.hover) return 'seat' in this.hover ? this.hover.seat : null;
		return this.hasFocus && this.focus?.level === 'seat' ? this.focus.seat : null;
	});
	/** The same, where somebody else holds it. */
	wondered = $derived.by(() => (this.pointed !== null && this.answer(this.pointed) === 'held' ? this.pointed : null));
	/** By zone, whether it is shown but not for this person. */
	locked = $derived.by(() => this.hall.sections.map(({ zone, zoneId }) => (this.offer[zone]?.access_mode ?? 'public') !== 'public' && !this.#opened.has(zoneId)));
	tints = $derived.by(() => tintsOf(this.hall, this.offer, (zone) => this.locked[zone] === true));
	groups = $derived.by(() => groupsOf(this.hall, this.offer, this.tints, (zone) => this.locked[zone] === true));
	/** Zones without seats that are drawn nowhere; those who run the event have them elsewhere. */
	unplaced = $derived.by(() => (this.isDesk ? [] : this.hall.sections.filter(({ zone, outline, isArea }) => isArea && !outline && this.offer[zone]?.is_enabled !== false)));
	seatPx = $derived.by(() => this.hall.seatCm * this.transform.k);
	near = $derived.by(() => nearOf(this.seatPx));
	whole = $derived.by(() => this.fitting(this.hall.box));
	isWhole = $derived.by(() => this.transform.k <= this.whole.k * 1.001);
	left = $derived.by(() => this.counts.reduce((sum, zone) => sum + zone.available, 0));
	total = $derived.by(() => this.counts.reduce((sum, zone) => sum + zone.total, 0));

	#epoch = -1;
	#version = -1;
	#opened = $state.raw<ReadonlySet<string>>(new Set());
	#zoneAt: ReadonlyMap<string, number>;
	/** Seats whose look changed after a revision, and those that are turning from one look to another. */
	#touched: number[] = [];
	#touchedFrom = 0;
	#turning: number[] = [];
	/** Seats that a later map has as free, and that are shown as they were until that is sure. */
	#freed = new Set<number>();
	/** Seats that look like this person's, and companion seats that are kept for them. */
	#dressed: ReadonlySet<number> = new Set();
	#reserved: ReadonlySet<number> = new Set();

	/** `isDesk` where those who run the event look: every seat can be chosen, whatever it is, and what is chosen looks like one's own. */
	constructor(geometry: Geometry, offer: readonly OfferedZone[] = [], { isDesk = false } = {}) {
		this.isDesk = isDesk;
		this.hall = new Hall(geometry);
		this.looks = new Uint8Array(geometry.seatCount);
		this.#zoneAt = new Map(this.hall.sections.map(({ zoneId, zone }) => [zoneId, zone]));
		this.counts = this.hall.sections.map(({ zoneId }) => ({ ...NONE, zone_id: zoneId }));
		this.sell(offer);
	}

	/** What the zones cost and who may have them; again when it changes. */
	sell(offer: readonly OfferedZone[]): void {
		const known = new Map(offer.map((zone) => [zone.zone_id, zone]));
		this.offer = this.hall.sections.map(({ zoneId }) => known.get(zoneId));
	}

	/** Zones that are not for everybody, but for this person. */
	open(zoneIds: Iterable<string>): void {
		this.#opened = new Set(zoneIds);
	}

	/**
	 * All seats anew. What is older than what is shown is late and changes nothing, unless it is to replace that. With
	 * `isDoubted` seats that would come free by it stay as they are until `free` is called: another process of the server
	 * may have told it, which knows of more changes and yet for a moment not of every one that was shown.
	 */
	load(snapshot: Snapshot, { isReplacing = false, isDoubted = false } = {}): boolean {
		const isOlder = snapshot.epoch < this.#epoch || (snapshot.epoch === this.#epoch && snapshot.map_version < this.#version);
		if (isOlder && !isReplacing) return false;
		const { looks } = this;
		if (snapshot.seat_count !== looks.length) throw new Error(`a map of ${snapshot.seat_count} seats for ${looks.length}`);
		const statuses = unpack(snapshot.statuses, looks.length);
		this.#freed.clear();
		if (isDoubted && this.isLoaded && !isReplacing && snapshot.epoch === this.#epoch) {
			for (let seat = 0; seat < looks.length; seat++) {
				const shown = (looks[seat] as number) & STATUS;
				if (shown === AVAILABLE || statuses[seat] !== AVAILABLE) continue;
				statuses[seat] = shown;
				this.#freed.add(seat);
			}
		}
		for (let seat = 0; seat < looks.length; seat++) looks[seat] = ((looks[seat] as number) & (OWN | PENDING | RESERVED)) | (statuses[seat] as number);
		this.#epoch = snapshot.epoch;
		this.#version = snapshot.map_version;
		this.#turning = [];
		this.#count(snapshot.zones);
		this.isLoaded = true;
		this.#touchAll();
		return true;
	}

	/** What changed since; false when that is not newer than what is shown, and nothing was changed. */
	apply({ mapVersion, ordinals, statuses, zones }: Delta): boolean {
		if (mapVersion <= this.#version) return false;
		this.#version = mapVersion;
		this.#settle();
		for (let at = 0; at < ordinals.length; at++) {
			const seat = ordinals[at] as number;
			const look = this.looks[seat];
			this.#freed.delete(seat);
			if (look === undefined || (look & STATUS) === statuses[at]) continue;
			this.#turn(seat, (look & ~STATUS) | ((statuses[at] as number) & STATUS));
		}
		if (zones) this.#count(zones);
		this.#dress();
		this.revision++;
		return true;
	}

	/** Nothing was heard of them since: seats that a later map had as free are free. */
	free(): void {
		if (this.#freed.size === 0) return;
		this.#settle();
		for (const seat of this.#freed) this.#turn(seat, (this.looks[seat] as number) & ~STATUS);
		this.#freed.clear();
		this.#dress();
		this.revision++;
	}

	/** The seats that this person holds, all of them: of a basket that is read again, or after some have lapsed. */
	hold(ordinals: Iterable<number>): void {
		this.own = new Set(ordinals);
		this.#redress([...this.own]);
	}

	/** Asked for, before anybody answers: a free seat to be had, an own one to be given back. */
	pend(seat: number): void {
		this.notice = null;
		this.pending = new Map(this.pending).set(seat, this.own.has(seat) ? 'release' : 'pick');
		this.#redress([seat]);
	}

	/** It was done as asked. */
	confirm(seat: number): void {
		const asked = this.pending.get(seat);
		if (asked === undefined) return;
		this.#answered(seat);
		const own = new Set(this.own);
		if (asked === 'pick') own.add(seat);
		else own.delete(seat);
		this.own = own;
		this.#redress([seat]);
	}

	/** It was not done, for that reason: a code that the words know, or a sentence. */
	takeBack(seat: number, reason: string): void {
		this.#answered(seat);
		this.notice = { seat, reason };
		this.#redress([seat]);
	}

	statusOf(seat: number): Status {
		return STATUSES[(this.looks[seat] ?? 0) & STATUS] ?? 'blocked';
	}

	/** What a seat answers to somebody who wants it. */
	answer(seat: number): Answer {
		void this.revision;
		const look = this.looks[seat] ?? 0;
		const zone = this.hall.geometry.zoneOf[seat] as number;
		if (look & PENDING) return 'pending';
		if (look & OWN) return 'own';
		const status = STATUSES[look & STATUS] ?? 'blocked';
		if (status !== 'available') return status;
		if (this.locked[zone]) return 'locked';
		return this.isPooled(zone) ? 'pooled' : 'free';
	}

	/** Whether one has a place in the zone and not that very seat. */
	isPooled(zone: number): boolean {
		return (this.offer[zone]?.place ?? 'reserved') !== 'reserved';
	}

	isReserved(seat: number): boolean {
		return ((this.looks[seat] ?? 0) & RESERVED) !== 0;
	}

	priceOf(seat: number): Money | null {
		const { zoneOf, category } = this.hall.geometry;
		return priceOf(this.offer[zoneOf[seat] as number], category[seat] as number);
	}

	/** How many seats of a row are left, and of how many. */
	leftInRow(row: number): readonly [number, number] {
		void this.revision;
		const [first, end] = this.hall.rowSeats(row);
		let free = 0;
		for (let seat = first; seat < end; seat++) if (((this.looks[seat] as number) & STATUS) === AVAILABLE) free++;
		return [free, end - first];
	}

	/** Seats that look different than at that revision; null where it may be any of them. */
	touchedSince(revision: number): readonly number[] | null {
		return revision < this.#touchedFrom ? null : this.#touched;
	}

	/** Everything touched so far has been drawn. */
	drawn(): void {
		this.#touched = [];
		this.#touchedFrom = this.revision;
	}

	get isTurning(): boolean {
		return this.#turning.length > 0;
	}

	/** The transform that shows a box as large as it goes. */
	fitting(box: Box, seatPxMax = SEAT_PX_MAX): Transform {
		const { size, inset } = this;
		const [width, height] = [Math.max(1, size.width - 2 * MARGIN_PX), Math.max(1, size.height - inset.top - inset.bottom - 2 * MARGIN_PX)];
		const most = seatPxMax / this.hall.seatCm;
		const k = Math.min(width / Math.max(1, box.right - box.left), height / Math.max(1, box.bottom - box.top), most);
		const middleY = inset.top + (size.height - inset.top - inset.bottom) / 2;
		return { k, x: size.width / 2 - (k * (box.left + box.right)) / 2, y: middleY - (k * (box.top + box.bottom)) / 2 };
	}

	toScreen(x: number, y: number): readonly [number, number] {
		const { k, x: left, y: top } = this.transform;
		return [x * k + left, y * k + top];
	}

	toHall(x: number, y: number): readonly [number, number] {
		const { k, x: left, y: top } = this.transform;
		return [(x - left) / k, (y - top) / k];
	}

	#count(zones: readonly Counts[]): void {
		const counts = [...this.counts];
		for (const zone of zones) {
			const at = this.#zoneAt.get(zone.zone_id);
			if (at !== undefined) counts[at] = zone;
		}
		this.counts = counts;
	}

	#answered(seat: number): void {
		const pending = new Map(this.pending);
		pending.delete(seat);
		this.pending = pending;
	}

	/** Gives seats of this person's the look they ought to have, and those that lost it the common one. */
	#redress(seats: readonly number[]): void {
		this.#settle();
		const { looks } = this;
		for (const seat of new Set([...seats, ...this.own, ...this.#dressed])) {
			const asked = this.pending.get(seat);
			const mine = (this.own.has(seat) || asked ? OWN : 0) | (asked ? PENDING : 0);
			const look = looks[seat] as number;
			if ((look & (OWN | PENDING)) !== mine) this.#turn(seat, (look & ~(OWN | PENDING)) | mine);
		}
		this.#dressed = new Set([...this.own, ...this.pending.keys()]);
		this.#dress();
		this.revision++;
	}

	/** Companion seats of the wheelchair spaces that this person has, while nobody else does. */
	#dress(): void {
		const reserved = new Set<number>();
		for (const seat of this.isDesk ? [] : this.#dressed) {
			for (const companion of this.hall.companionsOf.get(seat) ?? []) {
				if (!this.#dressed.has(companion) && ((this.looks[companion] as number) & STATUS) !== SOLD) reserved.add(companion);
			}
		}
		for (const seat of new Set([...reserved, ...this.#reserved])) {
			const look = this.looks[seat] as number;
			const wanted = reserved.has(seat) ? look | RESERVED : look & ~RESERVED;
			if (wanted !== look) this.#turn(seat, wanted);
		}
		this.#reserved = reserved;
	}

	#turn(seat: number, look: number): void {
		const before = (this.looks[seat] as number) & STATUS;
		this.looks[seat] = (look & ~(STATUS << BEFORE_SHIFT)) | (before << BEFORE_SHIFT) | TURNING;
		this.#turning.push(seat);
		this.#touch(seat);
	}

	/** Those that were turning are done: all that turn at once share one clock. */
	#settle(): void {
		for (const seat of this.#turning) {
			this.looks[seat] = (this.looks[seat] as number) & ~TURNING;
			this.#touch(seat);
		}
		this.#turning = [];
	}

	#touch(seat: number): void {
		if (this.#touched.length < TOUCHED_MAX) this.#touched.push(seat);
		else this.#touchAll();
	}

	#touchAll(): void {
		this.#touched = [];
		this.revision++;
		this.#touchedFrom = this.revision;
	}
}
