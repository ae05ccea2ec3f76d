"""Limits on password guesses, new accounts and password resets. They are stricter while Redis is unavailable."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from cachetools import TTLCache

from voelgoed.errors import DomainError, Kind
from voelgoed.redis import RedisLink
from voelgoed.telemetry import metrics
from voelgoed.throttle import Throttle

QUARTER_HOUR_S = 900
HOUR_S = 3600
MINUTE_S = 60
KEYS_MAX = 100_000
FAILURES_PER_ACCOUNT = 10
FAILURES_PER_NETWORK = 1_000  # many people may share a network; the accounts have limits of their own
AT_ACCOUNT_MAX = 8
RESETS_PER_ACCOUNT = 5
RESETS_PER_NETWORK = 60


class RateLimited(DomainError):
    """Too often in too short a time."""

    kind = Kind.LIMITED
    code = "rate_limited"
    message = "Too many tries. Wait a little, then try again."


class Guesses:
    """Counts wrong guesses only, so that signing in often is not punished.

    A guess is counted after it was wrong: one call to Redis. Who is over the limit is remembered here and refused
    before the next one; another process learns it from its own first count. So all have the limit plus a guess each.
    """

    def __init__(self, throttle: Throttle, *, window_s: int) -> None:
        self._throttle = throttle
        self._blocked: TTLCache[str, float] = TTLCache(KEYS_MAX, ttl=window_s)

    def refuse_blocked(self, key: str) -> None:
        """Refuse whoever is known to be over the limit, without asking anybody."""
        if (until := self._blocked.get(key, 0.0)) > time.monotonic():
            metrics.LOGIN_ATTEMPTS.labels("blocked").inc()
            raise RateLimited(retry_after_s=max(1, round(until - time.monotonic())))

    async def count(self, key: str) -> None:
        """Count a wrong guess; the one that goes over the limit is refused as such."""
        hit = await self._throttle.hit(key)
        if not hit.allowed:
            self._blocked[key] = time.monotonic() + hit.retry_after_s
            raise RateLimited(retry_after_s=hit.retry_after_s)


class LocalCount:
    """A limit of this process alone: it guards the process's own work, and needs nobody else to be right."""

    def __init__(self, *, limit: int, window_s: int) -> None:
        self._limit, self._window_s = limit, window_s
        self._counts: TTLCache[str, list[float]] = TTLCache(KEYS_MAX, ttl=window_s)

    def refuse_blocked(self, key: str) -> None:
        times = self._counts.get(key, [])
        if len(times) >= self._limit:
            raise RateLimited(retry_after_s=max(1, round(times[0] + self._window_s - time.monotonic())))

    def count(self, key: str) -> None:
        """Count within the window that the first one opened: setting the key anew would open it again."""
        times = self._counts.setdefault(key, [])
        if len(times) < self._limit:
            times.append(time.monotonic())


class Turns:
    """One guess at an account at a time, so that many at once do not slip past the count."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._at_account: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def take(self, account: str) -> AsyncIterator[None]:
        """Wait until no other guess at the account runs. Refuse if too many wait already."""
        if self._at_account[account] >= AT_ACCOUNT_MAX:
            raise RateLimited(retry_after_s=1)
        self._at_account[account] += 1
        try:
            async with self._locks.setdefault(account, asyncio.Lock()):
                yield
        finally:
            self._at_account[account] -= 1
            if not self._at_account[account]:
                del self._at_account[account], self._locks[account]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """All limits of the front door."""

    guesses: Guesses
    guesses_here: LocalCount
    turns: Turns
    newcomers: Throttle
    resets: Throttle
    resets_here: LocalCount

    @classmethod
    def of(cls, link: RedisLink, *, newcomers_per_minute: int) -> Self:
        failures = Throttle(
            link, "sign_in", limit=FAILURES_PER_ACCOUNT, window_s=QUARTER_HOUR_S, local_limit=FAILURES_PER_ACCOUNT // 2
        )
        stricter = (newcomers_per_minute + 1) // 2
        return cls(
            guesses=Guesses(failures, window_s=QUARTER_HOUR_S),
            guesses_here=LocalCount(limit=FAILURES_PER_NETWORK, window_s=QUARTER_HOUR_S),
            turns=Turns(),
            newcomers=Throttle(link, "newcomer", limit=newcomers_per_minute, window_s=MINUTE_S, local_limit=stricter),
            resets=Throttle(link, "reset", limit=RESETS_PER_ACCOUNT, window_s=HOUR_S, local_limit=2),
            resets_here=LocalCount(limit=RESETS_PER_NETWORK, window_s=HOUR_S),
        )

    @contextlib.asynccontextmanager
    async def guess(self, account: str, network: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Admit one guess at a password. The caller awaits the function it gets if the guess was wrong."""
        self.guesses_here.refuse_blocked(network)
        self.guesses.refuse_blocked(account)
        async with self.turns.take(account):
            self.guesses.refuse_blocked(account)  # those before us may have used it up

            async def was_wrong() -> None:
                self.guesses_here.count(network)
                await self.guesses.count(account)

            yield was_wrong


async def refuse_too_many(throttle: Throttle, key: str) -> None:
    """Count, and refuse when it is over the limit."""
    hit = await throttle.hit(key)
    if not hit.allowed:
        raise RateLimited(retry_after_s=hit.retry_after_s)
