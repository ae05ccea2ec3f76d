"""A group of seats is held whole or not at all, whichever rule refuses one of them, and a refusal leaves no trace."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from tests.make.boxoffice import FLOOR, BoxOffice
from tests.make.seating import as_registry
from voelgoed.holds.model import Ask, Outcome
from voelgoed.ids import new_id

IP = "192.0.2.7"
SIZES = (2, 3, 9)
REFUSED = Outcome.GROUP_REFUSED


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A group that is refused: its request, and the outcome of each seat."""

    ask: Ask
    outcomes: list[Outcome]


Spoil = Callable[[BoxOffice, int], Awaitable[Spoiled]]


def group(office: BoxOffice, size: int, bad: UUID, outcome: Outcome, **fields: Any) -> Spoiled:
    """A group of which one seat in the middle is refused and the others are free."""
    good = office.seats(size - 1)
    at = size // 2
    ask = office.ask(*good[:at], bad, *good[at:], **fields)
    return Spoiled(ask, [REFUSED] * at + [outcome] + [REFUSED] * (size - 1 - at))


async def over_wheelchair_limit(office: BoxOffice, size: int) -> Spoiled:
    """The buyer has as many wheelchair seats as they may, and one seat of the group is one more."""
    held = await office.hold(*office.seats(1, wheelchair=True))
    (bad,) = office.seats(1, wheelchair=True)
    return group(office, size, bad, Outcome.TOO_MANY_WHEELCHAIRS, user_id=held.user_id)


async def over_wheelchair_limit_by_itself(office: BoxOffice, size: int) -> Spoiled:
    """Two wheelchair seats where one is allowed: each of the two is over the limit, the others are not."""
    wheelchairs, others = office.seats(2, wheelchair=True), office.seats(size - 1)
    outcomes = [Outcome.TOO_MANY_WHEELCHAIRS] * 2 + [REFUSED] * (size - 1)
    return Spoiled(office.ask(*wheelchairs, *others), outcomes)


async def over_booking_limit(office: BoxOffice, size: int) -> Spoiled:
    """There is room for all but one."""
    await office.allow(max_seats_per_booking=size)
    held = await office.hold(*office.seats(1))
    return Spoiled(office.ask(*office.seats(size), user_id=held.user_id), [Outcome.TOO_MANY_SEATS] * size)


async def over_user_limit(office: BoxOffice, size: int) -> Spoiled:
    await office.allow(max_holds_per_user=size)
    held = await office.hold(*office.seats(1))
    return Spoiled(office.ask(*office.seats(size), user_id=held.user_id), [Outcome.TOO_MANY_HOLDS] * size)


async def over_address_limit(office: BoxOffice, size: int) -> Spoiled:
    await office.allow(max_holds_per_ip=size)
    await office.hold(*office.seats(1), ip=IP)
    return Spoiled(office.ask(*office.seats(size), ip=IP), [Outcome.TOO_MANY_HOLDS] * size)


async def over_rate_limit(office: BoxOffice, size: int) -> Spoiled:
    await office.allow(max_seats_per_booking=40)
    held = await office.hold(*office.seats(11 - size))
    return Spoiled(office.ask(*office.seats(size), user_id=held.user_id), [Outcome.RATE_LIMITED] * size)


async def held_by_another(office: BoxOffice, size: int) -> Spoiled:
    (bad,) = office.seats(1)
    await office.hold(bad)
    return group(office, size, bad, Outcome.SEAT_HELD)


async def sold(office: BoxOffice, size: int) -> Spoiled:
    (bad,) = office.seats(1)
    assert await office.convert(await office.hold(bad)) == "sold"
    return group(office, size, bad, Outcome.SEAT_NOT_AVAILABLE)


async def blocked(office: BoxOffice, size: int) -> Spoiled:
    (bad,) = office.seats(1)
    assert await office.block(bad) == ["done"]
    return group(office, size, bad, Outcome.SEAT_NOT_AVAILABLE)


async def not_found(office: BoxOffice, size: int) -> Spoiled:
    return group(office, size, new_id(), Outcome.SEAT_NOT_FOUND)


SPOILS: Sequence[Spoil] = (
    over_wheelchair_limit,
    over_wheelchair_limit_by_itself,
    over_booking_limit,
    over_user_limit,
    over_address_limit,
    over_rate_limit,
    held_by_another,
    sold,
    blocked,
    not_found,
)


async def refuses_whole(office: BoxOffice, spoiled: Spoiled) -> None:
    """Send a spoiled group and look at everything that a hold would have left behind."""
    before = await office.everything()
    (said,) = await office.reserve(spoiled.ask)
    assert [one.outcome for one in said] == spoiled.outcomes, "part of a refused group was granted"
    assert await office.everything() == before, "a refused group left something behind"


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("size", SIZES)
async def test_refused_group_leaves_nothing(office: BoxOffice, spoil: Spoil, size: int) -> None:
    """Seats, zones, holds, tickets, journal and idempotency keys are as they were."""
    await refuses_whole(office, await spoil(office, size))


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
async def test_refused_group_with_a_key_leaves_the_key(office: BoxOffice, spoil: Spoil) -> None:
    """The refusal is remembered under the request's idempotency key. That is all that is left of it."""
    spoiled = await spoil(office, 3)
    ask = structs.replace(spoiled.ask, key="one effect", fingerprint=b"f" * 32)
    *before, keys, journal = await office.everything()
    (said,) = await office.reserve(ask)
    assert [one.outcome for one in said] == spoiled.outcomes
    (again,) = await office.reserve(ask)
    assert [(one.outcome, one.first) for one in again] == [(Outcome.REPEATED, first) for first in spoiled.outcomes]
    *after, keys_after, journal_after = await office.everything()
    assert (after, journal_after) == (before, journal)
    assert len(keys_after) == len(keys) + 1


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
async def test_refused_group_keeps_nobody_else_out(office: BoxOffice, spoil: Spoil) -> None:
    """In one batch, a group before and a group after the refused one are held, and the refused one is not."""
    spoiled = await spoil(office, 3)
    first, last = office.ask(*office.seats(2)), office.ask(*office.seats(2))
    said = await office.reserve(first, spoiled.ask, last)
    assert [[one.outcome for one in ask] for ask in said] == [
        [Outcome.CREATED] * 2,
        spoiled.outcomes,
        [Outcome.CREATED] * 2,
    ]
    kept = {row["id"] for row in await office.holds()}
    assert not kept & {item.hold_id for item in spoiled.ask.items}, "a refused group left a hold"


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
async def test_seats_of_a_refused_group_stay_free(office: BoxOffice, spoil: Spoil) -> None:
    """Another buyer can have, at once, every seat of the group that had nothing against it."""
    spoiled = await spoil(office, 3)
    await refuses_whole(office, spoiled)
    is_limit = REFUSED not in spoiled.outcomes
    free = [
        item.seat_id
        for item, outcome in zip(spoiled.ask.items, spoiled.outcomes, strict=True)
        if item.seat_id and (is_limit or outcome is REFUSED)
    ]
    await office.hold(*free)


async def test_own_seat_in_a_refused_group_stays_held(office: BoxOffice) -> None:
    """A group with a seat that the buyer holds already is refused without touching that hold."""
    held = await office.hold(*office.seats(1))
    (own,) = [item.seat_id for item in held.items if item.seat_id]
    (taken,) = office.seats(1)
    await office.hold(taken)
    ask = office.ask(own, taken, *office.seats(1), user_id=held.user_id)
    await refuses_whole(office, Spoiled(ask, [REFUSED, Outcome.SEAT_HELD, REFUSED]))
    assert await office.states(held) == ["active"]


@pytest.mark.parametrize("room", [0, 1, 2])
async def test_own_seats_in_a_group_count_once(office: BoxOffice, room: int) -> None:
    """Of a group of three, one seat is held already: there has to be room for the two others."""
    await office.allow(max_seats_per_booking=3, max_holds_per_user=3)
    held = await office.hold(*office.seats(3 - room))
    own = held.items[0].seat_id
    assert own is not None
    ask = office.ask(own, *office.seats(2), user_id=held.user_id)
    if room == 2:
        (said,) = await office.reserve(ask)
        assert [one.outcome for one in said] == [Outcome.EXISTING, Outcome.CREATED, Outcome.CREATED]
    else:
        await refuses_whole(office, Spoiled(ask, [Outcome.EXISTING] + [Outcome.TOO_MANY_SEATS] * 2))


async def test_zone_for_members_refuses_the_group(office: BoxOffice) -> None:
    """All seats are in a zone that the buyer may not book: each one says so, and nothing is held."""
    await office.set_zone("S", access_mode="membership_tier", membership_tier="gold")
    await refuses_whole(office, Spoiled(office.ask(*office.seats(3)), [Outcome.ZONE_DENIED] * 3))


async def test_expired_hold_in_a_refused_group_ends(office: BoxOffice) -> None:
    """The one thing a refused group may change: an expired hold of one of its seats is marked expired."""
    expired, taken = await office.hold(*office.seats(1)), office.seats(1)[0]
    await office.advance(minutes=10)
    await office.hold(taken)
    seat = expired.items[0].seat_id
    assert seat is not None
    (said,) = await office.reserve(office.ask(seat, taken))
    assert [one.outcome for one in said] == [REFUSED, Outcome.SEAT_HELD]
    assert await office.states(expired) == ["expired"]
    assert len(await office.holds()) == 2
    await office.hold(seat)


async def test_locked_seat_holds_up_the_group(office: BoxOffice) -> None:
    """While another transaction has one of the seats locked, the whole group waits for the next batch."""
    ask = office.ask(*office.seats(3))
    before = await office.everything()
    async with as_registry(office.owner):
        await office.owner.execute(
            "select from event_seats where event_id = $1 and seat_id = $2 for no key update",
            office.event_id,
            ask.items[1].seat_id,
        )
        (said,) = await office.reserve(ask)
    assert [one.outcome for one in said] == [Outcome.BUSY] * 3
    assert await office.everything() == before
    assert await office.outcome(ask) == Outcome.CREATED


@pytest.mark.parametrize("zone", [FLOOR, "S"])
async def test_places_above_a_limit_leave_nothing(office: BoxOffice, zone: str) -> None:
    """Neither does a request for places: its zone's counter and version stay as they were."""
    before = await office.everything()
    outcome = Outcome.TOO_MANY_SEATS if zone == FLOOR else Outcome.ZONE_NOT_FOUND
    assert await office.outcome(office.ask(places=11, zone=zone)) == outcome
    assert await office.everything() == before
