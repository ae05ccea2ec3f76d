"""A throttle: so many tries of one key in so many seconds, counted by Redis, or more strictly here while it is away.

The window moves: at no moment have more than `limit` tries been allowed within the last `window_s` seconds.
"""

import hashlib
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from voelgoed.redis import RedisAway, RedisLink
from voelgoed.telemetry import metrics

KEY_PREFIX = "voelgoed:throttle:"
LOCAL_KEYS_MAX = 20_000
LIMIT_MAX = 10_000
"""A key keeps the moment of each allowed try, so a limit is also a length."""

# The newest `limit` allowed tries, newest first; the last of them decides. Redis's own clock: the processes' differ.
# One EVAL and not EVALSHA: it is always one round trip, also after Redis has forgotten its scripts.
TRY: Final = """
local limit, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now_ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local oldest_ms = tonumber(redis.call('LINDEX', KEYS[1], limit - 1) or nil)
if oldest_ms and oldest_ms + window_ms > now_ms then
  return oldest_ms + window_ms - now_ms
end
redis.call('LPUSH', KEYS[1], string.format('%.0f', now_ms))
redis.call('LTRIM', KEYS[1], 0, limit - 1)
redis.call('PEXPIRE', KEYS[1], window_ms)
return 0
"""


@dataclass(frozen=True, slots=True)
class Hit:
    """Whether this try may go on, and if not, after how many seconds another may."""

    allowed: bool
    retry_after_s: int


ALLOWED: Final = Hit(allowed=True, retry_after_s=0)


class Throttle:
    """One rule under one name. `limit` 0 switches it off."""

    def __init__(
        self,
        link: RedisLink,
        name: str,
        *,
        limit: int,
        window_s: int,
        local_limit: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert 0 <= limit <= LIMIT_MAX
        assert window_s > 0
        assert limit == 0 or 0 < local_limit <= limit, "what one process allows alone must be the stricter"
        self._link = link
        self._name = name
        self._limit = limit
        self._window_s = window_s
        self._local_limit = local_limit
        self._clock = clock
        self._local: LRUCache[str, deque[float]] = LRUCache(LOCAL_KEYS_MAX)

    async def hit(self, key: str) -> Hit:
        """Count a try of this key. One call to Redis; a refused try is not counted, so waiting always helps."""
        if self._limit == 0:
            return ALLOWED
        # Hashed: an address of a person or a machine is not to be read in Redis.
        place = f"{KEY_PREFIX}{self._name}:{hashlib.sha256(key.encode()).hexdigest()}"
        try:
            wait_ms = await self._link.call(
                lambda client: client.eval(TRY, 1, place, str(self._limit), str(self._window_s * 1000))
            )
        except RedisAway:
            return self._verdict(self._hit_here(place), kept_in="memory")
        return self._verdict(int(wait_ms) / 1000, kept_in="redis")

    def _hit_here(self, place: str) -> float:
        """The same rule in this process's memory; how long to wait. The keys unused for longest are forgotten."""
        now = self._clock()
        tries = self._local.setdefault(place, deque(maxlen=self._local_limit))
        if len(tries) == self._local_limit and (wait_s := tries[0] + self._window_s - now) > 0:
            return wait_s
        tries.append(now)
        return 0.0

    def _verdict(self, wait_s: float, *, kept_in: str) -> Hit:
        if wait_s <= 0:
            return ALLOWED
        metrics.THROTTLE_REFUSALS.labels(self._name, kept_in).inc()
        return Hit(allowed=False, retry_after_s=math.ceil(wait_s))
