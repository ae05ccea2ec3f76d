"""A circuit breaker: failures in a row open it, and while it is open nobody waits for what is broken.

After a while exactly one caller tries again; all others are refused at once, however many come at that moment.
"""

import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

FAILURES_MAX = 5
PROBE_EVERY_S = 30.0


class State(StrEnum):
    """Closed is the healthy one, as in a circuit."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class CircuitOpen(Exception):
    """Not tried: it is known to be broken, or somebody else is finding out whether it still is."""

    def __init__(self, retry_in_s: float) -> None:
        super().__init__(f"circuit open, next probe in {retry_in_s:.1f} s")
        self.retry_in_s = retry_in_s


class Breaker:
    """For one event loop: nothing is awaited between looking at the state and changing it, so it needs no lock."""

    def __init__(
        self,
        *,
        trips_on: tuple[type[Exception], ...],
        failures_max: int = FAILURES_MAX,
        probe_every_s: float = PROBE_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[State], None] = lambda _state: None,
    ) -> None:
        assert failures_max > 0
        assert probe_every_s > 0
        self._trips_on = trips_on
        self._failures_max = failures_max
        self._probe_every_s = probe_every_s
        self._clock = clock
        self._on_change = on_change
        self._state = State.CLOSED
        self._failures_count = 0
        self._probe_at = 0.0

    @property
    def state(self) -> State:
        return self._state

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work, or raise `CircuitOpen` without starting it.

        Only `trips_on` speaks about health. Any other error, and a cancelled caller, says nothing about it.
        """
        is_probe = self._admit()
        try:
            answer = await work()
        except self._trips_on:
            self._failed(is_probe=is_probe)
            raise
        except BaseException:
            if is_probe:  # it found nothing out: the next caller is the probe
                self._move(State.OPEN, probe_at=self._clock())
            raise
        self._worked(is_probe=is_probe)
        return answer

    def _admit(self) -> bool:
        """Let the caller in; whether it is the probe."""
        if self._state is State.CLOSED:
            return False
        if self._state is State.HALF_OPEN:
            raise CircuitOpen(0.0)
        if (left_s := self._probe_at - self._clock()) > 0:
            raise CircuitOpen(left_s)
        self._move(State.HALF_OPEN)
        return True

    def _failed(self, *, is_probe: bool) -> None:
        # Calls that began before the breaker opened end after it: they may neither postpone the probe nor judge it.
        if not is_probe and self._state is not State.CLOSED:
            return
        self._failures_count += 1
        if is_probe or self._failures_count >= self._failures_max:
            self._move(State.OPEN, probe_at=self._clock() + self._probe_every_s)

    def _worked(self, *, is_probe: bool) -> None:
        if is_probe or self._state is State.CLOSED:
            self._failures_count = 0
            self._move(State.CLOSED)

    def _move(self, to: State, *, probe_at: float = 0.0) -> None:
        self._probe_at = probe_at
        if to is not self._state:
            self._state = to
            self._on_change(to)
