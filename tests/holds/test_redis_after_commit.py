"""Redis is written after the commit, by the worker. No decision waits for it or is left in it half done."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.conftest import TEMPLATE
from tests.make.accounts import make_organization
from tests.make.holds import Sale, on_sale
from tests.make.races import connect_owner, database_alone
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.holds import auditing, booking, reconcile
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import Dispatcher
from voelgoed.holds.hotmap import milliseconds
from voelgoed.holds.model import Hold
from voelgoed.holds.projection import Projection, seat_key
from voelgoed.redis import RedisAway, RedisLink
from voelgoed.wiring import build_services

WITHIN_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """An event in a database of its own, a web process that sells it, and the worker that writes Redis."""

    sale: Sale
    owner: Connection
    link: RedisLink
    availability: Availability
    projection: Projection
    worker: Dispatcher

    async def settle(self) -> None:
        """Let the worker run until Redis has what PostgreSQL has."""
        key = self.sale.place.id, self.sale.event.id
        async with asyncio.timeout(WITHIN_S):
            while True:
                await self.worker.tick()
                found = await reconcile.look(self.sale.db, self.availability, self.projection, *key)
                if found.consistent and found.redis_count == found.db_count:
                    return

    async def keys(self) -> set[str]:
        return {key.decode() async for key in self.link.client.scan_iter(match=f"*{self.sale.event.id}*")}

    async def end_in_redis(self, code: str) -> int | None:
        """When the hold of a seat ends, as its key in Redis says."""
        key = seat_key(self.sale.place.id, self.sale.event.id, self.sale.seat(code))
        value: Any = await self.link.client.get(key)
        return int(value.rpartition(b":")[2]) if value else None


@pytest.fixture
async def stage(servers: Embedded, settings: Settings, worker_id: str, redis_url: str) -> AsyncIterator[Stage]:
    name = f"after_commit_{worker_id}"
    async with contextlib.AsyncExitStack() as held:
        alone = await held.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        owner = await held.enter_async_context(connect_owner(servers, name))
        link = await held.enter_async_context(RedisLink(redis_url, connect_timeout_s=5, call_timeout_s=5))
        assert alone.database_url is not None
        db = await Database.open(alone.database_url.get_secret_value(), size=4)
        held.push_async_callback(db.close)
        services = build_services(alone, db, link, b"x" * 32)
        held.callback(services.door.passwords.close)
        sale = await on_sale(services, await make_organization(db))
        projection = Projection(link)
        availability = Availability(db, projection)
        held.push_async_callback(availability.close)
        worker = Dispatcher(db, availability, projection)
        made = Stage(sale=sale, owner=owner, link=link, availability=availability, projection=projection, worker=worker)
        await made.settle()
        yield made


@pytest.mark.req("RSV-43")
async def test_failed_write_leaves_nothing_in_redis(stage: Stage) -> None:
    """No lock is taken in Redis, so none is left behind: the seat can be held as soon as PostgreSQL writes again."""
    before = await stage.keys()
    await stage.owner.execute("alter table seat_holds add constraint broken check (cart_token <> 'broken')")
    with pytest.raises(asyncpg.CheckViolationError):
        await stage.sale.hold(stage.sale.caller(), "S-A-1", cart_token="broken")
    assert (await stage.sale.row("S-A-1"))["status"] == "available"
    assert await stage.keys() == before
    await stage.settle()
    assert await stage.keys() == before
    (held,) = await stage.sale.hold(stage.sale.caller(), "S-A-1")
    await stage.settle()
    assert await stage.end_in_redis("S-A-1") == milliseconds(held.hold.expires_at)


async def reserve(sale: Sale) -> Hold:
    (held,) = await sale.hold(sale.caller(), "S-A-1")
    return held.hold


async def extend(sale: Sale, hold: Hold) -> Hold:
    return await booking.extend(sale.db, sale.caller(user_id=hold.user_id), hold.id)


async def reserve_and_extend(sale: Sale) -> Hold:
    return await extend(sale, await reserve(sale))


@pytest.mark.req("EXT-05", "FALL-15")
@pytest.mark.parametrize("change", [reserve, reserve_and_extend])
async def test_redis_follows_a_change_that_it_was_not_there_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, change: Callable[[Sale], Awaitable[Hold]]
) -> None:
    """PostgreSQL has the change at once, while every write to Redis fails. The worker catches up when Redis is back."""

    async def away(*_given: Any, **_named: Any) -> None:
        raise RedisAway

    with monkeypatch.context() as patch:
        patch.setattr(RedisLink, "call", away)
        hold = await change(stage.sale)
        await stage.worker.tick()
        row = await stage.sale.row("S-A-1")
        assert (row["hold_id"], row["held_until"]) == (hold.id, hold.expires_at)
    assert await stage.end_in_redis("S-A-1") is None
    await stage.settle()
    assert await stage.end_in_redis("S-A-1") == milliseconds(hold.expires_at)
    assert await auditing.verify(stage.sale.db) == []


@pytest.mark.req("EXT-05", "EXT-06")
async def test_extension_reaches_postgresql_first_and_then_redis(stage: Stage) -> None:
    """Redis has the old end until the worker has run. A key that was lost meanwhile is written from the row."""
    hold = await reserve(stage.sale)
    await stage.settle()
    extended = await extend(stage.sale, hold)
    assert extended.expires_at == hold.expires_at + timedelta(minutes=5)
    assert (await stage.sale.row("S-A-1"))["held_until"] == extended.expires_at
    assert await stage.end_in_redis("S-A-1") == milliseconds(hold.expires_at)
    await stage.link.client.delete(seat_key(stage.sale.place.id, stage.sale.event.id, stage.sale.seat("S-A-1")))
    await stage.settle()
    assert await stage.end_in_redis("S-A-1") == milliseconds(extended.expires_at)
