"""What a process knows of places: loaded once, never behind what it was told, refused by it for a second at most."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec import structs

from tests.make import passing
from tests.make.accounts import make_organization
from tests.make.events import call_of
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.seating import hold_seat, move, sell_seat
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.events.model import Verb
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import availability as module, booking, store
from voelgoed.holds.availability import Availability
from voelgoed.holds.hotmap import AVAILABLE, HELD, SOLD, HotMap, SeatChange, ZoneChange, milliseconds
from voelgoed.holds.model import Ask, Item, Outcome, SeatStatus, Verdict
from voelgoed.holds.occupancy import occupancy_now
from voelgoed.holds.projection import Projection, seat_key
from voelgoed.holds.refusals import SeatHeld, SeatNotAvailable
from voelgoed.ids import new_id
from voelgoed.journal.model import Origin
from voelgoed.redis import RedisLink
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

LOOK_S = 10.0
STARTED_S = 1_000.0


class Process:
    """What one process has, with a clock and a liveness that the test sets."""

    def __init__(self, db: Database, link: RedisLink, *, bytes_max: int = 2**28) -> None:
        self.now = STARTED_S
        self.projection = Projection(link)
        self.hot = Availability(
            db, self.projection, bytes_max=bytes_max, clock=lambda: self.now, expired_by=self.database_now
        )
        self.hot.is_live = lambda: True

    def database_now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.now - STARTED_S)

    async def warm(self, sale: Sale) -> int:
        """Have Redis know the event as it is now, and be believed."""
        found = await self.hot.load(sale.place.id, sale.event.id)
        async with sale.db.transaction(sale.place.id) as conn:
            holds = await store.list_active_holds(conn, sale.place.id, sale.event.id, 1_000)
        async with sale.db.system_transaction() as conn:
            epoch = await store.next_projection_epoch(conn)
        await self.projection.rebuild(found, epoch, holds)
        self.projection.believe(epoch)
        return epoch


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


class Loads:
    """Loads that the test counts and lets go on: PostgreSQL has answered, and nobody knows yet."""

    def __init__(self) -> None:
        self.count = 0
        self.has_read = asyncio.Event()
        self.may_go = asyncio.Event()
        self.may_go.set()

    async def load_map(self, *values: Any) -> Any:
        self.count += 1
        found = await store_load_map(*values)
        self.has_read.set()
        await self.may_go.wait()
        return found


store_load_map = store.load_map


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    made = Loads()
    monkeypatch.setattr(store, "load_map", made.load_map)
    return made


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(LOOK_S):
        while not is_so():
            await asyncio.sleep(0.005)


def lookups() -> dict[tuple[str, str], float]:
    counter = metrics.HOLD_CACHE_LOOKUPS
    return {
        (tier, hit): counter.labels(tier, hit)._value.get()
        for tier, hit in itertools.product(("ets", "redis", "db"), ("true", "false"))
    }


def asked(sale: Sale, code: str, user_id: UUID | None = None, **over: Any) -> Ask:
    ask = Ask(
        organization_id=sale.place.id,
        event_id=sale.event.id,
        user_id=user_id or new_id(),
        role=Role.CUSTOMER,
        is_staff=False,
        items=(Item(new_id(), seat_id=sale.seat(code)),),
        cart_token="cart",
        source="web",
        request_id=new_id(),
        origin=Origin(),
        ip=None,
    )
    return structs.replace(ask, **over)


def held(sale: Sale, code: str, version: int, user_id: UUID | None = None, **over: Any) -> SeatChange:
    until_ms = int(datetime.now(UTC).timestamp() * 1_000) + 600_000
    about = {"hold_id": new_id(), "user_id": user_id or new_id(), "until_ms": until_ms, **over}
    return SeatChange(seat_id=sale.seat(code), version=version, status=HELD, **about)


def same(one: HotMap, other: HotMap) -> bool:
    """Whether two maps say the same of every place."""

    def all_of(found: HotMap) -> tuple[object, ...]:
        zones = [(zone.zone_id, zone.version, zone.counts) for zone in found.zones]
        return found.epoch, found.map_version, bytes(found.statuses), found.versions, found.holders, zones

    return all_of(one) == all_of(other)


# Loading


@pytest.mark.req("REG-39", "OCC-08")
async def test_a_hundred_who_ask_at_once_cost_one_query(process: Process, sale: Sale, loads: Loads) -> None:
    """And those who come later none, while the map is kept up to date."""
    found = await asyncio.gather(*(process.hot.map_of(sale.place.id, sale.event.id) for _ in range(100)))
    assert (loads.count, len({id(one) for one in found})) == (1, 1)
    assert await process.hot.map_of(sale.place.id, sale.event.id) is found[0]
    assert loads.count == 1
    process.hot.is_live = lambda: False
    assert await process.hot.map_of(sale.place.id, sale.event.id) is not found[0]
    assert loads.count == 2


async def test_one_who_goes_away_does_not_take_the_load_along(process: Process, sale: Sale, loads: Loads) -> None:
    """The others get their answer."""
    loads.may_go.clear()
    gone, stays = (asyncio.create_task(process.hot.map_of(sale.place.id, sale.event.id)) for _ in range(2))
    await loads.has_read.wait()
    gone.cancel()
    loads.may_go.set()
    assert (await stays).event_id == sale.event.id
    assert loads.count == 1


async def test_what_changes_during_a_load_is_not_lost(process: Process, sale: Sale, loads: Loads) -> None:
    """PostgreSQL has answered, then something is committed and told: the map that comes has both."""
    loads.may_go.clear()
    loading = asyncio.create_task(process.hot.map_of(sale.place.id, sale.event.id))
    await loads.has_read.wait()
    change = held(sale, "S-A-1", 2)
    assert process.hot.take(sale.event.id, [change], []) == []
    process.hot.take(sale.event.id, [], [ZoneChange(zone_id=sale.zone("P"), version=2, held=4, sold=0)])
    loads.may_go.set()
    found = await loading
    ordinal = found.ordinal_of(sale.seat("S-A-1"))
    assert ordinal is not None
    assert (found.statuses[ordinal], found.versions[ordinal], found.counts().held) == (HELD, 2, 5)


async def test_places_made_anew_during_a_load_are_loaded_again(process: Process, sale: Sale, loads: Loads) -> None:
    """What was read before is worth nothing, nor is what was told of it."""
    loads.may_go.clear()
    loading = asyncio.create_task(process.hot.map_of(sale.place.id, sale.event.id))
    await loads.has_read.wait()
    process.hot.take(sale.event.id, [held(sale, "S-A-1", 9)], [])
    process.hot.reload(sale.event.id)
    loads.may_go.set()
    found = await loading
    assert loads.count == 2
    assert set(found.statuses) == {AVAILABLE}
    assert process.hot.peek(sale.event.id) is found


async def test_too_much_told_during_a_load_makes_it_load_again(
    process: Process, sale: Sale, loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept without an end."""
    monkeypatch.setattr(module, "PENDING_MAX", 3)
    loads.may_go.clear()
    loading = asyncio.create_task(process.hot.map_of(sale.place.id, sale.event.id))
    await loads.has_read.wait()
    process.hot.take(sale.event.id, [held(sale, "S-A-1", version) for version in range(2, 7)], [])
    loads.may_go.set()
    found = await loading
    assert (loads.count, set(found.statuses)) == (2, {AVAILABLE})


@pytest.mark.req("TEN-04", "TEN-08")
@pytest.mark.parametrize("is_live", [True, False])
async def test_another_organizations_event_is_not_there(
    process: Process, db: Database, sale: Sale, loads: Loads, *, is_live: bool
) -> None:
    """Whoever of them asks, and even while the event's own people ask: those find it, and their map stays."""
    other = await make_organization(db)
    found = await process.hot.map_of(sale.place.id, sale.event.id)
    process.hot.is_live = lambda: is_live
    with pytest.raises(EventNotFound):
        await process.hot.map_of(other.id, sale.event.id)
    with pytest.raises(EventNotFound):
        await process.hot.occupancy(other.id, sale.event.id)
    assert await process.hot.look_up(other.id, sale.event.id, sale.seat("S-A-1")) is None
    assert await process.hot.describe(other.id, sale.event.id, sale.seat("S-A-1")) is None
    assert process.hot.peek(sale.event.id) is found
    foreign = asked(sale, "S-A-1", organization_id=other.id)
    process.hot.take(sale.event.id, [held(sale, "S-A-1", 2)], [])
    assert process.hot.refusal(foreign) is None
    process.hot.reload(sale.event.id)
    await until(lambda: process.hot.peek(sale.event.id))

    process.hot.is_live = lambda: False
    asks = [process.hot.map_of(who, sale.event.id) for who in (other.id, sale.place.id, other.id, sale.place.id)]
    answers = await asyncio.gather(*asks, return_exceptions=True)
    assert [type(one) for one in answers] == [EventNotFound, HotMap, EventNotFound, HotMap]


async def test_an_event_that_is_no_longer_on_sale_has_no_map(process: Process, services: Services, sale: Sale) -> None:
    """It is taken out of sale: loaded again it is not there."""
    await process.hot.map_of(sale.place.id, sale.event.id)
    await move(services.studio, sale.place, sale.event, Verb.UNPUBLISH)
    process.hot.reload(sale.event.id)
    assert process.hot.peek(sale.event.id) is None
    with pytest.raises(EventNotFound):
        await process.hot.map_of(sale.place.id, sale.event.id)
    with pytest.raises(EventNotFound):
        await process.hot.occupancy(sale.place.id, sale.event.id)


@pytest.mark.req("REG-05")
async def test_maps_that_nobody_asks_for_make_room(
    db: Database, link: RedisLink, services: Services, place: Organization
) -> None:
    """The one unused longest goes first, but not one that somebody looks at."""
    sales = [await on_sale(services, place) for _ in range(4)]
    size = Process(db, link)
    one = (await size.hot.load(place.id, sales[0].event.id)).size_bytes
    process = Process(db, link, bytes_max=int(2.5 * one))

    def kept() -> list[int]:
        return [number for number, sale in enumerate(sales) if process.hot.peek(sale.event.id)]

    for number in (0, 1):
        await process.hot.map_of(place.id, sales[number].event.id)
    await process.hot.map_of(place.id, sales[0].event.id)
    await process.hot.map_of(place.id, sales[2].event.id)
    assert kept() == [0, 2]
    unpin = process.hot.pin(sales[0].event.id)
    again = process.hot.pin(sales[0].event.id)
    unpin()
    await process.hot.map_of(place.id, sales[3].event.id)
    assert kept() == [0, 3]
    again()
    await process.hot.map_of(place.id, sales[3].event.id)
    await process.hot.map_of(place.id, sales[2].event.id)
    assert kept() == [2, 3]


async def test_a_map_that_is_too_large_is_answered_all_the_same(db: Database, link: RedisLink, sale: Sale) -> None:
    """Whoever asks has it; a budget does not refuse anybody."""
    process = Process(db, link, bytes_max=1)
    assert len(await process.hot.map_of(sale.place.id, sale.event.id)) == len(sale.seated.hall.codes)


async def test_whoever_watches_is_told_once_of_each_change(process: Process, sale: Sale) -> None:
    """Which seats and zones, of which map; of a new map with neither; nothing for what was known."""
    told: list[tuple[int, list[int], int]] = []

    def hear(found: HotMap, seats: Sequence[int], zones: Sequence[UUID]) -> None:
        told.append((found.map_version, list(seats), len(zones)))

    process.hot.watch(hear)
    found = await process.hot.map_of(sale.place.id, sale.event.id)
    first = found.map_version
    change = held(sale, "S-A-2", 2)
    zone = ZoneChange(zone_id=sale.zone("P"), version=2, held=1, sold=0)
    ordinal = sale.seated.ordinal("S-A-2")
    assert process.hot.take(sale.event.id, [change], [zone]) == [ordinal]
    assert process.hot.take(sale.event.id, [change], [zone]) == []
    process.hot.unwatch(hear)
    process.hot.take(sale.event.id, [held(sale, "S-A-3", 2)], [])
    assert told == [(first, [], 0), (first + 4, [ordinal], 1)]


# Looking up


@pytest.mark.req("REG-01", "REG-08", "REG-24", "TEL-12")
async def test_a_seat_is_looked_up_hot_then_warm_then_cold(process: Process, sale: Sale) -> None:
    """Each tier answers when those above it cannot; each look-up is counted by who answered and who did not."""
    anna = sale.caller()
    (mine,) = await sale.hold(anna, "S-A-1")
    key = (sale.place.id, sale.event.id, sale.seat("S-A-1"))
    await process.warm(sale)
    for is_live, has_redis, expected in (
        (True, True, {("ets", "true"): 1}),
        (False, True, {("ets", "false"): 1, ("redis", "true"): 1}),
        (False, False, {("ets", "false"): 1, ("redis", "false"): 1, ("db", "true"): 1}),
    ):
        process.hot.is_live = lambda is_live=is_live: is_live  # type: ignore[misc]
        if not has_redis:
            process.projection._told_at = float("-inf")
        before = lookups()
        found = await process.hot.look_up(*key)
        assert found is not None
        assert (found.status, found.version, found.hold_id, found.user_id) == (
            SeatStatus.HELD,
            2,
            mine.hold.id,
            anna.actor.user_id,
        )
        assert found.expires_in_s is not None
        assert 590 <= found.expires_in_s <= 600
        after = lookups()
        assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == expected


@pytest.mark.req("REG-24", "TEST-04")
async def test_what_postgresql_says_is_put_back_into_both_tiers(
    process: Process, sale: Sale, link: RedisLink, owner_conn: Connection
) -> None:
    """A hold that neither knew stands in both afterwards; where there was no map, one is loaded."""
    await process.warm(sale)
    hold_id = await hold_seat(owner_conn, sale.event, sale.seated.ordinal("S-A-1"))
    key = (sale.place.id, sale.event.id, sale.seat("S-A-1"))
    process.hot.is_live = lambda: False
    found = await process.hot.look_up(*key)
    assert found is not None
    assert (found.status, found.hold_id) == (SeatStatus.HELD, hold_id)
    await process.projection.settle()
    warm = await process.projection.read_hold(*key)
    assert warm is not None
    assert (warm.hold_id, warm.version) == (hold_id, 2)
    hot = process.hot.peek(sale.event.id)
    assert hot is not None
    assert hot.holders[sale.seated.ordinal("S-A-1")].hold_id == hold_id

    other = Process(sale.db, link)
    await other.hot.look_up(*key)
    await until(lambda: other.hot.peek(sale.event.id))
    third = Process(sale.db, link)
    await third.hot.occupancy(sale.place.id, sale.event.id)
    await until(lambda: third.hot.peek(sale.event.id))


@pytest.mark.req("REG-25", "HOLD-17")
async def test_without_a_hold_the_seats_own_state_counts(process: Process, sale: Sale, owner_conn: Connection) -> None:
    """A sold seat without a hold is sold, not free; what only Redis says does not outlive a look at PostgreSQL."""
    await sell_seat(owner_conn, sale.event, sale.seated.ordinal("S-A-2"))
    process.hot.is_live = lambda: False
    for code, expected in (("S-A-2", SeatStatus.SOLD), ("S-A-3", SeatStatus.AVAILABLE)):
        found = await process.hot.look_up(sale.place.id, sale.event.id, sale.seat(code))
        assert found is not None
        assert (found.status, found.hold_id, found.expires_in_s) == (expected, None, None)
    assert await process.hot.look_up(sale.place.id, sale.event.id, new_id()) is None


@pytest.mark.req("REG-09")
@pytest.mark.parametrize("tier", ["hot", "warm", "cold"])
async def test_a_lapsed_hold_is_reported_as_available(
    process: Process, sale: Sale, link: RedisLink, owner_conn: Connection, tier: str
) -> None:
    """By each tier, before anybody has tidied it away; and nothing of it is written back."""
    (mine,) = await sale.hold(sale.caller(), "S-A-1")
    if tier != "cold":
        await process.warm(sale)
    await let_pass(owner_conn, mine.hold.id)
    process.now += 30 * 60
    process.hot.is_live = lambda: tier == "hot"
    if tier == "warm":  # it would have gone from Redis by itself
        key = (sale.place.id, sale.event.id, sale.seat("S-A-1"))
        value: Any = await link.client.get(seat_key(*key))
        ended_ms = milliseconds(datetime.now(UTC)) - 1
        await link.client.set(seat_key(*key), value.rsplit(b":", 1)[0] + b":%d" % ended_ms)
    found = await process.hot.look_up(sale.place.id, sale.event.id, sale.seat("S-A-1"))
    assert found is not None
    assert (found.status, found.expires_in_s) == (SeatStatus.AVAILABLE, None)
    await process.projection.settle()


@pytest.mark.req("OCC-02", "OCC-05", "OCC-08", "OCC-09")
async def test_how_full_it_is_comes_from_the_map_or_redis_or_is_counted(
    process: Process, sale: Sale, owner_conn: Connection
) -> None:
    """All three say the same: seats and places by number together. The first two ask PostgreSQL nothing."""
    await sale.hold(sale.caller(), "S-A-1", "S-A-2")
    await sale.hold_places(sale.caller(), 5)
    await sell_seat(owner_conn, sale.event, sale.seated.ordinal("S-A-3"))
    process.hot.is_live = lambda: False
    process.projection.believe(0)
    before = lookups()
    counted = await process.hot.occupancy(sale.place.id, sale.event.id)
    assert (counted.held, counted.sold, counted.total) == (7, 1, counted.available + 8 + counted.blocked)
    await process.projection.settle()
    assert lookups()["db", "true"] - before["db", "true"] == 1
    assert await process.hot.occupancy(sale.place.id, sale.event.id) == counted
    assert lookups()["db", "true"] - before["db", "true"] == 1
    await process.hot.load(sale.place.id, sale.event.id)
    process.hot.is_live = lambda: True
    hot = await process.hot.occupancy(sale.place.id, sale.event.id)
    assert msgspec.structs.replace(hot, timestamp=counted.timestamp) == counted
    assert lookups()["db", "true"] - before["db", "true"] == 1


# Refusing, learning, doubting


@pytest.mark.req("RSV-13", "RSV-38")
async def test_who_comes_too_late_is_refused_without_asking_for_a_second(process: Process, sale: Sale) -> None:
    """By what PostgreSQL said to the one before; then it is asked again. Groups and keys always ask."""
    await process.hot.load(sale.place.id, sale.event.id)
    anna = new_id()
    end = datetime.now(UTC) + timedelta(minutes=10)
    first = asked(sale, "S-A-1", anna)
    created = Verdict(outcome=Outcome.CREATED, hold_id=new_id(), until=end, version=2)
    assert process.hot.refusal(first) is None
    process.hot.learn([first], [[created]])
    said = process.hot.refusal(asked(sale, "S-A-1"))
    assert said is not None
    assert said.until is not None
    assert (said.outcome, said.state, said.holder, said.hold_id) == (Outcome.SEAT_HELD, "held", None, None)
    assert abs(said.until - end) < timedelta(milliseconds=2)
    assert process.hot.refusal(asked(sale, "S-A-1", anna)) is None, "their own"
    assert process.hot.refusal(asked(sale, "S-A-1", key="k")) is None
    two = (Item(new_id(), seat_id=sale.seat("S-A-1")), Item(new_id(), seat_id=sale.seat("S-A-2")))
    assert process.hot.refusal(asked(sale, "S-A-1", items=two)) is None
    zone = (Item(new_id(), zone_id=sale.zone("P"), quantity=1),)
    assert process.hot.refusal(asked(sale, "S-A-1", items=zone)) is None
    process.now += 1.0
    assert process.hot.refusal(asked(sale, "S-A-1")) is None


@pytest.mark.req("RSV-26", "REG-23", "TEST-04")
async def test_the_process_that_gives_a_hold_knows_it_at_once(services: Services, sale: Sale) -> None:
    """Before anybody has told it: the map has holder and end, and the next buyer is refused from memory."""
    hot = services.availability
    await hot.load(sale.place.id, sale.event.id)
    anna = sale.caller()
    (mine,) = await sale.hold(anna, "S-A-1")
    found = hot.peek(sale.event.id)
    assert found is not None
    holder = found.holders[sale.seated.ordinal("S-A-1")]
    assert (holder.hold_id, holder.user_id) == (mine.hold.id, anna.actor.user_id)
    assert holder.until_ms == milliseconds(mine.hold.expires_at)
    before = lookups()
    with pytest.raises(SeatHeld) as refused:
        await sale.hold(sale.caller(), "S-A-1")
    assert refused.value.facts["expires_in"] in range(590, 601)
    assert lookups()["ets", "true"] - before["ets", "true"] == 1
    assert same(found, await hot.load(sale.place.id, sale.event.id))


@pytest.mark.req("RSV-15", "RSV-16", "RSV-17")
@pytest.mark.parametrize("status", [HELD, SOLD])
async def test_a_ghost_refuses_nobody_for_longer_than_a_second(services: Services, sale: Sale, status: int) -> None:
    """Hot and Redis say taken, PostgreSQL knows nothing of it: within a second the seat is sold to whoever asks."""
    hot = services.availability
    await hot.load(sale.place.id, sale.event.id)
    ghost = held(sale, "S-A-1", 99)
    hot.take(sale.event.id, [ghost if status == HELD else SeatChange(ghost.seat_id, 99, SOLD)], [])
    with pytest.raises(SeatHeld if status == HELD else SeatNotAvailable):
        await sale.hold(sale.caller(), "S-A-1")
    passing.let(1.0)
    await sale.hold(sale.caller(), "S-A-1")
    assert (await sale.row("S-A-1"))["status"] == "held"


async def test_a_refusal_teaches_who_is_in_the_way(process: Process, sale: Sale) -> None:
    """A verdict of PostgreSQL about another's hold is shown as held, and the fact that comes later completes it."""
    await process.hot.load(sale.place.id, sale.event.id)
    anna, hold_id, end = new_id(), new_id(), datetime.now(UTC) + timedelta(minutes=10)
    said = Verdict(outcome=Outcome.SEAT_HELD, until=end, version=2, state="held", holder=anna)
    process.hot.learn([asked(sale, "S-A-1")], [[said]])
    key = (sale.place.id, sale.event.id, sale.seat("S-A-1"))
    found = await process.hot.look_up(*key)
    assert found is not None
    assert (found.status, found.user_id) == (SeatStatus.HELD, anna)
    assert process.hot.refusal(asked(sale, "S-A-1")) is not None
    process.hot.take(sale.event.id, [held(sale, "S-A-1", 2, anna, hold_id=hold_id)], [])
    found = await process.hot.look_up(*key)
    assert found is not None
    assert (found.status, found.hold_id, found.user_id) == (SeatStatus.HELD, hold_id, anna)


@pytest.mark.parametrize("state", ["sold", "blocked"])
async def test_a_refusal_teaches_what_became_of_a_seat(process: Process, sale: Sale, state: str) -> None:
    """Sold or blocked, with the version that says so."""
    await process.hot.load(sale.place.id, sale.event.id)
    process.hot.learn([asked(sale, "S-A-1")], [[Verdict(outcome=Outcome.SEAT_NOT_AVAILABLE, version=3, state=state)]])
    found = await process.hot.look_up(sale.place.id, sale.event.id, sale.seat("S-A-1"))
    assert found is not None
    assert (found.status, found.version) == (SeatStatus(state), 3)
    barred = process.hot.refusal(asked(sale, "S-A-1"))
    assert barred is not None
    assert (barred.outcome, barred.state) == (Outcome.SEAT_NOT_AVAILABLE, state)


async def test_what_is_not_about_a_seat_teaches_nothing(process: Process, sale: Sale) -> None:
    """Limits, groups, places by number: the map stays as it is."""
    found = await process.hot.load(sale.place.id, sale.event.id)
    before = found.map_version
    for said in (
        Verdict(outcome=Outcome.RATE_LIMITED, until=datetime.now(UTC), version=7),
        Verdict(outcome=Outcome.GROUP_REFUSED, version=7),
        Verdict(outcome=Outcome.SEAT_NOT_FOUND),
        Verdict(outcome=Outcome.SEAT_NOT_AVAILABLE, version=7, state="strange"),
    ):
        process.hot.learn([asked(sale, "S-A-1")], [[said]])
    zone = asked(sale, "S-A-1", items=(Item(new_id(), zone_id=sale.zone("P"), quantity=1),))
    process.hot.learn(
        [zone], [[Verdict(outcome=Outcome.CREATED, hold_id=new_id(), until=datetime.now(UTC), version=7)]]
    )
    assert found.map_version == before


async def test_a_sale_without_a_map_has_one_loaded(process: Process, sale: Sale) -> None:
    """Nobody waits for it."""
    end = datetime.now(UTC) + timedelta(minutes=10)
    said = Verdict(outcome=Outcome.CREATED, hold_id=new_id(), until=end, version=2)
    process.hot.learn([asked(sale, "S-A-1")], [[said]])
    assert process.hot.peek(sale.event.id) is None
    await until(lambda: process.hot.peek(sale.event.id))


@pytest.mark.req("REG-28", "RSV-18")
async def test_whoever_lets_a_seat_go_here_makes_room_for_the_next(services: Services, sale: Sale) -> None:
    """The hold was confirmed a moment ago and its end has not been told yet: the next buyer has the seat at once."""
    hot = services.availability
    await hot.load(sale.place.id, sale.event.id)
    anna, ben = sale.caller(), sale.caller()
    (mine,) = await sale.hold(anna, "S-A-1")
    with pytest.raises(SeatHeld):
        await sale.hold(ben, "S-A-1")
    await booking.release(services.lanes, sale.db, anna, mine.hold.id)
    assert await sale.hold(ben, "S-A-1")
    assert same(hot.peek(sale.event.id), await hot.load(sale.place.id, sale.event.id))  # type: ignore[arg-type]


async def test_blocking_and_opening_a_seat_is_felt_at_once(services: Services, sale: Sale) -> None:
    """By those who ask at the process that did it."""
    hot = services.availability
    await hot.load(sale.place.id, sale.event.id)
    await sale.block("S-A-1")
    with pytest.raises(SeatNotAvailable):
        await sale.hold(sale.caller(), "S-A-1")
    await sale.block("S-A-1", is_blocked=False)
    assert await sale.hold(sale.caller(), "S-A-1")


@pytest.mark.req("REG-40")
async def test_one_ask_fills_the_caches_and_answers_as_one(services: Services, sale: Sale) -> None:
    """What the lane says, what the map has, what stands in the table and in the journal is one and the same."""
    await services.availability.load(sale.place.id, sale.event.id)
    buyer = call_of(sale.place, Role.CUSTOMER)
    (mine,) = await sale.hold(buyer, "S-A-4")
    row = await sale.row("S-A-4")
    hot = services.availability.peek(sale.event.id)
    assert hot is not None
    ordinal = sale.seated.ordinal("S-A-4")
    assert (row["hold_id"], row["held_by"], row["version"]) == (
        mine.hold.id,
        buyer.actor.user_id,
        hot.versions[ordinal],
    )
    assert occupancy_now(hot).held == 1
    async with sale.db.transaction(sale.place.id) as conn:
        told = await conn.fetch(
            "select kind, version from journal where event_id = $1 and seat_id = $2", sale.event.id, sale.seat("S-A-4")
        )
    assert [(one["kind"], one["version"]) for one in told] == [("seat_reserved", row["version"])]
