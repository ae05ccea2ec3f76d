import { afterEach, describe, expect, it, vi } from 'vitest';
import {
	dateLine,
	dayRange,
	fromLocalInput,
	isOneEvening,
	timeLine,
	toLocalInput,
	whenLine,
	zoneNote,
} from './venue-time.ts';

const JOBURG = 'Africa/Johannesburg';
const LONDON = 'Europe/London';
const NEW_YORK = 'America/New_York';
/** Fourteen hours ahead, where it is tomorrow for most of the world. */
const KIRITIMATI = 'Pacific/Kiritimati';
/** Half an hour of daylight saving. */
const LORD_HOWE = 'Australia/Lord_Howe';

function browserIn(timeZone: string): void {
	const own = Intl.DateTimeFormat.prototype.resolvedOptions;
	vi.spyOn(Intl.DateTimeFormat.prototype, 'resolvedOptions').mockImplementation(function (this: Intl.DateTimeFormat) {
		return { ...own.call(this), timeZone };
	});
}

afterEach(() => vi.restoreAllMocks());

describe('a date and a time', () => {
	it.each([
		[JOBURG, 'Fri 12 Mar 2027', '19:30'],
		[NEW_YORK, 'Fri 12 Mar 2027', '12:30'],
		[KIRITIMATI, 'Sat 13 Mar 2027', '07:30'],
	])('are those of a clock in %s', (zone, date, time) => {
		expect(dateLine('2027-03-12T17:30:00Z', zone, 'en')).toBe(date);
		expect(timeLine('2027-03-12T17:30:00Z', zone, 'en')).toBe(time);
	});

	it('are written out where there is room, and in Afrikaans', () => {
		expect(dateLine('2027-03-12T17:30:00Z', JOBURG, 'en', 'long')).toBe('Friday 12 March 2027');
		expect(dateLine('2027-03-12T17:30:00Z', JOBURG, 'af')).toBe('Vr 12 Mrt 2027');
		expect(dateLine('2027-03-12T17:30:00Z', JOBURG, 'af-ZA', 'long')).toBe('Vrydag 12 Maart 2027');
	});

	it('follow daylight saving', () => {
		expect(timeLine('2027-03-28T00:59:00Z', LONDON, 'en')).toBe('00:59');
		expect(timeLine('2027-03-28T01:00:00Z', LONDON, 'en')).toBe('02:00');
	});

	it('have a midnight and no 24:00', () => {
		expect(timeLine('2027-03-11T22:00:00Z', JOBURG, 'en')).toBe('00:00');
		expect(dateLine('2027-03-11T22:00:00Z', JOBURG, 'en')).toBe('Fri 12 Mar 2027');
	});
});

describe('when something takes place', () => {
	it.each([
		['one evening', '2027-03-12T17:30:00Z', '2027-03-12T20:00:00Z', 'Fri 12 Mar 2027 · 19:30 – 22:00'],
		['until past midnight', '2027-03-12T18:00:00Z', '2027-03-12T23:30:00Z', 'Fri 12 Mar 2027 · 20:00 – 01:30'],
		[
			'for days',
			'2027-03-12T08:00:00Z',
			'2027-03-14T20:00:00Z',
			'Fri 12 Mar 2027, 10:00 – Sun 14 Mar 2027, 22:00',
		],
	])('%s', (_, start, end, line) => {
		expect(whenLine(start, end, JOBURG, 'en')).toBe(line);
	});

	it('is one day at the venue, although it is two elsewhere', () => {
		const [start, end] = ['2027-03-12T10:00:00Z', '2027-03-13T09:00:00Z'];

		expect(isOneEvening(start, end, KIRITIMATI)).toBe(true);
		expect(isOneEvening(start, end, JOBURG)).toBe(false);
	});
});

describe('days', () => {
	it.each([
		[['2027-03-12'], 'Fri 12 Mar 2027'],
		[['2027-03-12', '2027-03-13', '2027-03-14'], 'Fri 12 – Sun 14 Mar 2027'],
		[['2027-04-30', '2027-05-01'], 'Fri 30 Apr – Sat 1 May 2027'],
		[['2027-12-31', '2028-01-01'], 'Fri 31 Dec 2027 – Sat 1 Jan 2028'],
		[['2027-03-14', '2027-03-12'], 'Fri 12 – Sun 14 Mar 2027'],
		[[], ''],
	])('%j are said as %s', (days, line) => {
		expect(dayRange(days, 'en')).toBe(line);
	});

	it('have Afrikaans names', () => {
		expect(dayRange(['2027-03-12', '2027-03-13'], 'af', 'long')).toBe('Vrydag 12 – Saterdag 13 Maart 2027');
	});
});

describe('the note on the zone', () => {
	it('is left out where the own clock shows the same', () => {
		browserIn('Africa/Maputo');

		expect(zoneNote(JOBURG, 'en')).toBeNull();
	});

	it('names the city and its offset, in both languages', () => {
		browserIn(NEW_YORK);

		expect(zoneNote(JOBURG, 'en')).toBe('Johannesburg time (GMT+2)');
		expect(zoneNote(JOBURG, 'af')).toBe('Johannesburg-tyd (GMT+2)');
		expect(zoneNote('Asia/Kolkata', 'en')).toBe('Kolkata time (GMT+5:30)');
		expect(zoneNote('America/St_Johns', 'en', '2027-01-12T17:30:00Z')).toBe('St Johns time (GMT-3:30)');
	});

	it('depends on the moment that is shown', () => {
		browserIn('Europe/Berlin');

		expect(zoneNote(JOBURG, 'en', '2027-07-12T17:30:00Z')).toBeNull();
		expect(zoneNote(JOBURG, 'en', '2027-01-12T17:30:00Z')).toBe('Johannesburg time (GMT+2)');
		expect(zoneNote(JOBURG, 'en', '2027-07-12T17:30:00Z', '2027-01-12T17:30:00Z')).not.toBeNull();
	});

	it('says UTC for a zone the browser has never heard of, and the times are those', () => {
		browserIn(JOBURG);

		expect(zoneNote('Mars/Olympus', 'en')).toBe('UTC');
		expect(timeLine('2027-03-12T17:30:00Z', 'Mars/Olympus', 'en')).toBe('17:30');
	});
});

describe('a field for the venue', () => {
	it.each([
		[JOBURG, '2027-03-12T17:30:00.000Z', '2027-03-12T19:30'],
		[KIRITIMATI, '2027-03-12T17:30:00.000Z', '2027-03-13T07:30'],
		[NEW_YORK, '2027-03-14T06:59:00.000Z', '2027-03-14T01:59'],
		[NEW_YORK, '2027-03-14T07:00:00.000Z', '2027-03-14T03:00'],
		[LORD_HOWE, '2027-01-01T00:00:00.000Z', '2027-01-01T11:00'],
		[LORD_HOWE, '2027-07-01T00:00:00.000Z', '2027-07-01T10:30'],
	])('in %s shows %s as %s, and back', (zone, iso, local) => {
		expect(toLocalInput(iso, zone)).toBe(local);
		expect(fromLocalInput(local, zone)).toBe(iso);
	});

	it.each([
		[NEW_YORK, '2027-03-14T02:30'],
		[LONDON, '2027-03-28T01:00'],
		[LORD_HOWE, '2027-10-03T02:15'],
	])('in %s knows that there is no %s', (zone, local) => {
		expect(fromLocalInput(local, zone)).toBeNull();
	});

	it('takes the first of an hour that comes twice', () => {
		expect(fromLocalInput('2027-11-07T01:30', NEW_YORK)).toBe('2027-11-07T05:30:00.000Z');
		expect(toLocalInput('2027-11-07T06:30:00Z', NEW_YORK)).toBe('2027-11-07T01:30');
	});

	it.each(['', 'soon', '2027-02-30T10:00', '2027-13-01T10:00', '2027-03-12T24:00'])('refuses "%s"', (value) => {
		expect(fromLocalInput(value, JOBURG)).toBeNull();
	});

	it('does not guess at a zone it does not know', () => {
		expect(toLocalInput('2027-03-12T17:30:00Z', 'Mars/Olympus')).toBe('');
		expect(fromLocalInput('2027-03-12T19:30', 'Mars/Olympus')).toBeNull();
	});

	it('takes the seconds some browsers add', () => {
		expect(fromLocalInput('2027-03-12T19:30:00', JOBURG)).toBe('2027-03-12T17:30:00.000Z');
	});
});
