// The journal for people: which facts there are, what each of them changed, and how its values are said.
import type { Schemas } from '../api/client.ts';
import { i18n, isMessageKey } from '../i18n/i18n.svelte.ts';
import { isWordKey, t } from './words.ts';

export type Fact = Schemas['FactView'];

/** What happened, by what it is about. A group is asked for as a whole; the server takes at most twenty kinds. */
export const KINDS = {
	events: [
		'event_created',
		'event_updated',
		'event_status_changed',
		'event_rescheduled',
		'event_venue_changed',
		'event_deleted',
		'event_seating_changed',
		'event_layout_changed',
		'event_inventory_created',
	],
	venues: [
		'venue_created',
		'venue_updated',
		'venue_deleted',
		'gate_created',
		'gate_updated',
		'gate_deleted',
		'layout_version_created',
		'layout_version_activated',
		'layout_version_archived',
	],
	people: ['member_role_changed', 'member_removed', 'membership_granted', 'membership_revoked', 'api_key_created', 'api_key_revoked'],
	rules: ['pricing_rule_created', 'pricing_rule_changed', 'pricing_rule_deleted', 'seating_policy_changed', 'event_policy_changed'],
	seats: [
		'seat_reserved',
		'seat_hold_extended',
		'seat_hold_handed_over',
		'seat_hold_released',
		'seat_hold_expired',
		'seat_sold',
		'seat_blocked',
		'seat_unblocked',
		'seat_reserve_failed',
		'ticket_voided',
		'registry_rebuild',
	],
	accounts: [
		'signed_in',
		'signed_out',
		'registered',
		'guest_entered',
		'account_changed',
		'account_deleted',
		'password_changed',
		'password_reset_requested',
		'password_reset',
		'session_ended',
	],
	platform: ['organization_created', 'organization_suspended', 'organization_resumed', 'audit_read_by_platform'],
} as const satisfies Record<string, readonly string[]>;
export type Topic = keyof typeof KINDS;
export const TOPICS = Object.keys(KINDS) as Topic[];

export function topicOf(kind: string): Topic | null {
	return TOPICS.find((topic) => (KINDS[topic] as readonly string[]).includes(kind)) ?? null;
}

/** A field as it was and as it is; without `before` it is only told, not changed. */
export interface Told {
	/** The names on the way to it: most have one, a zone of a seating has two. */
	readonly path: readonly string[];
	readonly before?: unknown;
	readonly after: unknown;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value);
const isPair = (value: unknown): value is readonly [unknown, unknown] => Array.isArray(value) && value.length === 2;
/** The journal keeps only which of these were touched: [those that were there, those that are there]. */
const NAMED_ONLY: readonly string[] = ['settings', 'address'];
/** Numbers that grow with every change of a kind: they say nothing that the sentence does not. */
const COUNTERS: readonly string[] = ['inventory_epoch', 'version'];

/** What a fact changed, field by field. */
export function changesOf({ data }: Fact): Told[] {
	const told = isRecord(data.changes) ? pairsIn(data.changes, []) : [];
	const has = (name: string) => told.some(({ path }) => path.length === 1 && path[0] === name);
	for (const [name, before, after] of [
		// What was just made has no status that it could have had before.
		['status', data.old_status, data.old_status === null ? null : data.new_status],
		['role', data.role_before, data.role_after],
		['layout_version', data.version_before, data.version_after],
	] as const) {
		if (!has(name) && (before ?? after) != null && before !== after) told.push({ path: [name], before: before ?? null, after: after ?? null });
	}
	return told;
}

function pairsIn(changes: Record<string, unknown>, path: readonly string[]): Told[] {
	return Object.entries(changes).flatMap(([name, value]): Told[] => {
		if (COUNTERS.includes(name)) return [];
		const here = [...path, name];
		if (isPair(value)) {
			const [before, after] = value;
			if (NAMED_ONLY.includes(name) && Array.isArray(before) && Array.isArray(after)) return touched(here, before, after);
			// Two records are compared field by field, as people would; one that is new or gone is compared with nothing.
			if (isRecord(before ?? after) && isRecord(after ?? before)) {
				return compared(here, (before ?? {}) as Record<string, unknown>, (after ?? {}) as Record<string, unknown>);
			}
			return [{ path: here, before, after }];
		}
		return isRecord(value) ? pairsIn(value, here) : [{ path: here, after: value }];
	});
}

function compared(path: readonly string[], before: Record<string, unknown>, after: Record<string, unknown>): Told[] {
	return [...new Set([...Object.keys(before), ...Object.keys(after)])]
		.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
		.map((name) => ({ path: [...path, name], before: before[name] ?? null, after: after[name] ?? null }));
}

function touched(path: readonly string[], before: readonly unknown[], after: readonly unknown[]): Told[] {
	return [...new Set([...before, ...after])].map((name) => {
		const how = !before.includes(name) ? 'added' : after.includes(name) ? 'changed' : 'removed';
		return { path: [...path, String(name)], after: t(`journal.${how}`) };
	});
}

/** What stands in the sentence, in the changes, or is of use to programs only. */
const UNTOLD: readonly string[] = [
	'actor_type',
	'changes',
	'event_id',
	'name',
	'new_status',
	'old_status',
	'one_time_id',
	'replaced_by_event_id',
	'rescheduled_at',
	'role_after',
	'role_before',
	'session_id',
	'tier',
	'user_id',
	'verb',
	'version_after',
	'version_before',
];

/** Everything else that a fact tells. */
export function detailsOf({ data }: Fact): Told[] {
	return Object.entries(data)
		.filter(([name, value]) => !UNTOLD.includes(name) && value !== null)
		.map(([name, after]) => ({ path: [name], after }));
}

/** What a field is called; one that this page does not know is called as the server calls it. */
export function sayPath(path: readonly string[], nameOf: (id: string) => string | undefined): string {
	return path.map((name) => sayField(name, nameOf)).join(' · ');
}

function sayField(name: string, nameOf: (id: string) => string | undefined): string {
	if (ID.test(name)) return sayId(name, nameOf);
	const key = `journal.field.${name}`;
	return isWordKey(key) ? t(key) : name.replaceAll('_', ' ');
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;
const LONG_MAX = 400;

/** Ids of the same hour begin alike: the end tells them apart. */
export const sayId = (id: string, nameOf: (id: string) => string | undefined = () => undefined): string =>
	nameOf(id) ?? t('journal.id', { id: id.slice(-6) });

/** A value in words; null where there are none and only the data itself can be shown. */
export function sayValue(value: unknown, path: readonly string[], fact: Fact, nameOf: (id: string) => string | undefined): string | null {
	const field = path.at(-1) ?? '';
	if (value === null || value === undefined || value === '') return t('journal.nothing');
	if (typeof value === 'boolean') return t(value ? 'journal.yes' : 'journal.no');
	if (typeof value === 'number') return sayNumber(value, field, fact);
	if (typeof value === 'string') return sayString(value, field, nameOf);
	if (!Array.isArray(value)) return null;
	if (value.length === 0) return t('journal.nothing');
	const said = value.map((one) => sayValue(one, path, fact, nameOf));
	return said.includes(null) ? null : said.join(', ');
}

function sayNumber(value: number, field: string, { data }: Fact): string {
	const locale = `${i18n.language}-ZA`;
	const currency = data.currency;
	if (field.endsWith('_minor') && typeof currency === 'string') {
		const format = new Intl.NumberFormat(locale, { style: 'currency', currency });
		return format.format(value / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
	}
	return new Intl.NumberFormat(locale).format(value);
}

function sayString(value: string, field: string, nameOf: (id: string) => string | undefined): string {
	if (ID.test(value)) return sayId(value, nameOf);
	if (MOMENT.test(value)) return i18n.moment(new Date(value));
	const known = { status: `admin.status.${value}`, role: `role.${value}` }[field];
	if (known !== undefined && isMessageKey(known)) return t(known);
	return value.length > LONG_MAX ? `${value.slice(0, LONG_MAX)}…` : value;
}

/** Who did it, as well as it is known. */
export function sayActor(fact: Fact): string {
	if (fact.actor_name !== null) return fact.actor_name;
	const type = `admin.who.${String(fact.data.actor_type)}`;
	if (isMessageKey(type)) return t(type);
	if (PLATFORM_ONLY.includes(fact.kind)) return t('admin.who.super_admin');
	return t(fact.actor_id === null ? 'journal.itself' : 'admin.who.somebody');
}
const PLATFORM_ONLY: readonly string[] = KINDS.platform;

/** What happened, as a sentence. */
export function sayFact(fact: Fact, nameOf: (id: string) => string | undefined): string {
	const { data } = fact;
	const verb = `journal.verb.${String(data.verb)}`;
	const kind = `journal.kind.${fact.kind}`;
	const key = isWordKey(verb) ? verb : isWordKey(kind) ? kind : 'journal.kind.other';
	const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
	const quoted = (name: string | undefined) => (name === undefined ? undefined : t('admin.history.reason', { reason: name }));
	const about = (name: string) => nameOf(text(data[name]) ?? '');
	const role = `role.${String(data.role_after ?? data.role ?? '')}`;
	return t(key, {
		who: sayActor(fact),
		event: quoted((fact.event_id === null ? undefined : nameOf(fact.event_id)) ?? text(data.name)) ?? t('journal.an_event'),
		person: fact.person_name ?? t('journal.a_person'),
		name: quoted(text(data.name) ?? about('venue_id') ?? text(data.gate_code)) ?? t('journal.something'),
		tier: text(data.tier) ?? '',
		count: typeof data.count === 'number' ? data.count : 1,
		role: isMessageKey(role) ? t(role) : '',
		kind: fact.kind.replaceAll('_', ' '),
	});
}

/** What a search asks for, as it stands in the address. */
export interface Asked {
	readonly what: string;
	readonly who: string;
	readonly event: string;
	readonly seat: string;
	readonly since: string;
	readonly until: string;
}
const ASKED = ['what', 'who', 'event', 'seat', 'since', 'until'] as const satisfies readonly (keyof Asked)[];

/** What an address asks for; what makes no sense in it is left out, as if nobody had written it. */
export function askedOf(query: URLSearchParams): Asked {
	const id = (name: string) => (ID.test(query.get(name) ?? '') ? (query.get(name) ?? '') : '');
	const moment = (name: string) => (Number.isNaN(Date.parse(query.get(name) ?? '')) ? '' : (query.get(name) ?? ''));
	const what = query.get('what') ?? '';
	const isKnown = what in KINDS || topicOf(what) !== null;
	return { what: isKnown ? what : '', who: id('who'), event: id('event'), seat: id('seat'), since: moment('since'), until: moment('until') };
}

/** The address of a search. */
export function addressOf(asked: Asked): string {
	return String(new URLSearchParams(ASKED.flatMap((name) => (asked[name] === '' ? [] : [[name, asked[name]] as [string, string]]))));
}

/** The search, as the server takes it. */
export function filterOf({ what, who, event, seat, since, until }: Asked) {
	const kinds: readonly string[] = what in KINDS ? KINDS[what as Topic] : [what];
	return {
		...(what === '' ? {} : { kind: [...kinds] }),
		...(who === '' ? {} : { actor_id: who }),
		...(event === '' ? {} : { event_id: event }),
		...(seat === '' ? {} : { seat_id: seat }),
		...(since === '' ? {} : { since }),
		...(until === '' ? {} : { until }),
	};
}
