// The fields of a policy as people meet them: in four groups, and each value in words. Pure.
import type { PolicyValue } from './contract.ts';
import { count, sayWord, t } from './words.ts';

/** What a field of the policy is about, in the order of the page; one that is not known is with the last. */
export const GROUPS = ['offer', 'booking', 'together', 'access'] as const;
export type Group = (typeof GROUPS)[number];

const GROUP_OF: Readonly<Record<string, Group>> = {
	allow_reserved_seating: 'offer',
	allow_ga_seating: 'offer',
	allow_hybrid_ga_reserved: 'offer',
	allow_vip_zones: 'offer',
	allowed_access_modes: 'offer',
	max_seats_per_booking: 'booking',
	default_hold_ttl_minutes: 'booking',
	max_holds_per_user: 'booking',
	max_holds_per_ip: 'booking',
	orphan_avoidance_strict: 'together',
	group_adjacency_strict: 'together',
	max_group_split: 'together',
	prefer_clustering_over_selection: 'together',
};
/** What is locked is shown at each field, not as a field of its own. */
const HIDDEN: ReadonlySet<string> = new Set(['locked_fields']);

export function grouped<Field extends { readonly name: string }>(fields: readonly Field[]): (readonly [Group, readonly Field[]])[] {
	const shown = fields.filter(({ name }) => !HIDDEN.has(name));
	return GROUPS.map((group) => [group, shown.filter(({ name }) => (GROUP_OF[name] ?? 'access') === group)] as const).filter(
		([, found]) => found.length > 0,
	);
}

/** A value in words. */
export function sayValue(value: PolicyValue): string {
	if (value === null) return t('policy.unlimited');
	if (typeof value === 'boolean') return t(value ? 'policy.yes' : 'policy.no');
	if (typeof value === 'number') return count(value);
	return (Array.isArray(value) ? value : [value]).map((word) => sayWord(String(word))).join(', ') || '–';
}
