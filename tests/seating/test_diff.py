"""What is different between two versions."""

from hypothesis import given, settings

from tests.make.layouts import DROP, layouts, small_layout
from voelgoed.seating.diff import LayoutDiff, SeatChange, diff
from voelgoed.seating.model import Layout

CODES = ["S-A-1", "S-A-2", "S-A-3", "S-A-4"]
COLUMNS = {"count": 4, "code": CODES, "x": {"start": 50, "step": 50}, "y": 100}


def codes(changes: tuple[SeatChange, ...]) -> list[str]:
    return [change.seat_code for change in changes]


def summary(found: LayoutDiff) -> dict[str, list[str]]:
    """What is not empty."""
    lists = {
        "added": [one.seat.code for one in found.added],
        "removed": [one.seat.code for one in found.removed],
        "moved": codes(found.moved),
        "relabelled": codes(found.relabelled),
        "rezoned": codes(found.rezoned),
        "recategorised": codes(found.recategorised),
        "zones_added": [zone.code for zone in found.zones_added],
        "zones_removed": [zone.code for zone in found.zones_removed],
        "zones_changed": [f"{change.zone_code}: {' '.join(change.fields)}" for change in found.zones_changed],
    }
    return {name: one for name, one in lists.items() if one}


@settings(deadline=None)
@given(layouts())
def test_a_layout_does_not_differ_from_itself(layout: Layout) -> None:
    """Nothing is nothing."""
    found = diff(layout, layout)
    assert found.is_empty
    assert summary(found) == {}


@settings(deadline=None)
@given(before=layouts(), after=layouts())
def test_the_way_back_is_the_way_there_reversed(before: Layout, after: Layout) -> None:
    """What one adds the other removes; what changed is the same seats."""
    there, back = diff(before, after), diff(after, before)
    assert {one.seat.code for one in there.added} == {one.seat.code for one in back.removed}
    assert {one.seat.code for one in there.removed} == {one.seat.code for one in back.added}
    assert set(codes(there.rezoned)) == set(codes(back.rezoned))
    assert {zone.code for zone in there.zones_added} == {zone.code for zone in back.zones_removed}


def test_seats_that_came_went_and_moved() -> None:
    """By their codes: a seat that is gone is not the one that came."""
    base = small_layout({"zones.0.rows.0.seats": COLUMNS})
    new = small_layout(
        {"zones.0.rows.0.seats": COLUMNS | {"code": [*CODES[:3], "S-A-9"], "x": [50, 100, 151, 200]}},
    )
    assert summary(diff(base, new)) == {"added": ["S-A-9"], "removed": ["S-A-4"], "moved": ["S-A-3"]}


def test_new_labels_and_numbers() -> None:
    """A row that is called otherwise relabels its seats; they stay where they are."""
    base = small_layout({"zones.0.rows.0.seats": COLUMNS})
    named = small_layout({"zones.0.rows.0.seats": COLUMNS, "zones.0.rows.0.label": "AA"})
    counted = small_layout({"zones.0.rows.0.seats": COLUMNS | {"number": [1, 2, 3, 7]}})
    assert summary(diff(base, named)) == {"relabelled": CODES}
    found = diff(base, counted)
    assert summary(found) == {"relabelled": ["S-A-4"]}
    assert (found.relabelled[0].before.seat.label, found.relabelled[0].after.seat.label) == ("4", "7")


def test_seats_that_went_to_another_zone() -> None:
    """And what becomes of the zones themselves."""
    base = small_layout({"zones.0.rows.0.seats": COLUMNS, "zones.0.groups": None})
    row = {"label": "Z", "seats": COLUMNS}
    new = small_layout({"zones.0.rows.0": DROP, "zones.0.groups": None, "zones.1.rows.1": row})
    assert summary(diff(base, new)) == {
        "relabelled": CODES,
        "rezoned": CODES,
        "zones_changed": ["S: capacity", "V: capacity"],
    }


def test_a_break_moves_nobody_but_parts_them() -> None:
    """Neighbours changed, so it is told."""
    found = diff(small_layout(), small_layout({"zones.0.rows.1.breaks": [4]}))
    assert summary(found) == {"moved": ["S-B-4"]}


def test_categories_and_groups() -> None:
    """What a seat is, whose companion, and with whom."""
    found = diff(small_layout(), small_layout({"zones.0.groups.1.seats": ["S-A-1", "S-A-3"]}))
    assert summary(found) == {"recategorised": ["S-A-2", "S-A-3"], "zones_changed": ["S: groups"]}
    found = diff(small_layout(), small_layout({"zones.0.rows.0.seats.3.category": "restricted_view"}))
    assert summary(found) == {"recategorised": ["S-A-4"]}


def test_zones_that_came_went_and_changed() -> None:
    """By their codes; what changed is named."""
    fresh = {"code": "Q", "name": "Quay", "zone_type": "ga_seated", "capacity": 5}
    new = small_layout({"zones.2": fresh, "zones.1.name": "Friends", "zones.1.membership_tier": "silver"})
    assert summary(diff(small_layout(), new)) == {
        "zones_added": ["Q"],
        "zones_removed": ["P"],
        "zones_changed": ["V: name membership_tier"],
    }
