// The events that an organiser sees: loaded in three parts, kept true by the feed, row by row.
import { api, ask, Refusal } from '../api/client.ts';
import type { Frame, Listener } from './feed.svelte.ts';
import type { EventView, Status } from './model.ts';

const PARTS = {
	/** What is still to come or going on, first things first. */
	current: { statuses: ['draft', 'published', 'live', 'postponed'], order: 'asc' },
	/** What is behind us, the latest first. */
	over: { statuses: ['ended', 'cancelled'], order: 'desc' },
	archived: { statuses: ['archived'], order: 'desc' },
} as const satisfies Record<string, { statuses: readonly Status[]; order: 'asc' | 'desc' }>;
export type Part = keyof typeof PARTS;

const PAGE = 100;
/** How long nobody types before the server is asked. */
export const TYPING_MS = 250;

export function partOf(status: Status): Part {
	return (Object.keys(PARTS) as Part[]).find((part) => (PARTS[part].statuses as readonly Status[]).includes(status)) ?? 'current';
}

/** The server's own order; what has no date stands where its old one was. */
function byTime(one: EventView, other: EventView): number {
	const at = (event: EventView) => Date.parse(event.effective_start_at ?? event.start_at);
	return at(one) - at(other) || (one.id < other.id ? -1 : 1);
}

export class Events implements Listener {
	/** Only what has this in its name; empty: everything. */
	readonly words: string;
	standing = $state<'asking' | 'here' | 'failed'>('asking');
	refusal = $state.raw<Refusal | null>(null);

	#events = $state.raw<ReadonlyMap<string, EventView>>(new Map());
	/** Null: there is no more. Absent: not asked for yet. */
	#cursors = $state.raw<Partial<Record<Part, string | null>>>({});
	/** The parts of which a page is on its way. */
	#coming = $state.raw<ReadonlySet<Part>>(new Set());
	#wanted: readonly Part[] = ['current', 'over'];
	/** One more with each loading of everything: an answer that comes too late changes nothing. */
	#era = 0;
	/** Rows that came since everything was asked for: an answer that does not have them is older than they are. */
	#fresh = new Set<string>();
	#gone = new Set<string>();
	#isRenewing = false;
	#isOutdated = false;

	constructor(words = '') {
		this.words = words;
	}

	all = $derived([...this.#events.values()].filter(({ status }) => this.isLoaded(partOf(status))).sort(byTime));

	/** What is loaded of a part, in its order. */
	in(part: Part): EventView[] {
		const own = this.all.filter(({ status }) => partOf(status) === part);
		return PARTS[part].order === 'desc' ? own.reverse() : own;
	}

	hasMore(part: Part): boolean {
		return typeof this.#cursors[part] === 'string';
	}

	isLoaded(part: Part): boolean {
		return part in this.#cursors;
	}

	/** Everything of it is here: it can be counted. */
	isWhole(part: Part): boolean {
		return this.#cursors[part] === null;
	}

	isComing(part: Part): boolean {
		return this.#coming.has(part);
	}

	/** Everything that is shown, from the beginning. */
	async load(): Promise<void> {
		const era = ++this.#era;
		const parts = this.#wanted;
		const fresh = (this.#fresh = new Set());
		const before = this.#cursors;
		try {
			const loaded = await Promise.all(parts.map((part) => this.#asManyAsShown(part)));
			if (era !== this.#era) return;
			const isOlder = ({ id, status }: EventView) => parts.includes(partOf(status)) && !fresh.has(id);
			const kept = [...this.#events].filter(([, event]) => !isOlder(event));
			const found = this.#newest(loaded.flatMap(({ events }) => events));
			// A page that came meanwhile leads further.
			const cursors = parts.flatMap((part, at) =>
				this.#cursors[part] === before[part] ? [[part, loaded[at]?.cursor ?? null]] : [],
			);
			this.#events = new Map([...kept, ...found]);
			this.#cursors = { ...this.#cursors, ...Object.fromEntries(cursors) };
			this.refusal = null;
			this.standing = 'here';
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (era !== this.#era) return;
			this.refusal = failure;
			if (this.standing === 'asking') this.standing = 'failed';
		}
	}

	/** A part that is not loaded unless somebody wants it. */
	want(part: Part): void {
		if (!this.#wanted.includes(part)) this.#wanted = [...this.#wanted, part];
		if (!this.isLoaded(part)) void this.more(part);
	}

	/** The next page of a part, or its first. */
	async more(part: Part): Promise<void> {
		const era = this.#era;
		if (this.isComing(part) || this.isWhole(part)) return;
		this.#coming = new Set([...this.#coming, part]);
		try {
			const page = await this.#page(part, this.#cursors[part] ?? null);
			if (era !== this.#era) return;
			for (const { id } of page.data) this.#fresh.add(id);
			this.#events = new Map([...this.#events, ...this.#newest(page.data)]);
			this.#cursors = { ...this.#cursors, [part]: page.next_cursor };
			this.refusal = null;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.refusal = failure;
		} finally {
			this.#coming = new Set([...this.#coming].filter((one) => one !== part));
		}
	}

	frame(frame: Frame): void {
		if (frame.kind === 'venue_updated') void this.#renew();
		if (!frame.kind.startsWith('event_') || !frame.event_id) return;
		if (frame.kind === 'event_deleted') this.#forget(frame.event_id);
		// Which of them have the words is for the server to say.
		else if (this.words !== '') void this.#renew();
		else void this.#refresh(frame.event_id);
	}

	resync(): void {
		void this.#renew();
	}

	/** Loads again, once for whatever happens while it does. */
	async #renew(): Promise<void> {
		this.#isOutdated = true;
		if (this.#isRenewing) return;
		this.#isRenewing = true;
		try {
			while (this.#isOutdated) {
				this.#isOutdated = false;
				await this.load();
			}
		} finally {
			this.#isRenewing = false;
		}
	}

	async #refresh(id: string): Promise<void> {
		try {
			const { data } = await ask(api.GET('/api/admin/events/{event_id}', { params: { path: { event_id: id } } }));
			this.#fresh.add(id);
			this.#events = new Map([...this.#events, ...this.#newest([data])]);
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (failure.code === 'event_not_found') this.#forget(id);
		}
	}

	#forget(id: string): void {
		this.#gone.add(id);
		this.#events = new Map([...this.#events].filter(([known]) => known !== id));
	}

	/** What an answer adds: nothing older than what is known, and nothing that was deleted since it was asked for. */
	#newest(events: readonly EventView[]): (readonly [string, EventView])[] {
		return events.flatMap((event) => {
			const known = this.#events.get(event.id);
			if (this.#gone.has(event.id)) return [];
			return [[event.id, known && known.version > event.version ? known : event] as const];
		});
	}

	async #asManyAsShown(part: Part): Promise<{ events: EventView[]; cursor: string | null }> {
		const shown = this.in(part).length;
		const first = await this.#page(part, null);
		const events = [...first.data];
		let cursor = first.next_cursor;
		for (let asked = PAGE; asked < shown && cursor !== null; asked += PAGE) {
			const page = await this.#page(part, cursor);
			events.push(...page.data);
			cursor = page.next_cursor;
		}
		return { events, cursor };
	}

	#page(part: Part, cursor: string | null) {
		const { statuses, order } = PARTS[part];
		const query = {
			status: [...statuses],
			order,
			limit: PAGE,
			...(this.words === '' ? {} : { q: this.words }),
			...(cursor === null ? {} : { cursor }),
		};
		return ask(api.GET('/api/admin/events', { params: { query } }));
	}
}

/** What is looked for by name. The server is asked once nobody types, and only the answer to the last question counts. */
export class Search implements Listener {
	/** Null while nothing is looked for. */
	found = $state.raw<Events | null>(null);

	#asked: Events | null = null;
	/** Something happened while the server was being asked. */
	#isOutdated = false;
	#timer: ReturnType<typeof setTimeout> | undefined;

	seek(typed: string): void {
		this.stop();
		const words = typed.trim();
		if (words === '') this.found = null;
		else if (words !== this.found?.words) this.#timer = setTimeout(() => void this.#ask(words), TYPING_MS);
	}

	stop(): void {
		clearTimeout(this.#timer);
		this.#asked = null;
	}

	frame(frame: Frame): void {
		this.#isOutdated = true;
		this.found?.frame(frame);
	}

	resync(): void {
		this.#isOutdated = true;
		this.found?.resync();
	}

	async #ask(words: string): Promise<void> {
		const asked = new Events(words);
		this.#asked = asked;
		this.#isOutdated = false;
		await asked.load();
		if (this.#asked !== asked) return;
		this.#asked = null;
		this.found = asked;
		if (this.#isOutdated) asked.resync();
	}
}
