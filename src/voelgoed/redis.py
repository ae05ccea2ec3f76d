"""The Redis client as this house uses it: short time-outs and no retries, because nothing may wait for Redis."""

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

CONNECT_TIMEOUT_S = 0.1
CALL_TIMEOUT_S = 0.15


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
