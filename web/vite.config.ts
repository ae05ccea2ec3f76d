import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { precompress } from './precompress.ts';

const SERVER = 'http://127.0.0.1:8600';

export default defineConfig(({ mode }) => ({
	// The seat map by itself, for tests in a browser; they say where it is built to.
	...(mode === 'harness' ? { root: 'src/map/harness', publicDir: false } : {}),
	plugins: [
		svelte({ configFile: false }),
		// The first page carries the session, the router and every sentence in two languages, so that a refusal can be
		// said without asking the server for words. Every other screen comes with its words when it is opened; most of the
		// whole is the organiser's.
		mode !== 'harness' && precompress({ firstGzipMax: 62 * 1024, totalGzipMax: 400 * 1024 }),
	],
	server: { proxy: { '/api': SERVER, '/healthz': SERVER, '/readyz': SERVER } },
	build: {
		outDir: '../src/voelgoed/http/dist',
		emptyOutDir: true,
		target: 'es2022',
		// The first browsers with light-dark(); a lower target would rewrite every colour token into two variables.
		cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
		// Everything is a file of its own: the server's Content-Security-Policy allows nothing inline.
		assetsInlineLimit: 0,
		modulePreload: { polyfill: false },
	},
	// Without the browser condition Svelte resolves to its server build and cannot mount a component.
	...(mode === 'test' ? { resolve: { conditions: ['browser'] } } : {}),
	test: {
		environment: 'happy-dom',
		// A click on a link that is left to the browser goes nowhere; it must not even change the address.
		environmentOptions: {
			happyDOM: {
				settings: {
					navigation: {
						disableMainFrameNavigation: true,
						disableChildPageNavigation: true,
						disableFallbackToSetURL: true,
					},
				},
			},
		},
		include: ['src/**/*.spec.ts'],
		// Styles are empty to a test, but for what it reads as text.
		css: { include: [/offline\.css/] },
		restoreMocks: true,
		unstubGlobals: true,
	},
}));
