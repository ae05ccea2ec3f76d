// A list that comes in pages: what is here, whether there is more, and what the server said.
import { Refusal } from '../api/client.ts';

interface Page<T> {
	readonly data: readonly T[];
	readonly next_cursor: string | null;
}

export class Listing<T> {
	/** Null until the first page is here. */
	items = $state.raw<readonly T[] | null>(null);
	refusal = $state.raw<Refusal | null>(null);
	isBusy = $state(false);

	#cursor = $state<string | null>(null);
	readonly #page: (cursor: string | null) => Promise<Page<T>>;
	/** One more with each loading: an answer that comes too late changes nothing. */
	#era = 0;

	constructor(page: (cursor: string | null) => Promise<Page<T>>) {
		this.#page = page;
	}

	get hasMore(): boolean {
		return this.#cursor !== null;
	}

	/** From the beginning. What is shown stays until the answer is here. */
	load = (): Promise<void> => this.#take(null);

	more = (): Promise<void> => (this.isBusy ? Promise.resolve() : this.#take(this.#cursor));

	/** One of them is another one now, or gone. */
	change(isIt: (item: T) => boolean, after: T | null): void {
		this.items = (this.items ?? []).flatMap((item) => (!isIt(item) ? [item] : after === null ? [] : [after]));
	}

	async #take(cursor: string | null): Promise<void> {
		const era = ++this.#era;
		this.isBusy = true;
		try {
			const page = await this.#page(cursor);
			if (era !== this.#era) return;
			this.items = cursor === null ? page.data : [...(this.items ?? []), ...page.data];
			this.#cursor = page.next_cursor;
			this.refusal = null;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (era === this.#era) this.refusal = failure;
		} finally {
			if (era === this.#era) this.isBusy = false;
		}
	}
}

/** The query of the next page: what is asked for, and where it goes on. */
export const after = (cursor: string | null): { cursor?: string } => (cursor === null ? {} : { cursor });
