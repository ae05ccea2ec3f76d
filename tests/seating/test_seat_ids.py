"""Ids of seats and zones: made of the layout's id and a number that a code keeps."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from tests.make.layouts import LAYOUT_ID, OTHER_LAYOUT_ID, layouts
from voelgoed.ids import new_id
from voelgoed.seating import seat_ids
from voelgoed.seating.model import Layout, LayoutId, Row, Seat, Zone
from voelgoed.seating.ordinals import ordinals

SERIALS = st.integers(1, seat_ids.SERIAL_MAX)
CODES = st.lists(st.text(min_size=1, max_size=3), max_size=12, unique=True)


def codes_of(layout: Layout) -> list[str]:
    return [seat.code for _, _, seat in layout.seats()]


@given(layout_id=st.uuids(), serial=SERIALS)
def test_an_id_tells_its_layout_and_serial(layout_id: UUID, serial: int) -> None:
    """There and back, for seats and zones, which are never taken for each other."""
    layout = LayoutId(layout_id)
    seat, zone = seat_ids.seat_id(layout, serial), seat_ids.zone_id(layout, serial)
    assert (seat.version, zone.version) == (8, 8)
    assert seat_ids.seat_serial(layout, seat) == seat_ids.zone_serial(layout, zone) == serial
    assert seat_ids.seat_serial(layout, zone) is None
    assert seat_ids.zone_serial(layout, seat) is None


def test_ids_of_another_layout_are_not_ours() -> None:
    """Nor is anything else."""
    theirs = seat_ids.seat_id(OTHER_LAYOUT_ID, 1)
    assert seat_ids.seat_serial(LAYOUT_ID, theirs) is None
    assert seat_ids.zone_serial(LAYOUT_ID, seat_ids.zone_id(OTHER_LAYOUT_ID, 1)) is None
    assert seat_ids.seat_serial(LAYOUT_ID, UUID(int=0)) is None
    assert seat_ids.seat_serial(LAYOUT_ID, new_id()) is None
    assert seat_ids.zone_serial(LAYOUT_ID, LAYOUT_ID) is None


def test_an_id_is_a_prefix_and_eight_digits() -> None:
    """What a browser puts together from a geometry document."""
    prefix = seat_ids.id_prefix(LAYOUT_ID)
    assert prefix == "01933b5c-7c1e-8d3a-9f00-1234"
    assert str(seat_ids.seat_id(LAYOUT_ID, 258)) == f"{prefix}{258:08x}" == "01933b5c-7c1e-8d3a-9f00-123400000102"
    assert str(seat_ids.zone_id(LAYOUT_ID, 1)) == "01933b5c-7c1e-8d3a-9f00-123480000001"
    assert seat_ids.seat_ids(LAYOUT_ID, [1, 258]) == [seat_ids.seat_id(LAYOUT_ID, n) for n in (1, 258)]


def test_layouts_made_at_once_share_no_ids() -> None:
    """Ninety bits of a UUIDv7 are enough to tell two of one millisecond apart."""
    prefixes = {seat_ids.id_prefix(LayoutId(new_id())) for _ in range(2_000)}
    assert len(prefixes) == 2_000


@pytest.mark.req("LAY-15")
@given(versions=st.lists(CODES, max_size=5))
def test_a_code_keeps_its_serial_and_none_is_given_twice(versions: Sequence[Sequence[str]]) -> None:
    """Through any row of versions, also when a code goes and comes back."""
    known: dict[str, int] = {}
    for codes in versions:
        serials = seat_ids.assign_serials(codes, known)
        assert list(serials) == list(codes)
        assert all(known.get(code, serial) == serial for code, serial in serials.items())
        fresh = [serials[code] for code in codes if code not in known]
        assert fresh == list(range(len(known) + 1, len(known) + len(fresh) + 1))
        known |= serials
    assert sorted(known.values()) == list(range(1, len(known) + 1))


@pytest.mark.req("SEAT-16")
@settings(deadline=None)
@given(layout=layouts(), data=st.data())
def test_a_seat_keeps_its_id_whatever_it_is_called_and_wherever_it_goes(layout: Layout, data: st.DataObject) -> None:
    """Relabelled, renumbered, moved on the plan, and put into another zone: the id is the code's."""
    serials = seat_ids.assign_serials(codes_of(layout), {})
    after = _rezoned(_relabelled(layout), data)
    later = seat_ids.assign_serials(codes_of(after), serials)
    assert later == serials
    before_ids = {code: seat_ids.seat_id(LAYOUT_ID, serial) for code, serial in serials.items()}
    assert {code: seat_ids.seat_id(LAYOUT_ID, serial) for code, serial in later.items()} == before_ids


@settings(deadline=None)
@given(layouts())
def test_ordinals_are_dense_and_stand_by_zone_row_and_position(layout: Layout) -> None:
    """From 0, without a gap, and the same every time."""
    numbered = ordinals(layout)
    assert list(numbered.values()) == list(range(layout.seat_count))
    assert ordinals(layout) == numbered
    placed = [
        (zone, row, seat.position, numbered[seat.code])
        for zone, one in enumerate(layout.zones)
        for row, line in enumerate(one.rows)
        for seat in line.seats
    ]
    assert placed == sorted(placed)


@settings(deadline=None)
@given(layouts())
def test_ordinals_do_not_depend_on_what_seats_are_called(layout: Layout) -> None:
    """Only on where they stand."""
    assert ordinals(_relabelled(layout)) == ordinals(layout)


def _relabelled(layout: Layout) -> Layout:
    def row(index: int, line: Row) -> Row:
        seats = [
            msgspec.structs.replace(seat, number=place, label=f"n{place}", x=seat.x + 1)
            for place, seat in enumerate(line.seats)
        ]
        return Row(label=f"row {index}", seats=tuple(seats))

    zones = [
        replace(zone, name="Other", rows=tuple(row(index, line) for index, line in enumerate(zone.rows)))
        for zone in layout.zones
    ]
    return replace(layout, zones=tuple(zones))


def _rezoned(layout: Layout, data: st.DataObject) -> Layout:
    """All seats, in any order, in one new zone."""
    seats: list[Seat] = data.draw(st.permutations([seat for _, _, seat in layout.seats()]))
    rows = (Row(label="A", seats=tuple(seats)),)
    zone: Zone = replace(layout.zones[0], code="elsewhere", rows=rows, capacity=len(seats), groups=())
    return replace(layout, zones=(zone,))
