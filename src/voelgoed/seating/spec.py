"""What the generator is asked for, and what keeps it from being made.

Lengths are centimetres, angles degrees. The plan is seen from above with y growing downwards; a block faces its focal
point from the direction `facing` (90 is below it), and its seats run from the left as one sits. These are plain values,
so that the API, the command and the presets all say what they want in the same words.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from voelgoed.seating.faults import FaultCode, Faults
from voelgoed.seating.model import (
    CAPACITY_MAX,
    COMPANIONS_PER_SPACE_MAX,
    COORDINATE_MAX,
    DESCRIPTION_CHARS_MAX,
    NAME_CHARS_MAX,
    OUTLINE_POINTS_MAX,
    OUTLINE_POINTS_MIN,
    ROW_LABEL_CHARS_MAX,
    ROWS_PER_ZONE_MAX,
    SEAT_LABEL_CHARS_MAX,
    SEATS_MAX,
    SEATS_PER_ROW_MAX,
    SHAPES_MAX,
    TIER_CHARS_MAX,
    ZONE_CODE_CHARS_MAX,
    ZONES_MAX,
    AccessMode,
    GroupKind,
    Point,
    Shape,
    ZoneType,
)
from voelgoed.seating.nodes import check_text
from voelgoed.seating.numbering import RowScheme, SeatScheme

SEGMENTS_MAX = 20
LENGTH_MAX = 100_000
TABLES_MAX = 1_000
SEATS_PER_TABLE_MAX = 30
TABLE_LABEL_CHARS_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneSpec:
    """What every zone is asked for, whatever stands in it."""

    code: str
    name: str
    zone_type: ZoneType = ZoneType.RESERVED_SEATING
    access_mode: AccessMode = AccessMode.PUBLIC
    membership_tier: str | None = None
    allowed_roles: tuple[str, ...] = ()
    focal_point: Point = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsSpec(ZoneSpec):
    """Rows of seats, straight or curved; a balcony is simply further away."""

    kind: Literal["rows"] = "rows"
    rows: int
    seats: int
    seats_step: int = 0  # so many more in each row than in the one before
    seat_counts: tuple[int, ...] = ()  # of each row by itself, instead of the two above
    origin: Point | None = None  # what distances are measured from, if not from the focal point
    distance: int = 400  # to the first row
    facing: float = 90.0
    offset: int = 0  # of the middle to the right as one sits
    curve_radius: int | None = None  # of the first row; none is straight
    seat_pitch: int = 55
    row_pitch: int = 95
    segments: tuple[int, ...] = (1,)  # how the aisles part a row, in proportion: 1, 2, 1 is quarters at the sides
    aisle_width: int = 120
    row_scheme: RowScheme = RowScheme.LETTERS
    first_row: int = 1
    row_names: tuple[str, ...] = ()
    seat_scheme: SeatScheme = SeatScheme.LEFT_TO_RIGHT
    first_number: int = 1
    seat_names: tuple[str, ...] = ()
    wheelchair_spaces: int = 0
    companions: int = 1  # beside each space
    wheelchair_row: int = -1  # counted from the front from 0, or from the back from -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesSpec(ZoneSpec):
    """Round tables in ranks, each booked as a whole."""

    kind: Literal["tables"] = "tables"
    tables: int
    seats_per_table: int
    tables_per_rank: int
    distance: int = 400
    facing: float = 90.0
    table_pitch: int = 350
    table_radius: int = 110
    group_kind: GroupKind = GroupKind.VIP_TABLE
    label: str = "T"


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaSpec(ZoneSpec):
    """Room for so many people, without seats of their own."""

    kind: Literal["area"] = "area"
    zone_type: ZoneType = ZoneType.GA_STANDING
    capacity: int
    outline: tuple[Point, ...] = ()


BlockSpec = RowsSpec | TablesSpec | AreaSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A layout to be made."""

    name: str
    blocks: tuple[BlockSpec, ...]
    description: str | None = None
    shapes: tuple[Shape, ...] = ()


def check_spec(spec: Spec) -> Faults:
    """Everything that keeps a spec from being made, before anything is."""
    faults = Faults()
    check_text(spec.name, "name", NAME_CHARS_MAX, faults)
    if len(spec.description or "") > DESCRIPTION_CHARS_MAX:
        faults.add("description", FaultCode.TOO_LONG, f"{DESCRIPTION_CHARS_MAX} characters are allowed.")
    if "\0" in (spec.description or ""):
        faults.add("description", FaultCode.NOT_PRINTABLE, "It has a character that cannot be stored.")
    if len(spec.shapes) > SHAPES_MAX:
        faults.add("shapes", FaultCode.TOO_MANY, f"{len(spec.shapes)} shapes; {SHAPES_MAX} are allowed.")
    if not 1 <= len(spec.blocks) <= ZONES_MAX:
        message = f"{len(spec.blocks)} blocks; 1 to {ZONES_MAX} are allowed."
        faults.add("blocks", FaultCode.OUT_OF_RANGE, message)
    for index, block in enumerate(spec.blocks):
        _check_block(block, f"blocks[{index}]", faults)
    for index, shape in enumerate(spec.shapes):
        check_text(shape.label, f"shapes[{index}].label", NAME_CHARS_MAX, faults)
        _check_outline(shape.outline, f"shapes[{index}].outline", faults)
    if not faults.count and (total := sum(map(seat_count, spec.blocks))) > SEATS_MAX:
        faults.add("blocks", FaultCode.TOO_MANY, f"{total} seats; {SEATS_MAX} are allowed.")
    return faults


def seat_counts(block: RowsSpec) -> Sequence[int]:
    """How many seats each row has, from the front; of a spec that is too large no more than is needed to say so."""
    rows = min(block.rows, ROWS_PER_ZONE_MAX)
    return block.seat_counts or [block.seats + block.seats_step * row for row in range(rows)]


def shares(count: int, weights: Sequence[int]) -> list[int]:
    """So many seats parted in proportion, whole, and the same from both sides where the weights are."""
    total = sum(weights)
    ends = [0]
    reached = 0
    for weight in weights:
        reached += weight
        ends.append(_half_away(count * reached, total, is_past_middle=2 * reached > total))
    return [end - start for start, end in itertools.pairwise(ends)]


def _half_away(numerator: int, denominator: int, *, is_past_middle: bool) -> int:
    """A quotient rounded to the nearest; halves down before the middle and up after it, as in a mirror."""
    return (2 * numerator + denominator - (0 if is_past_middle else 1)) // (2 * denominator)


def _check_block(block: BlockSpec, path: str, faults: Faults) -> None:
    for key, text, chars_max in _texts(block):
        check_text(text, f"{path}.{key}", chars_max, faults)
    for key, value, low, high in _bounds(block):
        if not low <= value <= high:
            message = f"{key} is {value}, not between {low} and {high}."
            faults.add(f"{path}.{key}", FaultCode.OUT_OF_RANGE, message)
    if isinstance(block, AreaSpec) and block.outline:
        _check_outline(block.outline, f"{path}.outline", faults)


def _texts(block: BlockSpec) -> Iterator[tuple[str, str, int]]:
    """The words of a block, and how long they may be."""
    yield "code", block.code, ZONE_CODE_CHARS_MAX
    yield "name", block.name, NAME_CHARS_MAX
    if block.membership_tier is not None:
        yield "membership_tier", block.membership_tier, TIER_CHARS_MAX
    if isinstance(block, TablesSpec):
        yield "label", block.label, TABLE_LABEL_CHARS_MAX
    if isinstance(block, RowsSpec):
        for index, name in enumerate(block.row_names[:ROWS_PER_ZONE_MAX]):
            yield f"row_names[{index}]", name, ROW_LABEL_CHARS_MAX
        for index, name in enumerate(block.seat_names[:SEATS_PER_ROW_MAX]):
            yield f"seat_names[{index}]", name, SEAT_LABEL_CHARS_MAX


def _check_outline(outline: Sequence[Point], path: str, faults: Faults) -> None:
    if not OUTLINE_POINTS_MIN <= len(outline) <= OUTLINE_POINTS_MAX:
        message = f"{len(outline)} points; {OUTLINE_POINTS_MIN} to {OUTLINE_POINTS_MAX} are allowed."
        faults.add(path, FaultCode.OUT_OF_RANGE, message)
    if any(abs(value) > COORDINATE_MAX for point in outline for value in point):
        faults.add(path, FaultCode.OUT_OF_RANGE, f"A point is more than {COORDINATE_MAX} away.")


def _bounds(block: BlockSpec) -> Iterator[tuple[str, float, float, float]]:
    """What each number of a block may be."""
    for value in block.focal_point:
        yield "focal_point", value, -COORDINATE_MAX // 2, COORDINATE_MAX // 2
    match block:
        case RowsSpec():
            yield from _row_bounds(block)
        case TablesSpec():
            yield "tables", block.tables, 1, TABLES_MAX
            yield "seats_per_table", block.seats_per_table, 1, SEATS_PER_TABLE_MAX
            yield "tables_per_rank", block.tables_per_rank, 1, TABLES_MAX
            yield "distance", block.distance, 0, LENGTH_MAX
            yield "facing", block.facing, -360, 360
            yield "table_radius", block.table_radius, 30, 1_000
            yield "table_pitch", block.table_pitch, 2 * block.table_radius + 40, 5_000
            ranks = -(-block.tables // max(1, block.tables_per_rank))
            yield "tables", ranks * block.table_pitch, 0, LENGTH_MAX
            yield "tables_per_rank", block.tables_per_rank * block.table_pitch, 0, LENGTH_MAX
        case AreaSpec():
            yield "capacity", block.capacity, 1, CAPACITY_MAX


def _row_bounds(block: RowsSpec) -> Iterator[tuple[str, float, float, float]]:
    yield "rows", block.rows, 1, ROWS_PER_ZONE_MAX
    counts = seat_counts(block)
    longest, shortest = max(counts, default=1), min(counts, default=1)
    yield "seats", shortest if shortest < 1 else longest, 1, SEATS_PER_ROW_MAX
    if not (1 <= block.rows <= ROWS_PER_ZONE_MAX and 1 <= shortest <= longest <= SEATS_PER_ROW_MAX):
        return  # the other numbers say nothing about a block of no size
    if block.seat_counts:
        yield "seat_counts", len(block.seat_counts), block.rows, block.rows
    for value in block.origin or ():
        yield "origin", value, -COORDINATE_MAX // 2, COORDINATE_MAX // 2
    yield "distance", block.distance, 0, LENGTH_MAX
    yield "facing", block.facing, -360, 360
    yield "offset", block.offset, -LENGTH_MAX, LENGTH_MAX
    yield "seat_pitch", block.seat_pitch, 30, 500
    yield "seat_pitch", longest * block.seat_pitch, 0, LENGTH_MAX
    yield "row_pitch", block.row_pitch, 40, 1_000
    yield "row_pitch", block.rows * block.row_pitch, 0, LENGTH_MAX
    yield "aisle_width", block.aisle_width, 0, 2_000
    yield "segments", len(block.segments), 1, SEGMENTS_MAX
    yield "segments", min(block.segments, default=0), 1, 1_000
    if block.curve_radius is not None:
        width = longest * block.seat_pitch + (len(block.segments) - 1) * block.aisle_width
        yield "curve_radius", block.curve_radius, math.ceil(width / (1.9 * math.pi)), LENGTH_MAX * 10
    yield "first_row", block.first_row, 1, 1_000
    yield "first_number", block.first_number, 0 if block.seat_scheme is SeatScheme.LEFT_TO_RIGHT else 1, 100_000
    if block.row_scheme is RowScheme.CUSTOM:
        yield "row_names", len(block.row_names), block.rows, ROWS_PER_ZONE_MAX
    if block.seat_scheme is SeatScheme.CUSTOM:
        yield "seat_names", len(block.seat_names), longest, SEATS_PER_ROW_MAX
    yield "companions", block.companions, 0, COMPANIONS_PER_SPACE_MAX
    yield "wheelchair_row", block.wheelchair_row, -block.rows, block.rows - 1
    if -len(counts) <= block.wheelchair_row < len(counts) and min(block.segments, default=0) > 0:
        room = _room_for_spaces(counts[block.wheelchair_row], block)
        yield "wheelchair_spaces", block.wheelchair_spaces, 0, room


def _room_for_spaces(count: int, block: RowsSpec) -> int:
    return sum(share // (block.companions + 1) for share in shares(count, block.segments))


def seat_count(block: BlockSpec) -> int:
    match block:
        case RowsSpec():
            return sum(seat_counts(block))
        case TablesSpec():
            return block.tables * block.seats_per_table
        case AreaSpec():
            return 0
