// What somebody holds of an event: asked for as they tap, shown at once, and never shown as lost while the server holds it.
import { Refusal } from '../api/client.ts';
import { session } from '../lib/session.svelte.ts';
import type { SeatMapState } from '../map/map.svelte.ts';
import { priceOf, type Money } from '../map/offer.ts';
import { saySeat } from '../map/say.ts';
import { extend, holdPlaces, holdSeats, letGo, ownHolds, seatOf, type Hold, type Offer } from './asking.ts';
import { clock, face, isOver, isWarning, secondsLeft, share, termOf, untilNext, type Clock, type Term } from './countdown.ts';
import { sayLine, sayRefused } from './say.ts';
import { t } from './words.ts';

/** One hold: a seat, or some places of a zone. */
export interface Line {
	readonly id: string;
	/** By ordinal; null where nobody chose a seat. */
	readonly seat: number | null;
	readonly seatId: string | null;
	readonly zoneId: string;
	readonly zone: string;
	readonly row: string;
	readonly label: string;
	readonly quantity: number;
	/** For all of them together. */
	readonly price: Money | null;
	readonly term: Term;
	/** The same moment by the server's clock, to be shown and never counted from. */
	readonly until: string;
	readonly canExtend: boolean;
	/** Held no more, but may be taken again. */
	readonly isLapsed: boolean;
}

/** What one person may hold is less; what has lapsed is kept up to here. */
const LINES_MAX = 60;
const LOOK_AGAIN_MS = 1200;
const ENDING_S = 1;
const ENDED_MS = 2100;

export class Basket {
	lines = $state.raw<readonly Line[]>([]);
	/** How much is being asked for. */
	busy = $state(0);
	/** What is to be read out. */
	said = $state('');
	/** What went wrong with something that is not a seat on the map. */
	trouble = $state('');
	#now = $state(0);

	held = $derived.by(() => this.lines.filter(({ isLapsed }) => !isLapsed));
	lapsed = $derived.by(() => this.lines.filter(({ isLapsed }) => isLapsed));
	places = $derived.by(() => this.held.reduce((sum, { quantity }) => sum + quantity, 0));
	total = $derived.by(() => totalOf(this.held));
	/** The one that ends first speaks for all. */
	#ending = $derived.by(() => this.held.reduce<Line | null>((least, line) => (least && least.term.endsAt <= line.term.endsAt ? least : line), null));
	first = $derived(this.#ending?.term ?? null);
	until = $derived(this.#ending?.until ?? null);
	secondsLeft = $derived.by(() => (this.first ? secondsLeft(this.first, this.#now) : 0));
	face = $derived(face(this.secondsLeft));
	share = $derived.by(() => (this.first ? share(this.first, this.#now) : 0));
	isEnding = $derived.by(() => this.first !== null && isWarning(this.first, this.#now));
	canExtend = $derived.by(() => this.held.some((line) => line.canExtend));

	readonly #org: string;
	readonly #offer: Offer;
	readonly #map: SeatMapState | null;
	readonly #clock: Clock;
	/** The other tabs of this browser are told. */
	readonly #onchange: () => void;
	#timer: ReturnType<typeof setTimeout> | undefined;
	/** One more with every change. */
	#era = 0;
	#again: ReturnType<typeof setTimeout> | undefined;
	/** Seats that were chosen again before what was asked about them was answered. */
	#turned = new Set<number>();
	/** Whoever was warned of this end is not warned of it again. */
	#warnedOf = -1;

	constructor(org: string, offer: Offer, map: SeatMapState | null, onchange: () => void = () => {}, now: Clock = clock) {
		this.#org = org;
		this.#offer = offer;
		this.#map = map;
		this.#onchange = onchange;
		this.#clock = now;
		this.#now = now();
	}

	close(): void {
		clearTimeout(this.#timer);
		clearTimeout(this.#again);
	}

	/** Some seats, all of them or none: shown as theirs at once, and taken back with the reason if they cannot be. */
	async pick(seats: readonly number[]): Promise<void> {
		const map = this.#map;
		if (!map) return;
		const ids = seats.map((seat) => map.hall.geometry.seatId(seat));
		for (const seat of seats) map.pend(seat);
		await this.#work(async () => {
			try {
				let holds = await holdSeats(this.#org, this.#offer.event_id, ids);
				if (holds.some(({ expires_in_seconds }) => expires_in_seconds <= ENDING_S)) {
					// Their own hold in its last moment, which is given no more time: once it has ended there is a new one.
					await new Promise((done) => setTimeout(done, ENDED_MS));
					holds = await holdSeats(this.#org, this.#offer.event_id, ids);
				}
				this.#add(holds);
				for (const seat of seats) map.confirm(seat);
				this.#turnBack(seats);
			} catch (failure) {
				await this.#unheld(seats, ids, failure);
			}
		});
	}

	async takePlaces(zoneId: string, quantity: number): Promise<boolean> {
		return this.#work(async () => {
			try {
				const hold = await holdPlaces(this.#org, this.#offer.event_id, zoneId, quantity);
				this.#add([hold]);
				this.said = t('buy.said.places', { count: quantity, zone: this.#zoneName(zoneId) });
				return true;
			} catch (failure) {
				this.trouble = this.#sayRefused(this.#zoneName(zoneId), failure);
				if (isInDoubt(failure)) this.lookAgain();
				return false;
			}
		});
	}

	/** They have changed their mind about a seat that is being asked about: once it is answered the other is done. */
	turn(seat: number): void {
		const map = this.#map;
		if (!map) return;
		map.notice = null;
		if (this.#turned.delete(seat)) return;
		this.#turned.add(seat);
		map.notice = { seat, reason: t(map.own.has(seat) ? 'buy.turned.pick' : 'buy.turned.release', { what: saySeat(map, seat) }) };
	}

	async release(lines: readonly Line[]): Promise<void> {
		if (lines.length === 0) return;
		const map = this.#map;
		const seats = lines.flatMap(({ seat }) => (seat !== null && map?.own.has(seat) ? seat : []));
		for (const seat of seats) map?.pend(seat);
		await this.#work(async () => {
			const failures: unknown[] = [];
			for (const line of lines) {
				try {
					await letGo(this.#org, line.id);
					this.#drop(line.id);
					if (line.seat !== null) map?.confirm(line.seat);
					if (line.seat !== null && this.#turned.delete(line.seat)) void this.pick([line.seat]);
				} catch (failure) {
					failures.push(failure);
					if (line.seat !== null) this.#turned.delete(line.seat);
					if (line.seat !== null) map?.takeBack(line.seat, t('buy.refused.release', { what: sayLine(line) }));
				}
			}
			if (failures.length > 0) {
				this.trouble = this.#sayRefused('', failures[0]);
				this.lookAgain();
			} else this.said = lines.length > 1 || lines[0]?.seat === null ? t('buy.said.released') : '';
			this.#onchange();
		});
	}

	/** More time for everything that may still have it. */
	async extend(): Promise<void> {
		await this.#work(async () => {
			try {
				for (const line of this.held.filter(({ canExtend }) => canExtend)) this.#put([await extend(this.#org, line.id)]);
				this.said = t('buy.said.extended', { time: this.face });
				this.#onchange();
			} catch (failure) {
				this.trouble = this.#sayRefused('', failure);
				this.lookAgain();
			}
		});
	}

	/** Tries to have again what has lapsed. */
	async takeAgain(line: Line): Promise<void> {
		if (line.seat !== null) {
			this.#drop(line.id);
			await this.pick([line.seat]);
		} else if (await this.takePlaces(line.zoneId, line.quantity)) this.#drop(line.id);
	}

	forget(line: Line): void {
		this.#drop(line.id);
	}

	/**
	 * What the server says is held, whatever is shown. What is not among it has lapsed and may be taken again; but when
	 * another tab has said that it changed something, it was let go there.
	 */
	async read({ isElsewhere = false } = {}): Promise<void> {
		if (!session.isAt(this.#org)) {
			if (session.standing === 'anonymous' && this.busy === 0) this.#settle([], isElsewhere);
			return;
		}
		const era = this.#era;
		try {
			const holds = await ownHolds(this.#offer.event_id);
			// Whatever was held or let go meanwhile may be missing from the answer.
			if (this.busy > 0 || era !== this.#era) this.lookAgain();
			else this.#settle(holds, isElsewhere);
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			// Not knowing is no reason to take something away.
		}
	}

	/** Somebody comes back to a page that has hardly counted meanwhile: what has ended is said to have, and all is read. */
	wake(): void {
		this.#tick();
		void this.read();
	}

	/** Soon, and once however many ask for it. */
	lookAgain(): void {
		clearTimeout(this.#again);
		this.#again = setTimeout(() => void this.read(), LOOK_AGAIN_MS);
	}

	/** The map has changed: where it does not show a held seat as held, somebody must be asked. */
	check(): void {
		const map = this.#map;
		if (map && this.held.some(({ seat }) => seat !== null && map.statusOf(seat) !== 'held')) this.lookAgain();
	}

	async #unheld(seats: readonly number[], ids: readonly string[], failure: unknown): Promise<void> {
		const map = this.#map as SeatMapState;
		if (isInDoubt(failure) && (await this.#areOwn(ids))) {
			for (const seat of seats) map.confirm(seat);
			this.#turnBack(seats);
			return;
		}
		for (const seat of seats) this.#turned.delete(seat);
		const [named] = seats as [number];
		const what = seats.length > 1 ? t('buy.seats', { count: seats.length }) : saySeat(map, named);
		for (const seat of seats) map.takeBack(seat, this.#sayRefused(what, failure));
		if (isInDoubt(failure)) this.lookAgain();
	}

	/** Gives back those of them that are not wanted any more. */
	#turnBack(seats: readonly number[]): void {
		void this.release(this.held.filter(({ seat }) => seat !== null && seats.includes(seat) && this.#turned.delete(seat)));
	}

	/** Whether the server holds them for this person after all; where it does not answer either, nobody knows. */
	async #areOwn(ids: readonly string[]): Promise<boolean> {
		try {
			for (const id of ids) if ((await seatOf(this.#offer.event_id, id)).own_hold_id === null) return false;
			const holds = await ownHolds(this.#offer.event_id);
			this.#add(holds.filter(({ seat_id }) => seat_id !== null && ids.includes(seat_id)));
			return true;
		} catch {
			return false;
		}
	}

	#sayRefused(what: string, failure: unknown): string {
		return sayRefused(what, failure, this.#offer.booking.max_seats_per_booking);
	}

	async #work<T>(doing: () => Promise<T>): Promise<T> {
		this.busy++;
		this.trouble = '';
		try {
			return await doing();
		} finally {
			this.busy--;
		}
	}

	#add(holds: readonly Hold[]): void {
		this.#put(holds);
		this.#onchange();
	}

	#put(holds: readonly Hold[]): void {
		this.#era++;
		const made = holds.map((hold) => this.#lineOf(hold));
		const ids = new Set(made.map(({ id }) => id));
		const seats = new Set(made.flatMap(({ seat }) => seat ?? []));
		// A seat that lapsed and is held again stands here once.
		const kept = this.lines.filter((line) => !ids.has(line.id) && !(line.isLapsed && line.seat !== null && seats.has(line.seat)));
		const order = new Map(this.lines.map(({ id }, at) => [id, at]));
		const place = ({ id }: Line) => order.get(id) ?? LINES_MAX;
		this.lines = [...kept, ...made].sort((one, other) => place(one) - place(other)).slice(-LINES_MAX);
		this.#tick();
	}

	#settle(holds: readonly Hold[], isElsewhere: boolean): void {
		const known = new Set(holds.map(({ hold_id }) => hold_id));
		const missing = this.held.filter(({ id }) => !known.has(id));
		this.lines = this.lines.flatMap((line) => {
			if (line.isLapsed || known.has(line.id)) return line;
			return isElsewhere ? [] : { ...line, isLapsed: true };
		});
		this.#put(holds);
		this.#map?.hold(this.held.flatMap(({ seat }) => seat ?? []));
		if (missing.length > 0 && !isElsewhere) this.said = t('buy.said.lost', { count: missing.reduce((sum, { quantity }) => sum + quantity, 0) });
	}

	#drop(id: string): void {
		this.#era++;
		this.lines = this.lines.filter((line) => line.id !== id);
		this.#tick();
	}

	#lineOf(hold: Hold): Line {
		const geometry = this.#map?.hall.geometry;
		const seat = hold.seat_id === null || !geometry ? null : geometry.ordinalOf(hold.seat_id);
		const zone = this.#offer.zones.find(({ zone_id }) => zone_id === hold.zone_id);
		const each = priceOf(zone, seat === null ? 0 : (geometry?.category[seat] ?? 0));
		return {
			id: hold.hold_id,
			seat,
			seatId: hold.seat_id,
			zoneId: hold.zone_id,
			zone: hold.block_name ?? zone?.name ?? '',
			row: hold.row ?? '',
			label: hold.seat_number ?? '',
			quantity: hold.quantity,
			price: each && { ...each, amount_minor: each.amount_minor * hold.quantity },
			term: termOf(hold.expires_in_seconds, this.#offer.booking.hold_minutes * 60, this.#clock()),
			until: hold.held_until,
			canExtend: hold.can_extend,
			isLapsed: hold.status !== 'held',
		};
	}

	#zoneName(zoneId: string): string {
		return this.#offer.zones.find(({ zone_id }) => zone_id === zoneId)?.name ?? '';
	}

	/** Every second while something is held. */
	#tick = (): void => {
		clearTimeout(this.#timer);
		const now = (this.#now = this.#clock());
		const over = this.held.filter(({ term }) => isOver(term, now));
		if (over.length > 0) this.#lapse(over);
		const { first } = this;
		if (!first) return;
		if (isWarning(first, now) && this.#warnedOf !== first.endsAt) {
			this.#warnedOf = first.endsAt;
			this.said = t('buy.said.ending', { seconds: secondsLeft(first, now) });
		}
		this.#timer = setTimeout(this.#tick, untilNext(first, now));
	};

	#lapse(over: readonly Line[]): void {
		const ids = new Set(over.map(({ id }) => id));
		this.lines = this.lines.map((line) => (ids.has(line.id) ? { ...line, isLapsed: true } : line));
		this.#map?.hold(this.held.flatMap(({ seat }) => seat ?? []));
		this.said = t('buy.said.lapsed', { count: over.reduce((sum, { quantity }) => sum + quantity, 0) });
		// The server has the last word: another tab may have asked for more time.
		this.lookAgain();
	}
}

function totalOf(lines: readonly Line[]): Money | null {
	return lines.reduce<Money | null>((sum, { price }) => (price ? { ...price, amount_minor: price.amount_minor + (sum?.amount_minor ?? 0) } : sum), null);
}

/** It may or may not have been done. */
function isInDoubt(failure: unknown): boolean {
	return failure instanceof Refusal && !failure.isEffectKnown;
}
