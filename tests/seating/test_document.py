"""The format of layouts: read, written, read again."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings

from tests.make.layouts import SMALL, changed, encoded, layouts, small_layout
from voelgoed.seating import presets
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.document import FORMAT, read_layout
from voelgoed.seating.document_schema import json_schema
from voelgoed.seating.faults import FaultCode, LayoutInvalid
from voelgoed.seating.generate import generate
from voelgoed.seating.model import (
    SEATS_MAX,
    VERSION_MOVES,
    AccessMode,
    Category,
    GroupKind,
    Layout,
    Seat,
    VersionStatus,
    ZoneType,
)

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "layout-format.md").read_text()


def seats_of(layout: Layout) -> dict[str, Seat]:
    return {seat.code: seat for _, _, seat in layout.seats()}


@pytest.mark.req("LAY-03")
@settings(deadline=None)
@given(layouts())
def test_a_layout_comes_back_as_it_was_written(layout: Layout) -> None:
    """Every zone, row, seat, group and shape of it; and its bytes are always the same."""
    written = write_layout(layout)
    assert read_layout(written) == layout
    assert write_layout(read_layout(written)) == written


@settings(deadline=None)
@given(layouts())
def test_what_is_written_is_what_the_schema_says(layout: Layout) -> None:
    """Other programs read by the schema."""
    jsonschema_rs.validate(json_schema(), json.loads(write_layout(layout)))


@pytest.mark.parametrize("name", ["theatre-350", "festival", "arena-20k"])
def test_presets_are_written_by_the_schema(name: str) -> None:
    """The halls that people start from."""
    written = write_layout(generate(presets.preset(name)))
    jsonschema_rs.validate(json_schema(), json.loads(written))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "x"},
        {"zones.0.zone_type": "x"},
        {"zones.0.rows.0.seats.0.x": "x"},
        {"zones.0.rows.1.seats.colour": 1},
        {"zones.0.rows.1.seats.count": 0},
        {"shapes.0.outline": [[0, 0]]},
    ],
)
def test_the_schema_refuses_what_reading_refuses(changes: dict[str, Any]) -> None:
    """As far as a schema can."""
    schema = jsonschema_rs.validator_for(json_schema())
    assert schema.is_valid(SMALL)
    assert not schema.is_valid(changed(changes))


def test_the_example_on_the_page_is_a_layout() -> None:
    """Whoever copies it gets what it shows."""
    example = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert example
    layout = read_layout(example[1].encode())
    assert (layout.name, layout.seat_count, layout.total_capacity) == ("Dorpsteater", 31, 151)
    assert [group.label for group in layout.zones[1].groups] == ["Table 1", "Table 2"]
    assert seats_of(layout)["STALLS-B-9"].companion_of == "STALLS-B-10"
    jsonschema_rs.validate(json_schema(), json.loads(example[1]))


def test_the_page_names_every_fault() -> None:
    """No code without a word about it, and none that does not exist."""
    table = PAGE[PAGE.index("| code | what is wrong |") :].partition("\n\n")[0]
    named = {code for line in table.splitlines()[2:] for code in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert named == set(FaultCode)


@pytest.mark.req("LAY-07")
def test_a_layout_has_a_name_and_perhaps_a_description() -> None:
    """Several lines are fine in a description; it may be empty, or not be there."""
    assert small_layout().name == "Small hall"
    assert small_layout().description is None
    for text in ("", "one\ntwo"):
        layout = small_layout({"description": text})
        assert read_layout(write_layout(layout)).description == text


@pytest.mark.req("LAY-09", "ZON-04")
def test_capacities_are_counted() -> None:
    """Seats where there are seats, what is said elsewhere, and all of it together."""
    layout = small_layout({"total_capacity": 313, "zones.0.capacity": 10})
    assert [zone.capacity for zone in layout.zones] == [10, 3, 300]
    assert layout.total_capacity == 313
    document = json.loads(write_layout(layout))
    assert document["total_capacity"] == sum(zone["capacity"] for zone in document["zones"])


@pytest.mark.req("LAY-11")
def test_a_version_goes_from_draft_to_active_to_archived() -> None:
    """Never back, and a draft that nobody wants may be put away."""
    assert [status.value for status in VersionStatus] == ["draft", "active", "archived"]
    assert VERSION_MOVES[VersionStatus.DRAFT] == {VersionStatus.ACTIVE, VersionStatus.ARCHIVED}
    assert VERSION_MOVES[VersionStatus.ACTIVE] == {VersionStatus.ARCHIVED}
    assert VERSION_MOVES[VersionStatus.ARCHIVED] == set()


@pytest.mark.req("ZON-02", "ZON-05", "ZON-06", "ZON-07")
@pytest.mark.parametrize("zone_type", ZoneType)
@pytest.mark.parametrize("mode", AccessMode)
def test_zones_of_every_type_and_access(zone_type: ZoneType, mode: AccessMode) -> None:
    """All that make sense are read as they stand."""
    if zone_type.startswith("vip") and mode is AccessMode.PUBLIC:
        return
    zone = {
        "code": "Z",
        "name": "Zone",
        "zone_type": zone_type,
        "access_mode": mode,
        "membership_tier": "gold" if mode is AccessMode.MEMBERSHIP_TIER else None,
        "allowed_roles": ["staff"] if mode is AccessMode.ROLE_BASED else None,
        "metadata": {"bar": True},
    }
    rows = {"rows": [{"label": "A", "seats": [{"x": 0, "y": 0}]}]}
    has_seats = zone_type in (ZoneType.RESERVED_SEATING, ZoneType.VIP_RESERVED)
    document = {"format": FORMAT, "name": "One", "zones": [zone | (rows if has_seats else {"capacity": 5})]}
    read = read_layout(encoded(document)).zones[0]
    assert (read.zone_type, read.access_mode, read.capacity) == (zone_type, mode, 1 if has_seats else 5)
    assert read.membership_tier == ("gold" if mode is AccessMode.MEMBERSHIP_TIER else None)
    assert read.allowed_roles == (("staff",) if mode is AccessMode.ROLE_BASED else ())
    assert read.metadata == {"bar": True}
    assert read_layout(write_layout(read_layout(encoded(document)))).zones[0] == read


@pytest.mark.req("SEAT-02", "SEAT-03", "SEAT-04", "SEAT-05")
def test_a_seat_is_all_that_is_said_about_it() -> None:
    """Code, row, number, label, category, place and point."""
    told = {
        "code": "the one",
        "number": 12,
        "label": "12A",
        "category": "restricted_view",
        "position": 7,
        "x": -5,
        "y": 6,
    }
    layout = small_layout({"zones.0.rows.0.seats.3": told})
    zone, row, seat = list(layout.seats())[3]
    assert (zone.name, row.label) == ("Stalls", "A")
    assert seat == Seat(
        code="the one", number=12, label="12A", category=Category.RESTRICTED_VIEW, position=7, segment=0, x=-5, y=6
    )
    assert {category.value for category in Category} == {
        "standard",
        "wheelchair",
        "companion",
        "restricted_view",
        "aisle",
    }


def test_what_is_left_out_follows_from_the_rest() -> None:
    """Codes from zone, row and label; numbers and positions from the place; segments from the breaks."""
    row = small_layout().zones[0].rows[1]
    assert [seat.code for seat in row.seats] == ["S-B-1", "S-B-2", "S-B-3", "S-B-4", "S-B-5", "S-B-6"]
    assert [seat.number for seat in row.seats] == [seat.position for seat in row.seats] == [1, 2, 3, 4, 5, 6]
    assert [seat.segment for seat in row.seats] == [0, 0, 0, 1, 1, 1]
    assert [seat.x for seat in row.seats] == [50, 100, 150, 200, 250, 300]
    assert {seat.y for seat in row.seats} == {200}


def test_seats_one_by_one_and_in_columns_are_the_same() -> None:
    """Two ways to write one row."""
    listed = [
        {"code": "a", "number": 1, "label": "1L", "category": "wheelchair", "x": 0, "y": 9},
        {"code": "b", "number": 3, "label": "3L", "category": "companion", "x": 50, "y": 9, "companion_of": "a"},
        {"code": "c", "number": 5, "label": "5L", "position": 9, "x": 100, "y": 9},
    ]
    columns = {
        "count": 3,
        "code": ["a", "b", "c"],
        "number": {"start": 1, "step": 2},
        "label": ["1L", "3L", "5L"],
        "category": ["wheelchair", "companion", None],
        "position": [None, None, 9],
        "x": {"start": 0, "step": 50},
        "y": 9,
        "companion_of": {"2": "a"},
    }
    assert small_layout({"zones.1.rows.0.seats": listed}) == small_layout({"zones.1.rows.0.seats": columns})


def test_one_value_stands_for_all_and_texts_run_after_a_prefix() -> None:
    """The short ways of columns."""
    columns = {
        "count": 3,
        "code": {"prefix": "seat ", "start": 8},
        "label": {"start": 30, "step": -10},
        "category": "restricted_view",
        "x": {"start": 30, "step": -10},
        "y": 700,
    }
    seats = small_layout({"zones.1.rows.0.seats": columns}).zones[1].rows[0].seats
    assert [(seat.code, seat.label, seat.x) for seat in seats] == [
        ("seat 8", "30", 30),
        ("seat 9", "20", 20),
        ("seat 10", "10", 10),
    ]
    assert {seat.category for seat in seats} == {Category.RESTRICTED_VIEW}


@pytest.mark.req("SEAT-07", "ACC-02", "ACC-03")
def test_a_companion_belongs_to_the_space_beside_it_or_the_one_it_names() -> None:
    """Several to one space; only the companion tells, so that there is no circle."""
    columns = {
        "count": 6,
        "x": {"start": 50, "step": 50},
        "y": 200,
        "category": {"wheelchair": [1, 6], "companion": [2, 3, 5]},
        "companion_of": {"5": "S-B-1"},
    }
    layout = small_layout({"zones.0.rows.1.seats": columns, "zones.0.rows.1.breaks": None})
    named = {code: seat.companion_of for code, seat in seats_of(layout).items() if seat.companion_of}
    assert named == {"S-B-2": "S-B-1", "S-B-3": "S-B-1", "S-B-5": "S-B-1"}


@pytest.mark.req("ACC-18", "ACC-19")
@pytest.mark.parametrize("kind", GroupKind)
def test_seats_of_a_zone_make_groups_of_four_kinds(kind: GroupKind) -> None:
    """With a label and whatever else there is to say."""
    seats = ["S-B-1", "S-B-2"]
    group = {"code": "g", "kind": kind, "label": "Table 1", "seats": seats, "metadata": {"linen": "white"}}
    layout = small_layout({"zones.0.groups": [group]})
    read = layout.zones[0].groups[0]
    assert (read.kind, read.label, read.seat_codes, read.metadata) == (
        kind,
        "Table 1",
        tuple(seats),
        {"linen": "white"},
    )
    assert read_layout(write_layout(layout)) == layout


@pytest.mark.req("SEAT-14")
def test_a_seat_stands_in_one_zone_of_one_layout() -> None:
    """A code that two zones claim is refused, and there is nowhere to write a seat but in a zone."""
    columns = {"count": 1, "code": ["S-A-1"], "x": 900, "y": 900}
    with pytest.raises(LayoutInvalid) as refused:
        small_layout({"zones.1.rows.0.seats": columns})
    assert [fault.code for fault in refused.value.faults] == [FaultCode.DUPLICATE_SEAT_CODE]
    with pytest.raises(LayoutInvalid) as refused:
        small_layout({"seats": [{"x": 0, "y": 0}]})
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [("seats", FaultCode.UNKNOWN_KEY)]


@pytest.mark.req("SEAT-06")
def test_an_aisle_seat_has_nobody_on_one_side() -> None:
    """At the end of a row, or at a break; between two seats it is none."""
    for places in ([3], [4], [1, 6]):
        layout = small_layout({"zones.0.rows.1.seats.category": {"aisle": places}, "zones.0.groups": None})
        row = layout.zones[0].rows[1].seats
        assert [place for place, seat in enumerate(row, 1) if seat.category is Category.AISLE] == places
    for place in (2, 5):
        with pytest.raises(LayoutInvalid) as refused:
            small_layout({"zones.0.rows.1.seats.category": {"aisle": [place]}, "zones.0.groups": None})
        assert [fault.code for fault in refused.value.faults] == [FaultCode.AISLE_BETWEEN_SEATS]


def test_a_mark_before_the_first_byte_does_no_harm() -> None:
    """Some editors on Windows put one there."""
    assert read_layout(b"\xef\xbb\xbf" + encoded(SMALL)) == small_layout()


def test_an_export_tells_the_codes() -> None:
    """Or whoever edits its labels would lose the ids of the seats."""
    document = json.loads(write_layout(small_layout()))
    rows = [row for zone in document["zones"] for row in zone.get("rows", ())]
    assert [row["seats"]["code"] for row in rows] == [
        {"prefix": "S-A-", "start": 1},
        {"prefix": "S-B-", "start": 1},
        {"prefix": "V-A-", "start": 1},
    ]


def test_the_largest_hall_is_read_and_written() -> None:
    """A hundred thousand seats, in a document of a few megabytes."""
    layout = generate(presets.preset("stadium-100k"))
    written = write_layout(layout)
    assert layout.seat_count == SEATS_MAX
    assert len(written) < 2_000_000
    assert read_layout(written) == layout
