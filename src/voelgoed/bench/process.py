"""What a web process has in its hands for holds, inside the benchmark: lanes, tiers and follower as they are."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg

from voelgoed import schema
from voelgoed.accounts.model import Role
from voelgoed.bench import machine
from voelgoed.bench.ground import BenchRefused, Ground, Sale
from voelgoed.db import Database, Pool
from voelgoed.holds.availability import Availability
from voelgoed.holds.failures import Failures
from voelgoed.holds.following import Follower
from voelgoed.holds.lane import CONNECTIONS, SETTINGS, Lanes
from voelgoed.holds.model import Ask, Item, Outcome, Source
from voelgoed.holds.projection import Projection
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.model import Origin
from voelgoed.redis import RedisLink

LANES: Final = "voelgoed bench lanes"
REDIS_S: Final = 2.0
"""Nobody waits in line behind a benchmark: a slow answer is a figure, not a reason to go on without."""
AT_ONCE: Final = 256
WITHIN_S: Final = 120.0
LOOK_S: Final = 0.001


class Given(NamedTuple):
    """A hold that was given, and to whom."""

    event_id: UUID
    seat_id: UUID
    hold_id: UUID
    user_id: UUID


class TimedDatabase(Database):
    """Notes how long each call took, from when it was sent until it was committed."""

    def __init__(self, pool: Pool, *, acquire_timeout_s: float) -> None:
        super().__init__(pool, acquire_timeout_s=acquire_timeout_s)
        self.took_s: list[float] = []

    async def call(self, query: str, *values: Any) -> list[asyncpg.Record]:
        began = time.perf_counter()
        try:
            return await super().call(query, *values)
        finally:
            self.took_s.append(time.perf_counter() - began)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One, beside the installation's own."""

    organization_id: OrganizationId
    db: Database
    lane_db: TimedDatabase
    link: RedisLink
    projection: Projection
    availability: Availability
    lanes: Lanes

    async def hold(self, event_id: UUID, seat_id: UUID) -> Given:
        """A seat for somebody who was never here before, by the lane of the event; refused, there is no figure."""
        user_id, hold_id = new_id(), new_id()
        ask = Ask(
            organization_id=self.organization_id,
            event_id=event_id,
            user_id=user_id,
            role=Role.CUSTOMER,
            is_staff=False,
            items=(Item(hold_id, seat_id=seat_id),),
            cart_token="bench",  # noqa: S106 - what a basket is called
            source=Source.WEB,
            request_id=new_id(),
            origin=Origin(session_id=user_id, ip="127.0.0.1", user_agent="bench"),
            ip="127.0.0.1",
        )
        (said,) = await self.lanes.ask(ask)
        if said.outcome is not Outcome.CREATED or said.hold_id != hold_id:
            raise BenchRefused(f"a free seat was refused: {said.outcome}")
        return Given(event_id, seat_id, hold_id, user_id)

    async def hold_many(self, wanted: Iterable[tuple[UUID, UUID]]) -> list[Given]:
        """Seats of events, so many asks under way at any time, as a crowd has it; what was given last comes last."""
        given: list[Given] = []
        rest = iter(wanted)

        async def one_of_many() -> None:
            for event_id, seat_id in rest:  # shared: whoever is answered takes the next
                given.append(await self.hold(event_id, seat_id))

        async with asyncio.TaskGroup() as crowd:
            for _ in range(AT_ONCE):
                crowd.create_task(one_of_many())
        return given

    async def wait_for_redis(self, given: Given) -> None:
        """Until the worker has written a hold to Redis, as whoever looks it up there sees it."""

        async def is_there() -> bool:
            warm = await self.projection.read_hold(self.organization_id, given.event_id, given.seat_id)
            return warm is not None and warm.hold_id == given.hold_id

        await _until(is_there, "a hold did not come to Redis")

    async def wait_until_believed(self) -> None:
        """Until the worker has said, not long ago, from which epoch on Redis may be believed."""

        async def is_told() -> bool:
            return self.projection.floor is not None and self.availability.is_live()

        await _until(is_told, "the worker does not tell what is committed")

    async def cost_of(self, ground: Ground, wanted: Iterable[tuple[UUID, UUID]]) -> tuple[float, float]:
        """Microseconds of processor that a hold costs PostgreSQL, in the lanes' own backends, and this process.

        Of processor, not of the clock: what others do on the machine meanwhile counts little.
        """
        backends = await ground.owner.fetch("select pid from pg_stat_activity where application_name = $1", LANES)
        pids = [row["pid"] for row in backends]
        before_s, mine_s = sum(map(machine.on_processor_s, pids)), time.process_time()
        given = await self.hold_many(wanted)
        mine_s, after_s = time.process_time() - mine_s, sum(map(machine.on_processor_s, pids))
        await self.wait_for_redis(given[-1])  # what is still told of these is not the next ones' cost
        return 1e6 * (after_s - before_s) / len(given), 1e6 * mine_s / len(given)


@contextlib.asynccontextmanager
async def opened(ground: Ground) -> AsyncIterator[Process]:
    """Connect as a web process does, and hear what the worker tells."""
    async with contextlib.AsyncExitStack() as held:
        url = ground.embedded.postgres_url(schema.APP)
        lane_db = await TimedDatabase.open(url, size=CONNECTIONS, application_name=LANES, settings=SETTINGS)
        held.push_async_callback(lane_db.close)
        link = await held.enter_async_context(
            RedisLink(ground.embedded.valkey_url, connect_timeout_s=REDIS_S, call_timeout_s=REDIS_S)
        )
        projection = Projection(link)
        availability = Availability(ground.db, projection)
        failures, stop = Failures(ground.db), asyncio.Event()
        lanes = Lanes(lane_db, failures, availability)
        following = asyncio.create_task(Follower(ground.db, link, availability, projection).run(stop))
        try:
            yield Process(
                organization_id=ground.place.id,
                db=ground.db,
                lane_db=lane_db,
                link=link,
                projection=projection,
                availability=availability,
                lanes=lanes,
            )
        finally:
            stop.set()
            await following
            await lanes.close()
            await failures.flush()
            await availability.close()
            await projection.settle()


async def _until(is_so: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    try:
        async with asyncio.timeout(WITHIN_S):
            while not await is_so():  # noqa: ASYNC110 - nobody says when Redis has it
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise BenchRefused(f"{otherwise} within {WITHIN_S:.0f} s") from None


def asks(sale: Sale, count: int) -> list[tuple[UUID, UUID]]:
    """The next free seats of a sale; they are taken from it."""
    if len(sale.seat_ids) < count:
        raise BenchRefused(f"{count} seats are wanted where {len(sale.seat_ids)} are left: take a larger hall")
    taken, sale.seat_ids = sale.seat_ids[:count], sale.seat_ids[count:]
    return list(zip(itertools.repeat(sale.event_id), taken, strict=False))
