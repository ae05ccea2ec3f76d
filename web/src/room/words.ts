// The words of the room where a sale is watched. They come with it and not with the first page.
import { i18n, isMessageKey, type MessageKey } from '../i18n/i18n.svelte.ts';
import { isWordKey as isMapKey, numberForm, t as mapWords, type WordKey as MapKey } from '../map/words.ts';
import af from './words/af.json';
import en from './words/en.json';

export { count } from '../map/words.ts';
export type WordKey = keyof typeof en;

const WORDS: Record<typeof i18n.language, Record<WordKey, string>> = { en, af };

export function isWordKey(key: string): key is WordKey {
	return Object.hasOwn(en, key);
}

/** Like the `t` of every page, and with the words of the map and of the room as well. A key with `.one` is for one of it. */
export function t(key: WordKey | MapKey | MessageKey, params: Record<string, string | number> = {}): string {
	if (isMessageKey(key)) return i18n.t(key, params);
	if (isMapKey(key)) return mapWords(key, params);
	const single = `${key}.one`;
	const words = WORDS[i18n.language][params.count === 1 && isWordKey(single) ? single : key];
	return words.replace(/\{(\w+)\}/g, (placeholder, name: string) => String(params[name] ?? placeholder));
}

/** "71 %", "1,8 %"; of nothing it is a dash. */
export function percent(part: number, whole: number): string {
	if (whole === 0) return '–';
	const share = part / whole;
	// Nothing that is not all is told as all, and nothing that is there as nothing.
	const isNearEnd = share > 0 && share < 1 && (share < 0.1 || share > 0.99);
	return numberForm({ style: 'percent', maximumFractionDigits: isNearEnd ? 1 : 0 }).format(share);
}
