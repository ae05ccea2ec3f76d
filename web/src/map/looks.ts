// What a seat looks like, in one byte: what the server says of it, whether it is this person's, and what it was a moment
// ago, so that the change can be seen. Pure; the drawings read these bytes and nothing else.

export const AVAILABLE = 0;
export const HELD = 1;
export const SOLD = 2;
export const BLOCKED = 3;
/** The place of a word is its number. */
export const STATUSES = ['available', 'held', 'sold', 'blocked'] as const;
export type Status = (typeof STATUSES)[number];

export const STATUS = 0b11;
export const OWN = 1 << 2;
/** Asked for, and not yet answered. */
export const PENDING = 1 << 3;
/** The seat beside a wheelchair space that this person has. */
export const RESERVED = 1 << 4;
export const BEFORE_SHIFT = 5;
export const TURNING = 1 << 7;

/** Two bits for each seat, four seats in a byte, the first in the lowest bits. */
export function unpack(packed: string, seatCount: number): Uint8Array<ArrayBuffer> {
	const bytes = atob(packed);
	if (bytes.length !== Math.ceil(seatCount / 4)) throw new Error(`${bytes.length} bytes are not ${seatCount} seats`);
	const statuses = new Uint8Array(seatCount);
	for (let seat = 0; seat < seatCount; seat++) statuses[seat] = (bytes.charCodeAt(seat >> 2) >> (2 * (seat & 3))) & STATUS;
	return statuses;
}

/** The same way back, of looks or of bare statuses. */
export function pack(looks: ArrayLike<number>): string {
	const bytes = new Uint8Array(Math.ceil(looks.length / 4));
	for (let seat = 0; seat < looks.length; seat++) bytes[seat >> 2] = (bytes[seat >> 2] as number) | (((looks[seat] as number) & STATUS) << (2 * (seat & 3)));
	return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** How near one is: 0 where sections are seen, 1 where seats are, between them both. By the size of a seat on the screen. */
export function nearOf(seatPx: number): number {
	return smoothstep(2.7, 5, seatPx);
}

/** From so many pixels a seat shows its mark, and from so many its number. */
export const MARK_PX = [7.5, 9.5] as const;
export const NUMBER_PX = [16, 19] as const;

export function smoothstep(low: number, high: number, value: number): number {
	const share = Math.min(1, Math.max(0, (value - low) / (high - low)));
	return share * share * (3 - 2 * share);
}

/** Runs of neighbours among ordinals, [first, end) in turn; runs that are less than `gap` apart are one. */
export function runsOf(ordinals: readonly number[], gap: number): [number, number][] {
	const runs: [number, number][] = [];
	for (const ordinal of [...ordinals].sort((one, other) => one - other)) {
		const last = runs.at(-1);
		if (last && ordinal < last[1] + gap) last[1] = Math.max(last[1], ordinal + 1);
		else runs.push([ordinal, ordinal + 1]);
	}
	return runs;
}
