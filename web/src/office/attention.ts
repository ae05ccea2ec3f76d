// What the organiser's home says: where each event belongs, how full it is, and what somebody should look at first.
import type { Counted } from '../admin/feed.svelte.ts';
import { attention, type EventView } from '../admin/model.ts';
import type { Rights } from '../admin/rights.ts';

export const GROUPS = ['live', 'on_sale', 'coming', 'drafts', 'over'] as const;
export type Group = (typeof GROUPS)[number];

/** What is wrong or near, the most pressing first. */
export const CARES = ['overrun', 'draft_due', 'placeless', 'undated', 'unsold', 'missed', 'begins', 'full', 'nearly_full'] as const;
export type Care = (typeof CARES)[number];

export interface Item {
	readonly care: Care;
	readonly event: EventView;
	/** Where it is mended. */
	readonly at: 'event' | 'seating';
}

/** Whoever cannot do anything about it need not be told. */
const CONCERNS: Readonly<Record<Care, keyof Rights>> = {
	overrun: 'lead',
	draft_due: 'lead',
	placeless: 'change',
	undated: 'lead',
	unsold: 'lead',
	missed: 'change',
	begins: 'see',
	full: 'change',
	nearly_full: 'change',
};
const DAY_MS = 86_400_000;
const NEARLY_FULL = 0.9;

export function groupOf(event: EventView): Group {
	if (event.status === 'draft') return 'drafts';
	if (event.status === 'live') return 'live';
	if (event.status === 'published' || event.status === 'postponed') return event.on_sale ? 'on_sale' : 'coming';
	return 'over';
}

/** Has places of its own: without them nothing can be sold, whatever its status says. */
export const hasPlaces = (event: EventView): boolean => event.inventory_epoch > 0;

/** Everything about one event that somebody should know now. */
export function caresOf(event: EventView, fill: Counted | undefined, now: number): Care[] {
	const start = Date.parse(event.effective_start_at ?? '');
	const saleStart = Date.parse(event.sale_start_at ?? '');
	const cares: Care[] = [];
	const known = attention(event, now);
	if (known) cares.push(known);
	if (event.status === 'draft') {
		if (start <= now) cares.push('missed');
		else if (saleStart <= now + DAY_MS) cares.push('draft_due');
		return cares;
	}
	const isShown = event.status === 'published' || event.status === 'live';
	if (isShown && !hasPlaces(event) && (event.on_sale || saleStart <= now + DAY_MS)) cares.push('placeless');
	if (event.status === 'published' && start > now && start <= now + DAY_MS) cares.push('begins');
	if (isShown && event.on_sale && fill && fill.total > 0) {
		const sellable = fill.total - fill.blocked;
		if (fill.sold >= sellable) cares.push('full');
		else if (fill.sold >= NEARLY_FULL * sellable) cares.push('nearly_full');
	}
	return cares;
}

/** What needs somebody, the most pressing first, and of one kind the soonest. */
export function whatNeedsCare(
	events: readonly EventView[],
	fills: ReadonlyMap<string, Counted>,
	rights: Rights,
	now: number,
): Item[] {
	const items = events.flatMap((event) =>
		caresOf(event, fills.get(event.id), now)
			.filter((care) => rights[CONCERNS[care]])
			.map((care): Item => ({ care, event, at: care === 'placeless' ? 'seating' : 'event' })),
	);
	const rank = ({ care, event }: Item) => [CARES.indexOf(care), Date.parse(event.effective_start_at ?? event.start_at)] as const;
	return items.sort((one, other) => rank(one)[0] - rank(other)[0] || rank(one)[1] - rank(other)[1]);
}

export type Step = 'venue' | 'layout' | 'event' | 'publish';

/** The way from an empty house to the first event that people see; null once there has been one. */
export function firstSteps(venues: number, layouts: number, events: readonly EventView[]): { step: Step; isDone: boolean }[] | null {
	if (events.some(({ status }) => status !== 'draft')) return null;
	return [
		{ step: 'venue', isDone: venues > 0 },
		{ step: 'layout', isDone: layouts > 0 },
		{ step: 'event', isDone: events.length > 0 },
		{ step: 'publish', isDone: false },
	];
}
