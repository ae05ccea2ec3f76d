"""An open loop: requests leave at fixed times, whoever is still waiting; from a process of its own.

Closed loops hide a slow server: whoever waits does not ask. Here the time of an answer counts from when its request was
due, not from when it could be sent.
"""

import asyncio
import contextlib
import gc
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvloop

ANSWER_WAIT_S = 10.0
SWEEP_S = 1.0
SENT_AT_ONCE = 64
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


class _Visit:
    """Somebody who wants one thing, and comes again as often as they are told to."""

    __slots__ = ("due", "request", "tries_left")

    def __init__(self, request: bytes, due: float, tries_left: int) -> None:
        self.request, self.due, self.tries_left = request, due, tries_left


class _Wire(asyncio.Protocol):
    """One connection that stays open; one request at a time. The head of its answer is told, or that there is none.

    No task, no future and no timer for a request: a generator that takes as long as the server measures itself.
    """

    __slots__ = ("_got", "_lost", "_told", "asked_at", "transport", "visit")

    def __init__(self, told: Callable[["_Wire", _Visit, bytes], None], lost: Callable[["_Wire"], None]) -> None:
        self._told, self._lost = told, lost
        self.transport: Any = None
        self.visit: _Visit | None = None
        self.asked_at = 0.0
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def ask(self, visit: _Visit) -> None:
        self.visit, self.asked_at = visit, time.perf_counter()
        self.transport.write(visit.request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        end = self._got.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._got[:end].lower()
        length = int(_header(head, b"content-length") or 0)
        if len(self._got) >= end + 4 + length and self.visit is not None:
            visit, self.visit, self._got = self.visit, None, b""
            self._told(self, visit, head)

    def connection_lost(self, _: Exception | None) -> None:
        self._lost(self)


class _Visitors:
    """Connections that stay open, who waits for one of them, and what came back."""

    def __init__(self, address: str, expected: int) -> None:
        self._where, self._expected = host_and_port(address), expected
        self._wires: set[_Wire] = set()
        self._free: deque[_Wire] = deque()
        self._queue: deque[_Visit] = deque()
        self._connecting: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._all_told = asyncio.Event()
        self.statuses: Counter[str] = Counter()
        self.granted: list[float] = []
        self.refused: list[float] = []
        self.without_retry_after = 0
        self.asked_again = 0

    async def connect(self) -> None:
        _, wire = await self._loop.create_connection(lambda: _Wire(self._hear, self._replace), *self._where)
        if wire.transport.is_closing():  # and was replaced before it was ever here
            raise ConnectionResetError
        self._wires.add(wire)
        self._let_go(wire)

    async def until_told(self) -> None:
        """Until everybody has heard something, or has waited long enough."""
        while not self._all_told.is_set():  # ends: whoever waits too long is cut off, and was told so
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_told.wait(), SWEEP_S)
            late = time.perf_counter() - ANSWER_WAIT_S
            for wire in [wire for wire in self._wires if wire.visit is not None and wire.asked_at < late]:
                wire.transport.abort()
            while not self._wires and self._queue and self._queue[0].due < late:  # nobody is there to be asked
                self._queue.popleft()
                self._count("none")
        await asyncio.gather(*self._connecting, return_exceptions=True)

    def leave(self) -> None:
        for wire in tuple(self._wires):
            wire.transport.close()

    def come(self, visit: _Visit) -> None:
        """Ask over whichever connection is free."""
        if self._free:
            self._free.popleft().ask(visit)
        else:
            self._queue.append(visit)

    def _let_go(self, wire: _Wire) -> None:
        if self._queue:
            wire.ask(self._queue.popleft())
        else:
            self._free.append(wire)

    def _replace(self, wire: _Wire) -> None:
        """A connection is gone: whoever waited for an answer has none, and the others have another one."""
        self._wires.discard(wire)
        if wire in self._free:
            self._free.remove(wire)
        if wire.visit is not None:
            self._count("none")
        if not self._all_told.is_set():
            again = self._loop.create_task(self._reconnect())
            self._connecting.add(again)
            again.add_done_callback(self._connecting.discard)

    async def _reconnect(self) -> None:
        with contextlib.suppress(OSError):  # then the others have one fewer
            await self.connect()

    def _hear(self, wire: _Wire, visit: _Visit, head: bytes) -> None:
        status = head[9:12].decode()
        if status in COME_AGAIN:
            wait = _header(head, b"retry-after")
            self.without_retry_after += wait is None
            if visit.tries_left:
                visit.tries_left -= 1
                self.asked_again += 1
                self._loop.call_later(float(wait or 0), self.come, visit)
                self._let_go(wire)
                return
        (self.granted if status.startswith("2") else self.refused).append(time.perf_counter() - visit.due)
        self._count(status)
        self._let_go(wire)

    def _count(self, status: str) -> None:
        self.statuses[status] += 1
        self._expected -= 1
        if not self._expected:
            self._all_told.set()


async def run(address: str, lines: Sequence[str], *, per_s: float, connections: int, tries: int = 1) -> dict[str, Any]:
    """Send each line at its time; whoever is told to come again does, so often in all."""
    requests = [_request(line) for line in lines]
    visitors = _Visitors(address, len(requests))
    for _ in range(connections):
        await visitors.connect()
    began = time.perf_counter() + 0.1
    for number, request in enumerate(requests):
        due = began + number / per_s
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        elif number % SENT_AT_ONCE == 0:  # behind: what has come back is heard all the same
            await asyncio.sleep(0)
        visitors.come(_Visit(request, due, tries - 1))
    await visitors.until_told()
    seconds = time.perf_counter() - began
    visitors.leave()
    told = _told(
        len(requests), seconds, visitors.statuses, visitors.granted, visitors.refused, visitors.without_retry_after
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
    requests = [_request(line) for line in lines]
    visitors = _Visitors(address, len(requests))
    for _ in requests:
        await visitors.connect()
    began = time.perf_counter()
    for request in requests:
        visitors.come(_Visit(request, began, 0))
    await visitors.until_told()
    seconds = time.perf_counter() - began
    visitors.leave()
    return _told(len(requests), seconds, visitors.statuses, visitors.granted + visitors.refused, [], 0)


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


def _header(head: bytes, name: bytes) -> bytes | None:
    """The value of a header, of a head in small letters."""
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    return head[at + len(name) + 3 :].split(b"\r\n", 1)[0].strip()


def _percentile(sorted_s: Sequence[float], share: float) -> float:
    if not sorted_s:
        return 0.0
    return round(sorted_s[min(len(sorted_s) - 1, int(len(sorted_s) * share))] * 1_000, 3)


def main() -> None:
    """Read what to send, send it, and print what came back."""
    asked = json.load(sys.stdin)
    works: dict[str, Callable[..., Coroutine[Any, Any, dict[str, Any]]]] = {"run": run, "burst": burst}
    work = works[sys.argv[1]]
    gc.disable()  # nothing here goes in circles, and a collection would count as a slow answer
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(work(**asked))))


if __name__ == "__main__":
    main()
