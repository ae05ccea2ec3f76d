"""Redis as this house uses it: short time-outs, no retries, a breaker, because nothing may wait for Redis."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self, TypeVar

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    RedisError,
    ResponseError,
    TimeoutError as RedisTimeoutError,
)

from voelgoed.breaker import PROBE_EVERY_S, Breaker, CircuitOpen, State
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)
T = TypeVar("T")

CONNECT_TIMEOUT_S = 0.1
CALL_TIMEOUT_S = 0.15
CALLS_AT_ONCE_MAX = 64
TELLING_MAX = 256
"""Each is a connection. A Redis that answers never has so many waiting; one that does not shall get no more."""

FOLLOW_PAUSE_FIRST_S = 0.1
FOLLOW_PAUSE_LONGEST_S = 5.0
FOLLOW_QUIET_S = 5.0
"""A follower that has heard nothing for so long asks whether the server is there; twice so long, and it is not."""
CANCEL_AGAIN_S = 0.05

GAUGE: Final = {State.CLOSED: 0, State.HALF_OPEN: 1, State.OPEN: 2}


class RedisAway(Exception):
    """No answer from Redis, or not asked because there would be none. Every caller has a way to go on without."""


class RedisRefused(RedisAway):
    """Redis is there and would not do this one thing: what stands under a key is not what it should be."""


class _Broken(Exception):
    """A call that says Redis is not well."""


def connect(url: str, *, connect_timeout_s: float = CONNECT_TIMEOUT_S, call_timeout_s: float = CALL_TIMEOUT_S) -> Redis:
    """A client that has not connected yet. With the library's own retries a dead Redis costs five seconds a call."""
    return Redis.from_url(
        url,
        socket_connect_timeout=connect_timeout_s,
        socket_timeout=call_timeout_s,
        retry=Retry(NoBackoff(), 0),
    )


async def ping(url: str) -> str | None:
    """Ask once whether a server answers at the address; None when it does, else why not."""
    async with connect(url) as client:
        return await why_away(client)


async def why_away(client: Redis) -> str | None:
    try:
        await client.ping()
    except (OSError, RedisError, TimeoutError) as failed:
        return type(failed).__name__
    return None


class RedisLink:
    """The way to Redis for everything that serves a request: one hard limit per call, and none while it is away."""

    def __init__(
        self,
        url: str,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        probe_every_s: float = PROBE_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert connect_timeout_s > 0
        assert call_timeout_s > 0
        self._url = url
        self._connect_timeout_s = connect_timeout_s
        self._call_timeout_s = call_timeout_s
        self._client = connect(url, connect_timeout_s=connect_timeout_s, call_timeout_s=call_timeout_s)
        self._breaker = Breaker(
            trips_on=(_Broken,), probe_every_s=probe_every_s, clock=clock, on_change=self._breaker_changed
        )
        self._under_way_count = 0
        self._telling: set[asyncio.Task[None]] = set()
        self.awaited_count = 0
        self.background_count = 0
        metrics.BREAKER_STATE.labels("redis").set(GAUGE[State.CLOSED])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; a server that does not answer is not waited for."""
        if self._telling:
            await asyncio.wait(self._telling, timeout=self._call_timeout_s)
        with contextlib.suppress(OSError, RedisError, TimeoutError):
            async with asyncio.timeout(self._call_timeout_s):
                await self._client.aclose()

    @property
    def client(self) -> Redis:
        """The bare client, for looking at the server itself; no request may wait for it."""
        return self._client

    @property
    def state(self) -> State:
        return self._breaker.state

    async def call(self, work: Callable[[Redis], Awaitable[T]], *, is_awaited: bool = True) -> T:
        """Ask Redis once. Raises `RedisAway`: within the limit when it fails, at once while the breaker is open.

        `is_awaited` is False for work behind the back of a request, which is counted apart.
        """
        if self._under_way_count >= CALLS_AT_ONCE_MAX:
            metrics.REDIS_REFUSALS.labels("crowded").inc()
            raise RedisAway("too many calls are under way")
        try:
            return await self._breaker.call(lambda: self._limited(work, is_awaited=is_awaited))
        except CircuitOpen as refused:
            metrics.REDIS_REFUSALS.labels("open").inc()
            raise RedisAway(str(refused)) from None
        except _Broken as broken:
            raise RedisAway(str(broken)) from broken.__cause__

    async def publish(self, channel: str, message: bytes, *, is_awaited: bool = True) -> None:
        """Tell whoever follows the channel, if Redis is there; never raises."""
        with contextlib.suppress(RedisAway):
            await self.call(lambda client: client.publish(channel, message), is_awaited=is_awaited)

    def tell(self, channel: str, message: bytes) -> None:
        """Publish without making anybody wait. In a crowd a message is dropped: who follows must not depend on it."""
        if len(self._telling) < TELLING_MAX:
            task = asyncio.create_task(self.publish(channel, message, is_awaited=False))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def follow(
        self,
        channel: str,
        on_message: Callable[[bytes], None],
        stop: asyncio.Event,
        *,
        on_gap: Callable[[], None] = lambda: None,
        is_pattern: bool = False,
    ) -> None:
        """Hand over every message of a channel, or of all that fit a pattern, until asked to stop.

        It has a connection of its own. Messages sent while Redis was away are gone. `on_gap` is called whenever the
        channel has been taken up, the first time as well, so that whoever relies on messages can forget what it knew.
        """
        stopped = asyncio.ensure_future(stop.wait())
        follower = _Follower(
            self._url, channel, on_message, on_gap, is_pattern=is_pattern, connect_timeout_s=self._connect_timeout_s
        )
        following = asyncio.ensure_future(follower.run())
        try:
            await asyncio.wait({stopped, following}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()  # it never ends but by a mistake of ours, which must be seen
        finally:
            stopped.cancel()
            while not following.done():  # the library swallows a cancellation that comes while it connects
                following.cancel()
                await asyncio.wait({following}, timeout=CANCEL_AGAIN_S)
            await asyncio.gather(stopped, following, return_exceptions=True)

    async def _limited(self, work: Callable[[Redis], Awaitable[T]], *, is_awaited: bool) -> T:
        """Await one call within the hard limit; whatever the library does meanwhile, nobody waits longer."""
        if is_awaited:
            self.awaited_count += 1
        else:
            self.background_count += 1
        self._under_way_count += 1
        metrics.REDIS_CALLS.inc()
        try:
            async with asyncio.timeout(self._call_timeout_s):
                return await work(self._client)
        except ResponseError as refused:
            # The server lives and has refused this one command: that is ours to mend, not a reason to leave it alone.
            metrics.REDIS_FAILURES.labels("refused").inc()
            raise RedisRefused(f"refused: {type(refused).__name__}") from refused
        except (OSError, RedisError) as failed:  # OSError includes the time-out
            metrics.REDIS_FAILURES.labels(_reason(failed)).inc()
            raise _Broken(type(failed).__name__) from failed
        finally:
            self._under_way_count -= 1

    def _breaker_changed(self, state: State) -> None:
        metrics.BREAKER_STATE.labels("redis").set(GAUGE[state])
        if state is State.OPEN:
            log.warning("redis_away")
        elif state is State.CLOSED:
            log.info("redis_back")


class _Follower:
    """One channel, taken up again after every loss; the pause between tries grows to a limit."""

    def __init__(
        self,
        url: str,
        channel: str,
        on_message: Callable[[bytes], None],
        on_gap: Callable[[], None],
        *,
        is_pattern: bool,
        connect_timeout_s: float,
    ) -> None:
        self._url = url
        self._channel = channel
        self._on_message = on_message
        self._on_gap = on_gap
        self._is_pattern = is_pattern
        self._connect_timeout_s = connect_timeout_s
        self._pause_s = FOLLOW_PAUSE_FIRST_S
        self._is_lost = False

    async def run(self) -> None:
        while True:
            try:
                await self._listen()
            except (OSError, RedisError) as lost:
                if not self._is_lost:  # said once, not at every try
                    log.warning("redis_channel_lost", channel=self._channel, error=type(lost).__name__)
                    self._is_lost = True
            # Jitter: all processes have lost it at the same moment.
            await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            self._pause_s = min(2 * self._pause_s, FOLLOW_PAUSE_LONGEST_S)

    async def _listen(self) -> None:
        """Listen until the connection is lost, which is raised."""
        client = connect(self._url, connect_timeout_s=self._connect_timeout_s, call_timeout_s=FOLLOW_QUIET_S)
        async with client, client.pubsub() as channel:
            await (channel.psubscribe if self._is_pattern else channel.subscribe)(self._channel)
            is_asked = False
            while True:
                message = await self._next(channel)
                if message is None and is_asked:
                    raise TimeoutError("no answer to a ping")
                if message is None:
                    await channel.ping()
                is_asked = message is None

    async def _next(self, channel: PubSub) -> str | None:
        """Take one message and pass it on; its type, or None when it stayed quiet."""
        message = await channel.get_message(timeout=FOLLOW_QUIET_S)
        if message is None:
            return None
        try:
            if message["type"] in ("subscribe", "psubscribe"):
                self._is_lost, self._pause_s = False, FOLLOW_PAUSE_FIRST_S
                self._on_gap()
            elif message["type"] in ("message", "pmessage"):
                self._on_message(message["data"])
        except Exception as failed:
            log.exception("redis_message_failed", channel=self._channel, error=type(failed).__name__)
        return str(message["type"])


def _reason(failed: Exception) -> str:
    """Why there was no answer, in one of few words."""
    if isinstance(failed, (TimeoutError, RedisTimeoutError)):
        return "timeout"
    return "connection" if isinstance(failed, (OSError, RedisConnectionError)) else "broken"
