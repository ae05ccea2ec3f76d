// What an organization has coming up, as far as it has been asked for. It outlives the screen: whoever comes back from
// an event finds the list as it was left, and it is renewed behind their back.
import { api, ask, Refusal, type Schemas } from '../api/client.ts';
import type { Card } from './told.ts';

const PAGE = 24;
/** The server's own limit. */
const PAGE_MAX = 200;
/** How far is looked for more of a kind before the person is asked again. */
const LOOKS_MAX = 5;
/** The order of the chips. */
const KINDS = ['theatre', 'music', 'sport', 'family', 'festival', 'talk', 'other'];

export class Programme {
	standing = $state<'asking' | 'shown' | 'failed'>('asking');
	refusal = $state.raw<Refusal | null>(null);
	isLoadingMore = $state(false);
	moreRefusal = $state.raw<Refusal | null>(null);
	category = $state<string | null>(null);
	#cards = $state.raw<readonly Card[]>([]);
	#cursor = $state<string | null>(null);

	all = $derived(this.#cards);
	shown = $derived(this.#cards.filter((card) => this.category === null || card.category === this.category));
	hasMore = $derived(this.#cursor !== null);
	/** Those there are; a kind that the page does not know stands at the end. */
	categories = $derived.by(() => {
		const found = [...new Set(this.#cards.flatMap((card) => card.category ?? []))];
		const rank = (kind: string) => (KINDS.includes(kind) ? KINDS.indexOf(kind) : KINDS.length);
		return found.sort((a, b) => rank(a) - rank(b));
	});

	#org: string | null = null;
	/** One more with every list that is asked for from its beginning: what comes too late is dropped. */
	#era = 0;

	/** Shows the list of this organization; what is there already stays until the new one has come. */
	async show(org: string): Promise<void> {
		if (org !== this.#org) {
			this.#org = org;
			this.#cards = [];
			this.category = null;
			this.standing = 'asking';
		}
		if (this.standing === 'failed') this.standing = 'asking';
		const era = ++this.#era;
		try {
			const { data, next_cursor } = await this.#ask(null, Math.min(PAGE_MAX, Math.max(PAGE, this.#cards.length)));
			if (era !== this.#era) return;
			this.#cards = data;
			this.#cursor = next_cursor ?? null;
			this.moreRefusal = null;
			this.standing = 'shown';
			if (this.category !== null && !this.categories.includes(this.category)) this.category = null;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			// A list that is a little old is better than none.
			if (era !== this.#era || this.standing === 'shown') return;
			this.refusal = failure;
			this.standing = 'failed';
		}
	}

	/** Shows what comes after; of a chosen kind until some of it is found. The first new card, if there is one. */
	async more(): Promise<Card | null> {
		if (this.isLoadingMore || this.#cursor === null) return null;
		this.isLoadingMore = true;
		this.moreRefusal = null;
		const before = new Set(this.#cards.map((card) => card.id));
		const era = this.#era;
		try {
			for (let looks = 0; looks < LOOKS_MAX && this.#cursor !== null; looks++) {
				const { data, next_cursor } = await this.#ask(this.#cursor, PAGE);
				if (era !== this.#era) return null;
				const known = new Set(this.#cards.map((card) => card.id));
				this.#cards = [...this.#cards, ...data.filter((card) => !known.has(card.id))];
				this.#cursor = next_cursor ?? null;
				const first = this.shown.find((card) => !before.has(card.id));
				if (first) return first;
			}
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (era === this.#era) this.moreRefusal = failure;
		} finally {
			this.isLoadingMore = false;
		}
		return null;
	}

	#ask(cursor: string | null, limit: number): Promise<Schemas['Listed_EventCard_']> {
		const query = cursor === null ? { limit } : { limit, cursor };
		return ask(api.GET('/api/storefronts/{slug}/events', { params: { path: { slug: this.#org ?? '' }, query } }));
	}
}
