// Light or dark. The system decides until the person does; choosing what the system says hands the choice back to it.
import { MediaQuery } from 'svelte/reactivity';
import { readSaved, save } from './saved.ts';

export type ThemeName = 'light' | 'dark';

/** The colour of the top bar, for the browser's own bar above it. */
const BAR: Record<ThemeName, string> = { light: '#ffffff', dark: '#1e1724' };

export class Theme {
	#system = new MediaQuery('prefers-color-scheme: dark');
	#pinned = $state<ThemeName | null>(null);
	current = $derived<ThemeName>(this.#pinned ?? (this.#system.current ? 'dark' : 'light'));

	constructor() {
		const saved = readSaved('voelgoed.theme');
		if (saved === 'light' || saved === 'dark') this.#pin(saved);
	}

	toggle(): void {
		const chosen: ThemeName = this.current === 'dark' ? 'light' : 'dark';
		const ofSystem: ThemeName = this.#system.current ? 'dark' : 'light';
		this.#pin(chosen === ofSystem ? null : chosen);
		save('voelgoed.theme', this.#pinned);
	}

	#pin(name: ThemeName | null): void {
		this.#pinned = name;
		if (name === null) delete document.documentElement.dataset.theme;
		else document.documentElement.dataset.theme = name;
		for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) {
			meta.content = BAR[name ?? (meta.media.includes('dark') ? 'dark' : 'light')];
		}
	}
}

export const theme = new Theme();
