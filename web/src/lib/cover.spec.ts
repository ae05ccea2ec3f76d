import { describe, expect, it } from 'vitest';
import { drawingOf } from './cover.ts';

const event = (over: object = {}) => ({ id: '0190-a', category: null, cover: null, ...over });
const FAMILIES = ['hills', 'pitch', 'bars', 'stars', 'tiles', 'voices', 'spots', 'petals'];

describe('the picture of an event', () => {
	it('is always the same one', () => {
		expect(drawingOf(event())).toEqual(drawingOf(event()));
	});

	it('is another one for another event of the kind', () => {
		const drawn = ['a', 'b', 'c', 'd'].map((id) => JSON.stringify(drawingOf(event({ id, category: 'music' }))));

		expect(new Set(drawn).size).toBe(4);
	});

	it('suits what the event is', () => {
		const families = Array.from({ length: 40 }, (_, n) => drawingOf(event({ id: `id-${n}`, category: 'theatre' })).family);

		expect(new Set(families)).toEqual(new Set(['spots', 'hills', 'voices']));
		expect(drawingOf(event({ category: 'sport' })).family).toBe('pitch');
	});

	it.each(['constructor', 'jazz', '__proto__'])('is some picture for a kind nobody knows, such as %s', (category) => {
		expect(FAMILIES).toContain(drawingOf(event({ category })).family);
	});

	it.each(FAMILIES)('is %s where the organiser wishes it, whatever the event is', (cover) => {
		expect(drawingOf(event({ cover, category: 'sport' })).family).toBe(cover);
		expect(drawingOf(event({ cover: ` ${cover.toUpperCase()} in the morning ` })).family).toBe(cover);
	});

	it('is not the same for two events that only wish for the same drawing', () => {
		const [one, other] = ['a', 'b'].map((id) => drawingOf(event({ id, cover: 'hills' })));

		expect(one).not.toEqual(other);
	});

	it('follows the words of the organiser, and then not the event', () => {
		const [one, other] = ['a', 'b'].map((id) => drawingOf(event({ id, cover: 'red balloon' })));

		expect(one).toEqual(other);
		expect(one).not.toEqual(drawingOf(event({ id: 'a', cover: 'blue balloon' })));
	});

	it.each(FAMILIES)('has only finite numbers in %s', (cover) => {
		for (const seed of ['', ' a', ' b', ' ênige', ' 🎭']) {
			const { strokes, ground } = drawingOf(event({ cover: cover + seed }));

			expect(strokes.length).toBeGreaterThan(3);
			expect(JSON.stringify([strokes, ground])).not.toMatch(/NaN|Infinity|undefined|null/);
			expect(strokes.every((one) => one.fill ?? one.stroke)).toBe(true);
		}
	});
});
