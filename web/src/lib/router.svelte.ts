// Where the person is: the address bar as state. Links are ordinary links; this takes them over when they lead to a
// screen of ours, so that the page is not loaded anew.
import { untrack } from 'svelte';

const DOORS = ['sign-in', 'register', 'account', 'forgot-password', 'new-password'] as const;
export type ScreenName = 'storefront' | 'event' | (typeof DOORS)[number];
const DESKS = ['events', 'venues', 'layouts'] as const;
export type Desk = (typeof DESKS)[number];
/** The organiser's pages that stand for themselves. */
const OFFICES = ['policy', 'team', 'memberships', 'keys', 'journal'] as const;
export type Office = 'home' | (typeof OFFICES)[number];
export type Route =
	| { readonly name: 'home' | 'missing' }
	| { readonly name: Exclude<ScreenName, 'event'>; readonly org: string }
	| { readonly name: 'event'; readonly org: string; readonly slug: string }
	/** Where the seats of an event are chosen. */
	| { readonly name: 'seats'; readonly org: string; readonly slug: string }
	/** The organiser's pages: a list, one thing of it, or, as `new`, one that is still to be made. */
	| { readonly name: 'admin'; readonly org: string; readonly desk: Desk; readonly id: string | null }
	/** A layout that is still to be made, for the venue with this id. */
	| { readonly name: 'admin'; readonly org: string; readonly desk: 'new-layout'; readonly id: string }
	/** The seating of the event with this id. */
	| { readonly name: 'admin'; readonly org: string; readonly desk: 'seating'; readonly id: string }
	/** The sale of the event with this id, as it happens. */
	| { readonly name: 'admin'; readonly org: string; readonly desk: 'live'; readonly id: string }
	/** Where the organiser arrives, what the organization lets its seating be, its people, its journal. */
	| { readonly name: 'admin'; readonly org: string; readonly desk: Office; readonly id: null }
	/** The pages of those who run the installation: all organizations, or the one with this id. */
	| { readonly name: 'platform'; readonly id: string | null };

const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const PLATFORM = /^\/platform(?:\/orgs\/([0-9a-f-]{36}))?\/?$/;
/** Addresses of the server itself, and of those who run it; the server founds no organization there (RESERVED_SLUGS). */
const RESERVED = new Set(['admin', 'api', 'assets', 'healthz', 'icons', 'metrics', 'platform', 'readyz']);

export function routeOf(path: string): Route {
	if (path === '/') return { name: 'home' };
	const platform = PLATFORM.exec(path);
	if (platform) return { name: 'platform', id: platform[1] ?? null };
	const [, org = '', screen, ...more] = path.replace(/\/$/, '').split('/');
	if (!SLUG.test(org) || RESERVED.has(org)) return { name: 'missing' };
	if (screen === undefined) return { name: 'storefront', org };
	if (screen === 'admin') return adminRouteOf(org, more);
	const [slug = '', ...deeper] = more;
	if (screen === 'events') {
		const name = ({ '': 'event', seats: 'seats' } as const)[deeper.join('/')];
		return name && SLUG.test(slug) ? { name, org, slug } : { name: 'missing' };
	}
	const name = DOORS.find((door) => door === screen);
	return name && more.length === 0 ? { name, org } : { name: 'missing' };
}

/** What stands after `/{org}/admin`. */
function adminRouteOf(org: string, [first, ...rest]: string[]): Route {
	if (first === undefined) return { name: 'admin', org, desk: 'home', id: null };
	const [id = null, ...more] = rest;
	if (first === 'venues' && id !== null && ID.test(id) && more.join('/') === 'layouts/new') {
		return { name: 'admin', org, desk: 'new-layout', id };
	}
	const part = (['seating', 'live'] as const).find((one) => one === more.join('/'));
	if (first === 'events' && id !== null && ID.test(id) && part) return { name: 'admin', org, desk: part, id };
	const office = OFFICES.find((one) => one === first);
	if (office) return id === null ? { name: 'admin', org, desk: office, id } : { name: 'missing' };
	// Layouts are listed with their venue, and begun there.
	if (first === 'layouts' && (id === null || id === 'new')) return { name: 'missing' };
	const desk = DESKS.find((one) => one === first);
	const isKnown = desk && more.length === 0 && (id === null || id === 'new' || ID.test(id));
	return isKnown ? { name: 'admin', org, desk, id } : { name: 'missing' };
}

/** The address of a screen; `next` is where to go once the person is known. */
export function pathTo(
	org: string,
	screen: Exclude<ScreenName, 'event'> = 'storefront',
	next: string | null = null,
): string {
	const path = screen === 'storefront' ? `/${org}` : `/${org}/${screen}`;
	return next === null ? path : `${path}?${new URLSearchParams({ next })}`;
}

/** The address of an event's own page. */
export function pathToEvent(org: string, slug: string): string {
	return `/${org}/events/${slug}`;
}

/** Where the seats of an event are chosen. */
export function pathToSeats(org: string, slug: string): string {
	return `${pathToEvent(org, slug)}/seats`;
}

/** The address of an organiser's page: a list, or one thing of it, or `new`. */
export function pathToDesk(org: string, desk: Desk = 'events', id: string | null = null): string {
	return id === null ? `/${org}/admin/${desk}` : `/${org}/admin/${desk}/${id}`;
}

/** Where a venue gets a new layout. */
export function pathToNewLayout(org: string, venueId: string): string {
	return `${pathToDesk(org, 'venues', venueId)}/layouts/new`;
}

/** Where an event's seating is arranged. */
export function pathToSeating(org: string, eventId: string): string {
	return `${pathToDesk(org, 'events', eventId)}/seating`;
}

/** Where the sale of an event is watched. */
export function pathToLive(org: string, eventId: string): string {
	return `${pathToDesk(org, 'events', eventId)}/live`;
}

export class Router {
	path = $state('/');
	#search = $state('');
	/** One more with every arrival, also at the same address. */
	visit = $state(0);
	route = $derived(routeOf(this.path));

	/** The secret of a mailed link. */
	#secret: string | null = null;
	#isArriving = false;

	/** Where the person wanted to go; an address that is no screen of ours is nobody's wish. */
	next = $derived.by(() => {
		const asked = new URLSearchParams(this.#search).get('next');
		const { name } = routeOf(asked?.split('?')[0] ?? '/');
		return name === 'home' || name === 'missing' ? null : asked;
	});
	/** What the address says after its question mark. */
	query = $derived(new URLSearchParams(this.#search));

	start(): () => void {
		this.#read();
		addEventListener('popstate', this.#onPop);
		document.addEventListener('click', this.#onClick);
		return () => {
			removeEventListener('popstate', this.#onPop);
			document.removeEventListener('click', this.#onClick);
		};
	}

	go(href: string, { replace = false }: { replace?: boolean } = {}): void {
		if (replace) history.replaceState(null, '', href);
		else history.pushState(null, '', href);
		this.#arrive();
		scrollTo(0, 0);
	}

	/** The same screen is asked for something else: the address says so, and nothing begins anew. */
	ask(query: string): void {
		this.#search = query === '' ? '' : `?${query}`;
		history.replaceState(history.state, '', this.path + this.#search);
	}

	/** Put on the heading of a screen: after a navigation, reading and the keyboard go on from there. */
	heading = (element: HTMLElement): void => {
		element.tabIndex = -1;
		if (!this.#isArriving) return;
		this.#isArriving = false;
		element.focus({ preventScroll: true });
	};

	/** The screen is about to say something else under a new heading: read on from there. */
	turn(): void {
		this.#isArriving = true;
	}

	/** Gives the secret out once. */
	takeSecret(): string | null {
		const secret = this.#secret;
		this.#secret = null;
		return secret;
	}

	#arrive(): void {
		this.#isArriving = true;
		this.#read();
		this.visit = untrack(() => this.visit) + 1;
	}

	#read(): void {
		this.path = location.pathname;
		this.#search = location.search;
		if (routeOf(location.pathname).name !== 'new-password') return;
		// At once, before anything is loaded: what stands in the address bar is seen, copied and kept in the history.
		this.#secret = location.hash.slice(1) || null;
		if (location.hash !== '') history.replaceState(history.state, '', location.pathname + location.search);
	}

	/** Also fires for a jump within the page, which is the browser's own affair, unless it brings a mailed secret. */
	#onPop = (): void => {
		const isJump = location.pathname === this.path && location.search === this.#search;
		if (!isJump || (this.route.name === 'new-password' && location.hash !== '')) this.#arrive();
	};

	#onClick = (event: MouseEvent): void => {
		if (event.defaultPrevented || event.button !== 0) return;
		if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
		const link = (event.target as Element | null)?.closest?.('a');
		if (!link || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return;
		const isJump = link.hash !== '' && link.pathname === location.pathname && link.search === location.search;
		if (isJump || routeOf(link.pathname).name === 'missing') return;
		event.preventDefault();
		this.go(link.pathname + link.search + link.hash);
	};
}

export const router = new Router();
