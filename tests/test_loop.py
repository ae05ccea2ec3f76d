"""Loops: one duty, a steady pace, no error that ends them."""

import asyncio

import pytest
import structlog
from structlog.testing import capture_logs

from voelgoed.errors import LostRace, Unavailable
from voelgoed.loop import Loop


async def test_a_loop_survives_its_errors_and_counts_them() -> None:
    """A failed tick is counted and the next one comes."""
    stop = asyncio.Event()
    ticks: list[int] = []

    async def tick() -> None:
        ticks.append(len(ticks))
        if len(ticks) == 2:
            raise RuntimeError("once")
        if len(ticks) == 4:
            stop.set()

    loop = Loop(name="test", tick=tick, pace_s=0.001)
    await asyncio.wait_for(loop.run(stop), 5)
    assert (loop.ticks_count, loop.errors_count) == (3, 1)


@pytest.mark.parametrize(("failure", "has_trace"), [(Unavailable(), False), (LostRace(), False), (KeyError(), True)])
async def test_refused_work_is_logged_without_a_traceback(failure: Exception, *, has_trace: bool) -> None:
    """It is no bug, and a fast loop fails many times per second while PostgreSQL is unavailable."""
    stop = asyncio.Event()

    async def tick() -> None:
        stop.set()
        raise failure

    quiet = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    try:
        with capture_logs() as entries:
            await asyncio.wait_for(Loop(name="test", tick=tick, pace_s=0.001).run(stop), 5)
    finally:
        structlog.configure(wrapper_class=quiet)
    (line,) = entries
    assert (line["event"], line["error"]) == ("loop_failed", type(failure).__name__)
    assert bool(line["exc_info"]) is has_trace


async def test_a_loop_stops_in_the_middle_of_its_wait() -> None:
    """Stopping does not wait for the pace."""
    stop, ticked = asyncio.Event(), asyncio.Event()

    async def tick() -> None:
        ticked.set()

    loop = Loop(name="test", tick=tick, pace_s=3600)
    running = asyncio.create_task(loop.run(stop))
    await asyncio.wait_for(ticked.wait(), 5)
    stop.set()
    await asyncio.wait_for(running, 5)
    assert loop.ticks_count == 1


async def test_a_tick_under_way_is_finished() -> None:
    """Asked to stop, a loop completes its batch."""
    stop, go, begun = asyncio.Event(), asyncio.Event(), asyncio.Event()
    finished = False

    async def tick() -> None:
        nonlocal finished
        begun.set()
        await go.wait()
        finished = True

    running = asyncio.create_task(Loop(name="test", tick=tick, pace_s=1).run(stop))
    await begun.wait()
    stop.set()
    go.set()
    await asyncio.wait_for(running, 5)
    assert finished
