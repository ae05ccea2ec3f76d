// Another date for an event, as its organiser and the platform give it: known or not, and what the public is told of why.
import { anything, filledIn } from '../lib/form.svelte.ts';
import { fromLocalInput } from '../lib/venue-time.ts';
import type { Deed } from './model.ts';
import { clockTime } from './values.ts';

const MOMENTS = ['start_at', 'end_at', 'sale_end_at'] as const;
type Typed = Readonly<Record<(typeof MOMENTS)[number] | 'public_reason' | 'public_text', string>>;

export class NewDate {
	isDated = $state(false);
	start = $state('');
	/** Why, to the public: one of the reasons everybody knows, or `other`. */
	told = $state('');

	readonly #deed: () => Deed;
	readonly #zone: () => string;

	constructor(deed: () => Deed, zone: () => string) {
		this.#deed = deed;
		this.#zone = zone;
	}

	get isAsked(): boolean {
		return this.#deed() === 'reschedule' || (this.#deed() === 'postpone' && this.isDated);
	}

	/** In the order in which they stand: the first that is wrong gets the focus. */
	readonly rules = {
		start_at: (value: string) => (this.isAsked ? clockTime(this.#zone, 'admin.field.start.missing')(value) : null),
		end_at: (value: string) => (this.isAsked ? (clockTime(this.#zone, null)(value) ?? this.#after(value)) : null),
		sale_end_at: (value: string) => (this.isAsked ? clockTime(this.#zone, null)(value) : null),
		public_reason: anything,
		public_text: (value: string) => (this.told === 'other' ? filledIn('admin.deed.public.missing')(value) : null),
	};

	/** What is sent. */
	body(values: Typed): Partial<Record<(typeof MOMENTS)[number] | 'postponement_reason', string>> {
		const date = (this.isAsked ? MOMENTS : []).flatMap((name) => {
			const moment = fromLocalInput(values[name], this.#zone());
			return moment === null ? [] : [[name, moment]];
		});
		const said = values.public_reason === 'other' ? values.public_text.trim() : values.public_reason;
		const open = this.#deed() === 'postpone' && said !== '' ? { postponement_reason: said } : {};
		return { ...open, ...Object.fromEntries(date) };
	}

	#after(value: string): 'admin.field.end.before' | null {
		return value !== '' && value <= this.start ? 'admin.field.end.before' : null;
	}
}
