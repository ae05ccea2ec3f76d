// Moments as the clocks at a venue show them: the one place where a time zone meets words. Only the names of days and
// months come from the browser; their order is ours, so that every browser writes the same line.

type Style = 'short' | 'long';
interface Wall {
	readonly year: number;
	readonly month: number;
	readonly day: number;
	readonly hour: number;
	readonly minute: number;
	readonly second: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const LOCAL_INPUT = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::\d\d(?:\.\d+)?)?$/;

/** "Fri 12 Mar 2027 · 19:30 – 22:00"; over several days "Fri 12 Mar 2027, 10:00 – Sun 14 Mar 2027, 22:00". */
export function whenLine(startIso: string, endIso: string, timeZone: string, locale: string): string {
	const date = (iso: string) => dateLine(iso, timeZone, locale);
	const time = (iso: string) => timeLine(iso, timeZone, locale);
	if (isOneEvening(startIso, endIso, timeZone)) return `${date(startIso)} · ${time(startIso)} – ${time(endIso)}`;
	return `${date(startIso)}, ${time(startIso)} – ${date(endIso)}, ${time(endIso)}`;
}

/** "Fri 12 Mar 2027", or "Friday 12 March 2027". */
export function dateLine(iso: string, timeZone: string, locale: string, style: Style = 'short'): string {
	return dated(new Date(iso), zoneOf(timeZone), locale, style);
}

/** "19:30". */
export function timeLine(iso: string, timeZone: string, _locale: string): string {
	const { hour, minute } = wallOf(new Date(iso), zoneOf(timeZone));
	return `${two(hour)}:${two(minute)}`;
}

/** Days such as "2027-03-12", which are the venue's own already: "Fri 12 – Sun 14 Mar 2027". */
export function dayRange(days: string[], locale: string, style: Style = 'short'): string {
	const sorted = [...days].sort();
	const [first, last] = [sorted[0], sorted.at(-1)];
	if (first === undefined || last === undefined) return '';
	const name = (day: string) => dated(new Date(`${day}T12:00:00Z`), 'UTC', locale, style);
	if (first === last) return name(first);
	const [from, to] = [name(first).split(' '), name(last).split(' ')];
	// What both have in common is said once, at the end.
	const parts = first.slice(0, 7) === last.slice(0, 7) ? 2 : first.slice(0, 4) === last.slice(0, 4) ? 3 : 4;
	return `${from.slice(0, parts).join(' ')} – ${to.join(' ')}`;
}

/**
 * "Johannesburg time (GMT+2)", to be said where the person's own clock shows something else; null where it does not.
 * The moments are those that are shown: two zones may agree in winter and differ in summer.
 */
export function zoneNote(timeZone: string, locale: string, ...moments: string[]): string | null {
	const zone = zoneOf(timeZone);
	const own = zoneOf(Intl.DateTimeFormat().resolvedOptions().timeZone);
	const shown = moments.length > 0 ? moments.map((iso) => new Date(iso)) : [new Date()];
	const differs = shown.find((at) => offsetMs(at, zone) !== offsetMs(at, own));
	if (differs === undefined) return null;
	const offset = offsetName(offsetMs(differs, zone));
	const city = zone.split('/').at(-1)?.replaceAll('_', ' ') ?? zone;
	if (zone === 'UTC') return 'UTC';
	return `${languageOf(locale) === 'af' ? `${city}-tyd` : `${city} time`} (${offset})`;
}

/** What a datetime-local field shows at the venue: "2027-03-12T19:30". Empty where the zone is not known here. */
export function toLocalInput(iso: string, timeZone: string): string {
	const at = new Date(iso);
	if (!isKnown(timeZone) || Number.isNaN(at.getTime())) return '';
	const { year, month, day, hour, minute } = wallOf(at, timeZone);
	return `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}T${two(hour)}:${two(minute)}`;
}

/**
 * The moment at which a clock at the venue shows this; null where none ever does (the hour left out in spring, the 30th
 * of February). Of an hour that comes twice in autumn it is the first.
 */
export function fromLocalInput(value: string, timeZone: string): string | null {
	const found = LOCAL_INPUT.exec(value);
	if (!found || !isKnown(timeZone)) return null;
	const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = found.slice(1).map(Number);
	const asUtc = Date.UTC(year, month - 1, day, hour, minute);
	// The offsets before and after whatever change of the clocks may be near.
	const offsets = [-DAY_MS, DAY_MS].map((far) => offsetMs(new Date(asUtc + far), timeZone));
	const fits = offsets
		.map((offset) => new Date(asUtc - offset))
		.filter((at) => toLocalInput(at.toISOString(), timeZone) === value.slice(0, 16));
	return fits.length > 0 ? new Date(Math.min(...fits.map(Number))).toISOString() : null;
}

/** Whether it ends on the day it begins, or in the night after: nobody says the date of an end at half past one. */
export function isOneEvening(startIso: string, endIso: string, timeZone: string): boolean {
	const [from, to] = [startIso, endIso].map((iso) => Date.parse(`${toLocalInput(iso, zoneOf(timeZone))}Z`));
	const [firstDay, lastDay] = [from, to].map((wall = 0) => Math.floor(wall / DAY_MS));
	return firstDay === lastDay || (to ?? 0) - (from ?? 0) < DAY_MS / 2;
}

const two = (value: number) => String(value).padStart(2, '0');
const languageOf = (locale: string) => locale.split('-')[0];
const localeOf = (locale: string) => (locale.includes('-') ? locale : `${locale}-ZA`);

const formats = new Map<string, Intl.DateTimeFormat>();
/** Making one takes the browser longer than using it a hundred times. */
function formatOf(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
	const key = locale + JSON.stringify(options);
	const format = formats.get(key) ?? new Intl.DateTimeFormat(locale, options);
	formats.set(key, format);
	return format;
}

function isKnown(timeZone: string): boolean {
	try {
		formatOf('en-GB', { timeZone });
		return true;
	} catch {
		return false;
	}
}

/** A zone that is younger than the browser is shown as UTC, and `zoneNote` says so; a page that fails says nothing. */
const zoneOf = (timeZone: string | undefined) => (timeZone && isKnown(timeZone) ? timeZone : 'UTC');

function dated(at: Date, timeZone: string, locale: string, style: Style): string {
	const options = { timeZone, weekday: style, day: 'numeric', month: style, year: 'numeric' } as const;
	const parts = formatOf(localeOf(locale), options).formatToParts(at);
	const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((one) => one.type === type)?.value ?? '';
	// Afrikaans writes short names with a full stop, South African English days with a nought: noise in a line like this.
	return [part('weekday'), part('day'), part('month'), part('year')]
		.map((word) => word.replace(/\.$|^0/, ''))
		.join(' ');
}

function wallOf(at: Date, timeZone: string): Wall {
	const options = {
		timeZone,
		calendar: 'gregory',
		hourCycle: 'h23',
		year: 'numeric',
		month: 'numeric',
		day: 'numeric',
		hour: 'numeric',
		minute: 'numeric',
		second: 'numeric',
	} as const;
	const parts = formatOf('en-GB', options).formatToParts(at);
	const part = (type: keyof Wall) => Number(parts.find((one) => one.type === type)?.value);
	return {
		year: part('year'),
		month: part('month'),
		day: part('day'),
		hour: part('hour'),
		minute: part('minute'),
		second: part('second'),
	};
}

function offsetMs(at: Date, timeZone: string): number {
	const wall = wallOf(at, timeZone);
	const asUtc = Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute, wall.second);
	return asUtc - Math.floor(at.getTime() / 1000) * 1000;
}

/** "GMT+2", "GMT-3:30", "GMT". */
function offsetName(offset: number): string {
	const minutes = Math.round(Math.abs(offset) / MINUTE_MS);
	if (minutes === 0) return 'GMT';
	const rest = minutes % 60 === 0 ? '' : `:${two(minutes % 60)}`;
	return `GMT${offset < 0 ? '-' : '+'}${Math.floor(minutes / 60)}${rest}`;
}
