"""The queue: a job is there when the change is, its tables are the application's alone."""

from datetime import timedelta

import asyncpg
import msgspec
import pytest

from tests.jobs.conftest import JobsDatabase
from voelgoed import schema
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.jobs import install, queue, upkeep
from voelgoed.jobs.install import NAMES, TABLES, Names
from voelgoed.jobs.queue import JOBS, RECURRING, enqueue

JOB = "purge_sessions"


async def payloads(db: Database) -> list[object]:
    async with db.system_transaction() as conn:
        rows = await conn.fetch("select payload from pgqueuer order by id")
    return [msgspec.json.decode(row["payload"]) for row in rows]


async def test_a_job_stands_or_falls_with_the_transaction(jobs_db: Database) -> None:
    """Committed, it waits in the queue; undone, it never was."""
    with pytest.raises(LookupError):
        async with jobs_db.system_transaction() as conn:
            assert await enqueue(conn, JOB, {"number": 1})
            raise LookupError
    async with jobs_db.system_transaction() as conn:
        assert await enqueue(conn, JOB, {"number": 2})
    assert await payloads(jobs_db) == [{"number": 2}]


async def test_a_key_keeps_the_second_out(jobs_db: Database) -> None:
    """While one of the key waits, no other is added, and the transaction goes on."""
    async with jobs_db.system_transaction() as conn:
        assert await enqueue(conn, JOB, {"number": 1}, dedupe_key="a")
        assert not await enqueue(conn, JOB, {"number": 2}, dedupe_key="a")
        assert await enqueue(conn, JOB, {"number": 3}, dedupe_key="b")
    assert await payloads(jobs_db) == [{"number": 1}, {"number": 3}]


async def test_a_job_may_be_for_later(jobs_db: Database) -> None:
    """It is due so long after the transaction began."""
    async with jobs_db.system_transaction() as conn:
        await enqueue(conn, JOB, {}, after=timedelta(hours=2))
        assert await conn.fetchval("select execute_after - now() from pgqueuer") == timedelta(hours=2)


async def test_an_unknown_job_and_a_heavy_one_are_mistakes(jobs_db: Database) -> None:
    """Nobody would ever run the one; the other carries records instead of naming them."""
    async with jobs_db.system_transaction() as conn:
        with pytest.raises(AssertionError):
            await enqueue(conn, "brew_coffee", {})
        with pytest.raises(AssertionError):
            await enqueue(conn, JOB, {"text": "x" * queue.PAYLOAD_BYTES_MAX})
    assert await payloads(jobs_db) == []


def test_every_recurring_job_is_known() -> None:
    """What comes by the clock is a job of the list."""
    assert {each.job_name for each in RECURRING} == {
        "advance_events",
        "purge_idempotency",
        "purge_job_records",
        "purge_origins",
        "purge_sessions",
        "purge_unfinished_layouts",
        "clear_broken_off_inventories",
        "reconcile_places",
        "purge_occupancy",
    }
    assert {each.job_name for each in RECURRING} <= JOBS.keys()


def test_the_environment_renames_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads names as plain as CHANNEL; ours are ours."""
    for name in ("CHANNEL", "QUEUE_TABLE", "PGQUEUER_QUEUE_TABLE", "PGQUEUER_PREFIX", "FUNCTION", "TRIGGER"):
        monkeypatch.setenv(name, "mine")
    again = Names(db_schema="public", channel=NAMES.channel)
    assert again == NAMES
    assert (again.queue_table, again.channel) == ("pgqueuer", "voelgoed_jobs")


async def test_installing_again_changes_nothing(jobs_database: JobsDatabase) -> None:
    """A second run plans no statement: the tables are what the installed library wants."""
    owner = await asyncpg.connect(jobs_database.owner_url)
    try:
        assert await install.is_current(owner)
        await install.install(owner)
        assert await install.is_current(owner)
        await owner.execute("drop index pgqueuer_log_created")
        assert not await install.is_current(owner)
        await install.install(owner)
        assert await install.is_current(owner)
    finally:
        await owner.close()


async def test_the_tables_are_the_applications_alone(servers: Embedded, jobs_database: JobsDatabase) -> None:
    """The application reads and writes rows and owns nothing; another login has no right at all."""
    admin = await asyncpg.connect(jobs_database.owner_url.replace("voelgoed_owner@", "postgres@"))
    try:
        for table in TABLES:
            rows = await admin.fetch(
                "select grantee::regrole::text as who, privilege_type as what"
                "  from pg_class, aclexplode(relacl) where relname = $1 and grantee <> relowner",
                table,
            )
            assert {(row["who"], row["what"]) for row in rows} == {
                (schema.APP, what) for what in ("SELECT", "INSERT", "UPDATE", "DELETE")
            }
            assert await admin.fetchval("select tableowner from pg_tables where tablename = $1", table) == schema.OWNER
        assert not await admin.fetchval(
            "select has_function_privilege('voelgoed_registry', 'fn_pgqueuer_changed()', 'execute')"
        )
        assert not await admin.fetchval("select has_type_privilege('voelgoed_registry', 'pgqueuer_status', 'usage')")
    finally:
        await admin.close()
    app = await asyncpg.connect(jobs_database.url)
    try:
        for statement in ("truncate pgqueuer", "drop table pgqueuer_log", "alter table pgqueuer add x int"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await app.execute(statement)
    finally:
        await app.close()


async def test_old_records_go(jobs_db: Database) -> None:
    """What the library wrote down is removed after its time; a job that waits is not, however old."""
    async with jobs_db.system_transaction() as conn:
        for days in (1, 13, 15, 40):
            ago = timedelta(days=days)
            await conn.execute(
                "insert into pgqueuer_log (created, job_id, status, priority, entrypoint)"
                " values (now() - $1::interval, 1, 'successful', 0, 'x')",
                ago,
            )
            await conn.execute(
                "insert into pgqueuer_statistics (created, count, priority, status, entrypoint)"
                " values (now() - $1::interval, 1, 0, 'successful', 'x')",
                ago,
            )
            for status in ("failed", "queued"):
                await conn.execute(
                    "insert into pgqueuer (priority, status, entrypoint, updated)"
                    " values (0, $2::text::pgqueuer_status, 'x', now() - $1::interval)",
                    ago,
                    status,
                )
    assert await upkeep.purge(jobs_db) == 5
    async with jobs_db.system_transaction() as conn:
        counts = [await conn.fetchval(f"select count(*) from {table}") for table in TABLES[:3]]
    assert counts == [7, 2, 2]
    assert await upkeep.purge(jobs_db) == 0


async def test_the_migration_makes_what_the_library_wants(owner_conn: Connection) -> None:
    """The queue's tables as the migrations leave them, and nothing else, are what the installed library expects."""
    assert await install.is_current(owner_conn)
