"""HTTP as far as the crowd needs it: a bounded number of connections that stay open, and streams that are only read."""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from voelgoed.demo.figures import Figures
from voelgoed.ids import new_id

CONNECTIONS_MAX: Final = 128
ANSWER_WAIT_S: Final = 10.0
HEAD_BYTES_MAX: Final = 64 * 1024
TRIES: Final = 4
PAUSE_S: Final = 0.25


class Unreached(Exception):
    """Nobody answered, several times."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, and what the body says."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def data(self) -> Any:
        return self.json["data"]


class Client:
    """The way to the demonstration's own address. Asks again when the process it talked to has gone."""

    def __init__(self, host: str, port: int, figures: Figures) -> None:
        self._host, self._port = host, port
        self._figures = figures
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)

    async def ask(self, method: str, path: str, *, token: str | None = None, body: object = None) -> Answer:
        """One answer. Whatever the crowd asks may be asked again, and has one effect: each request has a key."""
        request = self._request(method, path, token, msgspec.json.encode(body) if body is not None else b"")
        for tried in range(TRIES):
            if tried:
                self._figures.count("retried")
                await asyncio.sleep(PAUSE_S * tried)
            with contextlib.suppress(OSError, EOFError, ValueError, TimeoutError):
                async with self._room:
                    return await self._once(request)
        self._figures.count("failed")
        raise Unreached

    async def watch(self, path: str, *, seconds: float) -> None:
        """Look at a stream for so long; what it says is not read."""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(self._host, self._port)
                with contextlib.closing(writer):
                    writer.write(self._request("GET", path, None, b""))
                    while await reader.read(HEAD_BYTES_MAX):
                        pass

    def close(self) -> None:
        while self._free:
            self._free.pop()[1].close()

    async def _once(self, request: bytes) -> Answer:
        began = time.perf_counter()
        async with asyncio.timeout(ANSWER_WAIT_S):
            reader, writer = await self._connection()
            is_kept = False
            try:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                status, length, is_kept = _read_head(head)
                answer = Answer(status, await reader.readexactly(length))
            except BaseException:
                is_kept = False
                raise
            finally:
                if is_kept:
                    self._free.append((reader, writer))
                else:
                    writer.close()
        self._figures.answered(time.perf_counter() - began)
        return answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._free:
            reader, writer = self._free.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._host, self._port, limit=HEAD_BYTES_MAX)

    def _request(self, method: str, path: str, token: str | None, body: bytes) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}:{self._port}", f"Content-Length: {len(body)}"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        if body:
            lines += ["Content-Type: application/json", f"Idempotency-Key: {new_id()}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


def _read_head(head: bytes) -> tuple[int, int, bool]:
    """The status, how long the body is, and whether the connection stays."""
    first, *lines = head[:-4].split(b"\r\n")
    named = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    is_kept = named.get(b"connection", b"").lower() != b"close"
    return int(first[9:12]), int(named.get(b"content-length", b"0")), is_kept
