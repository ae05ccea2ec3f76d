"""Who comes and what they take: drawn from a seed, never more than is free, and rather good seats."""

import gzip
from itertools import pairwise
from random import Random
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, strategies as st

from voelgoed.demo import people
from voelgoed.demo.people import CAREFUL, TAKEN_MAX, Fate, Hall, Statuses, Stretch
from voelgoed.seating import presets, seat_ids, usecases
from voelgoed.seating.generate import generate
from voelgoed.seating.geometry import decode
from voelgoed.seating.model import AccessMode, Category

SEEDS: Final = st.integers(0, 2**32)
SHARES: Final = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.floats(0, 1), min_size=1)


def document(preset: str) -> bytes:
    return gzip.decompress(usecases.preview(generate(presets.preset(preset))))


def offer_of(geometry: dict[str, Any], *, closed: str | None = None) -> dict[str, Any]:
    """An offer in which every zone is open to all, but for one."""
    return {
        "zones": [
            {
                "zone_id": zone["zone_id"],
                "is_enabled": True,
                "access_mode": AccessMode.MEMBERSHIP_TIER if zone["zone_id"] == closed else AccessMode.PUBLIC,
                "place": "reserved" if zone["count"] else "standing",
            }
            for zone in geometry["zones"]
        ]
    }


def packed(taken: set[int], count: int) -> Statuses:
    """A map on which some are sold."""
    whole = bytearray(-(-count // 4))
    for seat in taken:
        whole[seat >> 2] |= 2 << 2 * (seat & 3)
    return Statuses(bytes(whole))


@given(SEEDS, SHARES)
def test_the_same_seed_is_the_same_crowd(seed: int, taken: dict[str, float]) -> None:
    """Fifty people in a row, twice."""
    first, again = Random(seed), Random(seed)
    assert [people.draw(first, taken) for _ in range(50)] == [people.draw(again, taken) for _ in range(50)]


@given(SEEDS, SHARES)
def test_nobody_goes_where_it_is_full(seed: int, taken: dict[str, float]) -> None:
    """And nobody forgets seats where they would be missed; where all is full nobody comes."""
    rng = Random(seed)
    for _ in range(50):
        visit = people.draw(rng, taken)
        if visit is None:
            assert min(taken.values()) >= TAKEN_MAX
            continue
        assert taken[visit.event_id] < TAKEN_MAX
        assert visit.fate is not Fate.LAPSE or taken[visit.event_id] < CAREFUL
        assert 1 <= visit.party <= 6
        assert 1 <= visit.tries_max <= 3


def test_what_is_drawn_does_not_depend_on_what_is_full() -> None:
    """The second person is the same, whatever the first was told; only where they go differs."""
    empty, full = Random(5), Random(5)
    people.draw(empty, {"a": 0.0})
    people.draw(full, {"a": 1.0})
    assert people.draw(empty, {"a": 0.0}) == people.draw(full, {"a": 0.0})


def test_every_fate_happens_and_events_share_the_crowd() -> None:
    """Out of a thousand: all four ends, and twice as many go where there is twice as much room."""
    rng = Random(1)
    visits = [visit for _ in range(1_000) if (visit := people.draw(rng, {"a": 0.2, "b": 0.4}))]
    assert {visit.fate for visit in visits} == set(Fate)
    share = sum(visit.event_id == "a" for visit in visits) / len(visits)
    assert share == pytest.approx(0.8 / 1.4, abs=0.05)


@given(SEEDS, st.sampled_from([2, 8, 25, 60]))
def test_people_come_as_often_as_asked(seed: int, per_s: int) -> None:
    """On average, and never after a gap without end."""
    rng = Random(seed)
    gaps = [people.next_arrival_s(rng, per_s) for _ in range(2_000)]
    assert sum(gaps) / len(gaps) == pytest.approx(1 / per_s, rel=0.15)
    assert max(gaps) <= 10 / per_s


@given(st.floats(0, 1), st.integers(0, 60_000))
def test_tickets_come_back_a_few_at_a_time_and_only_where_it_is_crowded(taken: float, capacity: int) -> None:
    """Never more than what is above the mark."""
    many = people.give_back(taken, capacity)
    assert 0 <= many <= 60
    if taken <= people.CROWDED:
        assert many == 0
    else:
        assert many <= (taken - people.CROWDED) * capacity + 1


@given(SEEDS, st.sets(st.integers(0, 39)), st.integers(1, 6))
def test_chosen_seats_are_free_and_beside_each_other(seed: int, taken: set[int], party: int) -> None:
    """As many as asked for, all in one stretch; or none at all."""
    stretches = tuple(Stretch(first=first, count=8) for first in range(0, 40, 8))
    hall = Hall(seat_count=40, id_prefix="", serials=((0, 1, 40),), stretches=stretches, areas=())
    seats = people.choose(Random(seed), hall, packed(taken, 40), party)
    if seats:
        assert len(seats) == party
        assert all(after == seat + 1 for seat, after in pairwise(seats))
        assert seats[0] // 8 == seats[-1] // 8
        assert not taken & set(seats)


def test_good_seats_go_first() -> None:
    """Of a hundred parties most sit in the better half; where all is free, in the middle of their stretch."""
    stretches = tuple(Stretch(first=first, count=10) for first in range(0, 200, 10))
    hall = Hall(seat_count=200, id_prefix="", serials=((0, 1, 200),), stretches=stretches, areas=())
    rng, nobody = Random(3), packed(set(), 200)
    chosen = [people.choose(rng, hall, nobody, 2) for _ in range(100)]
    assert sum(seats[0] < 100 for seats in chosen) > 65
    assert {seats[0] % 10 for seats in chosen} == {4}


@pytest.mark.parametrize("preset", ["theatre-350", "festival"])
def test_a_hall_is_read_as_the_server_wrote_it(preset: str) -> None:
    """Ids are the server's own; wheelchair spaces, companions and closed zones are left to others."""
    text = document(preset)
    known, geometry = decode(text), msgspec.json.decode(text)
    closed = next(zone["zone_id"] for zone in geometry["zones"] if zone["count"])
    hall = people.read_hall(offer_of(geometry, closed=closed), geometry)
    seats = [seat for stretch in hall.stretches for seat in range(stretch.first, stretch.first + stretch.count)]
    zone = next(zone for zone in known.zones if str(zone.zone_id) == closed)
    shut = range(zone.first, zone.first + zone.count)
    for_all = {
        seat
        for seat, category in enumerate(known.categories)
        if category not in (Category.WHEELCHAIR, Category.COMPANION) and seat not in shut
    }
    assert sorted(seats) == sorted(for_all)
    ids = seat_ids.seat_ids(known.layout_id, known.serials)
    assert [hall.seat_id(seat) for seat in seats] == [str(ids[seat]) for seat in seats]
    firsts = {stretch.first for stretch in hall.stretches}
    assert not set(known.breaks) & (set(seats) - firsts)
    assert set(hall.areas) == {str(zone.zone_id) for zone in known.zones if not zone.count}


def test_an_event_without_a_layout_is_an_area() -> None:
    """Nobody chooses a seat there."""
    offer = {"zones": [{"zone_id": "z", "is_enabled": True, "access_mode": "public", "place": "standing"}]}
    hall = people.read_hall(offer, None)
    assert (hall.areas, hall.stretches) == (("z",), ())
    assert people.choose(Random(1), hall, Statuses(b""), 2) == ()
