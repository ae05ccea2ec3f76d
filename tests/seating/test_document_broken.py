"""Broken layouts: every fault is told, with its path and code, and nothing else is."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from tests.make.layouts import DROP, changed, encoded
from voelgoed.errors import Kind
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.document import read_layout
from voelgoed.seating.faults import (
    DOCUMENT_BYTES_MAX,
    FAULTS_REPORTED_MAX,
    HINTS,
    FaultCode,
    LayoutInvalid,
    LayoutTooLarge,
)

ROW_A = "zones[0].rows[0]"
ROW_B = "zones[0].rows[1]"


class Broken(NamedTuple):
    """What is done to the small document, and all that is wrong with it then."""

    kind: str
    name: str
    changes: Mapping[str, Any]
    faults: tuple[tuple[str, str], ...]


def broken(kind: str, name: str, changes: Mapping[str, Any], *faults: tuple[str, str]) -> Broken:
    return Broken(kind, name, changes, faults)


MISSING = [
    broken("missing", "name", {"name": DROP}, ("name", "missing")),
    broken("missing", "zones", {"zones": DROP}, ("zones", "missing")),
    broken("missing", "zone code", {"zones.2.code": DROP}, ("zones[2].code", "missing")),
    broken("missing", "zone code with seats", {"zones.1.code": DROP}, ("zones[1].code", "missing")),
    broken("missing", "zone name", {"zones.0.name": None}, ("zones[0].name", "missing")),
    broken("missing", "zone type", {"zones.0.zone_type": DROP}, ("zones[0].zone_type", "missing")),
    broken("missing", "row label", {"zones.1.rows.0.label": DROP}, ("zones[1].rows[0].label", "missing")),
    broken("missing", "seats of a row", {"zones.1.rows.0.seats": DROP}, ("zones[1].rows[0].seats", "missing")),
    broken("missing", "x of a seat", {"zones.0.rows.0.seats.2.x": DROP}, (f"{ROW_A}.seats[2].x", "missing")),
    broken("missing", "column y", {"zones.0.rows.1.seats.y": DROP}, (f"{ROW_B}.seats.y", "missing")),
    broken("missing", "one cell", {"zones.1.rows.0.seats.x.1": None}, ("zones[1].rows[0].seats.x[1]", "missing")),
    broken("missing", "count", {"zones.0.rows.1.seats.count": DROP}, (f"{ROW_B}.seats.count", "missing")),
    broken("missing", "capacity", {"zones.2.capacity": DROP}, ("zones[2].capacity", "missing")),
    broken("missing", "seats of a group", {"zones.0.groups.1.seats": DROP}, ("zones[0].groups[1].seats", "missing")),
    broken("missing", "outline of a shape", {"shapes.0.outline": DROP}, ("shapes[0].outline", "missing")),
]
TYPES = [
    broken("type", "name", {"name": 7}, ("name", "wrong_type")),
    broken("type", "description", {"description": ["a"]}, ("description", "wrong_type")),
    broken("type", "zones", {"zones": {"S": {}}}, ("zones", "wrong_type")),
    broken("type", "zone", {"zones.3": "S"}, ("zones[3]", "wrong_type")),
    broken("type", "row", {"zones.1.rows.1": ["A"]}, ("zones[1].rows[1]", "wrong_type")),
    broken("type", "seats", {"zones.1.rows.0.seats": 3}, ("zones[1].rows[0].seats", "wrong_type")),
    broken("type", "seat", {"zones.0.rows.0.seats.3": 4}, *(((f"{ROW_A}.seats[3]", "wrong_type")),)),
    broken("type", "x as text", {"zones.0.rows.0.seats.2.x": "50"}, (f"{ROW_A}.seats[2].x", "wrong_type")),
    broken("type", "x with decimals", {"zones.0.rows.0.seats.2.x": 50.5}, (f"{ROW_A}.seats[2].x", "wrong_type")),
    broken("type", "true as a number", {"zones.2.capacity": True}, ("zones[2].capacity", "wrong_type")),
    broken("type", "point", {"zones.0.focal_point": {"x": 0, "y": 0}}, ("zones[0].focal_point", "wrong_type")),
    broken("type", "point of three", {"shapes.0.outline.1": [0, 0, 0]}, ("shapes[0].outline[1]", "wrong_type")),
    broken("type", "metadata", {"zones.0.metadata": []}, ("zones[0].metadata", "wrong_type")),
]
KEYS = [
    broken("key", "of the layout", {"nmae": "x"}, ("nmae", "unknown_key")),
    broken("key", "of a zone", {"zones.0.zonetype": "x"}, ("zones[0].zonetype", "unknown_key")),
    broken("key", "of a row", {"zones.0.rows.0.seat": []}, (f"{ROW_A}.seat", "unknown_key")),
    broken("key", "of a seat", {"zones.0.rows.0.seats.1.colour": 1}, (f"{ROW_A}.seats[1].colour", "unknown_key")),
    broken("key", "of columns", {"zones.0.rows.1.seats.z": 1}, (f"{ROW_B}.seats.z", "unknown_key")),
    broken("key", "of a run", {"zones.0.rows.1.seats.x.stop": 9}, (f"{ROW_B}.seats.x.stop", "unknown_key")),
    broken("key", "of a group", {"zones.0.groups.1.type": "x"}, ("zones[0].groups[1].type", "unknown_key")),
    broken("key", "of a shape", {"shapes.0.points": []}, ("shapes[0].points", "unknown_key")),
]
WORDS = [
    broken("word", "format", {"format": "voelgoed-layout/9"}, ("format", "unknown_format")),
    broken("word", "no format", {"format": DROP}, ("format", "unknown_format")),
    broken("word", "zone type", {"zones.0.zone_type": "stalls"}, ("zones[0].zone_type", "unknown_value")),
    broken("word", "access mode", {"zones.1.access_mode": "friends"}, ("zones[1].access_mode", "unknown_value")),
    broken(
        "word", "category", {"zones.0.rows.0.seats.3.category": "sofa"}, (f"{ROW_A}.seats[3].category", "unknown_value")
    ),
    broken(
        "word",
        "category for all",
        {"zones.1.rows.0.seats.category": "x"},
        ("zones[1].rows[0].seats.category", "unknown_value"),
    ),
    broken(
        "word",
        "category by place",
        {"zones.1.rows.0.seats.category": {"sofa": [1]}},
        ("zones[1].rows[0].seats.category.sofa", "unknown_key"),
    ),
    broken("word", "group kind", {"zones.0.groups.1.kind": "friends"}, ("zones[0].groups[1].kind", "unknown_value")),
    broken("word", "shape kind", {"shapes.0.kind": "moon"}, ("shapes[0].kind", "unknown_value")),
]
SIZES = [
    broken("size", "capacity 0", {"zones.2.capacity": 0}, ("zones[2].capacity", "out_of_range")),
    broken("size", "x too far", {"zones.0.rows.0.seats.2.x": 10**7}, (f"{ROW_A}.seats[2].x", "out_of_range")),
    broken(
        "size",
        "a cell too far",
        {"zones.1.rows.0.seats.y.2": -(10**7)},
        ("zones[1].rows[0].seats.y[2]", "out_of_range"),
    ),
    broken("size", "a run too far", {"zones.0.rows.1.seats.x.step": 10**6}, (f"{ROW_B}.seats.x", "out_of_range")),
    broken(
        "size", "a number below 0", {"zones.0.rows.0.seats.2.number": -1}, (f"{ROW_A}.seats[2].number", "out_of_range")
    ),
    broken("size", "no seats", {"zones.1.rows.0.seats.count": 0}, ("zones[1].rows[0].seats.count", "out_of_range")),
    broken(
        "size",
        "a billion seats",
        {"zones.1.rows.0.seats.count": 10**9},
        ("zones[1].rows[0].seats.count", "out_of_range"),
    ),
    broken("size", "name", {"name": "x" * 121}, ("name", "too_long")),
    broken("size", "description", {"description": "x" * 2_001}, ("description", "too_long")),
    broken("size", "metadata", {"zones.0.metadata": {"a": "x" * 5_000}}, ("zones[0].metadata", "too_long")),
    broken("size", "501 zones", {"zones": [{}] * 501}, ("zones", "too_many")),
    broken("size", "no zones", {"zones": []}, ("zones", "empty")),
    broken("size", "empty row", {"zones.1.rows.1": {"label": "B", "seats": []}}, ("zones[1].rows[1].seats", "empty")),
    broken("size", "empty group", {"zones.0.groups.1.seats": []}, ("zones[0].groups[1].seats", "empty")),
    broken("size", "two points", {"shapes.0.outline": [[0, 0], [1, 1]]}, ("shapes[0].outline", "out_of_range")),
    broken(
        "size",
        "100,001 seats",
        {
            "zones.1.rows": [
                {"label": str(row), "seats": {"count": 2_000, "x": {"start": 1}, "y": 500 + row}} for row in range(50)
            ]
        },
        ("zones[1].rows[49].seats", "too_many"),
    ),
]
TEXTS = [
    broken("text", "blank name", {"name": ""}, ("name", "blank")),
    broken("text", "spaces around", {"zones.2.code": " P"}, ("zones[2].code", "blank")),
    broken("text", "line break", {"zones.0.name": "Sta\nlls"}, ("zones[0].name", "not_printable")),
    broken("text", "nothing a database keeps", {"description": "a\0b"}, ("description", "not_printable")),
    broken("text", "row label too long", {"zones.0.rows.0.label": "x" * 21}, (f"{ROW_A}.label", "too_long")),
    broken("text", "seat label", {"zones.0.rows.0.seats.2.label": "x" * 11}, (f"{ROW_A}.seats[2].label", "too_long")),
    broken("text", "seat code", {"zones.0.rows.0.seats.2.code": "\t"}, (f"{ROW_A}.seats[2].code", "blank")),
    broken("text", "metadata", {"zones.0.metadata": {"a": "\0"}}, ("zones[0].metadata", "not_printable")),
]
DUPLICATES = [
    broken("duplicate", "zone code", {"zones.2.code": "V"}, ("zones[2].code", "duplicate_zone_code")),
    broken(
        "duplicate",
        "row label",
        {"zones.0.rows.1.label": "A", "zones.0.groups": None},
        (f"{ROW_B}.label", "duplicate_row_label"),
    ),
    broken(
        "duplicate",
        "zone code of seats",
        {"zones.1.code": "S"},
        ("zones[1].code", "duplicate_zone_code"),
    ),
    broken(
        "duplicate",
        "seat code",
        {"zones.0.rows.0.seats.3.code": "S-A-1"},
        (f"{ROW_A}.seats[3].code", "duplicate_seat_code"),
    ),
    broken(
        "duplicate",
        "seat code of another zone",
        {"zones.1.rows.0.seats.code": ["a", "S-A-1", "c"]},
        ("zones[1].rows[0].seats.code[1]", "duplicate_seat_code"),
    ),
    broken(
        "duplicate",
        "seat label",
        {"zones.0.rows.0.seats.3.label": "2", "zones.0.rows.0.seats.3.code": "x"},
        (f"{ROW_A}.seats[3].label", "duplicate_seat_label"),
    ),
    broken(
        "duplicate",
        "group code",
        {"zones.0.groups.1.code": "pair"},
        ("zones[0].groups[1].code", "duplicate_group_code"),
    ),
]
PLACES = [
    broken(
        "place", "column too short", {"zones.1.rows.0.seats.x": [1, 2]}, ("zones[1].rows[0].seats.x", "column_length")
    ),
    broken(
        "place",
        "column too long",
        {"zones.1.rows.0.seats.label": ["a"] * 4},
        ("zones[1].rows[0].seats.label", "column_length"),
    ),
    broken("place", "break outside", {"zones.0.rows.1.breaks": [3, 9]}, (f"{ROW_B}.breaks[1]", "place_outside_row")),
    broken("place", "break at the end", {"zones.0.rows.1.breaks": [6]}, (f"{ROW_B}.breaks[0]", "place_outside_row")),
    broken(
        "place",
        "breaks out of order",
        {"zones.0.rows.1.breaks": [4, 3, 3]},
        (f"{ROW_B}.breaks[1]", "breaks_order"),
        (f"{ROW_B}.breaks[2]", "breaks_order"),
    ),
    broken(
        "place",
        "category outside",
        {"zones.1.rows.0.seats.category": {"aisle": [0, 4]}},
        ("zones[1].rows[0].seats.category.aisle[0]", "place_outside_row"),
        ("zones[1].rows[0].seats.category.aisle[1]", "place_outside_row"),
    ),
    broken(
        "place",
        "companion outside",
        {"zones.0.rows.1.seats.companion_of": {"7": "S-B-1"}},
        (f"{ROW_B}.seats.companion_of.7", "place_outside_row"),
    ),
    broken(
        "place", "positions", {"zones.0.rows.0.seats.2.position": 2}, (f"{ROW_A}.seats[2].position", "position_order")
    ),
    broken(
        "place",
        "positions in a column",
        {"zones.1.rows.0.seats.position": [5, 4, 4]},
        ("zones[1].rows[0].seats.position[1]", "position_order"),
        ("zones[1].rows[0].seats.position[2]", "position_order"),
    ),
    broken(
        "place",
        "step 0",
        {"zones.0.rows.1.seats.x": {"start": 1, "step": 0}},
        (f"{ROW_B}.seats.x.step", "out_of_range"),
    ),
    broken("place", "one point for two", {"zones.0.rows.0.seats.2.x": 50}, (f"{ROW_A}.seats[2].x", "seat_overlap")),
    broken(
        "place",
        "one point in two zones",
        {"zones.1.rows.0.seats.y.0": 100},
        ("zones[1].rows[0].seats.x[0]", "seat_overlap"),
    ),
    broken(
        "place",
        "aisle between seats",
        {"zones.0.rows.0.seats.2.category": "aisle"},
        (f"{ROW_A}.seats[2].category", "aisle_between_seats"),
    ),
]
CAPACITIES = [
    broken("capacity", "of a zone", {"zones.0.capacity": 11}, ("zones[0].capacity", "capacity_mismatch")),
    broken("capacity", "in all", {"total_capacity": 312}, ("total_capacity", "total_capacity_mismatch")),
    broken(
        "capacity",
        "seats in a pit",
        {"zones.2.rows": [{"label": "A", "seats": [{"x": 0, "y": 0}]}]},
        ("zones[2].rows", "seats_not_allowed"),
    ),
    broken("capacity", "seated without seats", {"zones.1.rows": DROP}, ("zones[1].rows", "seats_missing")),
    broken(
        "capacity",
        "seated with a number only",
        {"zones.1.rows": [], "zones.1.capacity": 5},
        ("zones[1].rows", "seats_missing"),
    ),
    broken("capacity", "more than a city", {"zones.2.capacity": 10**6}, ("total_capacity", "out_of_range")),
]
ACCESS = [
    broken("access", "tier missing", {"zones.1.membership_tier": DROP}, ("zones[1].membership_tier", "tier_missing")),
    broken("access", "tier unused", {"zones.0.membership_tier": "gold"}, ("zones[0].membership_tier", "tier_unused")),
    broken(
        "access", "roles missing", {"zones.2.access_mode": "role_based"}, ("zones[2].allowed_roles", "roles_missing")
    ),
    broken(
        "access",
        "roles empty",
        {"zones.2.access_mode": "role_based", "zones.2.allowed_roles": []},
        ("zones[2].allowed_roles", "roles_missing"),
    ),
    broken("access", "roles unused", {"zones.2.allowed_roles": ["staff"]}, ("zones[2].allowed_roles", "roles_unused")),
    broken(
        "access",
        "role unknown",
        {"zones.2.access_mode": "role_based", "zones.2.allowed_roles": ["staff", "king"]},
        ("zones[2].allowed_roles[1]", "unknown_value"),
    ),
    broken("access", "vip for all", {"zones.2.zone_type": "vip_standing"}, ("zones[2].access_mode", "vip_public")),
]
COMPANIONS = [
    broken(
        "companion",
        "of nobody",
        {"zones.0.rows.1.seats.companion_of": {"2": "S-B-9"}, "zones.0.groups": None},
        (f"{ROW_B}.seats.companion_of.2", "companion_unknown"),
    ),
    broken(
        "companion",
        "of a chair",
        {"zones.0.rows.1.seats.companion_of": {"2": "S-B-3"}, "zones.0.groups": None},
        (f"{ROW_B}.seats.companion_of.2", "companion_not_wheelchair"),
    ),
    broken(
        "companion",
        "of itself",
        {"zones.0.rows.1.seats.companion_of": {"2": "S-B-2"}, "zones.0.groups": None},
        (f"{ROW_B}.seats.companion_of.2", "companion_not_wheelchair"),
    ),
    broken(
        "companion",
        "a wheelchair space of itself",
        {"zones.0.rows.1.seats.companion_of": {"1": "S-B-1"}},
        (f"{ROW_B}.seats.companion_of.1", "companion_category"),
    ),
    broken(
        "companion",
        "a chair",
        {"zones.0.rows.0.seats.2.companion_of": "S-B-1"},
        (f"{ROW_A}.seats[2].companion_of", "companion_category"),
    ),
    broken(
        "companion",
        "in another zone",
        {"zones.1.rows.0.seats.category": {"companion": [2]}, "zones.1.rows.0.seats.companion_of": {"2": "S-B-1"}},
        ("zones[1].rows[0].seats.companion_of.2", "companion_other_zone"),
    ),
    broken(
        "companion",
        "too many",
        {
            "zones.0.rows.0.seats": [
                {"x": 50 * n, "y": 100, "category": "companion", "companion_of": "S-B-1"} for n in (1, 2, 3, 4)
            ]
        },
        *(
            (f"{ROW_A}.seats[3].companion_of", "companion_too_many"),
            (f"{ROW_B}.seats.companion_of.2", "companion_too_many"),
        ),
    ),
    broken(
        "companion",
        "not text",
        {"zones.0.rows.1.seats.companion_of": {"2": 1}, "zones.0.groups": None},
        (f"{ROW_B}.seats.companion_of.2", "wrong_type"),
    ),
]
GROUPS = [
    broken(
        "group",
        "seat unknown",
        {"zones.0.groups.1.seats.1": "S-Z-9"},
        ("zones[0].groups[1].seats[1]", "group_seat_unknown"),
    ),
    broken(
        "group",
        "seat of another zone",
        {"zones.0.groups.1.seats.1": "V-A-1"},
        ("zones[0].groups[1].seats[1]", "group_other_zone"),
    ),
    broken(
        "group",
        "seat twice",
        {"zones.0.groups.1.seats.1": "S-A-1"},
        ("zones[0].groups[1].seats[1]", "seat_in_two_groups"),
    ),
    broken(
        "group",
        "seat in two",
        {"zones.0.groups.1.seats.1": "S-B-2"},
        ("zones[0].groups[1].seats[1]", "seat_in_two_groups"),
    ),
    broken(
        "group",
        "no pair",
        {"zones.0.groups.1.kind": "wheelchair_pair"},
        ("zones[0].groups[1].kind", "group_kind_mismatch"),
    ),
    broken(
        "group",
        "a pair of one",
        {"zones.0.groups.0.seats": ["S-B-1"]},
        ("zones[0].groups[0].kind", "group_kind_mismatch"),
    ),
    broken(
        "group",
        "too many",
        {"zones.0.groups.1.seats": [f"S-A-{n}" for n in range(201)]},
        ("zones[0].groups[1].seats", "too_many"),
    ),
]
CASES = [
    *MISSING,
    *TYPES,
    *KEYS,
    *WORDS,
    *SIZES,
    *TEXTS,
    *DUPLICATES,
    *PLACES,
    *CAPACITIES,
    *ACCESS,
    *COMPANIONS,
    *GROUPS,
]


def faults_of(data: bytes) -> LayoutInvalid:
    with pytest.raises(LayoutInvalid) as refused:
        read_layout(data)
    return refused.value


@pytest.mark.req("LAY-14", "LAY-16")
@pytest.mark.parametrize("case", CASES, ids=[f"{case.kind}: {case.name}" for case in CASES])
def test_every_fault_is_told_and_no_other(case: Broken) -> None:
    """Paths, codes and their number, whatever else stands in the document."""
    refused = faults_of(encoded(changed(case.changes)))
    assert sorted((fault.path, fault.code.value) for fault in refused.faults) == sorted(case.faults)
    assert refused.count == len(case.faults)
    assert all(fault.message and fault.hint for fault in refused.faults)


def test_there_are_enough_of_every_kind() -> None:
    """Twelve kinds, four of each at least, sixty in all."""
    kinds = {case.kind: sum(other.kind == case.kind for other in CASES) for case in CASES}
    assert len(kinds) == 12
    assert min(kinds.values()) >= 4
    assert len(CASES) >= 60
    assert len({(case.kind, case.name) for case in CASES}) == len(CASES)


def test_every_code_of_a_document_is_shown_to_happen() -> None:
    """A code that nothing can bring about would be a promise nobody keeps."""
    shown = {code for case in CASES for _, code in case.faults}
    elsewhere = {FaultCode.NOT_JSON, FaultCode.NOT_CSV, FaultCode.ZONE_NOT_PERMITTED, FaultCode.SEAT_NOT_PERMITTED}
    assert set(FaultCode) - elsewhere == shown


def test_five_faults_are_five_faults() -> None:
    """In one file, of different kinds, at different depths: none hides another."""
    document = changed(
        {
            "name": "",
            "zones.0.rows.0.seats.2.x": "here",
            "zones.0.groups.1.seats.1": "S-Z-9",
            "zones.1.membership_tier": DROP,
            "zones.2.capacity": -1,
        }
    )
    refused = faults_of(encoded(document))
    assert [(fault.path, fault.code) for fault in refused.faults] == [
        ("name", FaultCode.BLANK),
        ("zones[0].rows[0].seats[2].x", FaultCode.WRONG_TYPE),
        ("zones[2].capacity", FaultCode.OUT_OF_RANGE),
        ("zones[1].membership_tier", FaultCode.TIER_MISSING),
        ("zones[0].groups[1].seats[1]", FaultCode.GROUP_SEAT_UNKNOWN),
    ]
    assert refused.count == 5


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"name": ""}, ["blank", "total_capacity_mismatch"]),
        ({"zones.0.groups.0.kind": "x"}, ["total_capacity_mismatch", "unknown_value"]),
        ({"zones.2.capacity": DROP}, ["missing"]),
        ({"zones.0.rows.0.seats.2.x": "here"}, ["wrong_type"]),
        ({"zones.3": 7}, ["wrong_type"]),
    ],
)
def test_the_total_is_judged_where_all_was_counted(changes: Mapping[str, Any], codes: list[str]) -> None:
    """Beside other faults as well, but not when seats or places could not be read."""
    refused = faults_of(encoded(changed({"total_capacity": 1_000, **changes})))
    assert sorted(fault.code.value for fault in refused.faults) == codes


def test_a_broken_seat_is_not_missed_by_those_who_name_it() -> None:
    """What only follows from a fault is not told: not the group, not the companion, not the capacity."""
    document = changed({"zones.0.rows.1.seats.y": [200, 200, "x", 200, 200, 200], "zones.0.capacity": 10})
    document["zones"][0]["groups"][1]["seats"][1] = "S-B-3"
    refused = faults_of(encoded(document))
    assert [(fault.path, fault.code) for fault in refused.faults] == [
        ("zones[0].rows[1].seats.y[2]", FaultCode.WRONG_TYPE)
    ]


def test_faults_are_counted_in_full_and_told_up_to_a_limit() -> None:
    """Six hundred seats without a place: the answer stays of a size that people can read."""
    document = changed({"zones.1.rows.0.seats": [{"y": 1}] * 600})
    refused = faults_of(encoded(document))
    assert refused.count == 600
    assert len(refused.faults) == FAULTS_REPORTED_MAX
    assert refused.facts["error_count"] == 600
    errors = refused.facts["errors"]
    assert isinstance(errors, list)
    assert errors[0] == {
        "path": "zones[1].rows[0].seats[0].x",
        "code": "missing",
        "message": "Every seat needs a place on the plan.",
        "hint": HINTS[FaultCode.MISSING],
    }


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b'{"format": "voelgoed-layout/1",}', "not_json"),
        (b"\xff\xfe{}", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"name": "\\ud800"}', "not_json"),
        (b'{"name": ' + b"9" * 5_000 + b"}", "not_json"),
        (b"[]", "wrong_type"),
        (b"null", "wrong_type"),
        (b"{}", "unknown_format"),
    ],
)
def test_what_is_no_document_is_refused_whole(data: bytes, code: str) -> None:
    """One fault: nothing more can be said about it."""
    refused = faults_of(data)
    assert [fault.code.value for fault in refused.faults] == [code]
    assert (refused.kind, refused.code) == (Kind.INVALID, "layout_invalid")


def test_thirty_two_megabytes_are_the_limit() -> None:
    """One byte more is refused unread; as many as that are read."""
    document = json.dumps(changed({})).encode()
    assert read_layout(document + b" " * (DOCUMENT_BYTES_MAX - len(document))).seat_count == 13
    with pytest.raises(LayoutTooLarge) as refused:
        read_layout(document + b" " * (DOCUMENT_BYTES_MAX - len(document) + 1))
    assert (refused.value.kind, refused.value.code) == (Kind.TOO_LARGE, "layout_too_large")
    assert refused.value.facts == {"bytes": DOCUMENT_BYTES_MAX + 1, "bytes_max": DOCUMENT_BYTES_MAX}


def test_a_file_full_of_nonsense_is_refused_soon() -> None:
    """A hundred thousand keys that mean nothing, numbers of five thousand digits: counted, and that is all."""
    nonsense = {f"key{number}": number for number in range(100_000)}
    assert faults_of(encoded(changed({"zones.0.metadata": None, "zones.2": nonsense}))).count == 100_003
    place = {"9" * 5_000: "S-B-1"}
    refused = faults_of(encoded(changed({"zones.0.rows.1.seats.companion_of": place})))
    assert [fault.code for fault in refused.faults] == [FaultCode.PLACE_OUTSIDE_ROW]


def test_faults_are_told_in_the_order_of_the_document() -> None:
    """The same file, the same answer."""
    refused = faults_of(encoded(changed({"bb": 1, "aa": 1, "cc": 1})))
    assert [fault.path for fault in refused.faults] == ["bb", "aa", "cc"]


def test_a_misspelt_key_is_told_what_was_meant() -> None:
    """The most common fault has the most useful hint."""
    fault = faults_of(encoded(changed({"zones.0.zonetype": "x"}))).faults[0]
    assert (fault.message, fault.hint) == ("'zonetype' is not known here.", "Did you mean zone_type?")


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "A", "S-A-1", "wheelchair", "S", "vip_reserved", "\0", "x" * 200, "7"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["start", "step", "count", "x", "y", "code", "1", "aisle"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
PATHS = [
    *("name", "description", "total_capacity", "zones", "zones.0", "zones.0.code", "zones.0.rows", "zones.0.rows.1"),
    *(f"zones.0.rows.1.seats.{key}" for key in ("count", "code", "number", "label", "position", "x", "y", "category")),
    *("zones.0.rows.1.seats.companion_of", "zones.0.rows.0.seats", "zones.0.rows.0.seats.1", "zones.0.rows.1.breaks"),
    *(f"zones.1.{key}" for key in ("zone_type", "capacity", "access_mode", "allowed_roles", "metadata", "groups")),
    *("zones.0.groups.0.seats", "zones.0.groups.0.kind", "zones.0.outline", "shapes", "shapes.0.outline.0", "added"),
]


@settings(deadline=None, max_examples=300)
@given(changes=st.dictionaries(st.sampled_from(PATHS), ANYTHING, min_size=1, max_size=2))
def test_whatever_is_put_anywhere_is_read_or_refused(changes: dict[str, object]) -> None:
    """Never anything else; and what is read is written and read again as it is."""
    try:
        document = changed(changes)
    except (KeyError, IndexError, TypeError, ValueError):
        return  # the second path is no longer there
    try:
        layout = read_layout(encoded(document))
    except LayoutInvalid as refused:
        found = refused
    else:
        assert read_layout(write_layout(layout)) == layout
        return
    assert found.count >= len(found.faults) > 0
