"""Which tier answers a look-up of a seat: memory for every seat of a loaded event, Redis for held seats without it."""

from collections.abc import AsyncIterator

import pytest

from tests.holds.test_availability import Process, lookups, until
from tests.make.holds import Sale, on_sale
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services

ROUNDS = 20


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    """Two of 13 seats are held and one is sold."""
    made = await on_sale(services, place)
    buyer = made.caller()
    *_, sold = await made.hold(buyer, "S-A-1", "S-A-2", "S-A-3")
    await made.buy(buyer, sold)
    return made


@pytest.fixture
async def process(db: Database, redis_url: str) -> AsyncIterator[Process]:
    async with RedisLink(redis_url, connect_timeout_s=5, call_timeout_s=5) as link:
        made = Process(db, link)
        yield made
        await made.hot.close()
        await made.projection.settle()


async def look_at(process: Process, sale: Sale, *codes: str) -> dict[str, float]:
    """Look at seats `ROUNDS` times and return the share that each tier answered."""
    before = lookups()
    for _ in range(ROUNDS):
        for code in codes:
            assert await process.hot.look_up(sale.place.id, sale.event.id, sale.seat(code))
        if process.hot.is_live():
            await until(lambda: process.hot.peek(sale.event.id))
    after = lookups()
    return {
        tier: (after[tier, "true"] - before[tier, "true"]) / (ROUNDS * len(codes)) for tier in ("ets", "redis", "db")
    }


@pytest.mark.req("REG-26")
async def test_memory_answers_for_free_seats_too(process: Process, sale: Sale) -> None:
    """From a cold start, over all seats: at least 60 % from memory and at most 15 % from PostgreSQL."""
    shares = await look_at(process, sale, *sale.seated.hall.codes)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["ets"] >= 0.6
    assert shares["db"] <= 0.15


@pytest.mark.req("REG-26")
async def test_redis_answers_for_held_seats_without_a_map(process: Process, sale: Sale) -> None:
    """At least 85 % from Redis and at most 15 % from PostgreSQL."""
    await process.warm(sale)
    process.hot.is_live = lambda: False
    shares = await look_at(process, sale, "S-A-1", "S-A-2")
    assert shares["redis"] >= 0.85
    assert shares["db"] <= 0.15
