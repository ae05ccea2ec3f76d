"""Time that passes when a test says so, for what a process remembers for a second."""

import time

_ahead_s = 0.0


def clock() -> float:
    """The clock of what a process remembers: a real one, put ahead by what has been let pass."""
    return time.monotonic() + _ahead_s


def let(seconds: float) -> None:
    """Let so much time pass at once."""
    global _ahead_s  # noqa: PLW0603 - one clock for the process, as the real one is
    _ahead_s += seconds
