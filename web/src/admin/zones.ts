// The time zones a browser knows, by region.

export interface ZoneGroup {
	readonly region: string;
	readonly zones: readonly string[];
}

/** `own` is in the list even where this browser does not know it. */
export function zoneGroups(own?: string): ZoneGroup[] {
	const known = new Set([...Intl.supportedValuesOf('timeZone'), Intl.DateTimeFormat().resolvedOptions().timeZone]);
	if (own !== undefined) known.add(own);
	const groups = new Map<string, string[]>();
	for (const zone of [...known].sort()) {
		const [region = zone, ...rest] = zone.split('/');
		const name = rest.length === 0 ? 'UTC' : region;
		groups.set(name, [...(groups.get(name) ?? []), zone]);
	}
	return [...groups].map(([region, zones]) => ({ region, zones }));
}
