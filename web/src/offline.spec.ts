// The service worker and the page without a connection are files as they are, in public: here they are held to their promises.
import { describe, expect, it } from 'vitest';

const files = import.meta.glob<string>('../public/*', { query: '?raw', import: 'default', eager: true });
const read = (path: string) => files[`../public${path}`] ?? '';
const worker = read('/sw.js');
const kept = [...(/const KEPT = \[OFFLINE, (.*)\]/.exec(worker)?.[1] ?? '').matchAll(/'([^']+)'/g)].map(([, path]) => path as string);

it('what is kept has a name of its own, so that a new version of it is kept anew', async () => {
	const all = new TextEncoder().encode(['/offline.html', ...kept].map(read).join(''));
	const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', all));
	const name = Array.from(hash.slice(0, 4), (byte) => byte.toString(16).padStart(2, '0')).join('');
	expect(worker).toContain(`const SHELL = 'shell-${name}';`);
});

describe('the page without a connection', () => {
	const page = read('/offline.html');

	it('says the same in both languages', () => {
		const shapes = ['en', 'af'].map((lang) => [...(new RegExp(`<main lang="${lang}"[\\s\\S]*?</main>`).exec(page)?.[0] ?? '').matchAll(/<(\w+)/g)].map(([, tag]) => tag));
		expect(shapes[0]).toEqual(shapes[1]);
		expect(shapes[0]).toContain('button');
	});

	it('needs nothing that is not kept, and nothing inline', () => {
		const named = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path);
		expect(named.filter((path) => !kept.includes(path as string))).toEqual([]);
		expect(page).not.toMatch(/<style|<script>| style=| on\w+=/);
	});
});
