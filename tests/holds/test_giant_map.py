"""The largest hall there is, looked at: from memory at least twenty times as fast as from PostgreSQL."""

import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.make.accounts import make_organization
from tests.make.events import make_event, make_venue
from tests.make.seating import Seated, active_pin, publish, save
from tests.sim import trouble
from voelgoed.db import Database
from voelgoed.holds import store
from voelgoed.holds.availability import Availability
from voelgoed.holds.hotmap import HotMap
from voelgoed.holds.inventory import Wanted
from voelgoed.holds.occupancy import occupancy_now, occupancy_of
from voelgoed.holds.projection import Projection
from voelgoed.redis import RedisLink
from voelgoed.seating import halls, presets
from voelgoed.seating.generate import generate
from voelgoed.seating.model import SEATS_MAX
from voelgoed.seating.studio import Studio

pytestmark = [pytest.mark.timeout(300), pytest.mark.alone]

TIMES_FASTER: Final = 20
LOOKS: Final = 7


async def median_s(look: Callable[[], Awaitable[object]]) -> float:
    """How long a look takes, in the middle of some."""
    took = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        await look()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


@pytest.fixture
async def giant(studio: Studio) -> Seated:
    """An event with 100,000 seats, on sale."""
    place = await make_organization(studio.db)
    venue = await make_venue(studio.db, place, max_capacity=SEATS_MAX)
    pin = await active_pin(studio, venue, generate(presets.preset("stadium-100k")))
    hall = await halls.load_hall(studio, place.id, pin)
    event = await make_event(studio.db, place, venue)
    await save(studio, event, Wanted(pin=pin, overrides={}))
    return Seated(event=await publish(studio, event), venue=venue, hall=hall, rules={})


async def test_memory_is_twenty_times_as_fast_as_postgresql(giant: Seated, db: Database, tmp_path: Path) -> None:
    """The map and how full it is, each look at another state; and what loading, writing to Redis and keeping costs."""
    key = giant.organization_id, giant.event.id
    async with trouble.server(tmp_path) as server, RedisLink(server.url, call_timeout_s=5) as link:
        projection = Projection(link)
        availability = Availability(db, projection)
        began = time.perf_counter()
        found = await availability.load(*key)
        load_s = time.perf_counter() - began
        availability.is_live = lambda: True
        assert len(found) == SEATS_MAX

        async def map_from_postgresql() -> str:
            async with db.transaction(giant.organization_id) as conn:
                snapshot = await store.load_map(conn, *key)
            assert snapshot is not None
            return HotMap(snapshot, read_at=0.0).encoded()

        async def map_from_memory() -> str:
            found._encoded = None  # as if a seat had changed since the last look
            return (await availability.map_of(*key)).encoded()

        async def occupancy_from_postgresql() -> object:
            async with db.transaction(giant.organization_id) as conn:
                zones, version, _ = await store.count_places(conn, *key, datetime.now(UTC))
            return occupancy_of(giant.event.id, found.epoch, version, zones, occupancy_now(found).timestamp)

        async def occupancy_from_memory() -> object:
            return await availability.occupancy(*key)

        assert await map_from_postgresql() == await map_from_memory()
        cold_map, hot_map = await median_s(map_from_postgresql), await median_s(map_from_memory)
        cold_count, hot_count = await median_s(occupancy_from_postgresql), await median_s(occupancy_from_memory)
        began = time.perf_counter()
        await projection.rebuild(found, 1, {})
        rebuild_s = time.perf_counter() - began
        dump = await projection.dump(*key, 0)
        assert dump.statuses == bytes(found.statuses)
        async with server.client() as client:
            used = sum([await client.memory_usage(one) or 0 async for one in client.scan_iter("*")])
    print(
        f"\n{len(found)} seats: loaded in {load_s:.2f} s, written to Redis in {rebuild_s:.3f} s,"
        f" {found.size_bytes / 2**20:.2f} MB in each process, {used / 2**20:.2f} MB in Redis;"
        f" map {1e3 * hot_map:.2f} ms hot, {1e3 * cold_map:.0f} ms cold ({cold_map / hot_map:.0f} x);"
        f" occupancy {1e3 * hot_count:.3f} ms, {1e3 * cold_count:.0f} ms ({cold_count / hot_count:.0f} x)"
    )
    assert cold_map > TIMES_FASTER * hot_map
    assert cold_count > TIMES_FASTER * hot_count
