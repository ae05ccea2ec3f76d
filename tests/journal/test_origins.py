"""Addresses are kept for ninety days, and then the facts go on without them."""

import asyncio
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from voelgoed.accounts import model as accounts
from voelgoed.db import Connection, Database
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal import origins
from voelgoed.journal.model import Fact, Origin, SearchFilter
from voelgoed.journal.recording import record
from voelgoed.journal.search import search
from voelgoed.recent import Recent


async def add_origin(db: Database, *, age: timedelta) -> UUID:
    """An origin of an organization of its own, first seen that long ago."""
    organization_id = OrganizationId(new_id())
    async with db.transaction(organization_id) as conn:
        await conn.execute(
            "insert into origins (id, organization_id, session_id, ip, user_agent, first_seen_at)"
            " values ($1, $1, $1, '192.0.2.1', 'Firefox', now() - $2::interval)",
            organization_id,
            age,
        )
    return organization_id


async def kept(db: Database, ids: list[UUID]) -> list[tuple[bool, str | None, str | None]]:
    """Whether the session, and what of address and browser is still there."""
    async with db.system_transaction() as conn:
        rows = await conn.fetch(
            "select session_id = id as has_session, host(ip) as ip, user_agent from origins"
            " where id = any($1) order by array_position($1, id)",
            ids,
        )
    return [(row["has_session"], row["ip"], row["user_agent"]) for row in rows]


async def test_old_origins_are_emptied_and_young_ones_kept(db: Database) -> None:
    """Ninety days, across organizations; the row and its session stay, and nothing is emptied twice."""
    old = await add_origin(db, age=timedelta(days=90, minutes=1))
    young = await add_origin(db, age=timedelta(days=89, hours=23))
    assert await origins.purge(db) == 1
    assert await kept(db, [old, young]) == [(True, None, None), (True, "192.0.2.1", "Firefox")]
    assert await origins.purge(db) == 0


async def test_a_purge_goes_in_batches_and_ends(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many are emptied a batch at a time; what is over the bound of one run waits for the next."""
    monkeypatch.setattr(origins, "BATCH_ROWS", 2)
    monkeypatch.setattr(origins, "BATCHES_MAX", 2)
    for _ in range(5):
        await add_origin(db, age=timedelta(days=100))
    assert [await origins.purge(db) for _ in range(3)] == [4, 1, 0]


async def test_two_purges_at_once_share_the_work(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither waits for the other, and each row is counted once."""
    monkeypatch.setattr(origins, "BATCH_ROWS", 3)
    ids = [await add_origin(db, age=timedelta(days=100)) for _ in range(20)]
    assert sum(await asyncio.gather(origins.purge(db), origins.purge(db))) + await origins.purge(db) == 20
    assert await kept(db, ids) == [(True, None, None)] * 20


async def test_a_fact_is_found_without_its_address(db: Database, owner_conn: Connection) -> None:
    """The audit trail is whole after the purge; only where it came from is gone."""
    here, session_id = OrganizationId(new_id()), new_id()
    origin = Origin(session_id=session_id, ip="192.0.2.1", user_agent="Firefox")
    async with db.transaction(here) as conn:
        await record(conn, Fact(kind="made_in_a_test", organization_id=here, origin=origin, reason="omdat"))
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute("update origins set first_seen_at = '2026-01-01' where organization_id = $1", here)
    assert await origins.purge(db) == 1
    async with db.transaction(here) as conn:
        (fact,) = (await search(conn, here, SearchFilter(), None, 1)).facts
    assert fact.reason == "omdat"
    assert fact.origin == Origin(session_id=session_id)


@pytest.mark.parametrize(
    "statement",
    [
        "update origins set session_id = null",
        "update origins set first_seen_at = now()",
        "delete from origins",
        "truncate origins",
        "delete from journal_positions",
    ],
)
async def test_only_addresses_can_be_taken_out(app_conn: Connection, statement: str) -> None:
    """The application may empty an origin, not forget that there was one; nor may it forget a reader."""
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await app_conn.execute(statement)


def test_what_is_known_of_newcomers_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come at once; whoever was forgotten has the same id as before, and is written again."""
    monkeypatch.setattr(origins, "_IDS", Recent(10))
    monkeypatch.setattr(origins, "_WRITTEN", Recent(10))
    here = OrganizationId(new_id())
    seen = [Origin(session_id=new_id(), ip="192.0.2.1") for _ in range(100)]
    ids = origins.ids_today(here, seen)
    origins.written(ids)
    assert 10 <= len(origins._IDS) <= 20
    assert 10 <= len(origins._WRITTEN) <= 20
    assert origins.ids_today(here, seen) == ids
    assert set(ids[:80]) <= origins.unwritten(ids, seen).keys() <= set(ids[:90])


def test_of_browsers_as_they_were_read_only_the_last_are_kept() -> None:
    """They are there for whoever asks again at once."""
    for _ in range(accounts.ORIGINS_KEPT + 10):
        accounts._origin(new_id(), "192.0.2.1", "Firefox")
    assert accounts._origin.cache_info().currsize == accounts.ORIGINS_KEPT == 1_000
