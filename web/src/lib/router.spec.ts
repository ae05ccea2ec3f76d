import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pathTo, pathToDesk, pathToEvent, pathToLive, pathToNewLayout, pathToSeating, routeOf, Router } from './router.svelte.ts';
import { pathToOffice, pathToPlatform } from '../office/paths.ts';

const ID = '0190f6a1-7c1e-7d2a-9b1c-2f6a1c3d4e5f';

describe('routeOf', () => {
	it.each([
		['/', { name: 'home' }],
		['/passievol', { name: 'storefront', org: 'passievol' }],
		['/passievol/', { name: 'storefront', org: 'passievol' }],
		['/die-skouburg-2/sign-in', { name: 'sign-in', org: 'die-skouburg-2' }],
		['/passievol/new-password', { name: 'new-password', org: 'passievol' }],
		['/passievol/events/hamlet-2027', { name: 'event', org: 'passievol', slug: 'hamlet-2027' }],
		['/passievol/events/hamlet/seats', { name: 'seats', org: 'passievol', slug: 'hamlet' }],
		['/passievol/events/hamlet/seats/more', { name: 'missing' }],
		['/passievol/events/Hamlet/seats', { name: 'missing' }],
		['/passievol/events', { name: 'missing' }],
		['/passievol/events/Hamlet', { name: 'missing' }],
		['/passievol/events/hamlet/more', { name: 'missing' }],
		['/passievol/admin', { name: 'admin', org: 'passievol', desk: 'home', id: null }],
		['/passievol/admin/team', { name: 'admin', org: 'passievol', desk: 'team', id: null }],
		['/passievol/admin/memberships', { name: 'admin', org: 'passievol', desk: 'memberships', id: null }],
		['/passievol/admin/keys', { name: 'admin', org: 'passievol', desk: 'keys', id: null }],
		['/passievol/admin/journal', { name: 'admin', org: 'passievol', desk: 'journal', id: null }],
		['/passievol/admin/journal/more', { name: 'missing' }],
		['/passievol/admin/home', { name: 'missing' }],
		['/platform', { name: 'platform', id: null }],
		['/platform/', { name: 'platform', id: null }],
		[`/platform/orgs/${ID}`, { name: 'platform', id: ID }],
		['/platform/orgs', { name: 'missing' }],
		[`/platform/orgs/${ID}/more`, { name: 'missing' }],
		['/platform/sign-in', { name: 'missing' }],
		['/passievol/admin/events', { name: 'admin', org: 'passievol', desk: 'events', id: null }],
		['/passievol/admin/events/new', { name: 'admin', org: 'passievol', desk: 'events', id: 'new' }],
		[`/passievol/admin/events/${ID}`, { name: 'admin', org: 'passievol', desk: 'events', id: ID }],
		['/passievol/admin/venues/', { name: 'admin', org: 'passievol', desk: 'venues', id: null }],
		[`/passievol/admin/venues/${ID}`, { name: 'admin', org: 'passievol', desk: 'venues', id: ID }],
		[`/passievol/admin/venues/${ID}/layouts/new`, { name: 'admin', org: 'passievol', desk: 'new-layout', id: ID }],
		[`/passievol/admin/venues/${ID}/layouts`, { name: 'missing' }],
		['/passievol/admin/venues/new/layouts/new', { name: 'missing' }],
		[`/passievol/admin/events/${ID}/layouts/new`, { name: 'missing' }],
		[`/passievol/admin/layouts/${ID}`, { name: 'admin', org: 'passievol', desk: 'layouts', id: ID }],
		['/passievol/admin/layouts', { name: 'missing' }],
		['/passievol/admin/layouts/new', { name: 'missing' }],
		[`/passievol/admin/events/${ID}/seating`, { name: 'admin', org: 'passievol', desk: 'seating', id: ID }],
		['/passievol/admin/events/new/seating', { name: 'missing' }],
		[`/passievol/admin/events/${ID}/live`, { name: 'admin', org: 'passievol', desk: 'live', id: ID }],
		['/passievol/admin/events/new/live', { name: 'missing' }],
		[`/passievol/admin/events/${ID}/seating/more`, { name: 'missing' }],
		['/passievol/admin/policy', { name: 'admin', org: 'passievol', desk: 'policy', id: null }],
		[`/passievol/admin/policy/${ID}`, { name: 'missing' }],
		['/passievol/admin/people', { name: 'missing' }],
		['/passievol/admin/events/hamlet', { name: 'missing' }],
		[`/passievol/admin/events/${ID}/more`, { name: 'missing' }],
		['/passievol/nowhere', { name: 'missing' }],
		['/passievol/sign-in/more', { name: 'missing' }],
		['/Passievol', { name: 'missing' }],
		['/-passievol', { name: 'missing' }],
		[`/${'a'.repeat(64)}`, { name: 'missing' }],
		['//evil.example', { name: 'missing' }],
		['/readyz', { name: 'missing' }],
		['/api/openapi.json', { name: 'missing' }],
	])('reads %s', (path, route) => {
		expect(routeOf(path)).toEqual(route);
	});
});

describe('addresses', () => {
	it('lead to where they were read from', () => {
		expect(routeOf(pathToEvent('passievol', 'hamlet'))).toEqual({ name: 'event', org: 'passievol', slug: 'hamlet' });
		expect(routeOf(pathToDesk('passievol'))).toEqual({ name: 'admin', org: 'passievol', desk: 'events', id: null });
		expect(routeOf(pathToDesk('passievol', 'venues', ID))).toEqual({
			name: 'admin',
			org: 'passievol',
			desk: 'venues',
			id: ID,
		});
		expect(routeOf(pathToNewLayout('passievol', ID))).toEqual({
			name: 'admin',
			org: 'passievol',
			desk: 'new-layout',
			id: ID,
		});
		expect(routeOf(pathToLive('passievol', ID))).toEqual({ name: 'admin', org: 'passievol', desk: 'live', id: ID });
		expect(routeOf(pathToSeating('passievol', ID))).toEqual({ name: 'admin', org: 'passievol', desk: 'seating', id: ID });
		expect(routeOf(pathToOffice('passievol'))).toEqual({ name: 'admin', org: 'passievol', desk: 'home', id: null });
		expect(routeOf(pathToOffice('passievol', 'policy'))).toEqual({ name: 'admin', org: 'passievol', desk: 'policy', id: null });
		expect(pathToOffice('passievol', 'journal', { kind: 'event_updated' })).toBe('/passievol/admin/journal?kind=event_updated');
		expect([pathToPlatform(), pathToPlatform(ID)].map(routeOf)).toEqual([
			{ name: 'platform', id: null },
			{ name: 'platform', id: ID },
		]);
	});
});

describe('Router', () => {
	let router: Router;
	let stop: () => void;

	function start(address: string): void {
		history.replaceState(null, '', address);
		router = new Router();
		stop = router.start();
	}

	function click(html: string, how: MouseEventInit = {}): boolean {
		document.body.innerHTML = html;
		const event = new MouseEvent('click', { bubbles: true, cancelable: true, button: 0, ...how });
		document.querySelector('b')?.dispatchEvent(event);
		return event.defaultPrevented;
	}

	beforeEach(() => start('/passievol'));
	afterEach(() => {
		stop();
		document.body.innerHTML = '';
	});

	it('takes over a link to a screen of ours', () => {
		expect(click('<a href="/passievol/sign-in?next=%2Fpassievol%2Faccount"><b>Sign in</b></a>')).toBe(true);
		expect(router.route).toEqual({ name: 'sign-in', org: 'passievol' });
		expect(router.next).toBe('/passievol/account');
		expect(location.pathname).toBe('/passievol/sign-in');
	});

	it.each([
		['a link that opens a tab', '<a href="/passievol/account" target="_blank"><b>x</b></a>', {}],
		['a click with a key held', '<a href="/passievol/account"><b>x</b></a>', { ctrlKey: true }],
		['the middle button', '<a href="/passievol/account"><b>x</b></a>', { button: 1 }],
		['an address of the server', '<a href="/readyz"><b>x</b></a>', {}],
		['another site', '<a href="https://voorbeeld.co.za/passievol"><b>x</b></a>', {}],
		['a jump within the page', '<a href="/passievol#content"><b>x</b></a>', {}],
	])('leaves %s to the browser', (_, html, how) => {
		expect(click(html, how)).toBe(false);
		expect(router.path).toBe('/passievol');
	});

	it('follows back and forward, but not a jump within the page', () => {
		router.go('/passievol/account');
		const visit = router.visit;
		history.replaceState(null, '', '/passievol');
		dispatchEvent(new PopStateEvent('popstate'));
		expect(router.route.name).toBe('storefront');
		expect(router.visit).toBe(visit + 1);

		history.replaceState(null, '', '/passievol#content');
		dispatchEvent(new PopStateEvent('popstate'));
		expect(router.visit).toBe(visit + 1);
	});

	it('puts the focus on the heading after a navigation, not on the first page', () => {
		document.body.innerHTML = '<h1>First</h1><h1>Second</h1>';
		const [first, second] = document.querySelectorAll('h1');
		router.heading(first!);
		expect(document.activeElement).toBe(document.body);

		router.go('/passievol/sign-in');
		router.heading(second!);
		expect(document.activeElement).toBe(second);
	});

	it('believes only addresses of ours as the next one', () => {
		for (const wish of ['https://evil.example/', '//evil.example', '/\\evil.example', '/no/such/page', 'javascript:alert(1)']) {
			router.go(`/passievol/sign-in?${new URLSearchParams({ next: wish })}`);
			expect(router.next).toBeNull();
		}
		router.go(pathTo('passievol', 'sign-in', '/passievol/account'));
		expect(router.next).toBe('/passievol/account');
	});

	it('takes the secret of a mailed link out of the address bar at once, and gives it out once', () => {
		stop();
		start('/passievol/new-password#one-time.secret');

		expect(location.href).not.toContain('secret');
		expect(router.takeSecret()).toBe('one-time.secret');
		expect(router.takeSecret()).toBeNull();
	});
});
