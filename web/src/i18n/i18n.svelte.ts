// The language of the page and its words. Both languages ship together: they are small, and switching never waits.
import { readSaved, save } from '../lib/saved.ts';
import af from './af.json';
import en from './en.json';

export const LANGUAGES = { en: 'English', af: 'Afrikaans' } as const;
export type Language = keyof typeof LANGUAGES;
export type MessageKey = keyof typeof en;

const MESSAGES: Record<Language, Record<MessageKey, string>> = { en, af };

function isLanguage(value: string | null): value is Language {
	return value !== null && value in LANGUAGES;
}

function firstLanguage(): Language {
	const saved = readSaved('voelgoed.language');
	if (isLanguage(saved)) return saved;
	const [asked = ''] = navigator.language.toLowerCase().split('-');
	return isLanguage(asked) ? asked : 'en';
}

export class I18n {
	#language = $state<Language>(firstLanguage());
	#clock = $derived(
		new Intl.DateTimeFormat(`${this.#language}-ZA`, {
			hour: '2-digit',
			minute: '2-digit',
			second: '2-digit',
			hourCycle: 'h23',
		}),
	);

	constructor() {
		document.documentElement.lang = this.#language;
	}

	get language(): Language {
		return this.#language;
	}

	choose(language: Language): void {
		this.#language = language;
		document.documentElement.lang = language;
		save('voelgoed.language', language);
	}

	/** An own field, so that it can be passed around without losing its instance. */
	t = (key: MessageKey, params: Record<string, string | number> = {}): string =>
		MESSAGES[this.#language][key].replace(/\{(\w+)\}/g, (placeholder, name: string) =>
			String(params[name] ?? placeholder),
		);

	clock = (at: Date): string => this.#clock.format(at);
}

export const i18n = new I18n();
export const { t, clock } = i18n;
