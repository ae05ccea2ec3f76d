"""The entrance to PostgreSQL: what is committed, what is undone, what is tried again."""

import asyncio
from pathlib import Path
from unittest.mock import patch

import asyncpg
import pytest

from tests.make.accounts import make_organization
from voelgoed import db as module, schema
from voelgoed.db import Conn, Connection, Database, check_server, find_objections, load_queries
from voelgoed.embedded import Embedded
from voelgoed.errors import Busy, LostRace, OutcomeUnknown, StartRefused
from voelgoed.ids import OrganizationId, new_id

ADD = "insert into organizations (id, slug, name) values ($1, $2, 'Made in a test')"


async def count(db: Database, organization_id: OrganizationId) -> int:
    async with db.system_transaction() as conn:
        found: int = await conn.fetchval("select count(*) from organizations where id = $1", organization_id)
        return found


def new_organization() -> tuple[OrganizationId, str]:
    organization_id = OrganizationId(new_id())
    return organization_id, f"org-{organization_id.hex}"


async def test_what_is_done_in_a_transaction_is_kept(db: Database) -> None:
    """Leaving the block commits."""
    organization_id, slug = new_organization()
    async with db.transaction(organization_id) as conn:
        await conn.execute(ADD, organization_id, slug)
    assert await count(db, organization_id) == 1


async def test_an_error_undoes_the_whole_transaction(db: Database) -> None:
    """Nothing of a failed block stays, and the connection is good for the next one."""
    organization_id, slug = new_organization()
    with pytest.raises(RuntimeError, match="changed my mind"):
        async with db.transaction(organization_id) as conn:
            await conn.execute(ADD, organization_id, slug)
            raise RuntimeError("changed my mind")
    assert await count(db, organization_id) == 0


async def test_a_swallowed_error_is_not_taken_for_a_commit(db: Database) -> None:
    """PostgreSQL answers the commit of a failed transaction with a rollback; that must never look like success."""
    organization_id, slug = new_organization()
    with pytest.raises(AssertionError, match="nothing was written"):
        async with db.transaction(organization_id) as conn:
            await conn.execute(ADD, organization_id, slug)
            with pytest.raises(asyncpg.DivisionByZeroError):
                await conn.execute("select 1/0")
    assert await count(db, organization_id) == 0


@pytest.mark.parametrize("times", [1, 3])
async def test_a_commit_is_not_cancelled(db: Database, times: int) -> None:
    """A caller who leaves during the commit, however often it says so, leaves a whole transaction behind."""
    organization_id, slug = new_organization()
    committing = asyncio.Event()
    execute = asyncpg.Connection.execute

    async def announced(conn: Connection, query: str, *args: object, timeout: float | None = None) -> str:
        if query == "commit":
            committing.set()
            await asyncio.sleep(0.05)
        return await execute(conn, query, *args, timeout=timeout)

    async def work() -> None:
        async with db.transaction(organization_id) as conn:
            await conn.execute(ADD, organization_id, slug)

    with patch.object(asyncpg.Connection, "execute", announced):
        task = asyncio.create_task(work())
        await committing.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await count(db, organization_id) == 1


async def end_backend(servers: Embedded, conn: Conn) -> None:
    """End the server's side of a connection, as a crash of the server would."""
    pid = await conn.fetchval("select pg_backend_pid()")
    admin = await asyncpg.connect(servers.admin_url)
    await admin.execute("select pg_terminate_backend($1, 5000)", pid)
    await admin.close()


async def test_a_connection_lost_at_the_commit_leaves_the_outcome_open(db: Database, servers: Embedded) -> None:
    """The caller is told that nobody knows, not that nothing happened."""
    organization_id, slug = new_organization()
    with pytest.raises(OutcomeUnknown):
        async with db.transaction(organization_id) as conn:
            await conn.execute(ADD, organization_id, slug)
            await end_backend(servers, conn)
    assert await count(db, organization_id) == 0


async def test_a_connection_lost_before_the_commit_is_busy(db: Database, servers: Embedded) -> None:
    """Nothing was committed, so the caller may simply try again."""
    organization_id, slug = new_organization()
    with pytest.raises(Busy):
        async with db.transaction(organization_id) as conn:
            await end_backend(servers, conn)
            await conn.execute(ADD, organization_id, slug)
    assert await count(db, organization_id) == 0


async def test_a_mistake_of_ours_is_not_called_busy(db: Database) -> None:
    """The driver's words about a wrong argument share a class with lost connections, and are still a bug to be seen."""
    with pytest.raises(asyncpg.DataError):
        async with db.transaction(OrganizationId(new_id())) as conn:
            await conn.execute(ADD, "not a uuid", "slug")


async def test_connections_that_died_are_replaced(servers: Embedded, database: str) -> None:
    """After a restart of the server the pool is full of dead connections; nobody outside notices."""
    db = await Database.open(servers.postgres_url(schema.APP, database), size=2)
    try:
        async with db.system_transaction() as one, db.system_transaction() as two:
            pids = [await conn.fetchval("select pg_backend_pid()") for conn in (one, two)]
        admin = await asyncpg.connect(servers.admin_url)
        await admin.execute("select pg_terminate_backend(pid, 5000) from unnest($1::int[]) pid", pids)
        await admin.close()
        async with db.system_transaction() as conn:
            assert await conn.fetchval("select 1") == 1
    finally:
        await db.close()


async def test_a_pool_that_is_taken_up_says_busy(servers: Embedded, database: str) -> None:
    """Waiting for a connection has a limit."""
    db = await Database.open(servers.postgres_url(schema.APP, database), size=1, acquire_timeout_s=0.05)
    try:
        async with db.system_transaction():
            with pytest.raises(Busy):
                async with db.system_transaction():
                    pass
    finally:
        await db.close()


async def test_two_that_wait_for_each_other_both_get_through(db: Database) -> None:
    """A deadlock undoes one of the two; it is tried again and nothing is lost."""
    first, second = await make_organization(db), await make_organization(db)
    both_hold_one = asyncio.Barrier(2)
    tries = 0

    async def rename(one: OrganizationId, other: OrganizationId, name: str) -> None:
        met = False

        async def work() -> None:
            nonlocal met, tries
            tries += 1
            async with db.system_transaction() as conn:
                await conn.execute("update organizations set name = $2 where id = $1", one, name)
                if not met:
                    met = True
                    await both_hold_one.wait()
                await conn.execute("update organizations set name = $2 where id = $1", other, name)

        await db.attempt(work)

    await asyncio.gather(rename(first.id, second.id, "A"), rename(second.id, first.id, "B"))
    async with db.system_transaction() as conn:
        names = await conn.fetch("select distinct name from organizations where id in ($1, $2)", first.id, second.id)
    assert len(names) == 1
    assert tries == 3


async def test_a_race_that_is_always_lost_ends_as_busy(db: Database) -> None:
    """Trying again is bounded."""
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        async with db.system_transaction():
            raise asyncpg.SerializationError("again")

    with pytest.raises(Busy):
        await db.attempt(work)
    assert tries == 1 + len(module.WORK_WAITS_S)


async def test_a_lock_that_is_never_free_is_busy(db: Database, owner_conn: Connection) -> None:
    """Whoever waits too long for a record is told to come again: nothing was written."""
    place = await make_organization(db)
    transaction = owner_conn.transaction()
    await transaction.start()
    await owner_conn.execute("update organizations set name = 'Mine' where id = $1", place.id)
    with pytest.raises(LostRace):
        async with db.transaction(place.id) as conn:
            await conn.execute("set local lock_timeout = '20ms'")
            await conn.execute("update organizations set name = 'Yours' where id = $1", place.id)
    await transaction.rollback()


async def test_other_errors_are_not_tried_again(db: Database) -> None:
    """Only a lost race may be repeated: anything else could have happened already."""
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        raise asyncpg.UniqueViolationError("no")

    with pytest.raises(asyncpg.UniqueViolationError):
        await db.attempt(work)
    assert tries == 1


async def test_settings_that_lose_holds_are_refused(servers: Embedded, database: str) -> None:
    """A server without fsync or with asynchronous commit is not started upon; tests alone may accept it."""
    db = await Database.open(servers.postgres_url(schema.APP, database), size=1)
    try:
        with pytest.raises(StartRefused) as refused:
            await check_server(db)
        assert all(name in str(refused.value) for name in ("fsync", "synchronous_commit", "full_page_writes"))
        await check_server(db, unsafe_accepted=True)
    finally:
        await db.close()


@pytest.mark.parametrize(
    ("role", "objection"),
    [("postgres", "passes row-level security"), (schema.OWNER, "owns tables")],
)
async def test_a_login_that_is_too_mighty_is_refused(
    servers: Embedded, database: str, role: str, objection: str
) -> None:
    """A process that runs as superuser or owner would walk through the walls between organizations."""
    db = await Database.open(servers.postgres_url(role, database), size=1)
    try:
        with pytest.raises(StartRefused, match=objection):
            await check_server(db, unsafe_accepted=True)
    finally:
        await db.close()


async def test_a_login_that_may_become_the_owner_is_refused(servers: Embedded, database: str) -> None:
    """Membership is as good as ownership."""
    admin = await asyncpg.connect(servers.postgres_url("postgres", database))
    await admin.execute("create role climber login in role voelgoed_owner")
    conn = await asyncpg.connect(servers.postgres_url("climber", database))
    try:
        assert any("may become the owner" in found for found in await find_objections(conn))
    finally:
        await conn.close()
        await admin.execute("drop role climber")
        await admin.close()


async def test_the_applications_login_has_no_objections_but_the_tests_settings(app_conn: Connection) -> None:
    """The role as it is made is accepted as it is."""
    assert all(found.startswith("setting ") for found in await find_objections(app_conn))


async def test_a_server_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    """No traceback of the driver: what is wrong, and where to look."""
    with pytest.raises(StartRefused, match="cannot connect") as refused:
        await Database.open(f"postgresql://nobody@/none?host={tmp_path}")
    assert "VOELGOED_DATABASE_URL" in refused.value.hint


def test_named_queries_are_read_with_their_comments(tmp_path: Path) -> None:
    """A query keeps the comment that gives its reason."""
    file = tmp_path / "queries.sql"
    file.write_text("-- name: one\n-- Because.\nselect 1;\n\n-- name: two\nselect 2;\n")
    assert load_queries(file) == {"one": "-- Because.\nselect 1;", "two": "select 2;"}


@pytest.mark.parametrize(
    "text", ["-- name: one\nselect 1;\n-- name: one\nselect 2;\n", "-- name: one\n\n-- name: two\nx;"]
)
def test_doubtful_query_files_are_refused(tmp_path: Path, text: str) -> None:
    """A double name or an empty query is a mistake found at import."""
    file = tmp_path / "queries.sql"
    file.write_text(text)
    with pytest.raises(AssertionError):
        load_queries(file)


async def test_what_was_done_is_done_whether_or_not_the_connection_can_be_given_back(
    servers: Embedded, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server dies right after it has committed: the answer came, and must not be lost with the connection."""
    db = await Database.open(servers.postgres_url(schema.APP, database), size=1)
    give_back = type(db._pool).release

    async def lost(pool: object, conn: object, **_: object) -> None:
        await give_back(pool, conn)  # type: ignore[arg-type]
        raise asyncpg.InterfaceError("connection is closed")

    monkeypatch.setattr(type(db._pool), "release", lost)
    assert (await db.call("select 1"))[0][0] == 1
    async with db.system_transaction() as conn:
        assert await conn.fetchval("select 2") == 2
    monkeypatch.undo()
    await db.close()
