"""The worker process: every loop and every job of the installation, in one process, until it is asked to stop."""

import asyncio
from collections.abc import Sequence

import structlog

from voelgoed.config import Settings
from voelgoed.events.model import CLOCK
from voelgoed.holds import registry
from voelgoed.holds.following import PACE_S, Dispatcher
from voelgoed.jobs.reactions import Reactor
from voelgoed.jobs.runner import Runner
from voelgoed.journal import partitions
from voelgoed.lifeline import Lifeline, stop_signals
from voelgoed.loop import Loop
from voelgoed.wiring import Services, collecting, open_services, spare_the_collector

log = structlog.get_logger(__name__)

HOUR_S = 3600.0
MINUTE_S = 60.0
REAP_S = 2.0


async def reap(services: Services) -> None:
    """Tidy lapsed holds away."""
    await registry.reap(services.db, by=CLOCK)


def loops(services: Services) -> Sequence[Loop]:
    """Every duty of the worker."""
    reactor = Reactor(services.db)
    dispatcher = Dispatcher(services.db, services.availability, services.projection)

    async def store_occupancy() -> None:
        await dispatcher.store_occupancy()

    return [
        Loop(name="tell_places", tick=dispatcher.tick, pace_s=PACE_S),
        Loop(name="store_occupancy", tick=store_occupancy, pace_s=MINUTE_S),
        Loop(name="guard_clock", tick=services.clock.tick, pace_s=1.0),
        Loop(name="journal_partitions", tick=lambda: partitions.keep_ahead(services.db), pace_s=6 * HOUR_S),
        Loop(name="reap_holds", tick=lambda: reap(services), pace_s=REAP_S),
        Loop(name="follow_reactions", tick=reactor.tick, pace_s=1.0),
        Loop(name="collect_old", tick=collecting(lambda: False), pace_s=MINUTE_S),
    ]


def jobs_url(settings: Settings) -> str:
    """Where the job queue connects: directly, because it listens, which a pooler in between would not carry."""
    url = settings.jobs_database_url or settings.database_url
    assert url is not None
    return url.get_secret_value()


async def run(settings: Settings) -> None:
    """Run until SIGTERM, SIGINT or the end of the parent. Any number of workers may run beside each other."""
    lifeline = Lifeline()
    lifeline.hold()
    stop = stop_signals()
    async with open_services(settings, process="worker") as services, asyncio.TaskGroup() as running:
        for loop in loops(services):
            running.create_task(loop.run(stop), name=loop.name)
        running.create_task(Runner(jobs_url(settings), services).run(stop), name="jobs")
        spare_the_collector()
        lifeline.say_ready()
        log.info("worker_ready")
        await stop.wait()
    log.info("worker_stopped")
