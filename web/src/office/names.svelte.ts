// What the ids in the journal stand for: events, venues, layouts and prices by their names, as far as they are still there.
import { api, ask, Refusal } from '../api/client.ts';

interface Named {
	readonly id: string;
	readonly name: string;
}

const ALL = ['draft', 'published', 'live', 'postponed', 'ended', 'cancelled', 'archived'] as const;
const LIMIT = 200;

export class Names {
	/** Those that can be asked for by name, the latest first. */
	events = $state.raw<readonly Named[]>([]);
	#known = $state.raw<ReadonlyMap<string, string>>(new Map());

	of = (id: string): string | undefined => this.#known.get(id);

	add(named: readonly Named[]): void {
		this.#known = new Map([...this.#known, ...named.map(({ id, name }) => [id, name] as const)]);
	}

	/** Whole lists and not one by one: what was deleted is not asked for in vain. */
	async load(): Promise<void> {
		const query = { limit: LIMIT };
		const [events, venues, layouts, rules] = await Promise.all([
			these(ask(api.GET('/api/admin/events', { params: { query: { ...query, status: [...ALL], order: 'desc' } } }))),
			these(ask(api.GET('/api/admin/venues', { params: { query } }))),
			these(ask(api.GET('/api/admin/layouts', { params: { query } }))),
			these(ask(api.GET('/api/admin/pricing-rules', { params: { query } }))),
		]);
		this.events = events;
		this.add([...events, ...venues, ...layouts, ...rules]);
	}
}

/** A name that is not known is said as an id: nothing fails for want of it. */
async function these(asked: Promise<{ data: readonly Named[] }>): Promise<readonly Named[]> {
	try {
		return (await asked).data;
	} catch (failure) {
		if (!(failure instanceof Refusal)) throw failure;
		return [];
	}
}
