"""How much one person, one booking, one address may hold: never more, however many ask at once, and wherever."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass
from uuid import UUID

import pytest
from msgspec import structs

from tests.conftest import TEMPLATE
from tests.make.accounts import make_organization, make_person
from tests.make.events import call_of
from tests.make.holds import let_pass
from tests.make.races import (
    Process,
    age_holds,
    buyer,
    connect_owner,
    database_alone,
    event_in,
    hall_layout,
    process,
    seat_ids,
)
from tests.make.seating import Seated, seated_event
from tests.make.web import Site
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.cache import Cache
from voelgoed.config import Settings
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.errors import DomainError
from voelgoed.events.model import OPERATOR
from voelgoed.holds import auditing, booking, store
from voelgoed.holds.booking import Held
from voelgoed.holds.model import Ask, Item
from voelgoed.ids import new_id
from voelgoed.journal import origins
from voelgoed.journal.model import Origin
from voelgoed.redis import RedisLink
from voelgoed.seating import policies
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services

AT_ONCE = 16
WINDOW_S = 300
BROWSING_S = 30


@dataclass(slots=True)
class Box:
    """Two processes, two events in one hall, and the organization whose they are."""

    processes: tuple[Process, Process]
    studio: Studio
    owner: Connection
    place: Organization
    events: tuple[Seated, Seated]

    async def allow(self, **limits: object) -> None:
        """Let the organization's policy say so."""
        async with self.studio.db.transaction(self.place.id) as conn:
            await policies.save(conn, self.place.id, limits, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test")

    def turns(self) -> Iterable[tuple[Process, Seated]]:
        """Each process with each event, round and round."""
        return itertools.cycle(itertools.product(self.processes, self.events))

    def single_seats(self, calls: Iterable[Call], *, first: int = 0) -> list[Awaitable[list[Held]]]:
        """One seat for each call, no two the same, over both processes and both events."""
        return [
            one.hold(call, event, event.hall.seat_id(first + number))
            for number, (call, (one, event)) in enumerate(zip(calls, self.turns(), strict=False))
        ]

    async def count(self, user_id: UUID | None = None) -> int:
        """How many places are held, by everybody or by somebody, as PostgreSQL counts them."""
        async with self.studio.db.transaction(self.place.id) as conn:
            found: int = await conn.fetchval(
                "select coalesce(sum(quantity), 0) from seat_holds"
                " where status = 'active' and expires_at > clock_timestamp() and ($1::uuid is null or user_id = $1)",
                user_id,
            )
        return found


@pytest.fixture(scope="module")
async def rooms(servers: Embedded, settings: Settings) -> AsyncIterator[tuple[Process, Process, Connection]]:
    """A database of their own, and two processes at it."""
    name = f"limits_{settings.port}"
    async with contextlib.AsyncExitStack() as open_ones:
        alone = await open_ones.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        one = await open_ones.enter_async_context(process(alone))
        other = await open_ones.enter_async_context(process(alone))
        owner = await open_ones.enter_async_context(connect_owner(servers, name))
        yield one, other, owner


@pytest.fixture
async def box(rooms: tuple[Process, Process, Connection]) -> AsyncIterator[Box]:
    one, other, owner = rooms
    studio = Studio(one.db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nothing is read from it
    place = await make_organization(one.db)
    hall = await seated_event(
        one.db, studio, place, hall_layout(seats=60, wheelchairs=8, pits=[100]), status="published"
    )
    yield Box((one, other), studio, owner, place, (hall, await event_in(studio, place, hall)))
    assert await auditing.verify(one.db) == []
    assert one.lost + other.lost == []


async def outcomes(asks: Iterable[Awaitable[object]]) -> tuple[list[object], Counter[str]]:
    """Everything at once: what was given, and how often each refusal was said."""
    said = await asyncio.gather(*asks, return_exceptions=True)
    refused = [one for one in said if isinstance(one, BaseException)]
    assert all(isinstance(one, DomainError) for one in refused), refused
    codes = Counter(one.code for one in refused if isinstance(one, DomainError))
    return [one for one in said if not isinstance(one, BaseException)], codes


@pytest.mark.req("SEC-02", "TEST-12")
async def test_ten_seats_in_five_minutes(box: Box) -> None:
    """Over two events and two processes at once exactly ten are given; more when the first are five minutes old."""
    await box.allow(max_seats_per_booking=40)
    who = buyer(box.place)
    given, refused = await outcomes(box.single_seats([who] * (AT_ONCE + 8), first=8))
    assert (len(given), refused) == (10, {"rate_limited": AT_ONCE - 2})
    assert await box.count() == 10

    with pytest.raises(DomainError) as told:
        await box.processes[0].hold(who, box.events[0], box.events[0].hall.seat_id(50))
    assert 0 < int(str(told.value.facts["retry_after_s"])) <= WINDOW_S

    old = [one.hold.id for held in given if isinstance(held, list) for one in held][:3]
    await age_holds(box.owner, old, seconds=WINDOW_S)
    given, refused = await outcomes(box.single_seats([who] * AT_ONCE, first=32))
    assert (len(given), refused) == (3, {"rate_limited": AT_ONCE - 3})


async def test_groups_and_places_count_by_their_size(box: Box) -> None:
    """Groups and places by number, all at once: never more than ten together, each whole or not at all."""
    who = buyer(box.place)
    asks: list[Awaitable[object]] = []
    for number, (one, event) in zip(range(AT_ONCE), box.turns(), strict=False):
        seats = seat_ids(event)[8 + 3 * number : 11 + 3 * number]
        asks.append(
            one.hold(who, event, *seats) if number % 2 else one.hold_places(who, event, event.hall.zone_id("P1"), 2)
        )
    given, refused = await outcomes(asks)
    sizes = [len(one) if isinstance(one, list) else 2 for one in given]
    assert sum(sizes) == await box.count() <= 10
    assert sum(sizes) > 7  # what is smaller than what is left is not refused
    assert set(refused) == {"rate_limited"}


async def test_who_only_looks_is_not_counted(box: Box) -> None:
    """What was let go within half a minute is not counted; what was let go later is. Forty is the end of it."""
    who = buyer(box.place)
    for turn in range(4):
        given, refused = await outcomes(box.single_seats([who] * AT_ONCE, first=8))
        assert (len(given), refused) == (10, {"rate_limited": AT_ONCE - 10}), turn
        holds = [one.hold.id for held in given if isinstance(held, list) for one in held]
        await asyncio.gather(*(booking.release(box.processes[0].lanes, box.studio.db, who, hold) for hold in holds))
    _, refused = await outcomes(box.single_seats([who] * AT_ONCE, first=8))
    assert refused == {"rate_limited": AT_ONCE}

    another = buyer(box.place)
    given, _ = await outcomes(box.single_seats([another] * 10, first=40))
    holds = [one.hold.id for held in given if isinstance(held, list) for one in held]
    await age_holds(box.owner, holds, seconds=BROWSING_S + 1)
    await asyncio.gather(*(booking.release(box.processes[0].lanes, box.studio.db, another, hold) for hold in holds))
    _, refused = await outcomes(box.single_seats([another] * AT_ONCE, first=40))
    assert refused == {"rate_limited": AT_ONCE}


async def test_when_to_come_again(box: Box) -> None:
    """When what counts is old enough: not what was let go at once, unless that is all there is."""
    event, lanes = box.events[0], box.processes[0].lanes
    seats, pit = seat_ids(event)[8:], event.hall.zone_id("P1")

    async def wait_s(ask: Awaitable[object]) -> int:
        with pytest.raises(DomainError) as told:
            await ask
        assert told.value.code == "rate_limited"
        return int(str(told.value.facts["retry_after_s"]))

    who = buyer(box.place)
    (looked_at,) = await box.processes[0].hold(who, event, seats[0])
    await booking.release(lanes, box.studio.db, who, looked_at.hold.id)
    await let_pass(box.owner, looked_at.hold.id, minutes=4)
    await box.processes[0].hold(who, event, *seats[:10])
    assert await wait_s(box.processes[0].hold(who, event, seats[10])) > 200
    assert await wait_s(box.processes[0].hold_places(who, event, pit, 1)) > 200

    another = buyer(box.place)
    for turn in range(4):
        held = await box.processes[0].hold(another, event, *seats[10:20])
        await asyncio.gather(*(booking.release(lanes, box.studio.db, another, one.hold.id) for one in held))
        if not turn:
            await let_pass(box.owner, *(one.hold.id for one in held), minutes=4)
    assert 0 < await wait_s(box.processes[0].hold(another, event, seats[10])) <= 60
    assert 0 < await wait_s(box.processes[0].hold_places(another, event, pit, 1)) <= 60


@pytest.mark.parametrize("seats_max", [3, 10, 40])
async def test_what_can_never_be_had_is_told_so(box: Box, seats_max: int) -> None:
    """More at once than anybody may have: to wait would be in vain, so nobody is told to come again."""
    await box.allow(max_seats_per_booking=seats_max)
    event, most = box.events[0], min(10, seats_max)
    seats, pit = seat_ids(event)[8:], event.hall.zone_id("P1")
    for _ in range(2):
        who = buyer(box.place)
        _, refused = await outcomes(
            [
                box.processes[0].hold(who, event, *seats[: most + 1]),
                box.processes[1].hold_places(who, event, pit, most + 1),
            ]
        )
        assert refused == {"max_seats_exceeded": 2}
    await box.processes[0].hold(buyer(box.place), event, *seats[:most])
    await box.processes[0].hold_places(buyer(box.place), event, pit, most)
    staff = call_of(box.place, Role.STAFF)
    await box.processes[0].hold(staff, event, *seats[20 : 21 + most])
    await box.processes[0].hold_places(staff, event, pit, most + 1)


async def test_staff_are_not_limited(box: Box) -> None:
    """Whoever sells at the counter holds for many; every limit is for buyers."""
    await box.allow(max_seats_per_booking=2, max_holds_per_user=2, max_holds_per_ip=2)
    staff = structs.replace(call_of(box.place, Role.STAFF), ip="192.0.2.7")
    given, refused = await outcomes(box.single_seats([staff] * AT_ONCE))
    assert (len(given), refused) == (AT_ONCE, {})


async def test_seats_of_one_booking(box: Box) -> None:
    """Three for each event and person, whoever asks where; another event is another booking."""
    await box.allow(max_seats_per_booking=3)
    who = buyer(box.place)
    given, refused = await outcomes(box.single_seats([who] * AT_ONCE, first=8))
    assert (len(given), refused) == (6, {"max_seats_exceeded": AT_ONCE - 6})
    assert Counter(held[0].hold.event_id for held in given if isinstance(held, list)) == {
        event.event.id: 3 for event in box.events
    }


async def test_wheelchair_spaces_of_one_booking(box: Box) -> None:
    """Two for each event and person; other seats are not concerned, nor is anybody else."""
    await box.allow(max_wheelchair_seats_per_booking=2)
    who = buyer(box.place)
    event = box.events[0]
    asks = [
        one.hold(who, event, event.hall.seat_id(ordinal))
        for ordinal, one in zip((*range(8), 10, 11, 12), itertools.cycle(box.processes), strict=False)
    ]
    given, refused = await outcomes(asks)
    assert (len(given), refused) == (5, {"max_wheelchair_seats_exceeded": 6})


@pytest.mark.req("SEC-03")
async def test_holds_of_one_person(box: Box) -> None:
    """Four at a time over everything; when one is let go, another may be had."""
    await box.allow(max_holds_per_user=4)
    who = buyer(box.place)
    given, refused = await outcomes(box.single_seats([who] * AT_ONCE, first=8))
    assert (len(given), refused) == (4, {"max_holds_exceeded": AT_ONCE - 4})
    first = given[0]
    assert isinstance(first, list)
    await booking.release(box.processes[0].lanes, box.studio.db, who, first[0].hold.id)
    given, _ = await outcomes(box.single_seats([who] * AT_ONCE, first=32))
    assert len(given) == 1
    assert await box.count(who.actor.user_id) == 4


@pytest.mark.req("SEC-03")
async def test_holds_from_one_address(box: Box) -> None:
    """Five from one address, whoever they are and whatever they ask for; another address is not concerned."""
    await box.allow(max_holds_per_ip=5)
    crowd = [buyer(box.place, ip="192.0.2.7") for _ in range(AT_ONCE)]
    places = [
        one.hold_places(call, event, event.hall.zone_id("P1"), 2)
        for call, (one, event) in zip(crowd[:8], box.turns(), strict=False)
    ]
    given, refused = await outcomes([*box.single_seats(crowd[8:], first=8), *places])
    assert await box.count() == 5
    assert set(refused) == {"max_holds_exceeded"}
    assert len(given) + refused.total() == AT_ONCE
    given, refused = await outcomes(box.single_seats([buyer(box.place, ip="192.0.2.8")], first=40))
    assert (len(given), refused) == (1, {})


@pytest.mark.parametrize("why", ["the address", "the booking"])
async def test_what_is_refused_does_not_count_against_the_next_from_there(box: Box, why: str) -> None:
    """One batch, one address with room for three: who asks for four has none, and who comes next has their three."""
    await box.allow(max_holds_per_ip=3, **({"max_seats_per_booking": 3} if why == "the booking" else {}))
    event, origin = box.events[0], Origin()
    seats = iter(seat_ids(event, 60)[8:])
    asks = [
        Ask(
            organization_id=box.place.id,
            event_id=event.event.id,
            user_id=new_id(),
            role=Role.CUSTOMER,
            is_staff=False,
            items=tuple(Item(new_id(), seat_id=next(seats)) for _ in range(count)),
            cart_token="cart",
            source="web",
            request_id=new_id(),
            origin=origin,
            ip="192.0.2.9",
        )
        for count in (4, 3, 1)
    ]
    await origins.remember(box.studio.db, box.place.id, [origin])
    said = await store.reserve_batch(box.studio.db.call, asks)
    barred = "max_holds_exceeded" if why == "the address" else "max_seats_exceeded"
    assert [[one.outcome for one in ask] for ask in said] == [[barred] * 4, ["created"] * 3, ["max_holds_exceeded"]]
    assert await box.count() == 3


async def test_a_limit_is_for_one_person_only(box: Box) -> None:
    """Sixteen people who ask at once for ten seats each have them all: nobody is counted for another."""
    crowd = [buyer(box.place) for _ in range(4)]
    given, refused = await outcomes(box.single_seats([call for call in crowd for _ in range(10)], first=8))
    assert (len(given), refused) == (40, {})
    assert [await box.count(call.actor.user_id) for call in crowd] == [10] * 4


@pytest.mark.req("SEC-02", "TEST-12")
async def test_told_by_http(site: Site, services: Services) -> None:
    """The eleventh seat: 429, when to come again, and that nothing was done."""
    place = await make_organization(services.db)
    event = await seated_event(services.db, services.studio, place, hall_layout(seats=12), status="published")
    who = await make_person(services.db, place)
    answers = [
        await site.client.post(f"/api/events/{event.event.id}/seats/{seat}/reserve", headers=who.headers)
        for seat in seat_ids(event, 11)
    ]
    assert [answer.status_code for answer in answers] == [201] * 10 + [429]
    last = answers[-1]
    assert 0 < int(last.headers["retry-after"]) <= WINDOW_S
    assert (last.json()["error"], last.json()["effect"]) == ("rate_limited", "none")
