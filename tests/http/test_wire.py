"""HTTP/1.1 on real sockets, asked by clients that are slow, rude, broken or gone; on uvloop as in production."""

import asyncio
import contextlib
import functools
import itertools
import logging
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, ParamSpec

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.make.processes import free_port
from voelgoed.http import exchange, wire
from voelgoed.http.bouncer import asked_plainly
from voelgoed.http.exchange import ClientGone, Exchange, Handler, TurnAway
from voelgoed.http.wire import House, Line

P = ParamSpec("P")

LOOP = uvloop.new_event_loop
PATIENCE_S = 30.0
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(slots=True)
class Said:
    """An answer as it came over the line."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


@dataclass(slots=True)
class Caller:
    """Somebody at the other end of a line."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def say(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))

    async def head(self) -> Said:
        """Status and headers."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[:-2]
        pairs = [(name, value) for name, _, value in (line.partition(b": ") for line in lines[1:])]
        assert len({name for name, _ in pairs}) == len(pairs), "a header was sent twice"
        return Said(int(lines[0].split()[1]), dict(pairs), b"")

    async def answer(self, *, is_head: bool = False) -> Said:
        """A whole answer, and not a byte more of it than its own headers say."""
        said = await self.head()
        if is_head or said.status in (204, 304):
            return said
        if said.headers.get(b"transfer-encoding") == b"chunked":
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                said.body += await self.reader.readexactly(size)
                assert await self.reader.readexactly(2) == b"\r\n"
            assert await self.reader.readexactly(2) == b"\r\n"
        elif b"content-length" in said.headers:
            said.body = await self.reader.readexactly(int(said.headers[b"content-length"]))
        else:
            said.body = await self.reader.read()
        return said

    async def ask(self, *parts: bytes) -> Said:
        self.say(*parts)
        return await self.answer()

    async def is_over(self) -> bool:
        """Whether nothing more is said, and the line ended; a reset is an end as well."""
        with contextlib.suppress(ConnectionError):
            return not await self.reader.read()
        return True

    def reset(self) -> None:
        """Leave as a crashed machine does."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass(slots=True)
class Place:
    """A house that listens, and those who have called."""

    house: House
    port: int
    callers: list[Caller] = field(default_factory=list)

    async def call(self, **how: Any) -> Caller:
        caller = Caller(*await asyncio.open_connection("127.0.0.1", self.port, **how))
        self.callers.append(caller)
        return caller

    @property
    def line(self) -> Line:
        (line,) = self.house.lines
        return line

    def sweep_after(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the time pass, and the sweeper come."""
        later = self.house.now + seconds
        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: later)
            assert self.house._timer is not None
            self.house._timer.cancel()
            self.house._sweep()


@contextlib.asynccontextmanager
async def listening(handler: Handler, turn_away: TurnAway = lambda _: None) -> AsyncIterator[Place]:
    """A house of its own; when it is closed no task is left, and nothing went wrong out of sight."""
    loop, before, wrong = asyncio.get_running_loop(), asyncio.all_tasks(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: wrong.append(context))
    house = House(handler, turn_away)
    place = Place(house, free_port())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await house.open("127.0.0.1", place.port)
            yield place
    finally:
        house.stop()
        await house.close()
        for caller in place.callers:
            caller.writer.transport.abort()
        loop.set_exception_handler(None)
    async with asyncio.timeout(PATIENCE_S):
        await until(lambda: asyncio.all_tasks() <= before and not house.lines)
        await asyncio.sleep(0)  # what follows a task's end comes one turn after it
    assert house.quiet.is_set()
    assert house.empty.is_set()
    assert not wrong


async def until(holds: Callable[[], object]) -> None:
    """Let everybody else go on until something holds."""
    while not holds():
        await asyncio.sleep(0.001)


def is_stalled(house: House) -> bool:
    return any(line.stalled_since is not None for line in house.lines)


def has_headers(line: Line, count: int) -> bool:
    return len(line._pairs) >= count


async def echo(exchange: Exchange) -> None:
    """Say what was asked."""
    body = b""
    while True:  # ends with the body
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message["body"]
        if not message["more_body"]:
            break
    exchange.answer(200, b"", b"%b %b?%b %b" % (exchange.method.encode(), exchange.raw_path, exchange.query, body))


async def hello(exchange: Exchange) -> None:
    exchange.answer(200, b"", b"hello")


async def nobody(exchange: Exchange) -> None:
    raise AssertionError(f"handled: {exchange.method} {exchange.raw_path!r}")


@dataclass(slots=True)
class Counter:
    """A handler that counts, and waits when it is told to."""

    seen: list[bytes] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def __call__(self, exchange: Exchange) -> None:
        self.seen.append(exchange.raw_path)
        if self.gate is not None:
            await self.gate.wait()
        exchange.answer(200, b"", exchange.raw_path)


def on_uvloop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on a loop of the kind that our processes have."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=LOOP) as runner:
            runner.run(test(*args, **kwargs))

    return run


@pytest.fixture(autouse=True)
def nothing_to_complain(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The loop warns in its log of what was written to lines that are gone."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING and record.name == "asyncio"]


# One request after the other


@on_uvloop
async def test_a_line_is_used_again() -> None:
    """A client asks as often as it likes, whatever the answers are."""
    async with listening(echo) as place:
        caller = await place.call()
        for number in range(3):
            said = await caller.ask(b"GET /%d?a=b HTTP/1.1\r\nhost: x\r\n\r\n" % number)
            assert (said.status, said.body) == (200, b"GET /%d?a=b " % number)
            assert b"connection" not in said.headers
            assert said.headers[b"date"].endswith(b" GMT")
        assert len(place.house.lines) == 1


@on_uvloop
async def test_pipelined_requests_are_answered_in_their_order() -> None:
    """Even when the first takes the longest; one at a time."""
    counter = Counter(gate=asyncio.Event())
    async with listening(counter) as place:
        caller = await place.call()
        caller.say(*(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(5)))
        await until(lambda: len(place.house.lines) == 1 and len(place.line._waiting) == 4)
        assert counter.seen == [b"/0"]
        assert counter.gate is not None
        counter.gate.set()
        assert [(await caller.answer()).body for _ in range(5)] == [b"/%d" % number for number in range(5)]


@on_uvloop
async def test_a_flood_of_requests_is_held_back_and_answered() -> None:
    """However many come at once, a few are kept; none is forgotten."""
    count = 8000
    counter = Counter(gate=asyncio.Event())
    most = 0

    async def watched(exchange: Exchange) -> None:
        nonlocal most
        most = max(most, len(exchange._line._waiting))
        await counter(exchange)

    async with listening(watched) as place:
        caller = await place.call()
        caller.say(*(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(count)))
        await until(lambda: counter.seen and place.line._is_held_back)
        assert counter.gate is not None
        counter.gate.set()
        for number in range(count):
            assert (await caller.answer()).body == b"/%d" % number
    assert wire.PIPELINED_MAX <= most < wire.PIPELINED_MAX + wire.PIECE_BYTES // 20


@on_uvloop
async def test_answers_nobody_reads_keep_the_next_requests_waiting() -> None:
    """Who asks and asks without reading costs us a buffer, not all the answers; who reads then gets them all."""
    counter, size, count = Counter(), 512 * 1024, 100

    async def large(exchange: Exchange) -> None:
        counter.seen.append(exchange.raw_path)
        exchange.answer(200, b"", bytes(size))

    async with listening(large) as place:
        caller = await place.call(limit=1024)
        for _ in range(count):
            caller.say(GET)
        await until(lambda: len(place.house.lines) == 1 and place.line.stalled_since is not None)
        await until(lambda: place.line.is_idle() and place.line._waiting)
        transport = place.line.transport
        assert transport is not None
        assert transport.get_write_buffer_size() < 2 * size
        assert len(counter.seen) < count
        for _ in range(count):
            assert len((await caller.answer()).body) == size


@pytest.mark.parametrize(
    ("asked", "connection"),
    [
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"close"),
        (b"GET / HTTP/1.1\r\nConnection: Close, te\r\n\r\n", b"close"),
        (b"GET / HTTP/1.0\r\n\r\n", b"close"),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"keep-alive"),
        (b"GET / HTTP/1.1\r\n\r\n", None),
    ],
)
@on_uvloop
async def test_a_line_ends_when_the_client_says_so(asked: bytes, connection: bytes | None) -> None:
    """HTTP/1.1 goes on unless it is told not to; HTTP/1.0 the other way round."""
    async with listening(hello) as place:
        caller = await place.call()
        said = await caller.ask(asked)
        assert (said.body, said.headers.get(b"connection")) == (b"hello", connection)
        if connection == b"close":
            assert await caller.is_over()
        else:
            assert (await caller.ask(GET)).body == b"hello"


@on_uvloop
async def test_nothing_is_handled_behind_the_last_request() -> None:
    """What comes after `Connection: close` is not for us, and costs the client nothing of the answer."""
    counter = Counter()
    async with listening(counter) as place:
        caller = await place.call()
        said = await caller.ask(b"GET /last HTTP/1.1\r\nconnection: close\r\n\r\n", GET * 100)
        assert said.body == b"/last"
        assert await caller.is_over()
    assert counter.seen == [b"/last"]


# Bodies


@on_uvloop
async def test_a_body_comes_in_pieces() -> None:
    """The handler gets each as it comes, and knows the last."""
    got, came = list[tuple[bytes, bool]](), asyncio.Event()

    async def pieces(exchange: Exchange) -> None:
        more = True
        while more:
            message = await exchange.receive()
            more = message["more_body"]
            got.append((message["body"], more))
            came.set()
        exchange.answer(200, b"", b"")

    async with listening(pieces) as place:
        caller = await place.call()
        caller.say(b"POST / HTTP/1.1\r\ncontent-length: 6\r\n\r\n")
        for piece in (b"ab", b"cd", b"ef"):
            caller.say(piece)
            await came.wait()
            came.clear()
        assert (await caller.answer()).status == 200
    assert got == [(b"ab", True), (b"cd", True), (b"ef", False)]


@on_uvloop
async def test_a_body_comes_in_chunks() -> None:
    """With extensions, trailers and in capitals, as the standard has it."""
    async with listening(echo) as place:
        caller = await place.call()
        said = await caller.ask(CHUNKED, b"3\r\nabc\r\nA;name=value\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n")
        assert said.body == b"POST /? abc0123456789"
        assert (await caller.ask(GET)).body == b"GET /? "


@on_uvloop
async def test_what_trails_a_body_is_not_the_next_request() -> None:
    """Otherwise one client behind a proxy could put headers on another's request."""
    seen = list[list[tuple[bytes, bytes]]]()

    async def pairs(exchange: Exchange) -> None:
        seen.append(exchange.head.pairs)
        await echo(exchange)

    async with listening(pairs) as place:
        caller = await place.call()
        await caller.ask(CHUNKED, b"0\r\nAuthorization: Bearer mine\r\n\r\n")
        await caller.ask(GET)
    assert seen[1] == [(b"host", b"x")]


@pytest.mark.parametrize("is_chunked", [False, True])
@on_uvloop
async def test_a_large_body_waits_outside(is_chunked: bool) -> None:  # noqa: FBT001
    """What is not read is held back, and arrives whole when it is."""
    size, gate, most = 4 * 1024 * 1024, asyncio.Event(), 0

    async def slow(exchange: Exchange) -> None:
        nonlocal most
        await gate.wait()
        got, more = 0, True
        while more:
            most = max(most, exchange._unread)
            message = await exchange.receive()
            got += len(message["body"])
            more = message["more_body"]
        exchange.answer(200, b"", b"%d" % got)

    async with listening(slow) as place:
        caller = await place.call()
        if is_chunked:
            caller.say(CHUNKED, *[b"10000\r\n" + bytes(0x10000) + b"\r\n"] * (size // 0x10000), b"0\r\n\r\n")
        else:
            caller.say(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size, bytes(size))
        await until(lambda: len(place.house.lines) == 1 and place.line._is_held_back)
        gate.set()
        assert (await caller.answer()).body == b"%d" % size
        assert (await caller.ask(b"GET / HTTP/1.1\r\n\r\n")).body == b"0"
    assert exchange.UNREAD_BYTES_MAX <= most < exchange.UNREAD_BYTES_MAX + wire.PIECE_BYTES


@pytest.mark.parametrize("is_read", [True, False])
@on_uvloop
async def test_a_body_that_just_fills_the_room_does_not_block_the_line(is_read: bool) -> None:  # noqa: FBT001
    """Its last byte holds the line back; its answer lets it go on."""

    async def whole(exchange: Exchange) -> None:
        await until(lambda: exchange.is_complete)
        exchange.answer(200, b"", b"%d" % len(exchange.whole_body() or b"") if is_read else b"")

    async with listening(whole) as place:
        caller = await place.call()
        size = exchange.UNREAD_BYTES_MAX
        for _ in range(3):
            said = await caller.ask(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size, bytes(size))
            assert said.body == (b"%d" % size if is_read else b"")


@on_uvloop
async def test_a_large_body_behind_a_slow_request_waits_outside() -> None:
    """Each answer before it lets its own successor in, not more of the body."""
    counter = Counter(gate=asyncio.Event())

    async def either(exchange: Exchange) -> None:
        await (counter(exchange) if exchange.method == "GET" else echo(exchange))

    async with listening(either) as place:
        caller = await place.call()
        size = 8 * exchange.UNREAD_BYTES_MAX
        caller.say(GET * 8, b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size, bytes(size))
        await until(lambda: len(place.house.lines) == 1 and place.line._is_held_back)
        body = place.line._waiting[-1]
        assert counter.gate is not None
        counter.gate.set()
        for _ in range(7):
            await caller.answer()
            assert body._unread < exchange.UNREAD_BYTES_MAX + wire.PIECE_BYTES or body.is_begun
        await caller.answer()
        assert len((await caller.answer()).body) == size + len(b"POST /? ")


@on_uvloop
async def test_a_client_that_asks_whether_to_send_is_told_when_the_body_is_wanted() -> None:
    """Not before: a refusal costs nobody an upload."""
    wanted = asyncio.Event()

    async def later(exchange: Exchange) -> None:
        await wanted.wait()
        await echo(exchange)

    async with listening(later) as place:
        caller = await place.call()
        caller.say(b"POST / HTTP/1.1\r\ncontent-length: 2\r\nExpect: 100-Continue\r\n\r\n")
        await until(lambda: not place.house.quiet.is_set())
        assert not caller.reader._buffer  # type: ignore[attr-defined]
        wanted.set()
        assert (await caller.head()).status == 100
        assert (await caller.ask(b"ab")).body == b"POST /? ab"
        assert (await caller.ask(GET)).status == 200


@on_uvloop
async def test_a_client_that_asks_whether_to_send_may_be_refused() -> None:
    """It gets the answer only, and the line ends: whether the body comes after all nobody knows."""
    async with listening(hello) as place:
        caller = await place.call()
        said = await caller.ask(b"POST / HTTP/1.1\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n")
        assert (said.status, said.headers[b"connection"]) == (200, b"close")
        assert await caller.is_over()


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@on_uvloop
async def test_nobody_is_told_to_go_on_in_the_middle_of_an_answer(version: bytes) -> None:
    """Nor a client that does not know what it means."""

    async def talkative(exchange: Exchange) -> None:
        if exchange.version == "1.1":
            exchange.begin(200, ())
        await exchange.receive()
        if exchange.version == "1.0":
            exchange.begin(200, ())
        await exchange.send({"type": "http.response.body", "body": b"ok"})

    async with listening(talkative) as place:
        caller = await place.call()
        caller.say(b"POST / HTTP/%b\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n" % version)
        await until(lambda: place.house.lines and place.line._current is not None and place.line._current._arrived)
        caller.say(b"ab")
        said = await caller.answer()
        assert (said.status, said.body) == (200, b"ok")


@on_uvloop
async def test_an_answer_before_the_body_can_be_read() -> None:
    """The client still sends, and reads the refusal afterwards: we take what comes for a moment."""

    async def refuse(exchange: Exchange) -> None:
        exchange.answer(413, b"", b"too large")

    async with listening(refuse) as place:
        caller = await place.call()
        size = 8 * 1024 * 1024
        caller.say(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(8):
            caller.say(bytes(size // 8))
            await caller.writer.drain()
        said = await caller.answer()
        assert (said.status, said.body, said.headers[b"connection"]) == (413, b"too large", b"close")
        assert await caller.is_over()


@on_uvloop
async def test_a_client_that_was_told_that_the_line_ends_is_not_served_on_it() -> None:
    """An answer that began before the body was there said so; that the body came since changes nothing."""
    counter = Counter()

    async def early(exchange: Exchange) -> None:
        counter.seen.append(exchange.raw_path)
        exchange.begin(200, ())
        await echo_body(exchange)
        await exchange.send({"type": "http.response.body", "body": b""})

    async def echo_body(exchange: Exchange) -> None:
        while (message := await exchange.receive())["more_body"]:
            await exchange.send({"type": "http.response.body", "body": message["body"], "more_body": True})

    async with listening(early) as place:
        caller = await place.call()
        caller.say(b"POST /early HTTP/1.1\r\ncontent-length: 2\r\n\r\n")
        assert (await caller.head()).headers[b"connection"] == b"close"
        caller.say(b"ab", GET)
        await caller.is_over()
    assert counter.seen == [b"/early"]


# Answers


@pytest.mark.parametrize("is_streamed", [False, True])
@on_uvloop
async def test_a_head_is_the_headers_alone(is_streamed: bool) -> None:  # noqa: FBT001
    """With the length of what a GET would have got."""

    async def answer(exchange: Exchange) -> None:
        if not is_streamed:
            exchange.answer(200, b"", b"hello")
            return
        exchange.begin(200, [(b"content-length", b"5")])
        await exchange.send({"type": "http.response.body", "body": b"hello"})

    async with listening(answer) as place:
        caller = await place.call()
        caller.say(b"HEAD / HTTP/1.1\r\n\r\n")
        assert (await caller.answer(is_head=True)).headers[b"content-length"] == b"5"
        assert (await caller.ask(GET)).body == b"hello"


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("is_streamed", [False, True])
@on_uvloop
async def test_some_answers_have_no_body(status: int, is_streamed: bool) -> None:  # noqa: FBT001
    """Nor a length, even when a handler has one: the next answer would begin with it."""

    async def answer(exchange: Exchange) -> None:
        if not is_streamed:
            exchange.answer(status, b"", b"hello")
            return
        exchange.begin(status, [(b"content-length", b"5"), (b"etag", b'"1"')])
        await exchange.send({"type": "http.response.body", "body": b"hello"})

    async with listening(answer) as place:
        caller = await place.call()
        for _ in range(2):
            said = await caller.ask(GET)
            assert said.status == status
            assert not {b"content-length", b"transfer-encoding"} & said.headers.keys()


@on_uvloop
async def test_a_stream_is_chunked_or_ends_with_the_line() -> None:
    """As the client understands it."""

    async def stream(_: Request) -> Response:
        return StreamingResponse(iter([b"one", b"", b"two"]))

    async with listening(exchange.asgi(Starlette(routes=[Route("/", stream)]))) as place:
        caller = await place.call()
        said = await caller.ask(GET)
        assert (said.body, said.headers[b"transfer-encoding"]) == (b"onetwo", b"chunked")
        said = await caller.ask(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
        assert (said.body, said.headers[b"connection"]) == (b"onetwo", b"close")
        assert b"transfer-encoding" not in said.headers


@pytest.mark.parametrize("header", [(b"x", b"a\r\nset-cookie: b"), (b"x", b"a\nb"), (b"x", b"a\rb"), (b"x\r\ny", b"a")])
@on_uvloop
async def test_a_header_is_one_line(header: tuple[bytes, bytes]) -> None:
    """Nobody smuggles a header, or an answer, into ours; nothing of it is sent."""

    async def answer(exchange: Exchange) -> None:
        with contextlib.suppress(ValueError):
            exchange.begin(200, [header])
        assert not exchange.is_begun
        exchange.answer(500, b"", b"")

    async with listening(answer) as place:
        said = await (await place.call()).ask(GET)
        assert said.status == 500
        assert set(said.headers) == {b"date", b"content-length"}


@pytest.mark.parametrize("parts", [[b"short"], [b"far too long"], [b"0123456789", b"more"]])
@on_uvloop
async def test_a_body_is_as_long_as_its_header_says(parts: list[bytes]) -> None:
    """Otherwise the next answer would be read as a part of this one: the line is cut, and not a byte too many sent."""

    async def wrong(exchange: Exchange) -> None:
        exchange.begin(200, [(b"content-length", b"10")])
        for part in parts:
            await exchange.send({"type": "http.response.body", "body": part, "more_body": part is not parts[-1]})

    async with listening(wrong) as place:
        caller = await place.call()
        caller.say(GET, GET)
        await caller.head()
        assert len(await caller.reader.read()) <= 10


@on_uvloop
async def test_a_handler_may_say_that_the_line_ends() -> None:
    """By the header, as ASGI applications do; it is sent once."""

    async def last(_: Request) -> Response:
        return PlainTextResponse("bye", headers={"connection": "close"})

    async with listening(exchange.asgi(Starlette(routes=[Route("/", last)]))) as place:
        caller = await place.call()
        assert (await caller.ask(GET)).headers[b"connection"] == b"close"
        assert await caller.is_over()


@on_uvloop
async def test_an_unusual_status_has_no_name() -> None:
    """A number that is in no list is passed on."""

    async def odd(exchange: Exchange) -> None:
        await exchange.send({"type": "http.response.start", "status": 299, "headers": [(b"content-length", b"0")]})
        await exchange.send({"type": "http.response.body"})

    async with listening(odd) as place:
        assert (await (await place.call()).ask(GET)).status == 299


# What makes no sense

MALFORMED = [
    b"\0\0\0\0",
    b"hello there\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"get / HTTP/1.1\r\n\r\n",
    b"GET foo HTTP/1.1\r\n\r\n",
    b"GET /a b HTTP/1.1\r\n\r\n",
    b"GET /\0 HTTP/1.1\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\n\r\n",
    b"GET http://[::1/ HTTP/1.1\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1 \r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\nhost: x\n\n",
    b"GET / HTTP/1.1\r\na: b\rc\r\n\r\n",
    b"GET / HTTP/1.1\r\na: b\nc: d\r\n\r\n",
    b"GET / HTTP/1.1\r\na: b\0c\r\n\r\n",
    b"GET / HTTP/1.1\r\na b: c\r\n\r\n",
    b"GET / HTTP/1.1\r\ncontent-length : 5\r\n\r\n",
    b"GET / HTTP/1.1\r\n content-length: 5\r\n\r\n",
    b"GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n",
    b"GET / HTTP/1.1\r\n: c\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na",
    b"POST / HTTP/1.1\r\ncontent-length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\na",
    b"POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\na",
    b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\na",
    b"POST / HTTP/1.1\r\ncontent-length: 0x1\r\n\r\na",
    b"POST / HTTP/1.1\r\ncontent-length:\r\n\r\na",
    b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\na",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nupgrade: a\r\nconnection: upgrade\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nupgrade: a\r\nconnection: upgrade\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\nzzz\r\n",
    CHUNKED + b"x\r\n",
    CHUNKED + b"-1\r\n",
    CHUNKED + b"\r\n",
    CHUNKED + b"1 \r\na\r\n0\r\n\r\n",
    CHUNKED + b"1\na\n0\n\n",
    CHUNKED + b"11111111111111111\r\n",
    CHUNKED + b"2\r\nabX\r\n0\r\n\r\n",
    CHUNKED + b"1;a=\nb\r\na\r\n0\r\n\r\n",
    CHUNKED + b"0\r\na b: c\r\n\r\n",
    b"\r\n" * wire.BETWEEN_BYTES_MAX,
    b"GET /" + b"a" * (wire.HEAD_BYTES_MAX + 1),
    b"GET / HTTP/1.1\r\na: " + b"a" * (wire.BETWEEN_BYTES_MAX + wire.PIECE_BYTES),
    b"GET / HTTP/1.1\r\na: " + b"a" * wire.HEAD_BYTES_MAX + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a" * (wire.BETWEEN_BYTES_MAX + wire.PIECE_BYTES),
    b"GET / HTTP/1.1\r\n" + b"a:\r\n" * (wire.HEAD_BYTES_MAX // 4),
    CHUNKED + b"0\r\na: " + b"a" * (wire.BETWEEN_BYTES_MAX + wire.PIECE_BYTES),
    CHUNKED + b"0\r\n" + b"a:\r\n" * (wire.HEAD_BYTES_MAX // 4),
]


@pytest.mark.parametrize("asked", MALFORMED, ids=lambda asked: repr(asked[:60]))
@on_uvloop
async def test_what_makes_no_sense_is_refused_and_not_handled(asked: bytes) -> None:
    """Refused, and the line ends: whatever follows is not taken for a request. Nothing of it reaches a handler."""
    counter = Counter()

    async def handler(exchange: Exchange) -> None:
        counter.seen.append(exchange.raw_path)
        while (message := await exchange.receive())["type"] == "http.request":  # a body that came first may be read
            assert message["more_body"], "a broken request is never all there"

    async with listening(handler) as place:
        caller = await place.call()
        said = await caller.ask(asked, b"\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n")
        assert (said.status, said.headers[b"connection"]) == (400, b"close")
        assert b"invalid_request" in said.body
        assert await caller.is_over()
    assert b"/smuggled" not in counter.seen
    assert not counter.seen or len(asked) > wire.PIECE_BYTES  # the headers of a long one are looked at meanwhile


@on_uvloop
async def test_a_request_that_breaks_in_its_body_is_refused() -> None:
    """The handler waits for the rest, and is told that there is none; what it answers is not sent."""
    got = list[str]()

    async def handler(exchange: Exchange) -> None:
        got.extend([(await exchange.receive())["type"], (await exchange.receive())["type"]])
        exchange.answer(200, b"", b"")
        exchange.begin(200, ())
        await exchange.send({"type": "http.response.body"})

    async with listening(handler) as place:
        caller = await place.call()
        caller.say(CHUNKED, b"1\r\na\r\n")
        await until(lambda: got or not place.house.quiet.is_set())
        said = await caller.ask(b"zzz\r\n", GET)
        assert said.status == 400
        assert await caller.is_over()
        await until(lambda: len(got) == 2)
    assert got == ["http.request", "http.disconnect"]


@on_uvloop
async def test_an_answer_that_has_begun_is_cut_off_when_its_request_breaks() -> None:
    """There is no other way to say so."""

    async def handler(exchange: Exchange) -> None:
        exchange.begin(200, ())
        await exchange.send({"type": "http.response.body", "body": b"so far", "more_body": True})
        while (await exchange.receive())["type"] == "http.request":
            pass

    async with listening(handler) as place:
        caller = await place.call()
        caller.say(CHUNKED)
        assert (await caller.head()).status == 200
        caller.say(b"zzz\r\n", GET)
        assert await caller.reader.read() == b"6\r\nso far\r\n"


@pytest.mark.parametrize("broken", [b"nonsense\r\n\r\n", CHUNKED + b"zzz\r\n"])
@pytest.mark.parametrize("count", [1, 3])
@on_uvloop
async def test_who_asked_before_the_nonsense_is_answered_first(broken: bytes, count: int) -> None:
    """Then the nonsense is refused, in its turn."""
    counter = Counter(gate=asyncio.Event())
    async with listening(counter) as place:
        caller = await place.call()
        caller.say(*(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(count)), broken, GET)
        await until(lambda: len(place.house.lines) == 1 and place.line._is_deaf)
        assert counter.gate is not None
        counter.gate.set()
        for number in range(count):
            assert (await caller.answer()).body == b"/%d" % number
        assert (await caller.answer()).status == 400
        assert await caller.is_over()
    assert counter.seen == [b"/%d" % number for number in range(count)]


@on_uvloop
async def test_a_waiting_request_that_breaks_is_never_handled() -> None:
    """Its headers came whole, and waited for their turn."""
    counter = Counter(gate=asyncio.Event())
    async with listening(counter) as place:
        caller = await place.call()
        caller.say(b"GET /first HTTP/1.1\r\n\r\n", CHUNKED)
        await until(lambda: len(place.house.lines) == 1 and place.line._waiting)
        caller.say(b"zzz\r\n")
        await until(lambda: place.line._is_deaf)
        assert counter.gate is not None
        counter.gate.set()
        assert [(await caller.answer()).status, (await caller.answer()).status] == [200, 400]
    assert counter.seen == [b"/first"]


@on_uvloop
async def test_headers_of_the_allowed_size_are_read() -> None:
    """The limit is on what is said, in however many pieces."""
    asked = b"GET / HTTP/1.1\r\na: %b\r\n\r\n" % (b"a" * (wire.HEAD_BYTES_MAX - 100))
    async with listening(hello) as place:
        caller = await place.call()
        for step in (len(asked), 1000):
            for at in range(0, len(asked), step):
                caller.say(asked[at : at + step])
                await asyncio.sleep(0)
            assert (await caller.answer()).status == 200


# Other protocols, other addresses


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
@on_uvloop
async def test_a_request_to_change_over_is_answered_as_what_it_is(protocol: bytes) -> None:
    """With its body, and those behind it: nothing is lost, and nothing taken for something else."""
    upgrade = b"upgrade: %b\r\nconnection: Upgrade\r\n" % protocol
    async with listening(echo) as place:
        caller = await place.call()
        caller.say(
            b"GET /1 HTTP/1.1\r\n%b\r\n" % upgrade,
            b"POST /2 HTTP/1.1\r\n%bcontent-length: 18\r\n\r\nGET /x HTTP/1.1\r\n\r" % upgrade,
            b"POST /3 HTTP/1.1\r\n%btransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" % upgrade,
            b"POST /4 HTTP/1.1\r\n%bcontent-length: 0\r\n\r\n" % upgrade,
            b"GET /5 HTTP/1.1\r\n\r\n",
        )
        said = [(await caller.answer()).body for _ in range(5)]
        caller.say(b"POST /6 HTTP/1.1\r\n%bcontent-length: 2\r\n\r\n" % upgrade)
        await until(lambda: not place.house.quiet.is_set())
        assert (await caller.ask(b"ab")).body == b"POST /6? ab"
    assert said == [b"GET /1? ", b"POST /2? GET /x HTTP/1.1\r\n\r", b"POST /3? ab", b"POST /4? ", b"GET /5? "]


@on_uvloop
async def test_we_are_no_tunnel() -> None:
    """A CONNECT is answered like anything else, and what was meant for the far end is not read."""
    counter = Counter()
    async with listening(counter) as place:
        caller = await place.call()
        said = await caller.ask(b"CONNECT far.example:443 HTTP/1.1\r\n\r\n", GET * 10)
        assert (said.body, said.headers[b"connection"]) == (b"/", b"close")
        assert await caller.is_over()
    assert counter.seen == [b"/"]


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/", "/", b""),
        (b"/a?b=c?d", "/a", b"b=c?d"),
        (b"/%41%2f%c3%a9", "/A/é", b""),
        (b"/%ff", "/\N{REPLACEMENT CHARACTER}", b""),
        (b"/%zz%", "/%zz%", b""),
        (b"//far.example/a", "//far.example/a", b""),
        (b"http://far.example/a?b", "/a", b"b"),
        (b"http://far.example?b", "/", b"b"),
        (b"http://far.example", "/", b""),
        (b"*", "*", b""),
    ],
)
@on_uvloop
async def test_an_address_becomes_a_path_and_a_query(target: bytes, path: str, query: bytes) -> None:
    """Decoded once; a path is text whatever its bytes."""
    seen = list[tuple[str, bytes, str]]()

    async def handler(exchange: Exchange) -> None:
        scope = exchange.scope()
        assert scope["raw_path"] == exchange.raw_path
        seen.append((scope["path"], scope["query_string"], scope["client"][0]))
        exchange.answer(200, b"", b"")

    async with listening(handler) as place:
        assert (await (await place.call()).ask(b"OPTIONS %b HTTP/1.1\r\n\r\n" % target)).status == 200
    assert seen == [(path, query, "127.0.0.1")]


# Those who leave


@pytest.mark.parametrize("leave", ["close", "reset", "half"])
@pytest.mark.parametrize("said", [b"", b"GET / HT", GET, b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nab"])
@on_uvloop
async def test_whoever_leaves_is_noticed(leave: str, said: bytes) -> None:
    """The handler is told, goes on, and answers nobody; nobody warns of anything."""
    told, may_go, gone = list[str](), asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        while (message := await exchange.receive())["type"] != "http.disconnect":
            told.append(message["type"])
        assert not exchange.is_open
        gone.set()
        await may_go.wait()
        for _ in range(10):
            await exchange.send({"type": "http.response.start", "status": 200})
            await exchange.send({"type": "http.response.body", "body": b"a", "more_body": True})
        exchange.answer(200, b"", b"")

    async with listening(handler) as place:
        caller = await place.call()
        await until(lambda: place.house.lines)
        caller.say(said)
        is_asked = b"\r\n\r\n" in said
        await until(lambda: not is_asked or told)
        if leave == "reset":
            caller.reset()
        elif leave == "half":
            caller.writer.write_eof()
        else:
            caller.writer.close()
        await place.house.empty.wait()
        if is_asked:
            await gone.wait()
            assert not place.house.quiet.is_set()
        may_go.set()
        await place.house.quiet.wait()


@on_uvloop
async def test_whoever_leaves_in_the_middle_of_an_answer_is_noticed() -> None:
    """Even while a lot is waiting to be sent: the handler does not wait for ever, nor write for nobody."""
    began, gone = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.begin(200, ())
        began.set()
        while exchange.is_open:
            await exchange.send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})
        gone.set()

    for is_reset in (False, True):
        async with listening(handler) as place:
            caller = await place.call(limit=1024)
            caller.say(GET)
            await until(functools.partial(is_stalled, place.house))
            if is_reset:
                caller.reset()
            else:
                caller.writer.close()
            await gone.wait()
            gone.clear()


@on_uvloop
async def test_whoever_leaves_with_requests_unanswered_has_none_of_them_begun() -> None:
    """They waited for the answers before them to be read, which nobody does any more."""
    counter = Counter()

    async def large(exchange: Exchange) -> None:
        counter.seen.append(exchange.raw_path)
        exchange.answer(200, b"", bytes(16 * 1024 * 1024))

    async with listening(large) as place:
        caller = await place.call(limit=1024)
        caller.say(GET, GET, GET)
        await until(lambda: is_stalled(place.house) and place.line._waiting)
        caller.writer.write_eof()
        await place.house.empty.wait()
    assert counter.seen == [b"/"]


@on_uvloop
async def test_whoever_leaves_after_the_answer_is_forgotten() -> None:
    """The line is idle, and then gone."""
    async with listening(hello) as place:
        caller = await place.call()
        await caller.ask(GET)
        caller.writer.close()
        await place.house.empty.wait()


@on_uvloop
async def test_a_stream_ends_when_its_reader_leaves() -> None:
    """Also one that has nothing to say: it is not left to itself for as long as the process lives."""
    ended, began = asyncio.Event(), asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        try:
            yield b"hello"
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def stream(_: Request) -> Response:
        return StreamingResponse(frames())

    async with listening(exchange.asgi(Starlette(routes=[Route("/", stream)]))) as place:
        caller = await place.call()
        caller.say(GET)
        await began.wait()
        caller.writer.close()
        await ended.wait()


# Those who keep us waiting


@on_uvloop
async def test_whoever_does_not_read_is_waited_for_and_then_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """`send` waits, so that memory is bounded, but not for ever."""
    sent, over = 0, asyncio.Event()

    async def endless(exchange: Exchange) -> None:
        nonlocal sent
        exchange.begin(200, ())
        while exchange.is_open:
            sent += 1
            await exchange.send({"type": "http.response.body", "body": bytes(50_000), "more_body": True})
        over.set()

    async with listening(endless) as place:
        caller = await place.call(limit=1024)
        caller.say(GET)
        await until(lambda: len(place.house.lines) == 1 and place.line.stalled_since is not None)
        transport = place.line.transport
        assert transport is not None
        assert transport.get_write_buffer_size() < 50_000 + 128 * 1024
        place.sweep_after(wire.STALLED_S - 5, monkeypatch)
        await asyncio.sleep(0)
        assert not over.is_set()
        place.sweep_after(wire.STALLED_S + 5, monkeypatch)
        await over.wait()


@pytest.mark.parametrize(
    ("said", "wait_s"),
    [
        (b"GET /slow HT", wire.HEADERS_WAIT_S),
        (b"GET /slow HTTP/1.1\r\na: b\r\nc", wire.HEADERS_WAIT_S),
        (GET + b"GET /slow", wire.HEADERS_WAIT_S),
        (b"", wire.IDLE_S),
        (GET, wire.IDLE_S),
        (CHUNKED + b"0\r\na: b\r\n\r\n", wire.IDLE_S),
    ],
)
@on_uvloop
async def test_whoever_says_nothing_is_dropped(said: bytes, wait_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon in the middle of the headers, later between requests."""
    async with listening(echo) as place:
        caller = await place.call()
        caller.say(said)
        await until(lambda: len(place.house.lines) == 1)
        if b"\r\n\r\n" in said:
            await caller.answer()
        if b"/slow" in said:
            await until(lambda: place.line._target == b"/slow")
        place.sweep_after(wait_s - 2, monkeypatch)
        assert place.line.transport is not None
        assert not place.line.transport.is_closing()
        place.sweep_after(4, monkeypatch)
        assert await caller.is_over()


@on_uvloop
async def test_dribbled_headers_gain_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time counts from the first of them."""
    async with listening(nobody) as place:
        caller = await place.call()
        caller.say(b"GET / HTTP/1.1\r\n")
        await until(lambda: len(place.house.lines) == 1 and place.line._target)
        for number in range(3):
            place.sweep_after(wire.HEADERS_WAIT_S / 4, monkeypatch)
            caller.say(b"a: b\r\n")
            await until(functools.partial(has_headers, place.line, number))
        place.sweep_after(wire.HEADERS_WAIT_S / 2, monkeypatch)
        assert await caller.is_over()


@on_uvloop
async def test_whoever_waits_for_us_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler takes the time it needs."""
    counter = Counter(gate=asyncio.Event())
    async with listening(counter) as place:
        caller = await place.call()
        caller.say(GET)
        await until(lambda: counter.seen)
        place.sweep_after(10 * wire.IDLE_S, monkeypatch)
        assert counter.gate is not None
        counter.gate.set()
        assert (await caller.answer()).status == 200


@on_uvloop
async def test_whoever_stays_after_our_last_word_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """We take what comes for a moment, which begins with our last word."""
    async with listening(nobody) as place:
        caller = await place.call()
        caller.say(b"GET / HTTP/1.1\r\n")
        await until(lambda: len(place.house.lines) == 1 and place.line._target)
        place.sweep_after(wire.LEAVING_S + 1, monkeypatch)
        assert (await caller.ask(b"nonsense\r\n")).status == 400
        assert await caller.is_over()
        caller.say(b"more" * 1000)
        place.sweep_after(wire.LEAVING_S - 1, monkeypatch)
        assert place.line.transport is not None
        assert not place.line.transport.is_closing()
        place.sweep_after(wire.LEAVING_S + 1, monkeypatch)
        await place.house.empty.wait()


@on_uvloop
async def test_there_are_so_many_lines_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes too late is turned away at once; the others do not notice."""
    monkeypatch.setattr(wire, "LINES_MAX", 2)
    async with listening(hello) as place:
        inside = [await place.call() for _ in range(2)]
        for caller in inside:
            await caller.ask(GET)
        late = await place.call()
        late.say(GET)
        assert await late.is_over()
        assert (await inside[0].ask(GET)).status == 200
        inside[1].writer.close()
        await until(lambda: len(place.house.lines) == 1)
        assert (await (await place.call()).ask(GET)).status == 200


# Handlers that fail


async def answer_nothing(exchange: Exchange) -> None:
    pass


async def fail_before(exchange: Exchange) -> None:
    raise RuntimeError("before")


async def client_gone(exchange: Exchange) -> None:
    raise ClientGone


def fail_at_once(exchange: Exchange) -> None:
    raise RuntimeError("before anything is left to do")


@pytest.mark.parametrize("handler", [answer_nothing, fail_before, client_gone, fail_at_once])
@on_uvloop
async def test_a_handler_that_does_not_answer_ends_the_line(handler: Handler) -> None:
    """The client learns at once that nothing comes; the next requests are not answered in its place."""
    async with listening(handler) as place:
        caller = await place.call()
        caller.say(GET, GET)
        assert await caller.is_over()


@on_uvloop
async def test_an_answer_that_fails_in_the_middle_is_seen_to_be_cut() -> None:
    """It is never taken for the whole."""

    async def fail(exchange: Exchange) -> None:
        exchange.begin(200, ())
        await exchange.send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("in the middle")

    async with listening(fail) as place:
        caller = await place.call()
        caller.say(GET, GET)
        with pytest.raises(asyncio.IncompleteReadError):
            await caller.answer()


@on_uvloop
async def test_a_handler_that_fails_after_its_answer_harms_nobody() -> None:
    """The answer is out, and the line goes on; a second answer is not sent."""

    async def fail(exchange: Exchange) -> None:
        exchange.answer(200, b"", b"first")
        exchange.answer(200, b"", b"second")
        await exchange.send({"type": "http.response.body", "body": b"third"})
        raise RuntimeError("after")

    async with listening(fail) as place:
        caller = await place.call()
        for _ in range(2):
            assert (await caller.ask(GET)).body == b"first"


@on_uvloop
async def test_what_an_application_does_afterwards_does_not_hold_up_the_line() -> None:
    """A background task runs on while the next request is answered."""
    gate, done = asyncio.Event(), asyncio.Event()

    async def later() -> None:
        await gate.wait()
        done.set()

    async def app(_: Request) -> Response:
        return PlainTextResponse("ok", background=BackgroundTask(later))

    async with listening(exchange.asgi(Starlette(routes=[Route("/", app)]))) as place:
        caller = await place.call()
        for _ in range(2):
            assert (await caller.ask(GET)).body == b"ok"
        gate.set()
        await done.wait()


@on_uvloop
async def test_a_body_before_its_headers_is_not_sent() -> None:
    """A mistake of ours; the client sees no half of it."""

    async def wrong(exchange: Exchange) -> None:
        await exchange.send({"type": "http.response.body", "body": b"HTTP/1.1 200 OK\r\n\r\n"})

    async with listening(wrong) as place:
        caller = await place.call()
        caller.say(GET)
        assert await caller.is_over()


# The end


@on_uvloop
async def test_stopping_lets_answers_finish() -> None:
    """They say that they are the last; idle lines are closed, half requests as well, and nobody new is let in."""
    counter = Counter(gate=asyncio.Event())
    async with listening(counter) as place:
        idle, half, busy = [await place.call() for _ in range(3)]
        half.say(b"GET / HT")
        busy.say(GET, GET)
        await until(lambda: counter.seen and len(place.house.lines) == 3)
        place.house.stop()
        assert await idle.is_over()
        assert await half.is_over()
        assert not place.house.quiet.is_set()
        with pytest.raises(ConnectionError):
            await place.call()
        assert counter.gate is not None
        counter.gate.set()
        assert (await busy.answer()).headers[b"connection"] == b"close"
        assert await busy.is_over()
        await place.house.quiet.wait()
        await place.house.empty.wait()


@on_uvloop
async def test_a_stream_that_ends_while_we_stop_ends_its_line() -> None:
    """Its headers promised more; the line is closed all the same, after the last byte."""
    closing = asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        yield b"hello"
        await closing.wait()
        yield b"bye"

    async def stream(_: Request) -> Response:
        return StreamingResponse(frames())

    async with listening(exchange.asgi(Starlette(routes=[Route("/", stream)]))) as place:
        caller = await place.call()
        caller.say(GET)
        await caller.reader.readuntil(b"hello\r\n")
        place.house.stop()
        closing.set()
        assert await caller.reader.read() == b"3\r\nbye\r\n0\r\n\r\n"
        await place.house.empty.wait()


@on_uvloop
async def test_closing_cuts_what_is_left() -> None:
    """Handlers are told that nobody is there any more."""
    began = asyncio.Event()

    async def deaf(exchange: Exchange) -> None:
        began.set()
        while (await exchange.receive())["type"] != "http.disconnect":
            pass

    async with listening(deaf) as place:
        caller = await place.call()
        caller.say(GET)
        await began.wait()
        place.house.stop()
        await place.house.close()
        assert await caller.is_over()
        await place.house.quiet.wait()


# At the door


@on_uvloop
async def test_whoever_comes_too_late_for_a_turn_waits_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order they came; and whatever else there is to do is done in between."""
    monkeypatch.setattr(wire, "TURN_S", 0.0)
    turns, seen = itertools.count(), list[tuple[bytes, int]]()
    turn = next(turns)
    loop = asyncio.get_running_loop()

    def another_turn() -> None:
        nonlocal turn
        turn = next(turns)
        if len(seen) < 20:
            loop.call_soon(another_turn)

    async def handler(exchange: Exchange) -> None:
        seen.append((exchange.raw_path, turn))
        exchange.answer(200, b"", exchange.raw_path)

    async with listening(handler) as place:
        callers = [await place.call() for _ in range(20)]
        await until(lambda: len(place.house.lines) == 20)
        another_turn()
        for number, caller in enumerate(callers):
            caller.say(b"GET /%d HTTP/1.1\r\n\r\n" % number)
        said = [(await caller.answer()).body for caller in callers]
    assert said == [path for path, _ in seen] == [b"/%d" % number for number in range(20)]
    assert len({turn for _, turn in seen}) == 20


@on_uvloop
async def test_nobody_is_left_at_the_door_when_we_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has asked is answered, and told that this was the last word."""
    monkeypatch.setattr(wire, "TURN_S", 0.0)
    left_outside: list[int] = []

    async def handler(exchange: Exchange) -> None:
        if not left_outside:
            left_outside.append(len(place.house._door))
            place.house.stop()
        exchange.answer(200, b"", b"")

    async with listening(handler) as place:
        callers = [await place.call() for _ in range(10)]
        await until(lambda: len(place.house.lines) == 10)
        for caller in callers:
            caller.say(GET)
        said = [await caller.answer() for caller in callers]
        await place.house.empty.wait()
    assert left_outside[0] > 0
    assert [(one.status, one.headers[b"connection"]) for one in said] == [(200, b"close")] * 10


@on_uvloop
async def test_whoever_waits_at_the_door_is_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line may bring before its turn has a limit, and it is not taken for one that says nothing."""
    counter = Counter()
    with monkeypatch.context() as busy:
        async with listening(counter) as place:
            busy.setattr(House, "has_time", lambda _: False)
            caller = await place.call()
            await until(lambda: len(place.house.lines) == 1)
            asks = 1 + wire.BETWEEN_BYTES_MAX // len(GET)
            caller.say(GET)
            await until(lambda: place.house._door)
            caller.say(*[GET] * asks)
            await until(lambda: place.line._is_held_back)
            assert len(place.line._rest) < 2 * wire.BETWEEN_BYTES_MAX + 64 * 1024
            place.sweep_after(2 * wire.IDLE_S, monkeypatch)
            assert not place.line.is_idle()
            assert counter.seen == []
            busy.undo()
            place.house._begin_turn()
            for _ in range(asks + 1):
                assert (await caller.answer()).status == 200


# Turned away unread

HOLDS = b"POST /api/events/01a1e410-8e03-702a-a0e3-07bb77ffb432/holds"
PLAIN, PLAIN_ECHO = HOLDS + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", HOLDS + b"? {}"
TURNED_AWAY = b"content-length: 11\r\n\r\nturned away"


def turn_away(data: bytes) -> bytes | None:
    """As if there were a crowd."""
    return TURNED_AWAY if asked_plainly(data, is_cors=False) else None


@on_uvloop
async def test_who_is_turned_away_may_ask_again_on_the_same_line() -> None:
    """Nobody handles it, and what is not turned away is handled."""
    async with listening(echo, turn_away) as place:
        caller = await place.call()
        for _ in range(3):
            caller.say(PLAIN)
            refused = await caller.answer()
            assert (refused.status, refused.body) == (503, b"turned away")
            caller.say(GET)
            assert (await caller.answer()).status == 200


@on_uvloop
async def test_in_the_middle_of_a_request_nobody_is_turned_away() -> None:
    """What looks like a request there is a part of another one: to leave it out would put two people's into one."""
    async with listening(echo, turn_away) as place:
        caller = await place.call()
        for begun in (b"G", b"GET /b HTTP/1.1\r\nX: ", b"POST /b HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(PLAIN)):
            caller.say(GET + begun)
            assert (await caller.answer()).status == 200
            assert place.line._is_amid
            caller.say(PLAIN)
            if begun == b"G":
                assert (await caller.answer()).status == 400  # GPOST is no method
                assert await caller.is_over()
                caller = await place.call()
                await until(lambda: len(place.house.lines) == 1)
            else:
                answer = await caller.answer()
                assert (answer.status, answer.body.partition(b"?")[0]) == (200, begun.partition(b" HTTP")[0])


@on_uvloop
async def test_behind_a_request_that_is_answered_nobody_is_turned_away() -> None:
    """Answers come in the order of their questions."""
    counter = Counter(gate=asyncio.Event())
    assert counter.gate is not None
    async with listening(counter, turn_away) as place:
        caller = await place.call()
        caller.say(GET)
        await until(lambda: counter.seen)
        caller.say(PLAIN)
        await until(lambda: place.line._waiting)
        counter.gate.set()
        assert [(await caller.answer()).status for _ in range(2)] == [200, 200]
        assert len(counter.seen) == 2


def test_a_turn_turns_only_so_many_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait for the next one, and are turned away then, though there is no time to read them."""

    async def main() -> None:
        async with listening(nobody, turn_away) as place:
            callers = [await place.call() for _ in range(20)]
            await until(lambda: len(place.house.lines) == len(callers))
            for caller in callers:
                caller.say(PLAIN)
            for caller in callers:
                assert (await caller.answer()).status == 503

    monkeypatch.setattr(wire, "TURNED_AWAY_MAX", 3)
    monkeypatch.setattr(House, "has_time", lambda house: house._be_in_turn() and False)
    with asyncio.Runner(loop_factory=LOOP) as runner:
        runner.run(main())


# However it is cut

SERIES = [
    (PLAIN, PLAIN_ECHO),
    (b"GET /a?b=%20c HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n", b"GET /a?b=%20c "),
    (b"POST /p HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"POST /p? hello"),
    (b"\r\nPOST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n", b"POST /c? abc"),
    (b"POST /u HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 3\r\n\r\nxyz", b"POST /u? xyz"),
    (b"PUT /e HTTP/1.1\r\nContent-Length: 0\r\n\r\n", b"PUT /e? "),
    (b"POST /n HTTP/1.1\r\nUpgrade: x\r\nConnection: upgrade\r\nContent-Length: 0 \r\n\r\n", b"POST /n? "),
    (b"GET /g HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"GET /g? "),
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.lists(st.sampled_from(SERIES), min_size=1, max_size=6),
    cuts=st.sets(st.integers(min_value=1, max_value=500), max_size=25),
    is_bad=st.booleans(),
    turn_s=st.sampled_from([0.0, wire.TURN_S]),
    is_crowded=st.booleans(),
)
def test_however_requests_are_cut_the_answers_are_the_same(
    chosen: list[tuple[bytes, bytes]], cuts: set[int], *, is_bad: bool, turn_s: float, is_crowded: bool
) -> None:
    """The network may cut a series of requests wherever it likes, turns may be short; the last one is good or bad.

    In a crowd some are turned away instead, by how they were cut; the others are answered as ever.
    """
    series = b"".join(asked for asked, _ in chosen) + (b"nonsense\r\n\r\n" if is_bad else b"")
    bounds = [0, *sorted(cut for cut in cuts if cut < len(series)), len(series)]

    async def main() -> list[bytes]:
        async with listening(echo, turn_away if is_crowded else lambda _: None) as place:
            caller = await place.call()
            caller.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for begin, end in itertools.pairwise(bounds):
                caller.say(series[begin:end])
                await asyncio.sleep(0)
            said = [(await caller.answer()).body for _ in chosen]
            if is_crowded:
                said = [PLAIN_ECHO if body == b"turned away" else body for body in said]
            if is_bad:
                assert (await caller.answer()).status == 400
                assert await caller.is_over()
            return said

    with asyncio.Runner(loop_factory=LOOP) as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "TURN_S", turn_s)
        assert runner.run(main()) == [answer for _, answer in chosen]
