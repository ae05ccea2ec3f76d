"""Living together as processes: the line between parent and child, stop signals, and how to start again what died.

The line is a socket pair: the child says on it that it is ready, and leaves when it is cut. The kernel cuts it when the
parent goes, by whatever means, so no child outlives its parent.
"""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Any

LIFELINE_ENV = "VOELGOED_LIFELINE"
READY = b"ready\n"
LAST_WORDS_S = 0.6  # between the cut and the end: all are gone within a second of the parent

RESTART_PAUSE_FIRST_S = 0.1
RESTART_PAUSE_LONGEST_S = 5.0
STEADY_S = 60.0
"""What has run for so long and then dies has not failed again: it begins anew, without a grudge."""


class Lifeline:
    """The child's end. Without a parent (a worker started by hand) it does nothing."""

    def __init__(self) -> None:
        number = os.environ.get(LIFELINE_ENV)
        self._socket = socket.socket(fileno=int(number)) if number else None

    def hold(self) -> None:
        """Watch the line from a thread of its own: it must work even while the event loop is stuck."""
        if self._socket:
            threading.Thread(target=self._watch, name="lifeline", daemon=True).start()

    def say_ready(self) -> None:
        settle()
        if self._socket:
            with contextlib.suppress(OSError):  # the parent is gone: the watch ends this process
                self._socket.sendall(READY)

    def _watch(self) -> None:
        assert self._socket is not None
        with contextlib.suppress(OSError):
            while self._socket.recv(64):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(LAST_WORDS_S)
        os._exit(1)


def settle() -> None:
    """Take what is loaded by now out of the collector's sight: it stays to the end.

    No request waits while the collector goes through it; and leaving, which goes through it too, takes a tenth as long.
    """
    gc.collect()
    gc.freeze()


def stop_signals() -> asyncio.Event:
    """An event set by SIGTERM or SIGINT, for the loop that is running."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, asked.set)
    return asked


@dataclass(slots=True)
class Restarts:
    """The deaths and failed starts of one process, in a row; each asks for a longer pause than the one before."""

    in_a_row: int = 0
    _stood_at: float | None = None

    @property
    def is_up(self) -> bool:
        return self._stood_at is not None

    def stands(self) -> None:
        """It has started."""
        self._stood_at = time.monotonic()

    def forgive(self) -> None:
        """It is ended on purpose, and has not failed by that."""
        self.in_a_row = 0

    def died(self) -> float:
        """It has died, or did not start; the seconds to wait before the next try."""
        if self._stood_at is not None and time.monotonic() - self._stood_at >= STEADY_S:
            self.in_a_row = 0
        self._stood_at = None
        self.in_a_row += 1
        doublings = min(self.in_a_row - 1, 16)  # a number that goes on growing would not fit a float one day
        return min(RESTART_PAUSE_LONGEST_S, RESTART_PAUSE_FIRST_S * float(2**doublings))


async def until_first(*works: Awaitable[object]) -> None:
    """Wait until one is done; the others are cancelled and waited for. What any of them raised is raised here."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled():
            task.result()


async def together(*works: Coroutine[Any, Any, object]) -> None:
    """Wait until all are done; the first failure ends the others and is raised as what it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
