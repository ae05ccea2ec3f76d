// The seating of one event as it is being arranged: what the server has, what was chosen on this page, and what would come of
// it. Every change is tried on the server when the typing rests; nothing is kept there until it is saved.
import { untrack } from 'svelte';
import { Refusal } from '../api/client.ts';
import { geometryOf } from '../layouts/asking.ts';
import type { Geometry } from '../layouts/geometry.ts';
import {
	fetchLayouts,
	fetchLayoutZones,
	fetchRules,
	fetchSeating,
	Objection,
	saveSeating,
	trySeating,
	type LayoutView,
	type LayoutZone,
} from './asking.ts';
import {
	aspectsOf,
	bodyOf,
	changed,
	choicesOf,
	differences,
	kept,
	layoutOf,
	layoutValue,
	merged,
	offKey,
	priceKey,
	seatKey,
	withoutLayout,
	type Aspect,
	type ChoiceKey,
	type Choices,
} from './choices.ts';
import type { Fault, PolicyValue, PriceRule, SeatingView } from './contract.ts';

const REST_MS = 220;
/** After this a wait is shown. */
const PATIENCE_MS = 150;

/** The hall that an event has: where its seats are, and its zones before the event says anything. */
export interface Hall {
	readonly layout: string;
	readonly geometry: Geometry;
	readonly zones: ReadonlyMap<string, LayoutZone>;
}
/** What somebody else did in the meantime; `isInTheWay` when nothing was saved here because of it. */
export interface News {
	readonly aspects: readonly Aspect[];
	readonly disputed: readonly Aspect[];
	readonly isInTheWay: boolean;
}

/** What was chosen for an event and not saved when its page was left: it is there when somebody comes back. */
const leftOver = new Map<string, { readonly base: Choices; readonly mine: Choices }>();

export class SeatingDesk {
	readonly eventId: string;
	readonly #venueId: string;

	/** As the server has it. */
	saved = $state.raw<SeatingView | null>(null);
	/** What would come of what was chosen; the same as `saved` while nothing was. */
	shown = $state.raw<SeatingView | null>(null);
	choices = $state.raw<Choices>(new Map());
	hall = $state.raw<Hall | null>(null);
	rules = $state.raw<readonly PriceRule[]>([]);
	layouts = $state.raw<readonly LayoutView[]>([]);
	/** Why the page cannot be shown at all. */
	refusal = $state.raw<Refusal | null>(null);
	/** What the server says against what was chosen. */
	faults = $state.raw<readonly Fault[]>([]);
	objection = $state.raw<Objection | null>(null);
	/** What went wrong with asking. */
	trouble = $state.raw<Refusal | null>(null);
	news = $state.raw<News | null>(null);
	/** What another version of the layout does not have. */
	leftOut = $state.raw<{ readonly seats: number; readonly zones: number } | null>(null);
	isDone = $state(false);
	isBusy = $state(false);
	isSlow = $state(false);
	isTrying = $state(false);
	isHallComing = $state(false);

	readonly #base = $derived(this.saved === null ? new Map<ChoiceKey, PolicyValue>() : choicesOf(this.saved));
	readonly changes = $derived(differences(this.#base, this.choices));
	readonly layout = $derived(layoutOf(this.choices));
	/** Whether what is shown is of the hall that was chosen. Until the server has answered it is of the one before. */
	readonly isAnswered = $derived.by(() => {
		const layout = this.shown?.layout;
		return this.choices.get('layout') === (layout ? layoutValue(layout.layout_id, layout.layout_version) : undefined);
	});
	/** By ordinal. */
	readonly blocked = $derived.by(() => {
		const found = new Set<number>();
		const geometry = this.hall?.geometry;
		if (!geometry) return found;
		for (const key of this.choices.keys()) {
			const ordinal = key.startsWith('seat/') ? geometry.ordinalOf(key.slice(5)) : null;
			if (ordinal !== null) found.add(ordinal);
		}
		return found;
	});

	#rest: ReturnType<typeof setTimeout> | undefined;
	#asked: AbortController | null = null;
	/** What was chosen with each layout, for whoever looks at another one and comes back. */
	readonly #drafts = new Map<string, Choices>();

	constructor(eventId: string, venueId: string) {
		this.eventId = eventId;
		this.#venueId = venueId;
	}

	async load(): Promise<void> {
		this.refusal = null;
		try {
			const [seating, rules, layouts] = await Promise.all([
				fetchSeating(this.eventId),
				this.#readRules(),
				fetchLayouts(this.#venueId),
			]);
			[this.rules, this.layouts] = [rules, layouts];
			this.#take(seating);
			const left = leftOver.get(this.eventId);
			leftOver.delete(this.eventId);
			if (left) this.#rebase(left.base, left.mine, seating, false);
			await this.#readHall();
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.refusal = failure;
		}
	}

	/** What is not saved is kept for when somebody comes back. */
	leave(): void {
		this.#stop();
		if (this.changes.length > 0) leftOver.set(this.eventId, { base: this.#base, mine: this.choices });
	}

	/** Says something, or with undefined no longer says it. */
	set(...changes: readonly (readonly [ChoiceKey, PolicyValue | undefined])[]): void {
		this.#choose(changed(this.choices, ...changes));
	}

	block(ordinals: Iterable<number>, isBlocked: boolean): void {
		// A click may still land on the hall that was chosen before.
		const geometry = this.hall?.layout === this.choices.get('layout') ? this.hall?.geometry : null;
		if (!geometry) return;
		this.set(...[...ordinals].map((one) => [seatKey(geometry.seatId(one)), isBlocked ? true : undefined] as const));
	}

	switchZone(zone: string, isOn: boolean): void {
		this.set([offKey(zone), isOn ? undefined : true]);
	}

	price(zones: Iterable<string>, rule: string): void {
		this.set(...[...zones].map((zone) => [priceKey(zone), rule === '' ? undefined : rule] as const));
	}

	/** Another hall, or none. What was said of this one is kept aside. */
	async chooseLayout(id: string | null, version: number | null): Promise<void> {
		const before = this.layout;
		if (before?.id === id && before?.version === version) return;
		this.#drafts.set(String(this.choices.get('layout') ?? ''), this.choices);
		const key = id === null || version === null ? undefined : layoutValue(id, version);
		const policy = withoutLayout(this.choices);
		const isSameHall = before !== null && before.id === id;
		const earlier = this.#drafts.get(key ?? '');
		const own = String(this.#base.get('layout') ?? '') === (key ?? '') ? this.#base : null;
		const begun = earlier ?? (isSameHall ? this.choices : (own ?? new Map()));
		const rest = [...begun].filter(([one]) => one !== 'layout' && !one.startsWith('policy/'));
		this.#choose(new Map([...(key === undefined ? [] : [['layout', key] as const]), ...rest, ...policy]));
		await this.#readHall();
	}

	discard(): void {
		this.leftOut = null;
		this.news = null;
		this.objection = null;
		this.#choose(this.#base);
		void this.#readHall();
	}

	async save(): Promise<boolean> {
		const { saved } = this;
		if (saved === null || this.isBusy) return false;
		this.#stop();
		this.isBusy = true;
		this.isDone = false;
		this.trouble = null;
		this.objection = null;
		const patience = setTimeout(() => (this.isSlow = true), PATIENCE_MS);
		try {
			const answer = await saveSeating(this.eventId, bodyOf(this.choices), saved.version);
			if (!(answer instanceof Objection)) {
				this.#take(answer);
				this.news = this.leftOut = null;
				this.isDone = true;
				return true;
			}
			if (answer.code === 'seating_changed') await this.#catchUp(true);
			else this.#object(answer);
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.trouble = failure;
		} finally {
			clearTimeout(patience);
			this.isBusy = this.isSlow = false;
		}
		return false;
	}

	/** Looks again, because somebody may have changed it: sold places come with it, and what was chosen stays. */
	async refresh(): Promise<void> {
		if (this.saved === null || this.isBusy) return;
		try {
			await this.#catchUp(false);
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
		}
	}

	async refreshRules(): Promise<void> {
		try {
			this.rules = await this.#readRules();
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.trouble = failure;
		}
	}

	/** Prices are seen by fewer people than seats. */
	async #readRules(): Promise<readonly PriceRule[]> {
		try {
			return await fetchRules();
		} catch (failure) {
			if (failure instanceof Refusal && failure.code === 'permission_denied') return [];
			throw failure;
		}
	}

	#take(seating: SeatingView): void {
		this.saved = this.shown = seating;
		this.choices = choicesOf(seating);
		this.faults = seating.faults;
		this.objection = null;
		this.#drafts.clear();
	}

	async #catchUp(isInTheWay: boolean): Promise<void> {
		const [base, mine] = [this.#base, this.choices];
		const fresh = await fetchSeating(this.eventId);
		if (fresh.version === this.saved?.version && !isInTheWay) {
			this.saved = fresh;
			if (this.changes.length === 0) [this.shown, this.faults] = [fresh, fresh.faults];
			else this.#try();
			return;
		}
		this.#rebase(base, mine, fresh, isInTheWay);
		await this.#readHall();
	}

	/** What was chosen here, on top of what is there now. */
	#rebase(base: Choices, mine: Choices, fresh: SeatingView, isInTheWay: boolean): void {
		const { choices, theirs, disputed } = merged(base, mine, choicesOf(fresh));
		this.#take(fresh);
		const hasOwn = differences(this.#base, choices).length > 0;
		if (theirs.length > 0 || isInTheWay) {
			this.news = { aspects: aspectsOf(theirs), disputed: aspectsOf(disputed), isInTheWay };
			this.isDone = false;
		}
		if (hasOwn) this.#choose(choices);
	}

	#choose(choices: Choices): void {
		this.choices = choices;
		this.isDone = false;
		this.objection = null;
		this.#try();
	}

	async #readHall(): Promise<void> {
		const wanted = this.layout;
		if (wanted === null) {
			this.hall = null;
			return;
		}
		const layout = layoutValue(wanted.id, wanted.version);
		if (this.hall?.layout === layout) return;
		const patience = setTimeout(() => (this.isHallComing = true), PATIENCE_MS);
		try {
			const [geometry, zones] = await Promise.all([
				geometryOf(wanted.id, wanted.version),
				fetchLayoutZones(wanted.id, wanted.version),
			]);
			if (this.choices.get('layout') !== layout) return;
			this.hall = { layout, geometry, zones: new Map(zones.map((zone) => [zone.zone_id, zone])) };
			this.#leaveOut(this.hall);
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.trouble = failure;
		} finally {
			clearTimeout(patience);
			this.isHallComing = false;
		}
	}

	/** What was said of seats and zones that this version does not have is left out, and told. */
	#leaveOut(hall: Hall): void {
		const left = kept(
			this.choices,
			(seat) => hall.geometry.ordinalOf(seat) !== null,
			(zone) => hall.zones.has(zone),
		);
		this.leftOut = left.seats + left.zones > 0 ? left : null;
		if (this.leftOut) this.#choose(left.choices);
	}

	#try(): void {
		this.#stop();
		if (untrack(() => this.changes.length) === 0) {
			this.shown = this.saved;
			this.faults = this.saved?.faults ?? [];
			this.trouble = null;
			return;
		}
		this.#rest = setTimeout(() => void this.#ask(), REST_MS);
	}

	#stop(): void {
		clearTimeout(this.#rest);
		this.#asked?.abort();
		this.#asked = null;
		this.isTrying = false;
	}

	async #ask(): Promise<void> {
		if (this.saved === null) return;
		const asked = new AbortController();
		this.#asked = asked;
		const patience = setTimeout(() => (this.isTrying = this.#asked === asked), PATIENCE_MS);
		try {
			const answer = await trySeating(this.eventId, bodyOf(this.choices), this.saved.version, asked.signal);
			if (this.#asked !== asked) return;
			this.trouble = null;
			if (!(answer instanceof Objection)) {
				this.shown = answer;
				this.faults = answer.faults;
				this.objection = null;
			} else if (answer.code === 'seating_changed') {
				await this.#catchUp(false);
			} else {
				this.#object(answer);
			}
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (this.#asked === asked) this.trouble = failure;
		} finally {
			clearTimeout(patience);
			if (this.#asked === asked) this.#stop();
		}
	}

	#object(objection: Objection): void {
		this.objection = objection;
		this.faults = objection.faults;
	}
}
