"""Loops: one duty, a steady pace, no error that ends them."""

import asyncio

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
