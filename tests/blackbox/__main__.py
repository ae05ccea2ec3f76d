"""`python -m tests.blackbox --minutes 10 --seed 1`: a long run with random faults, and its report."""

import argparse
import asyncio
import pickle
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.blackbox.checker import check
from tests.blackbox.nemesis import LONG, Step, plan_round
from tests.blackbox.report import render
from tests.blackbox.run import Plan, run


def rounds(seed: int) -> Iterator[Step]:
    """Yield every kind of fault once per round, in another order each time, with some pairs, for ever."""
    chance = random.Random(f"{seed} plan")
    while True:
        yield from plan_round(chance, pairs=3)


def main() -> int:
    """Run, print the report, and return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.blackbox", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--buyers", type=int, default=20)
    parser.add_argument("--save", type=Path, help="write the history to this file (pickle), to look at it later")
    chosen = parser.parse_args()
    plan = Plan(
        seed=chosen.seed,
        buyers=chosen.buyers,
        pause_s=0.08,
        warm_up_s=5.0,
        lengths=LONG,
        steps=rounds(chosen.seed),
        sale_s=60.0 * chosen.minutes,
    )
    print(f"seed {chosen.seed}, {chosen.minutes:g} minutes, {chosen.buyers} buyers", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="vg-"))
    folder.chmod(0o755)  # PostgreSQL's own user has to reach it
    try:
        history = asyncio.run(run(folder, plan, say=lambda line: print(line, flush=True)))
        if chosen.save:
            chosen.save.write_bytes(pickle.dumps(history))
        violations = check(history)
        print(render(history, violations))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
