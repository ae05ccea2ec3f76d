"""What a process has in its hands. Built once at start, closed in reverse order."""

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
import uvloop

from voelgoed import config, schema
from voelgoed.accounts.attempts import Attempts
from voelgoed.accounts.mail import ConsoleMailer, Mailer
from voelgoed.accounts.passwords import Passwords
from voelgoed.accounts.sessions import Sessions
from voelgoed.accounts.signing import Door
from voelgoed.cache import Cache
from voelgoed.config import Settings
from voelgoed.db import Database, check_server
from voelgoed.errors import StartRefused
from voelgoed.events.catalogue import Catalogue
from voelgoed.holds.availability import MB, Availability
from voelgoed.holds.clock_guard import ClockGuard
from voelgoed.holds.failures import Failures
from voelgoed.holds.lane import CONNECTIONS, SETTINGS, Lanes
from voelgoed.holds.projection import Projection
from voelgoed.realtime.feed import Feed
from voelgoed.realtime.maps import Maps
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio
from voelgoed.telemetry import log

T = TypeVar("T")

REFUSED = 2
"""The exit code of a process that would not start."""

SECRET_KEY_NAME = "secret.key"  # noqa: S105 - the name of a file
SECRET_KEY_BYTES_MIN = 32
COLLECT_EVERY = 10_000
"""So many objects more than were given up, before anybody looks for circles: one or two MB of them."""
NEVER = 2**31 - 1
COLLECT_OLD_S = 600.0
"""At the latest after so long somebody looks for circles among the old, though a sale stands still meanwhile: half a
second for a million objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Handed to every edge; nothing below the edges knows it."""

    settings: Settings
    db: Database
    clock: ClockGuard
    redis: RedisLink
    cache: Cache
    sessions: Sessions
    door: Door
    mailer: Mailer
    catalogue: Catalogue
    feed: Feed
    maps: Maps
    studio: Studio
    lanes: Lanes
    failures: Failures
    availability: Availability
    projection: Projection


@contextlib.asynccontextmanager
async def open_services(settings: Settings, *, process: str) -> AsyncIterator[Services]:
    """Connect to everything; refuse to start on a server that is unsafe or a schema that is behind.

    Redis is not waited for: the product works without it.
    """
    assert settings.database_url is not None, "the parent process fills in the embedded server's address"
    assert settings.redis_url is not None
    secret_key = read_secret_key(settings)
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
        link = RedisLink(
            settings.redis_url.get_secret_value(),
            connect_timeout_s=settings.redis_connect_timeout_s,
            call_timeout_s=settings.redis_call_timeout_s,
            probe_every_s=settings.redis_probe_s,
        )
        async with link, _lane_connections(settings, process) as lane_db:
            services = build_services(settings, db, link, secret_key, lane_db)
            await services.clock.tick()
            try:
                yield services
            finally:
                await services.lanes.close()
                await services.failures.flush()
                services.door.passwords.close()
                await services.availability.close()
                await services.projection.settle()
                await services.cache.settle()
    finally:
        await db.close()


@contextlib.asynccontextmanager
async def _lane_connections(settings: Settings, process: str) -> AsyncIterator[Database]:
    """The few connections by which asks for holds are committed; nobody else uses them."""
    assert settings.database_url is not None
    db = await Database.open(
        settings.database_url.get_secret_value(),
        size=CONNECTIONS,
        acquire_timeout_s=settings.acquire_timeout_s,
        application_name=f"voelgoed {process} lanes",
        settings=SETTINGS,
    )
    try:
        yield db
    finally:
        await db.close()


def build_services(
    settings: Settings,
    db: Database,
    link: RedisLink,
    secret_key: bytes,
    lane_db: Database | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Services:
    """Put together what stands on the two servers; lanes without connections of their own use everybody's."""
    sessions = Sessions(db, link, idle_s=settings.session_idle_s, trust_s=settings.session_trust_s)
    attempts = Attempts.of(link, newcomers_per_minute=settings.guests_per_ip_per_minute)
    passwords = Passwords(
        waiting_max=settings.passwords_waiting, waiting_per_network_max=settings.passwords_waiting_per_network
    )
    door = Door(db=db, sessions=sessions, passwords=passwords, attempts=attempts, secret_key=secret_key)
    cache = Cache(link=link)
    guard = ClockGuard(db)
    db.clock_latest = guard.latest
    if lane_db:
        lane_db.clock_latest = guard.latest
    failures = Failures(db)
    projection = Projection(link)
    availability = Availability(
        db, projection, bytes_max=settings.hot_map_mb * MB, clock=clock, expired_by=guard.expired_by
    )
    catalogue = Catalogue(db, cache)
    return Services(
        settings=settings,
        db=db,
        clock=guard,
        redis=link,
        cache=cache,
        sessions=sessions,
        door=door,
        mailer=ConsoleMailer(),
        catalogue=catalogue,
        feed=Feed(db, link, availability),
        maps=Maps(availability, catalogue, viewers_per_network_max=settings.streams_per_ip),
        studio=Studio(db, cache),
        lanes=Lanes(lane_db or db, failures, availability),
        failures=failures,
        availability=availability,
        projection=projection,
    )


def read_secret_key(settings: Settings) -> bytes:
    """The installation's secret key; the parent process made it when there was none."""
    path = settings.secret_key_file or settings.data_dir / SECRET_KEY_NAME
    try:
        key = path.read_bytes()
    except OSError as failed:
        raise StartRefused(
            f"cannot read the secret key: {failed}", hint="set VOELGOED_SECRET_KEY_FILE, or use: voelgoed serve"
        ) from None
    if len(key) < SECRET_KEY_BYTES_MIN:
        raise StartRefused(f"{path} is too short: a secret key has at least {SECRET_KEY_BYTES_MIN} bytes")
    return key


def run_child(process: str, main: Callable[[Settings], Coroutine[Any, Any, None]]) -> None:
    """Be a process of the tree: settings, logs, event loop; a refusal to start is logged, not thrown."""
    try:
        settings = config.load()
        log.configure(settings.log_level, settings.log_format, process=process)
        run_to_end(main(settings))
    except StartRefused as refused:
        structlog.get_logger(__name__).error("start_refused", reason=str(refused), hint=refused.hint)
        sys.exit(REFUSED)


def spare_the_collector() -> None:
    """What is there after the start stays, and does not have to be looked through again and again.

    Requests make few circles: to look for them every 700 objects, through everything that was ever made, took a fifth
    of a process's time. The old (what was under way when somebody looked at the young) are for `collecting`: a rush of
    new people makes so many that to look through them took a fifth as well, a quarter of a second at once.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, NEVER, NEVER)


def collecting(is_busy: Callable[[], bool]) -> Callable[[], Awaitable[None]]:
    """How to look for circles among the old every so often: when it is quiet, or when it has not been for long."""
    looked_at = time.monotonic()

    async def tick() -> None:
        nonlocal looked_at
        if is_busy() and time.monotonic() - looked_at < COLLECT_OLD_S:
            return
        looked_at = time.monotonic()
        gc.collect()

    return tick


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run one coroutine on a loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
