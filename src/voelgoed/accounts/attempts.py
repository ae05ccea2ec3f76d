"""How often somebody may try: limits on guesses and on newcomers, which get stricter when Redis is away."""

import time
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
FAILURES_PER_IP = 100
RESETS_PER_ACCOUNT = 5


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
        self._counts: TTLCache[str, list[None]] = TTLCache(KEYS_MAX, ttl=window_s)

    def refuse_blocked(self, key: str) -> None:
        if len(self._counts.get(key, ())) >= self._limit:
            raise RateLimited(retry_after_s=self._window_s)

    def count(self, key: str) -> None:
        """Count within the window that the first one opened: setting the key anew would open it again."""
        self._counts.setdefault(key, []).append(None)


@dataclass(frozen=True, slots=True)
class Attempts:
    """All limits of the front door."""

    sign_ins: Guesses
    sign_ins_here: LocalCount
    newcomers: Throttle
    resets: Throttle

    @classmethod
    def of(cls, link: RedisLink, *, newcomers_per_minute: int) -> Self:
        failures = Throttle(
            link, "sign_in", limit=FAILURES_PER_ACCOUNT, window_s=QUARTER_HOUR_S, local_limit=FAILURES_PER_ACCOUNT // 2
        )
        stricter = (newcomers_per_minute + 1) // 2
        return cls(
            sign_ins=Guesses(failures, window_s=QUARTER_HOUR_S),
            sign_ins_here=LocalCount(limit=FAILURES_PER_IP, window_s=QUARTER_HOUR_S),
            newcomers=Throttle(link, "newcomer", limit=newcomers_per_minute, window_s=MINUTE_S, local_limit=stricter),
            resets=Throttle(link, "reset", limit=RESETS_PER_ACCOUNT, window_s=HOUR_S, local_limit=2),
        )


async def refuse_too_many(throttle: Throttle, key: str) -> None:
    """Count, and refuse when it is over the limit."""
    hit = await throttle.hit(key)
    if not hit.allowed:
        raise RateLimited(retry_after_s=hit.retry_after_s)
