"""What the ground costs: a transaction of ours beside a bare one, and an answer of the web process."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from tests.make.web import Site
from voelgoed import schema
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.ids import OrganizationId, new_id

pytestmark = pytest.mark.bench
ROUNDS = 4
CALLS = 1500


async def cost_us(call: Callable[[], Awaitable[object]]) -> float:
    """Microseconds a call, one after the other."""
    started = time.perf_counter()
    for _ in range(CALLS):
        await call()
    return (time.perf_counter() - started) / CALLS * 1e6


async def test_a_transaction_costs_little_more_than_a_bare_one(db: Database, servers: Embedded, database: str) -> None:
    """Interleaved, so that the machine's moods hit both alike."""
    organization_id = OrganizationId(new_id())
    bare_conn = await asyncpg.connect(servers.postgres_url(schema.APP, database))

    async def bare() -> None:
        await bare_conn.execute("begin")
        await bare_conn.fetchval("select 1")
        await bare_conn.execute("commit")

    async def ours() -> None:
        async with db.transaction(organization_id) as conn:
            await conn.fetchval("select 1")

    pairs = [(await cost_us(bare), await cost_us(ours)) for _ in range(ROUNDS)]
    await bare_conn.close()
    bare_us, ours_us = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    print(f"\nbare transaction {bare_us:.0f} us, ours {ours_us:.0f} us, ratio {ours_us / bare_us:.2f}")
    assert ours_us < bare_us * 4


async def test_answers_of_one_process(site: Site) -> None:
    """Requests a second over kept connections; client and server share this process."""

    async def visitor() -> None:
        for _ in range(CALLS // 10):
            assert (await site.client.get("/healthz")).status_code == 200

    started = time.perf_counter()
    await asyncio.gather(*(visitor() for _ in range(10)))
    print(f"\n/healthz {CALLS / (time.perf_counter() - started):.0f} requests/s, client included")
