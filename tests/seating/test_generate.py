"""The generator: halls that are what was asked for, and look like halls."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from voelgoed.seating import adjacency, presets
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.document import read_layout
from voelgoed.seating.faults import LayoutInvalid
from voelgoed.seating.generate import generate
from voelgoed.seating.model import (
    SEATS_MAX,
    AccessMode,
    Category,
    GroupKind,
    Layout,
    Row,
    Seat,
    Shape,
    ShapeKind,
    ZoneType,
)
from voelgoed.seating.numbering import RowScheme, SeatScheme, letters, row_labels, seat_numbers
from voelgoed.seating.spec import AreaSpec, BlockSpec, RowsSpec, Spec, TablesSpec, shares

STALLS = RowsSpec(code="S", name="Stalls", rows=4, seats=10)
NEAREST_CM = 40


def one(block: BlockSpec) -> Layout:
    return generate(Spec(name="Hall", blocks=(block,)))


def first_row(block: RowsSpec) -> Row:
    return one(block).zones[0].rows[0]


def distance(a: Seat, b: Seat) -> float:
    return math.dist((a.x, a.y), (b.x, b.y))


def close_pairs(layout: Layout) -> Iterator[tuple[str, str]]:
    """Seats that stand closer than a person is wide, found by looking into the squares around each."""
    squares: dict[tuple[int, int], list[Seat]] = {}
    for _, _, seat in layout.seats():
        squares.setdefault((seat.x // NEAREST_CM, seat.y // NEAREST_CM), []).append(seat)
    for (x, y), seats in squares.items():
        around = [squares.get((x + dx, y + dy), []) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
        for seat in seats:
            for other in itertools.chain(*around):
                if seat.code < other.code and distance(seat, other) < NEAREST_CM:
                    yield seat.code, other.code


@pytest.mark.parametrize(
    ("name", "seats", "capacity"),
    [
        ("theatre-350", 350, 350),
        ("arena-20k", 20_000, 20_000),
        ("stadium-60k", 60_000, 60_000),
        ("stadium-100k", 100_000, 100_000),
        ("festival", 350, 1_050),
    ],
)
def test_presets_have_the_seats_they_are_named_for(name: str, seats: int, capacity: int) -> None:
    """Exactly; nobody sits on another's lap; there is room for wheelchairs, each with a companion."""
    layout = generate(presets.preset(name))
    assert (layout.seat_count, layout.total_capacity) == (seats, capacity)
    assert list(close_pairs(layout)) == []
    spaces = [seat.code for _, _, seat in layout.seats() if seat.category is Category.WHEELCHAIR]
    companions = [seat.companion_of for _, _, seat in layout.seats() if seat.category is Category.COMPANION]
    assert spaces
    assert sorted(spaces) == sorted(code for code in companions if code)
    assert all(zone.focal_point == (0, 0) for zone in layout.zones)


def test_there_is_a_test_for_every_preset() -> None:
    """The five of the plan."""
    assert set(presets.PRESETS) == {"theatre-350", "arena-20k", "stadium-60k", "stadium-100k", "festival"}


def test_the_festival_is_the_one_of_the_examples() -> None:
    """300 reserved, 400 seated, 300 standing, 50 for members: 1,050, not the 1,000 of its first line."""
    layout = generate(presets.preset("festival"))
    assert {zone.name: (zone.zone_type, zone.capacity) for zone in layout.zones} == {
        "Orchestra": (ZoneType.RESERVED_SEATING, 300),
        "Floor": (ZoneType.GA_SEATED, 400),
        "Pit": (ZoneType.GA_STANDING, 300),
        "VIP Lounge": (ZoneType.VIP_RESERVED, 50),
    }
    lounge = layout.zones[3]
    assert (lounge.access_mode, lounge.membership_tier) == (AccessMode.MEMBERSHIP_TIER, "voelgoed_vriendinne")


def test_a_bowl_is_round_and_the_same_on_all_sides() -> None:
    """Sections all around, none on the pitch, each mirrored across both axes but for the seats left out at the top."""
    layout = generate(presets.preset("stadium-60k"))
    (pitch,) = layout.shapes
    right, bottom = max(x for x, _ in pitch.outline), max(y for _, y in pitch.outline)
    assert all(abs(seat.x) > right or abs(seat.y) > bottom for _, _, seat in layout.seats())
    lower = [zone for zone in layout.zones if zone.code < "200"]
    points = {(seat.x, seat.y) for zone in lower for row in zone.rows for seat in row.seats}
    mirrored = sum((-x, y) in points and (x, -y) in points for x, y in points)
    assert mirrored / len(points) > 0.95
    corners = {(seat.x > 0, seat.y > 0) for _, _, seat in layout.seats()}
    assert len(corners) == 4


def test_the_same_spec_gives_the_same_bytes() -> None:
    """Today and tomorrow."""
    spec = presets.preset("arena-20k")
    assert write_layout(generate(spec)) == write_layout(generate(spec))


def test_progress_is_told_from_zone_to_zone() -> None:
    """Seats done and seats in all; the last word is all of them."""
    heard: list[tuple[int, int]] = []
    generate(presets.preset("arena-20k"), on_progress=lambda done, total: heard.append((done, total)))
    assert len(heard) == 60
    assert heard == sorted(heard)
    assert {total for _, total in heard} == {20_000}
    assert heard[-1] == (20_000, 20_000)


@pytest.mark.parametrize(
    ("scheme", "numbers"),
    [
        (SeatScheme.LEFT_TO_RIGHT, [1, 2, 3, 4, 5, 6]),
        (SeatScheme.RIGHT_TO_LEFT, [6, 5, 4, 3, 2, 1]),
        (SeatScheme.ODD_EVEN, [5, 3, 1, 2, 4, 6]),
        (SeatScheme.CENTRE_OUT, [6, 4, 2, 1, 3, 5]),
        (SeatScheme.CONTINENTAL, [101, 102, 103, 104, 105, 106]),
    ],
)
def test_seats_are_counted_as_halls_count_them(scheme: SeatScheme, numbers: list[int]) -> None:
    """From the left as one sits; neighbours are neighbours whatever they are called."""
    row = first_row(replace(STALLS, seats=6, seat_scheme=scheme))
    assert [seat.number for seat in row.seats] == numbers
    assert [seat.label for seat in row.seats] == [str(number) for number in numbers]
    assert [seat.position for seat in row.seats] == [1, 2, 3, 4, 5, 6]
    assert len(list(adjacency.blocks(row))) == 1


@given(scheme=st.sampled_from(SeatScheme), count=st.integers(1, 80), first=st.integers(1, 50))
def test_no_scheme_counts_a_number_twice(scheme: SeatScheme, count: int, first: int) -> None:
    """As many numbers as seats, without a gap."""
    numbers = seat_numbers(scheme, count, first=first)
    assert len(numbers) == count
    assert sorted(numbers) == list(range(min(numbers), min(numbers) + count))


def test_custom_names_are_taken_as_they_are() -> None:
    """Rows and seats of a house with its own ways."""
    block = replace(
        STALLS,
        rows=2,
        seats=3,
        row_scheme=RowScheme.CUSTOM,
        row_names=("Box", "Loge"),
        seat_scheme=SeatScheme.CUSTOM,
        seat_names=("a", "b", "c"),
    )
    rows = one(block).zones[0].rows
    assert [row.label for row in rows] == ["Box", "Loge"]
    assert [(seat.number, seat.label, seat.code) for seat in rows[1].seats] == [
        (1, "a", "S-Loge-a"),
        (2, "b", "S-Loge-b"),
        (3, "c", "S-Loge-c"),
    ]


def test_letters_leave_out_i_and_o_and_go_on_after_z() -> None:
    """H J, N P, Z AA AB, and no label twice."""
    labels = row_labels(RowScheme.LETTERS, 700)
    assert labels[7:9] == ["H", "J"]
    assert labels[12:14] == ["N", "P"]
    assert labels[22:27] == ["Y", "Z", "AA", "AB", "AC"]
    assert letters(24 + 24 * 24) == "AAA"
    assert len(set(labels)) == 700
    assert not any("I" in label or "O" in label for label in labels)
    assert row_labels(RowScheme.LETTERS, 2, first=24) == ["Z", "AA"]
    assert row_labels(RowScheme.NUMBERS, 3, first=9) == ["9", "10", "11"]


@pytest.mark.parametrize(
    ("count", "weights", "parts"),
    [
        (25, (1, 2, 1), [6, 13, 6]),
        (26, (1, 2, 1), [6, 14, 6]),
        (10, (1,), [10]),
        (10, (1, 1), [5, 5]),
        (3, (1, 2, 1), [1, 1, 1]),
        (1, (1, 2, 1), [0, 1, 0]),
    ],
)
def test_aisles_part_a_row_in_proportion(count: int, weights: tuple[int, ...], parts: list[int]) -> None:
    """The same on both sides."""
    assert shares(count, weights) == parts


@given(count=st.integers(1, 500), weights=st.lists(st.integers(1, 9), min_size=1, max_size=7))
def test_no_seat_is_lost_between_aisles(count: int, weights: list[int]) -> None:
    """All parts together are the row, and a mirrored row is parted the same way."""
    parts = shares(count, weights)
    assert sum(parts) == count
    assert min(parts) >= 0
    mirrored = shares(count, [*weights, *weights[-2::-1]])
    assert mirrored == mirrored[::-1]


def test_an_aisle_is_a_gap_and_a_break() -> None:
    """So wide as asked for, and nobody is a neighbour across it."""
    row = first_row(replace(STALLS, seats=20, segments=(1, 2, 1), aisle_width=120, seat_pitch=50))
    assert [len(block) for block in adjacency.blocks(row)] == [5, 10, 5]
    gaps = {b.segment != a.segment: distance(a, b) for a, b in itertools.pairwise(row.seats)}
    assert gaps == {False: 50, True: 170}


def test_curved_rows_go_round_one_centre() -> None:
    """Every seat of a row as far from it as the others, every row further than the one before."""
    block = replace(STALLS, seats=30, rows=5, distance=600, curve_radius=1_000, row_pitch=100)
    for index, row in enumerate(one(block).zones[0].rows):
        radii = {round(math.dist((seat.x, seat.y), (0, -400)) / 5) * 5 for seat in row.seats}
        assert radii == {1_000 + 100 * index}
        assert row.seats[14].y == row.seats[15].y == max(seat.y for seat in row.seats)


@pytest.mark.parametrize("facing", [0.0, 90.0, 180.0, 270.0, 33.0])
def test_seats_run_from_the_left_as_one_sits(facing: float) -> None:
    """Looking at the stage, the second seat is to the right of the first, wherever the block stands."""
    row = first_row(replace(STALLS, facing=facing, distance=1_000))
    first, last = row.seats[0], row.seats[-1]
    ahead = (-(first.x + last.x) / 2, -(first.y + last.y) / 2)
    right = (last.x - first.x, last.y - first.y)
    # With y downwards the right hand is a quarter clockwise from where one looks.
    assert ahead[0] * right[1] - ahead[1] * right[0] > 0
    assert abs(ahead[0] * right[0] + ahead[1] * right[1]) < 5_000


@pytest.mark.req("ACC-02")
def test_wheelchair_spaces_stand_at_the_aisles_with_their_companions() -> None:
    """Outermost first, the same on both sides, as many companions beside each as asked for."""
    block = replace(STALLS, rows=2, seats=20, segments=(1, 1), wheelchair_spaces=4, companions=2)
    front, back = one(block).zones[0].rows
    assert {seat.category for seat in front.seats} == {Category.STANDARD}
    assert "".join(seat.category[0] for seat in back.seats) == "wccssssccwwccssssccw"
    assert [seat.companion_of for seat in back.seats if seat.companion_of] == [
        "S-B-1", "S-B-1", "S-B-10", "S-B-10", "S-B-11", "S-B-11", "S-B-20", "S-B-20"
    ]  # fmt: skip
    alone = one(replace(block, companions=0, wheelchair_row=0)).zones[0].rows[0]
    assert [seat.number for seat in alone.seats if seat.category is Category.WHEELCHAIR] == [1, 10, 11, 20]


def test_tables_are_round_and_booked_whole() -> None:
    """Seats all around, a group each, ranks that are centred."""
    block = TablesSpec(code="T", name="Tables", tables=5, seats_per_table=8, tables_per_rank=3)
    zone = one(block).zones[0]
    assert [row.label for row in zone.rows] == ["T1", "T2", "T3", "T4", "T5"]
    assert {group.kind for group in zone.groups} == {GroupKind.VIP_TABLE}
    assert [group.seat_codes for group in zone.groups] == [tuple(seat.code for seat in row.seats) for row in zone.rows]
    for row in zone.rows:
        x, y = sum(seat.x for seat in row.seats) / 8, sum(seat.y for seat in row.seats) / 8
        assert all(abs(math.dist((seat.x, seat.y), (x, y)) - 110) < 2 for seat in row.seats)
    middles = [round(sum(seat.x for seat in row.seats) / 8) for row in zone.rows]
    assert middles == [-350, 0, 350, -175, 175]


def test_a_balcony_and_an_area_stand_beside_the_stalls() -> None:
    """Blocks of every kind in one hall, in the order in which they were asked for."""
    spec = Spec(
        name="Hall",
        blocks=(
            STALLS,
            replace(STALLS, code="B", name="Balcony", distance=1_500),
            AreaSpec(code="P", name="Pit", capacity=90, outline=((0, 0), (9, 0), (9, 9))),
        ),
        shapes=(Shape(kind=ShapeKind.STAGE, label="Stage", outline=((0, 0), (9, 0), (9, 9))),),
    )
    layout = generate(spec)
    assert [(zone.name, zone.capacity) for zone in layout.zones] == [("Stalls", 40), ("Balcony", 40), ("Pit", 90)]
    assert layout.shapes == spec.shapes
    assert layout.zones[2].outline == ((0, 0), (9, 0), (9, 9))
    assert read_layout(write_layout(layout)) == layout


@pytest.mark.parametrize(
    ("block", "faults"),
    [
        (replace(STALLS, rows=0), [("blocks[0].rows", "out_of_range")]),
        (replace(STALLS, rows=10**9, row_pitch=40), [("blocks[0].rows", "out_of_range")]),
        (replace(STALLS, seats=10**9), [("blocks[0].seats", "out_of_range")]),
        (replace(STALLS, seats=3, seats_step=-1), [("blocks[0].seats", "out_of_range")]),
        (replace(STALLS, seat_counts=(4, 4)), [("blocks[0].seat_counts", "out_of_range")]),
        (replace(STALLS, curve_radius=10), [("blocks[0].curve_radius", "out_of_range")]),
        (replace(STALLS, segments=()), [("blocks[0].segments", "out_of_range")] * 2),
        (replace(STALLS, segments=(1, 0)), [("blocks[0].segments", "out_of_range")]),
        (replace(STALLS, wheelchair_spaces=6), [("blocks[0].wheelchair_spaces", "out_of_range")]),
        (replace(STALLS, companions=4), [("blocks[0].companions", "out_of_range")]),
        (replace(STALLS, facing=math.nan), [("blocks[0].facing", "out_of_range")]),
        (replace(STALLS, row_scheme=RowScheme.CUSTOM, row_names=("A",)), [("blocks[0].row_names", "out_of_range")]),
        (replace(STALLS, code="", name="x" * 121), [("blocks[0].code", "blank"), ("blocks[0].name", "too_long")]),
        (replace(STALLS, zone_type=ZoneType.GA_SEATED), [("zones[0].rows", "seats_not_allowed")]),
        (replace(STALLS, zone_type=ZoneType.VIP_RESERVED), [("zones[0].access_mode", "vip_public")]),
        (AreaSpec(code="P", name="Pit", capacity=0), [("blocks[0].capacity", "out_of_range")]),
        (AreaSpec(code="P", name="Pit", capacity=9, outline=((0, 0),)), [("blocks[0].outline", "out_of_range")]),
        (
            TablesSpec(code="T", name="T", tables=2, seats_per_table=8, tables_per_rank=1, table_pitch=100),
            [("blocks[0].table_pitch", "out_of_range")],
        ),
        (replace(STALLS, rows=1_000, seats=101, row_pitch=40), [("blocks", "too_many")]),
    ],
)
def test_a_spec_that_cannot_be_is_refused(block: BlockSpec, faults: list[tuple[str, str]]) -> None:
    """All that is wrong with it, by its own names, before a seat is made."""
    with pytest.raises(LayoutInvalid) as refused:
        one(block)
    assert [(fault.path, fault.code.value) for fault in refused.value.faults] == faults


def test_blocks_in_each_others_way_are_refused() -> None:
    """Two zones on one spot, with one code."""
    with pytest.raises(LayoutInvalid) as refused:
        generate(Spec(name="Hall", blocks=(STALLS, STALLS)))
    codes = {fault.code.value for fault in refused.value.faults}
    assert codes == {"duplicate_seat_code", "seat_overlap", "duplicate_zone_code"}
    with pytest.raises(LayoutInvalid) as refused:
        generate(Spec(name="Hall", blocks=()))
    assert [fault.path for fault in refused.value.faults] == ["blocks"]


BLOCKS = st.builds(
    RowsSpec,
    code=st.just("S"),
    name=st.just("Stalls"),
    rows=st.integers(1, 12),
    seats=st.integers(10, 40),
    seats_step=st.integers(-1, 3),
    distance=st.integers(0, 3_000),
    facing=st.floats(-360, 360),
    offset=st.integers(-500, 500),
    curve_radius=st.none() | st.integers(500, 5_000),
    seat_pitch=st.integers(30, 80),
    row_pitch=st.integers(40, 120),
    segments=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    aisle_width=st.integers(0, 200),
    row_scheme=st.sampled_from([RowScheme.LETTERS, RowScheme.NUMBERS]),
    seat_scheme=st.sampled_from([scheme for scheme in SeatScheme if scheme is not SeatScheme.CUSTOM]),
    wheelchair_spaces=st.integers(0, 3),
    companions=st.integers(0, 3),
    wheelchair_row=st.sampled_from([0, -1]),
)


@settings(deadline=None)
@given(BLOCKS)
def test_any_spec_is_made_as_asked_or_refused(block: RowsSpec) -> None:
    """Never anything in between: seats, spaces and companions as many as said, and the layout can be exported."""
    layout = made_or_refused(block)
    if layout is None:
        return
    assert layout.seat_count == sum(block.seats + block.seats_step * row for row in range(block.rows)) <= SEATS_MAX
    categories = [seat.category for _, _, seat in layout.seats()]
    assert categories.count(Category.WHEELCHAIR) == block.wheelchair_spaces
    assert categories.count(Category.COMPANION) == block.wheelchair_spaces * block.companions
    assert read_layout(write_layout(layout)) == layout
    for row in layout.zones[0].rows:
        assert all(distance(a, b) > 0.8 * block.seat_pitch - 2 for a, b in itertools.pairwise(row.seats))


def made_or_refused(block: RowsSpec) -> Layout | None:
    """The layout, or None when it was refused for a number of the block."""
    try:
        return one(block)
    except LayoutInvalid as refused:
        codes = {fault.code.value for fault in refused.faults}
    assert codes == {"out_of_range"}
    return None
