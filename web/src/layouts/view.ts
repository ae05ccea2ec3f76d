// Which part of a plan is seen: a middle in centimetres, and pixels for each of them. Pure, like a map's camera.

export interface Box {
	readonly left: number;
	readonly top: number;
	readonly right: number;
	readonly bottom: number;
}
export interface Size {
	readonly width: number;
	readonly height: number;
}
export interface View {
	readonly x: number;
	readonly y: number;
	/** Pixels for a centimetre. */
	readonly scale: number;
}

/** The room that is left around a plan that is seen whole. */
const MARGIN_PX = 20;

export function fit(box: Box, size: Size): View {
	const across = Math.max(1, size.width - 2 * MARGIN_PX) / Math.max(1, box.right - box.left);
	const down = Math.max(1, size.height - 2 * MARGIN_PX) / Math.max(1, box.bottom - box.top);
	return { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, scale: Math.min(across, down) };
}

/** Larger or smaller, so that what is under a point of the screen stays there. */
export function zoomed(view: View, factor: number, at: { x: number; y: number }, size: Size): View {
	const scale = view.scale * factor;
	const [across, down] = [at.x - size.width / 2, at.y - size.height / 2];
	return {
		x: view.x + across / view.scale - across / scale,
		y: view.y + down / view.scale - down / scale,
		scale,
	};
}

export function moved(view: View, across: number, down: number): View {
	return { ...view, x: view.x - across / view.scale, y: view.y - down / view.scale };
}

/** Never smaller than whole, never so large that one seat fills the screen, never so far off that nothing is seen. */
export function kept(view: View, box: Box, size: Size, scaleMax: number): View {
	const whole = fit(box, size);
	const scale = Math.min(Math.max(view.scale, whole.scale), Math.max(scaleMax, whole.scale));
	const [x, y] = scale === whole.scale ? [whole.x, whole.y] : [view.x, view.y];
	return { x: between(x, box.left, box.right), y: between(y, box.top, box.bottom), scale };
}

export function isWhole(view: View, box: Box, size: Size): boolean {
	return view.scale <= fit(box, size).scale * 1.001;
}

function between(value: number, low: number, high: number): number {
	return Math.min(Math.max(value, low), high);
}
