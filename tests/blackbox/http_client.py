"""A small HTTP/1.1 client over asyncio. It never retries: the history must contain every request that was sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_S = 4.0
HEAD_BYTES_MAX = 2**16
SILENCE_S = 20.0
"""A stream shows a sign of life every 15 seconds."""
NO_BODY = frozenset({204, 304})


class NotSent(Exception):
    """The connection could not be opened, so the server never saw the request."""


class NoAnswer(Exception):
    """The request was sent and no complete answer came. Its outcome is unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass(slots=True)
class Client:
    """One keep-alive connection to the server, opened again after an error."""

    host: str
    port: int
    token: str = ""
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None, init=False)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Answer:
        """Send one request and return its response. Raise `NotSent` or `NoAnswer`."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await self._connect()
                try:
                    writer.write(self._encode(method, path, body, headers or {}))
                    answer = await _read_answer(reader)
                except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as failed:
                    raise NoAnswer(type(failed).__name__) from None
        except TimeoutError:
            self.close()
            raise NoAnswer("timeout") from None
        except (NoAnswer, asyncio.CancelledError):
            self.close()
            raise
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection; the next request opens another, perhaps to another web process."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[dict[str, str]]:
        """Follow a server-sent event stream and yield its frames. Raise `NotSent` or `NoAnswer` when it breaks."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await self._connect()
                writer.write(self._encode("GET", path, None, headers))
                status, _ = await _read_head(reader)
            if status != 200:
                raise NoAnswer(f"status {status}")
            pending = b""
            while chunk := await asyncio.wait_for(_read_chunk(reader), SILENCE_S):
                *frames, pending = (pending + chunk).split(b"\n\n")
                for frame in frames:
                    yield _parse_frame(frame.decode())
        except (TimeoutError, OSError, EOFError, ValueError, asyncio.LimitOverrunError) as failed:
            raise NoAnswer(type(failed).__name__) from None
        finally:
            self.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            try:
                self._streams = await asyncio.open_connection(self.host, self.port, limit=HEAD_BYTES_MAX)
            except TimeoutError:
                raise
            except OSError as failed:
                raise NotSent(type(failed).__name__) from None
        return self._streams

    def _encode(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> bytes:
        sent = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"host: {self.host}:{self.port}"]
        if self.token:
            lines.append(f"authorization: Bearer {self.token}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append("content-type: application/json")
        if method != "GET":
            lines.append(f"content-length: {len(sent)}")
        return "\r\n".join([*lines, "", ""]).encode() + sent


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    status, headers = await _read_head(reader)
    if status in NO_BODY:
        return Answer(status, headers, b"")
    if "content-length" not in headers:
        raise ValueError("a response without a content-length")
    return Answer(status, headers, await reader.readexactly(int(headers["content-length"])))


async def _read_chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readuntil(b"\r\n"), 16)
    return (await reader.readexactly(size + 2))[:-2]


def _parse_frame(text: str) -> dict[str, str]:
    """Return the fields of a frame; comments (signs of life) have none."""
    pairs = (line.partition(": ") for line in text.splitlines() if not line.startswith(":"))
    return {name: value for name, _, value in pairs}
