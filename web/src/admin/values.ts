// An event as the fields of a form, and back: times as the clocks at the venue show them, known settings as fields of
// their own, and whatever else stands in the settings left as it is.
import type { Schemas } from '../api/client.ts';
import type { MessageKey } from '../i18n/i18n.svelte.ts';
import { fromLocalInput, toLocalInput } from '../lib/venue-time.ts';
import type { EventView } from './model.ts';

export type Changes = Schemas['EventChangesBody'];

/** The most that anything can hold. */
export const PEOPLE_MAX = 1_000_000;
export const CATEGORIES = ['theatre', 'music', 'sport', 'family', 'festival', 'talk', 'other'] as const;
/** The languages that people here are most often asked for; any other stays as it is. */
export const LANGUAGE_TAGS = ['af', 'en', 'zu', 'xh', 'st', 'nso', 'tn', 'ts', 'ss', 've', 'nr', 'sfs'] as const;

const TEXTS = ['name', 'slug', 'description', 'venue_id'] as const;
const TIMES = ['start_at', 'end_at', 'sale_start_at', 'sale_end_at'] as const;
const SETTINGS = {
	age_min: 'number',
	category: 'text',
	doors_open_minutes_before: 'number',
	language: 'text',
	access_rules: 'text',
	bag_policy: 'text',
	day_cutoff: 'text',
} as const;
type Setting = keyof typeof SETTINGS;
const SETTING_NAMES = Object.keys(SETTINGS) as Setting[];

export const FIELDS = [
	...TEXTS,
	...TIMES,
	'capacity',
	'is_automatic',
	'replaced_by_event_id',
	...SETTING_NAMES,
] as const;
export type FieldName = (typeof FIELDS)[number];
export type Values = Record<FieldName, string>;

export const NOTHING: Values = {
	...(Object.fromEntries(FIELDS.map((name) => [name, ''])) as Values),
	is_automatic: 'on',
};

/** Which field of the contract a field of the form belongs to. */
export function contractField(name: FieldName): keyof Changes {
	return name in SETTINGS ? 'settings' : (name as keyof Changes);
}

export function valuesOf(event: EventView): Values {
	const zone = event.venue.timezone;
	const local = (iso: string | null) => (iso === null ? '' : toLocalInput(iso, zone));
	const setting = (name: Setting) => {
		const value = event.settings[name];
		return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
	};
	return {
		name: event.name,
		slug: event.slug,
		description: event.description,
		venue_id: event.venue.id,
		start_at: local(event.start_at),
		end_at: local(event.end_at),
		sale_start_at: local(event.sale_start_at),
		sale_end_at: local(event.sale_end_at),
		capacity: event.capacity === null ? '' : String(event.capacity),
		is_automatic: event.is_automatic ? 'on' : '',
		replaced_by_event_id: event.replaced_by_event_id ?? '',
		...(Object.fromEntries(SETTING_NAMES.map((name) => [name, setting(name)])) as Record<Setting, string>),
	};
}

/** What was typed over, by itself: what stays when the event underneath has changed. */
export function typedOver(before: Values, after: Values): Partial<Values> {
	return Object.fromEntries(FIELDS.flatMap((name) => (before[name] === after[name] ? [] : [[name, after[name]]])));
}

/**
 * What shall change, for the server. `zone` is the venue's that was chosen: a clock time that was not touched means
 * another moment there.
 */
export function changesOf(event: EventView, before: Values, after: Values, zone: string): Changes {
	const hasMoved = zone !== event.venue.timezone;
	const isNew = (name: FieldName) =>
		before[name] !== after[name] || (hasMoved && (TIMES as readonly FieldName[]).includes(name) && after[name] !== '');
	const whole = wholeOf(after, zone, event.settings);
	const isTouched = (name: keyof Changes) => FIELDS.some((field) => contractField(field) === name && isNew(field));
	return Object.fromEntries(Object.entries(whole).filter(([name]) => isTouched(name as keyof Changes)));
}

/** Everything as it stands in the form. */
export function wholeOf(values: Values, zone: string, kept: Readonly<Record<string, unknown>> = {}): Required<Omit<Changes, 'recurrence_group_id'>> {
	const moment = (value: string) => fromLocalInput(value, zone) ?? '';
	return {
		name: values.name.trim(),
		slug: values.slug.trim(),
		description: values.description.trim(),
		venue_id: values.venue_id,
		start_at: moment(values.start_at),
		end_at: moment(values.end_at),
		sale_start_at: values.sale_start_at === '' ? null : moment(values.sale_start_at),
		sale_end_at: values.sale_end_at === '' ? null : moment(values.sale_end_at),
		capacity: values.capacity.trim() === '' ? null : Number(values.capacity),
		is_automatic: values.is_automatic !== '',
		replaced_by_event_id: values.replaced_by_event_id || null,
		settings: settingsOf(values, kept),
	};
}

function settingsOf(values: Values, kept: Readonly<Record<string, unknown>>): Record<string, unknown> {
	const settings = { ...kept };
	for (const name of SETTING_NAMES) {
		const value = values[name].trim();
		if (value === '') delete settings[name];
		else settings[name] = SETTINGS[name] === 'number' ? Number(value) : value;
	}
	return settings;
}

/** Rules for fields; each says what is wrong, or null. */
export const SLUG_FORM = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
export const addressed = (value: string): MessageKey | null => (SLUG_FORM.test(value.trim()) ? null : 'admin.field.slug.invalid');
export const whole =
	(least: number, most: number, says: MessageKey) =>
	(value: string): MessageKey | null => {
		const text = value.trim();
		if (text === '') return null;
		return /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most ? null : says;
	};
/** A clock time at the venue; in spring there is an hour that no clock shows. */
export const clockTime =
	(zone: () => string, missing: MessageKey | null) =>
	(value: string): MessageKey | null => {
		if (value === '') return missing;
		return fromLocalInput(value, zone()) === null ? 'admin.field.time.never' : null;
	};
