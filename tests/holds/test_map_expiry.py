"""A hold that has ended is available in the map, at its end and without a fact; a newer fact always wins."""

from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from tests.holds.test_hotmap import ANNA, BEN, GA_CAPACITY, NOW_MS, held_by, made
from voelgoed.holds.hotmap import AVAILABLE, BLOCKED, HELD, SOLD, HotMap, SeatChange, ZoneChange, unpack
from voelgoed.holds.model import Counts
from voelgoed.ids import new_id

END_MS = NOW_MS + 500
LATER_MS = END_MS + 300_000


def held_map() -> HotMap:
    """A map of four seats, of which Anna holds the second until `END_MS`."""
    found = made([AVAILABLE] * 4)
    found.take_seat(held_by(found, 1, ANNA, until_ms=END_MS), 0.0)
    return found


def shown(found: HotMap) -> tuple[int, int, int]:
    """The second seat's status, and how many seats are available and held, as everybody sees them."""
    counts = Counts.total(zone.counts for zone in found.zones if not zone.is_by_number)
    status = unpack(found.encoded(), len(found))[1]
    assert (status, found.state_of(1)[0]) == (found.statuses[1],) * 2
    return status, counts.available, counts.held


def become(found: HotMap, status: int, version: int) -> SeatChange:
    return SeatChange(seat_id=found.seat_id(1), version=version, status=status)


# Seats


def test_a_seat_is_held_until_its_end_and_available_from_then_on() -> None:
    """A millisecond before its end nothing changes; at its end the map, its bytes, its counts and its version do."""
    found = held_map()
    before, version, known = found.encoded(), found.map_version, found.print()
    assert found.expire(END_MS - 1) == ([], [])
    assert (shown(found), found.encoded() is before, found.map_version) == ((HELD, 3, 1), True, version)
    assert found.expire(END_MS) == ([1], [])
    assert (shown(found), found.map_version) == ((AVAILABLE, 4, 0), version + 1)
    assert found.print() != known
    assert found.expire(END_MS + 1) == ([], [])


def test_what_is_recorded_stays_known() -> None:
    """Redis has what is recorded, and is compared with it: a hold that has ended is held there until it is recorded."""
    found = held_map()
    found.expire(END_MS)
    assert (found.recorded(), found.has_expired) == (bytes([AVAILABLE, HELD, AVAILABLE, AVAILABLE]), True)
    found.take_seat(become(found, AVAILABLE, 3), 1.0)
    assert (found.recorded(), found.has_expired) == (bytes(4), False)


def test_a_hold_that_was_extended_in_time_does_not_flicker() -> None:
    """At its first end nothing happens; at its second it is over."""
    found = held_map()
    found.take_seat(held_by(found, 1, ANNA, 3, LATER_MS), 0.2)
    for moment_ms in (END_MS, LATER_MS - 1):
        assert found.expire(moment_ms) == ([], [])
        assert shown(found) == (HELD, 3, 1)
    assert found.expire(LATER_MS) == ([1], [])
    assert shown(found) == (AVAILABLE, 4, 0)


def test_an_extension_that_arrives_late_makes_the_seat_held_again() -> None:
    """It has a newer version than what expired, so it counts, and so does the map's: viewers take it."""
    found = held_map()
    found.expire(END_MS)
    version = found.map_version
    assert found.take_seat(held_by(found, 1, ANNA, 3, LATER_MS), 0.6) == 1
    assert (shown(found), found.map_version > version) == ((HELD, 3, 1), True)
    assert found.expire(LATER_MS - 1) == ([], [])
    assert found.expire(LATER_MS) == ([1], [])


def test_a_fact_that_is_known_does_not_bring_an_expired_hold_back() -> None:
    """The same fact comes again, or an older one: both are old news."""
    found = held_map()
    found.expire(END_MS)
    version = found.map_version
    for known in (2, 1):
        assert found.take_seat(held_by(found, 1, ANNA, known, END_MS), 0.6) is None
    assert (shown(found), found.map_version) == ((AVAILABLE, 4, 0), version)


@pytest.mark.parametrize("status", [AVAILABLE, SOLD, BLOCKED])
@pytest.mark.parametrize("is_expired", [False, True])
def test_what_became_of_the_seat_counts_and_its_old_end_does_not(status: int, *, is_expired: bool) -> None:
    """Released, sold or blocked before its end or after it: the old end changes nothing, and the version rises."""
    found = held_map()
    if is_expired:
        found.expire(END_MS)
    version = found.map_version
    found.take_seat(become(found, status, 3), 0.7)
    assert (found.statuses[1], found.map_version > version) == (status, True)
    assert found.expire(LATER_MS) == ([], [])
    assert found.statuses[1] == status
    assert found.counts().held == 0


def test_a_recorded_expiry_changes_nothing_that_is_shown() -> None:
    """The expiry worker comes at last: the seat is available before and after, and the version goes on rising."""
    found = held_map()
    found.expire(END_MS)
    before, version = shown(found), found.map_version
    assert found.take_seat(become(found, AVAILABLE, 3), 3.0) == 1
    assert (shown(found), found.map_version > version) == (before, True)


def test_a_seat_that_was_taken_over_is_held_by_the_new_hold() -> None:
    """The takeover records the expiry and the new hold, two versions; the old end is nobody's any more."""
    found = held_map()
    found.expire(END_MS)
    for change in (become(found, AVAILABLE, 3), held_by(found, 1, BEN, 4, LATER_MS)):
        found.take_seat(change, 0.6)
    assert found.expire(LATER_MS - 1) == ([], [])
    status, holder = found.state_of(1)
    assert (status, holder and holder.user_id) == (HELD, BEN)


def test_a_fact_of_a_hold_that_has_ended_already_is_over_at_once() -> None:
    found = made([AVAILABLE] * 4)
    found.take_seat(held_by(found, 1, ANNA, until_ms=END_MS), 9.0)
    assert found.expire(LATER_MS) == ([1], [])
    assert shown(found) == (AVAILABLE, 4, 0)


def test_an_expired_hold_refuses_no_one() -> None:
    """It was confirmed a moment ago; a millisecond before its end it refuses, at its end PostgreSQL is asked."""
    found = held_map()
    found.expire(END_MS - 1)
    assert found.in_the_way(found.seat_id(1), BEN, 0.4) == (HELD, END_MS)
    found.expire(END_MS)
    assert found.in_the_way(found.seat_id(1), BEN, 0.4) is None


def test_a_hundred_thousand_seats_are_not_looked_at_for_one_end() -> None:
    """The map of a stadium is encoded once for all readers, and again only when a hold has ended."""
    found = made([HELD] * 100_000)
    found.take_seat(held_by(found, 1, ANNA, until_ms=END_MS), 0.0)
    encoded = found.encoded()
    for moment_ms in range(NOW_MS, END_MS):
        assert found.expire(moment_ms) == ([], [])
        assert found.encoded() is encoded
    assert found.expire(END_MS) == ([1], [])
    assert found.encoded() is not encoded
    assert len(found.holders) == 99_999


@given(
    facts=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(range(4)), st.integers(1, 40)), max_size=14),
    data=st.data(),
)
def test_whatever_order_facts_and_ends_come_in_the_map_is_the_same(
    facts: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """As if all facts had come in order, and then all ends that have passed; and the version never falls meanwhile."""
    found, plain = made([AVAILABLE] * 4), made([AVAILABLE] * 4)
    versions = [1, 1, 1, 1]
    changes = []
    for ordinal, status, end in facts:
        versions[ordinal] += 1
        is_held = status == HELD
        changes.append(
            held_by(found, ordinal, ANNA, versions[ordinal], NOW_MS + end)
            if is_held
            else SeatChange(seat_id=found.seat_id(ordinal), version=versions[ordinal], status=status)
        )
    moment_ms, version = NOW_MS, found.map_version
    for change in data.draw(st.permutations(changes)):
        found.take_seat(change, 0.0)
        moment_ms += data.draw(st.integers(0, 5))
        found.expire(moment_ms)
        assert found.map_version >= version
        version = found.map_version
    for change in changes:
        plain.take_seat(change, 0.0)
    plain.expire(moment_ms)
    assert (found.statuses, found.versions, found.holders, found.expired, found.map_version) == (
        plain.statuses,
        plain.versions,
        plain.holders,
        plain.expired,
        plain.map_version,
    )
    assert [zone.counts for zone in found.zones] == [zone.counts for zone in plain.zones]


# Zones without numbered seats


class Pit:
    """A zone without numbered seats, and what is recorded of it."""

    def __init__(self) -> None:
        self.map = made([])
        self.zone = self.map.zones[2]
        self.version, self.held, self.sold = 1, 0, 0

    def fact(
        self, hold_id: UUID, quantity: int, *, held: int = 0, sold: int = 0, until_ms: int | None = None
    ) -> ZoneChange:
        """Record a change of the counters."""
        self.version += 1
        self.held += held
        self.sold += sold
        return ZoneChange(
            zone_id=self.zone.zone_id,
            version=self.version,
            held=self.held,
            sold=self.sold,
            hold_id=hold_id,
            until_ms=until_ms,
            quantity=quantity,
        )

    def hold(self, quantity: int, until_ms: int = END_MS) -> UUID:
        hold_id = new_id()
        assert self.map.take_zone(self.fact(hold_id, quantity, held=quantity, until_ms=until_ms))
        return hold_id

    @property
    def counts(self) -> tuple[int, int, int]:
        counts = self.map.counts()
        assert counts.capacity == GA_CAPACITY
        return counts.available, counts.held, counts.sold


@pytest.fixture
def pit() -> Pit:
    return Pit()


def test_a_quantity_is_held_until_its_end_and_available_from_then_on(pit: Pit) -> None:
    pit.hold(4)
    pit.hold(3, LATER_MS)
    version = pit.map.map_version
    assert pit.map.expire(END_MS - 1) == ([], [])
    assert pit.counts == (43, 7, 0)
    assert pit.map.expire(END_MS) == ([], [pit.zone.zone_id])
    assert (pit.counts, pit.map.map_version) == ((47, 3, 0), version + 1)
    assert (pit.zone.held, pit.map.has_expired) == (7, True)


def test_a_quantity_that_was_extended_in_time_does_not_flicker(pit: Pit) -> None:
    hold_id = pit.hold(4)
    pit.map.take_zone(pit.fact(hold_id, 4, until_ms=LATER_MS))
    assert pit.map.expire(LATER_MS - 1) == ([], [])
    assert pit.counts == (46, 4, 0)
    pit.map.expire(LATER_MS)
    assert pit.counts == (50, 0, 0)


def test_an_extension_of_a_quantity_that_arrives_late_brings_it_back(pit: Pit) -> None:
    hold_id = pit.hold(4)
    pit.map.expire(END_MS)
    version = pit.map.map_version
    assert pit.map.take_zone(pit.fact(hold_id, 4, until_ms=LATER_MS))
    assert (pit.counts, pit.map.map_version > version) == ((46, 4, 0), True)


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize(("sold", "counts"), [(0, (50, 0, 0)), (4, (46, 0, 4))])
def test_a_quantity_that_was_sold_or_released_is_over(
    pit: Pit, sold: int, counts: tuple[int, int, int], *, is_expired: bool
) -> None:
    """Before its end or after it, and the worker's own record as well: the old end changes nothing."""
    hold_id = pit.hold(4)
    if is_expired:
        pit.map.expire(END_MS)
    version = pit.map.map_version
    pit.map.take_zone(pit.fact(hold_id, 4, held=-4, sold=sold))
    assert (pit.counts, pit.map.map_version > version) == (counts, True)
    pit.map.expire(LATER_MS)
    assert (pit.counts, pit.map.has_expired) == (counts, False)


@pytest.mark.parametrize("is_sold", [False, True])
def test_between_facts_of_one_call_no_count_is_wrong(pit: Pit, *, is_sold: bool) -> None:
    """Each fact has the counters after all of them: expired holds are tidied, or a whole basket is sold."""
    lasting = pit.hold(5, LATER_MS)
    holds = [pit.hold(3) for _ in range(10)]
    if not is_sold:
        pit.map.expire(END_MS)
    expected = (15, 5, 30) if is_sold else (45, 5, 0)
    version = pit.version
    pit.fact(lasting, 0, held=-30, sold=30 if is_sold else 0)
    for number, hold_id in enumerate(holds, 1):
        change = ZoneChange(pit.zone.zone_id, version + number, pit.held, pit.sold, hold_id, None, 3)
        pit.map.take_zone(change)
        assert pit.counts == expected


def test_a_quantity_whose_end_was_told_first_is_not_counted_twice(pit: Pit) -> None:
    """A message was lost: the newer fact of another hold comes before the release, and the reserve after both."""
    first = pit.hold(4)
    released = pit.fact(first, 4, held=-4)
    second = new_id()
    held = pit.fact(second, 6, held=6, until_ms=LATER_MS)
    over = pit.fact(second, 6, held=-6)
    for change in (over, released, held):
        pit.map.take_zone(change)
    pit.map.expire(LATER_MS)
    assert pit.counts == (50, 0, 0)
    assert (pit.zone.live, pit.zone.expired, pit.map.zone_holds) == (0, 0, {})
