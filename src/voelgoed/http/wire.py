"""HTTP/1.1 between the sockets and the edge, on the loop of the process: one parser, one write for a whole answer.

A request becomes an exchange, which is handed on as soon as it is all there, or as soon as its headers are when more
is to come. Everything a client can make us keep has a limit: headers, pipelined requests, unread bodies, unsent
answers, idle lines, lines at all.

The loop gives every socket that has something its turn before it does anything else: with thousands of them that takes
seconds, in which nobody hears what PostgreSQL has said. So a turn has its time, and who comes later waits at the door.
"""

import asyncio
import os
import socket
import time
from collections import deque
from email.utils import formatdate
from functools import partial
from typing import Final, cast

import httptools
import structlog

from voelgoed.http.exchange import STATUS_LINES, ClientGone, Exchange, Handler, TurnAway
from voelgoed.http.heads import Head, Heads

log = structlog.get_logger(__name__)

BACKLOG: Final = 4096
HEAD_BYTES_MAX: Final = 32 * 1024
BETWEEN_BYTES_MAX: Final = 2 * HEAD_BYTES_MAX  # as they come, before the parser has anything to show for them
PIECE_BYTES: Final = 16 * 1024  # parsed at once: in a read as large as they get there are thousands of small requests
PIPELINED_MAX: Final = 32
HEADERS_WAIT_S: Final = 10.0  # who has not said what they want by then is not waited for
IDLE_S: Final = 75.0
LEAVING_S: Final = 2.0
STALLED_S: Final = 60.0  # who does not read what they asked for
SWEEP_S: Final = 1.0
FROZEN_S: Final = 2.0
"""A process that has not swept for this long did not run. What it reads next may be from clients that have given up."""
LINES_MAX: Final = 16_000
TURN_S: Final = 0.004  # for requests; answers that are ready and everything else come in between
TURNED_AWAY_MAX: Final = 1_000  # in a turn, some 25 ms; the others wait for the next one
BAD_BODY: Final = (
    b'{"error":"invalid_request","message":"The request is not valid.","details":{},"effect":"none","request_id":null}'
)
BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
) % (len(BAD_BODY), BAD_BODY)
FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
NO_PARSER: Final = httptools.HttpRequestParser(None)
"""Of a line that is gone: nothing more is read there."""


class Line(asyncio.Protocol):
    """One connection: requests one after the other, answers in the same order."""

    __slots__ = (
        "_current",
        "_exchange",
        "_fed",
        "_head_bytes",
        "_is_amid",
        "_is_at_door",
        "_is_deaf",
        "_is_held_back",
        "_is_leaving",
        "_may_write",
        "_pairs",
        "_parser",
        "_rest",
        "_target",
        "_task",
        "_waiting",
        "house",
        "peer",
        "since",
        "stalled_since",
        "transport",
    )

    def __init__(self, house: "House") -> None:
        self.house = house
        self.transport: asyncio.Transport | None = None
        self.peer: str | None = None
        self.since = house.now  # of silence, or of the request that is being read
        self.stalled_since: float | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._pairs: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._fed = 0  # bytes since the parser had something to show for them
        self._rest = b""  # read, and held back from the parser
        self._exchange: Exchange | None = None  # being read
        self._current: Exchange | None = None  # being answered
        self._waiting: deque[Exchange] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_held_back = False
        self._is_amid = False  # the parser has seen the beginning of a request and not its end
        self._is_at_door = False  # waits for a turn of the loop that has time for it
        self._is_deaf = False  # what still comes is thrown away
        self._is_leaving = False
        self._may_write: asyncio.Future[None] | None = None

    # The socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if isinstance(peer, tuple) else None
        if not self.house.welcome(self):
            self.transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        self.transport = None
        self.house.forget(self)
        for one in (self._current, self._exchange):
            if one is not None:
                one.lost()
        self._waiting.clear()
        self._rest = b""
        self._parser = NO_PARSER  # ours knows this line, and would keep it as the line keeps the parser
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        if self._is_at_door:
            self._rest += data
            if len(self._rest) > BETWEEN_BYTES_MAX:
                self._hold_back()
        elif self._rest or len(data) > PIECE_BYTES:
            self._rest += data
            self._read_rest()
        elif self._is_turned_away(data):
            pass
        elif self.house.has_time():  # never while others wait at the door: the turn is over then
            self._take(data)
        else:
            self._rest = data
            self._wait_at_door()

    def _take(self, data: bytes) -> None:
        if not self._is_read_at_sight(data):
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        if self._exchange is None and not self._pairs and not self._target:
            self.since = self.house.now
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as other:
            if not self._decline(data[other.args[0] :]):
                self._refuse()
                return
        except httptools.HttpParserError:
            self._refuse()
            return
        if self._fed > BETWEEN_BYTES_MAX:
            self._refuse()
        elif self._exchange is not None:
            self._offer(self._exchange)  # a body is on its way; who asks is looked at meanwhile

    def _is_read_at_sight(self, data: bytes) -> bool:
        """Whether this was one plain request, and was handed on: only where nothing else is read or to be answered."""
        if self._is_amid or self._current is not None or self._may_write is not None:
            return False
        plain = self.house.heads.read(data)
        if plain is None:
            return False
        self.since, self._fed = self.house.now, 0
        exchange = Exchange(self, plain.method, plain.target, plain.head)
        exchange.has_come(plain.body)
        self._hand_on(exchange)
        return True

    def _read_rest(self) -> None:
        """Parse what was read, piece by piece, for as long as there is time, and room for what comes out of it."""
        rest, self._rest = self._rest, b""
        at = 0
        while at < len(rest) and not self._is_held_back and not self._is_deaf:
            if not self.house.has_time():
                self._wait_at_door()
                break
            self._take(rest[at : at + PIECE_BYTES])
            at += PIECE_BYTES
        if not self._is_deaf:
            self._rest = rest[at:] + self._rest

    def _is_turned_away(self, data: bytes) -> bool:
        """Whether this was refused as it came. Only where nothing of a request is read or to be answered yet."""
        if self._is_amid or self._current is not None or self._may_write is not None:
            return False
        refusal = self.house.turn_away(data)
        if refusal is None:
            return False
        self.since = self.house.now
        self.write(STATUS_LINES[503] + self.house.date + refusal)
        return True

    def _wait_at_door(self) -> None:
        self._is_at_door = True
        self.house.line_up(self)

    def come_in(self) -> None:
        """Its turn has come."""
        self._is_at_door = False
        if self._is_held_back:
            self.go_on_reading()
        elif self._is_turned_away(self._rest):
            self._rest = b""
        else:
            self._read_rest()

    def eof_received(self) -> bool:
        """Who hangs up is gone."""
        if (self._current is not None or self._waiting) and self.transport is not None:
            self.transport.abort()  # otherwise the line stays for as long as there is something left to send
        return False

    def pause_writing(self) -> None:
        self.stalled_since = self.house.now
        if self._may_write is None:
            self._may_write = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        self.stalled_since = None
        if self._may_write is not None:
            if not self._may_write.done():
                self._may_write.set_result(None)
            self._may_write = None
        if self._waiting and self._current is None:
            self._next()

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    async def drained(self) -> None:
        """Wait until the other end has read enough; who has left has."""
        if self._may_write is not None:
            await asyncio.shield(self._may_write)

    def go_on_reading(self) -> None:
        """Read what was held back, if there is room for it now."""
        if not self._is_held_back or self._is_at_door or self.transport is None:
            return
        if len(self._waiting) >= PIPELINED_MAX:
            return
        if self._exchange is not None and self._exchange.is_full:
            return
        self._is_held_back = False
        self._read_rest()
        if not self._is_held_back:
            self.transport.resume_reading()

    # The parser

    def on_message_begin(self) -> None:
        self._is_amid = True

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._head_bytes += len(url)
        if self._head_bytes > HEAD_BYTES_MAX:
            raise HeadTooLarge

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pairs.append((name.lower(), value))
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > HEAD_BYTES_MAX:
            raise HeadTooLarge

    def on_headers_complete(self) -> None:
        self._exchange = Exchange(
            self,
            self._parser.get_method().decode("latin-1"),
            self._target,
            Head(self._pairs),
            self._parser.get_http_version(),
        )
        self._target, self._pairs, self._head_bytes, self._fed = b"", [], 0, 0

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        exchange = self._exchange
        if exchange is None or exchange.is_done:
            return
        if not exchange.take_body(body):
            self._hold_back()

    def on_message_complete(self) -> None:
        exchange, self._exchange = self._exchange, None
        self._fed = 0
        self._is_amid = False
        if self._pairs:  # behind a chunked body: they are not the next request's
            self._pairs, self._head_bytes = [], 0
        if exchange is None:
            return
        exchange.complete(keep_alive=self._parser.should_keep_alive())
        self._offer(exchange)

    def _hold_back(self) -> None:
        if not self._is_held_back and self.transport is not None:
            self._is_held_back = True
            self.transport.pause_reading()

    # One after the other

    def _offer(self, exchange: Exchange) -> None:
        """Let it be answered, or wait for those before it."""
        if exchange.is_offered:
            return
        exchange.is_offered = True
        if self._current is None and self._may_write is None:
            self._hand_on(exchange)
            return
        self._waiting.append(exchange)
        if len(self._waiting) >= PIPELINED_MAX:
            self._hold_back()

    def _hand_on(self, exchange: Exchange) -> None:
        if self.house.was_frozen() and self._has_hung_up():
            cast(asyncio.Transport, self.transport).abort()
            return
        self._current = exchange
        self.house.began()
        try:
            rest = self.house.handler(exchange)
        except Exception:  # the parser, or whoever was answered before, would take it for theirs
            log.exception("exchange_failed", method=exchange.method)
            rest = None
            asyncio.get_running_loop().call_soon(exchange.cut_off)
        self._task = asyncio.get_running_loop().create_task(rest) if rest is not None else None
        if self._task is not None:
            self._task.add_done_callback(partial(self.house.done, exchange))

    def _has_hung_up(self) -> bool:
        """Return whether the client has closed its end, which lies unread behind the request."""
        if self.transport is None:
            return True
        with socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno())) as peeked:
            try:
                return not peeked.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                return True

    def answered(self, exchange: Exchange) -> None:
        """An answer is out: the next, or silence, or the end."""
        if exchange is not self._current:
            return
        self._current = None
        self.house.ended()
        self.since = self.house.now
        if not exchange.keep_alive:
            self.leave(is_all_read=exchange.is_complete and not self._is_deaf)
        elif self._waiting:
            self._next()
        elif self._is_deaf:
            self._say_bad_request()
        elif self._is_held_back:
            self.go_on_reading()

    def _next(self) -> None:
        """The next of those that wait; not before the answers to the others are read."""
        if self._may_write is None:
            self._hand_on(self._waiting.popleft())
        self.go_on_reading()

    def leave(self, *, is_all_read: bool) -> None:
        """Say no more. What is on its way to us is taken for a moment: otherwise our last word is lost."""
        self._is_deaf = True
        self._waiting.clear()
        self._rest, self._exchange = b"", None
        self.since = self.house.now
        if self.transport is None or self.transport.is_closing():  # it ends already
            return
        if is_all_read or not self.transport.can_write_eof():
            self.transport.close()
            return
        self._is_leaving = True
        self.go_on_reading()
        self.transport.write_eof()

    def _decline(self, rest: bytes) -> bool:
        """We speak nothing else: a request to change over is read on as what it is otherwise. Whether one can."""
        while True:  # ends with what was read: each round takes a request off it
            asked = self._waiting[-1] if self._waiting else self._current
            assert asked is not None, "the parser says so at the end of a request"
            if asked.method == "CONNECT":  # whatever follows is not for us
                asked.keep_alive = False
                self._is_deaf = True
                return True
            framing = next((pair for pair in asked.head.pairs if pair[0] in FRAMING), None)
            try:
                if framing is not None and framing[1].strip(b"0 \t"):
                    self._read_body_of(asked, *framing)
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as other:
                rest = rest[other.args[0] :]
            except httptools.HttpParserError:
                if self._exchange is asked is self._current and self._task is not None:
                    self._task.cancel()  # it was handed on just now, and has not begun
                return False
            else:
                return True

    def _read_body_of(self, asked: Exchange, name: bytes, value: bytes) -> None:
        """Go on with the body that the parser has passed over."""
        asked.is_complete = False
        self._parser = httptools.HttpRequestParser(self)
        try:
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%b: %b\r\n\r\n" % (name, value))
        finally:
            self._exchange = asked

    def _refuse(self) -> None:
        """Nobody can tell where the next request would begin: say so in its turn, and end it."""
        self._is_deaf = True
        self._rest = b""
        broken, self._exchange = self._exchange, None
        if broken is not None and broken is self._current:
            if not broken.is_begun:
                self.write(BAD_REQUEST)
            broken.cut_off()
            return
        if broken is not None and broken.is_offered:
            self._waiting.pop()
        if self._current is None and not self._waiting:
            self._say_bad_request()

    def _say_bad_request(self) -> None:
        self.write(BAD_REQUEST)
        self.leave(is_all_read=False)

    def is_overdue(self, now: float) -> bool:
        """Whether whoever is at the other end has kept us waiting for too long."""
        if self.stalled_since is not None:
            return now - self.stalled_since > STALLED_S
        if self._is_leaving:
            return now - self.since > LEAVING_S
        if self._current is not None or self._is_at_door:
            return False
        return now - self.since > (HEADERS_WAIT_S if self._pairs or self._target or self._head_bytes else IDLE_S)

    def is_idle(self) -> bool:
        return self._current is None and not self._is_at_door


class HeadTooLarge(Exception):
    """More headers than anybody needs."""


class House:
    """A listening socket and its lines."""

    def __init__(self, handler: Handler, turn_away: TurnAway = lambda _: None) -> None:
        self.handler, self._turn_away = handler, turn_away
        self.heads = Heads()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.lines: set[Line] = set()
        self._under_way = 0
        self.quiet, self.empty = asyncio.Event(), asyncio.Event()
        """Nobody waits for an answer; nobody is there."""
        self.quiet.set()
        self.empty.set()
        self.is_closing = False
        self.now = time.monotonic()
        self._frozen_until = 0.0
        self.date = b""
        self._door: deque[Line] = deque()
        self._turn_ends: float | None = None
        self._turned_away_count = 0  # in this turn

    async def open(self, host: str, port: int) -> None:
        """Listen; siblings may listen on the same port."""
        self._sweep()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Line(self), host, port, backlog=BACKLOG, reuse_port=True, reuse_address=True
        )

    def welcome(self, line: Line) -> bool:
        """Whether there is room for one more."""
        if len(self.lines) >= LINES_MAX or self.is_closing:
            return False
        self.lines.add(line)
        self.empty.clear()
        return True

    def forget(self, line: Line) -> None:
        """A line is gone."""
        self.lines.discard(line)
        if not self.lines:
            self.empty.set()

    def has_time(self) -> bool:
        """Whether this turn of the loop may begin with something more. The first to ask begins it, and always may."""
        return self._be_in_turn() or not self._is_late()

    def _be_in_turn(self) -> bool:
        """Let the next turn follow this one; whether it has only begun."""
        if self._turn_ends is not None:
            return False
        self._turn_ends = time.monotonic() + TURN_S
        asyncio.get_running_loop().call_soon(self._begin_turn)
        return True

    def turn_away(self, data: bytes) -> bytes | None:
        """The refusal for a request that is not worth being read; at the end everybody is heard."""
        if self.is_closing or self._turned_away_count >= TURNED_AWAY_MAX:
            return None
        refusal = self._turn_away(data)
        if refusal is not None:
            self._turned_away_count += 1
            self._be_in_turn()
        return refusal

    def line_up(self, line: Line) -> None:
        """Let it wait for a turn that has time for it."""
        self._door.append(line)

    def _begin_turn(self) -> None:
        self._turn_ends = None
        self._turned_away_count = 0
        while self._door and not self._is_late():
            self._door.popleft().come_in()

    def _is_late(self) -> bool:
        """Whether the turn has had its time; at the end nobody who has asked is left at the door."""
        return self._turn_ends is not None and time.monotonic() >= self._turn_ends and not self.is_closing

    def was_frozen(self) -> bool:
        """Return whether this process did not run for a while until a moment ago."""
        return time.monotonic() - self.now > FROZEN_S or self.now < self._frozen_until

    def began(self) -> None:
        """One more is being answered."""
        self._under_way += 1
        self.quiet.clear()

    def ended(self) -> None:
        """One less."""
        self._under_way -= 1
        if not self._under_way:
            self.quiet.set()

    def done(self, exchange: Exchange, task: asyncio.Task[None]) -> None:
        """What began and was not brought to its end can only be cut off."""
        failed = None if task.cancelled() else task.exception()
        if failed is not None and not isinstance(failed, ClientGone):
            log.error("exchange_failed", method=exchange.method, exc_info=failed)
        if not exchange.is_done:
            exchange.cut_off()

    def stop(self) -> None:
        """Take no more requests; lines on which nothing is asked are closed, the others when they are answered."""
        self.is_closing = True
        self._begin_turn()
        if self._server is not None:
            self._server.close()
        for line in tuple(self.lines):
            if line.is_idle():
                line.leave(is_all_read=True)

    async def close(self) -> None:
        """Cut what is left."""
        if self._timer is not None:
            self._timer.cancel()
        for line in tuple(self.lines):
            if line.transport is not None:
                line.transport.abort()
        if self._server is not None:
            await self._server.wait_closed()

    def _sweep(self) -> None:
        """Once a second: the date for everybody, what may be forgotten, and the end of lines that keep us waiting."""
        frozen_s = time.monotonic() - self.now
        self.now += frozen_s
        if frozen_s > FROZEN_S:
            self._frozen_until = self.now + FROZEN_S  # it takes a while to read everything that has come meanwhile
        self.date = b"date: " + formatdate(usegmt=True).encode() + b"\r\n"
        self.heads.forget(self.now)
        for line in [one for one in self.lines if one.is_overdue(self.now)]:
            if line.transport is not None:
                line.transport.abort()
        self._timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)
