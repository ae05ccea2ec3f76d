"""The worker process: every loop of the installation, in one process, until it is asked to stop."""

import asyncio
from collections.abc import Sequence

import structlog

from voelgoed.config import Settings
from voelgoed.jobs.loop import Loop
from voelgoed.journal import partitions
from voelgoed.lifeline import Lifeline, stop_signals
from voelgoed.wiring import Services, open_services

log = structlog.get_logger(__name__)

HOUR_S = 3600.0


def loops(services: Services) -> Sequence[Loop]:
    """Every duty of the worker."""
    return [
        Loop(name="journal_partitions", tick=lambda: partitions.keep_ahead(services.db), pace_s=6 * HOUR_S),
    ]


async def run(settings: Settings) -> None:
    """Run the loops until SIGTERM, SIGINT or the end of the parent."""
    lifeline = Lifeline()
    lifeline.hold()
    stop = stop_signals()
    async with open_services(settings, process="worker") as services, asyncio.TaskGroup() as running:
        for loop in loops(services):
            running.create_task(loop.run(stop), name=loop.name)
        lifeline.say_ready()
        log.info("worker_ready")
        await stop.wait()
    log.info("worker_stopped")
