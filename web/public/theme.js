// A classic script in the head: it runs before the first paint, so a pinned theme never flashes the other one.
// The key and the values are those of src/lib/theme.svelte.ts.
try {
	const pinned = localStorage.getItem('voelgoed.theme');
	if (pinned === 'light' || pinned === 'dark') document.documentElement.dataset.theme = pinned;
} catch {
	// Storage is refused: the system decides.
}
