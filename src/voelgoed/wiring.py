"""What a process has in its hands: settings, database, Redis. Built once at start, closed in reverse order."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
import uvloop
from redis.asyncio import Redis

from voelgoed import config, redis, schema
from voelgoed.config import Settings
from voelgoed.db import Database, check_server
from voelgoed.errors import StartRefused
from voelgoed.telemetry import log

T = TypeVar("T")

REFUSED = 2
"""The exit code of a process that would not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Handed to every edge; nothing below the edges knows it."""

    settings: Settings
    db: Database
    redis: Redis


@contextlib.asynccontextmanager
async def open_services(settings: Settings, *, process: str) -> AsyncIterator[Services]:
    """Connect to everything; refuse to start on a server that is unsafe or a schema that is behind.

    Redis is not waited for: the product works without it.
    """
    assert settings.database_url is not None, "the parent process fills in the embedded server's address"
    assert settings.redis_url is not None
    db = await Database.open(
        settings.database_url.get_secret_value(),
        size=settings.pool_size,
        acquire_timeout_s=settings.acquire_timeout_s,
        command_timeout_s=settings.command_timeout_s,
        application_name=f"voelgoed {process}",
    )
    try:
        await check_server(db, unsafe_accepted=settings.unsafe_database)
        async with db.system_transaction() as conn:
            standing = await schema.status(conn)
        if not standing.is_current:
            raise StartRefused(
                f"the database schema is not current: {standing.summary}", hint="run: voelgoed db migrate"
            )
        async with redis.connect(
            settings.redis_url.get_secret_value(),
            connect_timeout_s=settings.redis_connect_timeout_s,
            call_timeout_s=settings.redis_call_timeout_s,
        ) as client:
            yield Services(settings=settings, db=db, redis=client)
    finally:
        await db.close()


def run_child(process: str, main: Callable[[Settings], Coroutine[Any, Any, None]]) -> None:
    """Be a process of the tree: settings, logs, event loop; a refusal to start is logged, not thrown."""
    settings = config.load()
    log.configure(settings.log_level, settings.log_format, process=process)
    try:
        run_to_end(main(settings))
    except StartRefused as refused:
        structlog.get_logger(__name__).error("start_refused", reason=str(refused), hint=refused.hint)
        sys.exit(REFUSED)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run one coroutine on a loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
