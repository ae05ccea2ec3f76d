// What the generator would make of a draft, drawn while it is typed. Asked for when the typing rests; of several answers on
// their way only the last counts, and the picture stays until there is another.
import { Refusal } from '../api/client.ts';
import { isFaulty, preview, type Fault, type GenerateBody } from './asking.ts';
import type { Geometry } from './geometry.ts';

const REST_MS = 220;
/** After this a wait is shown. */
const PATIENCE_MS = 150;

export class Preview {
	geometry = $state.raw<Geometry | null>(null);
	faults = $state.raw<readonly Fault[]>([]);
	refusal = $state.raw<Refusal | null>(null);
	/** It has taken long enough for the person to see that it is under way. */
	isSlow = $state(false);

	#rest: ReturnType<typeof setTimeout> | undefined;
	#patience: ReturnType<typeof setTimeout> | undefined;
	#asked: AbortController | null = null;

	/** The first time at once, then when nothing more is typed. */
	ask(body: GenerateBody): void {
		this.stop();
		this.#rest = setTimeout(() => void this.#fetch(body), this.geometry === null ? 0 : REST_MS);
	}

	/** What is wrong is known without asking. */
	refuse(faults: readonly Fault[]): void {
		this.stop();
		this.faults = faults;
	}

	stop(): void {
		clearTimeout(this.#rest);
		clearTimeout(this.#patience);
		this.#asked?.abort();
		this.#asked = null;
		this.isSlow = false;
	}

	async #fetch(body: GenerateBody): Promise<void> {
		const asked = new AbortController();
		this.#asked = asked;
		this.#patience = setTimeout(() => (this.isSlow = true), PATIENCE_MS);
		try {
			const answer = await preview(body, asked.signal);
			if (this.#asked !== asked) return;
			this.faults = isFaulty(answer) ? answer.faults : [];
			if (!isFaulty(answer)) this.geometry = answer;
			this.refusal = null;
		} catch (failure) {
			if (!(failure instanceof Refusal)) throw failure;
			if (this.#asked === asked) this.refusal = failure;
		} finally {
			if (this.#asked === asked) this.stop();
		}
	}
}
