"""A loop: one duty, done in bounded ticks at a steady pace, that survives its own errors by counting them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from voelgoed.errors import Busy
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class Loop:
    """`tick` does one bounded batch and must be harmless when two processes do it at once.

    `wake` makes the next tick come at once; the tick clears it.
    """

    name: str
    tick: Callable[[], Awaitable[None]]
    pace_s: float
    wake: asyncio.Event | None = None
    ticks_count: int = 0
    errors_count: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Tick, wait, tick again, until asked to stop. A tick that is under way is finished."""
        assert self.pace_s > 0
        while not stop.is_set():
            try:
                await self.tick()
                self.ticks_count += 1
                metrics.LOOP_TICKS.labels(self.name).inc()
            except Exception as failed:
                self.errors_count += 1
                metrics.LOOP_ERRORS.labels(self.name).inc()
                # Without a traceback while PostgreSQL refuses work: a fast loop would fill the disk that is full.
                trace = not isinstance(failed, Busy)
                error = type(failed).__name__
                log.error("loop_failed", loop=self.name, errors=self.errors_count, error=error, exc_info=trace)  # noqa: TRY400
            await self._pause(stop)

    async def _pause(self, stop: asyncio.Event) -> None:
        """Wait for the pace, for the wish to stop, or to be woken."""
        waits = [asyncio.ensure_future(event.wait()) for event in (stop, self.wake) if event]
        await asyncio.wait(waits, timeout=self.pace_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
