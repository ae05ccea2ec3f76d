// How the card draws a seat. Compiled with DETAIL, POINT and TURNING set: its shape or its signs as well; as a point or as a
// square; while some change their look or all rest.
import { BARRED, BODY, CELL, HOLLOW, MARK_Y, NOTCH, NUMBER, PIP, RING, ROUND, UNIT } from './glyphs.ts';
import { NO_NUMBER } from './hall.ts';
import { INKS, SEAT_INKS, TINTS, type InkName } from './inks.ts';
import { BEFORE_SHIFT, MARK_PX, NUMBER_PX } from './looks.ts';

export const UNIFORMS = ['view', 'screen', 'zones', 'inks', 'signs', 'turn', 'near', 'ratio'] as const;
/** Cells of the texture of signs: ten digits and then these. */
export const SIGNS = ['wheelchair', 'person', 'lock', 'tick', 'cross', 'smalltick'] as const;
export const CELLS = 16;
/** Widths of lines are small parts of a seat; so large they fill a byte. */
const WIDTH_SCALE = 8;

const f = (value: number) => (value / UNIT).toFixed(5);
const shape = ({ across, down, front, back }: { across: number; down: number; front: number; back: number }) =>
	`vec4(${f(across)}, ${f(down)}, ${f(front)}, ${f(back)})`;
const ink = (name: InkName) => `inks[${INKS.indexOf(name)}]`;
const round = (radius: number) => `vec4(${f(radius)})`;
/** A ring lies that far outside what it rings. */
const RING_GAP = RING.across - BODY.across;

// What a seat wears is settled once for each seat and not for each of its pixels, so that pixels are cheap and alike.
export const VERTEX = `
precision highp float;
precision highp int;
layout(location = 0) in vec2 place;
layout(location = 1) in vec2 heading;
layout(location = 2) in uvec2 facts; // zone and number, category
layout(location = 3) in uint look;
uniform vec3 view;
uniform vec2 screen;
uniform float ratio;
uniform float turn;
uniform float near;
uniform sampler2D zones;
uniform vec3 inks[${SEAT_INKS}];
#if POINT == 0
out vec2 corner;
#endif
flat out vec4 body; // half sides, the radius in front, the radius behind
flat out vec4 stand; // heading, pixels, how far the square reaches
#if DETAIL == 1
flat out uvec2 colours; // of the filling and of the line, packed with the strength and the width: small seats are many
#else
flat out vec4 fill; // colour, how much of the lower half is filled otherwise
flat out vec4 line; // colour, half the width
flat out vec4 face; // the colour of signs, which sign
flat out vec4 extra; // ring, dashes, small tick, mark
flat out vec4 value; // price zone, number, notch, strength
#endif

struct Wear { vec4 body; vec4 fill; vec4 line; vec4 face; vec4 extra; float number; };

uint packed(vec4 one) {
	uvec4 bytes = uvec4(round(one * 255.0));
	return bytes.r | bytes.g << 8 | bytes.b << 16 | bytes.a << 24;
}

// The sign that is no sign.
const float NONE = -1.0;

Wear free(int tint, uint kind) {
	vec3 ink = inks[tint];
	if (kind == 1u) return Wear(${round(ROUND.space)}, vec4(ink, 0.0), vec4(ink, 0.0), vec4(${ink('on-zone')}, 10.0), vec4(0.0), 0.0);
	if (kind == 2u) return Wear(${round(ROUND.companion)}, vec4(inks[${TINTS} + tint], 0.0), vec4(ink, ${f(1)}), vec4(ink, 11.0), vec4(0.0), 0.0);
	return Wear(${shape(BODY)}, vec4(ink, 0.0), vec4(ink, 0.0), vec4(${ink('on-zone')}, NONE), vec4(0.0, 0.0, 0.0, 1.0), 1.0);
}

Wear own(uint kind, bool isPending, float numbers) {
	bool isRound = kind == 1u || kind == 2u;
	float mark = isRound ? 9.0 + float(kind) : isPending || numbers > 0.0 ? NONE : 13.0;
	float tick = !isRound && !isPending && numbers > 0.0 ? 1.0 : 0.0;
	vec4 line = vec4(${ink('yours-line')}, 0.0);
	return Wear(isRound ? ${round(ROUND.own)} : ${shape(BODY)}, vec4(${ink('yours')}, 0.0), line, vec4(${ink('on-yours')}, mark), vec4(isPending ? 0.0 : 1.0, 0.0, tick, 0.0), isRound ? 0.0 : 1.0);
}

Wear wear(uint look, uint status, vec4 zone, uint kind, float numbers) {
	bool isRound = kind == 1u || kind == 2u;
	if ((look & 4u) != 0u) return own(kind, (look & 8u) != 0u, numbers);
	if ((look & 16u) != 0u) return Wear(${round(ROUND.companion)}, vec4(${ink('yours-soft')}, 0.0), vec4(${ink('yours-line')}, ${f(1)}), vec4(${ink('yours-line')}, 11.0), vec4(0.0, 1.0, 0.0, 0.0), 0.0);
	if (status == 1u) return Wear(isRound ? ${round(HOLLOW.across)} : ${shape(HOLLOW)}, vec4(${ink('map-floor')}, 1.0), vec4(${ink('seat-held')}, ${f(0.8)}), vec4(${ink('seat-held')}, NONE), vec4(0.0), 0.0);
	if (status == 2u) return Wear(isRound ? ${round(PIP.across)} : ${shape(PIP)}, vec4(${ink('seat-sold')}, 0.0), vec4(${ink('seat-sold')}, 0.0), vec4(${ink('seat-sold')}, NONE), vec4(0.0), 0.0);
	if (status == 3u) return Wear(isRound ? ${round(BARRED.across)} : ${shape(BARRED)}, vec4(${ink('map-floor')}, 0.0), vec4(${ink('seat-blocked')}, ${f(0.7)}), vec4(${ink('seat-blocked')}, 14.0), vec4(0.0), 0.0);
	if (zone.z == 1.0) return Wear(${shape(HOLLOW)}, vec4(${ink('seat-vip-fill')}, 0.0), vec4(${ink('seat-vip')}, ${f(0.8)}), vec4(${ink('seat-vip')}, 12.0), vec4(0.0), 0.0);
	if (zone.z == 2.0) return Wear(${round(PIP.across)}, vec4(inks[int(zone.y)], 0.0), vec4(0.0), vec4(${ink('on-zone')}, NONE), vec4(0.0), 0.0);
	return free(int(zone.y), kind);
}

void main() {
	gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
	vec4 zone = texelFetch(zones, ivec2(int(facts.x & 0xffffu), 0), 0);
	float px = zone.x * view.x;
	vec2 middle = place * view.x + view.yz;
	vec2 outside = max(-middle, middle - screen);
	if (max(outside.x, outside.y) > px + 2.0) return;
	uint status = look & 3u;
	bool isOwn = (look & 4u) != 0u;
	float most;
	float strength = ((look & 20u) != 0u ? 1.0 : zone.w) * near;
	float numbers = smoothstep(${NUMBER_PX[0].toFixed(1)}, ${NUMBER_PX[1].toFixed(1)}, px / ratio);
	Wear now = wear(look, status, zone, facts.y, numbers);
#if TURNING
	bool isTurning = (look & 128u) != 0u;
	// An own seat pops; what others do changes shape where it is.
	if (isTurning && isOwn) px *= turn < 0.5 ? mix(0.9, 1.06, turn * 2.0) : mix(1.06, 1.0, turn * 2.0 - 1.0);
	if (isTurning && !isOwn) {
		Wear before = wear(look, (look >> ${BEFORE_SHIFT}) & 3u, zone, facts.y, numbers);
		now.body = mix(before.body, now.body, turn);
		now.fill = mix(before.fill, now.fill, turn);
		now.line = mix(before.line, now.line, turn);
		now.extra = mix(before.extra, now.extra, turn);
		now.face.a = turn < 0.5 ? before.face.a : now.face.a;
		now.number = mix(before.number, now.number, turn);
	}
#endif
	body = now.body;
#if DETAIL == 1
	// Too small for a ring or a half: an own seat has an edge, and one that somebody holds is half as dark.
	if (isOwn) now.line.a = ${f(2)};
	vec3 filling = mix(now.fill.rgb, ${ink('seat-held-fill')}, now.fill.a * 0.5);
	colours = uvec2(packed(vec4(filling, strength)), packed(vec4(now.line.rgb, now.line.a * ${WIDTH_SCALE}.0)));
	most = px * (max(body.x, body.y) + now.line.a) + 0.5;
#else
	fill = now.fill;
	line = now.line;
	uint number = facts.x >> 16;
	face = now.face;
	extra = now.extra;
	value = vec4(zone.y, number == ${NO_NUMBER}u || now.number < 0.5 ? -1.0 : float(number), facts.y == 3u && status == 0u ? 1.0 : 0.0, strength);
	most = px * (max(body.x, body.y) + line.a + (extra.x > 0.0 ? ${f(RING_GAP + 1.2)} : 0.0)) + 0.7;
#endif
	// Turned by up to an eighth, the corners of a seat reach a little farther than its sides.
	if (body.z < body.x) most *= 1.0 + 0.16 * abs(2.0 * heading.x * heading.y);
	stand = vec4(heading, px, most / px);
	vec2 at = middle;
#if POINT == 0
	corner = vec2(float(gl_VertexID & 1), float((gl_VertexID >> 1) & 1)) * 2.0 - 1.0;
	at += corner * most;
#endif
	gl_PointSize = most * 2.0;
	gl_Position = vec4(at / screen * vec2(2.0, -2.0) + vec2(-1.0, 1.0), 0.0, 1.0);
}`;

export const FRAGMENT = `
precision highp float;
precision highp int;
#if POINT == 0
in vec2 corner;
#endif
flat in vec4 body;
flat in vec4 stand;
#if DETAIL == 1
flat in uvec2 colours;
#else
flat in vec4 fill;
flat in vec4 line;
flat in vec4 face;
flat in vec4 extra;
flat in vec4 value;
#endif
uniform float ratio;
uniform vec3 inks[${SEAT_INKS}];
uniform sampler2D signs;
out vec4 ink;

vec4 pen = vec4(0.0);
float px;

vec4 unpacked(uint one) {
	return vec4(one & 255u, one >> 8 & 255u, one >> 16 & 255u, one >> 24) / 255.0;
}


void lay(vec3 colour, float cover) {
	pen = pen * (1.0 - cover) + vec4(colour, 1.0) * cover;
}

float cover(float away) {
	return clamp(0.5 - away * px, 0.0, 1.0);
}

float bodyAway(vec2 at, vec4 shape) {
	float radius = at.y < 0.0 ? shape.z : shape.w;
	vec2 q = abs(at) - shape.xy + radius;
	return min(max(q.x, q.y), 0.0) + length(max(q, 0.0)) - radius;
}

#if DETAIL > 1
float signAt(float cell, vec2 at) {
	vec2 spot = at + 0.5;
	float isIn = step(max(abs(at.x), abs(at.y)), 0.5);
	return texture(signs, vec2((max(0.0, cell) + clamp(spot.x, 0.0, 1.0)) / ${CELLS}.0, spot.y)).a * isIn * step(0.0, cell);
}

float numberAt(vec2 at, int number) {
	int digits = number < 10 ? 1 : number < 100 ? 2 : number < 1000 ? 3 : 4;
	float size = digits < 3 ? 1.0 : digits == 3 ? 0.82 : 0.64;
	float advance = ${f(NUMBER.size * NUMBER.advance)} * size;
	float x = at.x / advance + float(digits) * 0.5;
	int spot = int(floor(x));
	int left = digits - 1 - spot;
	int tens = left == 0 ? 1 : left == 1 ? 10 : left == 2 ? 100 : 1000;
	float isIn = spot < 0 || spot >= digits || number < 0 ? 0.0 : 1.0;
	return isIn * signAt(float((max(0, number) / tens) % 10), vec2((fract(x) - 0.5) * advance, at.y - ${f(NUMBER.y)}) / (${f(CELL)} * size));
}

float boxAway(vec2 at, vec2 sides) {
	vec2 q = abs(at) - sides;
	return max(q.x, q.y);
}

float markAway(vec2 at, int tint) {
	vec2 twin = vec2(abs(at.x), at.y);
	if (tint == 0) return boxAway(twin - vec2(${f(3.5)}, 0.0), vec2(${f(2.5)}, ${f(1)}));
	if (tint == 1) return boxAway(at, vec2(${f(5)}, ${f(1)}));
	if (tint == 2) return length(twin - vec2(${f(2.8)}, 0.0)) - ${f(1.35)};
	if (tint == 3) return length(at) - ${f(1.5)};
	if (tint == 4) return (twin.x + abs(at.y) - ${f(2.7)}) * 0.7071;
	if (tint == 5) return min(boxAway(at, vec2(${f(2.7)}, ${f(0.9)})), boxAway(at, vec2(${f(0.9)}, ${f(2.7)})));
	if (tint == 6) return max(dot(twin, vec2(0.8660, -0.5)) - ${f(1.5)}, at.y - ${f(1.5)});
	return length(vec2(twin.x - clamp(floor(twin.x / ${f(4.4)} + 0.5), 0.0, 1.0) * ${f(4.4)}, at.y)) - ${f(1.35)};
}
#endif

void main() {
	px = stand.z;
#if POINT
	vec2 at = (gl_PointCoord * 2.0 - 1.0) * stand.w;
#else
	vec2 at = corner * stand.w;
#endif
	vec2 turned = vec2(at.x * stand.x + at.y * stand.y, at.y * stand.x - at.x * stand.y);
	float away = bodyAway(turned, body);
#if DETAIL > 1
	away = max(away, value.z * (dot(turned, vec2(0.7071, -0.7071)) - ${f(NOTCH * Math.SQRT1_2)}) - (1.0 - value.z));
	float around = bodyAway(turned, body + ${f(RING_GAP)});
	lay(${ink('map-floor')}, cover(around) * extra.x);
	lay(${ink('yours-line')}, cover(abs(around) - ${f(1.1)}) * extra.x);
#endif
#if DETAIL == 1
	vec4 fill = unpacked(colours.x);
	vec4 line = unpacked(colours.y);
	line.a /= ${WIDTH_SCALE}.0;
	ink = vec4(mix(fill.rgb, line.rgb, cover(-away - line.a) * step(0.0001, line.a)), 1.0) * cover(away - line.a) * fill.a;
#else
	lay(fill.rgb, cover(away));
	lay(${ink('seat-held-fill')}, cover(max(away, dot(turned, vec2(-0.5634, -0.8262)))) * fill.a);
	float dash = mix(1.0, clamp(0.5 + (1.1 - abs(fract(atan(at.y, at.x) * 1.90986) - 0.5) * 4.0) * 2.0, 0.0, 1.0), extra.y);
	lay(line.rgb, cover(abs(away) - line.a) * dash * step(0.0001, line.a));
	float marks = smoothstep(${MARK_PX[0].toFixed(1)}, ${MARK_PX[1].toFixed(1)}, px / ratio);
	float numbers = smoothstep(${NUMBER_PX[0].toFixed(1)}, ${NUMBER_PX[1].toFixed(1)}, px / ratio);
	float grown = mix(1.35, 1.0, numbers);
	lay(face.rgb, cover(markAway((at - vec2(0.0, ${f(MARK_Y)} * numbers)) / grown, int(value.x)) * grown) * marks * extra.w);
	lay(face.rgb, signAt(face.a, at / ${f(CELL)}) * marks);
	lay(face.rgb, numberAt(at, int(value.y)) * numbers);
	lay(face.rgb, signAt(15.0, (at - vec2(0.0, ${f(8.2)})) / ${f(CELL)}) * extra.z);
	ink = pen * value.w;
#endif
}`;
