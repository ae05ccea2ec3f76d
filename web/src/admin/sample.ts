// Events and venues for the specs of this folder.
import type { EventView, VenueView } from './model.ts';

export const VENUE: VenueView = {
	id: '0190f6a1-0000-7000-8000-00000000000a',
	name: 'Die Skouburg',
	slug: 'die-skouburg',
	timezone: 'Africa/Johannesburg',
	address: { city: 'Stellenbosch' },
	max_capacity: 352,
	settings: {},
	version: 1,
	inserted_at: '2027-01-01T00:00:00Z',
	updated_at: '2027-01-01T00:00:00Z',
};

export function makeEvent(over: Partial<EventView> = {}): EventView {
	return {
		id: '0190f6a1-0000-7000-8000-000000000001',
		name: 'Die Laaste Boemeltrein',
		slug: 'die-laaste-boemeltrein',
		description: '',
		status: 'published',
		start_at: '2027-03-12T17:30:00Z',
		end_at: '2027-03-12T20:00:00Z',
		sale_start_at: null,
		sale_end_at: null,
		capacity: null,
		settings: {},
		replaced_by_event_id: null,
		recurrence_group_id: null,
		rescheduled_at: null,
		rescheduled_end_at: null,
		postponement_reason: null,
		is_automatic: true,
		version: 3,
		inventory_epoch: 0,
		inserted_at: '2027-01-01T00:00:00Z',
		updated_at: '2027-01-01T00:00:00Z',
		venue: { id: VENUE.id, name: VENUE.name, slug: VENUE.slug, timezone: VENUE.timezone },
		effective_start_at: '2027-03-12T17:30:00Z',
		effective_end_at: '2027-03-12T20:00:00Z',
		doors_at: null,
		days: ['2027-03-12'],
		on_sale: true,
		sale_state: 'open',
		scanning: 'test',
		is_shown: true,
		verbs: ['unpublish', 'go-live', 'cancel', 'postpone', 'reschedule'],
		editable_fields: ['capacity', 'description', 'name', 'settings', 'slug'],
		...over,
	};
}

/** Postponed, and nobody knows until when. */
export const UNDATED: Partial<EventView> = {
	status: 'postponed',
	effective_start_at: null,
	effective_end_at: null,
	days: [],
	on_sale: false,
	sale_state: 'suspended',
	scanning: 'none',
	verbs: ['publish', 'go-live', 'cancel', 'reschedule'],
};
