"""Holds by key, with the next end first. It finds those that have ended without looking at the others."""

import heapq
from collections.abc import Iterable
from typing import Final, Protocol, TypeVar
from uuid import UUID

STALE_MAX: Final = 64
"""Stale heap entries that are always allowed, so that a few holds are not sorted again and again."""
FOREVER_MS: Final = 2**53


class Ending(Protocol):
    """Anything that ends at a time."""

    @property
    def until_ms(self) -> int: ...


K = TypeVar("K", bound=int | UUID)
V = TypeVar("V", bound=Ending)


class Ends(dict[K, V]):
    """Holds by key, with a heap of their ends.

    A hold that is replaced or removed leaves a stale heap entry, which `take_due` skips. Adding a hold rebuilds the
    heap once more than half of it is stale.
    """

    def __init__(self, holds: Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(holds)
        self._rebuild()

    def __setitem__(self, key: K, hold: V) -> None:
        super().__setitem__(key, hold)
        heapq.heappush(self._heap, (hold.until_ms, key))
        if len(self._heap) > 2 * len(self) + STALE_MAX:
            self._rebuild()

    @property
    def next_ms(self) -> int:
        """The next end. It may be a stale one, and so too early."""
        return self._heap[0][0] if self._heap else FOREVER_MS

    def take_due(self, now_ms: int) -> list[tuple[K, V]]:
        """Remove and return the holds that have ended."""
        due = []
        while self.next_ms <= now_ms:
            _, key = heapq.heappop(self._heap)
            hold = self.get(key)
            if hold is not None and hold.until_ms <= now_ms:
                del self[key]
                due.append((key, hold))
        return due

    def _rebuild(self) -> None:
        self._heap: list[tuple[int, K]] = [(hold.until_ms, key) for key, hold in self.items()]
        heapq.heapify(self._heap)
