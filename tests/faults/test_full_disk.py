"""A disk so full that PostgreSQL cannot write its log and panics: it is started again until there is room."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.make.unwritable import Unwritable, unwritable
from voelgoed import data_folder, embedded as module
from voelgoed.data_folder import ROOM_BYTES
from voelgoed.db import Database
from voelgoed.embedded import running
from voelgoed.errors import OutcomeUnknown, StartRefused, Unavailable

FILL_SEGMENT = "select pg_logical_emit_message({}, 'filler', repeat('x', 20000000))"
"""More than what is left of any WAL segment, without a row that could be refused for want of a page."""
WITHIN_S = 60


@pytest.fixture
async def faulty(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Unwritable]:
    """A PostgreSQL that ends when one of its processes crashes.

    Otherwise it would recover by itself, and PostgreSQL 18 can hang when that fails as fast as it does here.
    """
    monkeypatch.setattr(module, "RESTARTS_MAX", 1)
    monkeypatch.setattr(module, "PID_FILE_WAIT_S", 0.0)  # a full disk fails at the pid file as well
    with unwritable() as made:
        async with running(made.servers):
            await made.configure("restart_after_crash", "off")
            yield made


@contextlib.asynccontextmanager
async def watching(faulty: Unwritable) -> AsyncIterator[asyncio.Task[None]]:
    """Have it restarted when it dies, while the block lasts."""
    task = asyncio.create_task(faulty.servers.watch())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until_restarted(faulty: Unwritable, times: int) -> None:
    """Wait until PostgreSQL has been restarted this many times."""
    seen = {faulty.servers.pids()["postgres"]}
    async with asyncio.timeout(WITHIN_S):
        while len(seen) <= times:
            seen.add(faulty.servers.pids()["postgres"])
            await asyncio.sleep(0.01)


async def until_written(db: Database, value: int) -> None:
    """Wait until a row is written: the server is back, and the pool has found it."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await db.call("insert into kept values ($1)", value)
            except (Unavailable, OutcomeUnknown):
                await asyncio.sleep(0.05)
            else:
                return


async def test_panic_is_in_doubt_and_the_server_comes_back(faulty: Unwritable, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it dies meanwhile: a full disk is no reason to give up. The pool finds the server again."""
    monkeypatch.setattr(data_folder, "is_full", lambda _home: faulty.switch.exists())
    db = await Database.open(faulty.servers.admin_url, size=1)
    await db.call("create table kept (value int)")
    async with watching(faulty):
        async with faulty.full_disk():
            with pytest.raises(OutcomeUnknown):
                await db.call(FILL_SEGMENT.format("true"))
            with pytest.raises(Unavailable):
                async with db.system_transaction() as conn:
                    await conn.execute("insert into kept values (1)")
            await until_restarted(faulty, 3)
        await until_written(db, 2)
    assert [row["value"] for row in await db.call("select value from kept")] == [2]
    await db.close()


async def test_server_that_keeps_dying_with_room_is_given_up(
    faulty: Unwritable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the fault is another one, and a person has to look."""
    monkeypatch.setattr(data_folder, "is_full", lambda _home: False)
    db = await Database.open(faulty.servers.admin_url, size=1)
    async with watching(faulty) as task, faulty.full_disk():
        with pytest.raises(OutcomeUnknown):
            await db.call(FILL_SEGMENT.format("false"))
        with pytest.raises(StartRefused, match="postgres keeps dying"):
            await asyncio.wait_for(task, WITHIN_S)
    await db.close()


@pytest.mark.parametrize(("free", "is_full"), [(ROOM_BYTES - 1, True), (ROOM_BYTES, False), (ROOM_BYTES + 1, False)])
def test_disk_without_room_for_the_log_is_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, *, is_full: bool
) -> None:
    """Four segments of the write-ahead log are the least that it takes."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _home: SimpleNamespace(free=free))
    assert data_folder.is_full(tmp_path) is is_full


def test_folder_that_is_gone_is_not_full(tmp_path: Path) -> None:
    """Its server is given up like any other that keeps dying."""
    assert not data_folder.is_full(tmp_path / "gone")
