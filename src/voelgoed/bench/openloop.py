"""An open loop: requests leave at fixed times, whoever is still waiting; from a process of its own.

Closed loops hide a slow server: whoever waits does not ask. Here the time of an answer counts from when its request was
due, not from when it could be sent.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvloop

ANSWER_WAIT_S = 10.0
COME_AGAIN = ("429", "503")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came back: how many of each status, and how long answers took from when their requests were due."""

    sent: int
    seconds: float
    statuses: dict[str, int]
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    refused_p50_ms: float | None
    without_retry_after: int
    asked_again: int = 0

    @property
    def granted(self) -> int:
        return sum(count for status, count in self.statuses.items() if status.startswith("2"))

    @property
    def answered(self) -> int:
        """Those who were told something, be it no; who came again, as told, counts by the last word."""
        return sum(count for status, count in self.statuses.items() if status != "none" and status < "500")

    @property
    def errors(self) -> int:
        """What nobody should see: no answer at all, or one that admits a fault."""
        return sum(count for status, count in self.statuses.items() if status in ("none", "500", "502", "504"))


class _Wire(asyncio.Protocol):
    """One connection that stays open; one request at a time."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.answer: asyncio.Future[bytes] | None = None
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, split, body = self._got.partition(b"\r\n\r\n")
        if not split:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(body) >= length:
            self._got = body[length:]
            if self.answer and not self.answer.done():
                self.answer.set_result(head)

    def connection_lost(self, lost: Exception | None) -> None:
        if self.answer and not self.answer.done():
            self.answer.set_exception(ConnectionError(str(lost)))

    async def ask(self, request: bytes) -> bytes:
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await asyncio.wait_for(self.answer, ANSWER_WAIT_S)


class _Visitors:
    """Connections that stay open, and what came back over them."""

    def __init__(self, address: str, tries: int) -> None:
        self._where, self._tries = host_and_port(address), tries
        self._free: asyncio.Queue[_Wire] = asyncio.Queue()
        self.statuses: Counter[str] = Counter()
        self.granted: list[float] = []
        self.refused: list[float] = []
        self.without_retry_after = 0
        self.asked_again = 0

    async def connect(self) -> None:
        _, wire = await asyncio.get_running_loop().create_connection(_Wire, *self._where)
        self._free.put_nowait(wire)

    def leave(self) -> None:
        while not self._free.empty():
            self._free.get_nowait().transport.close()

    async def visit(self, line: str, due: float) -> None:
        """Ask, and again as long as that is what one is told to do and tries are left."""
        status = "none"
        for left in reversed(range(self._tries)):
            head = await self._ask(line)
            if head is None:
                break
            status, wait_s = head[9:12].decode(), _retry_after_s(head)
            self.without_retry_after += status in COME_AGAIN and wait_s is None
            if status not in COME_AGAIN or not left:
                (self.granted if status.startswith("2") else self.refused).append(time.perf_counter() - due)
                break
            self.asked_again += 1
            await asyncio.sleep(wait_s or 0)
        self.statuses[status] += 1

    async def _ask(self, line: str) -> bytes | None:
        """What is answered, if anything is, over whichever connection is free."""
        wire = await self._free.get()
        try:
            head = await wire.ask(_request(line))
        except (OSError, TimeoutError):
            wire.transport.abort()
            await self.connect()
            return None
        self._free.put_nowait(wire)
        return head


async def run(address: str, lines: Sequence[str], *, per_s: float, connections: int, tries: int = 1) -> dict[str, Any]:
    """Send each line at its time; whoever is told to come again does, so often in all."""
    visitors = _Visitors(address, tries)
    for _ in range(connections):
        await visitors.connect()
    began = time.perf_counter() + 0.1
    tasks = []
    for number, line in enumerate(lines):
        due = began + number / per_s
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(visitors.visit(line, due)))
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - began
    visitors.leave()
    told = _told(
        len(lines), seconds, visitors.statuses, visitors.granted, visitors.refused, visitors.without_retry_after
    )
    return {**told, "asked_again": visitors.asked_again}


def _told(
    sent: int,
    seconds: float,
    statuses: Mapping[str, int],
    granted: Sequence[float],
    refused: Sequence[float],
    without_retry_after: int,
) -> dict[str, Any]:
    everything = sorted(granted or refused)
    return {
        "sent": sent,
        "seconds": seconds,
        "statuses": dict(statuses),
        "p50_ms": _percentile(everything, 0.5),
        "p95_ms": _percentile(everything, 0.95),
        "p99_ms": _percentile(everything, 0.99),
        "max_ms": _percentile(everything, 1.0),
        "refused_p50_ms": _percentile(sorted(refused), 0.5) if refused else None,
        "without_retry_after": without_retry_after,
    }


async def burst(address: str, lines: Sequence[str]) -> dict[str, Any]:
    """A connection for each line, all open before the first is sent; then all at once."""
    loop = asyncio.get_running_loop()
    wires = [(await loop.create_connection(_Wire, *host_and_port(address)))[1] for _ in lines]
    statuses: Counter[str] = Counter()
    took: list[float] = []

    async def one(wire: _Wire, line: str) -> None:
        try:
            head = await wire.ask(_request(line))
        except (OSError, TimeoutError):
            statuses["none"] += 1
            return
        took.append(time.perf_counter() - began)
        statuses[head[9:12].decode()] += 1

    began = time.perf_counter()
    await asyncio.gather(*(one(wire, line) for wire, line in zip(wires, lines, strict=True)))
    seconds = time.perf_counter() - began
    for wire in wires:
        wire.transport.close()
    return _told(len(lines), seconds, statuses, took, [], 0)


async def apart(address: str, lines: Sequence[str], *, per_s: float, connections: int, tries: int = 1) -> Told:
    """An open loop in a process of its own."""
    return await _apart("run", address=address, lines=list(lines), per_s=per_s, connections=connections, tries=tries)


async def burst_apart(address: str, lines: Sequence[str]) -> Told:
    """A burst from a process of its own."""
    return await _apart("burst", address=address, lines=list(lines))


async def _apart(what: str, **asked: object) -> Told:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "voelgoed.bench.openloop",
        what,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await child.communicate(json.dumps(asked).encode())
    return Told(**json.loads(said))


def host_and_port(address: str) -> tuple[str, int]:
    """Where to connect."""
    where = urlsplit(address)
    assert where.hostname is not None
    assert where.port is not None
    return where.hostname, where.port


def _request(line: str) -> bytes:
    method, path, token = line.split(" ")
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n"
    return head.encode()


def _retry_after_s(head: bytes) -> float | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"retry-after":
            return float(value)
    return None


def _percentile(sorted_s: Sequence[float], share: float) -> float:
    if not sorted_s:
        return 0.0
    return round(sorted_s[min(len(sorted_s) - 1, int(len(sorted_s) * share))] * 1_000, 3)


def main() -> None:
    """Read what to send, send it, and print what came back."""
    asked = json.load(sys.stdin)
    works: dict[str, Callable[..., Coroutine[Any, Any, dict[str, Any]]]] = {"run": run, "burst": burst}
    work = works[sys.argv[1]]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(work(**asked))))


if __name__ == "__main__":
    main()
