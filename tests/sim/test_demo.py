"""The demonstration at full crowd for as long as you like, with Redis going and coming and web processes killed."""

import asyncio
import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx2
import msgspec
import pytest

from tests.make.processes import environment, family, installation, is_alive, voelgoed
from voelgoed.demo.control import LEVELS

REDIS_EVERY_S: Final = 30.0
KILL_EVERY_S: Final = 60.0
SAMPLE_EVERY_S: Final = 5.0
SHOWN_EVERY: Final = 3
PAGE_PAUSE_S: Final = 0.2
TRIES: Final = 50
RETRY_S: Final = 0.1
RETRIED_MAX_S: Final = 5.0
LONG_S: Final = 300.0
"""Who has not lived so long is still filling what it keeps."""
GROWTH_MAX: Final = 1.03
"""From the middle third of a process's life to the last, by their medians. Of whoever came in the last two minutes 2 KB
are kept, so a crowd that comes faster towards the end, as on a machine that had other work before, grows as well."""
HERE: Final = {"X-Demo": "1"}
KB_PER_MB: Final = 1024


@dataclass(slots=True)
class Reader:
    """Somebody who opens the main pages one after the other, and tries again where nobody answers."""

    client: httpx2.AsyncClient
    paths: list[str]
    statuses: Counter[int] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    retried: int = 0
    took: list[float] = field(default_factory=list)
    longest_s: float = 0.0

    async def run(self) -> None:
        while True:
            for path in self.paths:
                await self._open(path)
                await asyncio.sleep(PAGE_PAUSE_S)

    async def _open(self, path: str) -> None:
        began = time.monotonic()
        for _ in range(TRIES):
            sent = time.monotonic()
            try:
                answer = await self.client.get(path)
            except httpx2.TransportError:
                self.retried += 1
                await asyncio.sleep(RETRY_S)
                continue
            self.took.append(time.monotonic() - sent)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.statuses[answer.status_code] += 1
            if answer.status_code >= 500:
                self.bad.append(f"{answer.status_code} {path} {answer.text[:200]}")
            return
        self.bad.append(f"nobody answered {path}")


class Watch:
    """How it stands, as the panel is told; the memory of every process, by its id."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.state: dict[str, Any] = {}
        self.memory: dict[tuple[str, int], list[float]] = defaultdict(list)

    async def run(self) -> None:
        async with httpx2.AsyncClient(base_url=self._address, timeout=10) as client:
            while True:
                try:
                    async with client.stream("GET", "/api/demo/stream") as answer:
                        async for line in answer.aiter_lines():
                            if line.startswith("data: "):
                                self.state = msgspec.json.decode(line[6:])
                except httpx2.TransportError:
                    await asyncio.sleep(RETRY_S)

    async def sample(self, embedded: dict[str, int]) -> None:
        while True:
            known = {one["name"]: one["pid"] for one in self.state.get("processes", ()) if one["is_up"]} | embedded
            for name, pid in known.items():
                if (resident := resident_mb(pid)) is not None:
                    self.memory[name, pid].append(resident)
            await asyncio.sleep(SAMPLE_EVERY_S)


def resident_mb(pid: int) -> float | None:
    """What a process has in memory, with its share of what it has in common with others."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / KB_PER_MB


async def trouble(client: httpx2.AsyncClient, seconds: float) -> Counter[str]:
    """Stop and start Redis every half minute, kill a web process every minute, until the time is up."""
    did: Counter[str] = Counter()
    is_up, began = True, time.monotonic()
    redis_at, kill_at = began + REDIS_EVERY_S / 2, began + KILL_EVERY_S / 2
    while (now := time.monotonic()) < began + seconds:
        if now >= redis_at:
            is_up = not is_up
            did[f"redis {'started' if is_up else 'stopped'}"] += await order(client, "redis", {"up": is_up})
            redis_at += REDIS_EVERY_S / 2
        if now >= kill_at:
            did["web killed"] += await order(client, "kill", {"kind": "web"})
            kill_at += KILL_EVERY_S
        await asyncio.sleep(min(redis_at, kill_at, began + seconds) - now)
    if not is_up:
        did["redis started"] += await order(client, "redis", {"up": True})
    return did


async def order(client: httpx2.AsyncClient, what: str, body: object) -> int:
    for _ in range(TRIES):
        try:
            if (await client.post(f"/api/demo/{what}", headers=HERE, json=body)).status_code == 204:
                return 1
        except httpx2.TransportError:
            pass
        await asyncio.sleep(RETRY_S)
    raise AssertionError(f"{what} was never done")


@pytest.mark.sim
@pytest.mark.timeout(0)
async def test_the_demo_endures(data_dir: Path) -> None:
    """`make sim ARGS="-k endures"`, with MINUTES=10: at the end the books are right, and memory is flat."""
    seconds = 60 * float(os.environ.get("MINUTES") or 2)
    with installation(data_dir, "--crowd", str(LEVELS[-1]), "--workers", "2") as running:
        everybody = family(running.process.pid)
        event = running.about["events"]["theatre"]
        paths = ["/", "/passievol", "/api/storefronts/passievol/events", f"/api/events/{event}/layout"]
        paths += [f"/api/events/{event}/seatmap", f"/api/events/{event}/occupancy"]
        embedded = {name: running.pids[name] for name in ("postgres",)} | {"parent": running.process.pid}
        watch = Watch(running.address)
        # The process that is told to kill one spares itself: by one line that stays open the same one lives all along.
        one_line = httpx2.Limits(max_connections=1, keepalive_expiry=None)
        async with (
            httpx2.AsyncClient(base_url=running.address, timeout=15) as client,
            httpx2.AsyncClient(base_url=running.address, timeout=15, limits=one_line) as orders,
            asyncio.TaskGroup() as beside,
        ):
            reader = Reader(client, paths)
            works = [beside.create_task(work) for work in (reader.run(), watch.run(), watch.sample(embedded))]
            did = await trouble(orders, seconds)
            everybody |= family(running.process.pid)
            for work in works:
                work.cancel()
        tell(watch, reader, did, seconds)
        verified = voelgoed("verify", "--json", env=environment(data_dir), wait_s=300)
        running.process.terminate()
        assert running.process.wait(20) == 0
    said = msgspec.json.decode(verified.stdout)
    print(f"verify: {'well' if said['is_well'] else said['findings']}", flush=True)
    assert said["is_well"]
    assert reader.bad == []
    assert reader.longest_s < RETRIED_MAX_S
    assert watch.state["crowd"]["figures"]["totals"]["failed"] == 0
    assert not any(map(is_alive, everybody))
    assert [one for one, samples in watch.memory.items() if growth(samples) > GROWTH_MAX] == []
    if seconds > LONG_S:
        assert any(name.startswith("web") and is_long(samples) for (name, _), samples in watch.memory.items())


def is_long(samples: Sequence[float]) -> bool:
    return len(samples) * SAMPLE_EVERY_S >= LONG_S


def growth(samples: Sequence[float]) -> float:
    """How much more there is in the last third of a life than in the middle one; of a short one nothing can be said."""
    if not is_long(samples):
        return 1.0
    third = len(samples) // 3
    return median(samples[-third:]) / median(samples[third:-third])


def test_growth_is_seen_and_noise_is_not() -> None:
    """A web process that is level, one that leaks 1 MB a minute, and a young one."""
    minutes = [number * SAMPLE_EVERY_S / 60 for number in range(120)]
    warm = [75 + 15 * (1 - 0.4**minute) for minute in minutes]
    noise = [3 * (number * 7 % 11) / 11 for number in range(120)]
    assert growth([one + more for one, more in zip(warm, noise, strict=True)]) <= GROWTH_MAX
    assert growth([one + minute for one, minute in zip(warm, minutes, strict=True)]) > GROWTH_MAX
    assert growth([75.0 + number for number in range(50)]) == 1


def tell(watch: Watch, reader: Reader, did: Mapping[str, int], seconds: float) -> None:
    took = sorted(reader.took)
    print(f"\n{seconds / 60:g} minutes: {', '.join(f'{what} {count}x' for what, count in did.items())}")
    print(f"crowd: {watch.state['crowd']['figures']['totals']}")
    print(f"deaths: { {one['name']: one['deaths'] for one in watch.state['processes'] if one['deaths']} }")
    print(
        f"pages: {dict(reader.statuses)}, {reader.retried} retried, longest with retries {reader.longest_s:.2f} s,"
        f" p50 {1_000 * took[len(took) // 2]:.0f} ms, p95 {1_000 * took[int(len(took) * 0.95)]:.0f} ms"
    )
    for (name, pid), samples in watch.memory.items():
        shown = " ".join(f"{one:.0f}" for one in samples[::SHOWN_EVERY])
        print(f"memory of {name} {pid}, MB: {shown}  (x{growth(samples):.3f})", flush=True)
