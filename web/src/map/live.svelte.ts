// What becomes of an event's places while somebody looks: the server's stream, read once per browser. The tab that has the
// lock reads it and hands every frame to the others; when it goes, another takes over where it has got to. A page without
// locks or channels reads by itself. Nothing that is older than what is shown gets through, unless the server says that
// what is shown has to be replaced.
import type { Counts, Delta, Snapshot } from './map.svelte.ts';

/** Who wants to know. */
export interface Listener {
	/** All of it. `isReplacing`: take it though it is older than what is shown. */
	snapshot(snapshot: Snapshot, isReplacing: boolean): void;
	delta(delta: Delta): void;
	/** The event itself has changed: what it is now; `gone` when it cannot be seen any more. */
	status(status: string): void;
	/** All of it as it is shown now, for a tab that has come. */
	shown(): Pick<Snapshot, 'seat_count' | 'statuses' | 'zones'>;
}

/** One frame of the stream. */
export interface Frame {
	readonly name: string;
	readonly data: string;
	/** The name of the map that it leads to, where it is about places; it begins with the epoch. */
	readonly id: string;
}

/** What tabs say to each other. */
type Word =
	| { readonly is: 'frame'; readonly frame: Frame }
	| { readonly is: 'standing'; readonly standing: Standing }
	/** The stream is alive though nothing happens. */
	| { readonly is: 'beat' }
	/** A tab has come, or has missed something, and wants to know how things stand. */
	| { readonly is: 'hello' }
	/** What this browser holds has changed. */
	| { readonly is: 'basket' };

type Standing = 'opening' | 'live' | 'away';

/** What of the browser this needs; a test has its own. */
export interface Surroundings {
	readonly fetch: typeof fetch;
	readonly locks: Pick<LockManager, 'request'> | null;
	readonly channel: ((name: string) => Pick<BroadcastChannel, 'postMessage' | 'close' | 'onmessage'>) | null;
	readonly random: () => number;
}

const WAIT_FIRST_MS = 1000;
const WAIT_MAX_MS = 30_000;
/** The server shows a sign of life every 15 s: who hears nothing for so long is cut off without knowing. */
const SILENCE_MAX_MS = 40_000;
/** A frame is never that long: 100,000 seats take 36 KB. */
const UNREAD_CHARS_MAX = 1_000_000;
/** Changes that come before the first map wait for it; more are told by a map of their own. */
const EARLY_MAX = 500;

export function surroundings(): Surroundings {
	return {
		fetch: (...given) => globalThis.fetch(...given),
		// Pages that came without TLS have none.
		locks: (navigator as { locks?: LockManager }).locks ?? null,
		channel: typeof BroadcastChannel === 'undefined' ? null : (name) => new BroadcastChannel(name),
		random: Math.random,
	};
}

export class Live {
	/** `opening` until it is known whether there is a stream at all. */
	standing = $state<Standing>('opening');

	readonly #eventId: string;
	readonly #listener: Listener;
	readonly #around: Surroundings;
	/** Another tab of this browser has changed what is held. */
	readonly #onbasket: () => void;
	#channel: ReturnType<NonNullable<Surroundings['channel']>> | null = null;
	#stopping = new AbortController();
	#reading: AbortController | null = null;
	#isLeader = false;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#silence: ReturnType<typeof setTimeout> | undefined;
	#failures = 0;
	#epoch = -1;
	#version = -1;
	/** What the server calls the map that is shown; empty where it has no name for it. */
	#id = '';
	/** The next map is taken whatever its number. */
	#isToBeReplaced = false;
	/** Whether what is shown is what the tab that reads has shown: only then do its changes lead to the same. */
	#isInStep = false;
	#early: { readonly id: string; readonly delta: Delta }[] = [];
	/** What the event is, and the number of its last change. */
	#event: { readonly status: string; readonly version: number } | null = null;

	constructor(eventId: string, listener: Listener, onbasket: () => void = () => {}, around: Surroundings = surroundings()) {
		this.#eventId = eventId;
		this.#listener = listener;
		this.#onbasket = onbasket;
		this.#around = around;
	}

	/** Follows the event until what this returns is called. */
	start(): () => void {
		this.#open();
		const online = () => this.standing === 'away' && this.#leads && void this.#read();
		// A page that the browser keeps for whoever goes back reads nothing meanwhile, and does not keep other tabs from it.
		const hide = () => this.#close();
		const show = ({ persisted }: PageTransitionEvent) => persisted && this.#open();
		globalThis.addEventListener?.('online', online);
		globalThis.addEventListener?.('pagehide', hide);
		globalThis.addEventListener?.('pageshow', show);
		return () => {
			globalThis.removeEventListener?.('online', online);
			globalThis.removeEventListener?.('pagehide', hide);
			globalThis.removeEventListener?.('pageshow', show);
			this.#close();
		};
	}

	#open(): void {
		const { locks, channel } = this.#around;
		this.standing = 'opening';
		this.#stopping = new AbortController();
		const { signal } = this.#stopping;
		if (channel) {
			this.#channel = channel(`places ${this.#eventId}`);
			this.#channel.onmessage = ({ data }: MessageEvent<Word>) => this.#hear(data);
		}
		if (locks && this.#channel) {
			this.#tell({ is: 'hello' });
			this.#listen();
			// The lock is kept as long as this page is there; then the tab that has waited longest has it.
			const lead = () => {
				if (signal.aborted) return;
				this.#isLeader = true;
				void this.#read();
				return new Promise<void>((done) => signal.addEventListener('abort', () => done()));
			};
			locks.request(`places ${this.#eventId}`, { signal }, lead).catch(() => {});
		} else this.#leadAlone();
	}

	#close(): void {
		this.#stopping.abort();
		this.#reading?.abort();
		clearTimeout(this.#timer);
		clearTimeout(this.#silence);
		this.#channel?.close();
		this.#channel = null;
		this.#isLeader = false;
	}

	/** Takes a map, by the name that the server has for it; false when what is shown is newer. */
	load(snapshot: Snapshot, id = ''): boolean {
		const { epoch, map_version: version } = snapshot;
		const isReplacing = this.#isToBeReplaced;
		if (!isReplacing && (epoch < this.#epoch || (epoch === this.#epoch && version < this.#version))) return false;
		[this.#epoch, this.#version, this.#id, this.#isToBeReplaced] = [epoch, version, id, false];
		this.#listener.snapshot(snapshot, isReplacing);
		for (const early of this.#early.splice(0)) this.#change(early.id, early.delta);
		return true;
	}

	/** Tells the other tabs that what this browser holds has changed. */
	tellBasket(): void {
		this.#tell({ is: 'basket' });
	}

	/** Takes a frame in, wherever it was read. */
	take({ name, data, id }: Frame): void {
		let said: Record<string, unknown>;
		try {
			said = JSON.parse(data) as Record<string, unknown>;
		} catch {
			// Whatever that was, it is not to be relied on.
			this.#lose();
			return;
		}
		if (name === 'resync') this.#isToBeReplaced = true;
		else if (name === 'snapshot') {
			// The very map that is shown is not drawn again: it may have been told because another tab has come.
			const isShown = id !== '' && id === this.#id;
			if (isShown) this.#isToBeReplaced = false;
			if (isShown || this.load(said as unknown as Snapshot, id)) this.#isInStep = true;
		} else if (name === 'delta') this.#change(id, deltaOf(said));
		else if (name === 'event_status') this.#turn(String(said.status), Number(said.version));
	}

	#change(id: string, delta: Delta): void {
		const epoch = Number(id.split(':')[0]);
		if (this.#epoch < 0 || epoch > this.#epoch) {
			// Of a map that has not come yet.
			if (this.#early.length < EARLY_MAX) this.#early.push({ id, delta });
			return;
		}
		if (epoch < this.#epoch || delta.mapVersion <= this.#version) return;
		this.#version = delta.mapVersion;
		this.#id = id;
		this.#listener.delta(delta);
		if (!this.#isInStep && !this.#isLeader) {
			// It leads there from what the other tab has shown, which may be something else: its map is asked for.
			this.#id = '';
			this.#tell({ is: 'hello' });
		}
	}

	#turn(status: string, version = -1): void {
		if (status === this.#event?.status && version === this.#event.version) return;
		this.#event = { status, version };
		this.#listener.status(status);
	}

	get #leads(): boolean {
		return this.#isLeader;
	}

	#leadAlone(): void {
		this.#isLeader = true;
		void this.#read();
	}

	#tell(word: Word): void {
		this.#channel?.postMessage(word);
	}

	/** Tells the other tabs what is known here as if it had just been read. */
	#pass(name: string, said: object, id = ''): void {
		this.#tell({ is: 'frame', frame: { name, data: JSON.stringify(said), id } });
	}

	#hear(word: Word): void {
		if (word.is === 'basket') this.#onbasket();
		else if (this.#isLeader) {
			if (word.is !== 'hello') return;
			this.#tell({ is: 'standing', standing: this.standing });
			if (this.#event) this.#pass('event_status', this.#event);
			if (this.#isInStep) this.#pass('snapshot', { epoch: this.#epoch, map_version: this.#version, ...this.#listener.shown() }, this.#id);
		} else {
			this.#listen();
			if (word.is === 'standing') this.standing = word.standing;
			else if (word.is === 'frame') this.take(word.frame);
		}
	}

	/** Starts anew to wait for a sign of life. */
	#listen(): void {
		clearTimeout(this.#silence);
		this.#silence = setTimeout(() => {
			// The tab that should read does not, or the line is dead: do without it.
			if (this.#isLeader) this.#lose();
			else this.#leadAlone();
		}, SILENCE_MAX_MS);
	}

	async #read(): Promise<void> {
		clearTimeout(this.#timer);
		this.#reading?.abort();
		const reading = new AbortController();
		this.#reading = reading;
		this.#listen();
		let retryAfterS = 0;
		try {
			const headers: Record<string, string> = { Accept: 'text/event-stream' };
			// The server takes care that nobody goes back; but only of a map that it has a name for.
			if (this.#id !== '') headers['Last-Event-ID'] = this.#id;
			this.#isToBeReplaced = this.#id === '' && this.#epoch >= 0;
			this.#isInStep = this.#id !== '';
			const answer = await this.#around.fetch(`/api/events/${this.#eventId}/stream`, { headers, signal: reading.signal });
			if (answer.status === 404) {
				clearTimeout(this.#silence);
				this.#turn('gone');
				return;
			}
			if (!answer.ok || !answer.body) retryAfterS = Number(answer.headers.get('Retry-After')) || 0;
			else await this.#readAll(answer.body, reading);
		} catch {
			// The line broke; that is said below.
		}
		if (reading === this.#reading && !reading.signal.aborted) this.#lose(retryAfterS);
	}

	async #readAll(body: ReadableStream<Uint8Array<ArrayBuffer>>, reading: AbortController): Promise<void> {
		const text = body.pipeThrough(new TextDecoderStream()).getReader();
		let unread = '';
		for (;;) {
			const { value, done } = await text.read();
			if (done || reading.signal.aborted) return;
			this.#listen();
			this.#stand('live');
			this.#failures = 0;
			unread += value;
			const parts = unread.split('\n\n');
			unread = parts.pop() ?? '';
			if (unread.length > UNREAD_CHARS_MAX) return;
			for (const part of parts) {
				const frame = frameOf(part);
				if (!frame) {
					this.#tell({ is: 'beat' });
					continue;
				}
				if (frame.name === 'bye') return;
				this.take(frame);
				this.#tell({ is: 'frame', frame });
			}
		}
	}

	/** By our own hand, so that a thousand pages do not come back in the same second. */
	#lose(retryAfterS = 0): void {
		if (!this.#isLeader || this.#stopping.signal.aborted) return;
		this.#reading?.abort();
		clearTimeout(this.#silence);
		clearTimeout(this.#timer);
		this.#stand('away');
		const wait = Math.max(retryAfterS * 1000, Math.min(WAIT_MAX_MS, WAIT_FIRST_MS * 2 ** this.#failures++));
		this.#timer = setTimeout(() => void this.#read(), wait * (0.5 + this.#around.random() / 2) + (retryAfterS > 0 ? wait / 2 : 0));
	}

	#stand(standing: Standing): void {
		if (this.standing === standing) return;
		this.standing = standing;
		this.#tell({ is: 'standing', standing });
	}
}

/** Reads what stands between two empty lines; null where it is only a sign of life. */
export function frameOf(part: string): Frame | null {
	let [name, data, id] = ['', '', ''];
	for (const line of part.split('\n')) {
		if (line.startsWith('event: ')) name = line.slice(7);
		else if (line.startsWith('data: ')) data += line.slice(6);
		else if (line.startsWith('id: ')) id = line.slice(4);
	}
	return name === '' ? null : { name, data, id };
}

function deltaOf(said: Record<string, unknown>): Delta {
	return {
		mapVersion: Number(said.map_version),
		ordinals: said.seats as number[],
		statuses: Array.from(String(said.statuses), Number),
		zones: said.zones as Counts[],
	};
}
