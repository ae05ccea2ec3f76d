import { describe, expect, it } from 'vitest';
import { face, isOver, isWarning, secondsLeft, share, termOf, untilNext, warningS } from './countdown.ts';

const SOME = 5000;

describe('a countdown', () => {
	it('counts whole seconds from what was granted, and says 0:00 when it is over and not before', () => {
		const term = termOf(300, 300, SOME);
		const at = (s: number) => [face(secondsLeft(term, SOME + s * 1000)), isOver(term, SOME + s * 1000)];
		expect(at(0)).toEqual(['5:00', false]);
		expect(at(0.4)).toEqual(['5:00', false]);
		expect(at(55)).toEqual(['4:05', false]);
		expect(at(299.9)).toEqual(['0:01', false]);
		expect(at(300)).toEqual(['0:00', true]);
		expect(at(900)).toEqual(['0:00', true]);
	});

	it.each([
		[60, 30],
		[300, 30],
		[600, 60],
		[1800, 180],
	])('of %d seconds warns in the last %d', (whole, warning) => {
		const term = termOf(whole, whole, 0);
		expect(warningS(term)).toBe(warning);
		expect(isWarning(term, (whole - warning - 1) * 1000)).toBe(false);
		expect(isWarning(term, (whole - warning) * 1000)).toBe(true);
		expect(isWarning(term, whole * 1000)).toBe(false);
	});

	it('knows what part is left, also of a hold that was found again, and when the face changes', () => {
		const term = termOf(150, 600, SOME);
		expect(share(term, SOME)).toBe(0.25);
		expect(share(term, SOME + 200_000)).toBe(0);
		expect(share(termOf(900, 600, 0), 0)).toBe(1);
		expect(untilNext(term, SOME + 400)).toBe(600);
		expect(untilNext(term, SOME)).toBe(1000);
	});
});
