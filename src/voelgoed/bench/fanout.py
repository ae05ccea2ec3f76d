"""Live maps: how soon a committed hold is seen by everybody who looks. The lookers are a process of their own.

The time of a hold is when PostgreSQL wrote it down, a moment before the commit, so what is shown is more than the way
from the commit to the browser, never less.
"""

import asyncio
import itertools
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

import msgspec
import uvloop

from voelgoed.bench import ground as grounds, openloop, report, selling
from voelgoed.bench.ground import BenchRefused, Ground

CONNECTING_AT_ONCE: Final = 200
READY_S: Final = 120.0
QUIET_S: Final = 2.0
FILES_SPARE: Final = 500
VIEWERS_GOAL: Final = ">= 5000 (PERF-12)"
KB: Final = 1024


async def fanout(*, viewers: int, crowd: int, per_s: float, seconds: float, hall: str, as_json: bool) -> None:
    """So many look while so many hold a second; then a larger crowd, while holds go on."""
    with report.steps(5) as shown:
        async with grounds.opened() as ground:
            guests = await selling.prepare(ground, hall, shown)
            shown.done()
            shown.begin(f"{viewers} look")
            some = await watched(ground, guests, viewers, per_s, seconds)
            shown.done()
            shown.begin(f"{crowd} look")
            many = await watched(ground, guests, crowd, per_s, seconds)
            shown.done()
            await ground.require_well()
    report.show(
        {
            "holds_per_s": per_s,
            "viewers_goal": VIEWERS_GOAL,
            **some,
            **{f"crowd_{name}": value for name, value in many.items()},
        },
        as_json=as_json,
    )


async def watched(ground: Ground, guests: list[str], viewers: int, per_s: float, seconds: float) -> dict[str, object]:
    """So many look at once while seats are held; everybody must have seen the last of it."""
    sale = await selling.opened_sale(ground)
    before_kb = _memory_kb(ground)
    path = ground.home / f"seen-{viewers}.bin"
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "voelgoed.bench.fanout",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    asked = {"address": ground.address, "event_id": str(sale.event_id), "viewers": viewers, "path": str(path)}
    child.stdin.write(json.dumps(asked).encode() + b"\n")
    if await asyncio.wait_for(child.stdout.readline(), READY_S) != b"ready\n":
        raise BenchRefused("not everybody was shown the map")
    lines = list(itertools.islice(selling.asks_for(ground, sale, guests), round(per_s * seconds)))
    told = await openloop.apart(ground.address, lines, per_s=per_s, connections=64)
    ground.asked += told.sent
    after_kb = _memory_kb(ground)
    await asyncio.sleep(QUIET_S)  # the last frames
    child.stdin.write(b"stop\n")
    await child.wait()
    seen = msgspec.msgpack.decode(path.read_bytes())
    committed = await _committed(ground, sale.event_id)
    if told.granted != told.sent or len(committed) != told.sent:
        raise BenchRefused(f"{told.sent} asked, {told.granted} were granted, {len(committed)} are there")
    missing = [number for number, versions in enumerate(seen["last"]) if versions != max(seen["last"])]
    if missing:
        raise BenchRefused(f"{len(missing)} of {viewers} have not seen the last change")
    took = _latencies(seen, committed)
    return {
        "viewers": viewers,
        "p50_ms": _percentile(took, 0.5),
        "p95_ms": _percentile(took, 0.95),
        "p99_ms": _percentile(took, 0.99),
        "frames_per_s": round(len(seen["frames"]) / seconds, 1),
        "bytes_per_viewer_per_s": round(seen["bytes"] / viewers / seconds),
        "bytes_per_frame": round(sum(seen["sizes"]) / max(1, len(seen["sizes"]))),
        "kb_per_viewer": round((after_kb - before_kb) / viewers, 1),
        "hold_p95_ms": told.p95_ms,
    }


def _latencies(seen: dict[str, Any], committed: dict[int, float]) -> list[float]:
    """From each hold to each viewer."""
    frames = {int(version): ordinals for version, ordinals in seen["frames"].items()}
    moments = {
        version: [committed[ordinal] for ordinal in ordinals if ordinal in committed]
        for version, ordinals in frames.items()
    }
    return sorted(at - moment for version, at in seen["arrivals"] for moment in moments.get(version, ()))


async def _committed(ground: Ground, event_id: UUID) -> dict[int, float]:
    await ground.owner.execute("select set_config('app.scope', 'system', false)")
    rows = await ground.owner.fetch(
        "select s.ordinal, extract(epoch from j.recorded_at)::double precision as at from journal j"
        " join event_seats s on s.event_id = j.event_id and s.seat_id = j.seat_id"
        " where j.event_id = $1 and j.kind = 'seat_reserved'",
        event_id,
    )
    return {row["ordinal"]: row["at"] for row in rows}


def _memory_kb(ground: Ground) -> int:
    """What the web processes have in memory."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in ground.webs())
    return pages * resource.getpagesize() // KB


def _percentile(sorted_s: Sequence[float], share: float) -> float:
    return round(1_000 * sorted_s[min(len(sorted_s) - 1, int(len(sorted_s) * share))], 1) if sorted_s else 0.0


class _Viewer(asyncio.Protocol):
    """A browser that only notes what it is shown, and when."""

    def __init__(self, request: bytes, seen: "_Seen") -> None:
        self._request, self._seen = request, seen
        self._got = b""
        self.version = -1
        self.shown = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.WriteTransport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._seen.bytes += len(data)
        self._got += data
        *whole, self._got = self._got.split(b"\n\n")
        for frame in whole:
            at = frame.find(b"data: ")
            if b"event: delta" in frame:
                self.version = self._seen.note(frame, frame[at + 6 :], now)
            elif b"event: snapshot" in frame and not self.shown.done():
                self.version = json.loads(frame[at + 6 :].split(b"\n")[0])["map_version"]
                self.shown.set_result(None)

    def connection_lost(self, lost: Exception | None) -> None:
        if not self.shown.done():
            self.shown.set_exception(ConnectionError(str(lost)))


class _Seen:
    """What all viewers have seen together."""

    def __init__(self) -> None:
        self.bytes = 0
        self.sizes: list[int] = []
        self.frames: dict[int, list[int]] = {}
        self.arrivals: list[tuple[int, float]] = []
        self._known: dict[bytes, int] = {}

    def note(self, frame: bytes, data: bytes, now: float) -> int:
        """A frame that a viewer was shown; it is read once, for it is the same for all."""
        version = self._known.get(data)
        if version is None:
            told = json.loads(data)
            version = self._known[data] = told["map_version"]
            self.frames[version] = told["seats"]
            self.sizes.append(len(frame))
        self.arrivals.append((version, now))
        return version


async def look(*, address: str, event_id: str, viewers: int, path: str) -> None:
    """Open so many live maps, say so, and note what comes until told to stop."""
    host, port = openloop.host_and_port(address)
    request = f"GET /api/events/{event_id}/stream HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n".encode()
    loop, seen = asyncio.get_running_loop(), _Seen()
    turn = asyncio.Semaphore(CONNECTING_AT_ONCE)

    async def one() -> _Viewer:
        async with turn:
            _, viewer = await loop.create_connection(lambda: _Viewer(request, seen), host, port)
            await viewer.shown
            return viewer

    everybody = await asyncio.gather(*(one() for _ in range(viewers)))
    seen.bytes = 0
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    told = {
        "bytes": seen.bytes,
        "sizes": seen.sizes,
        "frames": {str(version): ordinals for version, ordinals in seen.frames.items()},
        "arrivals": seen.arrivals,
        "last": [viewer.version for viewer in everybody],
    }
    Path(path).write_bytes(msgspec.msgpack.encode(told))  # noqa: ASYNC240 - nobody else is on this loop


def main() -> None:
    """Read what to look at, look, and write down what was seen."""
    asked = json.loads(sys.stdin.readline())
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, asked["viewers"] + FILES_SPARE), most))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(look(**asked))


if __name__ == "__main__":
    main()
