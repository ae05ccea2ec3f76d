"""Throttles: so many tries in so many seconds, counted by Redis, more strictly by this process when it is away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from voelgoed import throttle as module
from voelgoed.redis import RedisLink
from voelgoed.throttle import Hit, Throttle


class Clock:
    """Time that moves when told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as opened:
        yield opened


@pytest.fixture
async def dead_link(data_dir: Path) -> AsyncIterator[RedisLink]:
    async with RedisLink(f"unix://{data_dir}/none") as opened:
        yield opened


async def test_so_many_are_allowed_and_one_call_each(link: RedisLink) -> None:
    """Three pass, the fourth waits, another key is free; each try is one awaited call."""
    throttle = Throttle(link, "test", limit=3, window_s=60, local_limit=1)
    mine, other = str(uuid4()), str(uuid4())
    hits = [await throttle.hit(mine) for _ in range(4)]
    assert [hit.allowed for hit in hits] == [True, True, True, False]
    assert 1 <= hits[3].retry_after_s <= 60
    assert await throttle.hit(other) == Hit(allowed=True, retry_after_s=0)
    assert link.awaited_count == 5


async def test_processes_share_the_count(link: RedisLink, redis_url: str) -> None:
    """Twenty tries at once over two links: exactly seven are allowed."""
    key = str(uuid4())
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as second:
        throttles = [Throttle(each, "test", limit=7, window_s=60, local_limit=1) for each in (link, second)]
        hits = await asyncio.gather(*(throttles[number % 2].hit(key) for number in range(20)))
    assert sum(hit.allowed for hit in hits) == 7


async def test_the_window_moves(link: RedisLink) -> None:
    """When the oldest try is a window old, exactly its place is free; refused tries have not prolonged the wait."""
    throttle = Throttle(link, "test", limit=2, window_s=60, local_limit=1)
    key = str(uuid4())
    assert (await throttle.hit(key)).allowed
    assert (await throttle.hit(key)).allowed
    assert not (await throttle.hit(key)).allowed
    (place,) = [
        name async for name in link.client.scan_iter(match=f"{module.KEY_PREFIX}test:*") if await holds(link, name, 2)
    ]
    oldest = await link.client.lindex(place, 1)
    assert oldest is not None
    await link.client.lset(place, 1, str(int(oldest) - 60_000))
    assert (await throttle.hit(key)).allowed
    assert not (await throttle.hit(key)).allowed
    assert await link.client.llen(place) == 2
    assert 0 < await link.client.pttl(place) <= 60_000
    await link.client.delete(place)


async def holds(link: RedisLink, name: bytes | str, count: int) -> bool:
    """Whether this is the key of the running test: others have other counts, and go with their time."""
    return await link.client.llen(name) == count


async def test_nothing_personal_stands_in_redis(link: RedisLink) -> None:
    """The key is a hash; neither key nor value has the address in it."""
    address = f"{uuid4()}@example.com"
    await Throttle(link, "login", limit=3, window_s=60, local_limit=1).hit(address)
    names = [name async for name in link.client.scan_iter(match="*")]
    assert not any(address.encode() in name or address[:36].encode() in name for name in names)
    assert any(name.startswith(b"voelgoed:throttle:login:") for name in names)


async def test_without_redis_the_stricter_limit_holds(dead_link: RedisLink) -> None:
    """Two instead of ten, with an exact wait, and free again when the window has passed."""
    clock = Clock()
    throttle = Throttle(dead_link, "test", limit=10, window_s=60, local_limit=2, clock=clock)
    assert (await throttle.hit("a")).allowed
    clock.now += 20
    assert (await throttle.hit("a")).allowed
    clock.now += 20
    assert await throttle.hit("a") == Hit(allowed=False, retry_after_s=20)
    assert (await throttle.hit("b")).allowed
    clock.now += 20
    assert (await throttle.hit("a")).allowed
    assert await throttle.hit("a") == Hit(allowed=False, retry_after_s=20)


async def test_a_flood_of_keys_does_not_fill_the_memory(dead_link: RedisLink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many keys are remembered; the ones in use stay."""
    monkeypatch.setattr(module, "LOCAL_KEYS_MAX", 50)
    throttle = Throttle(dead_link, "test", limit=10, window_s=60, local_limit=1)
    assert (await throttle.hit("mine")).allowed
    for number in range(500):
        await throttle.hit(str(number))
        assert not (await throttle.hit("mine")).allowed
    assert len(throttle._local) == 50


async def test_zero_is_off(link: RedisLink) -> None:
    """Nothing is counted and Redis is not asked."""
    throttle = Throttle(link, "test", limit=0, window_s=60, local_limit=0)
    assert {await throttle.hit("a") for _ in range(50)} == {Hit(allowed=True, retry_after_s=0)}
    assert link.awaited_count == 0
