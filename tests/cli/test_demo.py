"""`voelgoed demo` as a stranger meets it: people buy, processes die, Redis goes, and nothing is wrong afterwards."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.make.processes import Installation, environment, family, installation, is_alive, voelgoed
from voelgoed.demo.control import CONTROL_ENV

HERE = {"X-Demo": "1"}
FAST = {"VOELGOED_UNSAFE_DATABASE": "true"}  # nothing here is about the disk
WITHIN_S = 60.0

State = dict[str, Any]


def states(running: Installation) -> Iterator[State]:
    """How it stands, as the panel is told; who told it may be the one that is killed."""
    give_up_at = time.monotonic() + WITHIN_S
    while time.monotonic() < give_up_at:
        try:
            with httpx2.stream("GET", f"{running.address}/api/demo/stream", timeout=10) as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        yield json.loads(line[6:])
                    if time.monotonic() > give_up_at:
                        return
        except httpx2.TransportError:
            time.sleep(0.05)  # it is coming back


def until(running: Installation, holds: Callable[[State], bool]) -> State:
    """Follow until something holds; how it stands then."""
    state: State = {}
    for state in states(running):
        if holds(state):
            return state
    raise AssertionError(f"not within {WITHIN_S} s: {state}")


def order(running: Installation, what: str, **body: object) -> None:
    answer = httpx2.post(f"{running.address}/api/demo/{what}", headers=HERE, json=body, timeout=10)
    assert answer.status_code == 204, answer.text


def deaths(state: State, kind: str) -> int:
    """How many of a kind have died; a large number while one of them is away."""
    mine = [one for one in state["processes"] if one["name"].startswith(kind)]
    return sum(one["deaths"] for one in mine) if all(one["is_up"] for one in mine) else sys.maxsize


def total(state: State, deed: str) -> int:
    figures = state["crowd"]["figures"]
    return int(figures["totals"][deed]) if figures else 0


@pytest.mark.timeout(300)
def test_the_demo_is_alive_and_survives(data_dir: Path) -> None:
    """A crowd holds and buys; Redis stops and starts; a web process and the worker are killed; all is well."""
    with installation(data_dir, "--crowd", "8", "--workers", "2", **FAST) as running:
        everybody = family(running.process.pid)
        seen = until(running, lambda state: total(state, "sold") > 0)
        assert total(seen, "arrivals") >= total(seen, "holds") > 0
        order(running, "redis", up=False)
        seen = until(running, lambda state: state["seen"]["readiness"] == "degraded")
        held = total(seen, "holds")
        until(running, lambda state: total(state, "holds") > held)
        order(running, "kill", kind="web")
        until(running, lambda state: deaths(state, "web") == 1)
        order(running, "redis", up=True)
        until(running, lambda state: state["seen"]["readiness"] == "ready")
        order(running, "kill", kind="worker")
        until(running, lambda state: deaths(state, "worker") == 1)
        order(running, "crowd", per_s=0)
        seen = until(running, lambda state: state["crowd"]["figures"]["per_s"]["arrivals"] == 0)
        assert total(seen, "failed") == 0
        verified = voelgoed("verify", "--json", env=environment(data_dir, **FAST))
        assert json.loads(verified.stdout)["is_well"], verified.stdout
        everybody |= family(running.process.pid)
        running.process.terminate()
        assert running.process.wait(10) == 0
        assert not any(map(is_alive, everybody))
    log = (data_dir / "demo.log").read_text()
    assert "visit_failed" not in log
    assert "request_failed" not in log
    assert not (data_dir / "run" / "demo.sock").exists()


def test_a_real_installation_cannot_be_made_a_demonstration(data_dir: Path) -> None:
    """`voelgoed serve` has no panel, also where somebody names a control in its environment."""
    env = environment(data_dir, **FAST) | {CONTROL_ENV: str(data_dir / "demo.sock")}
    argv = [sys.executable, "-m", "voelgoed", "serve", "--port", "0"]
    with (
        (data_dir / "serve.log").open("w") as log,
        subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[-1]
            for path in ("stream", "verify"):
                assert httpx2.get(f"{address}/api/demo/{path}", timeout=10).status_code == 404
            for path in ("crowd", "redis", "kill"):
                refused = httpx2.post(f"{address}/api/demo/{path}", headers=HERE, json={}, timeout=10)
                assert refused.status_code == 404
            assert "data-demo" not in httpx2.get(address, timeout=10).text
        finally:
            process.terminate()
