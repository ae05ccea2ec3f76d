// The service worker: says honestly that there is no connection, and keeps what never changes. What the server says of
// events, seats and people is never kept: it goes to the server every time, and past this file.

/** What is kept, by its content; offline.spec.ts says what it has to be. */
const SHELL = 'shell-b9d580b2';
const ASSETS = 'assets';
const OFFLINE = '/offline.html';
const KEPT = [OFFLINE, '/offline.css', '/offline.js', '/theme.js', '/favicon.svg'];
/** Of several versions of the application; the oldest go first. */
const ASSETS_MAX = 200;

addEventListener('install', (event) => {
	event.waitUntil(keepShell());
});

addEventListener('activate', (event) => {
	event.waitUntil(tidy().then(() => clients.claim()));
});

addEventListener('fetch', (event) => {
	const { request } = event;
	const { origin, pathname } = new URL(request.url);
	if (request.method !== 'GET' || origin !== location.origin || pathname.startsWith('/api/')) return;
	// Their names carry a hash of what is in them.
	if (pathname.startsWith('/assets/')) event.respondWith(asset(event));
	else if (request.mode === 'navigate') event.respondWith(fetch(request).catch(() => kept(OFFLINE)));
	else if (KEPT.includes(pathname)) event.respondWith(fetch(request).catch(() => kept(pathname)));
});

async function keepShell() {
	const shell = await caches.open(SHELL);
	await shell.addAll(KEPT.map((path) => new Request(path, { cache: 'reload' })));
	await skipWaiting();
}

async function tidy() {
	const names = await caches.keys();
	await Promise.all(names.filter((name) => name !== SHELL && name !== ASSETS).map((name) => caches.delete(name)));
}

async function kept(path) {
	return (await caches.match(path, { cacheName: SHELL, ignoreVary: true })) ?? Response.error();
}

async function asset(event) {
	const assets = await caches.open(ASSETS);
	const found = await assets.match(event.request, { ignoreVary: true });
	if (found) return found;
	const answer = await fetch(event.request);
	if (answer.ok) event.waitUntil(keepAsset(assets, event.request, answer.clone()));
	return answer;
}

async function keepAsset(assets, request, answer) {
	await assets.put(request, answer);
	const requests = await assets.keys();
	await Promise.all(requests.slice(0, Math.max(0, requests.length - ASSETS_MAX)).map((old) => assets.delete(old)));
}
