// The map in sentences: what a seat, a row, a section is called, costs and still has, for the ear and for the eye.
import { CATEGORIES } from '../layouts/geometry.ts';
import type { Section } from './hall.ts';
import type { Answer, Notice, SeatMapState } from './map.svelte.ts';
import type { Money } from './offer.ts';
import { count, isWordKey, numberForm, t } from './words.ts';

function written({ amount_minor: minor, currency }: Money, display: 'narrowSymbol' | 'name'): string {
	const money = { style: 'currency', currency, currencyDisplay: display } as const;
	const unit = 10 ** (numberForm(money).resolvedOptions().maximumFractionDigits ?? 2);
	return numberForm(minor % unit === 0 ? { ...money, maximumFractionDigits: 0 } : money).format(minor / unit);
}

/** "R 450" */
export function sayPrice(price: Money): string {
	return written(price, 'narrowSymbol');
}

/** "450 rand": a screen reader makes little of an R. The kind of dollar or rand is known where one stands. */
export function speakPrice(price: Money): string {
	const words = written(price, 'name');
	return price.currency === 'ZAR' ? words.replace(/(suid-afrikaanse |south african )?rands?/i, 'rand') : words;
}

export const seatWords = (map: SeatMapState, seat: number) => {
	const { geometry, scene } = map.hall;
	const row = geometry.rowOf[seat] as number;
	return { section: map.hall.sectionOf(seat).name, row: geometry.rowLabel(row), seat: geometry.label(seat), isTable: scene.isTable[row] === 1 };
};

/** "Row C, seat 12" */
export function saySeat(map: SeatMapState, seat: number): string {
	const { isTable, ...words } = seatWords(map, seat);
	return t(isTable ? 'map.seat.table' : 'map.seat', words);
}

/** "available", "somebody is choosing it" … as a seat answers to this person. */
export function sayAnswer(answer: Answer): string {
	return t(`map.answer.${answer}`);
}

/** When a seat that somebody else holds may come back; empty where nobody has asked. */
export function sayAwaited(map: SeatMapState, seat: number): string {
	const { awaited } = map;
	if (awaited?.seat !== seat || map.answer(seat) !== 'held') return '';
	return awaited.minutes > 1 ? t('map.awaited', { minutes: awaited.minutes }) : t('map.awaited.soon');
}

/** The same of a seat; to those who run the event, what it is beside whether they have chosen it. */
export function saySeatAnswer(map: SeatMapState, seat: number): string {
	const answer = map.answer(seat);
	if (!map.isDesk) return sayAnswer(answer);
	const status = map.statusOf(seat);
	const is = t(status === 'available' ? 'map.answer.free' : `map.desk.${status}`);
	return answer === 'own' || answer === 'pending' ? `${t('map.desk.own')}, ${is}` : is;
}

/** What is special about a seat; empty for most. */
export function sayCategory(map: SeatMapState, seat: number): string {
	const category = CATEGORIES[map.hall.geometry.category[seat] ?? 0] ?? 'standard';
	if (map.isReserved(seat)) return t('map.category.reserved');
	return category === 'standard' || category === 'aisle' ? '' : t(`map.category.${category}`);
}

/** "Stalls, row C, seat 12, 450 rand, available, wheelchair space" */
export function speakSeat(map: SeatMapState, seat: number): string {
	const { isTable, ...words } = seatWords(map, seat);
	const price = map.priceOf(seat);
	return [
		words.section,
		lowered(t(isTable ? 'map.seat.table' : 'map.seat', words)),
		price ? speakPrice(price) : '',
		saySeatAnswer(map, seat),
		sayAwaited(map, seat),
		sayCategory(map, seat),
	]
		.filter((part) => part !== '')
		.join(', ');
}

/** "Row C, 12 of 20 available" */
export function speakRow(map: SeatMapState, row: number): string {
	const { geometry, scene } = map.hall;
	const [free, all] = map.leftInRow(row);
	return t(scene.isTable[row] ? 'map.row.table' : 'map.row', { row: geometry.rowLabel(row), free: count(free), all: count(all) });
}

/** "172 of 556 left" */
export function sayLeft(map: SeatMapState, section: Section): string {
	const { available, total, held } = map.counts[section.zone] ?? { available: 0, total: 0, held: 0 };
	if (total > 0 && available === 0) return t(held > 0 ? 'map.left.held' : 'map.left.none');
	return t('map.left', { free: count(available), all: count(total) });
}

/** "from R 140" where seats of a section differ, "R 140" where they do not; empty where nothing is known. */
export function saySectionPrice(map: SeatMapState, section: Section, speak: (price: Money) => string = sayPrice): string {
	const zone = map.offer[section.zone];
	if (!zone?.from_price) return '';
	const isExact = zone.prices.every(({ price }) => price.amount_minor === zone.from_price?.amount_minor);
	return isExact ? speak(zone.from_price) : t('map.price.from', { price: speak(zone.from_price) });
}

/** "Section 116, 650 rand, 172 of 556 left" */
export function speakSection(map: SeatMapState, section: Section): string {
	const isLocked = map.locked[section.zone] === true;
	return [section.name, section.isArea ? t('map.area') : '', saySectionPrice(map, section, speakPrice), isLocked ? t('map.answer.locked') : sayLeft(map, section)]
		.filter((part) => part !== '')
		.join(', ');
}

/** Why something was taken back, with the seat it is about. */
export function sayNotice(map: SeatMapState, { seat, reason }: Notice): string {
	const key = `map.refused.${reason}`;
	return seat !== null && isWordKey(key) ? t(key, { seat: saySeat(map, seat) }) : reason;
}

function lowered(words: string): string {
	return words.charAt(0).toLocaleLowerCase() + words.slice(1);
}
