// The words of the seating pages. They come with these pages and not with the first one, which those who buy wait for.
import { i18n, isMessageKey, type MessageKey } from '../i18n/i18n.svelte.ts';
import { isWordKey as isLayoutKey, t as layoutWords, type WordKey as LayoutKey } from '../layouts/words.ts';
import type { Fault } from './contract.ts';
import af from './words/af.json';
import en from './words/en.json';

export { count } from '../layouts/words.ts';
export type WordKey = keyof typeof en;

const WORDS: Record<typeof i18n.language, Record<WordKey, string>> = { en, af };

export function isWordKey(key: string): key is WordKey {
	return Object.hasOwn(en, key);
}

/** Like the `t` of every page, and with the words of layouts and of these pages as well. */
export function t(key: WordKey | LayoutKey | MessageKey, params: Record<string, string | number> = {}): string {
	if (isMessageKey(key)) return i18n.t(key, params);
	if (isLayoutKey(key)) return layoutWords(key, params);
	return WORDS[i18n.language][key].replace(/\{(\w+)\}/g, (placeholder, name: string) => String(params[name] ?? placeholder));
}

/** A fault in the person's language where its kind is known, and in the server's words otherwise. */
export function sayFault(fault: Fault): string {
	const key = `seating.fault.${fault.code}`;
	return isWordKey(key) ? t(key) : fault.message;
}

/** What a field of the policy is called; one that this page does not know is called as the server calls it. */
export function sayField(name: string): string {
	const key = `policy.${name}`;
	return isWordKey(key) ? t(key) : name.replaceAll('_', ' ');
}

export function explainField(name: string): string {
	const key = `policy.${name}.text`;
	return isWordKey(key) ? t(key) : '';
}

/** One of the words that a list of the policy may hold. */
export function sayWord(word: string): string {
	const key = `access.${word}`;
	return isWordKey(key) ? t(key) : sayField(word);
}
