// The words of a demonstration's panel. They come with it, and so to nobody else.
import { i18n, isMessageKey, type MessageKey } from '../i18n/i18n.svelte.ts';
import af from './words/af.json';
import en from './words/en.json';

export type WordKey = keyof typeof en;

const WORDS: Record<typeof i18n.language, Record<WordKey, string>> = { en, af };

export function isWordKey(key: string): key is WordKey {
	return Object.hasOwn(en, key);
}

/** Like the `t` of every page, and with the words of the panel as well. A key with `.one` is for one of it. */
export function t(key: WordKey | MessageKey, params: Record<string, string | number> = {}): string {
	if (isMessageKey(key)) return i18n.t(key, params);
	const single = `${key}.one`;
	const words = WORDS[i18n.language][params.count === 1 && isWordKey(single) ? single : key];
	return words.replace(/\{(\w+)\}/g, (placeholder, name: string) => String(params[name] ?? placeholder));
}
