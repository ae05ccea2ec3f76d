// What an event says of its seating, as one flat table of choices: which layout, and every difference from it. Flat, so that
// what was changed, what is sent, and what two people did at once are each one comparison. Pure.
import type { Overrides, PolicyValue, SeatingBody, SeatingView, ZoneField } from './contract.ts';

/** `layout`, `seat/<id>`, `off/<zone>`, `zone/<zone>/<field>`, `price/<zone>`, `policy/<field>`. */
export type ChoiceKey = string;
export type Choices = ReadonlyMap<ChoiceKey, PolicyValue>;
export type Aspect = 'layout' | 'seat' | 'off' | 'zone' | 'price' | 'policy';

export const seatKey = (id: string): ChoiceKey => `seat/${id}`;
export const offKey = (zone: string): ChoiceKey => `off/${zone}`;
export const zoneKey = (zone: string, field: ZoneField): ChoiceKey => `zone/${zone}/${field}`;
export const priceKey = (zone: string): ChoiceKey => `price/${zone}`;
export const policyKey = (field: string): ChoiceKey => `policy/${field}`;
export const layoutValue = (id: string, version: number): string => `${id}/${version}`;

const ASPECTS: readonly Aspect[] = ['layout', 'off', 'zone', 'price', 'seat', 'policy'];
const aspectOf = (key: ChoiceKey) => key.split('/', 1)[0] as Aspect;

export function choicesOf({ layout, overrides }: Pick<SeatingView, 'layout' | 'overrides'>): Choices {
	const found: [ChoiceKey, PolicyValue][] = [];
	if (layout) found.push(['layout', layoutValue(layout.layout_id, layout.layout_version)]);
	for (const id of overrides.blocked_seat_ids ?? []) found.push([seatKey(id), true]);
	for (const zone of overrides.disabled_zones ?? []) found.push([offKey(zone), true]);
	for (const [zone, said] of Object.entries(overrides.zone_overrides ?? {})) {
		for (const [field, value] of Object.entries(said)) {
			if (value !== null) found.push([zoneKey(zone, field as ZoneField), value as PolicyValue]);
		}
	}
	for (const [zone, { pricing_rule_id: rule }] of Object.entries(overrides.pricing_zones ?? {})) found.push([priceKey(zone), rule]);
	for (const [field, value] of Object.entries(overrides.seating_overrides ?? {})) found.push([policyKey(field), value]);
	return new Map(found);
}

export function layoutOf(choices: Choices): { readonly id: string; readonly version: number } | null {
	const [id = '', version = ''] = String(choices.get('layout') ?? '').split('/');
	return id === '' ? null : { id, version: Number(version) };
}

/** What is sent: everything that the event says, and nothing that it leaves to its layout and its organization. */
export function bodyOf(choices: Choices): SeatingBody {
	const layout = layoutOf(choices);
	const said = {
		blocked_seat_ids: [] as string[],
		disabled_zones: [] as string[],
		zone_overrides: {} as Record<string, Record<string, PolicyValue>>,
		pricing_zones: {} as Record<string, { pricing_rule_id: string }>,
		seating_overrides: {} as Record<string, PolicyValue>,
	};
	for (const [key, value] of choices) {
		const [aspect, id = '', field = ''] = key.split('/');
		if (aspect === 'seat') said.blocked_seat_ids.push(id);
		else if (aspect === 'off') said.disabled_zones.push(id);
		else if (aspect === 'zone') (said.zone_overrides[id] ??= {})[field] = value;
		else if (aspect === 'price') said.pricing_zones[id] = { pricing_rule_id: String(value) };
		else if (aspect === 'policy') said.seating_overrides[id] = value;
	}
	return { layout_id: layout?.id ?? null, layout_version: layout?.version ?? null, overrides: said as Overrides };
}

/** With other values; what is undefined is no longer said. */
export function changed(choices: Choices, ...changes: readonly (readonly [ChoiceKey, PolicyValue | undefined])[]): Choices {
	const next = new Map(choices);
	for (const [key, value] of changes) {
		if (value === undefined) next.delete(key);
		else next.set(key, value);
	}
	return next;
}

/** What one says and the other does not, or says otherwise. */
export function differences(before: Choices, after: Choices): ChoiceKey[] {
	const found = [...after.keys()].filter((key) => !isSame(before.get(key), after.get(key)));
	for (const key of before.keys()) if (!after.has(key)) found.push(key);
	return found;
}

/** The parts of a seating that some keys are about, in the order of the page. */
export function aspectsOf(keys: readonly ChoiceKey[]): Aspect[] {
	const found = new Set(keys.map(aspectOf));
	return ASPECTS.filter((aspect) => found.has(aspect));
}

export interface Merged {
	readonly choices: Choices;
	/** What somebody else changed. */
	readonly theirs: readonly ChoiceKey[];
	/** What both changed, and not alike: here it is as it was chosen on this page. */
	readonly disputed: readonly ChoiceKey[];
}

/** What was done on this page, on top of what somebody else has saved in the meantime. */
export function merged(base: Choices, mine: Choices, theirs: Choices): Merged {
	const own = differences(base, mine);
	const others = differences(base, theirs);
	const touched = new Set(others);
	return {
		choices: changed(theirs, ...own.map((key) => [key, mine.get(key)] as const)),
		theirs: others,
		disputed: own.filter((key) => touched.has(key) && !isSame(mine.get(key), theirs.get(key))),
	};
}

/** Without what is said of seats and zones that are not there; how many seats and zones were left out. */
export function kept(
	choices: Choices,
	hasSeat: (id: string) => boolean,
	hasZone: (id: string) => boolean,
): { readonly choices: Choices; readonly seats: number; readonly zones: number } {
	const gone: ChoiceKey[] = [];
	const zones = new Set<string>();
	let seats = 0;
	for (const key of choices.keys()) {
		const [aspect, id = ''] = key.split('/');
		if (aspect === 'seat' && !hasSeat(id)) seats = seats + 1;
		else if ((aspect === 'off' || aspect === 'zone' || aspect === 'price') && !hasZone(id)) zones.add(id);
		else continue;
		gone.push(key);
	}
	return { choices: changed(choices, ...gone.map((key) => [key, undefined] as const)), seats, zones: zones.size };
}

/** What the event says whichever layout it has. */
export function withoutLayout(choices: Choices): Choices {
	return new Map([...choices].filter(([key]) => aspectOf(key) === 'policy'));
}

/** Lists are sets: their order is nobody's wish. */
export function isSame(one: PolicyValue | undefined, other: PolicyValue | undefined): boolean {
	if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
	const all = new Set<unknown>(other);
	return one.length === other.length && one.every((word) => all.has(word));
}

/** The fields that differ from what the server said: what is sent to it, and nothing else. */
export function changedValues(
	fields: readonly { readonly name: string; readonly value: PolicyValue }[],
	values: Readonly<Record<string, PolicyValue>>,
): Record<string, PolicyValue> {
	const found = fields.flatMap(({ name, value }) => {
		const wanted = values[name];
		return wanted === undefined || isSame(wanted, value) ? [] : [[name, wanted] as const];
	});
	return Object.fromEntries(found);
}
