"""Requests that are read at sight: what a parser would have read, from headers that may have been read before."""

import itertools
import time
import timeit

import httptools
import pytest
from hypothesis import example, given, strategies as st
from starlette.types import Receive, Scope, Send

from tests.http.test_bouncer import request
from tests.http.test_wire import hello, listening, on_uvloop, until
from voelgoed.accounts.tokens import TOKEN_CHARS_MAX, Shown, csrf_token, new_api_key, new_session_token, token_hash
from voelgoed.http import heads as module, wire
from voelgoed.http.exchange import Exchange, asgi
from voelgoed.http.heads import KEPT_BYTES_MAX, KEPT_PAIRS_MAX, Heads, Plain
from voelgoed.recent import KNOWN_S

COOKIE = b"vg_session"
BROWSER = (
    "Host: tickets.example",
    "Connection: keep-alive",
    "Content-Length: 2",
    'sec-ch-ua: "Chromium";v="140", "Not=A?Brand";v="24"',
    "Content-Type: application/json",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Accept: */*",
    "Cookie: language=af; vg_session=vgs_abc",
)


class Parsed:
    """What a parser makes of bytes."""

    def __init__(self, data: bytes) -> None:
        self.requests: list[tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]] = []
        self.keep_alive = False
        self._begin()
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(data)

    def _begin(self) -> None:
        self._target, self._pairs, self._body = b"", list[tuple[bytes, bytes]](), b""

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pairs.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self.requests.append((self._parser.get_method(), self._target, self._pairs, self._body))
        self.keep_alive = self._parser.should_keep_alive()
        self._begin()


NAMES = st.sampled_from(
    ["Host", "cookie", "Content-Length", "content-length", "x-content-length", "Transfer-Encoding", "Connection",
     "Proxy-Connection", "Keep-Alive", "Expect", "Upgrade", "Authorization", " content-length", "content-length ",
     "content_length", "x y", "X-1", ""]
)  # fmt: skip
VALUES = st.sampled_from(
    ["0", "2", "3", " 2", "2 ", "+2", "0x2", "02", "2, 2", "chunked", "identity", "close", "Close", "keep-alive",
     "keep-alive, close", "upgrade", "websocket", "100-continue", "a\r\ncontent-length: 2", "a\n", "a\rb", "\xe4", "\0",
     "a\tb", "", "x" * 300, "a\r\n\r\n", "a: b"]
)  # fmt: skip
LINES = st.lists(
    st.builds("{}{}{}".format, NAMES, st.sampled_from([": ", ": ", ":", " : ", ":\t"]), VALUES), max_size=4
)
TARGETS = st.sampled_from(
    ["/", "/api/events/1/seatmap?a=1&b=%20", "/%41", "//x/y", "/a b", "/a#b", "/\xe4", "*", "http://x/y", "/a\tb", ""]
)
BODIES = st.sampled_from([b"", b"{}", b"{} ", request("/", "host: x", method="GET"), b"2\r\n{}\r\n0\r\n\r\n", b"\r\n"])
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "post", " POST", "\r\nPOST", "PRI"]


@given(
    method=st.sampled_from(METHODS),
    target=TARGETS,
    lines=LINES,
    body=BODIES,
    version=st.sampled_from(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.10"]),
    cut=st.integers(0, 8).map(lambda size: size // 6),
)
@example(method="POST", target="/", lines=list(BROWSER), body=b"{}", version="HTTP/1.1", cut=0)
@example(method="POST", target="/", lines=["Content-Length: 2"], body=b"{}{}", version="HTTP/1.1", cut=0)
@example(method="POST", target="/", lines=["Content-Length: 2"] * 2, body=b"{}", version="HTTP/1.1", cut=0)
@example(method="POST", target="/", lines=["Transfer-Encoding: chunked"], body=b"", version="HTTP/1.1", cut=0)
@example(method="GET", target="/", lines=["Connection: close"], body=b"", version="HTTP/1.1", cut=0)
@example(method="GET", target="/", lines=["Proxy-Connection: close"], body=b"", version="HTTP/1.1", cut=0)
@example(method="GET", target="/", lines=["Connection: upgrade", "Upgrade: x"], body=b"", version="HTTP/1.1", cut=0)
@example(method="POST", target="/", lines=["Expect: 100-continue"], body=b"", version="HTTP/1.1", cut=0)
@example(method="GET", target="/", lines=[], body=b"", version="HTTP/1.1", cut=0)
def test_only_what_a_parser_reads_as_one_whole_request(
    method: str, target: str, lines: list[str], body: bytes, version: str, cut: int
) -> None:
    """The same method, target, headers and body; nothing is behind it, and the line goes on. The second time, too."""
    data = request(target, *lines, body=body, method=method, version=version)
    data = data[: len(data) - cut]
    heads = Heads()
    plain = heads.read(data)
    assert heads.read(data) == plain
    if plain is None:
        return
    parsed = Parsed(data)
    assert parsed.requests == [(plain.method.encode(), plain.target, plain.head.pairs, plain.body)]
    assert parsed.keep_alive
    assert not {b"transfer-encoding", b"upgrade", b"expect"} & plain.head.headers.keys()


@pytest.mark.parametrize(
    "shape",
    [b"X: %b\t\r\n", b"%b\r\n", b"Cookie: %b\xe4\r\n", b"%b: ", b"X: %b \r\n", b"%b\n"],
    ids=["a tab", "no colon", "a foreign letter", "no value", "a blank", "no return"],
)
@pytest.mark.parametrize("filled", [b"a", b"a: ", b"a: b\r\n"])
def test_long_headers_take_no_longer_than_they_are(shape: bytes, filled: bytes) -> None:
    """However they are not plain: eight times as long take some eight times as long, not sixty-four times."""
    heads, took = Heads(), dict[int, float]()
    for size in (2_000, 16_000) * 7:  # in turns, and by the thread's own clock: the machine may be busy
        data = b"GET / HTTP/1.1\r\n%b\r\n\r\n" % (shape % (filled * (size // len(filled))))
        assert heads.read(data) is None
        once = min(timeit.repeat(lambda: heads.read(data), timer=time.thread_time, number=1, repeat=3))  # noqa: B023
        took[size] = min(once, took.get(size, once))
    assert took[16_000] < 24 * took[2_000]


def read(heads: Heads, *lines: str, body: bytes = b"{}") -> Plain:
    plain = heads.read(request("/x", *lines, body=body))
    assert plain is not None
    return plain


def test_headers_are_read_once() -> None:
    """By their bytes: whoever says anything else is somebody else, however long the body would be."""
    heads = Heads()
    first = read(heads, *BROWSER)
    assert read(heads, *BROWSER).head is first.head
    assert read(heads, *BROWSER, "x: y").head is not first.head
    assert heads.read(request("/x", *BROWSER, body=b"{} ")) is None
    assert (first.method, first.target, first.body) == ("POST", b"/x", b"{}")


def test_what_is_kept_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks again stays, the others are forgotten; what is long, or many, is read every time."""
    monkeypatch.setattr(module, "HEADS_MAX", 10)
    heads = Heads()
    first = read(heads, *BROWSER)
    for number in range(95):
        read(heads, *BROWSER, f"x: {number}")
        assert len(heads) <= 20
        if number % 9 == 0:
            assert read(heads, *BROWSER).head is first.head
    for number in range(20, 40):
        read(heads, *BROWSER, f"x: {number}")
    assert read(heads, *BROWSER).head is not first.head
    before = len(heads)
    for many in ([f"x: {'y' * KEPT_BYTES_MAX}"], ["x: y"] * KEPT_PAIRS_MAX):
        assert read(heads, *BROWSER, *many).head is not read(heads, *BROWSER, *many).head
        assert len(heads) == before


def test_what_nobody_sends_any_more_is_forgotten() -> None:
    """A secret does not stay for as long as the process lives."""
    heads, later = Heads(), itertools.count(time.monotonic() + 2 * KNOWN_S, KNOWN_S)
    first, second = read(heads, *BROWSER).head, read(heads, *BROWSER, "x: y").head
    heads.forget(next(later))
    assert read(heads, *BROWSER).head is first
    heads.forget(next(later))
    assert read(heads, *BROWSER).head is first
    assert read(heads, *BROWSER, "x: y").head is not second
    heads.forget(next(later))
    heads.forget(next(later))
    assert len(heads) == 0


@on_uvloop
async def test_a_house_forgets_them_every_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not more often."""
    async with listening(hello) as place:
        await (await place.call()).ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        kept = list[int]()
        for seconds in (10, 40, 20, 30, 40):  # each after the one before
            place.sweep_after(seconds, monkeypatch)
            kept.append(len(place.house.heads))
    assert kept == [1, 1, 1, 1, 0]


@on_uvloop
async def test_who_does_not_read_their_answers_waits_with_what_they_ask_next() -> None:
    """However plain it is: answers that nobody reads would be kept here."""
    seen = list[bytes]()

    async def look(exchange: Exchange) -> None:
        seen.append(exchange.raw_path)
        exchange.answer(200, b"", b"x")

    async with listening(look) as place:
        caller = await place.call()
        await caller.ask(request("/first", method="GET"))
        place.line.pause_writing()
        caller.say(request("/second", method="GET"))
        await until(lambda: place.line._waiting or len(seen) > 1)
        assert seen == [b"/first"]
        place.line.resume_writing()
        assert (await caller.answer()).status == 200
    assert seen == [b"/first", b"/second"]


@on_uvloop
async def test_what_lies_between_requests_is_not_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some clients send an empty line after a body: however many requests they make, the line stays."""
    monkeypatch.setattr(wire, "BETWEEN_BYTES_MAX", 100)
    async with listening(hello) as place:
        caller = await place.call()
        for number in range(60):
            assert (await caller.ask(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")).status == 200, number
            assert place.line._fed == 0
            caller.say(b"\r\n")
            await until(lambda: place.line._fed)


def test_a_token_is_looked_for_once() -> None:
    """A bearer token wins over a cookie; a cookie of another name is none."""
    heads = Heads()
    head = read(heads, *BROWSER).head
    shown = head.shown(COOKIE)
    assert shown is not None
    assert (shown.token, shown.is_cookie) == ("vgs_abc", True)
    assert head.shown(COOKIE) is shown
    assert head.shown(b"__Host-vg_session") is None
    too_long = f"Authorization: Bearer {'x' * (TOKEN_CHARS_MAX + 1)}"
    assert read(heads, *BROWSER, too_long).head.shown(COOKIE) is None  # and the cookie does not count
    bearer = read(heads, *BROWSER, "Authorization: bearer  vgk_x").head.shown(COOKIE)
    assert bearer is not None
    assert (bearer.token, bearer.is_cookie, bearer.is_key) == ("vgk_x", False, True)
    assert read(heads, "Host: x", "Content-Length: 2").head.shown(COOKIE) is None


@pytest.mark.parametrize("make", [new_session_token, new_api_key])
def test_what_is_shown_is_kept_as_a_hash(make: type[str]) -> None:
    """Of what cannot be ours no hash is made: it is nobody's."""
    token = make()
    assert Shown(token).digest == token_hash(token)
    assert Shown(token).csrf == Shown(token).csrf == csrf_token(token)
    assert Shown("vgx_" + token).digest is None
    assert Shown(token + "x" * TOKEN_CHARS_MAX).digest is None


@on_uvloop
async def test_nobody_changes_the_headers_of_the_next_request() -> None:
    """What one application does to the headers of its request is not in the next one, though it has the same."""
    seen = list[list[tuple[bytes, bytes]]]()

    async def app(scope: Scope, _: Receive, send: Send) -> None:
        seen.append(list(scope["headers"]))
        scope["headers"].append((b"x-role", b"owner"))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with listening(asgi(app)) as place:
        caller = await place.call()
        for _ in range(2):
            await caller.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert seen == [[(b"host", b"x")]] * 2


@pytest.mark.parametrize("parts", [1, 2], ids=["at sight", "by the parser"])
@on_uvloop
async def test_both_ways_lead_to_the_same_exchange(parts: int) -> None:
    """A request that comes whole, and the same in two pieces."""
    seen = list[tuple[object, ...]]()

    async def look(exchange: Exchange) -> None:
        message = await exchange.receive()
        seen.append((exchange.method, exchange.path, exchange.query, exchange.version, exchange.head.pairs, message))
        exchange.answer(200, b"", b"x")

    data = request("/a%20b?c=d", *BROWSER, body=b"{}", method="PUT")
    async with listening(look) as place:
        caller = await place.call()
        for _ in range(2):
            if parts == 2:
                caller.say(data[:50])
                await until(lambda: place.line._is_amid)
            await caller.ask(data[50:] if parts == 2 else data)
        kept = len(place.house.heads)
    pairs = [(name.lower().encode(), value.encode()) for name, value in (line.split(": ", 1) for line in BROWSER)]
    body = {"type": "http.request", "body": b"{}", "more_body": False}
    assert seen == [("PUT", "/a b", b"c=d", "1.1", pairs, body)] * 2
    assert kept == (1 if parts == 1 else 0)
