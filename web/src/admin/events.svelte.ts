// The events that an organiser sees: loaded in three parts, kept true by the feed, row by row.
import { api, ask, Refusal } from '../api/client.ts';
import type { Frame, Listener } from './feed.svelte.ts';
import type { EventView, Status } from './model.ts';

const PARTS = {
	/** What is still to come or going on. */
	current: ['draft', 'published', 'live', 'postponed'],
	over: ['ended', 'cancelled'],
	archived: ['archived'],
} as const satisfies Record<string, readonly Status[]>;
export type Part = keyof typeof PARTS;

const PAGE = 100;

export class Events implements Listener {
	standing = $state<'asking' | 'here' | 'failed'>('asking');
	refusal = $state.raw<Refusal | null>(null);
	isLoadingMore = $state(false);

	#events = $state.raw<ReadonlyMap<string, EventView>>(new Map());
	/** Null: there is no more. Absent: not asked for yet. */
	#cursors = $state.raw<Partial<Record<Part, string | null>>>({});
	/** One more with each loading of everything: an answer that comes too late changes nothing. */
	#era = 0;

	all = $derived(
		[...this.#events.values()].sort((one, other) => one.effective_start_at.localeCompare(other.effective_start_at)),
	);

	hasMore(part: Part): boolean {
		return typeof this.#cursors[part] === 'string';
	}

	isLoaded(part: Part): boolean {
		return part in this.#cursors;
	}

	/** Everything that is shown, from the beginning. */
	async load(): Promise<void> {
		const era = ++this.#era;
		const parts: Part[] = ['current', 'over', ...(this.isLoaded('archived') ? (['archived'] as const) : [])];
		try {
			const pages = await Promise.all(parts.map((part) => this.#page(part, null)));
			if (era !== this.#era) return;
			this.#events = new Map(pages.flatMap((page) => page.data.map((event) => [event.id, event])));
			this.#cursors = Object.fromEntries(parts.map((part, at) => [part, pages[at]?.next_cursor ?? null]));
			this.refusal = null;
			this.standing = 'here';
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (era !== this.#era) return;
			this.refusal = failure;
			if (this.standing === 'asking') this.standing = 'failed';
		}
	}

	/** The next page of a part, or its first. */
	async more(part: Part): Promise<void> {
		const era = this.#era;
		if (this.isLoadingMore || this.#cursors[part] === null) return;
		this.isLoadingMore = true;
		try {
			const page = await this.#page(part, this.#cursors[part] ?? null);
			if (era !== this.#era) return;
			this.#events = new Map([...this.#events, ...page.data.map((event) => [event.id, event] as const)]);
			this.#cursors = { ...this.#cursors, [part]: page.next_cursor };
			this.refusal = null;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.refusal = failure;
		} finally {
			this.isLoadingMore = false;
		}
	}

	frame(frame: Frame): void {
		if (frame.kind === 'venue_updated') void this.load();
		if (!frame.kind.startsWith('event_') || !frame.event_id) return;
		if (frame.kind === 'event_deleted') this.#forget(frame.event_id);
		else void this.#refresh(frame.event_id);
	}

	resync(): void {
		void this.load();
	}

	async #refresh(id: string): Promise<void> {
		try {
			const { data } = await ask(api.GET('/api/admin/events/{event_id}', { params: { path: { event_id: id } } }));
			const known = this.#events.get(id);
			if (known && known.version > data.version) return;
			if (data.status === 'archived' && !this.isLoaded('archived')) this.#forget(id);
			else this.#events = new Map([...this.#events, [id, data]]);
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (failure.code === 'event_not_found') this.#forget(id);
		}
	}

	#forget(id: string): void {
		this.#events = new Map([...this.#events].filter(([known]) => known !== id));
	}

	async #page(part: Part, cursor: string | null) {
		const query = { status: [...PARTS[part]], limit: PAGE, ...(cursor === null ? {} : { cursor }) };
		return ask(api.GET('/api/admin/events', { params: { query } }));
	}
}
