"""Asks for a seat need no task: they are answered as every other request is, in order, whatever becomes of them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.make.accounts import Person, make_person
from tests.make.holds import Sale
from tests.make.web import Site
from voelgoed.accounts import store as accounts
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.errors import Busy
from voelgoed.holds.booking import Held
from voelgoed.holds.model import Ask, Verdict
from voelgoed.http import edge
from voelgoed.http.routes import holds
from voelgoed.wiring import Services

SEATS = ("S-A-1", "S-A-2", "S-A-3")


class Talk:
    """A connection, word by word."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self) -> tuple[int, dict[str, object]]:
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 20)
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        body = await self.reader.readexactly(int(headers["content-length"]))
        return int(status.split()[1]), json.loads(body)


@contextlib.asynccontextmanager
async def talking(site: Site) -> AsyncIterator[Talk]:
    address = urlsplit(site.address)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    yield Talk(reader, writer)
    writer.close()


def asking(sale: Sale, who: Person, code: str, *, body: bytes = b"", more: str = "") -> bytes:
    """A request for a seat, as it stands on the wire."""
    path = f"/api/events/{sale.event.id}/seats/{sale.seat(code)}/reserve"
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {who.token}\r\n{more}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def known(site: Site, people: Iterable[Person]) -> None:
    """Let the process know who they are, so that nobody has to be looked up."""
    for person in people:
        assert (await site.client.get("/api/me", headers=person.headers)).status_code == 200


@pytest.mark.parametrize("is_known", [True, False])
async def test_asks_in_a_row_are_answered_in_a_row(
    site: Site, db: Database, place: Organization, sale: Sale, *, is_known: bool
) -> None:
    """On one connection, however many are sent before the first answer, and whether or not who asks is known."""
    people = [await make_person(db, place) for _ in SEATS]
    if is_known:
        await known(site, people)
    me = b"GET /api/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\n\r\n" % people[0].token.encode()
    async with talking(site) as talk:
        talk.writer.write(
            me.join(asking(sale, person, code) for person, code in zip(people, SEATS, strict=True))
            + asking(sale, people[0], SEATS[1]) * 40
        )
        said = [await talk.answer() for _ in range(5)]
        assert [status for status, _ in said] == [201, 200, 201, 200, 201]
        seats = [body["data"]["seat_id"] for _, body in said[::2]]  # type: ignore[index]
        assert seats == [str(sale.seat(code)) for code in SEATS]
        for _ in range(40):
            status, refused = await talk.answer()
            assert (status, refused["error"]) == (409, "seat_held_by_another_user")
    assert len(await sale.rows()) == len(SEATS)


async def test_a_body_behind_a_wish_to_change_over_is_read(
    site: Site, db: Database, place: Organization, sale: Sale
) -> None:
    """The parser passes over the body of such a request: nothing may begin before it is there."""
    anna = await make_person(db, place)
    await known(site, [anna])
    async with talking(site) as talk:
        more = "connection: upgrade\r\nupgrade: h2c\r\ncontent-type: application/json\r\n"
        talk.writer.write(asking(sale, anna, SEATS[0], body=b'{"cart_token": "mine"}', more=more))
        status, held = await talk.answer()
    assert (status, held["data"]["cart_token"]) == (201, "mine")  # type: ignore[index]


async def test_a_body_that_comes_after_its_headers_is_waited_for(
    site: Site, db: Database, place: Organization, sale: Sale
) -> None:
    """Who asks is looked at meanwhile; nothing begins before it is all there."""
    anna = await make_person(db, place)
    await known(site, [anna])
    whole = asking(sale, anna, SEATS[0], body=b'{"cart_token": "mine"}')
    async with talking(site) as talk:
        talk.writer.write(whole[:-5])
        await talk.writer.drain()
        assert (await site.client.get("/api/me", headers=anna.headers)).status_code == 200  # the head was read by now
        talk.writer.write(whole[-5:])
        status, held = await talk.answer()
    assert (status, held["data"]["cart_token"]) == (201, "mine")  # type: ignore[index]


@pytest.mark.parametrize("part", ["given", "told"])
async def test_an_answer_that_cannot_be_made_fails_alone(
    site: Site,
    services: Services,
    db: Database,
    place: Organization,
    sale: Sale,
    monkeypatch: pytest.MonkeyPatch,
    *,
    part: str,
) -> None:
    """The others of its batch are answered, the connection goes on, and the hold stands."""
    people = [await make_person(db, place) for _ in SEATS]
    await known(site, people)
    told, broken = holds.told, sale.seat(SEATS[1])
    given = services.lanes.given

    def fail_at_asking(ask: Ask, verdicts: Sequence[Verdict]) -> object:
        if ask.items[0].seat_id == broken:
            raise ZeroDivisionError
        return given(ask, verdicts)

    def fail_at_one(held: Held) -> dict[str, object]:
        if held.hold.seat_id == broken:
            raise ZeroDivisionError
        return told(held)

    if part == "told":
        monkeypatch.setattr(holds, "told", fail_at_one)
    else:
        monkeypatch.setattr(services.lanes, "given", fail_at_asking)
    answers = await asyncio.gather(
        *(
            site.client.post(f"/api/events/{sale.event.id}/seats/{sale.seat(code)}/reserve", headers=person.headers)
            for person, code in zip(people, SEATS, strict=True)
        )
    )
    assert [answer.status_code for answer in answers] == [201, 500, 201]
    assert answers[1].json()["effect"] == "unknown"
    assert len(await sale.rows()) == len(SEATS)


async def test_a_page_must_show_that_it_asks(site: Site, db: Database, place: Organization, sale: Sale) -> None:
    """A cookie is sent by the browser whoever wrote the page, so it is not enough."""
    anna = await make_person(db, place)
    await known(site, [anna])
    path = f"/api/events/{sale.event.id}/seats/{sale.seat(SEATS[0])}/reserve"
    refused = await site.client.post(path, headers=anna.cookie)
    assert (refused.status_code, refused.json()["error"]) == (403, "csrf_failed")
    assert await sale.rows() == []
    assert (await site.client.post(path, headers=anna.cookie | anna.csrf)).status_code == 201


async def test_whoever_hangs_up_leaves_nothing_open(
    site: Site, services: Services, db: Database, place: Organization, sale: Sale
) -> None:
    """The hold is theirs when they come back; the next ask finds everything as it should be."""
    anna, ben = await make_person(db, place), await make_person(db, place)
    await known(site, [anna, ben])
    async with talking(site) as talk:
        talk.writer.write(asking(sale, anna, SEATS[0]))
        await talk.writer.drain()
        talk.writer.transport.abort()
    async with talking(site) as talk:
        talk.writer.write(asking(sale, ben, SEATS[1]))
        assert (await talk.answer())[0] == 201
    async with asyncio.timeout(20):
        while services.lanes._waiting:
            await asyncio.sleep(0.01)


class Reading:
    """Sessions that are read when they are let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let, self.begun = asyncio.Event(), asyncio.Event()
        self.failure: Exception | None = None
        self.batches: list[int] = []
        real = accounts.find_sessions

        async def find_sessions(conn: Any, digests: Sequence[bytes]) -> object:
            self.batches.append(len(digests))
            self.begun.set()
            await asyncio.wait_for(self.let.wait(), 20)
            if self.failure:
                raise self.failure
            return await real(conn, digests)

        monkeypatch.setattr(accounts, "find_sessions", find_sessions)


async def test_who_leaves_while_it_is_read_who_they_are_holds_nothing(
    site: Site, services: Services, db: Database, place: Organization, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes with the same session on another line, and stays, is answered by the same reading."""
    anna = await make_person(db, place)
    reading = Reading(monkeypatch)
    async with talking(site) as leaving, talking(site) as staying:
        leaving.writer.write(asking(sale, anna, SEATS[0]))
        await asyncio.wait_for(reading.begun.wait(), 20)
        staying.writer.write(asking(sale, anna, SEATS[1]))
        leaving.writer.transport.abort()
        for _ in range(3):  # the house has noticed by then
            assert (await site.client.get("/healthz")).status_code == 200
        reading.let.set()
        assert (await staying.answer())[0] == 201
    assert reading.batches == [1]
    assert [row["seat_id"] for row in await sale.rows()] == [sale.seat(SEATS[1])]
    assert services.lanes._waiting == 0


@pytest.mark.parametrize(("failure", "status"), [(Busy(), 503), (ZeroDivisionError(), 500)])
async def test_a_session_that_cannot_be_read_is_said_so(
    site: Site,
    db: Database,
    place: Organization,
    sale: Sale,
    monkeypatch: pytest.MonkeyPatch,
    *,
    failure: Exception,
    status: int,
) -> None:
    """To all who wait for it; the line goes on, and the next ask is answered."""
    anna = await make_person(db, place)
    async with talking(site) as talk:
        with monkeypatch.context() as patch:
            reading = Reading(patch)
            reading.failure = failure
            reading.let.set()
            talk.writer.write(asking(sale, anna, SEATS[0]))
            assert (await talk.answer())[0] == status
        assert await sale.rows() == []
        talk.writer.write(asking(sale, anna, SEATS[0]))
        assert (await talk.answer())[0] == 201


async def test_a_refusal_is_logged_with_who_was_refused(
    site: Site, services: Services, db: Database, place: Organization, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no task has no context of its own: the line says whose request it was, and nobody else's."""
    anna = await make_person(db, place)
    await known(site, [anna])
    logged: list[dict[str, object]] = []
    monkeypatch.setattr(
        edge.log, "info", lambda event, **about: logged.append({"event": event, **about}), raising=False
    )
    path = f"/api/events/{sale.event.id}/seats/{sale.seat(SEATS[0])}/reserve"
    refused = await site.client.post(path, headers=anna.cookie)
    assert refused.status_code == 403
    (line,) = [line for line in logged if line["event"] == "request_refused"]
    assert (line["request_id"], line["organization_id"], line["actor_id"]) == (
        refused.headers["x-request-id"],
        str(place.id),
        str(anna.user_id),
    )
