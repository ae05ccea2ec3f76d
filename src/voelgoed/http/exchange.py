"""A request and its answer, whatever lies between the two."""

import asyncio
import http
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote_to_bytes

import httptools
from starlette.types import ASGIApp, Message, Scope

from voelgoed.http.heads import Head

if TYPE_CHECKING:
    from voelgoed.http.wire import Line

UNREAD_BYTES_MAX: Final = 256 * 1024
STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus
}
NO_BODY: Final = frozenset({204, 304})
DISCONNECTED: Final[Message] = {"type": "http.disconnect"}
ASGI: Final = {"version": "3.0", "spec_version": "2.3"}  # from 2.4 on, who streams waits for `send` to raise

Handler = Callable[["Exchange"], Coroutine[Any, Any, None] | None]
"""Says what is left to do for an answer. Or nothing: then it answers by itself, but not before it has returned."""
TurnAway = Callable[[bytes], bytes | None]
"""Looks at what has come where nothing else is asked, before it is parsed: what is said of it behind the status 503 and
the date, or nothing when it is to be read."""
Pairs = Sequence[tuple[bytes, bytes]]


class ClientGone(Exception):
    """Whoever asked has left; there is nobody to answer."""


class Exchange:
    """A request and its answer. `receive` and `send` speak ASGI; `answer` says everything at once."""

    __slots__ = (
        "_arrived",
        "_expects",
        "_is_chunked",
        "_is_read",
        "_is_silent",
        "_line",
        "_owed",
        "_parts",
        "_unread",
        "head",
        "headers",
        "is_begun",
        "is_complete",
        "is_done",
        "is_offered",
        "keep_alive",
        "method",
        "path",
        "query",
        "raw_path",
        "version",
    )

    def __init__(self, line: "Line", method: str, target: bytes, head: Head, version: str = "1.1") -> None:
        self._line = line
        self.method = method
        path, _, query = target.partition(b"?")
        if not path.startswith(b"/"):  # the form that proxies are asked in, or `*`
            path, query = _path_of(target) if method != "CONNECT" else (b"/", b"")
        self.raw_path, self.query = path, query
        self.path = (unquote_to_bytes(path) if b"%" in path else path).decode("utf-8", "replace")
        self.head = head
        self.headers: Mapping[bytes, bytes] = head.headers
        self.version = version
        self.keep_alive = True
        self.is_offered = self.is_complete = self.is_begun = self.is_done = False
        self._parts: list[bytes] = []
        self._unread = 0
        self._is_read = False
        self._arrived: asyncio.Future[None] | None = None
        self._expects = (
            b"expect" in self.headers and self.headers[b"expect"].lower() == b"100-continue" and version == "1.1"
        )

    @property
    def client(self) -> str | None:
        """The address of the other end."""
        return self._line.peer

    @property
    def is_open(self) -> bool:
        """Whether anybody is there to be answered."""
        return self._line.transport is not None

    @property
    def is_full(self) -> bool:
        """Whether as much lies here unread as we keep."""
        return self._unread >= UNREAD_BYTES_MAX

    # What was asked

    def whole_body(self) -> bytes | None:
        """The body, when it is all here; taken, so only once."""
        if not self.is_complete:
            return None
        self._is_read = True
        self._line.go_on_reading()
        parts, self._parts = self._parts, []
        return b"".join(parts)

    async def receive(self) -> Message:
        """The next part of the body, as ASGI has it; after the last one, the end of the line."""
        while not self._parts and not self.is_complete and not self.is_done and self.is_open:
            if self._expects and not self.is_begun:
                self._expects = False
                self._line.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await self._wait()
        if not self._is_read and (self._parts or self.is_complete):
            body = b"".join(self._parts)
            self._parts.clear()
            self._unread = 0
            self._is_read = is_last = self.is_complete
            self._line.go_on_reading()  # which may bring the rest: that is the next part
            return {"type": "http.request", "body": body, "more_body": not is_last}
        while self.is_open and not self.is_done:
            await self._wait()
        return DISCONNECTED

    async def _wait(self) -> None:
        """Until something has come, or was answered, or the line is gone."""
        if self._arrived is None:
            self._arrived = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._arrived)

    def _wake(self) -> None:
        if self._arrived is not None:
            self._arrived.set_result(None)
            self._arrived = None

    def take_body(self, data: bytes) -> bool:
        """A part of the body; whether there is room for more."""
        self._parts.append(data)
        self._unread += len(data)
        self._wake()
        return self._unread < UNREAD_BYTES_MAX

    def complete(self, *, keep_alive: bool) -> None:
        """The request is all there. Whoever was told already that the line ends is not told otherwise."""
        self.keep_alive = self.keep_alive and keep_alive
        self.is_complete = True
        self._wake()

    def has_come(self, body: bytes) -> None:
        """The request is all there, and came at once."""
        if body:
            self._parts.append(body)
        self.is_complete = self.is_offered = True

    def lost(self) -> None:
        """The line is gone."""
        self._wake()

    # What is answered

    def answer(self, status: int, headers: bytes, body: bytes) -> None:
        """Answer at once: the lines of the headers, each with its end, and the body."""
        if self.is_done:
            return
        self.is_begun = True
        head = STATUS_LINES[status] + self._line.house.date + headers
        if status in NO_BODY:
            body = b""
        else:
            head += b"content-length: %d\r\n" % len(body)
        self._line.write(head + self._last_header() + (body if self.method != "HEAD" else b""))
        self._end()

    async def send(self, message: Message) -> None:
        """Answer as ASGI has it."""
        if self.is_done or not self.is_open:
            return
        if message["type"] == "http.response.start":
            self.begin(message["status"], message.get("headers", ()))
            return
        body: bytes = message.get("body", b"")
        is_last = not message.get("more_body", False)
        if self._is_silent:
            body = b""
        elif self._owed is not None:
            self._owed -= len(body)
            if self._owed < 0 or (is_last and self._owed):  # what comes next would be taken for this, or this for it
                raise ValueError("a body is as long as its header says")
        if body:
            self._line.write(b"%x\r\n%b\r\n" % (len(body), body) if self._is_chunked else body)
        if is_last:
            if self._is_chunked:
                self._line.write(b"0\r\n\r\n")
            if self._line.house.is_closing:
                self.keep_alive = False
            self._end()
        await self._line.drained()

    def begin(self, status: int, pairs: Iterable[tuple[bytes, bytes]], more: bytes = b"") -> None:
        """Send the headers, and more of them that are lines already; the body comes piece by piece."""
        if self.is_done:
            return
        lines: list[bytes] = []
        self._owed: int | None = None
        self._is_silent = self.method == "HEAD" or status in NO_BODY
        self._is_chunked = False
        for name, value in pairs:
            if name == b"content-length":
                if status in NO_BODY:
                    continue
                self._owed = int(value)
            if name == b"connection" and value == b"close":
                self.keep_alive = False
            else:
                lines.append(name + b": " + value + b"\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
            raise ValueError("a header is one line")
        if self._owed is None and not self._is_silent:
            if self.version == "1.1":
                self._is_chunked = True
                head += b"transfer-encoding: chunked\r\n"
            else:
                self.keep_alive = False
        self.is_begun = True
        line = STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
        self._line.write(line + self._line.house.date + head + more + self._last_header())

    def _last_header(self) -> bytes:
        """Whether the line goes on, and the empty line."""
        if not self.is_complete or self._line.house.is_closing:  # what was not read is still on its way
            self.keep_alive = False
        if not self.keep_alive:
            return b"connection: close\r\n\r\n"
        return b"connection: keep-alive\r\n\r\n" if self.version == "1.0" else b"\r\n"

    def write(self, data: bytes) -> None:
        """A piece of an answer that has begun, however much waits already: whoever calls this looks after that."""
        if self.is_open and not self.is_done:
            self._line.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def finish(self) -> None:
        """The end of an answer that has begun."""
        if self.is_done:
            return
        if self._is_chunked and self.is_open:
            self._line.write(b"0\r\n\r\n")
        self._end()

    def drop(self) -> None:
        """Give up whoever does not read, with what waits for them."""
        if self._line.transport is not None:
            self._line.transport.abort()

    @property
    def unsent_bytes(self) -> int:
        """What waits for the other end to read."""
        transport = self._line.transport
        return transport.get_write_buffer_size() if transport is not None else 0

    async def until_gone(self) -> None:
        """Until the answer is at its end, or nobody is there for it."""
        while self.is_open and not self.is_done:
            await self._wait()

    def cut_off(self) -> None:
        """Nothing more is said, whatever was."""
        self.keep_alive = False
        self._end()

    def _end(self) -> None:
        self.is_done = True
        self._wake()
        self._line.answered(self)

    def scope(self) -> Scope:
        """The request as ASGI has it."""
        return {
            "type": "http",
            "asgi": ASGI,
            "http_version": self.version,
            "method": self.method,
            "scheme": "http",
            "path": self.path,
            "raw_path": self.raw_path,
            "query_string": self.query,
            "root_path": "",
            "headers": list(self.head.pairs),
            "client": (self._line.peer, 0) if self._line.peer else None,
            "server": None,
            "state": {},
        }


def asgi(app: ASGIApp) -> Handler:
    """Any ASGI application as a handler."""

    async def handle(exchange: Exchange) -> None:
        await app(exchange.scope(), exchange.receive, cast(Any, exchange.send))

    return handle


def _path_of(target: bytes) -> tuple[bytes, bytes]:
    """Path and query of an absolute address, or of `*`; what is neither makes no sense, which the parser passes on."""
    url = httptools.parse_url(target)
    return url.path or b"/", url.query or b""
