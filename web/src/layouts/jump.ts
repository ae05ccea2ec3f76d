// Where in a text something stands: the value that a path of a JSON document means, or the line of a sheet. Reads over the
// text once and builds nothing of it, so that it is quick for large documents and does not mind what follows a mistake.

export interface Place {
	readonly start: number;
	readonly end: number;
}

/** The place of `zones[0].rows[2].seats.x[7]` or `line 17, column x`; null where it cannot be found. */
export function placeOf(text: string, path: string): Place | null {
	const line = /^line (\d+)/.exec(path)?.[1];
	if (line !== undefined) return lineOf(text, Number(line));
	const steps = [...path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, key, index]) => key ?? Number(index));
	const reader = new Reader(text);
	for (const step of steps) {
		const isFound = typeof step === 'number' ? reader.intoItem(step) : reader.intoKey(step);
		if (!isFound) return reader.lastPlace();
	}
	return reader.lastPlace();
}

export function lineOf(text: string, number: number): Place | null {
	let start = 0;
	for (let line = 1; line < number; line++) {
		const end = text.indexOf('\n', start);
		if (end < 0) return null;
		start = end + 1;
	}
	const end = text.indexOf('\n', start);
	return { start, end: end < 0 ? text.length : end };
}

class Reader {
	readonly #text: string;
	#at: number;
	/** The innermost value that was found: what is missing is missing there. */
	#value = 0;

	constructor(text: string) {
		this.#text = text;
		this.#at = 0;
		this.#blank();
		this.#value = this.#at;
	}

	lastPlace(): Place | null {
		const end = this.#endOf(this.#value);
		if (end === null) return null;
		// A whole object would be too much to show: its first line is enough.
		const line = this.#text.indexOf('\n', this.#value);
		return { start: this.#value, end: line < 0 ? end : Math.min(end, line) };
	}

	intoItem(index: number): boolean {
		if (!this.#open('[')) return false;
		for (let at = 0; ; at++) {
			if (this.#text[this.#at] === ']') return false;
			if (at === index) return this.#enter();
			if (!this.#next()) return false;
		}
	}

	intoKey(key: string): boolean {
		if (!this.#open('{')) return false;
		for (;;) {
			const start = this.#at;
			const end = this.#text[start] === '"' ? this.#endOf(start) : null;
			if (end === null) return false;
			this.#at = end;
			this.#blank();
			if (this.#text[this.#at] !== ':') return false;
			this.#at++;
			this.#blank();
			if (this.#text.slice(start + 1, end - 1) === key) return this.#enter();
			if (!this.#next()) return false;
		}
	}

	#enter(): boolean {
		this.#value = this.#at;
		return true;
	}

	#open(bracket: string): boolean {
		this.#at = this.#value;
		if (this.#text[this.#at] !== bracket) return false;
		this.#at++;
		this.#blank();
		return true;
	}

	/** Over the value that begins here, and the comma after it. */
	#next(): boolean {
		const end = this.#endOf(this.#at);
		if (end === null) return false;
		this.#at = end;
		this.#blank();
		if (this.#text[this.#at] !== ',') return false;
		this.#at++;
		this.#blank();
		return true;
	}

	#blank(): void {
		while (this.#at < this.#text.length && /\s/.test(this.#text[this.#at] as string)) this.#at++;
	}

	#endOf(start: number): number | null {
		const first = this.#text[start];
		if (first === undefined) return null;
		if (first === '"') {
			for (let at = start + 1; at < this.#text.length; at++) {
				if (this.#text[at] === '\\') at++;
				else if (this.#text[at] === '"') return at + 1;
			}
			return null;
		}
		if (first !== '{' && first !== '[') {
			const plain = /[^\s,\]}]*/y;
			plain.lastIndex = start;
			return start + (plain.exec(this.#text)?.[0].length ?? 0);
		}
		let depth = 0;
		for (let at = start; at < this.#text.length; at++) {
			const sign = this.#text[at];
			if (sign === '"') {
				const end = this.#endOf(at);
				if (end === null) return null;
				at = end - 1;
			} else if (sign === '{' || sign === '[') depth++;
			else if ((sign === '}' || sign === ']') && --depth === 0) return at + 1;
		}
		return null;
	}
}
