"""What a process of the tree does with what it no longer needs."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from voelgoed import wiring
from voelgoed.wiring import COLLECT_EVERY, collecting, spare_the_collector


class Thing:
    """Something that may know itself."""

    def __init__(self) -> None:
        self.known: Thing | None = None


@pytest.fixture(autouse=True)
def spared() -> Iterator[None]:
    before = gc.get_threshold()
    spare_the_collector()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def old_circle() -> "weakref.ref[Thing]":
    """Nobody knows it any more, and it was under way when somebody looked at the young."""
    one = Thing()
    one.known = one
    gc.collect(0)
    return weakref.ref(one)


def looks() -> list[int]:
    return [generation["collections"] for generation in gc.get_stats()]


def test_a_rush_does_not_have_the_old_looked_through() -> None:
    """However many come and stay, only the young are looked at, each once."""
    before = looks()
    kept = [Thing() for _ in range(30 * COLLECT_EVERY)]
    assert looks()[0] >= before[0] + 20
    assert looks()[1:] == before[1:]
    assert len(kept) == 30 * COLLECT_EVERY


async def test_old_circles_are_found_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a sale; but not never either, if the sale does not end."""
    is_busy = True
    tick = collecting(lambda: is_busy)
    circle = old_circle()
    await tick()
    assert circle() is not None
    is_busy = False
    await tick()
    assert circle() is None

    is_busy, circle = True, old_circle()
    await tick()
    assert circle() is not None
    monkeypatch.setattr(wiring, "COLLECT_OLD_S", 0.0)
    await tick()
    assert circle() is None
