// Work that is asked for often and done seldom: at once when it has rested, otherwise when its rest is over, and never twice at a
// time. However many ask meanwhile, it is done once more for all of them.
export class Throttled {
	readonly #work: () => Promise<void>;
	readonly #restMs: number;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#restsUntil = -Infinity;
	#isAtWork = false;
	#isAsked = false;
	#isOver = false;

	constructor(work: () => Promise<void>, restMs: number) {
		this.#work = work;
		this.#restMs = restMs;
	}

	ask(): void {
		this.#isAsked = true;
		if (this.#isAtWork || this.#timer !== undefined || this.#isOver) return;
		const wait = this.#restsUntil - performance.now();
		if (wait <= 0) void this.#do();
		else this.#timer = setTimeout(() => void this.#do(), wait);
	}

	close(): void {
		this.#isOver = true;
		clearTimeout(this.#timer);
	}

	async #do(): Promise<void> {
		this.#timer = undefined;
		this.#isAsked = false;
		this.#isAtWork = true;
		try {
			await this.#work();
		} finally {
			this.#isAtWork = false;
			this.#restsUntil = performance.now() + this.#restMs;
			if (this.#isAsked) this.ask();
		}
	}
}
