// An event while somebody buys: what it is, what it offers, its places as they are this moment, and what this person holds.
import { Refusal, type Schemas } from '../api/client.ts';
import { geometryOf } from '../layouts/asking.ts';
import { session } from '../lib/session.svelte.ts';
import { Live } from '../map/live.svelte.ts';
import { pack } from '../map/looks.ts';
import { SeatMapState, type Counts } from '../map/map.svelte.ts';
import { OneEvent } from '../store/one-event.svelte.ts';
import { offerOf, seatMapOf, seatOf, type Offer, type OfferedZone } from './asking.ts';
import { Basket } from './basket.svelte.ts';
import { sayLocked } from './say.ts';
import { together } from './together.ts';
import { t } from './words.ts';

/** Why nothing can be had now. */
export type Closed = 'cancelled' | 'ended' | 'archived' | 'postponed' | Exclude<Schemas['SaleState'], 'open'>;

/** Nobody finds these in the programme, and nothing is sold of them. */
export const UNLISTED: readonly string[] = ['cancelled', 'ended', 'archived'];
/** The event's page may hear of a change a moment after the stream. */
const LOOK_AGAIN_MS = 1500;
const TRIES_MAX = 5;
/** A process of the server that hears nothing reads for itself what the others have done, sooner than that. */
const SURE_MS = 1500;
const MINUTE_S = 60;
/** Who only passes over a seat does not wonder. */
const WONDER_MS = 300;
/** More at a time are a group, and groups talk to the organiser. */
const GROUP_MAX = 10;

export class Sale {
	readonly org: string;
	readonly page: OneEvent;
	standing = $state<'asking' | 'shown' | 'missing' | 'failed'>('asking');
	refusal = $state.raw<Refusal | null>(null);
	offer = $state.raw<Offer | null>(null);
	/** Null where nobody chooses a seat. */
	map = $state.raw<SeatMapState | null>(null);
	basket = $state.raw<Basket | null>(null);
	live = $state.raw<Live | null>(null);
	/** What is left, by zone. */
	counts = $state.raw<ReadonlyMap<string, Counts>>(new Map());
	/** How many seats a tap asks for. */
	group = $state(1);

	event = $derived.by(() => this.page.event);
	/** What the stream said last; it knows first. */
	#status = $state<string | null>(null);
	closed = $derived.by((): Closed | null => {
		const status = this.#status ?? this.event?.status ?? '';
		if (UNLISTED.includes(status)) return status as Closed;
		const state = this.event?.sale_state ?? 'open';
		// What is postponed to a date that is known is sold.
		if (state === 'suspended' && this.event?.status === 'postponed') return 'postponed';
		return state === 'open' ? null : state;
	});
	groupMax = $derived.by(() => Math.max(1, Math.min(GROUP_MAX, this.offer?.booking.max_seats_per_booking ?? 1)));
	/** Zones where one has a place and not a seat. */
	areas = $derived.by(() => (this.offer?.zones ?? []).filter(({ place, is_enabled }) => is_enabled && place !== 'reserved'));
	/** Zones that are shown but not for this person. */
	locked = $derived.by(() => (this.offer?.zones ?? []).filter((zone) => zone.is_enabled && !this.#isOpen(zone)));
	/** Nothing is left for this person: all is `sold`; or what is not is `held` and may come back, or is for `members`. */
	soldOut = $derived.by((): 'sold' | 'held' | 'members' | null => {
		if (this.counts.size === 0) return null;
		const lockedIds = new Set(this.locked.map(({ zone_id }) => zone_id));
		const theirs = [...this.counts.values()].filter(({ zone_id }) => !lockedIds.has(zone_id));
		if (theirs.some(({ available }) => available > 0)) return null;
		if (theirs.some(({ held }) => held > 0)) return 'held';
		return this.locked.some(({ zone_id }) => this.leftIn(zone_id) > 0) ? 'members' : 'sold';
	});

	/** As somebody, and not as a guest. */
	isSignedIn = $derived.by(() => session.isAt(this.org) && session.user?.is_guest !== true);

	#stop: () => void = () => {};
	#isOver = false;

	constructor(org: string, slug: string) {
		this.org = org;
		this.page = new OneEvent(org, slug);
	}

	async load(): Promise<void> {
		this.standing = 'asking';
		await this.page.load();
		if (this.page.standing !== 'shown' || !this.event) {
			this.refusal = this.page.refusal;
			this.standing = this.page.standing === 'missing' ? 'missing' : 'failed';
			return;
		}
		await this.#open(this.event.id);
	}

	close(): void {
		this.#isOver = true;
		this.#stop();
	}

	/** A free seat was tapped: it is held, with its neighbours where several are wanted. */
	pick(seat: number): void {
		const { map, basket } = this;
		if (!map || !basket) return;
		if (this.closed) {
			map.notice = { seat, reason: t(`buy.notice.${this.closed}`) };
			return;
		}
		const seats = this.group === 1 ? [seat] : together(map, seat, this.group);
		if (seats) void basket.pick(seats);
		else map.notice = { seat, reason: t('buy.group.none', { count: this.group }) };
	}

	release(seat: number): void {
		const lines = this.basket?.held.filter((line) => line.seat === seat) ?? [];
		if (lines.length > 0) void this.basket?.release(lines);
	}

	/** Something was tapped that is not for this person: why, and what they can do. */
	explain(zoneId: string, name: string): void {
		const zone = this.locked.find(({ zone_id }) => zone_id === zoneId);
		if (zone && this.map) this.map.notice = { seat: null, reason: sayLocked(zone.name, zone.membership_tier, this.isSignedIn, name) };
	}

	/** Somebody looks at a seat that another holds: when it may come back is asked once, and counted here until they look away. */
	wonder(seat: number): () => void {
		const { map, offer } = this;
		let timer: ReturnType<typeof setTimeout>;
		let isOver = false;
		const count = (seconds: number) => {
			if (isOver || !map || seconds <= 0) return;
			map.awaited = { seat, minutes: Math.ceil(seconds / MINUTE_S) };
			const rest = seconds % MINUTE_S || MINUTE_S;
			timer = setTimeout(() => count(seconds - rest), rest * 1000);
		};
		const ask = () => {
			// Strangers are told nothing of single seats, and nobody is made a guest by pointing.
			if (map && offer && session.isAt(this.org)) seatOf(offer.event_id, map.hall.geometry.seatId(seat)).then(({ expires_in_seconds }) => count(expires_in_seconds ?? 0), () => {});
		};
		timer = setTimeout(ask, WONDER_MS);
		return () => {
			isOver = true;
			clearTimeout(timer);
			if (map) map.awaited = null;
		};
	}

	leftIn(zoneId: string): number {
		return this.counts.get(zoneId)?.available ?? 0;
	}

	/** Which zones are this person's follows from who they are. */
	recognise(): void {
		this.map?.open((this.offer?.zones ?? []).filter((zone) => this.#isOpen(zone)).map(({ zone_id }) => zone_id));
	}

	/** As the server will say it; it is asked all the same. */
	#isOpen({ access_mode, membership_tier, allowed_roles }: OfferedZone): boolean {
		if (access_mode === 'public') return true;
		if (!session.isAt(this.org)) return false;
		if (access_mode === 'role_based') return allowed_roles.includes(session.user?.role ?? '');
		const isMember = session.account?.memberships.some(({ tier, status }) => tier === membership_tier && status === 'active');
		return access_mode === 'membership_tier' && isMember === true;
	}

	async #open(eventId: string): Promise<void> {
		this.#stop();
		try {
			await this.#begin(eventId);
			this.standing = 'shown';
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.refusal = failure;
			this.standing = failure.code === 'event_not_found' ? 'missing' : 'failed';
		}
	}

	async #begin(eventId: string, triesLeft = TRIES_MAX): Promise<void> {
		const [offer, { snapshot: first, id }] = await Promise.all([offerOf(eventId), seatMapOf(eventId)]);
		const { layout } = offer;
		const geometry = layout && layout.seat_count > 0 ? await geometryOf(layout.layout_id, layout.layout_version) : null;
		// Somebody may have gone elsewhere meanwhile.
		if (this.#isOver) return;
		if (geometry && geometry.seatCount !== first.seat_count && triesLeft > 1) {
			// The hall was exchanged between the answers.
			await new Promise((done) => setTimeout(done, LOOK_AGAIN_MS));
			return this.#begin(eventId, triesLeft - 1);
		}
		const map = geometry && new SeatMapState(geometry, offer.zones);
		let sure: ReturnType<typeof setTimeout> | undefined;
		const live = new Live(
			eventId,
			{
				snapshot: (snapshot, isReplacing) => {
					// Another hall than the one that is shown, or other zones: everything is to be had anew.
					if (snapshot.epoch !== first.epoch || snapshot.seat_count !== first.seat_count) {
						void this.#open(eventId);
						return;
					}
					map?.load(snapshot, { isReplacing, isDoubted: true });
					clearTimeout(sure);
					sure = setTimeout(() => map?.free(), SURE_MS);
					this.#count(snapshot.zones);
					basket.check();
				},
				delta: (delta) => {
					map?.apply(delta);
					this.#count(delta.zones ?? []);
					basket.check();
				},
				status: (status) => void this.#turn(status),
				shown: () => {
					map?.free();
					return { seat_count: first.seat_count, statuses: map ? pack(map.looks) : first.statuses, zones: [...this.counts.values()] };
				},
			},
			() => void basket.read({ isElsewhere: true }),
		);
		const basket = new Basket(this.org, offer, map, () => live.tellBasket());
		[this.offer, this.map, this.live, this.basket, this.counts] = [offer, map, live, basket, new Map()];
		live.load(first, id);
		const stopLive = live.start();
		this.#stop = () => {
			clearTimeout(sure);
			stopLive();
			basket.close();
		};
	}

	#count(zones: readonly Counts[]): void {
		if (zones.length > 0) this.counts = new Map([...this.counts, ...zones.map((zone) => [zone.zone_id, zone] as const)]);
	}

	/** The event is another than it was: what is shown of it is asked for again, until it says the same. */
	async #turn(status: string, triesLeft = TRIES_MAX): Promise<void> {
		if (this.#isOver || (status === 'gone' && UNLISTED.includes(this.#status ?? ''))) return;
		const isKnown = this.#status === null && status === this.event?.status;
		if (status !== 'gone') this.#status = status;
		if (isKnown) return;
		if (triesLeft === TRIES_MAX) this.basket?.lookAgain();
		// Such an event has no page any more; what is known of it is enough to say so.
		if (UNLISTED.includes(status)) return;
		await this.page.load();
		// Meanwhile it may have come to be such an event, and that is why it has no page.
		if (UNLISTED.includes(this.#status ?? '')) return;
		if (this.page.standing === 'missing') this.standing = 'missing';
		else if ((triesLeft === TRIES_MAX || this.event?.status !== status) && triesLeft > 1) {
			setTimeout(() => this.#status === status && void this.#turn(status, triesLeft - 1), LOOK_AGAIN_MS);
		}
	}
}
