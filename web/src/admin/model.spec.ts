// @ts-expect-error: the web knows only the types of browsers.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { attention, deedsOf, differences, EDGES, forwardOf, slugOf, urgentOf, type Status } from './model.ts';
import { mayOrganise, rightsOf } from './rights.ts';
import { makeEvent, UNDATED } from './sample.ts';

const NOW = Date.parse('2027-03-12T21:00:00Z');
const owner = rightsOf('owner', false);
const staff = rightsOf('staff', false);
const scanner = rightsOf('scanner', true);

describe('what needs somebody', () => {
	it.each([
		['postponed without a date', makeEvent(UNDATED), 'undated'],
		['postponed with a date', makeEvent({ status: 'postponed', rescheduled_at: '2027-04-01T17:30:00Z' }), null],
		['published with the sale over', makeEvent({ sale_state: 'over' }), 'unsold'],
		['published and on sale', makeEvent(), null],
		['live after its end', makeEvent({ status: 'live' }), 'overrun'],
		['live before its end', makeEvent({ status: 'live', effective_end_at: '2027-03-12T22:00:00Z' }), null],
		['ended', makeEvent({ status: 'ended', sale_state: 'closed' }), null],
	])('%s', (_, event, why) => {
		expect(attention(event, NOW)).toBe(why);
	});
});

describe('what a role may do', () => {
	it('lets leaders do what the status allows, and move what people know of', () => {
		expect(deedsOf(makeEvent(), owner)).toEqual([
			'go-live',
			'reschedule',
			'postpone',
			'change-venue',
			'unpublish',
			'cancel',
		]);
		expect(deedsOf(makeEvent({ status: 'draft', verbs: ['publish', 'archive'] }), owner)).toEqual([
			'publish',
			'archive',
			'delete',
		]);
		expect(deedsOf(makeEvent({ status: 'archived', verbs: [] }), owner)).toEqual([]);
	});

	it('offers nothing that the server does not offer, whoever asks', () => {
		expect(deedsOf(makeEvent({ verbs: [] }), owner)).toEqual([]);
		expect(deedsOf(makeEvent({ verbs: [] }), staff)).toEqual([]);
		expect(deedsOf(makeEvent({ verbs: ['go-live'] }), staff)).toEqual(['go-live']);
	});

	it('has ready for who watches the sale what cannot wait, and a date where there is none', () => {
		expect(urgentOf(makeEvent(), deedsOf(makeEvent(), owner))).toEqual(['go-live', 'postpone', 'cancel']);
		const undated = makeEvent({ status: 'postponed', effective_start_at: null, verbs: ['reschedule', 'cancel'] });
		expect(urgentOf(undated, deedsOf(undated, owner))).toEqual(['reschedule', 'cancel']);
	});

	it('lets only those who lead delete a draft', () => {
		const draft = makeEvent({ status: 'draft', verbs: [] });

		expect([deedsOf(draft, owner), deedsOf(draft, staff)]).toEqual([['delete'], []]);
	});

	it('lets staff build only where the organization says so; scanners never', () => {
		expect(staff.build).toBe(false);
		expect(rightsOf('staff', true).build).toBe(true);
		expect(owner.build).toBe(true);
		expect(scanner.build).toBe(false);
	});

	it('keeps customers and strangers out', () => {
		expect([mayOrganise('customer'), mayOrganise(undefined), mayOrganise('scanner')]).toEqual([false, false, true]);
	});
});

it('draws the lifecycle that the documents show', () => {
	const here = import.meta.url;
	const life: string = readFileSync(new URL('../../../docs/states/event.md', here).pathname, 'utf8');
	const documented = [...life.matchAll(/^ {2}(\w+) --> (\w+): /gm)].map(([, from, to]) => `${from} ${to}`);
	const drawn = (Object.keys(EDGES) as Status[]).flatMap((from) => EDGES[from].map((to) => `${from} ${to}`));

	expect(documented.length).toBeGreaterThan(0);
	expect(drawn.sort()).toEqual(documented.sort());
});

describe('the way forward', () => {
	it('is publication for a draft, a date for what has none, and nothing in between', () => {
		expect(forwardOf(makeEvent({ status: 'draft' }))).toBe('publish');
		expect(forwardOf(makeEvent(UNDATED))).toBe('reschedule');
		expect(forwardOf(makeEvent({ status: 'postponed', rescheduled_at: '2027-04-01T17:30:00Z' }))).toBe('publish');
		expect(forwardOf(makeEvent())).toBeNull();
	});
});

it('says what differs between two states, whatever the number of fields behind it', () => {
	const after = makeEvent({ status: 'postponed', name: 'Boemeltrein', start_at: 'x', end_at: 'y', version: 4, on_sale: false });

	expect(differences(makeEvent(), after)).toEqual(['status', 'name', 'times']);
	expect(differences(makeEvent(), makeEvent({ version: 4 }))).toEqual([]);
});

it.each([
	['Wáár is die see?', 'waar-is-die-see'],
	['  Die “Laaste” Boemeltrein 2027 ', 'die-laaste-boemeltrein-2027'],
	['!!!', ''],
	[`${'a'.repeat(62)} b`, `${'a'.repeat(62)}`],
])('makes an address of %s', (name, slug) => {
	expect(slugOf(name)).toBe(slug);
});
