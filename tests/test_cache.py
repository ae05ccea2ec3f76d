"""The cache: memory, then Redis, then the source; right without either, asked once for all who want the same."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from voelgoed.breaker import State
from voelgoed.cache import BYTES_MAX, Cache
from voelgoed.embedded import Embedded, running
from voelgoed.redis import RedisLink

WAIT_S = 20.0


class Clock:
    """Time that moves when told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Summary(msgspec.Struct, frozen=True):
    """A value as a domain would keep it."""

    name: str
    free_count: int


class Source:
    """Whoever knows: counts how often it was asked, and can be made to wait or to fail."""

    def __init__(self) -> None:
        self.asked_count = 0
        self.name = "one"
        self.go = asyncio.Event()
        self.go.set()
        self.error: Exception | None = None

    async def load(self) -> Summary:
        self.asked_count += 1
        name = self.name
        await self.go.wait()
        if self.error:
            raise self.error
        return Summary(name, self.asked_count)


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as opened:
        yield opened


@pytest.fixture
def key() -> str:
    return f"voelgoed:org:{uuid4()}:events:summary:1"


async def ask(cache: Cache, key: str, source: Source, version: str = "1", ttl_s: float = 60) -> Summary:
    return await asyncio.wait_for(cache.get_or_load(key, version, ttl_s, source.load, kind=Summary), WAIT_S)


async def test_each_tier_answers_before_the_next_is_asked(link: RedisLink, key: str) -> None:
    """First the source, then this memory without Redis, then Redis for another process: one awaited call at most."""
    first, second, source = Cache(link=link), Cache(link=link), Source()
    assert await ask(first, key, source) == Summary("one", 1)
    assert link.awaited_count == 1
    await first.settle()
    assert (link.awaited_count, link.background_count) == (1, 1)
    assert await ask(first, key, source) == Summary("one", 1)
    assert link.awaited_count == 1
    assert await ask(second, key, source) == Summary("one", 1)
    assert (link.awaited_count, source.asked_count) == (2, 1)
    assert await ask(second, key, source) == Summary("one", 1)
    assert link.awaited_count == 2


async def test_a_hundred_who_ask_at_once_are_one_load(link: RedisLink, key: str) -> None:
    """Single flight: the source and Redis are asked once."""
    cache, source = Cache(link=link), Source()
    answers = await asyncio.gather(*(ask(cache, key, source) for _ in range(100)))
    assert answers == [Summary("one", 1)] * 100
    assert (source.asked_count, link.awaited_count) == (1, 1)
    assert cache._flights == {}


async def test_another_version_is_a_miss_in_every_tier(link: RedisLink, key: str) -> None:
    """What memory and Redis hold of the old version is not given out for the new one."""
    cache, source = Cache(link=link), Source()
    await ask(cache, key, source, version="1")
    await cache.settle()
    source.name = "two"
    assert await ask(cache, key, source, version="2") == Summary("two", 2)
    await cache.settle()
    assert await ask(Cache(link=link), key, source, version="2") == Summary("two", 2)


async def test_memory_forgets_when_the_time_is_over(link: RedisLink, key: str) -> None:
    """After its time, or after the longest time that memory is trusted, Redis is asked again."""
    clock = Clock()
    cache, source = Cache(link=link, clock=clock), Source()
    await ask(cache, key, source, ttl_s=3600)
    await cache.settle()
    clock.now += 29
    await ask(cache, key, source, ttl_s=3600)
    assert link.awaited_count == 1
    clock.now += 2
    assert await ask(cache, key, source, ttl_s=3600) == Summary("one", 1)
    assert link.awaited_count == 2
    assert 0 < await link.client.pttl(key) <= 3_600_000


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"\xc1nonsense",
        msgspec.msgpack.encode(["1"]),
        msgspec.msgpack.encode(["1", {"name": 7, "free_count": "x"}]),
        msgspec.msgpack.encode(["1", [1, 2]]),
        msgspec.msgpack.encode({"version": "1"}),
        msgspec.msgpack.encode(["1", {"name": "a", "free_count": 1}])[:-2],
    ],
)
async def test_a_broken_value_in_redis_is_a_miss(link: RedisLink, key: str, stored: bytes) -> None:
    """Cut off, of another type, or not ours: the source answers, and its value replaces the broken one."""
    await link.client.set(key, stored, px=60_000)
    cache, source = Cache(link=link), Source()
    assert await ask(cache, key, source) == Summary("one", 1)
    await cache.settle()
    assert await ask(Cache(link=link), key, source) == Summary("one", 1)


async def test_a_key_of_another_redis_type_is_a_miss(link: RedisLink, key: str) -> None:
    """Even a list in the place of the value only costs the load."""
    await link.client.lpush(key, b"x")
    assert await ask(Cache(link=link), key, Source()) == Summary("one", 1)
    await link.client.delete(key)


async def test_an_error_reaches_all_who_wait_and_is_not_kept(link: RedisLink, key: str) -> None:
    """Five ask, five get the error, the sixth asks the source again."""
    cache, source = Cache(link=link), Source()
    source.error = LookupError("gone")
    outcomes = await asyncio.gather(*(ask(cache, key, source) for _ in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [LookupError] * 5
    source.error = None
    assert await ask(cache, key, source) == Summary("one", 2)


async def test_a_cancelled_caller_leaves_the_others_their_answer(link: RedisLink, key: str) -> None:
    """The first to ask goes away; the second still gets the one load's value."""
    cache, source = Cache(link=link), Source()
    source.go.clear()
    first = asyncio.create_task(ask(cache, key, source))
    second = asyncio.create_task(ask(cache, key, source))
    while not source.asked_count:
        await asyncio.sleep(0.001)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.go.set()
    assert await second == Summary("one", 1)
    assert source.asked_count == 1


async def test_a_load_that_began_before_an_invalidation_is_not_kept(link: RedisLink, key: str) -> None:
    """Its callers get what they asked for; whoever asks after the invalidation asks the source."""
    cache, source = Cache(link=link), Source()
    source.go.clear()
    early = asyncio.create_task(ask(cache, key, source))
    while not source.asked_count:
        await asyncio.sleep(0.001)
    source.name = "two"
    await cache.invalidate(key)
    late = asyncio.create_task(ask(cache, key, source))
    while source.asked_count < 2:
        await asyncio.sleep(0.001)
    source.go.set()
    assert (await early).name == "one"
    assert (await late).name == "two"
    await cache.settle()
    assert (await ask(cache, key, source)).name == "two"
    assert (await ask(Cache(link=link), key, source)).name == "two"
    assert source.asked_count == 2


async def test_an_invalidation_reaches_the_other_processes(link: RedisLink, redis_url: str, key: str) -> None:
    """One call removes it from Redis and tells the others, whose memory forgets it."""
    stop, source = asyncio.Event(), Source()
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as other_link:
        here, there = Cache(link=link), Cache(link=other_link)
        taken_up = asyncio.Event()
        real_drop_all = Cache.drop_all

        def drop_all() -> None:
            real_drop_all(there)
            taken_up.set()

        following = asyncio.create_task(
            other_link.follow("voelgoed:invalidate", lambda sent: there.drop(sent.decode()), stop, on_gap=drop_all)
        )
        await asyncio.wait_for(taken_up.wait(), WAIT_S)
        await ask(here, key, source)
        await here.settle()
        await ask(there, key, source)
        source.name = "two"
        awaited_before = link.awaited_count
        await here.invalidate(key)
        assert link.awaited_count == awaited_before + 1
        assert await link.client.get(key) is None
        async with asyncio.timeout(WAIT_S):
            while key in there._hot:
                await asyncio.sleep(0.005)
        assert (await ask(there, key, source)).name == "two"
        stop.set()
        await following


async def test_what_is_followed_is_forgotten_here(link: RedisLink, key: str) -> None:
    """`follow` itself: taking up the channel forgets everything, a message forgets its key."""
    cache, source, stop = Cache(link=link), Source(), asyncio.Event()
    await ask(cache, key, source)
    following = asyncio.create_task(cache.follow(stop))
    async with asyncio.timeout(WAIT_S):
        while key in cache._hot:
            await asyncio.sleep(0.005)
    await ask(cache, key, source)
    assert key in cache._hot
    await link.publish("voelgoed:invalidate", key.encode())
    async with asyncio.timeout(WAIT_S):
        while key in cache._hot:
            await asyncio.sleep(0.005)
    stop.set()
    await asyncio.wait_for(following, WAIT_S)


async def test_memory_is_bounded_in_bytes_and_entries(link: RedisLink) -> None:
    """The least recently used go first; a value larger than everything is given out and not kept."""
    cache = Cache(link=link, entries_max=10, bytes_max=10_000)
    place = f"voelgoed:org:{uuid4()}:"

    async def text(length: int) -> str:
        return "x" * length

    for number in range(50):
        await cache.get_or_load(f"{place}{number}", "1", 60, lambda: text(1), kind=str)
    assert len(cache._hot) == 10
    for number in range(50, 60):
        await cache.get_or_load(f"{place}{number}", "1", 60, lambda: text(4_000), kind=str)
    assert len(cache._hot) == 2
    assert len(await cache.get_or_load(f"{place}big", "1", 60, lambda: text(20_000), kind=str)) == 20_000
    assert f"{place}big" not in cache._hot
    assert BYTES_MAX == 67_108_864
    await cache.settle()


async def test_a_key_outside_an_organization_is_a_mistake(link: RedisLink) -> None:
    """Every key names its organization; another is refused before anything is asked."""
    source = Source()
    for wrong in ("voelgoed:events:1", "voelgoed:org:acme:x", f"voelgoed:org:{uuid4()}"):
        with pytest.raises(AssertionError):
            await ask(Cache(link=link), wrong, source)
    assert (source.asked_count, link.awaited_count) == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_without_redis_the_source_answers(data_dir: Path, number: signal.Signals) -> None:
    """Killed or hung: each read awaits Redis at most once until the breaker opens, then not at all."""
    async with running(Embedded(data_dir, with_postgres=False)) as servers, RedisLink(servers.valkey_url) as link:
        cache, source = Cache(link=link), Source()
        place = f"voelgoed:org:{uuid4()}:"
        assert (await ask(cache, f"{place}0", source)).free_count == 1
        await cache.settle()
        os.kill(servers.pids()["valkey"], number)
        try:
            before = link.awaited_count
            for count in range(1, 21):
                assert (await ask(cache, f"{place}{count}", source)).free_count == count + 1
                await cache.settle()
                assert link.awaited_count - before <= count
            assert link.state is State.OPEN
            assert link.awaited_count - before + link.background_count - 1 == 5
            await cache.invalidate(f"{place}1")
            assert (await ask(cache, f"{place}1", source)).free_count == 22
        finally:
            os.kill(servers.pids()["valkey"], signal.SIGCONT)
