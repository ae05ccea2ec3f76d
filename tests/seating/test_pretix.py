"""Plans of pretix become layouts."""

import copy
import json
from typing import Any

import pytest

from voelgoed.seating import adjacency
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.document import read_layout
from voelgoed.seating.faults import DOCUMENT_BYTES_MAX, LayoutInvalid, LayoutTooLarge
from voelgoed.seating.model import Layout, ShapeKind
from voelgoed.seating.pretix import read_plan


def seat(number: int, x: float, category: str = "Stalls", **over: object) -> dict[str, object]:
    told = {"seat_guid": f"guid-{number}", "seat_number": str(number), "category": category}
    return {**told, "position": {"x": x, "y": 0}, "uuid": "unused", **over}


PLAN: dict[str, Any] = {
    "name": "Saal",
    "size": {"width": 800, "height": 600},
    "categories": [{"name": "Stalls", "color": "#ff0000"}, {"name": "Cheap"}],
    "zones": [
        {
            "name": "Main hall",
            "position": {"x": 100, "y": 50},
            "rows": [
                {
                    "row_number": "1",
                    "position": {"x": 10, "y": 20},
                    "seats": [seat(n, 25 * n + (40 if n > 2 else 0)) for n in (1, 2, 3, 4)],
                },
                {"row_number": "2", "position": {"x": 0, "y": 60}, "seats": [seat(5, 0), seat(6, 25.5, "Cheap")]},
            ],
            "areas": [
                {
                    "shape": "rectangle",
                    "position": {"x": 0, "y": -40},
                    "rectangle": {"width": 200, "height": 30},
                    "text": {"text": "Bühne", "position": {"x": 0, "y": 0}},
                    "color": "#cccccc",
                },
                {"shape": "circle", "position": {"x": 50, "y": 50}, "circle": {"radius": 20}},
                {"shape": "ellipse", "position": {"x": 50, "y": 50}, "ellipse": {"radius": {"x": 20, "y": 9}}},
                {"shape": "polygon", "position": {"x": 0, "y": 0}, "polygon": {"points": [{"x": 0, "y": 0}] * 3}},
                {"width": 10, "height": 20, "position": {"x": 1, "y": 2}, "text": "Bar"},
                {"shape": "text", "position": {"x": 1, "y": 2}, "text": {"text": "Hello"}},
                {"position": "nowhere"},
            ],
        },
    ],
}


def read(changes: dict[tuple[object, ...], object] | None = None) -> Layout:
    plan = copy.deepcopy(PLAN)
    for way, value in (changes or {}).items():
        target: Any = plan
        for step in way[:-1]:
            target = target[step]
        target[way[-1]] = value
    return read_plan(json.dumps(plan).encode())


def faults_of(changes: dict[tuple[object, ...], object]) -> list[tuple[str, str]]:
    with pytest.raises(LayoutInvalid) as refused:
        read(changes)
    return [(fault.path, fault.code.value) for fault in refused.value.faults]


def test_a_plan_becomes_a_layout() -> None:
    """Positions are added up, seats keep their ids as codes, a wide gap is an aisle."""
    layout = read()
    row = layout.zones[0].rows[0]
    assert layout.name == "Saal"
    assert [(one.code, one.label, one.x, one.y) for one in row.seats] == [
        ("guid-1", "1", 270, 140),
        ("guid-2", "2", 320, 140),
        ("guid-3", "3", 450, 140),
        ("guid-4", "4", 500, 140),
    ]
    assert [len(block) for block in adjacency.blocks(row)] == [2, 2]
    assert read_layout(write_layout(layout)) == layout


def test_categories_are_price_levels_and_so_zones() -> None:
    """A zone of several becomes one for each."""
    assert [(zone.code, zone.name, zone.capacity) for zone in read().zones] == [
        ("MAIN-HALL-STALLS", "Main hall Stalls", 5),
        ("MAIN-HALL-CHEAP", "Main hall Cheap", 1),
    ]


@pytest.mark.parametrize(
    ("name", "expected"), [(None, "Zone 1"), ("\0 ", "Zone 1"), ("a\n b", "a b"), ("é" * 200, "é" * 120)]
)
def test_zones_get_a_name_that_can_be_read(name: str | None, expected: str) -> None:
    """Theirs need none."""
    changes: dict[tuple[object, ...], object] = {("zones", 0, "rows", 1, "seats", 1, "category"): "Stalls"}
    (zone,) = read(changes | {("zones", 0, "name"): name}).zones
    assert zone.name == expected
    assert zone.code


def test_rows_of_one_name_are_one_row_with_an_aisle() -> None:
    """As plans have it left and right of a gangway."""
    right = {"row_number": "1", "position": {"x": 300, "y": 20}, "seats": [seat(8, 0), seat(9, 25)]}
    row = read({("zones", 0, "rows", 1): right}).zones[0].rows[0]
    assert [one.code for one in row.seats] == ["guid-1", "guid-2", "guid-3", "guid-4", "guid-8", "guid-9"]
    assert [one.segment for one in row.seats] == [0, 0, 1, 1, 2, 2]
    assert [one.position for one in row.seats] == [1, 2, 3, 4, 5, 6]


def test_drawings_are_kept_as_far_as_they_are_understood() -> None:
    """The stage is known by its name; what has no size is left out, and no reason to refuse a plan."""
    shapes = read().shapes
    assert [(shape.kind, shape.label, len(shape.outline)) for shape in shapes] == [
        (ShapeKind.STAGE, "Bühne", 4),
        (ShapeKind.OTHER, "Area", 24),
        (ShapeKind.OTHER, "Area", 24),
        (ShapeKind.OTHER, "Area", 3),
        (ShapeKind.OTHER, "Bar", 4),
    ]
    assert shapes[0].outline == ((200, 20), (600, 20), (600, 80), (200, 80))


def test_labels_without_a_number_are_counted() -> None:
    """A number is only for sorting; the label is what people see."""
    rows = read({("zones", 0, "rows", 0, "seats", 1, "seat_number"): "B"}).zones[0].rows
    assert [(one.number, one.label) for one in rows[0].seats] == [(1, "1"), (2, "B"), (3, "3"), (4, "4")]


@pytest.mark.parametrize(
    ("way", "value", "fault"),
    [
        (("name",), None, ("name", "missing")),
        (("zones",), {}, ("zones", "wrong_type")),
        (("zones",), [], ("zones", "empty")),
        (("zones", 0, "rows"), None, ("zones[0].rows", "missing")),
        (("zones", 0, "position"), [1, 2], ("zones[0].position", "wrong_type")),
        (("zones", 0, "rows", 0, "row_number"), 1, ("zones[0].rows[0].row_number", "wrong_type")),
        (("zones", 0, "rows", 0, "seats", 1), "x", ("zones[0].rows[0].seats[1]", "wrong_type")),
        (
            ("zones", 0, "rows", 0, "seats", 1, "seat_guid"),
            "guid-1",
            ("zones[0].rows[0].seats[1].seat_guid", "duplicate_seat_code"),
        ),
        (
            ("zones", 0, "rows", 0, "seats", 1, "position"),
            {"x": 1e9, "y": 0},
            ("zones[0].rows[0].seats[1].position", "out_of_range"),
        ),
        (
            ("zones", 0, "rows", 0, "seats", 1, "position"),
            {"x": 25, "y": 0},
            ("zones[0].rows[0].seats[1].position", "seat_overlap"),
        ),
        (
            ("zones", 0, "rows", 0, "seats", 1, "seat_number"),
            "1",
            ("zones[0].rows[0].seats[1].seat_number", "duplicate_seat_label"),
        ),
    ],
)
def test_what_is_wrong_is_told_by_its_place_in_the_plan(
    way: tuple[object, ...], value: object, fault: tuple[str, str]
) -> None:
    """In the words of the plan, so that it can be found there."""
    assert faults_of({way: value}) == [fault]


def test_a_plan_is_limited_as_any_document_is() -> None:
    """And what is no JSON is no plan."""
    with pytest.raises(LayoutTooLarge):
        read_plan(b" " * (DOCUMENT_BYTES_MAX + 1))
    with pytest.raises(LayoutInvalid):
        read_plan(b"<plan/>")
