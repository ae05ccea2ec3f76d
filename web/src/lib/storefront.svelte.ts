// Whose address this is: the organization behind a slug, asked for once per visit.
import { api, ask, Refusal, type Schemas } from '../api/client.ts';

export class Storefront {
	standing = $state<'asking' | 'open' | 'suspended' | 'missing' | 'failed'>('asking');
	organization = $state.raw<Schemas['StorefrontView'] | null>(null);
	refusal = $state.raw<Refusal | null>(null);

	#slug: string | null = null;

	async show(slug: string): Promise<void> {
		// Between the screens of one organization nothing is asked again, so nothing flickers.
		if (slug === this.#slug && this.standing === 'open') return;
		this.#slug = slug;
		this.standing = 'asking';
		try {
			const { data } = await ask(api.GET('/api/storefronts/{slug}', { params: { path: { slug } } }));
			if (slug !== this.#slug) return;
			this.organization = data;
			this.standing = data.is_suspended ? 'suspended' : 'open';
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (slug !== this.#slug) return;
			this.refusal = failure;
			this.standing = failure.code === 'organization_not_found' ? 'missing' : 'failed';
		}
	}
}
