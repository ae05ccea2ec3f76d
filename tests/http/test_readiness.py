"""Readiness while PostgreSQL hangs or is read only: bounded, correct, and back to ready by itself."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from types import SimpleNamespace

import asyncpg
import pytest
from pydantic import SecretStr

from tests.make.processes import free_port
from tests.make.unwritable import read_only_sessions
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.http.routes import health
from voelgoed.http.routes.health import Readiometer
from voelgoed.wiring import Services

REQUESTS = 100


@pytest.fixture
async def readiometer(services: Services, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Readiometer]:
    """A check of its own that caches nothing."""
    monkeypatch.setattr(health, "TRUSTED_S", -1.0)
    made = Readiometer(services, asyncio.Event())
    yield made
    made.close()


async def test_hung_server_is_asked_once_for_all_requests(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that accepts and never answers: every request gets the result of one bounded check."""
    monkeypatch.setattr(health, "CHECK_TIMEOUT_S", 0.2)
    accepted = 0

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.read()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(hang, "127.0.0.1", port):
        url = SecretStr(f"postgresql://voelgoed_app@127.0.0.1:{port}/none?sslmode=disable")
        settings = services.settings.model_copy(update={"database_url": url})
        hung = Readiometer(dataclasses.replace(services, settings=settings), asyncio.Event())
        found = await asyncio.gather(*(hung.ask() for _ in range(REQUESTS)))
        hung.close()
    assert {one.status for one in found} == {"not_ready"}
    assert {one.checks["database"].message for one in found} == {"PostgreSQL does not answer (TimeoutError)."}
    assert accepted == 1


async def test_statement_that_hangs_is_given_up(
    readiometer: Readiometer, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check has a limit in the middle of a session too, and a new session when the server goes on."""
    assert (await readiometer.ask()).status == "ready"
    with monkeypatch.context() as impatient:
        impatient.setattr(health, "CHECK_TIMEOUT_S", 0.2)
        async with owner_conn.transaction():
            await owner_conn.execute("lock table schema_migrations in access exclusive mode")
            found = await readiometer.ask()
    assert found.status == "not_ready"
    assert found.checks["database"].message == "PostgreSQL does not answer (TimeoutError)."
    assert (await readiometer.ask()).status == "ready"


async def test_setting_of_new_sessions_is_seen_within_ten_seconds(
    readiometer: Readiometer, servers: Embedded, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool's next sessions are read only, so the check must not keep its own for ever; nor the bad one after it."""
    now = [100.0]
    monkeypatch.setattr(health, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert (await readiometer.ask()).status == "ready"
    async with read_only_sessions(servers, database):
        now[0] += health.CONNECTION_S - 0.01
        assert (await readiometer.ask()).status == "ready"
        now[0] += 0.01
        found = await readiometer.ask()
        assert (found.status, found.checks["database"].message) == ("not_ready", "PostgreSQL is read only.")
        assert (await readiometer.ask()).status == "not_ready"
    assert (await readiometer.ask()).status == "ready"


async def test_url_without_a_matching_server_is_not_ready(services: Services, servers: Embedded, database: str) -> None:
    """The driver finds no server of the wanted kind: a failed check, not an error of the route."""
    url = SecretStr(f"{servers.postgres_url('voelgoed_app', database)}&target_session_attrs=standby")
    settings = services.settings.model_copy(update={"database_url": url})
    asking = Readiometer(dataclasses.replace(services, settings=settings), asyncio.Event())
    found = await asking.ask()
    asking.close()
    assert found.status == "not_ready"
    assert found.checks["database"].state == "failed"


async def test_check_leaves_nothing_behind(readiometer: Readiometer, app_conn: Connection) -> None:
    """No transaction stays open, no WAL is written by it, and its session goes on to the next check."""
    await readiometer.ask()
    first = readiometer._conn
    await readiometer.ask()
    assert readiometer._conn is first
    assert isinstance(first, asyncpg.Connection)
    assert not first.is_in_transaction()
    row = await app_conn.fetchrow(
        "select state, backend_xid from pg_stat_activity where pid = $1", first.get_server_pid()
    )
    assert row is not None
    assert (row["state"], row["backend_xid"]) == ("idle", None)
