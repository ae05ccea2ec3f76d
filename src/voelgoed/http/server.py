"""A web process: one event loop with the sockets on it, stopped in under a second even while streams are open.

Several processes share the port by SO_REUSEPORT; the parent keeps strangers off it.
"""

import asyncio
import contextlib
import resource
from collections.abc import Callable, Sequence

import structlog

from voelgoed.config import Settings
from voelgoed.demo.control import Control
from voelgoed.holds.following import Follower
from voelgoed.http.app import create_app
from voelgoed.http.exchange import Handler, TurnAway
from voelgoed.http.wire import House
from voelgoed.lifeline import Lifeline, stop_signals
from voelgoed.loop import Loop
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services, collecting, open_services, spare_the_collector

log = structlog.get_logger(__name__)

LAST_BYTES_S = 0.25
MINUTE_S = 60.0
REFUSALS_S = 0.25
METRICS_S = 0.25


async def run(settings: Settings) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent."""
    lifeline = Lifeline()
    lifeline.hold()
    _allow_open_files()
    closing = stop_signals()
    async with open_services(settings, process="web") as services, asyncio.TaskGroup() as beside:
        for loop in loops(services):
            beside.create_task(loop.run(closing), name=loop.name)
        beside.create_task(services.sessions.follow_revocations(closing))
        beside.create_task(services.cache.follow(closing))
        beside.create_task(services.feed.run(closing))
        beside.create_task(services.maps.run(closing))
        follower = Follower(services.db, services.redis, services.availability, services.projection)
        beside.create_task(follower.run(closing))
        edge = create_app(services, closing, Control.from_environment())
        spare_the_collector()
        try:
            await serve(
                edge.take,
                settings,
                closing,
                turn_away=edge.turn_away,
                on_ready=lifeline.say_ready,
                on_closing=edge.stop_reading,
            )
        finally:
            closing.set()
            edge.close()
            await services.sessions.flush()
            metrics.settle()
    log.info("web_stopped")


def _allow_open_files() -> None:
    """As many as the system lets us have: every browser that looks at a live map is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def loops(services: Services) -> Sequence[Loop]:
    """What a web process does beside serving."""

    async def flush_sessions() -> None:
        await services.sessions.flush()

    async def settle_metrics() -> None:
        metrics.settle()

    return [
        Loop(name="guard_clock", tick=services.clock.tick, pace_s=1.0),
        Loop(name="session_flush", tick=flush_sessions, pace_s=MINUTE_S),
        Loop(name="refusal_flush", tick=services.failures.flush, pace_s=REFUSALS_S),
        Loop(name="metrics_settle", tick=settle_metrics, pace_s=METRICS_S),
        Loop(name="collect_old", tick=collecting(services.lanes.is_selling), pace_s=MINUTE_S),
    ]


async def serve(
    handler: Handler,
    settings: Settings,
    closing: asyncio.Event,
    *,
    turn_away: TurnAway = lambda _: None,
    on_ready: Callable[[], None],
    on_closing: Callable[[], None] = lambda: None,
) -> None:
    """Serve until `closing` is set; streams watch the same event and end themselves."""
    house = House(handler, turn_away)
    await house.open(settings.host, settings.port)
    on_ready()
    log.info("web_ready", host=settings.host, port=settings.port)
    await closing.wait()
    on_closing()
    house.stop()
    if not await _finished(house, grace_s=settings.stop_grace_s):
        log.warning("web_stopped_late", grace_s=settings.stop_grace_s)
    await house.close()


async def _finished(house: House, *, grace_s: float) -> bool:
    """Wait for our answers, and a moment for their last bytes; not for those who ask for nothing."""
    try:
        await asyncio.wait_for(house.quiet.wait(), grace_s)
    except TimeoutError:
        return False
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(house.empty.wait(), LAST_BYTES_S)
    return True
