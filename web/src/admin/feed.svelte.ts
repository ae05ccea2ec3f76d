// What happens at the organization while somebody looks: the server's stream, and coming back to it after a break.

export interface Frame {
	readonly kind: string;
	readonly event_id?: string | null;
	readonly venue_id?: string | null;
	readonly gate_id?: string | null;
	readonly version?: number | null;
}

/** How full an event is at this moment, all its zones together. */
export interface Counted {
	readonly event_id: string;
	readonly epoch: number;
	readonly map_version: number;
	readonly total: number;
	readonly available: number;
	readonly held: number;
	readonly sold: number;
	readonly blocked: number;
}

export interface Listener {
	/** Something happened. */
	frame(frame: Frame): void;
	/** Places were held, sold, blocked or freed; at most once a second for each event. */
	counted?(counts: Counted): void;
	/** Something may have been missed: look at everything again. */
	resync(): void;
}

const KINDS = [
	'event_created',
	'event_updated',
	'event_status_changed',
	'event_rescheduled',
	'event_venue_changed',
	'event_deleted',
	'event_policy_changed',
	'event_inventory_created',
	'event_seating_changed',
	'venue_created',
	'venue_updated',
	'venue_deleted',
	'gate_created',
	'gate_updated',
	'gate_deleted',
	'layout_version_created',
	'layout_version_activated',
	'layout_version_archived',
	'seating_policy_changed',
	'pricing_rule_created',
	'pricing_rule_changed',
	'pricing_rule_deleted',
] as const;
const WAIT_FIRST_MS = 1000;
const WAIT_MAX_MS = 30_000;

export class Feed {
	/** `opening` until it is known whether there is a stream at all. */
	standing = $state<'opening' | 'live' | 'away'>('opening');

	readonly #listeners = new Set<Listener>();
	#source: EventSource | null = null;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#failures = 0;
	#hasBeenLive = false;

	start(): () => void {
		this.#open();
		return () => {
			clearTimeout(this.#timer);
			this.#source?.close();
			this.#source = null;
		};
	}

	listen(listener: Listener): () => void {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	}

	#open(): void {
		const source = new EventSource('/api/admin/feed');
		this.#source = source;
		source.addEventListener('hello', () => this.#greet());
		source.addEventListener('resync', () => this.#tellAll((one) => one.resync()));
		source.addEventListener('bye', () => this.#lose(source));
		source.addEventListener('error', () => this.#lose(source));
		source.addEventListener('occupancy', (event) => this.#read<Counted>(event.data, (counts) => this.#tellAll((one) => one.counted?.(counts))));
		for (const kind of KINDS) {
			source.addEventListener(kind, (event) => this.#read<object>(event.data, (told) => this.#tellAll((one) => one.frame({ ...told, kind }))));
		}
	}

	#greet(): void {
		this.#failures = 0;
		this.standing = 'live';
		// A stream that is opened anew does not say what was missed in between.
		if (this.#hasBeenLive) this.#tellAll((one) => one.resync());
		this.#hasBeenLive = true;
	}

	#read<T>(data: unknown, take: (told: T) => void): void {
		let told: T;
		try {
			told = JSON.parse(String(data)) as T;
		} catch {
			this.#tellAll((one) => one.resync());
			return;
		}
		take(told);
	}

	/** By our own hand and not the browser's, so that a thousand pages do not come back in the same second. */
	#lose(source: EventSource): void {
		if (source !== this.#source) return;
		source.close();
		this.#source = null;
		this.standing = 'away';
		const wait = Math.min(WAIT_MAX_MS, WAIT_FIRST_MS * 2 ** this.#failures++);
		this.#timer = setTimeout(() => this.#open(), wait * (0.5 + Math.random() / 2));
	}

	#tellAll(tell: (listener: Listener) => void): void {
		for (const listener of [...this.#listeners]) tell(listener);
	}
}
