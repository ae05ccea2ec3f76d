"""What the tiers cost: a look at a seat from each of them, a refusal from memory, and how far Redis is behind."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.conftest import SECRET_KEY
from tests.make.accounts import make_organization
from tests.make.holds import Sale, on_sale
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import Dispatcher
from voelgoed.holds.refusals import SeatHeld
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services, build_services

pytestmark = pytest.mark.bench
CALLS = 1_000
WITHIN_S = 60


async def cost_us(call: Callable[[], Awaitable[object]]) -> float:
    """Microseconds a call, one after the other."""
    began = time.perf_counter()
    for _ in range(CALLS):
        await call()
    return (time.perf_counter() - began) / CALLS * 1e6


@pytest.fixture
async def process(db: Database, settings: Settings, redis_url: str) -> AsyncIterator[Services]:
    """A process with a clock that nobody winds."""
    async with RedisLink(redis_url, connect_timeout_s=1, call_timeout_s=1) as link:
        services = build_services(settings, db, link, SECRET_KEY)
        yield services
        await services.lanes.close()
        await services.availability.close()
        services.door.passwords.close()


async def projected(sale: Sale, services: Services) -> float:
    """Wait until the worker has written an event to Redis; how long it took."""
    dispatcher = Dispatcher(services.db, services.availability, services.projection)
    began = time.perf_counter()
    key = sale.place.id, sale.event.id, sale.seat("S-A-1")
    async with asyncio.timeout(WITHIN_S):
        while True:
            await dispatcher.tick()
            services.projection.believe(0)
            if await services.projection.read_hold(*key):
                return time.perf_counter() - began


async def test_what_a_look_costs_in_each_tier(process: Services) -> None:
    """The same question to memory, to Redis and to PostgreSQL; and a refusal without a word to anybody."""
    sale = await on_sale(process, await make_organization(process.db))
    await sale.hold(sale.caller(), "S-A-1")
    behind_s = await projected(sale, process)
    cold = Availability(process.db, process.projection)
    await process.availability.load(sale.place.id, sale.event.id)
    process.availability.is_live = lambda: True

    async def from_memory() -> None:
        assert await process.availability.look_up(sale.place.id, sale.event.id, sale.seat("S-A-1"))

    async def from_redis() -> None:
        process.projection.believe(0)
        assert await process.projection.read_hold(sale.place.id, sale.event.id, sale.seat("S-A-1"))

    async def from_postgresql() -> None:
        process.projection._floor = None  # what Redis has is not believed
        assert await cold.look_up(sale.place.id, sale.event.id, sale.seat("S-A-1"))

    ben = sale.caller()

    async def refusal() -> None:
        with pytest.raises(SeatHeld):
            await sale.hold(ben, "S-A-1")

    figures = [await cost_us(look) for look in (from_memory, from_redis, from_postgresql, refusal)]
    print(
        "\na look: {:.0f} us from memory, {:.0f} us from Redis, {:.0f} us from PostgreSQL;"
        " a refusal {:.0f} us; written to Redis {:.2f} s after the worker began".format(*figures, behind_s)
    )
