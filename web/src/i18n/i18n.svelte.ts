// The language of the page and its words. Both languages ship together: they are small, and switching never waits.
import { readSaved, save } from '../lib/saved.ts';
import af from './af.json';
import en from './en.json';

export const LANGUAGES = { en: 'English', af: 'Afrikaans' } as const;
export type Language = keyof typeof LANGUAGES;
export type MessageKey = keyof typeof en;

const MESSAGES: Record<Language, Record<MessageKey, string>> = { en, af };

const DAY = { day: 'numeric', month: 'long', year: 'numeric' } as const;
const MINUTE_S = 60;
const HOUR_S = 3600;

export function isMessageKey(key: string): key is MessageKey {
	return Object.hasOwn(en, key);
}

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
	#day = $derived(new Intl.DateTimeFormat(`${this.#language}-ZA`, DAY));
	#moment = $derived(
		new Intl.DateTimeFormat(`${this.#language}-ZA`, {
			...DAY,
			hour: '2-digit',
			minute: '2-digit',
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

	/** The language of the account: taken where the person has not chosen one in this browser. */
	suggest(language: string): void {
		if (readSaved('voelgoed.language') !== null || !isLanguage(language)) return;
		this.#language = language;
		document.documentElement.lang = language;
	}

	/** An own field, so that it can be passed around without losing its instance. */
	t = (key: MessageKey, params: Record<string, string | number> = {}): string =>
		MESSAGES[this.#language][key].replace(/\{(\w+)\}/g, (placeholder, name: string) =>
			String(params[name] ?? placeholder),
		);

	clock = (at: Date): string => this.#clock.format(at);
	day = (at: Date): string => this.#day.format(at);
	moment = (at: Date): string => this.#moment.format(at);

	/** How long to wait, rounded up to what a person would say. */
	wait = (seconds: number | null): string => {
		if (seconds === null) return this.t('wait.unknown');
		const [unit, length] =
			seconds < MINUTE_S ? ['second', 1] : seconds < HOUR_S ? ['minute', MINUTE_S] : ['hour', HOUR_S];
		return new Intl.NumberFormat(`${this.#language}-ZA`, { style: 'unit', unit, unitDisplay: 'long' }).format(
			Math.ceil(Math.max(1, seconds) / length),
		);
	};
}

export const i18n = new I18n();
export const { t, clock, day, moment } = i18n;
