"""What a crowd did and how long it waited, second by second: counts and percentiles, bounded."""

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

WINDOW_S: Final = 5.0
KEPT_MAX: Final = 2_000
DEEDS: Final = (
    "arrivals",
    "looks",
    "holds",
    "places",
    "refused",
    "released",
    "lapsing",
    "sold",
    "returned",
    "busy",
    "failed",
    "retried",
)
"""What is counted. `refused`: somebody was quicker. `busy`: asked to come back. `failed`: nobody should ever see it."""


class Figures:
    """Counts since the last look and since the beginning, and the last answers' times."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: Counter[str] = Counter()
        self._totals: Counter[str] = Counter()
        self._answers: deque[tuple[float, float]] = deque(maxlen=KEPT_MAX)
        self._looked_at = clock()

    def count(self, deed: str, many: int = 1) -> None:
        assert deed in DEEDS
        self._since[deed] += many
        self._totals[deed] += many

    def answered(self, seconds: float) -> None:
        """An answer took so long."""
        self._answers.append((self._clock(), seconds))

    def look(self, *, people: int, watching: int) -> dict[str, object]:
        """What was done per second since the last look; the times of the last few seconds."""
        now = self._clock()
        seconds = max(now - self._looked_at, 0.001)
        self._looked_at = now
        while self._answers and self._answers[0][0] < now - WINDOW_S:
            self._answers.popleft()
        took = sorted(seconds for _, seconds in self._answers)
        told: dict[str, object] = {
            "per_s": {deed: round(self._since[deed] / seconds, 1) for deed in DEEDS},
            "totals": {deed: self._totals[deed] for deed in DEEDS},
            "people": people,
            "watching": watching,
            "p50_ms": _percentile_ms(took, 0.50),
            "p95_ms": _percentile_ms(took, 0.95),
        }
        self._since.clear()
        return told


def _percentile_ms(took: list[float], share: float) -> float | None:
    return round(1_000 * took[min(len(took) - 1, int(len(took) * share))], 1) if took else None
