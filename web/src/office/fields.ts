// Moments of these forms: they belong to no venue, so the clock is that of whoever types.

/** What a field for date and time says, as a moment; null where nothing is said. */
export function momentOf(typed: string): string | null {
	const moment = typed === '' ? Number.NaN : new Date(typed).getTime();
	return Number.isNaN(moment) ? null : new Date(moment).toISOString();
}

/** A moment as the same field shows it. */
export function typedOf(moment: string | null): string {
	const at = new Date(moment ?? '');
	if (Number.isNaN(at.getTime())) return '';
	return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
