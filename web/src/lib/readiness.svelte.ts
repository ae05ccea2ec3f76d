// How this installation is doing: asks GET /readyz while the page is visible and keeps the last honest answer.

export const REFRESH_MS = 10_000;
/** A shorter wait shows nothing: a skeleton that flickers is worse than a short stillness. */
export const PATIENCE_MS = 150;
const ANSWER_MAX_MS = 8_000;

const NAMES = ['database', 'schema', 'redis'] as const;
type CheckName = (typeof NAMES)[number];
export type CheckState = 'ok' | 'failed' | 'away' | 'unknown';
/** Every pair of check and state that can be; Redis is never missed enough to be a failure. */
type Standing = `${'database' | 'schema'}.${'ok' | 'failed' | 'unknown'}` | `redis.${'ok' | 'away' | 'unknown'}`;

export interface Check {
	readonly name: CheckName;
	readonly state: CheckState;
	readonly standing: Standing;
}

const STATUSES = ['ready', 'degraded', 'not_ready'] as const;
export type Status = (typeof STATUSES)[number] | 'waiting' | 'unreachable';

interface Answer {
	readonly status: (typeof STATUSES)[number];
	readonly version: string;
	readonly checks: Record<CheckName, { readonly state: string }>;
}

/** Something between us and the server may answer in its place, so the shape is looked at, not trusted. */
function isAnswer(body: unknown): body is Answer {
	const answer = body as Partial<Answer> | null;
	return (
		STATUSES.some((status) => status === answer?.status) &&
		typeof answer?.version === 'string' &&
		NAMES.every((name) => typeof answer.checks?.[name]?.state === 'string')
	);
}

function readChecks(answer: Answer | null): Check[] {
	return NAMES.map((name): Check => {
		// The schema is read from the database: when that is gone, nobody knows.
		const isKnown = answer !== null && !(name === 'schema' && answer.checks.database.state !== 'ok');
		const isOk = isKnown && answer.checks[name].state === 'ok';
		if (name === 'redis') {
			const state = isOk ? 'ok' : isKnown ? 'away' : 'unknown';
			return { name, state, standing: `${name}.${state}` };
		}
		const state = isOk ? 'ok' : isKnown ? 'failed' : 'unknown';
		return { name, state, standing: `${name}.${state}` };
	});
}

export class Readiness {
	status = $state<Status>('waiting');
	checks = $state.raw<readonly Check[]>(readChecks(null));
	version = $state<string | null>(null);
	/** The last time the server answered; kept when it falls silent. */
	answeredAt = $state.raw<Date | null>(null);
	isAsking = $state(false);
	/** The present question has been open long enough for the person to see that it is. */
	isSlow = $state(false);

	readonly #fetch: typeof fetch;
	#nextAsk: ReturnType<typeof setTimeout> | undefined;
	#isStarted = false;

	constructor(fetcher: typeof fetch) {
		this.#fetch = fetcher;
	}

	start(): void {
		this.#isStarted = true;
		document.addEventListener('visibilitychange', this.#onVisibility);
		this.#onVisibility();
	}

	stop(): void {
		this.#isStarted = false;
		document.removeEventListener('visibilitychange', this.#onVisibility);
		clearTimeout(this.#nextAsk);
	}

	/** One question at a time; asking while one is open changes nothing. */
	async ask(): Promise<void> {
		if (this.isAsking) return;
		clearTimeout(this.#nextAsk);
		this.isAsking = true;
		const patience = setTimeout(() => (this.isSlow = true), PATIENCE_MS);
		this.#take(await this.#answer());
		clearTimeout(patience);
		this.isSlow = false;
		this.isAsking = false;
		if (this.#isStarted && document.visibilityState === 'visible') {
			this.#nextAsk = setTimeout(() => void this.ask(), REFRESH_MS);
		}
	}

	async #answer(): Promise<Answer | null> {
		try {
			// "Not ready" comes as 503 with the same body, so the body decides and not the HTTP status.
			const response = await this.#fetch('/readyz', {
				headers: { accept: 'application/json' },
				cache: 'no-store',
				signal: AbortSignal.timeout(ANSWER_MAX_MS),
			});
			const body: unknown = await response.json();
			return isAnswer(body) ? body : null;
		} catch {
			return null;
		}
	}

	#take(answer: Answer | null): void {
		this.status = answer?.status ?? 'unreachable';
		this.checks = readChecks(answer);
		if (answer === null) return;
		this.version = answer.version;
		this.answeredAt = new Date();
	}

	/** A page in the background asks nothing; when it comes back its answer is old, so it asks at once. */
	#onVisibility = (): void => {
		clearTimeout(this.#nextAsk);
		if (document.visibilityState === 'visible') void this.ask();
	};
}
