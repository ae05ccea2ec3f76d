"""`voelgoed demo` as a stranger meets it: people buy, processes die, Redis goes, and nothing is wrong afterwards."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from tests.make.processes import Installation, environment, family, installation, is_alive, voelgoed, wait_until
from voelgoed.demo.control import CONTROL_ENV

HERE = {"X-Demo": "1"}
FAST = {"VOELGOED_UNSAFE_DATABASE": "true"}  # nothing here is about the disk


def state_of(running: Installation) -> dict[str, Any]:
    """How it stands, as the panel is told; whoever is asked may be the one who is killed."""
    for _ in range(20):
        try:
            with httpx2.stream("GET", f"{running.address}/api/demo/stream", timeout=10) as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        state: dict[str, Any] = json.loads(line[6:])
                        return state
        except httpx2.HTTPError:
            continue
    raise AssertionError("nobody answers")


def order(running: Installation, what: str, **body: object) -> None:
    answer = httpx2.post(f"{running.address}/api/demo/{what}", headers=HERE, json=body, timeout=10)
    assert answer.status_code == 204, answer.text


def deaths(running: Installation) -> dict[str, int]:
    return {one["name"]: one["deaths"] for one in state_of(running)["processes"]}


def is_whole(running: Installation) -> bool:
    return all(one["is_up"] for one in state_of(running)["processes"])


def totals(running: Installation) -> dict[str, int]:
    figures = state_of(running)["crowd"]["figures"]
    return figures["totals"] if figures else {}


def test_the_demo_is_alive_and_survives(data_dir: Path) -> None:
    """A crowd holds and buys; Redis stops and starts; a web process and the worker are killed; all is well."""
    with installation(data_dir, "--crowd", "20", "--workers", "2", **FAST) as running:
        everybody = family(running.process.pid)
        wait_until(lambda: totals(running).get("sold", 0) > 0, within_s=40)
        seen = totals(running)
        assert seen["holds"] > 0
        assert seen["arrivals"] >= seen["holds"]
        order(running, "redis", up=False)
        wait_until(lambda: state_of(running)["seen"]["readiness"] == "degraded", within_s=10)
        held = totals(running)["holds"]
        wait_until(lambda: totals(running)["holds"] > held, within_s=10)
        order(running, "kill", kind="web")
        wait_until(lambda: sum(deaths(running).values()) == 1 and is_whole(running), within_s=20)
        order(running, "redis", up=True)
        wait_until(lambda: state_of(running)["seen"]["readiness"] == "ready", within_s=10)
        order(running, "kill", kind="worker")
        wait_until(lambda: deaths(running)["worker"] == 1 and is_whole(running), within_s=20)
        order(running, "crowd", per_s=0)
        wait_until(lambda: state_of(running)["crowd"]["figures"]["per_s"]["arrivals"] == 0, within_s=10)
        assert totals(running)["failed"] == 0
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
