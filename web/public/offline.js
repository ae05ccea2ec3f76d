// The page that is shown without a connection: in the person's language, and only until there is one again.
// The key is that of src/i18n/i18n.svelte.ts.
const WAIT_MAX_MS = 30_000;

function chosenLanguage() {
	try {
		return localStorage.getItem('voelgoed.language');
	} catch {
		// Storage is refused: the browser's own language decides.
		return null;
	}
}

const language = chosenLanguage() ?? navigator.language.slice(0, 2).toLowerCase();
const shown = document.querySelector(`main[lang="${language === 'af' ? 'af' : 'en'}"]`);
for (const main of document.querySelectorAll('main')) main.hidden = main !== shown;
document.documentElement.lang = shown.lang;
document.title = `${shown.dataset.title} · VoelgoedEvents`;

const goOn = () => location.reload();
for (const button of document.querySelectorAll('button')) button.addEventListener('click', goOn);
addEventListener('online', goOn);

/** A server that was away does not say when it is back. */
function look(wait) {
	setTimeout(async () => {
		if (navigator.onLine) {
			const answer = await fetch('/healthz', { cache: 'no-store' }).catch(() => null);
			if (answer?.ok) return goOn();
		}
		look(Math.min(WAIT_MAX_MS, wait * 2));
	}, wait);
}
look(2000);
