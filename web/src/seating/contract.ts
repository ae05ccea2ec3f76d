// What the server says of an event's seating, of prices and of the policy, under the names that these pages use.
import type { Schemas } from '../api/client.ts';

export type AccessMode = Schemas['AccessMode'];
export type ZoneType = Schemas['ZoneType'];
export type Money = Schemas['MoneyView'];
export type EventZone = Schemas['OfferedZoneView'];
/** What one buys in a zone. */
export type Place = EventZone['place'];
export type Totals = Schemas['TotalsView'];
/** One thing that is wrong with a seating: where, what kind, what in words, and what to do about it. */
export type Fault = Schemas['FaultView'];
export type EventField = Schemas['EventPolicyField'];
export type PolicyField = Schemas['PolicyFieldView'];
export type PolicyView = Schemas['SeatingPolicyView'];
export type PriceRule = Schemas['PricingRuleView'];
export type PriceBody = Required<Schemas['NewPricingRuleBody']>;

/** What a field of the policy holds, or an event says of a zone. */
export type PolicyValue = boolean | number | string | readonly string[] | null;
/** A field of the policy and the form its values have. */
export type FieldForm = Pick<EventField, 'name' | 'kind' | 'least' | 'most' | 'is_nullable'>;

export interface ZoneOverride {
	readonly zone_type?: ZoneType;
	readonly access_mode?: AccessMode;
	readonly membership_tier?: string;
	readonly allowed_roles?: readonly string[];
	readonly capacity?: number;
}
export type ZoneField = keyof ZoneOverride;

/** What an event says differently from its layout and its organization: differences only, and what is left out is not said. */
export interface Overrides {
	readonly blocked_seat_ids?: readonly string[];
	readonly disabled_zones?: readonly string[];
	readonly zone_overrides?: Readonly<Record<string, ZoneOverride>>;
	readonly pricing_zones?: Readonly<Record<string, { readonly pricing_rule_id: string }>>;
	readonly seating_overrides?: Readonly<Record<string, PolicyValue>>;
}

/** The contract knows the overrides as a document; these are its parts. */
export type SeatingView = Omit<Schemas['SeatingView'], 'overrides'> & { readonly overrides: Overrides };
export type SeatingBody = Required<Omit<Schemas['SeatingBody'], 'overrides'>> & { readonly overrides: Overrides };

/** What stands in the way of a change: places that somebody has. */
export interface InUse {
	readonly seats: readonly {
		readonly seat_id: string;
		readonly zone: string;
		readonly row: string;
		readonly seat_number: string | number;
		readonly status: string;
	}[];
	readonly zones: readonly {
		readonly zone_id: string;
		readonly name: string;
		readonly held: number;
		readonly sold: number;
		readonly room: number;
	}[];
	readonly seat_count: number;
}
