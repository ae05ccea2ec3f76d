// How a demonstration stands, told by its stream while the panel is open, and what one may do to it.
export interface Figures {
	readonly per_s: Readonly<Record<'arrivals' | 'holds' | 'sold' | 'refused', number>>;
	readonly totals: Readonly<Record<'failed', number>>;
	readonly people: number;
	readonly watching: number;
	readonly p50_ms: number | null;
	readonly p95_ms: number | null;
}

export interface Process {
	readonly name: string;
	readonly is_up: boolean;
	readonly deaths: number;
}

export interface State {
	readonly organization: { readonly slug: string };
	readonly logins: Readonly<Record<string, string>>;
	readonly password: string;
	readonly crowd: { readonly per_s: number; readonly figures: Figures | null };
	readonly levels: readonly number[];
	readonly processes: readonly Process[];
	readonly redis: { readonly is_up: boolean };
	readonly seen: {
		readonly readiness: 'ready' | 'degraded' | 'not_ready';
		readonly breaker: 'closed' | 'half_open' | 'open';
		readonly tiers: { readonly memory: number | null; readonly redis: number | null; readonly postgres: number; readonly agree: boolean } | null;
	};
	/** The last minute, the first time. */
	readonly history?: readonly Figures[];
}

export interface Check {
	readonly name: string;
	readonly found: number;
}

export interface Finding {
	readonly check: string;
	readonly id: string;
	readonly why: string;
}

export interface Verdict {
	readonly is_well: boolean;
	readonly seconds: number;
	readonly findings: readonly Finding[];
}

/** How much of the past is drawn. */
export const MINUTE = 60;
const AGAIN_MS = 1000;

export class Demo {
	state = $state.raw<State | null>(null);
	/** The newest last. */
	past = $state.raw<readonly Figures[]>([]);
	isLive = $state(false);
	/** What was asked for last was not done. */
	hasFailed = $state(false);
	/** What is being done now, so that it is not asked for twice. */
	doing = $state<string | null>(null);

	#stream: EventSource | null = null;
	#timer: ReturnType<typeof setTimeout> | undefined;

	/** Follows the demonstration until what this returns is called. */
	follow(): () => void {
		this.#open();
		return () => {
			clearTimeout(this.#timer);
			this.#stream?.close();
			this.#stream = null;
			this.isLive = false;
		};
	}

	setCrowd = (perS: number) => this.#do('crowd', 'crowd', { per_s: perS });
	turnRedis = (up: boolean) => this.#do('redis', 'redis', { up });
	kill = (kind: 'web' | 'worker') => this.#do(`kill ${kind}`, 'kill', { kind });

	take(state: State): void {
		const before = this.state?.crowd.figures;
		const { figures } = state.crowd;
		if (state.history) this.past = state.history.slice(-MINUTE);
		// Told twice for each time that the crowd says something.
		else if (figures && JSON.stringify(figures) !== JSON.stringify(before)) this.past = [...this.past, figures].slice(-MINUTE);
		this.state = state;
		this.isLive = true;
	}

	#open(): void {
		const stream = new EventSource('/api/demo/stream');
		this.#stream = stream;
		stream.addEventListener('state', ({ data }: MessageEvent<string>) => this.take(JSON.parse(data) as State));
		stream.addEventListener('error', () => {
			this.isLive = false;
			// The browser comes back by itself when the line breaks, and not when it was refused.
			if (stream.readyState !== EventSource.CLOSED || stream !== this.#stream) return;
			this.#timer = setTimeout(() => this.#open(), AGAIN_MS);
		});
	}

	async #do(what: string, path: string, body: object): Promise<void> {
		this.doing = what;
		this.hasFailed = false;
		try {
			// Whoever is signed in, this is not theirs to prove: without the cookie nobody asks in their name.
			const answer = await fetch(`/api/demo/${path}`, { method: 'POST', credentials: 'omit', headers: { 'X-Demo': '1' }, body: JSON.stringify(body) });
			this.hasFailed = !answer.ok;
		} catch {
			this.hasFailed = true;
		}
		this.doing = null;
	}
}

/** One run of the audit after the other. */
export class Audit {
	all = $state(0);
	checks = $state.raw<readonly Check[]>([]);
	verdict = $state.raw<Verdict | null>(null);
	standing = $state<'idle' | 'asking' | 'done' | 'broken'>('idle');

	#stream: EventSource | null = null;

	run(): void {
		this.stop();
		this.standing = 'asking';
		this.checks = [];
		this.verdict = null;
		this.all = 0;
		const stream = new EventSource('/api/demo/verify');
		this.#stream = stream;
		const hear = <T>(name: string, listener: (said: T) => void) =>
			stream.addEventListener(name, ({ data }: MessageEvent<string>) => listener(JSON.parse(data) as T));
		hear('begin', ({ checks }: { checks: number }) => (this.all = checks));
		hear('check', (check: Check) => (this.checks = [...this.checks, check]));
		hear('done', (verdict: Verdict) => {
			this.stop();
			this.verdict = verdict;
			this.standing = 'done';
		});
		stream.addEventListener('error', () => {
			this.stop();
			this.standing = 'broken';
		});
	}

	/** A stream that has ended would be begun anew by the browser. */
	stop(): void {
		this.#stream?.close();
		this.#stream = null;
	}
}

/** The step of the slider that is nearest to so many. */
export function levelOf(levels: readonly number[], perS: number): number {
	return levels.reduce((best, level, at) => (Math.abs(level - perS) < Math.abs((levels[best] ?? 0) - perS) ? at : best), 0);
}

/** A line through values from left to right, in a box of 100 by 30, for an `svg`. */
export function lineThrough(values: readonly number[], max: number): string {
	const step = 100 / (MINUTE - 1);
	const left = 100 - step * (values.length - 1);
	const top = Math.max(max, 1);
	return values.map((value, at) => `${at === 0 ? 'M' : 'L'}${(left + at * step).toFixed(1)} ${(29 - (Math.min(value, top) / top) * 27).toFixed(1)}`).join('');
}
