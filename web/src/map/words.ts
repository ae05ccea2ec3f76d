// The words of the seat map. They come with the map and not with the first page.
import { i18n, isMessageKey, type MessageKey } from '../i18n/i18n.svelte.ts';
import af from './words/af.json';
import en from './words/en.json';

export type WordKey = keyof typeof en;

const WORDS: Record<typeof i18n.language, Record<WordKey, string>> = { en, af };

export function isWordKey(key: string): key is WordKey {
	return Object.hasOwn(en, key);
}

/** Like the `t` of every page, and with the words of the map as well. */
export function t(key: WordKey | MessageKey, params: Record<string, string | number> = {}): string {
	if (isMessageKey(key)) return i18n.t(key, params);
	return WORDS[i18n.language][key].replace(/\{(\w+)\}/g, (placeholder, name: string) => String(params[name] ?? placeholder));
}

/** Made once for a language and a form: they take longer to make than to use. */
const forms = new Map<string, Intl.NumberFormat>();

export function numberForm(options: Intl.NumberFormatOptions = {}): Intl.NumberFormat {
	const key = `${i18n.language} ${Object.values(options).join(' ')}`;
	const known = forms.get(key);
	if (known) return known;
	const made = new Intl.NumberFormat(`${i18n.language}-ZA`, options);
	forms.set(key, made);
	return made;
}

/** A number as people here write it: 60 000. */
export function count(value: number): string {
	return numberForm().format(value);
}
