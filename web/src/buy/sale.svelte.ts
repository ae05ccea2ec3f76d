// An event while somebody buys: what it is, what it offers, its places as they are this moment, and what this person holds.
import { Refusal, type Schemas } from '../api/client.ts';
import { geometryOf } from '../layouts/asking.ts';
import { session } from '../lib/session.svelte.ts';
import { Live } from '../map/live.svelte.ts';
import { SeatMapState, type Counts } from '../map/map.svelte.ts';
import { OneEvent } from '../store/one-event.svelte.ts';
import { offerOf, seatMapOf, type Offer, type OfferedZone } from './asking.ts';
import { Basket } from './basket.svelte.ts';
import { together } from './together.ts';
import { t } from './words.ts';

/** Why nothing can be had now. */
export type Closed = 'cancelled' | 'ended' | 'archived' | 'postponed' | Exclude<Schemas['SaleState'], 'open'>;

const CLOSED_STATUSES: readonly string[] = ['cancelled', 'ended', 'archived', 'postponed'];
/** Nobody finds these in the programme. */
export const UNLISTED: readonly string[] = ['cancelled', 'archived'];
/** The event's page may hear of a change a moment after the stream. */
const LOOK_AGAIN_MS = 1500;
const TRIES_MAX = 5;
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
		if (CLOSED_STATUSES.includes(status)) return status as Closed;
		const state = this.event?.sale_state ?? 'open';
		return state === 'open' ? null : state;
	});
	groupMax = $derived.by(() => Math.max(1, Math.min(GROUP_MAX, this.offer?.booking.max_seats_per_booking ?? 1)));
	/** Zones where one has a place and not a seat. */
	areas = $derived.by(() => (this.offer?.zones ?? []).filter(({ place, is_enabled }) => is_enabled && place !== 'reserved'));
	/** Zones that are shown but not for this person. */
	locked = $derived.by(() => (this.offer?.zones ?? []).filter((zone) => zone.is_enabled && !this.#isOpen(zone)));
	left = $derived.by(() => [...this.counts.values()].reduce((sum, { available }) => sum + available, 0));
	/** Nothing is left: `sold`, or all that is left is held by somebody and may come back. */
	soldOut = $derived.by((): 'sold' | 'held' | null => {
		if (this.counts.size === 0 || this.left > 0) return null;
		return [...this.counts.values()].some(({ held }) => held > 0) ? 'held' : 'sold';
	});

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
		try {
			await this.#begin(this.event.id);
			this.standing = 'shown';
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.refusal = failure;
			this.standing = failure.code === 'event_not_found' ? 'missing' : 'failed';
		}
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

	async #begin(eventId: string): Promise<void> {
		const [offer, seatMap] = await Promise.all([offerOf(eventId), seatMapOf(eventId)]);
		const { layout } = offer;
		const geometry = layout && layout.seat_count > 0 ? await geometryOf(layout.layout_id, layout.layout_version) : null;
		// Somebody may have gone elsewhere meanwhile.
		if (this.#isOver) return;
		const map = geometry && new SeatMapState(geometry, offer.zones);
		const live = new Live(
			eventId,
			{
				snapshot: (snapshot) => {
					// Another hall than the one that is shown: everything is to be had anew.
					if (map && snapshot.seat_count !== map.looks.length) location.reload();
					else map?.load(snapshot);
					this.#count(snapshot.zones);
					basket.check();
				},
				delta: (delta) => {
					map?.apply(delta);
					this.#count(delta.zones ?? []);
					basket.check();
				},
				status: (status) => void this.#turn(status),
			},
			() => void basket.read({ isElsewhere: true }),
		);
		const basket = new Basket(this.org, offer, map, () => live.tellBasket());
		[this.offer, this.map, this.live, this.basket] = [offer, map, live, basket];
		live.load(seatMap);
		const stopLive = live.start();
		this.#stop = () => {
			stopLive();
			basket.close();
		};
	}

	#count(zones: readonly Counts[]): void {
		if (zones.length > 0) this.counts = new Map([...this.counts, ...zones.map((zone) => [zone.zone_id, zone] as const)]);
	}

	async #turn(status: string, triesLeft = TRIES_MAX): Promise<void> {
		const isNews = status !== (this.#status ?? this.event?.status);
		if (status !== 'gone') this.#status = status;
		if (!isNews && triesLeft === TRIES_MAX) return;
		if (triesLeft === TRIES_MAX) this.basket?.lookAgain();
		// Such an event has no page any more; what is known of it is enough to say so.
		if (UNLISTED.includes(status)) return;
		await this.page.load();
		if (this.page.standing === 'missing') this.standing = 'missing';
		else if (this.event?.status !== status && triesLeft > 1 && !this.#isOver && this.#status === status) {
			setTimeout(() => void this.#turn(status, triesLeft - 1), LOOK_AGAIN_MS);
		}
	}
}
