// Everybody's holds, kept fresh: looked at again when the stream says that something changed or when the next one should have
// lapsed, and not otherwise.
import { Refusal } from '../api/client.ts';
import { clock } from '../buy/countdown.ts';
import { endsOf, holdsOf, type Ends } from './asking.ts';
import { claimsOf, type Claim } from './baskets.ts';
import { Throttled } from './throttled.ts';

const HOLDS_REST_MS = 1000;
/** What became of an hour's holds is counted in the journal: not with every seat. */
const ENDS_REST_MS = 10_000;
/** A hold that should have lapsed is looked for a moment later. */
const GRACE_MS = 1500;
const WAIT_MAX_MS = 2 ** 31 - 1;

export class HoldList {
	readonly #eventId: string;
	claims = $state.raw<readonly Claim[]>([]);
	/** There are more than are listed. */
	hasMore = $state(false);
	ends = $state.raw<Ends | null>(null);
	standing = $state<'asking' | 'shown' | 'failed'>('asking');

	#holds = new Throttled(() => this.#look(), HOLDS_REST_MS);
	#ends = new Throttled(() => this.#count(), ENDS_REST_MS);
	#timer: ReturnType<typeof setTimeout> | undefined;

	constructor(eventId: string) {
		this.#eventId = eventId;
	}

	/** Something changed. */
	touch(): void {
		this.#holds.ask();
		this.#ends.ask();
	}

	close(): void {
		clearTimeout(this.#timer);
		this.#holds.close();
		this.#ends.close();
	}

	async #look(): Promise<void> {
		clearTimeout(this.#timer);
		try {
			const { holds, hasMore } = await holdsOf(this.#eventId);
			const now = clock();
			this.claims = claimsOf(holds, now);
			this.hasMore = hasMore;
			this.standing = 'shown';
			const [next] = this.claims;
			if (next) this.#timer = setTimeout(() => this.touch(), Math.min(WAIT_MAX_MS, next.endsAt - now + GRACE_MS));
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			// What was seen stays; the next change looks again.
			if (this.standing === 'asking') this.standing = 'failed';
		}
	}

	async #count(): Promise<void> {
		try {
			this.ends = await endsOf(this.#eventId);
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
		}
	}
}
