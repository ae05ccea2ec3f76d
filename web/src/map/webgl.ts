// All seats in one draw call: where they are lies in a buffer that never changes, how they look in one byte each, of which
// a change sends only those that changed. The shapes are drawn by the card, sharp at any size.
import type { Box } from '../layouts/view.ts';
import { CELL, GLYPHS, NUMBER, UNIT } from './glyphs.ts';
import type { Hall } from './hall.ts';
import { DIMMED, SEAT_INKS, type Inks, type Shot } from './inks.ts';
import { isSeen } from './labels.ts';
import { MARK_PX, runsOf } from './looks.ts';
import type { SeatMapState } from './map.svelte.ts';
import { CELLS, FRAGMENT, SIGNS, UNIFORMS, VERTEX } from './shaders.ts';

/** One seat: its place, where it looks, then its zone, its number and its category. */
const SEAT_BYTES = 20;
const SHORT_MAX = 0x7fff;
/** Up to here a seat is a point, which costs a quarter of a square; every card has points of that size. */
const POINT_PX = 60;
/** Bytes between two changes that are sent along rather than sent apart. */
const GAP_BYTES = 256;
const RUNS_MAX = 64;
const CELL_PX_MAX = 160;

interface Program {
	readonly program: WebGLProgram;
	readonly at: Readonly<Record<string, WebGLUniformLocation | null>>;
}

/** How much of a seat is drawn: its shape, or its signs as well. A card that draws shapes need not know the rest. */
type Detail = 1 | 2;

export class WebglSeats {
	readonly canvas: HTMLCanvasElement;
	readonly #gl: WebGL2RenderingContext;
	readonly #hall: Hall;
	/** By detail, for points or squares, for seats that turn or rest; compiled when first needed. */
	#programs = new Map<string, Program>();
	#points!: WebGLVertexArrayObject;
	#squares!: WebGLVertexArrayObject;
	#seats!: WebGLBuffer;
	#looks!: WebGLBuffer;
	/** What is on the card already: the looks up to a revision, and signs of a size in a font. */
	#sent = -1;
	#signsPx = 0;
	#signsFont = '';

	/** Throws where there is no WebGL 2. */
	constructor(canvas: HTMLCanvasElement, hall: Hall) {
		const gl = canvas.getContext('webgl2', { alpha: true, antialias: false, depth: false, stencil: false });
		if (!gl) throw new Error('WebGL 2 is not here');
		this.canvas = canvas;
		this.#gl = gl;
		this.#hall = hall;
		this.build();
	}

	/** Everything that lives on the card; again when the card has lost it. */
	build(): void {
		const gl = this.#gl;
		this.#programs.clear();
		this.#seats = gl.createBuffer();
		gl.bindBuffer(gl.ARRAY_BUFFER, this.#seats);
		gl.bufferData(gl.ARRAY_BUFFER, seatColumns(this.#hall), gl.STATIC_DRAW);
		this.#looks = gl.createBuffer();
		gl.bindBuffer(gl.ARRAY_BUFFER, this.#looks);
		gl.bufferData(gl.ARRAY_BUFFER, this.#hall.geometry.seatCount, gl.DYNAMIC_DRAW);
		this.#points = this.#layOut(0);
		this.#squares = this.#layOut(1);
		for (const unit of [gl.TEXTURE0, gl.TEXTURE1]) {
			gl.activeTexture(unit);
			gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
			const filter = unit === gl.TEXTURE0 ? gl.NEAREST : gl.LINEAR;
			for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, filter);
			for (const way of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, way, gl.CLAMP_TO_EDGE);
		}
		gl.enable(gl.BLEND);
		gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
		this.#sent = -1;
		this.#signsPx = 0;
	}

	draw(map: SeatMapState, shot: Shot): void {
		const gl = this.#gl;
		const { transform, size, ratio, inks, near, turn } = shot;
		this.send(map);
		gl.viewport(0, 0, this.canvas.width, this.canvas.height);
		gl.clearColor(0, 0, 0, 0);
		gl.clear(gl.COLOR_BUFFER_BIT);
		if (near === 0 || size.width === 0) return;
		const px = Math.max(...map.hall.scene.seatCm) * transform.k * ratio;
		const isPoint = px * 1.7 + 2 <= POINT_PX;
		const detail = px < MARK_PX[0] * ratio ? 1 : 2;
		// Near, a tap must not wait for a program: there the one that turns is the only one.
		const { program, at } = this.#programFor(detail, isPoint, detail === 2 || turn < 1);
		gl.useProgram(program);
		this.#sendZones(map);
		this.#sendSigns(px, inks);
		gl.uniform1i(at.zones ?? null, 0);
		gl.uniform1i(at.signs ?? null, 1);
		gl.uniform3f(at.view ?? null, transform.k * ratio, transform.x * ratio, transform.y * ratio);
		gl.uniform2f(at.screen ?? null, this.canvas.width, this.canvas.height);
		gl.uniform3fv(at.inks ?? null, inks.rgb.subarray(0, SEAT_INKS * 3));
		gl.uniform1f(at.turn ?? null, turn);
		gl.uniform1f(at.near ?? null, near);
		gl.uniform1f(at.ratio ?? null, ratio);
		gl.bindVertexArray(isPoint ? this.#points : this.#squares);
		for (const [first, end] of this.#seen(shot)) {
			if (isPoint) gl.drawArrays(gl.POINTS, first, end - first);
			else {
				this.#point(first);
				gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, end - first);
			}
		}
	}

	/** Near, most sections are outside the screen, and a card need not look at each of their seats to find that out. */
	#seen({ transform, size }: Shot): [number, number][] {
		const { geometry, sections, seatCm } = this.#hall;
		const runs: [number, number][] = [];
		for (const { zone, outline } of sections) {
			const { first, count } = geometry.zones[zone] ?? { first: 0, count: 0 };
			if (count === 0 || !outline || !isSeen(grown(outline.box, seatCm), transform, size)) continue;
			const last = runs.at(-1);
			if (last?.[1] === first) last[1] = first + count;
			else runs.push([first, first + count]);
		}
		return runs;
	}

	/** Sends the looks that changed since they were last sent. */
	send(map: SeatMapState): void {
		if (map.revision === this.#sent) return;
		const gl = this.#gl;
		const touched = map.touchedSince(this.#sent);
		const runs = touched && runsOf(touched, GAP_BYTES);
		gl.bindBuffer(gl.ARRAY_BUFFER, this.#looks);
		if (runs === null || runs.length > RUNS_MAX) gl.bufferSubData(gl.ARRAY_BUFFER, 0, map.looks);
		else for (const [first, end] of runs) gl.bufferSubData(gl.ARRAY_BUFFER, first, map.looks, first, end - first);
		this.#sent = map.revision;
		map.drawn();
	}

	/** Until everything drawn so far is really there. */
	finish(): void {
		this.#gl.readPixels(0, 0, 1, 1, this.#gl.RGBA, this.#gl.UNSIGNED_BYTE, new Uint8Array(4));
	}

	/** Gives the card's memory back at once: browsers allow a page only some contexts. */
	close(): void {
		this.#gl.getExtension('WEBGL_lose_context')?.loseContext();
	}

	/** Seats as points, or each as an instance of a square. */
	#layOut(divisor: 0 | 1): WebGLVertexArrayObject {
		const gl = this.#gl;
		const layout = gl.createVertexArray();
		gl.bindVertexArray(layout);
		this.#point(0);
		for (let column = 0; column < 4; column++) {
			gl.enableVertexAttribArray(column);
			gl.vertexAttribDivisor(column, divisor);
		}
		gl.bindVertexArray(null);
		return layout;
	}

	/** Seats are taken from that one on: instances always begin with the first. */
	#point(first: number): void {
		const gl = this.#gl;
		gl.bindBuffer(gl.ARRAY_BUFFER, this.#seats);
		gl.vertexAttribPointer(0, 2, gl.FLOAT, false, SEAT_BYTES, first * SEAT_BYTES);
		gl.vertexAttribPointer(1, 2, gl.SHORT, true, SEAT_BYTES, first * SEAT_BYTES + 8);
		gl.vertexAttribIPointer(2, 2, gl.UNSIGNED_INT, SEAT_BYTES, first * SEAT_BYTES + 12);
		gl.bindBuffer(gl.ARRAY_BUFFER, this.#looks);
		gl.vertexAttribIPointer(3, 1, gl.UNSIGNED_BYTE, 1, first);
	}

	/** By zone: the size of its seats, its colour, whether it is locked or sold by number, how much it steps back. */
	#sendZones(map: SeatMapState): void {
		const gl = this.#gl;
		const { sections, scene } = map.hall;
		const lit = map.lit && new Set(map.lit.zones);
		const zones = new Float32Array(Math.max(1, sections.length) * 4);
		sections.forEach(({ zone }) => {
			const closed = map.locked[zone] ? 1 : map.isPooled(zone) ? 2 : 0;
			zones.set([scene.seatCm[zone] ?? 45, map.tints[zone] ?? 0, closed, lit && !lit.has(zone) ? DIMMED : 1], zone * 4);
		});
		gl.activeTexture(gl.TEXTURE0);
		// The last number is no cover that the others would have to be multiplied by.
		gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, false);
		gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, Math.max(1, sections.length), 1, 0, gl.RGBA, gl.FLOAT, zones);
	}

	/** Digits and signs in the size they will have on the screen, so that they stay sharp. */
	#sendSigns(seatPx: number, inks: Inks): void {
		const gl = this.#gl;
		const px = Math.min(CELL_PX_MAX, Math.max(4, Math.round((seatPx * CELL) / UNIT)));
		if (px === this.#signsPx && inks.font === this.#signsFont) return;
		[this.#signsPx, this.#signsFont] = [px, inks.font];
		gl.activeTexture(gl.TEXTURE1);
		gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, true);
		gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, drawSigns(px, inks.font));
	}

	#programFor(detail: Detail, isPoint: boolean, isTurning: boolean): Program {
		const gl = this.#gl;
		const head = `#version 300 es\n#define DETAIL ${detail}\n#define POINT ${Number(isPoint)}\n#define TURNING ${Number(isTurning)}\n`;
		const known = this.#programs.get(head);
		if (known) return known;
		const program = this.#compile(head);
		const made = { program, at: Object.fromEntries(UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)])) };
		this.#programs.set(head, made);
		return made;
	}

	#compile(head: string): WebGLProgram {
		const gl = this.#gl;
		const program = gl.createProgram();
		for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
			const shader = gl.createShader(kind) as WebGLShader;
			gl.shaderSource(shader, head + source);
			gl.compileShader(shader);
			gl.attachShader(program, shader);
		}
		gl.linkProgram(program);
		if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
			const shaders = gl.getAttachedShaders(program) ?? [];
			throw new Error(`${gl.getProgramInfoLog(program)} ${shaders.map((shader) => gl.getShaderInfoLog(shader)).join(' ')}`);
		}
		return program;
	}
}

function grown({ left, top, right, bottom }: Box, by: number): Box {
	return { left: left - by, top: top - by, right: right + by, bottom: bottom + by };
}

function seatColumns({ geometry, scene, numbers }: Hall): ArrayBuffer {
	const { seatCount, x, y, zoneOf, category } = geometry;
	const columns = new ArrayBuffer(seatCount * SEAT_BYTES);
	const [floats, shorts] = [new Float32Array(columns), new Uint16Array(columns)];
	for (let seat = 0; seat < seatCount; seat++) {
		const [long, short] = [seat * 5, seat * 10];
		floats[long] = x[seat] as number;
		floats[long + 1] = y[seat] as number;
		// Worked out here once: sines are what a card without a chip of its own is slowest at.
		shorts[short + 4] = Math.round(Math.cos(scene.angle[seat] as number) * SHORT_MAX);
		shorts[short + 5] = Math.round(Math.sin(scene.angle[seat] as number) * SHORT_MAX);
		shorts[short + 6] = zoneOf[seat] as number;
		shorts[short + 7] = numbers[seat] as number;
		shorts[short + 8] = category[seat] as number;
	}
	return columns;
}

function drawSigns(px: number, font: string): HTMLCanvasElement {
	const canvas = document.createElement('canvas');
	[canvas.width, canvas.height] = [px * CELLS, px];
	const ctx = canvas.getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D;
	ctx.fillStyle = ctx.strokeStyle = '#fff';
	ctx.textAlign = 'center';
	ctx.font = `600 ${(px * NUMBER.size) / CELL}px ${font}`;
	const rise = ctx.measureText('0').actualBoundingBoxAscent / 2;
	for (let digit = 0; digit < 10; digit++) ctx.fillText(String(digit), (digit + 0.5) * px, px / 2 + rise);
	ctx.lineCap = ctx.lineJoin = 'round';
	SIGNS.forEach((name, at) => {
		const glyph = GLYPHS[name];
		ctx.setTransform(px / CELL, 0, 0, px / CELL, (10 + at + 0.5) * px, px / 2);
		ctx.lineWidth = glyph.width;
		ctx.stroke(new Path2D(glyph.path));
		if (glyph.fill) ctx.fill(new Path2D(glyph.fill));
	});
	return canvas;
}
