"""What happens when PostgreSQL's clock jumps: a step ahead must not make everybody's holds lapse at once.

The worker compares that clock with its own, which only goes forward. A step of more than a few seconds is written down,
and for as long as it was nothing is taken over and nothing tidied away (holds/functions.sql).
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from voelgoed.db import Database
from voelgoed.holds import store
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

STEP: Final = timedelta(seconds=5)


def step_between(
    before: tuple[datetime, float], after: tuple[datetime, float], *, slack_s: float = 0.0
) -> timedelta | None:
    """By how much a clock has jumped between two looks at it, beyond the time that has passed; None when it has not.

    `slack_s` is how long both looks took: within that nobody can say when the clock was read.
    """
    passed = timedelta(seconds=after[1] - before[1])
    step = (after[0] - before[0]) - passed
    return step if abs(step) > STEP + timedelta(seconds=slack_s) else None


class ClockGuard:
    """One in each worker; several may look, the latest end counts."""

    def __init__(self, db: Database, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._db, self._clock = db, clock
        self._seen: tuple[datetime, float] | None = None
        self._took_s = 0.0

    async def tick(self) -> None:
        """Look at the clock; when it has jumped, say so to everybody who decides what has lapsed."""
        began = self._clock()
        async with self._db.system_transaction() as conn:
            seen = await store.read_clock(conn), self._clock()
            before, self._seen = self._seen, seen
            took_s, self._took_s = self._took_s, seen[1] - began
            step = step_between(before, seen, slack_s=took_s + self._took_s) if before else None
            if step is None:
                return
            until = await store.guard_clock(conn, step)
        metrics.CLOCK_STEPS.labels("ahead" if step > timedelta() else "back").inc()
        log.error("clock_stepped", seconds=step.total_seconds(), lapses_from=until.isoformat())
