// Addresses of the office. Those who buy never need them, so they are not with the others.
import type { Office } from '../lib/router.svelte.ts';

/** One of the organiser's pages that stand for themselves; `asked` is what a search is about. */
export function pathToOffice(org: string, office: Office = 'home', asked: Readonly<Record<string, string>> = {}): string {
	const path = office === 'home' ? `/${org}/admin` : `/${org}/admin/${office}`;
	const query = String(new URLSearchParams(asked));
	return query === '' ? path : `${path}?${query}`;
}

/** The pages of those who run the installation. */
export function pathToPlatform(id: string | null = null): string {
	return id === null ? '/platform' : `/platform/orgs/${id}`;
}
