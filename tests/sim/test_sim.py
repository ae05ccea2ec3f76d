"""Processes die at random while somebody writes; nothing acknowledged is ever lost."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.make.processes import installation
from tests.sim.auditor import audit
from tests.sim.workload import VICTIMS, Writer, kill, order_of_deaths

SECONDS_BETWEEN = 0.5


async def one_death(data_dir: Path, victim: str) -> Writer:
    """Start, write, kill one process in the middle of it, go on writing if somebody is left."""
    writer, stop = Writer(data_dir), asyncio.Event()
    with installation(data_dir) as running:
        writing = asyncio.create_task(writer.run(stop))
        await asyncio.sleep(SECONDS_BETWEEN)
        kill(running, victim)
        await asyncio.sleep(SECONDS_BETWEEN)
        stop.set()
        await asyncio.wait_for(writing, 60)
    return writer


async def survive(data_dir: Path, victims: Sequence[str]) -> None:
    """One life after another on the same data; at each end, and once more after the last, the books are checked."""
    writers: list[Writer] = []
    for number, victim in enumerate(victims, 1):
        writers.append(await one_death(data_dir, victim))
        last = writers[-1]
        assert last.acknowledged
        print(
            f"{number}/{len(victims)} killed {victim}: {len(last.acknowledged)} acknowledged,"
            f" {len(last.refused)} refused, {len(last.unknown)} unknown",
            flush=True,
        )
    with installation(data_dir):
        await audit(data_dir, writers)


@pytest.mark.timeout(300)
async def test_nothing_is_lost_whoever_dies(data_dir: Path) -> None:
    """The two deaths that matter most for data, in every run of the tests."""
    await survive(data_dir, ("postgres", "parent"))


@pytest.mark.sim
@pytest.mark.timeout(0)
async def test_nothing_is_lost_for_as_long_as_you_like(data_dir: Path) -> None:
    """Random deaths from a seed: `make sim SEED=7 STEPS=100`."""
    seed, steps = int(os.environ.get("SEED") or 1), int(os.environ.get("STEPS") or 20)
    print(f"\nseed {seed}, {steps} deaths among {', '.join(VICTIMS)}")
    await survive(data_dir, order_of_deaths(seed, steps))
