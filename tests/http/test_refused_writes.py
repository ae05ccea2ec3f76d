"""Statements that PostgreSQL refuses, over HTTP: too slow, or no room. One answer each, and no second try."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import SECRET_KEY
from tests.make import passing
from tests.make.accounts import Person, make_person
from tests.make.holds import Sale, everything_of
from tests.make.processes import free_port
from tests.make.web import Site, serving
from voelgoed import schema
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import Busy, Unavailable
from voelgoed.events import lifecycle
from voelgoed.holds import store
from voelgoed.holds.lane import CONNECTIONS, ITEMS_IN_COMPANY, SETTINGS
from voelgoed.ids import new_id
from voelgoed.ticketing import offering
from voelgoed.wiring import Services, build_services

TIMEOUT = {"statement_timeout": "500ms"}


@contextlib.asynccontextmanager
async def on_insert(owner: Connection, table: str, body: str) -> AsyncIterator[None]:
    """Run this before every insert into a table."""
    await owner.execute(
        f"create function interfere() returns trigger language plpgsql as $$ begin {body}; return new; end $$;"
        f"create trigger interfere before insert on {table} for each row execute function interfere()"
    )
    try:
        yield
    finally:
        await owner.execute("drop function interfere() cascade")


@pytest.fixture
async def hasty(servers: Embedded, database: str, services: Services) -> AsyncIterator[Site]:
    """A server whose statements may take half a second, by buyers and by staff."""
    url = servers.postgres_url(schema.APP, database)
    settings = services.settings.model_copy(update={"port": free_port()})
    db = await Database.open(url, settings=TIMEOUT)
    lanes = await Database.open(url, size=CONNECTIONS, settings={**SETTINGS, **TIMEOUT})
    made = build_services(settings, db, services.redis, SECRET_KEY, lanes, clock=passing.clock)
    async with serving(made) as site:
        yield site
    await made.lanes.close()
    made.door.passwords.close()
    await made.availability.close()
    await db.close()
    await lanes.close()


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.mark.parametrize("table", ["seat_holds", "venues"])
async def test_statement_timeout_is_503_without_effect(
    hasty: Site, sale: Sale, owner: Person, owner_conn: Connection, table: str
) -> None:
    """A reservation by the fast path, and a venue by the common one."""
    venue = {"name": "Hall", "slug": f"hall-{new_id().hex}", "timezone": "Africa/Johannesburg", "max_capacity": 10}
    path, body = {
        "seat_holds": (f"/api/events/{sale.event.id}/seats/{sale.seat('S-A-1')}/reserve", dict[str, object]()),
        "venues": ("/api/admin/venues", venue),
    }[table]
    before = await everything_of(sale.db, sale.place.id)
    async with on_insert(owner_conn, table, "perform pg_sleep(30)"):
        answer = await hasty.client.post(path, json=body, headers=owner.headers)
    assert (answer.status_code, answer.json()["error"], answer.json()["effect"]) == (503, "busy", "none")
    assert answer.headers["retry-after"] == "1"
    assert await everything_of(sale.db, sale.place.id) == before
    assert (await hasty.client.post(path, json=body, headers=owner.headers)).status_code == 201


@pytest.mark.parametrize("sqlstate", ["53100", "25006", "58030", "57014"])
async def test_refused_batch_is_not_tried_one_by_one(
    sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch, sqlstate: str
) -> None:
    """A server without room gets one statement for all of them, not one more for each."""
    calls = 0
    call = Database.call

    async def counted(db: Database, query: str, *values: object) -> object:
        nonlocal calls
        calls += 1
        return await call(db, query, *values)

    refused = f"raise exception 'refused' using errcode = '{sqlstate}'"
    async with on_insert(owner_conn, "seat_holds", refused):
        with monkeypatch.context() as counting:
            counting.setattr(Database, "call", counted)
            found = await asyncio.gather(
                *(sale.hold_places(sale.caller(Role.STAFF), 1) for _ in range(ITEMS_IN_COMPANY)), return_exceptions=True
            )
    assert {getattr(one, "code", None) for one in found} == {"busy"}
    assert calls == 1
    assert (await sale.hold_places(sale.caller(Role.STAFF), 1)).is_new


async def busy(*_: object, **__: object) -> None:
    raise Busy


async def test_cancelled_event_that_cannot_be_shown_is_in_doubt(
    site: Site, sale: Sale, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event is cancelled. Only the read of the response failed, so the effect is not `none`."""
    with monkeypatch.context() as failing:
        failing.setattr(lifecycle, "find_at_venue", busy)
        path = f"/api/admin/events/{sale.event.id}/cancel"
        answer = await site.client.post(path, json={"reason": "in a test"}, headers=owner.headers)
    assert (answer.status_code, answer.json()["effect"]) == (503, "unknown")
    async with sale.db.transaction(sale.place.id) as conn:
        assert await conn.fetchval("select status::text from events where id = $1", sale.event.id) == "cancelled"


async def test_saved_seating_that_cannot_be_shown_is_in_doubt(
    site: Site, sale: Sale, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for the seating of an event."""
    path = f"/api/admin/events/{sale.event.id}/seating"
    found = (await site.client.get(path, headers=owner.headers)).json()["data"]
    pin = sale.seated.pin
    wanted = {"layout_id": str(pin.layout_id), "layout_version": pin.version, "overrides": found["overrides"]}
    with monkeypatch.context() as failing:
        failing.setattr(offering, "seating_of", busy)
        answer = await site.client.put(path, json=wanted, headers=owner.headers)
    assert (answer.status_code, answer.json()["effect"]) == (503, "unknown"), answer.text


async def test_refused_facts_are_written_when_there_is_room(sale: Sale, owner_conn: Connection) -> None:
    """What was refused meanwhile is kept for the audit log, not lost with the first attempt to write it."""
    failures = sale.services.failures
    async with on_insert(owner_conn, "journal", "raise exception 'refused' using errcode = '53100'"):
        with pytest.raises(Unavailable):
            await sale.hold(sale.caller(Role.STAFF), "S-A-1")
        await failures.flush()
    await failures.flush()
    async with sale.db.transaction(sale.place.id) as conn:
        kinds = [row["kind"] for row in await conn.fetch("select kind from journal where event_id = $1", sale.event.id)]
    assert kinds.count("seat_reserve_failed") == 1


@pytest.mark.parametrize("query", ["find_holds", "name_seats"])
async def test_an_extension_that_cannot_be_read_again_has_an_unknown_outcome(
    site: Site, sale: Sale, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """It is committed by then, so the answer must not say that nothing was changed."""
    buyer = await make_person(sale.db, sale.place)
    (held,) = await sale.hold(sale.caller(user_id=buyer.user_id), "S-A-1")
    read, extend = getattr(store, query), store.extend_holds
    is_extended = False

    async def fail_afterwards(*args: object) -> object:
        if is_extended:
            raise Busy
        return await read(*args)

    async def extend_holds(*args: Any) -> object:
        nonlocal is_extended
        said = await extend(*args)
        is_extended = True
        return said

    with monkeypatch.context() as patched:
        patched.setattr(store, query, fail_afterwards)
        patched.setattr(store, "extend_holds", extend_holds)
        answer = await site.client.post(f"/api/holds/{held.hold.id}/extend", headers=buyer.headers)
    assert (answer.status_code, answer.json()["error"]) == (503, "outcome_unknown")
    assert answer.json()["effect"] == "unknown"
    assert (await sale.rows())[0]["extended_count"] == 1
