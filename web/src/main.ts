import { mount } from 'svelte';
import App from './App.svelte';
import { router } from './lib/router.svelte.ts';
import { session } from './lib/session.svelte.ts';
import './tokens.css';
import './app.css';

const target = document.getElementById('app');
if (target === null) throw new Error('index.html has no #app');
router.start();
session.start();
void session.restore();
mount(App, { target });
// Pages that came without TLS have none. Where it is refused everything works but for the page that says "no connection".
navigator.serviceWorker?.register('/sw.js').catch(() => {});
// Only the shell of a demonstration says so; everybody else never fetches this.
if ('demo' in document.documentElement.dataset) void import('./demo/main.ts');
