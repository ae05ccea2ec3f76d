"""The seats of a layout as a sheet."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.make.layouts import layouts, small_layout
from voelgoed.seating import adjacency, presets, seats_csv
from voelgoed.seating.faults import DOCUMENT_BYTES_MAX, LayoutInvalid, LayoutTooLarge
from voelgoed.seating.generate import generate
from voelgoed.seating.model import GroupKind, Layout, ZoneType
from voelgoed.seating.seats_csv import COLUMNS, read_seats, write_seats

EMPTY = Layout(name="Hall", description=None, zones=())


def sheet(*lines: str, header: str = "zone,row,number,x,y") -> bytes:
    return "\n".join([header, *lines, ""]).encode()


def faults_of(data: bytes, base: Layout = EMPTY) -> list[tuple[str, str]]:
    with pytest.raises(LayoutInvalid) as refused:
        read_seats(data, base)
    assert refused.value.count == len(refused.value.faults)
    assert all(fault.message and fault.hint for fault in refused.value.faults)
    return [(fault.path, fault.code.value) for fault in refused.value.faults]


@settings(deadline=None)
@given(layouts())
def test_a_sheet_on_top_of_its_layout_changes_nothing(layout: Layout) -> None:
    """Whatever the seats are called, also like formulas, with commas, or with quotes in them."""
    if layout.seat_count:
        assert read_seats(write_seats(layout), layout) == layout


def test_a_hall_goes_through_a_sheet_unchanged() -> None:
    """A line per seat and one for the names of the columns."""
    layout = generate(presets.preset("theatre-350"))
    written = write_seats(layout)
    assert written.count(b"\r\n") == 351
    assert read_seats(written, layout) == layout


def test_the_sheet_is_plain_to_read() -> None:
    """What somebody sees who opens it."""
    lines = write_seats(small_layout()).decode().split("\r\n")
    assert lines[0] == ",".join(COLUMNS)
    assert lines[1] == "S-A-1,S,A,1,1,standard,1,0,50,100,,family,family_block"
    assert lines[6] == "S-B-2,S,B,2,2,companion,2,0,100,200,S-B-1,pair,wheelchair_pair"
    assert lines[8] == "S-B-4,S,B,4,4,standard,4,1,200,200,,,"


def test_no_text_is_taken_for_a_formula() -> None:
    """Spreadsheets would run it."""
    layout = small_layout({"zones.1.rows.0.seats.code": ["=1+1", "@x", "'q"]})
    cells = [line.split(",")[0] for line in write_seats(layout).decode().splitlines()]
    assert cells[-3:] == ["'=1+1", "'@x", "''q"]
    assert read_seats(write_seats(layout), layout) == layout


def test_a_sheet_alone_makes_zones_open_to_all() -> None:
    """With nothing but what is required; codes are made of zone, row and number."""
    layout = read_seats(sheet("Stalls,A,2,50,0", "Stalls,A,1,0,0", "Balcony,A,1,0,90"), EMPTY)
    assert [(zone.code, zone.name, zone.zone_type, zone.capacity) for zone in layout.zones] == [
        ("Stalls", "Stalls", ZoneType.RESERVED_SEATING, 2),
        ("Balcony", "Balcony", ZoneType.RESERVED_SEATING, 1),
    ]
    assert [seat.code for seat in layout.zones[0].rows[0].seats] == ["Stalls-A-1", "Stalls-A-2"]


def test_what_a_sheet_does_not_tell_stays_as_it_was() -> None:
    """Zones keep type, access and outline; those without seats stay; one of which no line is left is gone."""
    base = small_layout()
    lines = [line for line in write_seats(base).decode().splitlines() if not line.startswith("S-A-")]
    layout = read_seats("\n".join(line for line in lines if not line.startswith("V-")).encode(), base)
    assert [zone.code for zone in layout.zones] == ["S", "P"]
    stalls = layout.zones[0]
    assert (stalls.capacity, stalls.focal_point, [row.label for row in stalls.rows]) == (6, (0, 0), ["B"])
    assert [group.code for group in stalls.groups] == ["pair"]
    assert layout.shapes == base.shapes
    assert layout.zones[1] == base.zones[2]


def test_a_sorted_sheet_keeps_the_order_of_rows() -> None:
    """Spreadsheets put row 10 before row 2; the layout knows better."""
    base = generate(presets.preset("festival"))
    header, *lines = write_seats(base).decode().splitlines()
    assert read_seats("\n".join([header, *sorted(lines, reverse=True)]).encode(), base) == base


def test_positions_follow_numbers_where_none_are_told() -> None:
    """In twos where all are odd; a number that is missing parts its neighbours; odd and even from the middle."""
    odd = read_seats(sheet(*(f"Z,A,{n},{n},0" for n in (1, 3, 5, 9))), EMPTY).zones[0].rows[0]
    assert [[seat.number for seat in block] for block in adjacency.blocks(odd)] == [[1, 3, 5], [9]]
    data = sheet(*(f"Z,A,{n},{n},0" for n in (1, 2, 3, 4, 5, 6)))
    both = read_seats(data, EMPTY, is_odd_even=True).zones[0].rows[0]
    assert [seat.number for seat in both.seats] == [5, 3, 1, 2, 4, 6]
    assert len(list(adjacency.blocks(both))) == 1


def test_segments_part_where_they_change() -> None:
    """Whatever the numbers are; they are counted anew."""
    header = "zone,row,number,x,y,position,segment"
    lines = (f"Z,A,{n},{n},0,{n},{segment}" for n, segment in ((1, 7), (2, 7), (3, 4), (4, 9)))
    row = read_seats(sheet(*lines, header=header), EMPTY).zones[0].rows[0]
    assert [seat.segment for seat in row.seats] == [0, 0, 1, 2]


def test_groups_come_and_grow() -> None:
    """New ones get the kind of their lines; known ones keep theirs, and their label."""
    header = "seat_code,zone,row,number,x,y,group,group_kind"
    base = replace(small_layout(), shapes=())
    lines = (
        "S-A-1,S,A,1,50,100,family,",
        "S-A-2,S,A,2,100,100,family,",
        "S-A-3,S,A,3,150,100,family,",
        "S-A-4,S,A,4,200,100,T1,vip_table",
    )
    groups = read_seats(sheet(*lines, header=header), base).zones[0].groups
    assert [(group.code, group.kind, group.seat_codes) for group in groups] == [
        ("family", GroupKind.FAMILY_BLOCK, ("S-A-1", "S-A-2", "S-A-3")),
        ("T1", GroupKind.VIP_TABLE, ("S-A-4",)),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_sheets_of_all_lands_are_read(delimiter: str) -> None:
    """Semicolons, tabs, a mark before the first byte, capitals, empty lines, other line ends."""
    lines = ["Zone, Row ,NUMBER,x,y", "Z,A,1,0,-5", "", "Z,A,2,55,-5"]
    data = b"\xef\xbb\xbf" + "\r\n".join(lines).replace(",", delimiter).encode()
    layout = read_seats(data, EMPTY)
    assert [(seat.x, seat.y) for _, _, seat in layout.seats()] == [(0, -5), (55, -5)]


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        (b"", [(f"line 1, column {name}", "missing") for name in ("zone", "row", "number", "x", "y")]),
        (b"\xff\xfe", [("line 1", "not_csv")]),
        (sheet('Z,A,1,0,"0'), [("line 2", "not_csv")]),
        (sheet(header="zone,row,number,x"), [("line 1, column y", "missing")]),
        (sheet(header="zone,row,number,x,y,colour,x"), [("line 1", "unknown_key")] * 3),
        (sheet(), [("line 2", "empty")]),
        (sheet(header="x" + ",x" * 100_000), [("line 1", "too_many")]),
        (sheet("Z,A,1,0,0,9"), [("line 2", "column_length")]),
        (sheet("Z,A,1,0"), [("line 2, column y", "missing")]),
        (sheet(",A,1,0,0", "Z,,1,0,0"), [("line 2, column zone", "missing"), ("line 3, column row", "missing")]),
        (sheet("Z,A,one,0,0"), [("line 2, column number", "wrong_type")]),
        (sheet("Z,A,1,0.5,0"), [("line 2, column x", "wrong_type")]),
        (sheet("Z,A,1,99999999,0"), [("line 2, column x", "out_of_range")]),
        (sheet(f"Z,A,1,{'9' * 5_000},0"), [("line 2, column x", "wrong_type")]),
        (sheet(f"{'Z' * 41},A,1,0,0"), [("line 2, column zone", "too_long")]),
        (
            sheet("Z,A,1,0,0", "Z,A,1,1,0"),
            [
                ("line 3, column seat_code", "duplicate_seat_code"),
                ("line 3, column label", "duplicate_seat_label"),
                ("line 3, column position", "position_order"),
            ],
        ),
        (sheet("Z,A,1,0,0", "", "Z,A,2,0,0"), [("line 4, column x", "seat_overlap")]),
        (
            sheet("Z,A,1,0,0,sofa", header="zone,row,number,x,y,category"),
            [("line 2, column category", "unknown_value")],
        ),
        (
            sheet("Z,A,1,0,0,companion,Q", header="zone,row,number,x,y,category,companion_of"),
            [("line 2, column companion_of", "companion_unknown")],
        ),
        (
            sheet("Z,A,1,0,0,1", "Z,A,2,9,0,", header="zone,row,number,x,y,position"),
            [("line 3, column position", "missing")],
        ),
        (
            sheet("Z,A,1,0,0,g", "Y,A,1,9,0,g", header="zone,row,number,x,y,group"),
            [("group g, code", "duplicate_group_code")],
        ),
    ],
)
def test_faults_are_told_by_line_and_column(data: bytes, faults: list[tuple[str, str]]) -> None:
    """All of them, and no other."""
    assert sorted(faults_of(data)) == sorted(faults)


@pytest.mark.req("SEAT-15")
def test_seats_cannot_be_put_into_a_pit() -> None:
    """The zones of the layout say what they are."""
    assert faults_of(sheet("P,A,1,0,900"), small_layout()) == [("zone P, rows", "seats_not_allowed")]


def test_a_sheet_is_limited_as_any_document_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty-two megabytes, and as many seats as a layout can have: here three."""
    with pytest.raises(LayoutTooLarge):
        read_seats(b" " * (DOCUMENT_BYTES_MAX + 1), EMPTY)
    monkeypatch.setattr(seats_csv, "SEATS_MAX", 3)
    lines = [f"Z,A,{number},{number},0" for number in range(5)]
    assert read_seats(sheet(*lines[:3]), EMPTY).seat_count == 3
    assert faults_of(sheet(*lines)) == [("line 5", "too_many")]
