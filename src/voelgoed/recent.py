"""What a process has met of late, by halves: nothing has to be looked through to forget the rest."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

KNOWN_S: Final = 60.0
K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """What was met in the last minute or two. Who comes back meanwhile stays; of a day of visitors nothing does."""

    def __init__(self, half_max: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._half_max, self._clock = half_max, clock
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._turn_at = 0.0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: K) -> V | None:
        """What is known of it; it is young again then, where there is room among the young."""
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None and len(self._young) < self._half_max:
            self._young[key] = self._old.pop(key)
        return found

    def put(self, key: K, value: V) -> None:
        """Keep it. Every minute, and when there are too many, the older half is forgotten."""
        now = self._clock()
        if len(self._young) >= self._half_max:
            self._turn_at = now
        self.forget(now)
        self._young[key] = value

    def forget(self, now: float) -> None:
        """Forget the older half if its time has come: for what shall not stay because nothing new comes."""
        if now >= self._turn_at:
            self._old, self._young = self._young, {}
            self._turn_at = now + KNOWN_S
