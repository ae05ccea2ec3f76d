"""Everything above PostgreSQL goes wrong by turns, in an order that a seed decides, while people buy all the time."""

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.make.processes import is_alive
from tests.sim.shop import Shop, end_a_backend, shop
from tests.sim.trouble import Trouble
from voelgoed.config import Settings
from voelgoed.embedded import Embedded

REDIS = ("killed", "frozen", "slow", "sluggish", "old", "flushed", "haunted", "garbled", "mistyped")
PROCESSES = ("web-1", "web-2", "worker")
FAULTS = (*REDIS, *PROCESSES, "backend")
BACK_WITHIN_S = 60


async def all_up(stall: Shop) -> None:
    """Until everybody who was killed is back: the tree brings them."""
    async with asyncio.timeout(BACK_WITHIN_S):
        while len(stall.tree.pids()) < len(PROCESSES) or not all(
            is_alive(pid) and stall.tree._restarts[name].is_up for name, pid in stall.tree.pids().items()
        ):
            await asyncio.sleep(0.02)


async def kill(stall: Shop, name: str) -> None:
    """Kill one process, while the others are there. What comes next happens while it comes back."""
    await all_up(stall)
    os.kill(stall.tree.pids()[name], signal.SIGKILL)


@pytest.mark.sim
@pytest.mark.timeout(0)
async def test_all_tiers_agree_after_any_mix_of_faults(servers: Embedded, settings: Settings, data_dir: Path) -> None:
    """`make sim SEED=7 SECONDS=60`: nothing acknowledged is lost, every map is right; the same seed does it again."""
    seed, seconds = int(os.environ.get("SEED") or 1), float(os.environ.get("SECONDS") or 20)
    print(f"\nseed {seed}, {seconds:.0f} s of {', '.join(FAULTS)}", flush=True)
    order, name = random.Random(seed), f"sim_{settings.port}"
    chance = random.Random(seed)  # another one: how often it is asked depends on what happens
    async with shop(servers, settings, data_dir, name, seed=seed) as stall:
        troubles = Trouble(stall.redis, stall.wire, chance, stall)
        until = time.monotonic() + seconds
        async with stall.buying():
            await stall.sold_more(10)
            while (began := time.monotonic()) < until:
                fault, failed = order.choice(FAULTS), len(stall.told.errors)
                if fault in PROCESSES:
                    await kill(stall, fault)
                elif fault == "backend":
                    await end_a_backend(servers, name, chance)
                else:
                    await getattr(troubles, fault)()
                await stall.sold_more(5)
                errors = stall.told.errors[failed:]
                print(f"  {fault}: {time.monotonic() - began:.1f} s, {len(errors)} answers failed", flush=True)
                assert not errors or fault not in REDIS, f"nobody but Redis was hurt: {errors}"
        await all_up(stall)
        await stall.reconcile()
        took_s = await stall.agree()
        await stall.audit()
    print(f"  {dict(stall.told.statuses)}, {stall.told.lost_count} without an answer; all agreed {took_s:.2f} s later")
