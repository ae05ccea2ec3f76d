// What this browser remembers between visits. A browser may refuse storage; then nothing is remembered and nothing breaks.

type SavedKey = 'voelgoed.language' | 'voelgoed.theme';

export function readSaved(key: SavedKey): string | null {
	try {
		return localStorage.getItem(key);
	} catch {
		return null;
	}
}

/** Null forgets. */
export function save(key: SavedKey, value: string | null): void {
	try {
		if (value === null) localStorage.removeItem(key);
		else localStorage.setItem(key, value);
	} catch {
		// The choice still holds for this page.
	}
}
