"""Reading in tiers: the memory of this process, then Redis, then whoever knows; the upper two may vanish at any moment.

A value is right for as long as its version is the one that is asked for and its time has not run out. Invalidation
makes that faster; it is not what it rests on, because a message can be lost.
"""

import asyncio
import contextlib
import functools
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
from cachetools import TLRUCache

from voelgoed.redis import RedisAway, RedisLink
from voelgoed.telemetry import metrics

T = TypeVar("T")
Load = Callable[[], Awaitable[T]]

KEY_FORM: Final = re.compile(r"voelgoed:org:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:.+")
INVALIDATE_CHANNEL = "voelgoed:invalidate"
ENTRIES_MAX = 10_000
BYTES_MAX = 64 * 1024 * 1024
HOT_TTL_MAX_S = 30.0
"""How long another process may go on with an old value when the message about it was lost."""
FLIGHTS_MAX = 1_000
WRITES_MAX = 100
"""Writes to Redis under way. A slow Redis loses the ones beyond: the next reader's miss writes again."""


class Warm(msgspec.Struct, array_like=True):
    """What stands in Redis: the value, still encoded, behind the version it belongs to."""

    version: str
    value: msgspec.Raw


WARM: Final = msgspec.msgpack.Decoder(Warm)


@dataclass(frozen=True, slots=True)
class Hot:
    """What stands in memory. Everybody gets the same object, so it must be a value that nobody changes."""

    version: str
    kind: Any
    value: Any
    weight: float
    ttl_s: float


@dataclass(slots=True)
class Flight:
    """One load under way, for all who ask meanwhile; stale once its key was invalidated, and then not kept."""

    task: asyncio.Task[Any] | None = None
    is_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked for. `kind` is the type that the value has and that is built again from Redis."""

    key: str
    version: str
    ttl_s: float
    kind: Any
    is_hot_only: bool = False


@dataclass(slots=True, kw_only=True)
class Cache:
    """One per process."""

    link: RedisLink
    entries_max: int = ENTRIES_MAX
    bytes_max: int = BYTES_MAX
    hot_ttl_max_s: float = HOT_TTL_MAX_S
    clock: Callable[[], float] = time.monotonic
    _hot: TLRUCache[str, Hot, float] = field(init=False)
    _flights: dict[str, dict[tuple[str, Any], Flight]] = field(default_factory=dict, init=False)
    _writes: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        assert self.entries_max > 0
        assert self.bytes_max >= self.entries_max
        self._hot = TLRUCache(
            self.bytes_max,
            ttu=lambda _key, hot, now: now + hot.ttl_s,
            timer=self.clock,
            getsizeof=lambda hot: hot.weight,
        )

    async def get_or_load(
        self, key: str, version: str, ttl_s: float, load: Load[T], *, kind: type[T], is_hot_only: bool = False
    ) -> T:
        """The value of this key in this version: from memory, else from Redis, else from `load`, once for all who ask.

        `load` runs in a task of its own: a caller that is cancelled leaves the others their answer. What it raises
        reaches all of them and is not kept. `is_hot_only` leaves Redis out: for what is read anew every moment.
        """
        assert KEY_FORM.fullmatch(key), key
        assert ttl_s > 0
        hot = self._hot.get(key)
        if hot is not None and hot.version == version and hot.kind == kind:
            metrics.CACHE_LOOKUPS.labels("hot", "hit").inc()
            value: T = hot.value
            return value
        metrics.CACHE_LOOKUPS.labels("hot", "miss").inc()
        ask = Ask(key=key, version=version, ttl_s=ttl_s, kind=kind, is_hot_only=is_hot_only)
        return await self._join(ask, load)

    async def invalidate(self, *keys: str, then: Sequence[tuple[str, bytes]] = ()) -> None:
        """Forget keys: here at once, in Redis and in the other processes as far as Redis can be reached.

        `then` are messages to channels, sent behind it on the same way: whoever hears one finds the keys gone.
        """
        for key in keys:
            assert KEY_FORM.fullmatch(key), key
            self.drop(key)

        def tell(client: Any) -> Awaitable[list[object]]:
            pipeline = client.pipeline(transaction=False)
            pipeline.delete(*keys)
            for key in keys:
                pipeline.publish(INVALIDATE_CHANNEL, key.encode())
            for channel, message in then:
                pipeline.publish(channel, message)
            answers: Awaitable[list[object]] = pipeline.execute()
            return answers

        with contextlib.suppress(RedisAway):  # version and time remain
            await self.link.call(tell)

    def drop(self, key: str) -> None:
        """Forget a key in this process; loads under way still answer, but are not kept."""
        self._hot.pop(key, None)
        for flight in self._flights.pop(key, {}).values():
            flight.is_stale = True
        if write := self._writes.get(key):
            write.cancel()  # it would put the old value back

    def drop_all(self) -> None:
        """Forget everything: messages may have been missed."""
        self._hot.clear()
        for key in list(self._flights):
            self.drop(key)

    async def follow(self, stop: asyncio.Event) -> None:
        """Forget what other processes invalidate, until asked to stop."""
        await self.link.follow(
            INVALIDATE_CHANNEL, lambda key: self.drop(key.decode(errors="replace")), stop, on_gap=self.drop_all
        )

    async def settle(self) -> None:
        """Wait for the writes to Redis that are under way: before the link is closed."""
        await asyncio.gather(*self._writes.values(), return_exceptions=True)

    async def _join(self, ask: Ask, load: Load[T]) -> T:
        """Take the flight that is under way, or start one."""
        flights = self._flights.setdefault(ask.key, {})
        flight = flights.get(same := (ask.version, ask.kind))
        if flight is None:
            flight = Flight()
            if len(self._flights) > FLIGHTS_MAX:
                self._flights.pop(ask.key, None)
                return await self._find(ask, load, flight)
            flights[same] = flight
            flight.task = asyncio.create_task(self._find(ask, load, flight), name="cache load")
            flight.task.add_done_callback(functools.partial(self._landed, ask.key, same, flight))
        assert flight.task is not None
        value: T = await asyncio.shield(flight.task)
        return value

    def _landed(self, key: str, same: tuple[str, Any], flight: Flight, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # seen: whoever waited has it, and perhaps nobody does any more
        flights = self._flights.get(key)
        if flights is not None and flights.get(same) is flight:
            del flights[same]
            if not flights:
                del self._flights[key]

    async def _find(self, ask: Ask, load: Load[T], flight: Flight) -> T:
        found = None if ask.is_hot_only else await self._read_warm(ask)
        if found is not None:
            value, size = found
            metrics.CACHE_LOOKUPS.labels("warm", "hit").inc()
            self._keep_hot(ask, value, size, flight)
            kept: T = value
            return kept
        loaded = await load()
        encoded = msgspec.msgpack.encode(loaded)
        self._keep_hot(ask, loaded, len(encoded), flight)
        if not ask.is_hot_only:
            self._keep_warm(ask, encoded, flight)
        return loaded

    async def _read_warm(self, ask: Ask) -> tuple[Any, int] | None:
        """The value and its size as it stands in Redis; None when it is not there, not this version or not whole."""
        try:
            stored = await self.link.call(lambda client: client.get(ask.key))
        except RedisAway:
            metrics.CACHE_LOOKUPS.labels("warm", "away").inc()
            return None
        outcome = "miss"
        if stored is not None:
            assert isinstance(stored, bytes), "the client decodes nothing"
            try:
                warm = WARM.decode(stored)
                if warm.version == ask.version:
                    return _decoder(ask.kind).decode(warm.value), len(stored)
            except (msgspec.DecodeError, TypeError, ValueError):
                outcome = "broken"
        metrics.CACHE_LOOKUPS.labels("warm", outcome).inc()
        return None

    def _keep_hot(self, ask: Ask, value: Any, size: int, flight: Flight) -> None:
        if flight.is_stale or size > self.bytes_max:
            return
        # No entry weighs less than its share, so that the bytes bound the number of entries as well.
        weight = max(size, self.bytes_max / self.entries_max)
        ttl_s = min(ask.ttl_s, self.hot_ttl_max_s)
        self._hot[ask.key] = Hot(version=ask.version, kind=ask.kind, value=value, weight=weight, ttl_s=ttl_s)

    def _keep_warm(self, ask: Ask, encoded: bytes, flight: Flight) -> None:
        """Write to Redis behind the caller's back; nobody waits for it."""
        if flight.is_stale or ask.key in self._writes or len(self._writes) >= WRITES_MAX:
            return
        task = asyncio.create_task(self._write(ask, encoded), name="cache write")
        self._writes[ask.key] = task
        task.add_done_callback(lambda _done: self._writes.pop(ask.key, None))

    async def _write(self, ask: Ask, encoded: bytes) -> None:
        stored = msgspec.msgpack.encode(Warm(ask.version, msgspec.Raw(encoded)))
        ttl_ms = max(1, int(ask.ttl_s * 1000))
        with contextlib.suppress(RedisAway):  # counted by the link
            await self.link.call(lambda client: client.set(ask.key, stored, px=ttl_ms), is_awaited=False)


@functools.lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)
