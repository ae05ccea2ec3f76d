"""Turned away before anything is parsed: only what is plainly one whole ask for places, and with the same words."""

import asyncio
import re
from urllib.parse import urlsplit

import httptools
import pytest
from hypothesis import example, given, strategies as st

from tests.http.test_edge import OTHER_SITE, site_with
from tests.make.web import Site
from voelgoed.holds.lane import ITEMS_PER_BATCH
from voelgoed.http.bouncer import asked_plainly
from voelgoed.http.edge import RESERVING
from voelgoed.http.hot import HOT
from voelgoed.ids import new_id
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

EVENT, SEAT = str(new_id()), str(new_id())
RESERVE, HOLDS = f"/api/events/{EVENT}/seats/{SEAT}/reserve", f"/api/events/{EVENT}/holds"


class Read:
    """What a parser makes of bytes."""

    def __init__(self, data: bytes) -> None:
        self.targets: list[bytes] = []
        self.whole = 0
        self.names: list[bytes] = []
        self._parser = httptools.HttpRequestParser(self)
        self.keep_alive = False
        self._parser.feed_data(data)
        self.method = self._parser.get_method()

    def on_url(self, url: bytes) -> None:
        self.targets.append(url)

    def on_header(self, name: bytes, _value: bytes) -> None:
        self.names.append(name.lower())

    def on_message_complete(self) -> None:
        self.whole += 1
        self.keep_alive = self._parser.should_keep_alive()


def request(path: str, *lines: str, body: bytes = b"", method: str = "POST", version: str = "HTTP/1.1") -> bytes:
    return "".join(f"{line}\r\n" for line in (f"{method} {path} {version}", *lines, "")).encode("latin-1") + body


NAMES = st.sampled_from(
    ["Host", "cookie", "Content-Length", "content-length", "x-content-length", "Transfer-Encoding", "Connection",
     "Expect", "Upgrade", "Origin", "Authorization", " content-length", "content-length ", "content_length", "x y"]
)  # fmt: skip
VALUES = st.sampled_from(
    ["0", "2", "3", " 2", "2 ", "+2", "0x2", "2, 2", "chunked", "identity", "close", "keep-alive", "upgrade",
     "websocket", "100-continue", "a\r\ncontent-length: 2", "a\n", "a\rb", "\xe4", "", "x" * 300, "a\r\n\r\n"]
)  # fmt: skip
LINES = st.lists(st.builds("{}{}{}".format, NAMES, st.sampled_from([": ", ":", " : ", ":\t"]), VALUES), max_size=5)
BODIES = st.sampled_from([b"", b"{}", b"{} ", request(RESERVE, "host: x"), b"2\r\n{}\r\n0\r\n\r\n"])
PATHS = st.sampled_from([RESERVE, HOLDS, f"{HOLDS}?a=1", f"{HOLDS}/", "/api/me", HOLDS.upper(), f"//x{HOLDS}"])


@given(
    path=PATHS,
    lines=LINES,
    body=BODIES,
    method=st.sampled_from(["POST", "POST", "POST", "GET", "post", " POST"]),
    version=st.sampled_from(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0"]),
    cut=st.integers(0, 6).map(lambda size: size // 4),
)
@example(path=HOLDS, lines=["host: x", "content-length: 2"], body=b"{}", method="POST", version="HTTP/1.1", cut=0)
@example(path=HOLDS, lines=["host: x"], body=b"", method="POST", version="HTTP/1.1", cut=0)
@example(
    path=RESERVE, lines=["content-length: 2", "content-length: 2"], body=b"{}", method="POST", version="HTTP/1.1", cut=0
)
@example(path=HOLDS, lines=["transfer-encoding: chunked"], body=b"", method="POST", version="HTTP/1.1", cut=0)
@example(path=HOLDS, lines=["content-length: +2"], body=b"{}", method="POST", version="HTTP/1.1", cut=0)
@example(path=HOLDS, lines=["x-content-length: 2"], body=b"{}", method="POST", version="HTTP/1.1", cut=0)
@example(path=HOLDS, lines=["connection: close"], body=b"", method="POST", version="HTTP/1.1", cut=0)
@example(path=HOLDS, lines=["expect: 100-continue"], body=b"", method="POST", version="HTTP/1.1", cut=0)
@example(path=HOLDS, lines=["upgrade: websocket"], body=b"", method="POST", version="HTTP/1.1", cut=0)
def test_only_what_a_parser_reads_as_one_whole_request(
    path: str, lines: list[str], body: bytes, method: str, version: str, cut: int
) -> None:
    """Whoever is turned away has asked for places, all of it is here, nothing is behind it, and the line goes on."""
    data = request(path, *lines, body=body, method=method, version=version)
    data = data[: len(data) - cut]
    asked = asked_plainly(data, is_cors=False)
    if asked is None:
        return
    read = Read(data)
    assert (asked, read.targets, read.method, read.whole, read.keep_alive) == (EVENT, [path.encode()], b"POST", 1, True)
    assert not {b"transfer-encoding", b"upgrade", b"expect"} & set(read.names)


@pytest.mark.parametrize("path", [RESERVE, HOLDS], ids=["reserve", "holds"])
def test_a_browsers_ask_is_plain(path: str) -> None:
    """As browsers and our own page send it; from another site it is left to who knows which sites may."""
    lines = [
        "Host: tickets.example", "Connection: keep-alive", "Content-Length: 2", "Cookie: __Host-vg_session=vg_s_abc",
        'sec-ch-ua: "Chromium";v="140"', "x-csrf-token: abc", "Content-Type: application/json", f"Origin: {OTHER_SITE}",
    ]  # fmt: skip
    data = request(path, *lines, body=b"{}")
    assert asked_plainly(data, is_cors=False) == EVENT
    assert asked_plainly(data, is_cors=True) is None
    assert asked_plainly(request(path, *lines[:-1], body=b"{}"), is_cors=True) == EVENT


async def said(site: Site, *parts: bytes) -> bytes:
    """The answer to a request that comes in these parts, and that the next one is answered on the same line."""
    address = urlsplit(site.address)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    for part in parts:
        writer.write(part)
        await asyncio.sleep(0.05)  # two packets, and so two reads
    answer = await one_answer(reader)
    writer.write(request("/api/me", "host: x", method="GET"))
    assert (await one_answer(reader)).startswith(b"HTTP/1.1 401 ")
    writer.close()
    return answer


async def one_answer(reader: asyncio.StreamReader) -> bytes:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    length = re.search(rb"content-length: (\d+)", head)
    assert length
    return head + await reader.readexactly(int(length[1]))


@pytest.mark.parametrize("origins", [(), (OTHER_SITE,)])
async def test_turned_away_with_the_same_words(
    services: Services, origins: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unread or read, a refusal is the same but for its number and its time, and is counted; the line goes on."""
    async with site_with(services, cors_origins=origins) as site:
        monkeypatch.setattr("voelgoed.holds.lane.Lanes.is_any_crowded", lambda _: True)
        monkeypatch.setattr("voelgoed.holds.lane.CROWD", 0)
        metrics.settle()
        before = metrics.LANE_SHED._value.get()
        whole = request(HOLDS, "host: x", "content-length: 2", body=b"{}")
        at_door, inside = await said(site, whole), await said(site, whole[:30], whole[30:])
        metrics.settle()
        assert metrics.LANE_SHED._value.get() == before + 2
    assert at_door.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 1\r\n" in at_door
    assert but_for_number_and_time(at_door) == but_for_number_and_time(inside)
    numbers = [re.findall(rb"[0-9a-f]{8}-[0-9a-f-]{27}", answer) for answer in (at_door, inside)]
    assert numbers[0][0] == numbers[0][1]
    assert numbers[0] != numbers[1]


def but_for_number_and_time(answer: bytes) -> bytes:
    return re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}|date: [^\r]*", b"", answer)


async def test_only_where_it_is_crowded(site: Site, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event at which asks wait too long, however its id is spelled; another one keeps its pace."""
    monkeypatch.setattr(services.lanes, "_waiting", ITEMS_PER_BATCH)
    monkeypatch.setattr(services.lanes, "_slow", {EVENT: new_id()})
    spelled = (EVENT, EVENT.upper(), EVENT.replace("-", ""))
    for path in [f"/api/events/{one}/{what}" for one in spelled for what in ("holds", f"zones/{SEAT}/reserve")]:
        assert (await said(site, request(path, "host: x"))).startswith(b"HTTP/1.1 503 ")
    assert (await said(site, request(f"/api/events/{new_id()}/holds", "host: x"))).startswith(b"HTTP/1.1 401 ")


def test_every_route_by_which_places_are_asked_for_is_known() -> None:
    """A new one would be parsed for everybody who is refused."""
    templates = [route.path for route in HOT if route.method == "POST" and route.path.endswith(RESERVING)]
    assert len(templates) == 3
    for template in templates:
        path = re.sub(r"\{[a-z_]+\}", SEAT, template).replace(SEAT, EVENT, 1)
        assert asked_plainly(request(path, "host: x"), is_cors=False) == EVENT
