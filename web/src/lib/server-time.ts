// What time it is at the server: the clock of the person's own device may be an hour off, and nothing is opened, ended or
// called today by it. Every answer says when it was given, so it is at least that late; the latest of them counts, since
// an answer from a cache says less and not something else. Between answers it is counted by a clock that nobody can set.

/** How far the server is ahead of this page's count of milliseconds; not known before the first answer. */
let ahead = -Infinity;

/** An answer has come, with its `Date`. */
export function hearTime(said: string | null): void {
	const at = Date.parse(said ?? '');
	if (at > 0) ahead = Math.max(ahead, at - performance.now());
}

/** Milliseconds since 1970 by the server's clock: behind it by a second at most and the way of an answer, never before it. */
export function serverNow(): number {
	return ahead === -Infinity ? Date.now() : ahead + performance.now();
}
