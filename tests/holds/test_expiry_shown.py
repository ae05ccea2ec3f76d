"""Without a worker, a hold that has ended is over in every read of a process: map, seat, occupancy, from every tier."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest

from tests.holds.test_availability import asked, lookups, until
from tests.holds.test_clock_guard import guard, unguarded  # noqa: F401 - a fixture
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.seating import as_registry
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR
from voelgoed.holds import inventory, registry, store
from voelgoed.holds.availability import CLOCK_BACK_MS, Availability
from voelgoed.holds.booking import Held
from voelgoed.holds.clock_guard import NEVER, ClockGuard, Reading
from voelgoed.holds.following import Follower
from voelgoed.holds.hotmap import AVAILABLE, HELD, SOLD, HotMap
from voelgoed.holds.model import Outcome, SeatStatus, Verdict
from voelgoed.holds.projection import Projection
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services

MILLISECOND = timedelta(milliseconds=1)
MINUTE = timedelta(minutes=1)


class Process:
    """What a process knows of places, with PostgreSQL's clock as the test sets it. No worker runs."""

    def __init__(self, db: Database, link: RedisLink) -> None:
        self.now = datetime.now(UTC)
        self.projection = Projection(link)
        self.hot = Availability(db, self.projection, expired_by=lambda: self.now)
        self.follower = Follower(db, link, self.hot, self.projection)
        self.hot.is_live = lambda: True

    async def read_journal(self, is_so: Callable[[], bool]) -> None:
        """Read the journal, as a process does without a worker, until something is so."""
        async with asyncio.timeout(20):
            while not is_so():
                self.follower._has_gap = True
                await self.follower.tick()


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    async with RedisLink(redis_url, connect_timeout_s=5, call_timeout_s=5) as made:
        yield made


@pytest.fixture
async def process(db: Database, link: RedisLink) -> AsyncIterator[Process]:
    made = Process(db, link)
    yield made
    await made.hot.close()
    await made.projection.settle()


class Holds(NamedTuple):
    """A seat and four places in the pit, and when both end."""

    seat: Held
    pit: Held
    end: datetime


@pytest.fixture
async def holds(sale: Sale, owner_conn: Connection) -> Holds:
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    pit = await sale.hold_places(anna, 4)
    end = seat.hold.expires_at.replace(microsecond=0) + timedelta(seconds=1)
    async with as_registry(owner_conn) as conn:
        await conn.execute(
            "update seat_holds set initial_expires_at = $1, expires_at = $1 where event_id = $2", end, sale.event.id
        )
        await conn.execute("update event_seats set held_until = $1 where hold_id = $2", end, seat.hold.id)
    return Holds(seat, pit, end)


def seat_of(found: HotMap, sale: Sale) -> int:
    return found.statuses[sale.seated.ordinal("S-A-1")]


async def read_all(process: Process, sale: Sale) -> tuple[int, SeatStatus, int]:
    """The seat in the map, the seat by itself, and how many are held, as the process shows them now."""
    key = sale.place.id, sale.event.id
    found = await process.hot.map_of(*key)
    seat = await process.hot.look_up(*key, sale.seat("S-A-1"))
    assert seat is not None
    return seat_of(found, sale), seat.status, (await process.hot.occupancy(*key)).held


FREE = (AVAILABLE, SeatStatus.AVAILABLE, 0)
TAKEN = (HELD, SeatStatus.HELD, 5)


async def test_a_map_in_memory_shows_a_hold_as_over_from_its_end_on(process: Process, sale: Sale, holds: Holds) -> None:
    """Without a fact: a millisecond before, at, and after the end."""
    end = holds.end
    await process.hot.load(sale.place.id, sale.event.id)
    for moment, expected in ((end - MILLISECOND, TAKEN), (end, FREE), (end + MINUTE, FREE)):
        process.now = moment
        assert await read_all(process, sale) == expected
    assert (await sale.row("S-A-1"))["status"] == "held", "no one has recorded it"


async def test_a_map_that_is_loaded_shows_a_hold_as_over(process: Process, sale: Sale, holds: Holds) -> None:
    """Load the map and the counts from PostgreSQL each time, as without the journal."""
    end = holds.end
    process.hot.is_live = lambda: False
    key = sale.place.id, sale.event.id
    for moment, status, held in ((end - MILLISECOND, HELD, 5), (end, AVAILABLE, 0)):
        process.now = moment
        found = await process.hot.load(*key)
        assert (seat_of(found, sale), found.counts().held) == (status, held)
        counted = await process.hot.occupancy(*key)
        assert (counted.held, counted.map_version, counted.total) == (held, found.map_version, found.counts().capacity)
        by_zone = {zone.zone_id: zone.held for zone in counted.zones}
        assert by_zone == {zone.zone_id: zone.counts.held for zone in found.zones}


async def test_occupancy_in_redis_counts_no_longer_than_until_the_next_end(
    process: Process, sale: Sale, holds: Holds
) -> None:
    """It is kept for ten seconds, and a hold may end before: then it is counted again."""
    end = holds.end
    process.hot.is_live = lambda: False
    process.projection.believe(0)
    process.now = end - timedelta(seconds=5)
    key = sale.place.id, sale.event.id
    counted = await process.hot.occupancy(*key)
    await process.projection.settle()
    process.now = end - MILLISECOND
    assert await process.hot.occupancy(*key) == counted, "from Redis, with its timestamp"
    process.now = end
    after = await process.hot.occupancy(*key)
    assert (counted.held, after.held, after.map_version > counted.map_version) == (5, 0, True)


async def test_a_hold_in_redis_is_over_at_its_end(process: Process, sale: Sale, holds: Holds) -> None:
    """By PostgreSQL's clock, whatever Redis and this machine think of the time: then PostgreSQL is asked."""
    key = sale.place.id, sale.event.id
    found = await process.hot.load(*key)
    await process.projection.rebuild(found, 1, {})
    process.projection.believe(0)
    process.hot.is_live = lambda: False
    for moment, reads in ((holds.end - MILLISECOND, 0), (holds.end, 1)):
        process.now = moment
        before = lookups()["db", "true"]
        await process.hot.look_up(*key, sale.seat("S-A-1"))
        assert lookups()["db", "true"] - before == reads


async def test_redis_keeps_what_is_recorded(process: Process, sale: Sale, holds: Holds) -> None:
    """A map that shows a hold as over is written to Redis as it is recorded: the comparison finds no difference."""
    process.now = holds.end
    key = sale.place.id, sale.event.id
    found = await process.hot.load(*key)
    assert seat_of(found, sale) == AVAILABLE
    await process.projection.rebuild(found, 1, {})
    dump = await process.projection.dump(*key, 0)
    assert dump.statuses is not None
    assert dump.statuses[sale.seated.ordinal("S-A-1")] == HELD
    assert dump.zones[sale.zone("P")][1] == 4


async def test_watchers_hear_of_an_end_without_a_fact(process: Process, sale: Sale, holds: Holds) -> None:
    """Once, with the seats and zones that changed: streams and the feed live on that."""
    heard: list[tuple[list[int], list[UUID]]] = []

    def hear(_: HotMap, seats: Sequence[int], zones: Sequence[UUID]) -> None:
        heard.append((list(seats), list(zones)))

    await process.hot.load(sale.place.id, sale.event.id)
    process.hot.watch(hear)
    for moment in (holds.end - MILLISECOND, holds.end, holds.end + MINUTE):
        process.now = moment
        process.hot.expire()
    assert heard == [([sale.seated.ordinal("S-A-1")], [sale.zone("P")])]


@pytest.mark.parametrize("step", ["extended", "sold", "released"])
async def test_facts_from_the_journal_count_before_and_after_the_end(
    process: Process, sale: Sale, step: str, db: Database
) -> None:
    """The process reads them itself. What is not the hold's any more does not change at its old end."""
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    await process.follower.tick()
    found = await process.hot.load(sale.place.id, sale.event.id)
    version = found.versions[sale.seated.ordinal("S-A-1")]
    assert anna.actor.user_id is not None
    about = (db, sale.place.id, sale.event.id)
    if step == "extended":
        await registry.extend(*about, anna.actor.user_id, [seat.hold.id], by=OPERATOR)
    elif step == "sold":
        await sale.buy(anna, seat)
    else:
        await registry.release(*about, [seat.hold.id], user_id=None, by=OPERATOR, reason="in a test")
    now = {"extended": HELD, "sold": SOLD, "released": AVAILABLE}[step]

    def newest() -> HotMap:
        known = process.hot.peek(sale.event.id)
        return known if known is not None else found

    await process.read_journal(lambda: newest().versions[sale.seated.ordinal("S-A-1")] > version)
    process.now = seat.hold.expires_at + MINUTE
    assert seat_of(await process.hot.map_of(sale.place.id, sale.event.id), sale) == now


async def test_a_late_extension_and_a_takeover_are_shown_as_held(process: Process, sale: Sale, db: Database) -> None:
    """The process shows the seat as available first, then reads what happened: the newer fact always wins."""
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    await process.follower.tick()
    await process.hot.load(sale.place.id, sale.event.id)
    process.now = seat.hold.expires_at
    assert seat_of(await process.hot.map_of(sale.place.id, sale.event.id), sale) == AVAILABLE
    assert anna.actor.user_id is not None
    await registry.extend(db, sale.place.id, sale.event.id, anna.actor.user_id, [seat.hold.id], by=OPERATOR)

    def is_held() -> bool:
        found = process.hot.peek(sale.event.id)
        return found is not None and seat_of(found, sale) == HELD

    await process.read_journal(is_held)
    process.now = seat.hold.expires_at + timedelta(hours=1)
    assert not is_held()
    process.now = seat.hold.expires_at
    await registry.release(
        db, sale.place.id, sale.event.id, [seat.hold.id], user_id=None, by=OPERATOR, reason="in a test"
    )
    (other,) = await sale.hold(sale.caller(), "S-A-1")
    await process.read_journal(is_held)
    found = process.hot.peek(sale.event.id)
    assert found is not None
    assert found.holders[sale.seated.ordinal("S-A-1")].hold_id == other.hold.id


# The fast refusal


async def test_no_one_is_refused_because_of_an_expired_hold(process: Process, sale: Sale) -> None:
    """PostgreSQL refused the seat a moment ago. A millisecond before the end that refuses others, at the end not."""
    await process.hot.load(sale.place.id, sale.event.id)
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
    refused = Verdict(outcome=Outcome.SEAT_HELD, until=end, version=2, state="held", holder=new_id())
    process.hot.learn([asked(sale, "S-A-1")], [[refused]])
    process.now = end - MILLISECOND
    said = process.hot.refusal(asked(sale, "S-A-1"))
    assert said is not None
    assert said.outcome is Outcome.SEAT_HELD
    process.now = end
    assert process.hot.refusal(asked(sale, "S-A-1")) is None


async def test_a_seat_that_is_shown_as_available_can_be_had(
    services: Services, sale: Sale, owner_conn: Connection
) -> None:
    """The map shows it, the process asks PostgreSQL, and PostgreSQL takes the expired hold over."""
    (first,) = await sale.hold(sale.caller(), "S-A-1")
    await let_pass(owner_conn, first.hold.id)
    found = await services.availability.load(sale.place.id, sale.event.id)
    assert seat_of(found, sale) == AVAILABLE
    (second,) = await sale.hold(sale.caller(), "S-A-1")
    assert second.is_new
    assert seat_of(await services.availability.load(sale.place.id, sale.event.id), sale) == HELD


# PostgreSQL's clock steps


class Guarded(Process):
    """A process whose clock is that of a guard, which looks when the test says so."""

    def __init__(self, db: Database, link: RedisLink) -> None:
        super().__init__(db, link)
        self.clock = ClockGuard(db)
        self.hot = Availability(db, self.projection, expired_by=self.clock.expired_by)
        self.hot.is_live = lambda: True


@pytest.fixture
async def guarded(db: Database, link: RedisLink) -> AsyncIterator[Guarded]:
    made = Guarded(db, link)
    yield made
    await made.hot.close()
    await made.projection.settle()


async def test_a_step_of_the_clock_that_no_one_has_noticed_expires_nothing(
    guarded: Guarded, sale: Sale, holds: Holds, owner_conn: Connection, db: Database
) -> None:
    """PostgreSQL's clock is past the end, but only because it stepped: the process expects it to be before the end."""
    async with db.system_transaction() as conn:
        shown = await store.read_clock(conn)
    await let_pass(owner_conn, holds.seat.hold.id, holds.pit.hold.id)  # as if the clock were half an hour ahead
    looked_at = time.monotonic()
    guarded.clock._seen = Reading(shown - timedelta(minutes=30), looked_at, looked_at)
    await guarded.hot.load(sale.place.id, sale.event.id)
    assert await read_all(guarded, sale) == TAKEN
    guarded.hot.is_live = lambda: False
    assert (await guarded.hot.occupancy(sale.place.id, sale.event.id)).held == 5


@pytest.mark.usefixtures("unguarded")
async def test_nothing_expires_while_the_clock_guard_says_so(
    guarded: Guarded, sale: Sale, holds: Holds, owner_conn: Connection, db: Database
) -> None:
    """Also in a process that started after the step, and read of it in the database. Then everything is as ever."""
    await let_pass(owner_conn, holds.seat.hold.id, holds.pit.hold.id)
    await guard(db, 3_600)
    await guarded.clock.tick()
    assert guarded.clock.expired_by() == NEVER
    found = await guarded.hot.load(sale.place.id, sale.event.id)
    guarded.hot.expire()
    assert (seat_of(found, sale), found.counts().held) == (HELD, 5)
    guarded.hot.is_live = lambda: False
    assert (await guarded.hot.occupancy(sale.place.id, sale.event.id)).held == 5

    await guard(db, -3_600)
    await guarded.clock.tick()
    guarded.hot.expire()
    assert (seat_of(found, sale), found.counts().held) == (AVAILABLE, 0)


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("seconds", [None, -10.0], ids=["never stepped", "stepped back"])
async def test_holds_expire_by_the_clock_while_it_can_be_trusted(
    guarded: Guarded, db: Database, seconds: float | None
) -> None:
    if seconds is not None:
        await guard(db, seconds)
    before = guarded.clock.now()
    await guarded.clock.tick()
    assert before - MINUTE < guarded.clock.expired_by() <= guarded.clock.now()


async def test_when_the_clock_goes_back_live_holds_are_held_again(process: Process, sale: Sale, holds: Holds) -> None:
    """Their maps are loaded again. A clock that is only known a little better now changes nothing."""
    await process.hot.load(sale.place.id, sale.event.id)
    process.now = holds.end
    process.hot.expire()
    first = process.hot.peek(sale.event.id)
    assert first is not None
    assert seat_of(first, sale) == AVAILABLE
    process.now -= timedelta(milliseconds=CLOCK_BACK_MS)
    process.hot.expire()
    assert process.hot.peek(sale.event.id) is first
    process.now -= timedelta(milliseconds=CLOCK_BACK_MS + 1)
    process.hot.expire()
    await until(lambda: process.hot.peek(sale.event.id))
    again = process.hot.peek(sale.event.id)
    assert again is not None
    assert (again is first, seat_of(again, sale)) == (False, HELD)


async def test_how_full_it_is_is_the_same_from_every_tier(process: Process, sale: Sale) -> None:
    """From memory, counted by PostgreSQL, and from Redis, after one of two holds has ended."""
    anna = sale.caller()
    first = await sale.hold_places(anna, 4)
    (seat,) = await sale.hold(anna, "S-A-1")
    process.now = first.hold.expires_at
    assert first.hold.expires_at < seat.hold.expires_at
    key = sale.place.id, sale.event.id
    await process.hot.load(*key)
    hot = await process.hot.occupancy(*key)
    process.hot.is_live = lambda: False
    process.projection.believe(0)
    cold = await process.hot.occupancy(*key)
    await process.projection.settle()
    warm = await process.hot.occupancy(*key)
    assert (hot.held, warm) == (1, cold)
    assert msgspec.structs.replace(hot, timestamp=cold.timestamp) == cold


async def test_the_offer_counts_no_expired_hold(sale: Sale, owner_conn: Connection) -> None:
    """Zones with numbered seats and without: what was held by an expired hold is available."""
    (seat,) = await sale.hold(sale.caller(), "S-A-1")
    places = await sale.hold_places(sale.caller(), 8)
    live = await sale.hold_places(sale.caller(), 2)

    async def held() -> dict[str, tuple[int, int]]:
        async with sale.db.transaction(sale.place.id) as conn:
            zones = await inventory.offered_zones(conn, sale.place.id, sale.event.id)
        return {zone.view.code: (zone.counts.held, zone.counts.capacity) for zone in zones}

    before = await held()
    assert (before["S"][0], before["P"][0]) == (1, 10)
    await let_pass(owner_conn, seat.hold.id, places.hold.id)
    after = await held()
    assert (after["S"][0], after["P"][0]) == (0, 2)
    assert {code: capacity for code, (_, capacity) in after.items()} == {
        c: capacity for c, (_, capacity) in before.items()
    }
    await registry.reap(sale.db, by=OPERATOR)
    assert await held() == after
    assert live.hold.is_active
