// What the zones of a hall cost and who may have them: the colour of a zone follows from its price, and so does the legend.
import type { Schemas } from '../api/client.ts';
import { CATEGORIES } from '../layouts/geometry.ts';
import type { Hall, Section } from './hall.ts';

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
	readonly isClosed: boolean;
}

export const TINTS = 4;
/** So many zones have a line each; more are told by price. */
const NAMED_MAX = 8;
const GROUPS_MAX = 12;

/** What a seat of that category costs; null where the offer does not say. */
export function priceOf(zone: OfferedZone | undefined, category: number): Money | null {
	const named = (word: string | undefined) => zone?.prices.find((one) => one.category === word)?.price;
	return named(CATEGORIES[category]) ?? named('standard') ?? zone?.from_price ?? null;
}

/**
 * By zone, from 0, the dearest, to 3: the tokens run from dark to light, and so do prices. Zones with seats that can be had
 * share the four colours out; an area or a closed zone, which has a look of its own, takes the one of its price.
 */
export function tintsOf(hall: Hall, offer: readonly (OfferedZone | undefined)[], isClosed: (zone: number) => boolean): Uint8Array {
	const minors = hall.sections.map((_, zone) => priceOf(offer[zone], 0)?.amount_minor ?? -1);
	const seated = hall.sections.filter(({ zone, isArea }) => !isArea && !isClosed(zone)).map(({ zone }) => zone);
	const prices = [...new Set(seated.map((zone) => minors[zone] as number))].sort((one, other) => other - one);
	if (prices.length < 2 && hall.sections.length > 1) return Uint8Array.from(hall.scene.tints, (tint) => (tint === 'vip' ? 0 : tint));
	if (seated.length <= TINTS) {
		const order = seated.toSorted((one, other) => (minors[other] as number) - (minors[one] as number) || one - other);
		return Uint8Array.from(minors, (minor, zone) => (order.includes(zone) ? order.indexOf(zone) : rankOf(minor, prices)));
	}
	const bands = Math.max(TINTS, prices.length);
	return Uint8Array.from(minors, (minor) => Math.floor((rankOf(minor, prices, bands - 1) * TINTS) / bands));
}

function rankOf(minor: number, prices: readonly number[], most = TINTS - 1): number {
	return Math.min(most, prices.filter((price) => price > minor).length);
}

export function groupsOf(hall: Hall, offer: readonly (OfferedZone | undefined)[], tints: Uint8Array, isClosed: (zone: number) => boolean): PriceGroup[] {
	const shown = hall.sections.filter(({ zone }) => offer[zone]?.is_enabled !== false);
	const isNamed = shown.length <= NAMED_MAX;
	const keyed = new Map<string, Section[]>();
	for (const section of shown) {
		const { zone } = section;
		const words = [isNamed ? baseOf(section) : '', isClosed(zone) ? 'closed' : '', tints[zone], offer[zone]?.from_price?.amount_minor];
		const key = words.join(' ');
		keyed.set(key, [...(keyed.get(key) ?? []), section]);
	}
	const groups = [...keyed].map(([key, sections]): PriceGroup => {
		const zones = sections.map(({ zone }) => zone);
		const [first] = zones as [number];
		const price = offer[first]?.from_price ?? null;
		const isExact = zones.every((zone) => (offer[zone]?.prices ?? []).every((one) => one.price.amount_minor === price?.amount_minor));
		return { key, name: isNamed ? nameOf(sections) : null, zones, tint: tints[first] ?? 0, from: price, isExact, isClosed: zones.every(isClosed) };
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
