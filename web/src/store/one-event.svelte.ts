// One event as everybody may see it, asked for by its address.
import { api, ask, Refusal, type Schemas } from '../api/client.ts';

export class OneEvent {
	standing = $state<'asking' | 'shown' | 'missing' | 'failed'>('asking');
	event = $state.raw<Schemas['EventPage'] | null>(null);
	refusal = $state.raw<Refusal | null>(null);

	readonly #org: string;
	readonly #slug: string;

	constructor(org: string, slug: string) {
		this.#org = org;
		this.#slug = slug;
	}

	/** Also asks again: what is shown stays until there is something newer, or nothing any more. */
	async load(): Promise<void> {
		if (this.standing === 'failed') this.standing = 'asking';
		try {
			const path = { slug: this.#org, event_slug: this.#slug };
			this.event = (await ask(api.GET('/api/storefronts/{slug}/events/{event_slug}', { params: { path } }))).data;
			this.standing = 'shown';
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (failure.code === 'event_not_found') this.standing = 'missing';
			else if (this.standing !== 'shown') {
				this.refusal = failure;
				this.standing = 'failed';
			}
		}
	}
}
