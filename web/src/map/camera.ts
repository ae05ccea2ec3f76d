// How one moves over the map: wheel, pinch, drag and double tap by d3-zoom, and flights to a section, a seat or the whole.
import { select, type Selection } from 'd3-selection';
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomBehavior, type ZoomTransform } from 'd3-zoom';
import type { Point } from '../layouts/geometry.ts';
import type { Box } from '../layouts/view.ts';
import { SEAT_PX_MAX, type SeatMapState, type Transform } from './map.svelte.ts';

const FLIGHT_MS = 400;
const STEP = 1.7;
/** Farther than that a hand drags and does not press. */
const DRAG_PX = 6;
/** What the focus moves to is kept so far inside the screen. */
const EDGE_PX = 72;
/** A seat that the keyboard is on can be read. */
const FOCUS_PX = 22;
/** A section that is entered is not seen larger than that. */
const ENTER_PX = 40;

export class Camera {
	readonly #map: SeatMapState;
	readonly #element: Selection<HTMLElement, unknown, null, undefined>;
	readonly #zoom: ZoomBehavior<HTMLElement, unknown>;
	#frame = 0;
	/** Once somebody moved, another size of the screen does not bring back the whole. */
	#hasMoved = false;

	/** `isFree` says whether a double tap there is about the map and not about a seat, `isOurs` whether a stroke moves the map. */
	constructor(element: HTMLElement, map: SeatMapState, isFree: (event: MouseEvent | Touch) => boolean, isOurs: (event: Event) => boolean) {
		this.#map = map;
		this.#element = select(element);
		this.#zoom = zoom<HTMLElement, unknown>()
			.clickDistance(DRAG_PX)
			.tapDistance(DRAG_PX * 2)
			.extent(() => [[0, 0], [map.size.width, map.size.height]])
			.constrain((transform) => this.#kept(transform))
			.filter((event: Event) => isOurs(event) && this.#isMeant(event, isFree))
			.on('start', (event: D3ZoomEvent<HTMLElement, unknown>) => event.sourceEvent && this.#land())
			.on('zoom', ({ transform, sourceEvent }: D3ZoomEvent<HTMLElement, unknown>) => {
				if (sourceEvent) this.#hasMoved = true;
				map.transform = { k: transform.k, x: transform.x, y: transform.y };
			});
		this.#element.call(this.#zoom);
	}

	/** The screen has another size; what was in the middle stays there. */
	resize(before: { readonly width: number; readonly height: number }): void {
		const { whole, size, hall, transform } = this.#map;
		this.#land();
		this.#zoom.scaleExtent([whole.k, Math.max(SEAT_PX_MAX / hall.seatCm, whole.k)]);
		if (!this.#hasMoved || before.width === 0) this.#set(whole);
		else this.#set({ ...transform, x: transform.x + (size.width - before.width) / 2, y: transform.y + (size.height - before.height) / 2 });
	}

	nearer(): void {
		this.#by(STEP);
	}

	farther(): void {
		this.#by(1 / STEP);
	}

	all(): void {
		this.#fly(this.#map.whole);
	}

	enter(box: Box): void {
		this.#fly(this.#map.fitting(box, ENTER_PX));
	}

	/** A place in the middle, and a seat there so large. */
	look([x, y]: Point, seatPx: number): void {
		const { size, hall } = this.#map;
		const k = seatPx / hall.seatCm;
		this.#fly({ k, x: size.width / 2 - x * k, y: size.height / 2 - y * k });
	}

	/** Moves no more than it must for a seat to be seen and read. */
	reveal([x, y]: Point): void {
		const { seatPx, size, inset, transform } = this.#map;
		if (seatPx < FOCUS_PX * 0.7) {
			this.look([x, y], FOCUS_PX);
			return;
		}
		const [left, top] = [x * transform.k + transform.x, y * transform.k + transform.y];
		const over = (at: number, low: number, high: number) => (at < low ? low - at : at > high ? high - at : 0);
		const across = over(left, EDGE_PX, size.width - EDGE_PX);
		const down = over(top, inset.top + EDGE_PX, size.height - inset.bottom - EDGE_PX);
		if (across || down) this.#fly({ k: transform.k, x: transform.x + across, y: transform.y + down });
	}

	/** A place in the middle at once, as a finger on the small map leads it. */
	centre([x, y]: Point): void {
		const { size, transform } = this.#map;
		this.#land();
		this.#hasMoved = true;
		this.#set({ k: transform.k, x: size.width / 2 - x * transform.k, y: size.height / 2 - y * transform.k });
	}

	pan(across: number, down: number): void {
		const { transform } = this.#map;
		this.#fly({ k: transform.k, x: transform.x + across, y: transform.y + down });
	}

	close(): void {
		this.#land();
		this.#element.on('.zoom', null);
	}

	#by(factor: number): void {
		const { size, transform, whole, hall } = this.#map;
		const most = Math.max(SEAT_PX_MAX / hall.seatCm, whole.k);
		const k = Math.min(Math.max(transform.k * factor, whole.k), most);
		const [x, y] = [size.width / 2, size.height / 2];
		this.#fly({ k, x: x - ((x - transform.x) / transform.k) * k, y: y - ((y - transform.y) / transform.k) * k });
	}

	/** Seen whole, a wheel that wants it smaller scrolls the page; on a seat, a second tap is a second tap. */
	#isMeant(event: Event, isFree: (event: MouseEvent | Touch) => boolean): boolean {
		if (event instanceof WheelEvent) return !(this.#map.isWhole && event.deltaY > 0);
		if (event.type === 'dblclick') return isFree(event as MouseEvent);
		if (typeof TouchEvent !== 'undefined' && event instanceof TouchEvent) {
			const [touch] = event.changedTouches;
			return event.type !== 'touchend' || (touch !== undefined && isFree(touch));
		}
		return !(event as MouseEvent).ctrlKey && !(event as MouseEvent).button;
	}

	/** Never smaller than whole, never so far off that the middle of the screen is outside the hall. */
	#kept(transform: ZoomTransform): ZoomTransform {
		const { whole, size, hall } = this.#map;
		if (transform.k <= whole.k * 1.0005) return zoomIdentity.translate(whole.x, whole.y).scale(whole.k);
		const { k } = transform;
		const between = (at: number, middle: number, low: number, high: number) => middle - Math.min(Math.max((middle - at) / k, low), high) * k;
		return zoomIdentity
			.translate(
				between(transform.x, size.width / 2, hall.box.left, hall.box.right),
				between(transform.y, size.height / 2, hall.box.top, hall.box.bottom),
			)
			.scale(k);
	}

	#set({ k, x, y }: Transform): void {
		this.#zoom.transform(this.#element, this.#kept(zoomIdentity.translate(x, y).scale(k)));
	}

	#land(): void {
		cancelAnimationFrame(this.#frame);
	}

	/** Straight there, so that what is nearest to the goal hardly moves on the screen. */
	#fly(to: Transform): void {
		this.#land();
		this.#hasMoved = true;
		const { transform: from, size } = this.#map;
		const middle = ({ k, x, y }: Transform): Point => [(size.width / 2 - x) / k, (size.height / 2 - y) / k];
		const [start, goal] = [middle(from), middle(to)];
		const began = performance.now();
		const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
		const step = (now: number) => {
			const passed = isStill ? 1 : Math.min(1, (now - began) / FLIGHT_MS);
			const eased = 1 - (1 - passed) ** 3;
			const k = from.k ** (1 - eased) * to.k ** eased;
			const share = Math.abs(from.k / to.k - 1) < 0.001 ? eased : (1 / from.k - 1 / k) / (1 / from.k - 1 / to.k);
			const [x, y] = [start[0] + (goal[0] - start[0]) * share, start[1] + (goal[1] - start[1]) * share];
			this.#set(passed === 1 ? to : { k, x: size.width / 2 - x * k, y: size.height / 2 - y * k });
			if (passed < 1) this.#frame = requestAnimationFrame(step);
		};
		if (isStill) step(began);
		else this.#frame = requestAnimationFrame(step);
	}
}
