"""A closed loop: so many connections, each asks again as soon as it is answered. By wrk, which costs little itself."""

import asyncio
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from voelgoed.bench import machine
from voelgoed.bench.ground import BenchRefused, Ground

SCRIPT: Final = Path(__file__).with_name("closed.lua")
RESULT: Final = re.compile(r"RESULT (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What wrk says of a run, and what the machine did meanwhile."""

    requests: int
    seconds: float
    refused: int
    broken: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    use: machine.Use
    cpu: dict[str, float]

    @property
    def granted(self) -> int:
        return self.requests - self.refused

    @property
    def per_s(self) -> float:
        return self.granted / self.seconds


async def run(ground: Ground, requests: Iterable[str], *, connections: int, seconds: float) -> Told:
    """Send requests, a line each, over so many connections for so long."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise BenchRefused("wrk is not there", hint="on Debian: apt-get install wrk")
    path = ground.home / "requests.txt"
    path.write_text("".join(f"{line}\n" for line in requests))
    before = machine.look(ground.pids())
    child = await asyncio.create_subprocess_exec(
        wrk,
        "-t1",
        f"-c{connections}",
        f"-d{seconds:g}s",
        "--timeout",
        "10s",
        "-s",
        str(SCRIPT),
        ground.address,
        "--",
        str(path),
        stdout=asyncio.subprocess.PIPE,
    )
    said = (await child.communicate())[0].decode()
    pids = ground.pids()
    use = machine.between(before, machine.look(pids))
    cpu: dict[str, float] = {}
    for pid, used in use.by_process.items():
        role = "generator" if pid == pids[0] else ground.role_of(pid)
        cpu[role] = round(cpu.get(role, 0.0) + used, 1)
    found = RESULT.search(said)
    if found is None:
        raise BenchRefused("wrk said nothing", hint=said)
    told = dict(part.split("=") for part in found[1].split())
    return Told(
        requests=int(told["requests"]),
        seconds=float(told["seconds"]),
        refused=int(told["refused"]),
        broken=int(told["broken"]),
        p50_ms=float(told["p50"]),
        p95_ms=float(told["p95"]),
        p99_ms=float(told["p99"]),
        max_ms=float(told["max"]),
        use=use,
        cpu=cpu,
    )
