"""What stands above PostgreSQL lies, dies, hangs and comes back old: nobody gets a wrong seat, nobody is sent away."""

import asyncio
import contextlib
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import msgspec
import pytest
import structlog
from redis.crc import key_slot
from structlog.testing import capture_logs

from tests.conftest import SECRET_KEY, TEMPLATE
from tests.make import passing
from tests.make.accounts import make_organization, make_person
from tests.make.holds import Sale, end_now, on_sale
from tests.make.processes import free_port
from tests.make.races import connect_owner, database_alone
from tests.make.seating import seat_rows
from tests.make.web import serving
from tests.sim import trouble
from tests.sim.shop import Shop, read_metrics, shop
from tests.sim.trouble import Server, Trouble
from voelgoed import schema
from voelgoed.accounts.model import Role
from voelgoed.breaker import State
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import Busy
from voelgoed.events.model import OPERATOR
from voelgoed.holds import auditing, booking, reconcile, store
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import Dispatcher, Follower, SeatTold, Told
from voelgoed.holds.hotmap import HELD, HotMap, SeatChange
from voelgoed.holds.lane import CONNECTIONS, RETRY_WAITS_S, SETTINGS
from voelgoed.holds.refusals import SeatGone, SeatHeld, SeatNotAvailable
from voelgoed.ids import new_id
from voelgoed.jobs import queue
from voelgoed.redis import RedisAway, RedisLink
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services, build_services

pytestmark = pytest.mark.timeout(180)

HURTS = ("killed", "frozen", "slow", "sluggish", "old", "flushed", "haunted", "garbled", "mistyped")
WITHIN_S = 30
NOBODY = "redis://127.0.0.1:1"


# Whole processes, over HTTP


@pytest.fixture(scope="module")
async def stall(servers: Embedded, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Two web processes and a worker."""
    async with shop(servers, settings, tmp_path_factory.mktemp("tiers"), f"tiers_{settings.port}") as opened:
        yield opened


@pytest.mark.req("REG-38", "FALL-14", "FALL-15", "TEST-24")
@pytest.mark.parametrize("hurt", HURTS)
async def test_a_sale_goes_on_whatever_becomes_of_redis(stall: Shop, hurt: str) -> None:
    """No answer fails, nothing is given twice, and in the end every process and Redis show what PostgreSQL has."""
    before = await read_metrics(stall.address)
    troubles = Trouble(stall.redis, stall.wire, stall.chance, stall)
    async with stall.buying():
        await stall.sold_more(20)
        await getattr(troubles, hurt)()
        await stall.sold_more(20)
    assert stall.told.errors == []
    took_s = await stall.agree()
    await stall.audit()
    after = await read_metrics(stall.address)
    rebuilds = "voelgoedevents_seating_projection_rebuilds_total"
    made = sum(after[name] - before.get(name, 0) for name in after if name.startswith(rebuilds))
    print(f"\n{hurt}: {dict(stall.told.statuses)}; all agreed {took_s:.2f} s later; {made:.0f} maps made anew")


@pytest.mark.req("REAP-08")
async def test_a_lapsed_hold_is_off_every_map_within_a_minute(
    stall: Shop, servers: Embedded, settings: Settings
) -> None:
    """The worker tidies it away by itself, and every process shows it."""
    async with stall.buying():
        await stall.sold_more(20)
    held = {hold_id for hold_id in stall.told.held if hold_id not in stall.told.open}
    async with connect_owner(servers, f"tiers_{settings.port}") as owner:
        await end_now(owner, *held)

        async def tidied() -> bool:
            rows = await owner.fetch("select status::text from seat_holds where id = any ($1)", list(held))
            return {row["status"] for row in rows} == {"expired"}

        async with owner.transaction():
            await owner.execute("select set_config('app.scope', 'system', false)")
        await until(tidied, within_s=60)
    stall.told.held.clear()
    await stall.agree()
    await stall.audit()


# One process after the other, each step when the test says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """A web process: what it has, and how it hears of others."""

    services: Services
    follower: Follower

    @property
    def map(self) -> HotMap:
        """What it has in memory."""
        found = self.services.availability.peek(self.event_id)
        assert found is not None
        return found

    event_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Two web processes and a worker that do nothing by themselves, with a Redis and a database of their own."""

    redis: Server
    link: RedisLink
    db: Database
    owner: Connection
    dispatcher: Dispatcher
    worker: Services
    first: Web
    second: Web
    sale: Sale

    @property
    def seats(self) -> list[UUID]:
        """Those that anybody may have; the last zone with seats is for members."""
        return [self.sale.seat(code) for code in self.sale.seated.hall.codes if code.startswith("S")]

    async def settle(self) -> None:
        """Until the worker has told everything, the other processes have heard it, and Redis has it."""

        async def is_settled() -> bool:
            await self.dispatcher.tick()
            for web in (self.first, self.second):
                await web.follower.tick()
            report = await self.look()
            return report.consistent and all([await self.agrees(web) for web in (self.first, self.second)])

        await until(is_settled)

    async def look(self) -> reconcile.Report:
        """How Redis compares with PostgreSQL."""
        worker, event = self.worker, self.sale.event
        return await reconcile.look(self.db, worker.availability, worker.projection, event.organization_id, event.id)

    async def agrees(self, web: Web) -> bool:
        """Whether the map of a process is what PostgreSQL has."""
        event = self.sale.event
        truth = await trouble.find_map(self.db, event.organization_id, event.id)
        found = await web.services.availability.map_of(event.organization_id, event.id)
        return (found.statuses, found.versions, found.counts()) == (truth.statuses, truth.versions, truth.counts())


async def until(holds: Callable[[], Awaitable[bool]], *, within_s: float = WITHIN_S) -> None:
    """Wait until something holds: readers of the journal wait for every transaction of the server."""
    async with asyncio.timeout(within_s):
        while not await holds():
            await asyncio.sleep(0.02)


@pytest.fixture
async def crew(servers: Embedded, settings: Settings, tmp_path: Path) -> AsyncIterator[Crew]:
    name = f"crew_{settings.port}"
    async with contextlib.AsyncExitStack() as held:
        redis = await held.enter_async_context(trouble.server(tmp_path))
        alone = await held.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        owner = await held.enter_async_context(connect_owner(servers, name))

        async def process() -> Services:
            db = await Database.open(servers.postgres_url(schema.APP, name), size=4)
            held.push_async_callback(db.close)
            lanes = await Database.open(servers.postgres_url(schema.APP, name), size=CONNECTIONS, settings=SETTINGS)
            held.push_async_callback(lanes.close)
            link = await held.enter_async_context(
                RedisLink(redis.url, connect_timeout_s=1, call_timeout_s=1, probe_every_s=0.05)
            )
            services = build_services(alone, db, link, SECRET_KEY, lanes, clock=passing.clock)
            held.push_async_callback(services.availability.close)
            held.push_async_callback(services.lanes.close)
            held.callback(services.door.passwords.close)
            return services

        async def web(event_id: UUID) -> Web:
            services = await process()
            follower = Follower(services.db, services.redis, services.availability, services.projection)
            return Web(services=services, follower=follower, event_id=event_id)

        worker = await process()
        place = await make_organization(worker.db)
        sale = await on_sale(worker, place)
        first, second = await web(sale.event.id), await web(sale.event.id)
        made = Crew(
            redis=redis,
            link=worker.redis,
            db=worker.db,
            owner=owner,
            dispatcher=Dispatcher(worker.db, worker.availability, worker.projection),
            worker=worker,
            first=first,
            second=second,
            sale=replace(sale, services=first.services),
        )
        await made.settle()
        yield made


def at(crew: Crew, web: Web) -> Sale:
    """The same sale, at another process."""
    return replace(crew.sale, services=web.services)


async def refused(work: Awaitable[object]) -> bool:
    """Whether somebody is told that a seat is not to be had."""
    try:
        await work
    except (SeatHeld, SeatNotAvailable):
        return True
    return False


@pytest.mark.req("REG-38")
async def test_every_ghost_is_sold_within_a_second(crew: Crew) -> None:
    """Holds that nobody has stand in Redis and in both processes, confirmed this very moment: they bar for a second."""
    async with crew.redis.client() as client:
        assert await trouble.plant_ghosts(client, crew.first.map) == len(crew.first.map)
    for web in (crew.first, crew.second):
        for ordinal in range(len(web.map)):
            ghost = SeatChange(
                seat_id=web.map.seat_id(ordinal),
                version=web.map.versions[ordinal] + 700,
                status=HELD,
                hold_id=new_id(),
                user_id=new_id(),
                until_ms=trouble.FAR_MS,
            )
            assert web.map.take_seat(ghost, passing.clock()) == ordinal
    codes = [code for code in crew.sale.seated.hall.codes if code.startswith("S")]
    sales = [at(crew, crew.first), at(crew, crew.second)]
    assert await refused(sales[0].hold(crew.sale.caller(Role.STAFF), codes[0]))  # otherwise this test shows nothing
    passing.let(1)
    for number, code in enumerate(codes):
        somebody = crew.sale.caller(Role.STAFF)
        (held,) = await sales[number % 2].hold(somebody, code)
        assert await refused(sales[1 - number % 2].hold(crew.sale.caller(Role.STAFF), code))
        assert (await sales[0].buy(somebody, held))[0] == "sold"
    assert {(await crew.sale.row(code))["status"] for code in codes} == {"sold"}
    assert await auditing.verify(crew.db) == []
    event = crew.sale.event
    projection = crew.worker.projection
    await reconcile.reconcile(
        crew.db, crew.worker.availability, projection, event.organization_id, event.id, by=OPERATOR
    )
    await crew.settle()


async def flush(crew: Crew, client: Any) -> None:
    await client.flushall()


async def garble(crew: Crew, client: Any) -> None:
    await trouble.plant_garbage(client, crew.first.map)


async def mistype(crew: Crew, client: Any) -> None:
    await trouble.plant_wrong_types(client, crew.first.map)


async def turn_back(crew: Crew, client: Any) -> None:
    """Bring Redis up with what it had before all was sold, and before the map was made anew."""
    await crew.redis.keep()
    event, worker = crew.sale.event, crew.worker
    for code in ("S-A-4", "S-B-3"):
        await crew.sale.hold(crew.sale.caller(Role.STAFF), code)
    await reconcile.reconcile(
        crew.db, worker.availability, worker.projection, event.organization_id, event.id, by=OPERATOR
    )
    await crew.settle()
    crew.redis.kill()
    await crew.redis.start()


@pytest.mark.req("TEST-31", "REG-32", "FALL-03")
@pytest.mark.parametrize("harm", [flush, garble, mistype, turn_back])
async def test_whatever_stands_in_redis_nobody_gets_a_wrong_seat(
    crew: Crew, harm: Callable[[Crew, Any], Awaitable[None]]
) -> None:
    """What is taken stays taken, what is free is sold, look-ups tell the truth, and Redis becomes what it should be."""
    anna = crew.sale.caller(Role.STAFF)
    held, sold = await crew.sale.hold(anna, "S-A-1", "S-A-2")
    await crew.sale.buy(anna, sold)
    pit = await crew.sale.hold_places(anna, 3)
    await crew.settle()
    async with crew.redis.client() as client:
        await harm(crew, client)
    assert (await crew.look()).consistent is False
    rows = {row["seat_id"]: row["status"] for row in await seat_rows(crew.db, crew.sale.event)}
    blind = Availability(crew.db, crew.second.services.projection)  # a process that has no map yet
    if harm is not turn_back:
        crew.second.services.projection.believe(0)
    for seat_id, status in rows.items():
        found = await blind.look_up(crew.sale.place.id, crew.sale.event.id, seat_id)
        assert found is not None
        assert found.status == status
    assert (await blind.occupancy(crew.sale.place.id, crew.sale.event.id)).held == list(rows.values()).count("held") + 3
    for sale in (at(crew, crew.first), at(crew, crew.second)):
        for code in ("S-A-1", "S-A-2"):
            assert await refused(sale.hold(crew.sale.caller(Role.STAFF), code))
    await at(crew, crew.second).hold(crew.sale.caller(Role.STAFF), "S-A-3")
    await crew.settle()
    assert (await crew.sale.row("S-A-1"))["hold_id"] == held.hold.id
    assert pit.hold.quantity == 3
    assert await auditing.verify(crew.db) == []


@pytest.mark.req("REG-35")
async def test_held_but_not_in_redis_is_named_and_mended(crew: Crew) -> None:
    """Somebody empties Redis and nothing is sold since: the comparison says what is missing, reconciling brings it."""
    (held,) = await crew.sale.hold(crew.sale.caller(Role.STAFF), "S-A-1")
    await crew.settle()
    async with crew.redis.client() as client:
        await client.flushall()
    report = await crew.look()
    assert (report.status, report.missing, report.redis_count, report.db_count) == ("stale", [held.hold.id], 0, 1)
    event, worker = crew.sale.event, crew.worker
    await reconcile.reconcile(
        crew.db, worker.availability, worker.projection, event.organization_id, event.id, by=OPERATOR
    )
    await crew.settle()
    assert (await crew.look()).redis_count == 1


@pytest.mark.req("REG-31")
async def test_what_nobody_changes_is_compared_every_five_minutes(crew: Crew) -> None:
    """Ghosts in Redis that no sale ever touches: the job finds them, and the map is made anew."""
    (when,) = [when for job, when in queue.known_jobs() if job.name == "reconcile_places"]
    assert when == "*/5 * * * *"
    async with crew.redis.client() as client:
        await trouble.plant_ghosts(client, crew.first.map)
    await crew.dispatcher.tick()
    report = await crew.look()
    assert (report.consistent, len(report.extra), report.seats_differ_count) == (False, len(crew.first.map), 13)
    await queue.reconcile_places(crew.worker, b"")
    await crew.settle()


async def test_all_keys_of_an_event_are_kept_together_in_a_cluster(crew: Crew) -> None:
    """Scripts and renames touch several keys at once: a cluster allows that only in one slot."""
    await crew.sale.hold(crew.sale.caller(Role.STAFF), "S-A-1", "S-A-2")
    await crew.sale.hold_places(crew.sale.caller(Role.STAFF), 1)
    await crew.settle()
    async with crew.redis.client() as client:
        keys = [one async for one in client.scan_iter(f"*{crew.sale.event.id}*:*")]
    assert len(keys) >= 6
    assert len({key_slot(one) for one in keys}) == 1


# News that is late, and processes that are


def told(crew: Crew, *changes: SeatChange, **more: Any) -> bytes:
    """A message of the worker."""
    database = crew.second.follower._database
    assert database is not None
    seats = [SeatTold(event=change.news, change=change) for change in changes]
    return msgspec.json.encode(
        Told(database=database, organization_id=crew.sale.place.id, event_id=crew.sale.event.id, seats=seats, **more)
    )


def news_of(found: HotMap, seat_id: UUID, *, newer: int = 1, age_s: float | None = None) -> SeatChange:
    """Somebody holds a seat, as is told so long after it was written down."""
    ordinal = found.ordinal_of(seat_id)
    assert ordinal is not None
    return SeatChange(
        seat_id=seat_id,
        version=found.versions[ordinal] + newer,
        status=HELD,
        hold_id=new_id(),
        user_id=new_id(),
        until_ms=trouble.FAR_MS,
        at_ms=None if age_s is None else int(found.database_ms(passing.clock()) - age_s * 1_000),
    )


async def test_nobody_is_refused_on_news_that_comes_late(crew: Crew) -> None:
    """A message that was held up for seconds says what was, not what is: PostgreSQL is asked."""
    second = crew.second
    fresh, late = crew.sale.seat("S-A-1"), crew.sale.seat("S-A-2")
    second.follower.hear(told(crew, news_of(second.map, fresh, age_s=0.1), news_of(second.map, late, age_s=1.5)))
    assert second.map.state_of(second.map.ordinal_of(late) or 0)[0] == HELD
    assert await refused(at(crew, second).hold(crew.sale.caller(), "S-A-1"))
    assert not await refused(at(crew, second).hold(crew.sale.caller(), "S-A-2"))


async def test_what_is_learned_while_a_map_is_loaded_is_as_old_as_it_is(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load that takes long does not make what was said meanwhile new."""
    second = crew.second
    availability, load_map = second.services.availability, store.load_map
    change = news_of(second.map, crew.sale.seat("S-A-1"))

    async def load_slowly(*given: Any) -> Any:
        loaded = await load_map(*given)
        availability.take(crew.sale.event.id, [change], ())
        passing.let(1)
        return loaded

    with monkeypatch.context() as patched:
        patched.setattr(store, "load_map", load_slowly)
        found = await availability.load(crew.sale.place.id, crew.sale.event.id)
    assert found.state_of(found.ordinal_of(change.seat_id) or 0)[0] == HELD
    assert not await refused(at(crew, second).hold(crew.sale.caller(), "S-A-1"))


async def test_who_was_refused_once_spares_postgresql_the_others(crew: Crew) -> None:
    """A refusal teaches the process who is in the way before anybody tells it; then the hold has its name as well."""
    second = at(crew, crew.second)
    (held,) = await crew.sale.hold(crew.sale.caller(), "S-A-1")
    assert await refused(second.hold(crew.sale.caller(), "S-A-1"))
    asked = sample("lane_batch_asks_sum")
    for _ in range(10):
        assert await refused(second.hold(crew.sale.caller(), "S-A-1"))
    assert sample("lane_batch_asks_sum") == asked
    await crew.settle()
    ordinal = crew.second.map.ordinal_of(crew.sale.seat("S-A-1"))
    assert ordinal is not None
    assert crew.second.map.holders[ordinal].hold_id == held.hold.id


async def test_news_from_before_the_places_were_made_anew_counts_for_nothing(crew: Crew) -> None:
    """Seats that are made anew count from one: what older facts of the same batch say of them is not taken."""
    old = news_of(crew.second.map, crew.sale.seat("S-A-1"), newer=700)
    crew.second.follower.hear(told(crew, old, is_whole=True))
    await until(lambda: crew.agrees(crew.second))
    crew.second.follower.hear(told(crew, old, until=(1, 1)))  # held up in Redis for longer than the journal was read
    assert await crew.agrees(crew.second)


async def test_a_map_that_was_loaded_before_anybody_followed_is_loaded_again(crew: Crew) -> None:
    """Between a first load and the first look into the journal something may be sold elsewhere."""
    services = crew.second.services
    follower = Follower(services.db, services.redis, services.availability, services.projection)
    before = await services.availability.load(crew.sale.place.id, crew.sale.event.id)
    await crew.sale.hold(crew.sale.caller(), "S-A-1")
    await follower.tick()
    assert services.availability.peek(crew.sale.event.id) is not before  # nor would anything make it new later
    assert await crew.agrees(replace(crew.second, follower=follower))


async def test_a_worker_that_tells_again_has_not_kept_what_it_knew(crew: Crew) -> None:
    """While another one told, this one heard nothing; Redis is away, so nothing there makes it look again either."""
    dispatcher = Dispatcher(crew.db, crew.worker.availability, crew.worker.projection, clock=passing.clock)
    lease = "update leases set holder = $1, held_until = clock_timestamp() + $2 * interval '1 hour'"
    await crew.owner.execute(lease, new_id(), -1)
    await dispatcher.tick()
    await crew.owner.execute(lease, new_id(), 1)
    passing.let(1)
    await dispatcher.tick()
    await crew.sale.hold(crew.sale.caller(), "S-A-1")
    crew.redis.kill()
    await crew.owner.execute(
        "update journal_positions set xid = pg_snapshot_xmin(pg_current_snapshot()), seq = 0"
        " where reader = 'projection'"
    )
    await crew.owner.execute(lease, new_id(), -1)
    passing.let(1)
    await dispatcher.tick()

    async def knows() -> bool:
        found = crew.worker.availability.peek(crew.sale.event.id)
        return found is not None and found.counts().held == 1

    await until(knows)


async def test_a_map_that_could_not_be_made_anew_is_not_forgotten(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL is busy at the wrong moment: the next tick tries again, and the one after it."""
    event, worker = crew.sale.event, crew.worker
    await crew.sale.hold(crew.sale.caller(), "S-A-1")
    await crew.settle()
    async with crew.redis.client() as client:
        await client.delete(trouble.key(event.organization_id, event.id, "map"))
    await reconcile.reconcile(
        crew.db, worker.availability, worker.projection, event.organization_id, event.id, by=OPERATOR
    )
    busy = AsyncMock(side_effect=Busy)
    with monkeypatch.context() as patched:
        patched.setattr(worker.projection, "rebuild", busy)

        async def is_tried_again() -> bool:
            with contextlib.suppress(Busy):
                await crew.dispatcher.tick()
            return busy.await_count >= 3

        await until(is_tried_again)
    await crew.settle()


# Without Redis


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """Everything that is logged, although tests are quiet otherwise."""
    quiet = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    with capture_logs() as entries:
        yield entries
    structlog.configure(wrapper_class=quiet)


def sample(name: str) -> float:
    return metrics.REGISTRY.get_sample_value(f"voelgoedevents_{name}") or 0.0


@pytest.fixture
async def lonely(db: Database, settings: Settings) -> AsyncIterator[Services]:
    """A process that never had a Redis."""
    own = settings.model_copy(update={"port": free_port()})
    async with RedisLink(NOBODY, probe_every_s=3600) as link:
        services = build_services(own, db, link, SECRET_KEY)
        yield services
        await services.lanes.close()
        await services.availability.close()
        services.door.passwords.close()


@pytest.mark.req("TEST-14", "FALL-02", "REG-30")
async def test_seats_are_held_without_redis_from_the_start(lonely: Services) -> None:
    """Given, refused, given back and sold as with it, and not one of these waits for it."""
    place = await make_organization(lonely.db)
    sale = await on_sale(lonely, place)
    waited = lonely.redis.awaited_count + lonely.redis.background_count
    anna, ben = sale.caller(), sale.caller()
    first, second = await sale.hold(anna, "S-A-1", "S-A-2")
    assert await refused(sale.hold(ben, "S-A-1"))
    await booking.release(lonely.lanes, lonely.db, anna, first.hold.id)
    await sale.hold(ben, "S-A-1")
    assert (await sale.buy(anna, second))[0] == "sold"
    assert (await sale.hold_places(ben, 5)).hold.quantity == 5
    assert lonely.redis.awaited_count + lonely.redis.background_count == waited
    assert await auditing.verify(lonely.db, organization_id=place.id) == []


@pytest.mark.req("FALL-11", "TEL-06", "TEL-15", "TEST-21")
async def test_a_look_up_that_falls_back_is_counted_and_logged(lonely: Services, logs: list[Any]) -> None:
    """PostgreSQL answers in its place, and the seat is named."""
    sale = await on_sale(lonely, await make_organization(lonely.db))
    (held,) = await sale.hold(sale.caller(), "S-A-1")
    lonely.projection.believe(0)
    before, failed = sample("seating_hold_redis_fallback_total"), sample("redis_calls_total")
    logs.clear()
    found = await lonely.availability.look_up(sale.place.id, sale.event.id, sale.seat("S-A-1"))
    assert found is not None
    assert (found.status, found.hold_id) == ("held", held.hold.id)
    assert sample("seating_hold_redis_fallback_total") == before + 1
    assert sample("redis_calls_total") == failed + 1
    (entry,) = [entry for entry in logs if entry["event"] == "seat_hold_redis_fallback"]
    assert (entry["seat_id"], entry["fallback"]) == (str(sale.seat("S-A-1")), "postgres")


@pytest.mark.req("FALL-01", "FALL-03", "TEST-38")
async def test_look_ups_stop_asking_after_five_failures(lonely: Services) -> None:
    """Each of them is answered; from the sixth on Redis is not even tried."""
    sale = await on_sale(lonely, await make_organization(lonely.db))
    tried = []
    for _ in range(8):
        lonely.projection.believe(0)
        before = lonely.redis.background_count
        found = await lonely.availability.look_up(sale.place.id, sale.event.id, sale.seat("S-A-1"))
        assert found is not None
        assert found.status == "available"
        tried.append(lonely.redis.background_count - before)
    assert tried == sorted(tried, reverse=True)
    assert 0 < sum(tried) <= 5
    assert lonely.redis.state is State.OPEN


class Clock:
    """Time that moves when told."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.req("FALL-01", "FALL-04", "FALL-05")
async def test_one_tries_again_every_thirty_seconds(tmp_path: Path, logs: list[Any]) -> None:
    """All others go without meanwhile; when it answers all is as before, and every opening and closing is logged."""
    clock = Clock()
    async with trouble.server(tmp_path) as redis, RedisLink(redis.url, call_timeout_s=2, clock=clock) as link:

        async def ask() -> bool:
            try:
                await link.call(lambda client: client.ping())
            except RedisAway:
                return False
            return True

        assert await ask()
        redis.kill()
        assert [await ask() for _ in range(5)] == [False] * 5
        tried = link.awaited_count
        clock.now += 29.9
        assert not await ask()
        assert link.awaited_count == tried
        clock.now += 0.2
        assert not any(await asyncio.gather(*(ask() for _ in range(20))))
        assert link.awaited_count == tried + 1
        await redis.start()
        assert not await ask()  # thirty seconds more
        clock.now += 30
        assert await ask()
        redis.kill()
        assert [await ask() for _ in range(4)] == [False] * 4
        assert link.state is State.CLOSED  # they are counted from nothing again
    said = [entry["event"] for entry in logs if entry["event"] in ("redis_away", "redis_back")]
    assert said == ["redis_away", "redis_away", "redis_back"]  # given up, found away still, found well


@pytest.mark.req("FALL-13")
async def test_everything_is_read_from_postgresql_without_redis(lonely: Services) -> None:
    """How full an event is, its plan, its seats and the event itself."""
    place = await make_organization(lonely.db)
    sale = await on_sale(lonely, place)
    anna = await make_person(lonely.db, place)
    async with serving(lonely) as site:

        async def read(path: str) -> Any:
            answer = await site.client.get(f"/api/events/{sale.event.id}{path}", headers=anna.headers)
            assert answer.status_code == 200, answer.text
            return answer.json()["data"]

        for _ in range(7):  # while it fails, and when nobody asks it any more
            lonely.projection.believe(0)
            assert (await read("/occupancy"))["total"] == len(sale.seated.hall.codes) + 300
            assert (await read(""))["id"] == str(sale.event.id)
            assert await read("/layout")
            assert await read("/seats")
            assert (await read("/seatmap"))["seat_count"] == len(sale.seated.hall.codes)
            assert (await read(f"/seats/{sale.seat('S-A-1')}"))["status"] == "available"
    assert lonely.redis.state is State.OPEN


@pytest.mark.alone
@pytest.mark.req("FALL-09", "FALL-14")
async def test_no_ask_waits_for_a_redis_that_hangs(db: Database, settings: Settings, tmp_path: Path) -> None:
    """The same asks with Redis well and with Redis frozen: none waits for it, and they take no longer for it."""
    own = settings.model_copy(update={"port": free_port()})
    place = await make_organization(db)
    people = [await make_person(db, place, Role.STAFF) for _ in range(2)]
    async with trouble.server(tmp_path) as redis, RedisLink(redis.url, probe_every_s=0.2) as link:
        services = build_services(own, db, link, SECRET_KEY)
        sale = await on_sale(services, place)
        async with serving(services) as site:

            async def rounds() -> list[float]:
                took = []
                for number in range(40):
                    person = people[number % 2]
                    seat = f"/api/events/{sale.event.id}/seats/{sale.seat('S-A-1')}/reserve"
                    began = time.perf_counter()
                    answer = await site.client.post(seat, headers=person.headers)
                    took.append(time.perf_counter() - began)
                    assert answer.status_code == 201, answer.text
                    path = f"/api/holds/{answer.json()['data']['hold_id']}"
                    assert (await site.client.delete(path, headers=person.headers)).status_code == 204
                return took

            await rounds()
            waited = link.awaited_count
            well = await rounds()
            redis.freeze()
            hung = await rounds()
            assert link.awaited_count == waited
        await services.lanes.close()
        await services.availability.close()
        services.door.passwords.close()
    print(f"\nreserve: {1e3 * statistics.median(well):.1f} ms, Redis hung {1e3 * statistics.median(hung):.1f} ms")
    assert statistics.median(hung) < 3 * statistics.median(well)


@pytest.mark.req("FALL-06", "FALL-08", "FALL-10", "TEST-24")
async def test_a_locked_row_is_not_waited_for_long(lonely: Services, owner_conn: Connection) -> None:
    """Somebody sits on a row: asks are put off, and told; what must have the row gives up, and can be repeated."""
    sale = await on_sale(lonely, await make_organization(lonely.db))
    anna = sale.caller()
    (held,) = await sale.hold(anna, "S-A-1")
    async with owner_conn.transaction():
        await owner_conn.execute("select set_config('app.scope', 'system', true)")
        await owner_conn.execute(
            "select from event_seats where event_id = $1 and seat_id = any ($2) for update",
            sale.event.id,
            [sale.seat("S-A-1"), sale.seat("S-A-2")],
        )
        with pytest.raises(SeatGone):
            await sale.hold(sale.caller(), "S-A-2")
        with pytest.raises(Busy):
            await booking.release(lonely.lanes, lonely.db, anna, held.hold.id)
    await sale.hold(sale.caller(), "S-A-2")
    await booking.release(lonely.lanes, lonely.db, anna, held.hold.id)
    assert await auditing.verify(lonely.db, organization_id=sale.place.id) == []
    assert [later / sooner for sooner, later in itertools.pairwise(RETRY_WAITS_S)] == [2, 2]
    assert (SETTINGS["lock_timeout"], SETTINGS["statement_timeout"]) == ("500ms", "2s")
