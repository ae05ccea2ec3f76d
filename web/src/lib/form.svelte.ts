// A form on its way: what is wrong with which field, what the server said, and never twice at once. The values are read
// from the form itself when it is sent, so that whatever filled it in (hand, browser, password manager) counts.
import { Refusal, type RefusalCode } from '../api/client.ts';
import type { MessageKey } from '../i18n/i18n.svelte.ts';
import { PATIENCE_MS } from './readiness.svelte.ts';

/** Says what is wrong with a value; null when nothing is. */
type Rule = (value: string) => MessageKey | null;

export const PASSWORD_CHARS_MIN = 10;
const PASSWORD_CHARS_MAX = 200;
const PASSWORD_DIFFERENT_MIN = 4;

export const anything: Rule = () => null;
export const filledIn =
	(missing: MessageKey): Rule =>
	(value) =>
		value.trim() === '' ? missing : null;
/** No stricter than the server: an address that works must never be turned away here. */
export const email: Rule = (value) => {
	if (value.trim() === '') return 'field.email.missing';
	return /^[^@\s]+@[^@\s]+$/.test(value.trim()) ? null : 'field.email.invalid';
};
/** The server has the last word; this only says it sooner. */
export const newPassword: Rule = (value) => {
	const characters = [...value];
	if (characters.length < PASSWORD_CHARS_MIN) return 'field.password.short';
	if (characters.length > PASSWORD_CHARS_MAX) return 'field.password.long';
	return new Set(characters).size < PASSWORD_DIFFERENT_MIN ? 'field.password.monotonous' : null;
};

interface Plan<Name extends string> {
	readonly rules: Readonly<Record<Name, Rule>>;
	readonly send: (values: Record<NoInfer<Name>, string>) => Promise<void>;
	/** Refusals that belong beside a field. */
	readonly blame?: Partial<Record<RefusalCode, { readonly field: NoInfer<Name>; readonly says: MessageKey }>>;
}

export class Form<Name extends string> {
	errors = $state.raw<Partial<Record<Name, MessageKey>>>({});
	/** What concerns the form as a whole. */
	refusal = $state.raw<Refusal | null>(null);
	isBusy = $state(false);
	/** It has taken long enough for the person to see that it is under way. */
	isSlow = $state(false);
	isDone = $state(false);

	readonly #plan: Plan<Name>;

	constructor(plan: Plan<Name>) {
		this.#plan = plan;
	}

	onsubmit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }): Promise<void> => {
		event.preventDefault();
		const form = event.currentTarget;
		if (this.isBusy) return;
		const values = this.#read(form);
		this.errors = this.#check(values);
		this.refusal = null;
		this.isDone = false;
		if (Object.keys(this.errors).length === 0) await this.#send(values);
		const wrong = this.#names().find((name) => this.errors[name]);
		if (wrong) (form.elements.namedItem(wrong) as HTMLElement | null)?.focus();
	};

	/** What is being mended is no longer marked as wrong. */
	oninput = (event: Event): void => {
		const { name } = event.target as HTMLInputElement;
		this.isDone = false;
		if (name in this.errors) this.errors = { ...this.errors, [name]: undefined };
	};

	async #send(values: Record<Name, string>): Promise<void> {
		this.isBusy = true;
		const patience = setTimeout(() => (this.isSlow = true), PATIENCE_MS);
		try {
			await this.#plan.send(values);
			this.isDone = true;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			this.#place(failure);
		} finally {
			clearTimeout(patience);
			this.isBusy = this.isSlow = false;
		}
	}

	#place(refusal: Refusal): void {
		const blamed = this.#plan.blame?.[refusal.code as RefusalCode];
		if (blamed) {
			this.errors = { [blamed.field]: blamed.says } as Partial<Record<Name, MessageKey>>;
			return;
		}
		const fields = this.#names().filter((name) => refusal.fields.includes(name));
		this.errors = Object.fromEntries(fields.map((name) => [name, 'field.refused'])) as typeof this.errors;
		this.refusal = refusal;
	}

	#check(values: Record<Name, string>): Partial<Record<Name, MessageKey>> {
		const wrong = this.#names().flatMap((name) => {
			const says = this.#plan.rules[name](values[name]);
			return says ? [[name, says] as const] : [];
		});
		return Object.fromEntries(wrong) as Partial<Record<Name, MessageKey>>;
	}

	#read(form: HTMLFormElement): Record<Name, string> {
		const data = new FormData(form);
		return Object.fromEntries(this.#names().map((name) => [name, String(data.get(name) ?? '')])) as Record<
			Name,
			string
		>;
	}

	#names(): Name[] {
		return Object.keys(this.#plan.rules) as Name[];
	}
}
