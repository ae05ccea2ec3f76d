import { describe, expect, it } from 'vitest';
import { placeOf } from './jump.ts';

const TEXT = `{
  "name": "A \\"quoted\\" ] name",
  "zones": [
    {"code": "S", "rows": [{"label": "A", "seats": {"count": 3, "x": [10, 20, -30]}}]},
    {"code": "V"}
  ]
}`;
const found = (path: string) => {
	const place = placeOf(TEXT, path);
	return place && TEXT.slice(place.start, place.end);
};

describe('the place of a path', () => {
	it.each([
		['name', '"A \\"quoted\\" ] name"'],
		['zones[0].code', '"S"'],
		['zones[0].rows[0].seats.x[2]', '-30'],
		['zones[0].rows[0].seats.count', '3'],
		['zones[1]', '{"code": "V"}'],
	])('%s is %s', (path, text) => {
		expect(found(path)).toBe(text);
	});

	it('is that of what surrounds something that is missing', () => {
		expect(found('zones[1].name')).toBe('{"code": "V"}');
		expect(found('zones[0].rows[0].seats.x[9]')).toBe('[10, 20, -30]');
	});

	it('shows of something long only its first line', () => {
		expect(found('zones')).toBe('[');
	});

	it('is a line of a sheet', () => {
		const sheet = 'zone,row\nS,A\nS,B';
		const place = placeOf(sheet, 'line 2, column row');

		expect(place && sheet.slice(place.start, place.end)).toBe('S,A');
		expect(placeOf(sheet, 'line 9, column row')).toBeNull();
	});

	it('is nowhere in what is no document', () => {
		expect(placeOf('', 'zones')).toBeNull();
		expect(placeOf('{"a": "never ends', 'a')).toBeNull();
	});
});
