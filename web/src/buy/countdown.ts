// How long something is still held, by a clock that nobody can set: counted from the seconds that the server granted.

/** Milliseconds since the page was opened; the wall clock plays no part. */
export type Clock = () => number;
export const clock: Clock = () => performance.now();

const SECOND_MS = 1000;
const MINUTE_S = 60;
const WARNING_S = 30;
/** Of long holds the last tenth is the warning. */
const WARNING_SHARE = 0.1;

/** Until when something is held, and for how long it was granted in all. */
export interface Term {
	readonly endsAt: number;
	readonly wholeMs: number;
}

export function termOf(secondsLeft: number, wholeS: number, now: number): Term {
	return { endsAt: now + secondsLeft * SECOND_MS, wholeMs: Math.max(secondsLeft, wholeS) * SECOND_MS };
}

/** Whole seconds, rounded up: it says 0:00 when it is over, and not a moment before. */
export function secondsLeft({ endsAt }: Term, now: number): number {
	return Math.max(0, Math.ceil((endsAt - now) / SECOND_MS));
}

export function isOver(term: Term, now: number): boolean {
	return secondsLeft(term, now) === 0;
}

/** Seconds before the end at which people are warned. */
export function warningS({ wholeMs }: Term): number {
	return Math.max(WARNING_S, Math.round((wholeMs / SECOND_MS) * WARNING_SHARE));
}

export function isWarning(term: Term, now: number): boolean {
	const left = secondsLeft(term, now);
	return left > 0 && left <= warningS(term);
}

/** From 1, all of it, to 0. */
export function share({ endsAt, wholeMs }: Term, now: number): number {
	return Math.min(1, Math.max(0, (endsAt - now) / wholeMs));
}

/** "4:05" */
export function face(seconds: number): string {
	return `${Math.floor(seconds / MINUTE_S)}:${String(seconds % MINUTE_S).padStart(2, '0')}`;
}

/** Milliseconds until the face shows another number. */
export function untilNext({ endsAt }: Term, now: number): number {
	const left = endsAt - now;
	return left <= 0 ? SECOND_MS : left % SECOND_MS || SECOND_MS;
}
