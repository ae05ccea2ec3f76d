"""The line between the parent process and a child: the child says it is ready, and leaves when the line is cut.

A socket pair. The kernel cuts it when the parent goes, by whatever means, so no child outlives its parent.
"""

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time

LIFELINE_ENV = "VOELGOED_LIFELINE"
READY = b"ready\n"
LAST_WORDS_S = 0.6  # between the cut and the end: all are gone within a second of the parent


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


def stop_signals() -> asyncio.Event:
    """An event set by SIGTERM or SIGINT, for the loop that is running."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, asked.set)
    return asked
