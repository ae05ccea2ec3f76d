"""About a minute of sales under every kind of fault: no promise of the product is broken."""

import os
import random
from pathlib import Path

import pytest

from tests.blackbox.checker import check
from tests.blackbox.history import FaultKind
from tests.blackbox.nemesis import SHORT, plan_round
from tests.blackbox.report import acknowledged_writes, render
from tests.blackbox.run import LAST_FREEZE_S, Plan, run
from tests.blackbox.server import TTL_MINUTES
from tests.blackbox.violations import Rule

BROKEN_TODAY = frozenset({Rule.COUNTDOWN})
"""Promises that the product does not keep yet after a clock step. `make blackbox` reports them."""


@pytest.mark.timeout(240)
async def test_no_promise_is_broken_by_any_fault(data_dir: Path) -> None:
    """`SEED=7` runs the faults and the buyers of another seed; `make blackbox` runs for as long as you like."""
    seed = int(os.environ.get("SEED") or 1)
    print(f"\nseed {seed}")
    plan = Plan(
        seed=seed,
        buyers=10,
        pause_s=0.12,
        warm_up_s=1.0,
        lengths=SHORT,
        steps=plan_round(random.Random(f"{seed} plan"), pairs=1),
        sale_s=60.0 * TTL_MINUTES + LAST_FREEZE_S - 2.0,
    )
    history = await run(data_dir, plan)
    violations = check(history)
    print(render(history, violations))
    assert [violation for violation in violations if violation.rule not in BROKEN_TODAY] == []
    assert acknowledged_writes(history) > 100
    assert len({fault.kind for fault in history.faults} & set(FaultKind)) > 5
