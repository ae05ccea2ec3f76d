import { describe, expect, it } from 'vitest';
import { makeEvent } from './sample.ts';
import { addressed, changesOf, clockTime, typedOver, valuesOf, whole, wholeOf } from './values.ts';

const ZONE = 'Africa/Johannesburg';
const event = makeEvent({
	settings: { age_min: 12, category: 'theatre', cover: 'hills', seats_per_person: { max: 6 } },
	capacity: 300,
});

describe('an event as a form', () => {
	it('shows the times of the venue', () => {
		const values = valuesOf(event);

		expect([values.start_at, values.end_at, values.sale_start_at]).toEqual(['2027-03-12T19:30', '2027-03-12T22:00', '']);
		expect([values.age_min, values.category, values.capacity, values.is_automatic]).toEqual(['12', 'theatre', '300', 'on']);
	});

	it('sends nothing when nothing was changed', () => {
		expect(changesOf(event, valuesOf(event), valuesOf(event), ZONE)).toEqual({});
	});

	it('sends only what was changed, and keeps settings it does not know', () => {
		const before = valuesOf(event);
		const after = { ...before, name: ' Boemeltrein ', age_min: '', doors_open_minutes_before: '45', capacity: '' };

		expect(changesOf(event, before, after, ZONE)).toEqual({
			name: 'Boemeltrein',
			capacity: null,
			settings: {
				category: 'theatre',
				cover: 'hills',
				seats_per_person: { max: 6 },
				doors_open_minutes_before: 45,
			},
		});
		expect(typedOver(before, after)).toEqual({
			name: ' Boemeltrein ',
			age_min: '',
			doors_open_minutes_before: '45',
			capacity: '',
		});
	});

	it('means another moment by the same clock time at a venue elsewhere', () => {
		const before = valuesOf(event);
		const changes = changesOf(event, before, { ...before, venue_id: 'other' }, 'Pacific/Auckland');

		expect(changes).toEqual({
			venue_id: 'other',
			start_at: '2027-03-12T06:30:00.000Z',
			end_at: '2027-03-12T09:00:00.000Z',
		});
	});

	it('leaves the sale open where no times are given', () => {
		const whole = wholeOf(valuesOf(event), ZONE);

		expect([whole.sale_start_at, whole.sale_end_at, whole.start_at]).toEqual([null, null, '2027-03-12T17:30:00.000Z']);
	});
});

describe('rules', () => {
	it('knows the hour that no clock shows', () => {
		const rule = clockTime(() => 'Europe/Amsterdam', 'admin.field.start.missing');

		expect(rule('2027-03-28T02:30')).toBe('admin.field.time.never');
		expect(rule('2027-03-28T03:30')).toBeNull();
		expect(rule('')).toBe('admin.field.start.missing');
	});

	it.each([
		['', null],
		['0', null],
		['120', null],
		['121', 'admin.field.age.invalid'],
		['-1', 'admin.field.age.invalid'],
		['1.5', 'admin.field.age.invalid'],
		['twelve', 'admin.field.age.invalid'],
	])('takes %j as a whole number or not', (value, says) => {
		expect(whole(0, 120, 'admin.field.age.invalid')(value)).toBe(says);
	});

	it.each([
		['boemeltrein-2027', null],
		['Boemeltrein', 'admin.field.slug.invalid'],
		['-trein', 'admin.field.slug.invalid'],
		['', 'admin.field.slug.invalid'],
	])('takes %j as an address or not', (value, says) => {
		expect(addressed(value)).toBe(says);
	});
});
