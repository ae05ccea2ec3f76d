"""Reading seating plans of pretix: for organisers who come from there with their halls drawn.

Their plan has zones, rows and seats with positions relative to each other, seats with an id of their own, and
categories that are price levels. Prices here are of zones, so that a zone of several categories becomes several zones.
The ids of their seats become the codes, so that a plan that is read again keeps its seats.
"""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from voelgoed.seating import rules
from voelgoed.seating.document import decode_object
from voelgoed.seating.faults import FaultCode, Faults, LayoutInvalid, refuse_size
from voelgoed.seating.model import (
    COORDINATE_MAX,
    NAME_CHARS_MAX,
    NUMBER_MAX,
    OUTLINE_POINTS_MAX,
    OUTLINE_POINTS_MIN,
    ROW_LABEL_CHARS_MAX,
    ROWS_PER_ZONE_MAX,
    SEAT_CODE_CHARS_MAX,
    SEAT_LABEL_CHARS_MAX,
    SEATS_MAX,
    SEATS_PER_ROW_MAX,
    SHAPES_MAX,
    ZONE_CODE_CHARS_MAX,
    ZONES_MAX,
    Category,
    Layout,
    Point,
    Row,
    Seat,
    Shape,
    ShapeKind,
    Zone,
    ZoneType,
)
from voelgoed.seating.nodes import check_text, check_type, shown

SCALE = 2  # their editor puts seats some 25 units apart; a seat is half a metre wide
GAP = 1.6  # a step this many times the usual one of a row is an aisle
CIRCLE_POINTS = 24
AREAS_PER_ZONE_MAX = 1_000
REACH = COORDINATE_MAX / SCALE / 4  # three of them are added up
Item = Mapping[str, object]


def read_plan(data: bytes) -> Layout:
    """The layout of a plan. Raises `LayoutInvalid` with everything that is wrong with it."""
    refuse_size(data)
    faults = Faults()
    reading = _Plan(faults)
    layout = reading.read(decode_object(data, faults))
    if not faults.count:
        rules.check(layout, faults, reading, rules.Doubts())
    if faults.count:
        raise LayoutInvalid(faults)
    return layout


@dataclass(slots=True, kw_only=True)
class _Drawn:
    """A seat as their plan draws it."""

    path: str
    code: str
    label: str
    category: str
    x: float
    y: float


@dataclass(slots=True)
class _ZoneRows:
    """The rows of one zone and category, and where their seats stood."""

    name: str
    rows: list[Row] = field(default_factory=list)
    paths: list[list[str]] = field(default_factory=list)


class _Plan:
    """One pass over a plan. Keys that are not needed are passed over: plans of every age have others."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.zones: list[_ZoneRows] = []
        self.seats_left = SEATS_MAX

    def read(self, plan: Item) -> Layout:
        name = self._text(plan, "name", "", NAME_CHARS_MAX)
        shapes: list[Shape] = []
        for path, zone in self._objects(plan, "zones", "", ZONES_MAX):
            x, y = self._position(zone, path)
            self._read_rows(zone, path, (x, y))
            for _, area in self._objects(zone, "areas", path, AREAS_PER_ZONE_MAX, is_required=False):
                if (shape := _shape(area, x, y)) is not None:
                    shapes.append(shape)
        taken: set[str] = set()
        return Layout(
            name=name,
            description=None,
            zones=tuple(_zone(zone, taken) for zone in self.zones),
            shapes=tuple(shapes[:SHAPES_MAX]),
        )

    def _read_rows(self, zone: Item, path: str, origin: tuple[float, float]) -> None:
        """The rows of a zone, each parted by category."""
        name = zone.get("name")
        title = _plain(name if isinstance(name, str) else "") or f"Zone {len(self.zones) + 1}"
        found: dict[str, _ZoneRows] = {}
        for row_path, row in self._objects(zone, "rows", path, ROWS_PER_ZONE_MAX):
            label = self._text(row, "row_number", row_path, ROW_LABEL_CHARS_MAX)
            x, y = self._position(row, row_path, is_required=False)
            drawn = self._seats(row, row_path, (origin[0] + x, origin[1] + y))
            for category in dict.fromkeys(seat.category for seat in drawn):
                zone_rows = found.setdefault(category, _ZoneRows(category))
                _add_row(zone_rows, label, [seat for seat in drawn if seat.category == category])
        if len(self.zones) + len(found) > ZONES_MAX:
            message = f"More than {ZONES_MAX} zones and categories."
            self.faults.add(path, FaultCode.TOO_MANY, message)
            raise LayoutInvalid(self.faults)
        for category, zone_rows in found.items():
            zone_rows.name = title if len(found) == 1 else _plain(f"{title} {category}")
            self.zones.append(zone_rows)

    def _seats(self, row: Item, path: str, origin: tuple[float, float]) -> list[_Drawn]:
        seats = []
        for seat_path, seat in self._objects(row, "seats", path, SEATS_PER_ROW_MAX):
            self.seats_left -= 1
            if self.seats_left == -1:
                self.faults.add(seat_path, FaultCode.TOO_MANY, f"More than {SEATS_MAX} seats up to here.")
            if self.seats_left < 0:
                return []
            x, y = self._position(seat, seat_path)
            seats.append(
                _Drawn(
                    path=seat_path,
                    code=self._text(seat, "seat_guid", seat_path, SEAT_CODE_CHARS_MAX),
                    label=self._text(seat, "seat_number", seat_path, SEAT_LABEL_CHARS_MAX),
                    category=self._text(seat, "category", seat_path, NAME_CHARS_MAX),
                    x=(origin[0] + x) * SCALE,
                    y=(origin[1] + y) * SCALE,
                )
            )
        return seats

    def _objects(
        self, item: Item, key: str, path: str, most: int, *, is_required: bool = True
    ) -> list[tuple[str, Item]]:
        """The objects of a list with their paths."""
        where = f"{path}.{key}" if path else key
        value = item.get(key)
        if value is None:
            if is_required:
                self.faults.add(where, FaultCode.MISSING, f"{key} is missing.")
            return []
        if not isinstance(value, list):
            check_type(value, list, where, self.faults)
            return []
        if len(value) > most:
            self.faults.add(where, FaultCode.TOO_MANY, f"{len(value)} of them; {most} are allowed.")
            return []
        numbered = ((f"{where}[{index}]", one) for index, one in enumerate(value))
        return [(place, one) for place, one in numbered if check_type(one, dict, place, self.faults)]

    def _text(self, item: Item, key: str, path: str, chars_max: int) -> str:
        where = f"{path}.{key}" if path else key
        value = item.get(key)
        if value is None:
            self.faults.add(where, FaultCode.MISSING, f"{key} is missing.")
        elif check_text(value, where, chars_max, self.faults):
            return str(value)
        return ""

    def _position(self, item: Item, path: str, *, is_required: bool = True) -> tuple[float, float]:
        """A position, which may have decimals; it must keep within what a layout can hold."""
        value = item.get("position")
        if value is None and not is_required:
            return 0.0, 0.0
        try:
            found = msgspec.convert(value, _XY)
        except msgspec.ValidationError:
            message = f"{shown(value)} is not a position."
            self.faults.add(f"{path}.position", FaultCode.WRONG_TYPE, message, 'Write {"x": 0, "y": 0}.')
            return 0.0, 0.0
        if max(abs(found.x), abs(found.y)) > REACH:
            self.faults.add(f"{path}.position", FaultCode.OUT_OF_RANGE, f"{shown(value)} is too far away.")
        return found.x, found.y

    def layout(self, key: str) -> str:
        return key

    def zone(self, zone: int, key: str) -> str:
        return f"zone {self.zones[zone].name}, {key}"

    def row(self, zone: int, row: int, key: str) -> str:
        return f"zone {self.zones[zone].name}, row {self.zones[zone].rows[row].label}, {key}"

    def seat(self, place: rules.Place, key: str) -> str:
        zone, row, seat = place
        theirs = {"code": "seat_guid", "label": "seat_number"}.get(key, "position")
        return f"{self.zones[zone].paths[row][seat]}.{theirs}"

    def group(self, zone: int, group: int, key: str) -> str:
        raise AssertionError((zone, group, key))  # plans have no groups


def _add_row(zone: _ZoneRows, label: str, drawn: list[_Drawn]) -> None:
    """A row of seats. Another one of the same label, as plans have it beyond an aisle, goes on with a break."""
    earlier = [place for place, row in enumerate(zone.rows) if row.label == label]
    if not earlier:
        zone.rows.append(Row(label=label, seats=_row_seats(drawn, 0, 0)))
        zone.paths.append([seat.path for seat in drawn])
        return
    place = earlier[0]
    before = zone.rows[place].seats
    more = _row_seats(drawn, len(before), before[-1].segment + 1)
    zone.rows[place] = Row(label=label, seats=(*before, *more))
    zone.paths[place] += [seat.path for seat in drawn]


def _row_seats(drawn: list[_Drawn], places: int, first_segment: int) -> tuple[Seat, ...]:
    """Seats in the order of the plan, parted where the step to the next is much longer than usual."""
    steps = [math.dist((a.x, a.y), (b.x, b.y)) for a, b in itertools.pairwise(drawn)]
    usual = sorted(steps)[len(steps) // 2] if steps else 0.0
    seats = []
    segment = first_segment
    for index, seat in enumerate(drawn):
        segment += index > 0 and steps[index - 1] > GAP * usual
        seats.append(
            Seat(
                code=seat.code,
                number=_number(seat.label, places + index + 1),
                label=seat.label,
                position=places + index + 1,
                segment=segment,
                x=round(seat.x),
                y=round(seat.y),
                category=Category.STANDARD,
            )
        )
    return tuple(seats)


def _number(label: str, place: int) -> int:
    """The number in a label, or the place in the row where it has none."""
    found = re.search(r"[0-9]{1,6}", label)
    return min(int(found[0]), NUMBER_MAX) if found else place


def _zone(zone: _ZoneRows, taken: set[str]) -> Zone:
    """A zone with a code made of its name, since theirs have none."""
    stem = re.sub(r"[^A-Z0-9]+", "-", zone.name.upper()).strip("-")[: ZONE_CODE_CHARS_MAX - 4] or "ZONE"
    code, count = stem, 1
    while code in taken:
        count += 1
        code = f"{stem}-{count}"
    taken.add(code)
    return Zone(
        code=code,
        name=zone.name,
        zone_type=ZoneType.RESERVED_SEATING,
        capacity=sum(len(row.seats) for row in zone.rows),
        rows=tuple(zone.rows),
    )


def _shape(item: Item, x: float, y: float) -> Shape | None:
    """A drawing of theirs, as far as it can be understood: it is never a reason to refuse a plan."""
    try:
        area = msgspec.convert(item, _Area)
    except msgspec.ValidationError:
        return None
    outline = _outline(area)
    if len(outline) < OUTLINE_POINTS_MIN:
        return None
    words = area.text.text if isinstance(area.text, _Text) else area.text or ""
    label = _plain(words)
    left, top = x + area.position.x, y + area.position.y
    points = tuple(_bounded((left + dx) * SCALE, (top + dy) * SCALE) for dx, dy in outline)
    is_stage = "stage" in label.lower() or "bühne" in label.lower()
    return Shape(kind=ShapeKind.STAGE if is_stage else ShapeKind.OTHER, label=label or "Area", outline=points)


def _plain(words: str) -> str:
    """A name in one line, of which only what can be printed is left, as long as names may be."""
    return "".join(filter(str.isprintable, " ".join(words.split())))[:NAME_CHARS_MAX].strip()


def _outline(area: "_Area") -> list[tuple[float, float]]:
    """The corners of an area from its position; none when it has no size."""
    if area.circle is not None:
        return _oval(area.circle.radius, area.circle.radius)
    if area.ellipse is not None:
        return _oval(area.ellipse.radius.x, area.ellipse.radius.y)
    if area.polygon is not None:
        return [(point.x, point.y) for point in area.polygon.points[:OUTLINE_POINTS_MAX]]
    width, height = area.width, area.height
    if area.rectangle is not None:
        width, height = area.rectangle.width, area.rectangle.height
    if width is None or height is None:
        return []
    return [(0, 0), (width, 0), (width, height), (0, height)]


def _oval(radius_x: float, radius_y: float) -> list[tuple[float, float]]:
    turns = [2 * math.pi * point / CIRCLE_POINTS for point in range(CIRCLE_POINTS)]
    return [(radius_x * math.cos(turn), radius_y * math.sin(turn)) for turn in turns]


def _bounded(x: float, y: float) -> Point:
    return (
        round(max(-COORDINATE_MAX, min(COORDINATE_MAX, x))),
        round(max(-COORDINATE_MAX, min(COORDINATE_MAX, y))),
    )


class _XY(msgspec.Struct):
    x: float
    y: float


class _Size(msgspec.Struct):
    width: float
    height: float


class _Circle(msgspec.Struct):
    radius: float


class _Ellipse(msgspec.Struct):
    radius: _XY


class _Polygon(msgspec.Struct):
    points: list[_XY]


class _Text(msgspec.Struct):
    text: str = ""


class _Area(msgspec.Struct):
    """An area of a plan: older ones have a size, newer ones one of several shapes."""

    position: _XY
    text: _Text | str | None = None
    width: float | None = None
    height: float | None = None
    rectangle: _Size | None = None
    circle: _Circle | None = None
    ellipse: _Ellipse | None = None
    polygon: _Polygon | None = None
