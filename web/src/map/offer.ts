// What the zones of a hall cost and who may have them: the colour of a zone follows from its price, and so does the legend.
import type { Schemas } from '../api/client.ts';
import { CATEGORIES } from '../layouts/geometry.ts';
import type { Hall, Section } from './hall.ts';
import { TINTS } from './inks.ts';

export type Money = Schemas['MoneyView'];
/** What the map needs to know of a zone of an event's offer. */
export type OfferedZone = Pick<Schemas['OfferedZoneView'], 'zone_id' | 'place' | 'access_mode' | 'is_enabled' | 'prices' | 'from_price'>;

/** One line of the legend: zones that cost the same, or one zone. */
export interface PriceGroup {
	readonly key: string;
	/** The name of the zone where it is one. */
	readonly name: string | null;
	readonly zones: readonly number[];
	readonly tint: number;
	/** Null where nothing is said of a price. */
	readonly from: Money | null;
	/** Whether all cost that, or that is the least. */
	readonly isExact: boolean;
	/** The most that is paid there, where one colour stands for several prices. */
	readonly to: Money | null;
	readonly isClosed: boolean;
}

/** So many colours run from dark to light. */
const RAMP = 4;
/** All colours as a hall with many prices takes them, from the dearest; with fewer prices the last of the tokens are left out. */
const ORDER = [7, 0, 4, 5, 1, 6, 2, 3] as const;
/** So many zones have a line each; more are told by price. */
const NAMED_MAX = 8;
const GROUPS_MAX = 12;

/** What a seat of that category costs; null where the offer does not say. */
export function priceOf(zone: OfferedZone | undefined, category: number): Money | null {
	const named = (word: string | undefined) => zone?.prices.find((one) => one.category === word)?.price;
	return named(CATEGORIES[category]) ?? named('standard') ?? zone?.from_price ?? null;
}

/**
 * By zone: the first four tokens run from dark to light, and so do prices. Zones with seats that can be had share them out;
 * where there are more prices each has a colour still, and only past eight do neighbours share one. An area or a closed
 * zone, which has a look of its own, takes the one of its price.
 */
export function tintsOf(hall: Hall, offer: readonly (OfferedZone | undefined)[], isClosed: (zone: number) => boolean): Uint8Array {
	const minors = hall.sections.map((_, zone) => priceOf(offer[zone], 0)?.amount_minor ?? -1);
	const seated = hall.sections.filter(({ zone, isArea }) => !isArea && !isClosed(zone)).map(({ zone }) => zone);
	const prices = [...new Set(seated.map((zone) => minors[zone] as number))].sort((one, other) => other - one);
	if (prices.length < 2 && hall.sections.length > 1) return Uint8Array.from(hall.scene.tints, (tint) => (tint === 'vip' ? 0 : tint));
	if (seated.length <= RAMP) {
		const order = seated.toSorted((one, other) => (minors[other] as number) - (minors[one] as number) || one - other);
		return Uint8Array.from(minors, (minor, zone) => (order.includes(zone) ? order.indexOf(zone) : rankOf(minor, prices)));
	}
	const order = ORDER.filter((tint) => tint < Math.max(RAMP, prices.length));
	const bands = Math.max(order.length, prices.length);
	return Uint8Array.from(minors, (minor) => order[Math.floor((rankOf(minor, prices, bands - 1) * order.length) / bands)] ?? 0);
}

function rankOf(minor: number, prices: readonly number[], most = RAMP - 1): number {
	return Math.min(most, prices.filter((price) => price > minor).length);
}

export function groupsOf(hall: Hall, offer: readonly (OfferedZone | undefined)[], tints: Uint8Array, isClosed: (zone: number) => boolean): PriceGroup[] {
	const shown = hall.sections.filter(({ zone }) => offer[zone]?.is_enabled !== false);
	const isNamed = shown.length <= NAMED_MAX;
	const minorOf = (zone: number) => offer[zone]?.from_price?.amount_minor;
	// One colour, one line: where prices have to share, the line says from what to what.
	const isShared = !isNamed && new Set(shown.filter(({ zone, isArea }) => !isArea && !isClosed(zone)).map(({ zone }) => minorOf(zone))).size > TINTS;
	const keyed = new Map<string, Section[]>();
	for (const section of shown) {
		const { zone } = section;
		const words = [isNamed ? baseOf(section) : '', isClosed(zone) ? 'closed' : section.isArea ? 'area' : '', tints[zone], isShared ? '' : minorOf(zone)];
		const key = words.join(' ');
		keyed.set(key, [...(keyed.get(key) ?? []), section]);
	}
	const groups = [...keyed].map(([key, sections]): PriceGroup => {
		const zones = sections.map(({ zone }) => zone).sort((one, other) => (minorOf(one) ?? 0) - (minorOf(other) ?? 0));
		const [first, last] = [zones[0] as number, zones.at(-1) as number];
		const to = minorOf(first) === minorOf(last) ? null : (offer[last]?.from_price ?? null);
		const price = offer[first]?.from_price ?? null;
		const isExact = zones.every((zone) => (offer[zone]?.prices ?? []).every((one) => one.price.amount_minor === price?.amount_minor));
		return { key, name: isNamed ? nameOf(sections) : null, zones, tint: tints[first] ?? 0, from: price, isExact, to, isClosed: zones.every(isClosed) };
	});
	const rank = (group: PriceGroup) => (group.isClosed ? -1 : (group.from?.amount_minor ?? 0));
	return groups.sort((one, other) => rank(other) - rank(one)).slice(0, GROUPS_MAX);
}

/** Two zones that are called alike but for a number have one line: "Loges 1" and "Loges 2" are Loges. */
function baseOf({ name }: Section): string {
	return name.replace(/\s*\d+$/, '') || name;
}

function nameOf(sections: readonly Section[]): string {
	const [first] = sections as [Section];
	return sections.length === 1 ? first.name : baseOf(first);
}
