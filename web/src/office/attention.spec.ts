// @ts-expect-error: the web knows only the types of browsers.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Counted } from '../admin/feed.svelte.ts';
import type { EventView } from '../admin/model.ts';
import { rightsOf } from '../admin/rights.ts';
import { makeEvent, UNDATED } from '../admin/sample.ts';
import { caresOf, firstSteps, groupOf, whatNeedsCare } from './attention.ts';
import { ABILITIES, mayGive, mayTouch, TEAM_ROLES } from './roles.ts';

const NOW = Date.parse('2027-03-12T12:00:00Z');
const HOUR = 3_600_000;
const at = (hours: number) => new Date(NOW + hours * HOUR).toISOString();
/** Far away, on sale, with places: nothing about it needs anybody. */
const well = (over: Partial<EventView> = {}) =>
	makeEvent({
		status: 'published',
		effective_start_at: at(400),
		effective_end_at: at(403),
		start_at: at(400),
		end_at: at(403),
		sale_start_at: at(-100),
		on_sale: true,
		sale_state: 'open',
		inventory_epoch: 1,
		...over,
	});
const fill = (sold: number, over: Partial<Counted> = {}) => ({ total: 100, blocked: 0, held: 0, sold, available: 100 - sold, ...over }) as Counted;
const OWNER = rightsOf('owner', false);

describe('what needs somebody', () => {
	it('is nothing where all is well', () => {
		expect(caresOf(well(), fill(50), NOW)).toEqual([]);
		expect(caresOf(well({ status: 'ended', on_sale: false }), undefined, NOW)).toEqual([]);
	});

	it.each<[string, Partial<EventView>, Counted | undefined, string[]]>([
		['postponed without a date', { ...UNDATED, on_sale: false }, undefined, ['undated']],
		['live past its end', { status: 'live', effective_start_at: at(-5), effective_end_at: at(-1) }, fill(10), ['overrun']],
		['a sale that is over', { sale_state: 'over', on_sale: false }, undefined, ['unsold']],
		['a draft whose sale should open today', { status: 'draft', on_sale: false, sale_start_at: at(20) }, undefined, ['draft_due']],
		['a draft whose sale should have opened', { status: 'draft', on_sale: false, sale_start_at: at(-20) }, undefined, ['draft_due']],
		['a draft with time left', { status: 'draft', on_sale: false, sale_start_at: at(30) }, undefined, []],
		['a draft without a time of sale', { status: 'draft', on_sale: false, sale_start_at: null }, undefined, []],
		['a draft whose day has passed', { status: 'draft', on_sale: false, effective_start_at: at(-1) }, undefined, ['missed']],
		['on sale without places', { inventory_epoch: 0 }, undefined, ['placeless']],
		['to be sold tomorrow without places', { inventory_epoch: 0, on_sale: false, sale_start_at: at(23) }, undefined, ['placeless']],
		['to be sold later without places', { inventory_epoch: 0, on_sale: false, sale_start_at: at(25) }, undefined, []],
		['beginning within a day', { effective_start_at: at(23) }, fill(10), ['begins']],
		['beginning after a day', { effective_start_at: at(25) }, fill(10), []],
		['nine in ten sold', {}, fill(90), ['nearly_full']],
		['not quite nine in ten', {}, fill(89), []],
		['nine in ten of what is not blocked', {}, fill(45, { blocked: 50 }), ['nearly_full']],
		['sold out', {}, fill(100), ['full']],
		['sold out but for what is blocked', {}, fill(60, { blocked: 40 }), ['full']],
		['full, but no longer on sale', { on_sale: false, sale_state: 'closed' }, fill(100), []],
	])('is told of an event %s', (_, over, filled, cares) => {
		expect(caresOf(well(over), filled, NOW)).toEqual(cares);
	});

	it('comes with the most pressing first, then with the soonest', () => {
		const events = [
			well({ id: 'a', effective_start_at: at(20) }),
			well({ id: 'b', effective_start_at: at(10) }),
			well({ id: 'c', inventory_epoch: 0 }),
		];
		const items = whatNeedsCare(events, new Map(), OWNER, NOW);
		expect(items.map(({ event, care, at: where }) => [event.id, care, where])).toEqual([
			['c', 'placeless', 'seating'],
			['b', 'begins', 'event'],
			['a', 'begins', 'event'],
		]);
	});

	it('is told to those who can do something about it', () => {
		const events = [well({ id: 'a', effective_start_at: at(10), inventory_epoch: 0 }), well({ id: 'b', ...UNDATED, on_sale: false })];
		const told = (role: 'staff' | 'scanner') => whatNeedsCare(events, new Map(), rightsOf(role, false), NOW).map(({ care }) => care);
		expect(told('staff')).toEqual(['placeless', 'begins']);
		expect(told('scanner')).toEqual(['begins']);
	});
});

describe('the home', () => {
	it('puts each event where people look for it', () => {
		expect([well(), well({ on_sale: false }), well({ status: 'live' }), well({ status: 'draft' }), well({ status: 'cancelled' })].map(groupOf)).toEqual([
			'on_sale',
			'coming',
			'live',
			'drafts',
			'over',
		]);
	});

	it('leads from an empty house to the first event, and stays quiet after it', () => {
		expect(firstSteps(0, 0, [])?.map(({ isDone }) => isDone)).toEqual([false, false, false, false]);
		expect(firstSteps(1, 1, [well({ status: 'draft' })])?.map(({ isDone }) => isDone)).toEqual([true, true, true, false]);
		expect(firstSteps(1, 0, [well()])).toBeNull();
	});
});

describe('what a role may do', () => {
	const here = import.meta.url;
	const permissions: string = readFileSync(new URL('../../../docs/permissions.md', here).pathname, 'utf8');
	const table = permissions
		.split('\n')
		.filter((line) => line.startsWith('| '))
		.map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()));
	const [head = [], ...rows] = table;

	it.each(TEAM_ROLES.flatMap((role) => ABILITIES[role].map(({ action }) => [role, action] as const)))(
		'%s: %s, as the table of permissions says',
		(role, action) => {
			const row = rows.find(([name]) => name === action);
			const allowed = TEAM_ROLES.filter((one) => row?.[head.indexOf(one)] === 'yes');
			// The role that brings it, and all above.
			expect(allowed).toEqual(TEAM_ROLES.slice(0, TEAM_ROLES.indexOf(role) + 1));
		},
	);

	it('is not to touch a rank above, nor to hand one out', () => {
		expect([mayTouch('admin', 'owner'), mayTouch('admin', 'admin'), mayTouch('owner', 'owner'), mayTouch('staff', 'scanner')]).toEqual([false, true, true, false]);
		expect([mayGive('admin').includes('owner'), mayGive('owner').includes('owner')]).toEqual([false, true]);
	});
});
