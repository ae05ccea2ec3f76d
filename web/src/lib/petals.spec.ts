import { expect, it } from 'vitest';
import { flower } from './petals.ts';

it('gives the same flower for the same word', () => {
	expect(flower('voelgoed')).toEqual(flower('voelgoed'));
});

it('gives another flower for another word', () => {
	expect(flower('voelgoed')).not.toEqual(flower('passievol'));
});

it.each(['', 'voelgoed', 'ênige naam', '🎭'])('draws only finite numbers from "%s"', (word) => {
	const { petals, seeds, heart } = flower(word);

	expect(petals.every((petal) => Number.isFinite(petal.turn) && !/NaN|Infinity/.test(petal.path))).toBe(true);
	expect([...seeds.flatMap(({ x, y }) => [x, y]), heart].every(Number.isFinite)).toBe(true);
});
