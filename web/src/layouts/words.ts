// The words of the layout pages. They come with these pages and not with the first one, which those who buy wait for.
import { i18n, isMessageKey, type MessageKey } from '../i18n/i18n.svelte.ts';
import af from './words/af.json';
import en from './words/en.json';

export type WordKey = keyof typeof en;

const WORDS: Record<typeof i18n.language, Record<WordKey, string>> = { en, af };

export function isWordKey(key: string): key is WordKey {
	return Object.hasOwn(en, key);
}

/** Like the `t` of every page, and with its words as well. */
export function t(key: WordKey | MessageKey, params: Record<string, string | number> = {}): string {
	if (isMessageKey(key)) return i18n.t(key, params);
	return WORDS[i18n.language][key].replace(/\{(\w+)\}/g, (placeholder, name: string) => String(params[name] ?? placeholder));
}

/** A number as people here write it: 60 000. */
export function count(value: number): string {
	return new Intl.NumberFormat(`${i18n.language}-ZA`).format(value);
}
