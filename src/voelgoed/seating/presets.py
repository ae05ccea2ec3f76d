"""Halls ready made: a theatre, an arena, two stadiums and the festival of the examples."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from voelgoed.seating.model import AccessMode, Point, Shape, ShapeKind, ZoneType
from voelgoed.seating.numbering import RowScheme, SeatScheme
from voelgoed.seating.spec import AreaSpec, BlockSpec, RowsSpec, Spec

VIP_TIER = "voelgoed_vriendinne"


class Arc(NamedTuple):
    """A piece of the line along which the first row of a bowl runs."""

    centre_x: float
    centre_y: float
    radius: float
    middle: float  # the direction of it from the centre: 90 is below, 180 to the left
    sweep: float
    sections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One ring of sections, all with as many rows."""

    first_section: int
    corner_sections: int  # corners widen most towards the back
    rows: int
    gap: int  # between the last row of the tier before, or the line of the bowl, and the first of this
    wheelchair_spaces: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bowl:
    """Sections all around a field. Long sides, ends and corners are arcs that go over into each other."""

    long_radius: int
    long_sweep: float
    end_radius: int
    end_sweep: float
    corner_radius: int
    long_sections: int
    end_sections: int
    tiers: tuple[Tier, ...]
    seats: int
    seat_pitch: int = 50
    row_pitch: int = 80
    aisle_width: int = 120


def preset(name: str) -> Spec:
    """The spec of a preset by its name, one of `PRESETS`."""
    return PRESETS[name]()


def theatre_350() -> Spec:
    """Stalls with two aisles and a balcony behind, curved round a stage."""
    stalls = RowsSpec(
        code="STALLS",
        name="Stalls",
        rows=12,
        seats=16,
        seats_step=1,
        distance=450,
        curve_radius=1_100,
        segments=(1, 2, 1),
        aisle_width=110,
        wheelchair_spaces=4,
    )
    balcony = RowsSpec(
        code="BALCONY",
        name="Balcony",
        rows=4,
        seats=23,
        distance=1_850,
        curve_radius=2_500,
        segments=(1, 2, 1),
        aisle_width=110,
        row_names=("AA", "BB", "CC", "DD"),
        row_scheme=RowScheme.CUSTOM,
        seat_scheme=SeatScheme.CONTINENTAL,
    )
    stage = Shape(kind=ShapeKind.STAGE, label="Stage", outline=((-600, -350), (600, -350), (450, 200), (-450, 200)))
    return Spec(name="Theatre", blocks=(stalls, balcony), shapes=(stage,))


def festival() -> Spec:
    """The hybrid event of the examples: 300 reserved, 400 seated without numbers, 300 standing, 50 for members."""
    pit = AreaSpec(code="PIT", name="Pit", capacity=300, outline=_box(-1_500, 300, 1_500, 1_200))
    floor = AreaSpec(
        code="FLOOR",
        name="Floor",
        zone_type=ZoneType.GA_SEATED,
        capacity=400,
        outline=_box(-1_600, 1_400, 1_600, 2_700),
    )
    orchestra = RowsSpec(
        code="ORCHESTRA",
        name="Orchestra",
        rows=10,
        seats=30,
        distance=2_950,
        curve_radius=6_000,
        segments=(1, 2, 1),
        wheelchair_spaces=4,
        wheelchair_row=0,
    )
    lounge = RowsSpec(
        code="VIP",
        name="VIP Lounge",
        zone_type=ZoneType.VIP_RESERVED,
        access_mode=AccessMode.MEMBERSHIP_TIER,
        membership_tier=VIP_TIER,
        rows=5,
        seats=10,
        distance=2_700,
        facing=30.0,
        curve_radius=2_700,
        seat_pitch=70,
        row_pitch=120,
        wheelchair_spaces=1,
    )
    stage = Shape(kind=ShapeKind.STAGE, label="Stage", outline=_box(-900, -700, 900, 100))
    return Spec(name="Festival", blocks=(orchestra, floor, pit, lounge), shapes=(stage,))


def arena_20k() -> Spec:
    """A hall round an ice rink, with two tiers."""
    bowl = Bowl(
        long_radius=7_000,
        long_sweep=36.0,
        end_radius=3_800,
        end_sweep=44.0,
        corner_radius=1_150,
        long_sections=6,
        end_sections=4,
        tiers=(
            Tier(first_section=101, corner_sections=2, rows=18, gap=0, wheelchair_spaces=2),
            Tier(first_section=201, corner_sections=3, rows=20, gap=400),
        ),
        seats=20_000,
    )
    rink = Shape(kind=ShapeKind.PITCH, label="Floor", outline=_box(-2_600, -1_500, 2_600, 1_500))
    return Spec(name="Arena", blocks=tuple(_bowl(bowl)), shapes=(rink,))


def stadium_60k() -> Spec:
    """Two tiers round a football pitch."""
    tiers = (
        Tier(first_section=101, corner_sections=3, rows=26, gap=0, wheelchair_spaces=2),
        Tier(first_section=201, corner_sections=5, rows=34, gap=500),
    )
    return _stadium("Stadium", tiers, 60_000)


def stadium_100k() -> Spec:
    """Three tiers round a football pitch: as many seats as a layout can have."""
    tiers = (
        Tier(first_section=101, corner_sections=3, rows=30, gap=0, wheelchair_spaces=3),
        Tier(first_section=201, corner_sections=5, rows=26, gap=500, wheelchair_spaces=1),
        Tier(first_section=301, corner_sections=6, rows=30, gap=600),
    )
    return _stadium("Great stadium", tiers, 100_000)


PRESETS: Mapping[str, Callable[[], Spec]] = {
    "theatre-350": theatre_350,
    "arena-20k": arena_20k,
    "stadium-60k": stadium_60k,
    "stadium-100k": stadium_100k,
    "festival": festival,
}


def _stadium(name: str, tiers: tuple[Tier, ...], seats: int) -> Spec:
    bowl = Bowl(
        long_radius=19_000,
        long_sweep=30.0,
        end_radius=10_000,
        end_sweep=36.0,
        corner_radius=1_700,
        long_sections=12,
        end_sections=8,
        tiers=tiers,
        seats=seats,
    )
    pitch = Shape(kind=ShapeKind.PITCH, label="Pitch", outline=_box(-5_250, -3_400, 5_250, 3_400))
    return Spec(name=name, blocks=tuple(_bowl(bowl)), shapes=(pitch,))


def _box(left: int, top: int, right: int, bottom: int) -> tuple[Point, ...]:
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def _bowl(bowl: Bowl) -> Iterator[BlockSpec]:
    """The sections of all tiers, with as many seats as asked for: what is too much is left out of the last rows."""
    rings = [list(_ring(bowl, tier, depth)) for tier, depth in _tiers(bowl)]
    surplus = sum(sum(block.seat_counts) for ring in rings for block in ring) - bowl.seats
    assert surplus >= 0
    last = rings.pop()
    each, more = divmod(surplus, len(last))
    for ring in rings:
        yield from ring
    for place, block in enumerate(last):
        *counts, count = block.seat_counts
        yield replace(block, seat_counts=(*counts, count - each - (place < more)))


def _tiers(bowl: Bowl) -> Iterator[tuple[Tier, int]]:
    """Each tier with how far behind the line of the bowl its first row stands."""
    depth = 0
    for tier in bowl.tiers:
        depth += tier.gap
        yield tier, depth
        depth += tier.rows * bowl.row_pitch


def _ring(bowl: Bowl, tier: Tier, depth: int) -> Iterator[RowsSpec]:
    """The sections of one tier, clockwise from the middle of the lower long side."""
    number = tier.first_section
    for arc in _arcs(bowl, tier.corner_sections):
        sweep = arc.sweep / arc.sections
        for section in range(arc.sections):
            facing = (arc.middle + (section + 0.5) * sweep - arc.sweep / 2) % 360
            radius = arc.radius + depth
            counts = [
                int((math.radians(sweep) * (radius + row * bowl.row_pitch) - bowl.aisle_width) // bowl.seat_pitch) + 1
                for row in range(tier.rows)
            ]
            yield RowsSpec(
                code=str(number),
                name=f"Section {number}",
                rows=tier.rows,
                seats=counts[0],
                seat_counts=tuple(counts),
                origin=(round(arc.centre_x), round(arc.centre_y)),
                distance=round(radius),
                curve_radius=round(radius),
                facing=facing,
                seat_pitch=bowl.seat_pitch,
                row_pitch=bowl.row_pitch,
                row_scheme=RowScheme.NUMBERS,
                wheelchair_spaces=tier.wheelchair_spaces,
            )
            number += 1


def _arcs(bowl: Bowl, corner_sections: int) -> Iterator[Arc]:
    """The line of the first row, clockwise from the lower long side.

    Eight arcs, each going on in the direction in which the one before ends. So the centre of a corner lies on the line
    from the centre of the long side to their joint, and that of an end on the line from there to the next joint.
    """
    corner_sweep = 90 - (bowl.long_sweep + bowl.end_sweep) / 2
    joint = math.radians(bowl.long_sweep / 2)
    next_joint = joint + math.radians(corner_sweep)
    inward, outward = bowl.long_radius - bowl.corner_radius, bowl.end_radius - bowl.corner_radius
    corner_x, corner_y = inward * math.sin(joint), outward * math.cos(next_joint)
    long_y = corner_y - inward * math.cos(joint)
    end_x = corner_x - outward * math.sin(next_joint)
    for x, y, middle in ((-1, 1, 90), (-1, -1, 180), (1, -1, 270), (1, 1, 360)):
        is_long = middle % 180 == 90  # noqa: PLR2004 - below and above
        if is_long:
            side = Arc(0, y * long_y, bowl.long_radius, middle, bowl.long_sweep, bowl.long_sections)
        else:
            side = Arc(x * end_x, 0, bowl.end_radius, middle, bowl.end_sweep, bowl.end_sections)
        yield side
        corner = middle + side.sweep / 2 + corner_sweep / 2
        yield Arc(x * corner_x, y * corner_y, bowl.corner_radius, corner, corner_sweep, corner_sections)
