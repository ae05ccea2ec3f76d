// What an event offers, against the room there is. The server adds up; this says how it fits. Pure.
import type { EventZone, Fault, Place, Totals } from './contract.ts';

export const PLACES: readonly Place[] = ['reserved', 'ga_seated', 'standing'];

export interface Room {
	/** The most that may be offered, and who says so: the event where it is the smaller number. */
	readonly most: number;
	readonly by: 'event' | 'venue';
	/** How many more there could be; below zero, how many are too many. */
	readonly left: number;
	/** The parts of a bar as shares of its whole length, in the order of `PLACES`. */
	readonly shares: readonly number[];
	/** Where the limit stands on the bar. */
	readonly mark: number;
}

export function roomOf(totals: Totals, event: number | null, venue: number): Room {
	const isEvent = event !== null && event <= venue;
	const most = isEvent ? event : venue;
	const whole = Math.max(1, most, totals.total);
	return {
		most,
		by: isEvent ? 'event' : 'venue',
		left: most - totals.total,
		shares: PLACES.map((place) => totals[place] / whole),
		mark: most / whole,
	};
}

/** What a zone has, as parts of a bar that is as long as its places. */
export const PARTS = ['sold', 'held', 'blocked', 'available'] as const;
export type Part = (typeof PARTS)[number];

export function partsOf(zone: EventZone): readonly { readonly part: Part; readonly count: number; readonly share: number }[] {
	const whole = Math.max(1, zone.sold + zone.held + zone.blocked + zone.available);
	return PARTS.map((part) => ({ part, count: zone[part], share: zone[part] / whole })).filter(({ count }) => count > 0);
}

/** The faults at a place of the document and below it: `zone_overrides.<id>` has those of its fields as well. */
export function faultsAt(faults: readonly Fault[], ...paths: readonly string[]): Fault[] {
	return faults.filter((fault) => paths.some((path) => isAt(fault.path, path)));
}

export function isAt(path: string, place: string): boolean {
	return path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`);
}
