"""Making a layout from a spec: rows around a focal point, tables, areas without seats."""

import math
from collections.abc import Callable, Iterator, Sequence

from voelgoed.seating import rules
from voelgoed.seating.faults import LayoutInvalid
from voelgoed.seating.model import Category, Group, Layout, Point, Row, Seat, Zone
from voelgoed.seating.numbering import SeatScheme, row_labels, seat_numbers
from voelgoed.seating.spec import (
    AreaSpec,
    BlockSpec,
    RowsSpec,
    Spec,
    TablesSpec,
    check_spec,
    seat_count,
    seat_counts,
    shares,
)

OnProgress = Callable[[int, int], None]


def generate(spec: Spec, on_progress: OnProgress | None = None) -> Layout:
    """The layout of a spec; `on_progress` hears seats done and seats in all, after each zone.

    Raises `LayoutInvalid`: with the faults of the spec, or, when blocks get into each other's way, of the layout.
    """
    if (faults := check_spec(spec)).count:
        raise LayoutInvalid(faults)
    total = sum(map(seat_count, spec.blocks))
    zones: list[Zone] = []
    done = 0
    for block in spec.blocks:
        zones.append(_zone(block))
        done += zones[-1].seat_count
        if on_progress:
            on_progress(done, total)
    layout = Layout(name=spec.name, description=spec.description, zones=tuple(zones), shapes=spec.shapes)
    rules.require_valid(layout)
    return layout


def _zone(block: BlockSpec) -> Zone:
    rows: tuple[Row, ...] = ()
    groups: tuple[Group, ...] = ()
    outline: tuple[Point, ...] = ()
    capacity = seat_count(block)
    match block:
        case RowsSpec():
            rows = tuple(_rows(block))
        case TablesSpec():
            rows = tuple(_table(block, index) for index in range(block.tables))
            groups = tuple(_table_group(block, row) for row in rows)
        case AreaSpec():
            outline, capacity = block.outline, block.capacity
    return Zone(
        code=block.code,
        name=block.name,
        zone_type=block.zone_type,
        capacity=capacity,
        access_mode=block.access_mode,
        membership_tier=block.membership_tier,
        allowed_roles=block.allowed_roles,
        focal_point=block.focal_point,
        outline=outline,
        rows=rows,
        groups=groups,
    )


def _rows(block: RowsSpec) -> Iterator[Row]:
    labels = row_labels(block.row_scheme, block.rows, first=block.first_row, custom=block.row_names)
    counts = seat_counts(block)
    special = range(block.rows)[block.wheelchair_row]
    for index, (label, count) in enumerate(zip(labels, counts, strict=True)):
        parts = [share for share in shares(count, block.segments) if share]
        segments = [segment for segment, share in enumerate(parts) for _ in range(share)]
        spaces = block.wheelchair_spaces if index == special else 0
        categories, companions = _accessible(block, segments, spaces)
        numbers = seat_numbers(block.seat_scheme, count, first=block.first_number)
        names = block.seat_names if block.seat_scheme is SeatScheme.CUSTOM else [str(number) for number in numbers]
        points = _row_points(block, index, segments)
        codes = [f"{block.code}-{label}-{name}" for name in names[:count]]
        yield Row(
            label=label,
            seats=tuple(
                Seat(
                    code=codes[place],
                    number=numbers[place],
                    label=names[place],
                    position=place + 1,
                    segment=segment,
                    x=points[place][0],
                    y=points[place][1],
                    category=categories[place],
                    companion_of=codes[companions[place]] if place in companions else None,
                )
                for place, segment in enumerate(segments)
            ),
        )


def _accessible(block: RowsSpec, segments: Sequence[int], spaces: int) -> tuple[list[Category], dict[int, int]]:
    """Wheelchair spaces at the aisles, companions beside them: the ends of the segments in turn, then inwards."""
    categories = [Category.STANDARD] * len(segments)
    companions: dict[int, int] = {}
    size = block.companions + 1
    for start in _starts(segments, size)[:spaces]:
        is_right_end = start + size == len(segments) or segments[start + size - 1] != segments[start + size]
        space = start + size - 1 if is_right_end else start
        for place in range(start, start + size):
            categories[place] = Category.WHEELCHAIR if place == space else Category.COMPANION
            if place != space:
                companions[place] = space
    return categories, companions


def _starts(segments: Sequence[int], size: int) -> list[int]:
    """Where so many seats together may begin: at the aisles first, and from the outside in, the same on both sides."""
    found: list[tuple[int, int, int]] = []
    for segment in dict.fromkeys(segments):
        first, count = segments.index(segment), segments.count(segment)
        for turn in range(count // size):
            inwards = turn // 2 * size
            start = first + inwards if turn % 2 == 0 else first + count - size - inwards
            found.append((turn // 2, min(start, len(segments) - size - start), start))
    return [start for *_, start in sorted(found)]


def _row_points(block: RowsSpec, index: int, segments: Sequence[int]) -> list[Point]:
    """Where the seats of a row stand: along a line or an arc, with room for the aisles."""
    along = [place * block.seat_pitch + segment * block.aisle_width for place, segment in enumerate(segments)]
    middle = (along[0] + along[-1]) / 2 - block.offset
    depth = block.distance + index * block.row_pitch
    return [_place(block, distance - middle, depth, index) for distance in along]


def _place(block: RowsSpec, along: float, depth: int, index: int) -> Point:
    """A point so far to the right, as one sits, of the middle of a row."""
    facing = math.radians(block.facing)
    x, y = block.origin or block.focal_point
    if block.curve_radius is None:
        return (
            round(x + depth * math.cos(facing) + along * math.sin(facing)),
            round(y + depth * math.sin(facing) - along * math.cos(facing)),
        )
    radius = block.curve_radius + index * block.row_pitch
    centre = depth - radius
    angle = facing - along / radius
    return (
        round(x + centre * math.cos(facing) + radius * math.cos(angle)),
        round(y + centre * math.sin(facing) + radius * math.sin(angle)),
    )


def _table(block: TablesSpec, index: int) -> Row:
    """A table is a row that goes round: its seats are neighbours but for the first and the last."""
    rank, place = divmod(index, block.tables_per_rank)
    in_rank = min(block.tables_per_rank, block.tables - rank * block.tables_per_rank)
    facing = math.radians(block.facing)
    depth = block.distance + rank * block.table_pitch
    along = (place - (in_rank - 1) / 2) * block.table_pitch
    middle_x = block.focal_point[0] + depth * math.cos(facing) + along * math.sin(facing)
    middle_y = block.focal_point[1] + depth * math.sin(facing) - along * math.cos(facing)
    label = f"{block.label}{index + 1}"
    turn = 2 * math.pi / block.seats_per_table
    return Row(
        label=label,
        seats=tuple(
            Seat(
                code=f"{block.code}-{label}-{number}",
                number=number,
                label=str(number),
                position=number,
                segment=0,
                x=round(middle_x + block.table_radius * math.cos(facing + turn * (number - 0.5))),
                y=round(middle_y + block.table_radius * math.sin(facing + turn * (number - 0.5))),
            )
            for number in range(1, block.seats_per_table + 1)
        ),
    )


def _table_group(block: TablesSpec, row: Row) -> Group:
    codes = tuple(seat.code for seat in row.seats)
    return Group(code=f"{block.code}-{row.label}", kind=block.group_kind, label=f"Table {row.label}", seat_codes=codes)
