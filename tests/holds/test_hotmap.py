"""The map of an event in a process: whatever comes in whatever order, the newest word on each place counts."""

import base64
from array import array
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, strategies as st

from voelgoed.holds import hotmap
from voelgoed.holds.hotmap import (
    AVAILABLE,
    BLOCKED,
    CONFIRMED_FOR_S,
    HELD,
    NEWS,
    SOLD,
    STATUSES,
    HotMap,
    HotZone,
    Names,
    News,
    SeatChange,
    Snapshot,
    ZoneChange,
    pack,
    unpack,
)
from voelgoed.holds.model import Counts
from voelgoed.ids import OrganizationId, new_id

ANNA, BEN = UUID(int=1), UUID(int=2)
LAYOUT = 0x8000_1234 << 64 | 0xABCD << 32
"""What all seats of a hall have in common; the number of the seat is in the last four bytes."""
GA_CAPACITY = 50
NOW_MS = 1_800_000_000_000
TTL_MS = 600_000


def seat_of(serial: int, layout: int = LAYOUT) -> UUID:
    return UUID(int=layout | serial)


def numbers(*values: int) -> bytes:
    encoded = array("I", values)
    encoded.byteswap()
    return encoded.tobytes()


def made(statuses: Sequence[int], *, by_number: bool = True, read_at: float = 0.0) -> HotMap:
    """A map of so many seats in two zones, with serials that are not their ordinals, and a zone sold by number."""
    count = len(statuses)
    half = count // 2
    zones = [
        HotZone.of(UUID(int=10 + number), is_number, 1, GA_CAPACITY if is_number else 0, 0, 0, 0)
        for number, is_number in enumerate((False, False, True)[: 3 if by_number else 2])
    ]
    serials = [2 * count - 2 * ordinal for ordinal in range(count)]
    return HotMap(
        Snapshot(
            organization_id=OrganizationId(new_id()),
            event_id=new_id(),
            epoch=1,
            now_ms=NOW_MS,
            first_seat=seat_of(serials[0]) if count else None,
            serials=numbers(*serials),
            versions=numbers(*(1 for _ in statuses)),
            statuses=bytes(statuses),
            zones=zones,
            ranges=[(zones[0].zone_id, 0, half), (zones[1].zone_id, half, count - half)],
            names=Names(["Stalls"], [["A"]], bytes(2 * count), bytes(4 * count), ["1"] * count),
            held=[(n, new_id(), ANNA, NOW_MS + TTL_MS) for n, status in enumerate(statuses) if status == HELD],
        ),
        read_at=read_at,
    )


def held_by(
    found: HotMap, ordinal: int, user_id: UUID, version: int = 2, until_ms: int = NOW_MS + TTL_MS
) -> SeatChange:
    return SeatChange(
        seat_id=found.seat_id(ordinal),
        version=version,
        status=HELD,
        hold_id=new_id(),
        user_id=user_id,
        until_ms=until_ms,
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, int]], list[tuple[int, int, int]], list[int]]:
    """Seats, what became of them by version, what became of the zone by number, and in which order that is heard."""
    count = draw(st.integers(1, 9))
    seats = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(2, 12), st.sampled_from(range(4))), max_size=25)
    )
    seats = [(ordinal, version, status) for (ordinal, version), status in {one[:2]: one[2] for one in seats}.items()]
    zones = draw(st.lists(st.tuples(st.integers(2, 12), st.integers(0, 20), st.integers(0, 20)), max_size=8))
    zones = [(version, *counted) for version, counted in {one[0]: one[1:] for one in zones}.items()]
    told = range(len(seats) + len(zones))
    once = draw(st.permutations(told))
    again = draw(st.lists(st.sampled_from(told), max_size=20)) if told else []
    return count, seats, zones, draw(st.permutations([*once, *again]))


@pytest.mark.req("REG-01", "REG-29", "PUB-08")
@given(histories())
def test_the_newest_word_on_each_place_counts_in_whatever_order(
    history: tuple[int, list[tuple[int, int, int]], list[tuple[int, int, int]], list[int]],
) -> None:
    """Every change at least once, in any order: status, holder, version, counts and number as if told in order once."""
    count, seats, zones, order = history
    found = made([AVAILABLE] * count)
    ga = found.zones[2].zone_id
    changes: list[SeatChange | ZoneChange] = [
        held_by(found, ordinal, ANNA, version)
        if status == HELD
        else SeatChange(seat_id=found.seat_id(ordinal), version=version, status=status)
        for ordinal, version, status in seats
    ]
    changes += [ZoneChange(zone_id=ga, version=version, held=held, sold=sold) for version, held, sold in zones]
    for place in order:
        change = changes[place]
        if isinstance(change, SeatChange):
            found.take_seat(change, 1.0)
        else:
            found.take_zone(change)

    newest = {ordinal: max(v for o, v, _ in seats if o == ordinal) for ordinal, _, _ in seats}
    statuses = {ordinal: status for ordinal, version, status in seats if newest[ordinal] == version}
    assert list(found.statuses) == [statuses.get(ordinal, AVAILABLE) for ordinal in range(count)]
    assert list(found.versions) == [newest.get(ordinal, 1) for ordinal in range(count)]
    assert {ordinal: holder.hold_id for ordinal, holder in found.holders.items()} == {
        ordinal: next(
            c.hold_id for c in changes if isinstance(c, SeatChange) and _is(found, c, ordinal, newest[ordinal])
        )
        for ordinal, status in statuses.items()
        if status == HELD
    }
    version, held, sold = max(zones, default=(1, 0, 0))
    assert found.zones[2].counts == Counts(available=GA_CAPACITY - held - sold, held=held, sold=sold, blocked=0)
    assert found.map_version == 2 * (sum(found.versions) + version + 2)
    for number, zone in enumerate(found.zones[:2]):
        some = found.statuses[: count // 2] if number == 0 else found.statuses[count // 2 :]
        seen = Counter(some)
        assert zone.counts == Counts(available=seen[0], held=seen[1], sold=seen[2], blocked=seen[3])
    assert found.counts() == Counts.total(zone.counts for zone in found.zones)
    assert unpack(found.encoded(), count) == bytes(found.statuses)


def _is(found: HotMap, change: SeatChange, ordinal: int, version: int) -> bool:
    return change.version == version and found.ordinal_of(change.seat_id) == ordinal


@pytest.mark.req("REG-20")
@given(st.binary(max_size=300).map(lambda some: bytes(byte & 3 for byte in some)))
def test_packing_is_undone_by_unpacking(statuses: bytes) -> None:
    """For any number of seats; the first stands in the lowest bits of the first byte, as browsers are told."""
    encoded = pack(statuses)
    assert unpack(encoded, len(statuses)) == statuses
    packed = base64.b64decode(encoded)
    assert len(packed) == (len(statuses) + 3) // 4
    assert [packed[n // 4] >> 2 * (n % 4) & 3 for n in range(len(statuses))] == list(statuses)


def test_a_hundred_thousand_seats_go_into_36000_bytes() -> None:
    """Whatever their states are."""
    found = made([n % 4 for n in range(100_000)])
    assert len(found.encoded()) <= 36_000
    assert found.encoded() is found.encoded(), "encoded once for everybody"
    before = found.encoded()
    found.take_seat(SeatChange(seat_id=found.seat_id(0), version=2, status=SOLD), 1.0)
    assert found.encoded() != before


@pytest.mark.req("RSV-13")
@pytest.mark.parametrize("status", [HELD, SOLD, BLOCKED])
def test_a_refusal_is_never_older_than_a_second(status: int) -> None:
    """As long as PostgreSQL's word is a second old at most; then it must be asked, and its word counts anew."""
    found = made([AVAILABLE] * 4)
    change = held_by(found, 1, ANNA)
    change = msgspec.structs.replace(change, status=status)
    seat = found.seat_id(1)
    assert found.in_the_way(seat, BEN, 5.0) is None
    found.take_seat(change, 5.0)
    expected = (HELD, NOW_MS + TTL_MS) if status == HELD else (status, None)
    assert found.in_the_way(seat, BEN, 5.0) == expected
    assert found.in_the_way(seat, BEN, 5.0 + CONFIRMED_FOR_S - 0.01) == expected
    assert found.in_the_way(seat, BEN, 5.0 + CONFIRMED_FOR_S) is None
    assert found.statuses[1] == status, "who looks still sees it"
    found.take_seat(change, 9.0)
    assert found.in_the_way(seat, BEN, 9.5) == expected
    assert found.in_the_way(found.seat_id(2), BEN, 9.5) is None, "the others are free"


@pytest.mark.req("RSV-17", "HOLD-17")
def test_nobody_is_refused_by_what_a_load_found() -> None:
    """A map says what was; only a word on the seat itself, a second old at most, refuses anybody."""
    found = made([HELD, SOLD, BLOCKED, AVAILABLE])
    assert [found.in_the_way(found.seat_id(n), BEN, 0.1) for n in range(4)] == [None] * 4


@pytest.mark.req("RSV-16", "REG-05", "REG-09")
def test_an_own_hold_and_a_lapsed_one_are_not_in_the_way() -> None:
    """The holder asks PostgreSQL, which knows it is theirs; after its end so does everybody, and it shows as free."""
    found = made([AVAILABLE] * 2)
    seat = found.seat_id(0)
    found.take_seat(held_by(found, 0, ANNA, until_ms=NOW_MS + 500), 0.0)
    assert found.in_the_way(seat, BEN, 0.499) == (HELD, NOW_MS + 500)
    assert found.in_the_way(seat, ANNA, 0.1) is None
    assert found.in_the_way(seat, BEN, 0.5) is None
    found.expire(NOW_MS + 499)
    status, holder = found.state_of(0)
    assert (status, holder and holder.user_id, holder and holder.until_ms) == (HELD, ANNA, NOW_MS + 500)
    found.expire(NOW_MS + 500)
    assert found.state_of(0) == (AVAILABLE, None)


def test_what_is_heard_late_is_as_old_as_it_is() -> None:
    """A fact that took seconds to arrive refuses nobody; one that comes again does not become younger by that."""
    found = made([AVAILABLE] * 2)
    late = msgspec.structs.replace(held_by(found, 0, ANNA), at_ms=NOW_MS + 1_000)
    found.take_seat(late, 3.0)  # two seconds after it was written
    assert (found.statuses[0], found.in_the_way(found.seat_id(0), BEN, 3.0)) == (HELD, None)
    soon = msgspec.structs.replace(held_by(found, 1, ANNA), at_ms=NOW_MS + 3_000)
    for heard_at in (3.2, 3.9):
        found.take_seat(soon, heard_at)
        assert found.in_the_way(found.seat_id(1), BEN, heard_at)
    assert found.in_the_way(found.seat_id(1), BEN, 4.0) is None


@pytest.mark.req("RSV-18")
def test_doubt_sends_everybody_to_postgresql() -> None:
    """What was done to a seat here and has not come back yet must not refuse anybody; other seats do."""
    found = made([AVAILABLE] * 2)
    for ordinal in (0, 1):
        found.take_seat(held_by(found, ordinal, ANNA), 1.0)
    found.doubt([found.seat_id(0), seat_of(9_999), UUID(int=7)])
    assert found.in_the_way(found.seat_id(0), BEN, 1.1) is None
    assert found.in_the_way(found.seat_id(1), BEN, 1.1) is not None


def test_a_hold_learned_by_a_refusal_is_the_hold_that_is_told_later() -> None:
    """PostgreSQL says who is in the way, not by which hold; the fact of the same version adds that."""
    found = made([AVAILABLE])
    told = held_by(found, 0, ANNA)
    found.take_seat(msgspec.structs.replace(told, hold_id=None), 1.0)
    assert found.in_the_way(found.seat_id(0), BEN, 1.5) == (HELD, NOW_MS + TTL_MS)
    assert found.state_of(0)[0] == HELD
    found.take_seat(told, 1.6)
    holder = found.holders[0]
    assert (holder.hold_id, holder.user_id, found.map_version) == (told.hold_id, ANNA, 2 * (2 + 3))


@pytest.mark.req("TEN-08", "REG-04")
def test_a_seat_of_another_hall_is_none_of_this_event() -> None:
    """By its number alone it would be one: the hall is looked at as well. So are numbers that no seat has."""
    found = made([AVAILABLE] * 4)
    assert [found.ordinal_of(found.seat_id(n)) for n in range(4)] == [0, 1, 2, 3]
    serial = found.serials[0]
    for foreign in (seat_of(serial, LAYOUT + (1 << 32)), UUID(int=serial), seat_of(1), seat_of(2**32 - 1), new_id()):
        assert found.ordinal_of(foreign) is None
        change = SeatChange(seat_id=foreign, version=99, status=SOLD)
        assert found.take_seat(change, 1.0) is None
        assert found.in_the_way(foreign, BEN, 1.0) is None
    assert found.take_zone(ZoneChange(zone_id=new_id(), version=99, held=1, sold=1)) is False
    assert (set(found.statuses), set(found.versions), found.map_version) == ({AVAILABLE}, {1}, 14)


def test_an_event_without_seats_has_a_map() -> None:
    """Of zones sold by number alone."""
    found = made([])
    assert (len(found), found.encoded(), found.ordinal_of(UUID(int=0))) == (0, "", None)
    assert found.take_zone(ZoneChange(zone_id=found.zones[2].zone_id, version=4, held=5, sold=7))
    assert found.counts() == Counts(available=38, held=5, sold=7, blocked=0)


def test_confirmations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old ones make room; when all are new, all go, and PostgreSQL is asked."""
    monkeypatch.setattr(hotmap, "CONFIRMED_KEPT_MAX", 3)
    found = made([AVAILABLE] * 8)
    for ordinal in range(3):
        found.take_seat(held_by(found, ordinal, ANNA), 1.0)
    found.take_seat(held_by(found, 3, ANNA), 2.5)
    assert [found.in_the_way(found.seat_id(n), BEN, 2.5) is not None for n in range(4)] == [False] * 3 + [True]
    for ordinal in range(4, 8):
        found.take_seat(held_by(found, ordinal, ANNA), 2.6)
        assert found.in_the_way(found.seat_id(ordinal), BEN, 2.6) is not None
    assert 0 < sum(found.in_the_way(found.seat_id(n), BEN, 2.6) is not None for n in range(8)) <= 3


@pytest.mark.req("REG-07")
def test_a_held_seat_takes_less_than_500_bytes() -> None:
    """As the map itself reckons: by how much it grows for each hold. A free one takes a few bytes."""
    found = made([AVAILABLE] * 1_000)
    free = found.size_bytes
    for ordinal in range(500):
        found.take_seat(held_by(found, ordinal, ANNA), 1.0)
    assert (found.size_bytes - free) / 500 <= 500
    assert free / 1_000 < 50


@pytest.mark.req("PUB-01")
def test_news_is_called_as_the_domain_calls_it() -> None:
    """By the status a seat has now."""
    assert [status.value for status in STATUSES] == ["available", "held", "sold", "blocked"]
    assert list(NEWS) == [News.RELEASED, News.HELD, News.SOLD, News.BLOCKED]
    assert [News.HELD.value, News.RELEASED.value] == ["seat_held", "seat_released"]
    assert SeatChange(seat_id=ANNA, version=2, status=HELD).news == "seat_held"
