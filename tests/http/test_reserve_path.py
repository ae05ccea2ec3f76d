"""A reserve request on its way: whose it is, how often PostgreSQL is asked, and what the audit log has of its end."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.holds import Sale, let_pass, moment
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Conn, Connection, Database
from voelgoed.events.model import CLOCK
from voelgoed.holds import registry
from voelgoed.wiring import Services


@pytest.fixture
async def anna(db: Database, place: Organization) -> Person:
    return await make_person(db, place)


@pytest.fixture
async def ben(db: Database, place: Organization) -> Person:
    return await make_person(db, place)


@pytest.fixture
def live(services: Services) -> Iterator[None]:
    """Have this process believe that it hears every change."""
    was = services.availability.is_live
    services.availability.is_live = lambda: True
    yield
    services.availability.is_live = was


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement and transaction that the application begins, in order."""
    seen: list[str] = []
    call, begun = Database.call, Database._begun

    async def noting_call(self: Database, query: str, *values: Any) -> Any:
        seen.append(query)
        return await call(self, query, *values)

    @asynccontextmanager
    async def noting_begun(self: Database, *given: Any, **named: Any) -> AsyncIterator[Conn]:
        seen.append("transaction")
        async with begun(self, *given, **named) as conn:
            yield conn

    monkeypatch.setattr(Database, "call", noting_call)
    monkeypatch.setattr(Database, "_begun", noting_begun)
    return seen


async def reserve(site: Site, person: Person, sale: Sale, code: str, **sent: Any) -> httpx2.Response:
    path = f"/api/events/{sale.event.id}/seats/{sale.seat(code)}/reserve"
    return await site.client.post(path, **{**sent, "headers": {**person.headers, **sent.get("headers", {})}})


@pytest.mark.req("RSV-03")
@pytest.mark.parametrize("place_of_it", ["json", "params", "headers"])
async def test_buyer_and_organization_come_from_the_session(
    site: Site, db: Database, sale: Sale, anna: Person, ben: Person, place_of_it: str
) -> None:
    """Another buyer and another organization named in the request change nothing, or the request is refused."""
    other = await make_organization(db)
    named = {"user_id": str(ben.user_id), "organization_id": str(other.id), "held_by": str(ben.user_id)}
    if place_of_it == "headers":
        named |= {"x-user-id": str(ben.user_id), "x-organization-id": str(other.id)}
    answer = await reserve(site, anna, sale, "S-A-1", **{place_of_it: named})
    rows = await sale.rows()
    if place_of_it == "json":
        assert (answer.status_code, rows) == (400, [])
        return
    assert answer.status_code == 201
    assert [(row["user_id"], row["organization_id"]) for row in rows] == [(anna.user_id, sale.place.id)]


@pytest.mark.req("REG-39")
@pytest.mark.usefixtures("live")
async def test_reserve_asks_postgresql_once_and_a_late_buyer_not_at_all(
    site: Site, services: Services, sale: Sale, anna: Person, ben: Person, asked: list[str]
) -> None:
    """One statement locks, checks, writes and records. A seat known to be taken is refused from memory before that."""
    await services.availability.load(sale.place.id, sale.event.id)
    for person, code in ((anna, "S-A-1"), (ben, "S-A-2")):  # their sessions and the names of seats are read once
        assert (await reserve(site, person, sale, code)).status_code == 201
    asked.clear()
    assert (await reserve(site, anna, sale, "S-A-3")).status_code == 201
    assert [" reserve_" in query for query in asked] == [True]
    asked.clear()
    assert (await reserve(site, ben, sale, "S-A-3")).status_code == 409
    assert asked == []


@pytest.mark.req("REG-39")
@pytest.mark.usefixtures("live")
async def test_several_seats_are_one_statement(
    site: Site, services: Services, sale: Sale, anna: Person, asked: list[str]
) -> None:
    """Four seats cost as many statements as one."""
    await services.availability.load(sale.place.id, sale.event.id)
    counts = []
    for codes in (("S-A-1",), ("S-A-2",), ("S-A-3", "S-A-4", "S-B-3", "S-B-4")):  # the first reads the session as well
        asked.clear()
        body = {"seat_ids": [str(sale.seat(code)) for code in codes]}
        answer = await site.client.post(f"/api/events/{sale.event.id}/holds", json=body, headers=anna.headers)
        assert answer.status_code == 201, answer.text
        counts.append(len(asked))
    assert counts[1:] == [1, 1]
    assert len(await sale.rows()) == 6


@pytest.mark.req("AUD-03")
async def test_expired_holds_are_in_the_audit_log(
    site: Site, db: Database, sale: Sale, anna: Person, owner_conn: Connection
) -> None:
    """An entry for each expired hold, of a seat or a zone, with its reason. The hold has expired, nobody ended it."""
    call = sale.caller(user_id=anna.user_id)
    (seat,) = await sale.hold(call, "S-A-1")
    places = await sale.hold_places(call, 2)
    (kept,) = await sale.hold(call, "S-A-2")
    await let_pass(owner_conn, seat.hold.id, places.hold.id)
    await registry.reap(sale.db, by=CLOCK)
    lead = await make_person(db, sale.place, Role.OWNER)
    path = f"/api/admin/audit?kind=seat_hold_expired&event_id={sale.event.id}"
    answer = await site.client.get(path, headers=lead.headers)
    found = {UUID(fact["data"]["hold_id"]): fact for fact in answer.json()["data"]}
    assert found.keys() == {seat.hold.id, places.hold.id}
    rows = {row["id"]: row for row in await sale.rows()}
    assert {hold_id: rows[hold_id]["status"] for hold_id in rows} == {
        seat.hold.id: "expired",
        places.hold.id: "expired",
        kept.hold.id: "active",
    }
    for hold_id, fact in found.items():
        assert (fact["data"]["reason"], fact["actor_id"]) == ("ttl_expired", None)
        assert moment(fact["recorded_at"]) >= rows[hold_id]["expired_at"]
    assert found[seat.hold.id]["seat_id"] == str(sale.seat("S-A-1"))
