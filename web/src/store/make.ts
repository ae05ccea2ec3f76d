// Events for the specs beside this file.
import type { Schemas } from '../api/client.ts';

export const SKOUBURG = { id: '10', name: 'Die Skouburg', slug: 'skouburg', timezone: 'Africa/Johannesburg' };

export function makeCard(over: Partial<Schemas['EventCard']> = {}): Schemas['EventCard'] {
	return {
		id: 'boemel',
		slug: 'boemeltrein',
		name: 'Die Laaste Boemeltrein',
		status: 'published',
		effective_start_at: '2027-03-12T17:30:00Z',
		effective_end_at: '2027-03-12T20:00:00Z',
		doors_at: null,
		days: ['2027-03-12'],
		sale_start_at: null,
		sale_end_at: null,
		on_sale: true,
		sale_state: 'open',
		notice: null,
		start_at: '2027-03-12T17:30:00Z',
		end_at: '2027-03-12T20:00:00Z',
		rescheduled_at: null,
		rescheduled_end_at: null,
		postponement_reason: null,
		category: 'theatre',
		cover: null,
		age_min: null,
		venue: SKOUBURG,
		...over,
	};
}

export function makePage(over: Partial<Schemas['EventPage']> = {}): Schemas['EventPage'] {
	return {
		...makeCard(),
		description: '',
		organization: { slug: 'passievol', name: 'Passievol' },
		address: {},
		replaced_by: null,
		access_rules: null,
		bag_policy: null,
		language: null,
		step_free: null,
		...over,
	};
}

export const POSTPONED: Partial<Schemas['EventCard']> = {
	status: 'postponed',
	notice: 'postponed',
	effective_start_at: null,
	effective_end_at: null,
	doors_at: null,
	days: [],
	sale_state: 'suspended',
	on_sale: false,
	postponement_reason: 'weather',
};

export const RESCHEDULED: Partial<Schemas['EventCard']> = {
	status: 'postponed',
	notice: 'rescheduled',
	effective_start_at: '2027-04-24T16:00:00Z',
	effective_end_at: '2027-04-24T18:30:00Z',
	rescheduled_at: '2027-04-24T16:00:00Z',
	rescheduled_end_at: '2027-04-24T18:30:00Z',
	days: ['2027-04-24'],
};
