"""Who sits beside whom."""

import itertools

import msgspec
from hypothesis import given, settings, strategies as st

from tests.make.layouts import layouts, row_of, seat, small_layout
from voelgoed.seating import adjacency
from voelgoed.seating.model import Category, Layout


def test_neighbours_follow_positions_and_stop_at_breaks() -> None:
    """Row B has six seats and an aisle after the third; numbers do not matter."""
    beside = adjacency.neighbours(small_layout())
    assert [beside[f"S-B-{n}"] for n in range(1, 7)] == [
        (None, "S-B-2"),
        ("S-B-1", "S-B-3"),
        ("S-B-2", None),
        (None, "S-B-5"),
        ("S-B-4", "S-B-6"),
        ("S-B-5", None),
    ]


def test_a_missing_place_parts_its_neighbours() -> None:
    """A pillar where a seat could be; and odd numbers that stand side by side are neighbours."""
    row = row_of(seat(1), seat(2, number=3), seat(4, number=5), seat(5, number=4), seat(6, segment=1))
    codes = [[one.code for one in block] for block in adjacency.blocks(row)]
    assert codes == [["A-1", "A-2"], ["A-4", "A-5"], ["A-6"]]
    assert list(adjacency.blocks(row_of())) == []


@settings(deadline=None)
@given(layouts())
def test_being_beside_is_mutual_and_within_one_row(layout: Layout) -> None:
    """Who has somebody to the right is to the left of them; every seat is in one block; blocks have no gaps."""
    beside = adjacency.neighbours(layout)
    assert beside.keys() == {one.code for _, _, one in layout.seats()}
    for code, (left, right) in beside.items():
        assert left is None or beside[left][1] == code
        assert right is None or beside[right][0] == code
    for zone in layout.zones:
        for row in zone.rows:
            blocks = list(adjacency.blocks(row))
            assert [one for block in blocks for one in block] == list(row.seats)
            for block in blocks:
                assert {one.segment for one in block} == {block[0].segment}
                assert [one.position - block[0].position for one in block] == list(range(len(block)))


@settings(deadline=None)
@given(layouts())
def test_neighbours_do_not_depend_on_numbers(layout: Layout) -> None:
    """Only on position and segment."""
    for zone in layout.zones:
        for row in zone.rows:
            renumbered = row_of(*(msgspec.structs.replace(one, number=7, label="x") for one in row.seats))
            sizes = [len(block) for block in adjacency.blocks(renumbered)]
            assert sizes == [len(block) for block in adjacency.blocks(row)]


@given(numbers=st.lists(st.integers(0, 300), min_size=1, max_size=20, unique=True))
def test_positions_by_number_keep_the_order_of_numbers(numbers: list[int]) -> None:
    """Consecutive numbers are neighbours; a gap is a gap."""
    positions = adjacency.positions_by_number(numbers)
    ordered = sorted(zip(numbers, positions, strict=True))
    assert [position for _, position in ordered] == sorted(positions)
    assert min(positions) == 1
    step = 2 if len(numbers) > 1 and len({number % 2 for number in numbers}) == 1 else 1
    assert all((b - a == step) == (q - p == 1) for (a, p), (b, q) in itertools.pairwise(ordered))


def test_odd_and_even_are_counted_from_the_middle() -> None:
    """5 3 1 2 4 6 from the left; a side of the hall with odd numbers only counts in twos."""
    assert adjacency.positions_by_number([5, 3, 1, 2, 4, 6], is_odd_even=True) == [1, 2, 3, 4, 5, 6]
    assert adjacency.positions_by_number([1, 3, 5, 9]) == [1, 2, 3, 5]
    assert adjacency.positions_by_number([2, 4, 6]) == [1, 2, 3]
    assert adjacency.positions_by_number([101, 102, 104]) == [1, 2, 4]


def test_companions_find_the_nearest_space() -> None:
    """From the left when both are as near; over other companions; never over an aisle or an ordinary seat."""
    wheelchair, companion = {"category": Category.WHEELCHAIR}, {"category": Category.COMPANION}
    row = [
        seat(1, **wheelchair),
        seat(2, **companion),
        seat(3, **companion),
        seat(4, **companion),
        seat(5, **wheelchair),
    ]
    assert adjacency.find_spaces(row) == {"A-2": "A-1", "A-3": "A-1", "A-4": "A-5"}
    apart = [
        seat(1, **wheelchair),
        seat(2, segment=1, **companion),
        seat(3, segment=1),
        seat(4, segment=1, **companion),
    ]
    assert adjacency.find_spaces(apart) == {}
    given_already = [seat(1, **wheelchair), seat(2, **companion, companion_of="B-9")]
    assert adjacency.find_spaces(given_already) == {}
