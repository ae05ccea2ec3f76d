"""The worker hangs, and Redis is gone: web processes show holds as over at their end all the same."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person
from tests.make.races import connect_owner
from tests.make.seating import as_registry
from tests.realtime.test_maps import Model, Stream
from tests.sim.shop import CONNECTIONS, Shop, shop
from voelgoed.config import Settings
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.holds.hotmap import AVAILABLE, HELD, unpack

pytestmark = pytest.mark.timeout(180)

WITHIN_S = 30
PLACES = 2


@pytest.fixture
async def stall(servers: Embedded, settings: Settings, tmp_path: Path) -> AsyncIterator[Shop]:
    """Two web processes and a worker."""
    async with shop(servers, settings, tmp_path, f"stopped_{settings.port}") as opened:
        yield opened


@pytest.fixture
async def owner(servers: Embedded, settings: Settings, stall: Shop) -> AsyncIterator[Connection]:
    async with connect_owner(servers, f"stopped_{settings.port}") as conn:
        yield conn


@contextlib.contextmanager
def stopped_worker(stall: Shop) -> Iterator[None]:
    """The worker hangs while the block lasts."""
    pid = stall.tree.pids()["worker"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def reserve(stall: Shop, person: Person, path: str, body: object) -> UUID:
    async with httpx2.AsyncClient(base_url=stall.address, timeout=20) as client:
        response = await client.post(f"{stall.places}/{path}/reserve", headers=person.headers, json=body)
    return UUID(response.raise_for_status().json()["data"]["hold_id"])


async def end_soon(owner: Connection, *holds: UUID) -> None:
    """Let holds end two seconds from now, and record that as an extension is recorded: no one waits ten minutes."""
    async with as_registry(owner) as conn:
        await conn.execute(
            "update seat_holds set initial_expires_at = clock_timestamp() + interval '2 s',"
            " expires_at = clock_timestamp() + interval '2 s' where id = any ($1)",
            holds,
        )
        await conn.execute(
            "with seat as ("
            " update event_seats s set held_until = h.expires_at, version = s.version + 1 from seat_holds h"
            " where s.hold_id = h.id and h.id = any ($1)"
            " returning s.organization_id, s.event_id, s.seat_id, s.version, s.held_by, s.hold_id, s.held_until)"
            " insert into journal (organization_id, xid, kind, event_id, seat_id, version, actor_id, data)"
            " select organization_id, journal_number(), 'seat_hold_extended', event_id, seat_id, version, held_by,"
            " jsonb_build_object('hold_id', hold_id, 'held_until', held_until) from seat",
            holds,
        )
        await conn.execute(
            "select zone_move(organization_id, event_id, zone_id, 0, 0, 'seat_hold_extended', array[id],"
            " array[quantity], expires_at, array[user_id], array[null::uuid], array[null::uuid], '{}')"
            " from seat_holds where id = any ($1) and seat_id is null",
            holds,
        )


async def read(stall: Shop) -> set[tuple[int, int, int]]:
    """The first seat in the map, how many are held by the map, and by the occupancy: all that any process shows."""
    found = set()
    for _ in range(CONNECTIONS):
        async with httpx2.AsyncClient(base_url=stall.address, timeout=20) as client:
            seats, full = [
                (await client.get(f"{stall.places}/{name}")).raise_for_status().json()["data"]
                for name in ("seatmap", "occupancy")
            ]
        held = sum(zone["held"] for zone in seats["zones"])
        found.add((unpack(seats["statuses"], seats["seat_count"])[0], held, full["held"]))
    return found


async def until_all_read(stall: Shop, *expected: int) -> None:
    async with asyncio.timeout(WITHIN_S):
        while await read(stall) != {expected}:
            await asyncio.sleep(0.02)


def looks(model: Model) -> tuple[int, int, int]:
    """What `read` returns, as a viewer of the stream has it."""
    held = sum(zone["held"] for zone in model.zones.values())
    return model.statuses[0], held, (model.occupancy or {"held": held})["held"]


@pytest.mark.req("REAP-08")
@pytest.mark.parametrize("has_redis", [True, False], ids=["with Redis", "without Redis"])
async def test_without_a_worker_a_hold_is_over_in_all_reads(stall: Shop, owner: Connection, *, has_redis: bool) -> None:
    """The map, the occupancy and the stream of every process. When the worker records it later no one steps back."""
    person, seat_id, zone_id = stall.people[0], stall.seated.hall.seat_id(0), stall.seated.hall.zone_id("P1")
    model = Model()
    async with (
        httpx2.AsyncClient(base_url=stall.address, timeout=WITHIN_S) as client,
        client.stream("GET", f"{stall.places}/stream") as response,
    ):
        stream = Stream(response, model)
        await stream.next("snapshot")
        with stopped_worker(stall):
            if not has_redis:
                stall.redis.kill()
            holds = [
                await reserve(stall, person, f"seats/{seat_id}", {}),
                await reserve(stall, person, f"zones/{zone_id}", {"quantity": PLACES}),
            ]
            await until_all_read(stall, HELD, 1 + PLACES, 1 + PLACES)
            await stream.until(lambda: looks(model) == (HELD, 1 + PLACES, 1 + PLACES))
            await end_soon(owner, *holds)
            await until_all_read(stall, AVAILABLE, 0, 0)
            await stream.until(lambda: looks(model) == (AVAILABLE, 0, 0))
            await owner.execute("select set_config('app.scope', 'system', false)")
            rows = await owner.fetch("select status::text, expires_at <= now() as is_over from seat_holds")
            assert [tuple(row) for row in rows] == [("active", True)] * 2, "no one has recorded it"
        frames = len(model.frames)
        while (truth := await stall.find_map()).has_expired or not model.shows(truth):
            await stream.next()
        assert {digit for frame in model.frames[frames:] for digit in frame.data.get("statuses", "")} <= {"0"}
    if has_redis:
        await stall.agree()
