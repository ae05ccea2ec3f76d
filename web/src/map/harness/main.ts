// The seat map by itself, for tests in a browser: it is fed from outside, and measured. Built by `vite build --mode harness`
// and by nothing else, so that no page that people open carries it.
import { mount, tick, unmount } from 'svelte';
import { i18n, type Language } from '../../i18n/i18n.svelte.ts';
import { decode, type Geometry } from '../../layouts/geometry.ts';
import '../../tokens.css';
import '../../app.css';
import './harness.css';
import type { CanvasSeats } from '../canvas.ts';
import { readInks, type Shot } from '../inks.ts';
import type { Delta, SeatMapState, Snapshot } from '../map.svelte.ts';
import type { OfferedZone } from '../offer.ts';
import type { WebglSeats } from '../webgl.ts';

interface Given {
	readonly geometry: unknown;
	readonly offer: readonly OfferedZone[];
	readonly snapshot: Snapshot;
	readonly engine?: 'webgl' | 'canvas';
	readonly language?: Language;
	/** What an asked seat is answered: yes, nothing yet, or a reason against it. */
	readonly answer?: string;
}

class Harness {
	map!: SeatMapState;
	/** What the component told its parent. */
	readonly told: (readonly [string, number | string])[] = [];
	#shown: Record<string, unknown> | null = null;
	#geometry!: Geometry;

	/** Mounts it; the milliseconds from the data to a picture that can be used. */
	async show(given: Given): Promise<number> {
		if (this.#shown) await unmount(this.#shown);
		if (given.language) i18n.choose(given.language);
		const { default: SeatMap, SeatMapState } = await import('../SeatMap.svelte');
		const began = performance.now();
		this.#geometry = decode(given.geometry);
		const map = (this.map = new SeatMapState(this.#geometry, given.offer));
		map.load(given.snapshot);
		const decide = (seat: number) => {
			map.pend(seat);
			if (given.answer === 'later') return;
			if (given.answer) map.takeBack(seat, given.answer);
			else map.confirm(seat);
		};
		this.#shown = mount(SeatMap, {
			target: document.getElementById('map') as HTMLElement,
			props: {
				map,
				...(given.engine ? { engine: given.engine } : {}),
				onpick: (seat: number) => (this.told.push(['pick', seat]), decide(seat)),
				onrelease: (seat: number) => (this.told.push(['release', seat]), decide(seat)),
				onturn: (seat: number) => void this.told.push(['turn', seat]),
				onzone: (zone: string) => void this.told.push(['zone', zone]),
				onlocked: (zone: string) => void this.told.push(['locked', zone]),
			},
		});
		await this.drawn();
		return performance.now() - began;
	}

	/** Waits until what there is to draw is drawn. */
	async drawn(): Promise<void> {
		await tick();
		for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
	}

	apply(delta: Delta): boolean {
		return this.map.apply(delta);
	}

	/** Milliseconds for one frame of all seats, the whole hall on a canvas of that size, by both engines in turn. */
	async race(width: number, height: number, rounds: number): Promise<{ webgl: number[]; canvas: number[] }> {
		const [{ WebglSeats }, { CanvasSeats }] = await Promise.all([import('../webgl.ts'), import('../canvas.ts')]);
		const shot = this.#wholeShot(width, height);
		const made = (): HTMLCanvasElement => Object.assign(document.createElement('canvas'), { width, height });
		const engines = { webgl: new WebglSeats(made(), this.map.hall), canvas: new CanvasSeats(made()) };
		const taken: { webgl: number[]; canvas: number[] } = { webgl: [], canvas: [] };
		for (let round = 0; round <= rounds; round++) {
			for (const name of ['webgl', 'canvas'] as const) {
				const ms = this.#timed(engines[name], shot);
				if (round > 0) taken[name].push(ms); // the first compiles and fills caches
			}
		}
		engines.webgl.close();
		engines.canvas.close();
		return taken;
	}

	/** Milliseconds to take in a change of some seats and send it to the card, and to take in all of them and build everything anew. */
	async deltas(seats: number, rounds: number): Promise<{ delta: number[]; rebuild: number[] }> {
		const { WebglSeats } = await import('../webgl.ts');
		const { SeatMapState } = await import('../map.svelte.ts');
		const engine = new WebglSeats(document.createElement('canvas'), this.map.hall);
		const map = new SeatMapState(this.#geometry, []);
		const { seatCount } = this.#geometry;
		const snapshot = { epoch: 1, seat_count: seatCount, statuses: btoa('\0'.repeat(Math.ceil(seatCount / 4))), zones: [] };
		map.load({ ...snapshot, map_version: 1 });
		engine.send(map);
		engine.finish();
		const taken: { delta: number[]; rebuild: number[] } = { delta: [], rebuild: [] };
		for (let round = 0; round < rounds; round++) {
			const ordinals = Array.from({ length: seats }, (_, at) => (at * 7919 + round * 104729) % seatCount);
			let began = performance.now();
			map.apply({ mapVersion: 2 * round + 2, ordinals, statuses: ordinals.map(() => 1 + (round % 2)) });
			engine.send(map);
			engine.finish();
			taken.delta.push(performance.now() - began);
			began = performance.now();
			map.load({ ...snapshot, map_version: 2 * round + 3 });
			engine.build();
			engine.send(map);
			engine.finish();
			taken.rebuild.push(performance.now() - began);
		}
		engine.close();
		return taken;
	}

	/** The colours of seats by both engines at one moment, of the hall or of a section: red, green, blue and cover; none outside. */
	async sampled(width: number, height: number, zone?: number): Promise<{ webgl: number[][]; canvas: number[][] }> {
		const [{ WebglSeats }, { CanvasSeats }] = await Promise.all([import('../webgl.ts'), import('../canvas.ts')]);
		const section = zone === undefined ? undefined : this.map.hall.sections[zone];
		const shot = this.#wholeShot(width, height, section && this.map.hall.boxOfSection(section));
		const made = (): HTMLCanvasElement => Object.assign(document.createElement('canvas'), { width, height });
		const read = (engine: WebglSeats | CanvasSeats): number[][] => {
			engine.draw(this.map, shot);
			const ctx = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D;
			ctx.drawImage(engine.canvas, 0, 0);
			const { data } = ctx.getImageData(0, 0, width, height);
			return Array.from(this.map.looks, (_, seat) => {
				const { k, x, y } = shot.transform;
				const [across, down] = this.map.hall.place(seat);
				// Beside the number, but in the middle of what is sold, which is small.
				const aside = this.map.statusOf(seat) === 'sold' ? 0 : this.map.hall.seatCmOf(seat) * k;
				const [left, top] = [Math.round(across * k + x - aside * 0.35), Math.round(down * k + y - aside * 0.24)];
				if (left < 0 || top < 0 || left >= width || top >= height) return [];
				const at = 4 * (left + width * top);
				return [...data.subarray(at, at + 4)];
			});
		};
		const engines = { webgl: new WebglSeats(made(), this.map.hall), canvas: new CanvasSeats(made()) };
		const seen = { webgl: read(engines.webgl), canvas: read(engines.canvas) };
		engines.webgl.close();
		return seen;
	}

	#timed(engine: WebglSeats | CanvasSeats, shot: Shot): number {
		const began = performance.now();
		engine.draw(this.map, shot);
		engine.finish();
		return performance.now() - began;
	}

	/** Every seat as a seat, however small: what a frame costs when nothing is left out. */
	#wholeShot(width: number, height: number, { left, top, right, bottom } = this.map.hall.box): Shot {
		const k = Math.min(width / (right - left), height / (bottom - top));
		const transform = { k, x: -left * k, y: -top * k };
		return { inks: readInks(document.body), transform, size: { width, height }, ratio: 1, near: 1, turn: 1 };
	}
}

declare global {
	interface Window {
		harness: Harness;
	}
}
window.harness = new Harness();
