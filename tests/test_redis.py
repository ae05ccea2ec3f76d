"""The way to Redis: one hard limit per call, nothing awaited while it is away, and back by itself."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from voelgoed import redis
from voelgoed.breaker import State
from voelgoed.embedded import Embedded, running
from voelgoed.redis import CALLS_AT_ONCE_MAX, RedisAway, RedisLink

WAIT_S = 20.0
KEY = "voelgoed:org:test:key"


class Clock:
    """Time that moves when told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def get(client: Redis) -> bytes | str | None:
    return await client.get(KEY)


@pytest.fixture
async def valkey(data_dir: Path) -> AsyncIterator[Embedded]:
    """A server of the test's own, to be killed."""
    async with running(Embedded(data_dir, with_postgres=False)) as servers:
        yield servers


def kill(servers: Embedded, number: signal.Signals) -> None:
    os.kill(servers.pids()["valkey"], number)


async def wait_until_dead(servers: Embedded) -> None:
    await asyncio.to_thread(servers._children["valkey"].process.wait, WAIT_S)


async def fail(link: RedisLink, times: int) -> None:
    for _ in range(times):
        with pytest.raises(RedisAway):
            await asyncio.wait_for(link.call(get), WAIT_S)


async def test_a_call_brings_the_answer(redis_url: str) -> None:
    """What the server says comes back, and each call was awaited once."""
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as link:
        await link.call(lambda client: client.set(KEY, b"one", px=60_000))
        assert await link.call(get) == b"one"
        assert (link.awaited_count, link.state) == (2, State.CLOSED)


async def test_a_killed_redis_opens_the_breaker_and_is_found_again(valkey: Embedded) -> None:
    """Five failed calls, then none is awaited; ten callers at the probe's time are one call; a new server is found."""
    clock = Clock()
    async with RedisLink(valkey.valkey_url, call_timeout_s=2, connect_timeout_s=2, clock=clock) as link:
        await link.call(lambda client: client.set(KEY, b"one"))
        kill(valkey, signal.SIGKILL)
        await wait_until_dead(valkey)
        await fail(link, 5)
        assert (link.state, link.awaited_count) == (State.OPEN, 6)
        await fail(link, 100)
        assert link.awaited_count == 6

        clock.now += 30
        outcomes = await asyncio.gather(*(link.call(get) for _ in range(10)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [RedisAway] * 10
        assert (link.state, link.awaited_count) == (State.OPEN, 7)

        await valkey._start_valkey()
        await fail(link, 1)
        clock.now += 30
        assert await link.call(get) is None
        assert (link.state, link.awaited_count) == (State.CLOSED, 8)


async def test_a_stopped_redis_is_left_within_the_hard_limit(valkey: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server takes a call and never answers: the limit ends it, even where the library would wait for an hour."""
    real = redis.connect
    monkeypatch.setattr(redis, "connect", lambda url, **_limits: real(url, connect_timeout_s=3600, call_timeout_s=3600))
    async with RedisLink(valkey.valkey_url, call_timeout_s=0.15) as link:
        assert await link.call(get) is None
        kill(valkey, signal.SIGSTOP)
        try:
            await fail(link, 5)
            assert (link.state, link.awaited_count) == (State.OPEN, 6)
            await fail(link, 100)
            assert link.awaited_count == 6
        finally:
            kill(valkey, signal.SIGCONT)


async def test_a_restarted_redis_costs_no_failures(valkey: Embedded) -> None:
    """Connections that died with the old server are replaced, not counted: the breaker stays closed."""
    async with RedisLink(valkey.valkey_url, call_timeout_s=2, connect_timeout_s=2) as link:
        await asyncio.gather(*(link.call(get) for _ in range(20)))
        kill(valkey, signal.SIGKILL)
        await wait_until_dead(valkey)
        await valkey._start_valkey()
        answers = await asyncio.gather(*(link.call(get) for _ in range(20)))
        assert (answers, link.state) == ([None] * 20, State.CLOSED)


async def test_a_refused_command_is_no_sign_of_ill_health(redis_url: str) -> None:
    """The server answers, only not as we like: the caller goes on without, the breaker stays closed."""
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as link:
        await link.call(lambda client: client.set(KEY, b"one", px=60_000))
        for _ in range(10):
            with pytest.raises(RedisAway, match="refused"):
                await link.call(lambda client: client.lpush(KEY, b"x"))
        assert (link.state, await link.call(get)) == (State.CLOSED, b"one")


async def test_a_broken_reply_is_a_failure(data_dir: Path) -> None:
    """Whatever answers at the address, if it does not speak the protocol it is away."""

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(babble, data_dir / "s")
    async with server, RedisLink(f"unix://{data_dir}/s", call_timeout_s=2, connect_timeout_s=2) as link:
        await fail(link, 6)
        assert (link.state, link.awaited_count) == (State.OPEN, 5)


async def test_a_crowd_is_refused_before_it_waits(valkey: Embedded) -> None:
    """So many calls are under way and no more; those beyond are refused at once and say nothing about health."""
    async with RedisLink(valkey.valkey_url, call_timeout_s=2, connect_timeout_s=2) as link:
        kill(valkey, signal.SIGSTOP)
        try:
            crowd = [asyncio.create_task(link.call(get)) for _ in range(CALLS_AT_ONCE_MAX)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert link.awaited_count == CALLS_AT_ONCE_MAX
            with pytest.raises(RedisAway, match="too many"):
                await link.call(get)
        finally:
            kill(valkey, signal.SIGCONT)
        assert await asyncio.gather(*crowd) == [None] * CALLS_AT_ONCE_MAX


async def test_a_message_reaches_whoever_follows(redis_url: str) -> None:
    """Bytes in, the same bytes out; stopping ends the follower in the middle of its wait."""
    stop, taken_up, came = asyncio.Event(), asyncio.Event(), asyncio.Event()
    heard: list[bytes] = []

    def hear(message: bytes) -> None:
        heard.append(message)
        came.set()
        if message == b"bad":
            raise ValueError("a listener that fails")

    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as link:
        channel = f"voelgoed:test:{os.getpid()}"
        following = asyncio.create_task(link.follow(channel, hear, stop, on_gap=taken_up.set))
        await asyncio.wait_for(taken_up.wait(), WAIT_S)
        for message in (b"bad", b"\x00\xff"):
            came.clear()
            await link.publish(channel, message)
            await asyncio.wait_for(came.wait(), WAIT_S)
        stop.set()
        await asyncio.wait_for(following, WAIT_S)
        assert heard == [b"bad", b"\x00\xff"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_follower_comes_back_by_itself(
    valkey: Embedded, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the server died, or hung for longer than a ping may take, the channel is taken up again and says so."""
    monkeypatch.setattr(redis, "FOLLOW_QUIET_S", 0.1)
    stop, taken_up, came = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with RedisLink(valkey.valkey_url, call_timeout_s=2, connect_timeout_s=2) as link:
        following = asyncio.create_task(link.follow("c", lambda _message: came.set(), stop, on_gap=taken_up.set))
        await asyncio.wait_for(taken_up.wait(), WAIT_S)
        lost = asyncio.Event()
        monkeypatch.setattr(redis.log, "warning", lambda *_args, **_fields: lost.set())
        kill(valkey, number)
        taken_up.clear()
        await asyncio.wait_for(lost.wait(), WAIT_S)
        assert not following.done()
        if number == signal.SIGKILL:
            await wait_until_dead(valkey)
            await link.publish("c", b"into the void")
            await valkey._start_valkey()
        else:
            kill(valkey, signal.SIGCONT)
        await asyncio.wait_for(taken_up.wait(), WAIT_S)
        await link.publish("c", b"hello")
        await asyncio.wait_for(came.wait(), WAIT_S)
        stop.set()
        await asyncio.wait_for(following, WAIT_S)


async def test_publishing_never_raises(data_dir: Path) -> None:
    """Where there is no server, nobody hears it, and that is all."""
    async with RedisLink(f"unix://{data_dir}/none") as link:
        for _ in range(6):
            await link.publish("c", b"x")
        assert link.state is State.OPEN


async def test_a_follower_can_be_stopped_at_any_moment(redis_url: str) -> None:
    """The library swallows a cancellation that comes while it connects; a process must end all the same."""
    async with RedisLink(redis_url, connect_timeout_s=1, call_timeout_s=1) as link:
        for step in range(40):
            stop = asyncio.Event()
            following = asyncio.create_task(link.follow("c*", lambda _message: None, stop, is_pattern=step % 2 == 0))
            await asyncio.sleep(step * 0.0001)  # not a wait for anything: another moment of its beginning each time
            stop.set()
            await asyncio.wait_for(following, WAIT_S)
