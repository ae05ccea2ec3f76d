"""Notice when PostgreSQL's clock jumps: a step ahead must not make every hold expire at once.

Each process compares that clock with its own monotonic one. Every call that decides whether a hold has expired carries
the latest time the process believes possible (`latest`), so a step is noticed inside the decision. A step of more than
a few seconds is also written down, and for as long as it was no hold expires (`lapse_clock` in functions.sql).
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import structlog

from voelgoed.db import Database
from voelgoed.holds import store
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

STEP: Final = timedelta(seconds=5)
NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Reading(NamedTuple):
    """A look at PostgreSQL's clock, and when it began and ended by the monotonic clock of this process."""

    shown: datetime
    began: float
    ended: float


def step_between(before: Reading, after: Reading) -> timedelta | None:
    """Return by how much the clock has jumped between two readings, beyond the time that passed; None if it has not.

    How long the readings took is allowed for, because the clock may have been read at any moment within them.
    """
    slack = timedelta(seconds=(before.ended - before.began) + (after.ended - after.began))
    step = (after.shown - before.shown) - timedelta(seconds=after.ended - before.ended)
    return step if abs(step) > STEP + slack else None


class ClockGuard:
    """What one process knows of PostgreSQL's clock. Several processes may look; the latest end counts."""

    def __init__(self, db: Database, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._db, self._clock = db, clock
        self._seen: Reading | None = None
        self._lapses_from = NEVER

    def now(self) -> datetime:
        """Return PostgreSQL's time as this process expects it: unmoved by a step, never ahead of the real one."""
        if self._seen is None:
            return datetime.now(UTC)
        return self._seen.shown + timedelta(seconds=self._clock() - self._seen.ended)

    def expired_by(self) -> datetime:
        """Return the time up to which holds have expired: now, or `NEVER` while no hold expires after a step.

        The map follows this where PostgreSQL follows `lapse_clock`.
        """
        now = self.now()
        return NEVER if now < self._lapses_from else now

    def latest(self) -> str | None:
        """Return the latest time that PostgreSQL's clock can show unless it has stepped, or None before the first look.

        As text, because it goes into settings of a transaction.
        """
        if self._seen is None:
            return None
        return (self._seen.shown + timedelta(seconds=self._clock() - self._seen.began) + STEP).isoformat()

    async def tick(self) -> None:
        """Look at the clock. When it has stepped, write that down before the new time is believed."""
        async with self._db.system_transaction() as conn:
            began = self._clock()
            shown = await store.read_clock(conn)
            seen = Reading(shown, began, self._clock())
            step = step_between(self._seen, seen) if self._seen else None
            until = await (store.guard_clock(conn, step) if step is not None else store.find_lapses_from(conn))
        self._seen, self._lapses_from = seen, until
        if step is not None:
            metrics.CLOCK_STEPS.labels("ahead" if step > timedelta() else "back").inc()
            log.error("clock_stepped", seconds=step.total_seconds(), lapses_from=until.isoformat())
