"""Migrations: in order, once, by the owner, and never edited afterwards."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from voelgoed import schema
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused


@pytest.fixture
async def empty(servers: Embedded, database: str, request: pytest.FixtureRequest) -> str:
    """The owner's URL of a new, empty database."""
    name = f"{database}_{request.node.name[:40].strip('_').lower()}".replace("[", "_").replace("]", "_")
    admin = await asyncpg.connect(servers.admin_url)
    await admin.execute(f'drop database if exists "{name}" with (force)')
    await admin.close()
    await schema.create_database(servers.admin_url, name)
    return servers.postgres_url(schema.OWNER, name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0001_first.sql").write_text("create table first (id int primary key);")
    (tmp_path / "0002_second.sql").write_text("create table second (id int primary key);")
    return tmp_path


@pytest.fixture(autouse=True)
def no_functions(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The real functions need the tables of the real migrations."""
    if "folder" in request.fixturenames:
        lock = request.getfixturevalue("folder") / "functions.lock"
        lock.write_text(f"0 {'0' * 64}\n")
        monkeypatch.setattr(schema, "FUNCTIONS_LOCK", lock)
        monkeypatch.setattr(schema, "load_functions", dict)


async def tables(url: str) -> set[str]:
    conn = await asyncpg.connect(url)
    rows = await conn.fetch(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    )
    await conn.close()
    return {row["relname"] for row in rows}


async def test_migrations_run_once_and_in_order(empty: str, folder: Path) -> None:
    """A second run does nothing."""
    steps: list[str] = []
    done = await schema.migrate(empty, folder=folder, on_step=lambda label, _seconds: steps.append(label))
    assert steps == ["0001_first", "0002_second", "functions 0"]
    assert done.is_current
    assert {"first", "second"} <= await tables(empty)
    await schema.migrate(empty, folder=folder, on_step=lambda label, _seconds: steps.append(label))
    assert len(steps) == 3


async def test_an_edited_migration_is_refused(empty: str, folder: Path) -> None:
    """What has run is history; the refusal names the file."""
    await schema.migrate(empty, folder=folder)
    (folder / "0001_first.sql").write_text("create table other (id int);")
    with pytest.raises(StartRefused, match="0001_first"):
        await schema.migrate(empty, folder=folder)


async def test_a_failing_migration_leaves_nothing(empty: str, folder: Path) -> None:
    """Each file stands or falls as a whole; those before it stay."""
    (folder / "0002_second.sql").write_text("create table second (id int); select 1/0;")
    with pytest.raises(StartRefused, match="0002_second failed: division by zero"):
        await schema.migrate(empty, folder=folder)
    assert "second" not in await tables(empty)
    assert "first" in await tables(empty)


async def test_starters_at_the_same_time_do_not_meet(empty: str, folder: Path) -> None:
    """Four processes migrate at once: each migration runs once, all four find a current schema."""
    steps: list[str] = []
    starters = [
        schema.migrate(empty, folder=folder, on_step=lambda label, _seconds: steps.append(label)) for _ in range(4)
    ]
    done = await asyncio.gather(*starters)
    assert steps == ["0001_first", "0002_second", "functions 0"]
    assert all(one.is_current for one in done)


async def test_a_database_ahead_of_the_code_is_accepted_and_named(empty: str, folder: Path) -> None:
    """During a rolling upgrade the old code meets the new schema: changes are additive, so it may run."""
    await schema.migrate(empty, folder=folder)
    (folder / "0002_second.sql").unlink()
    standing = await schema.migrate(empty, folder=folder)
    assert standing.unknown == ("0002_second",)
    assert standing.is_current


async def test_an_index_can_be_built_outside_a_transaction(empty: str, folder: Path) -> None:
    """Large tables get their indexes without a lock."""
    (folder / "0003_index.sql").write_text("-- no-transaction\ncreate index concurrently second_id on second (id);")
    assert (await schema.migrate(empty, folder=folder)).is_current


async def test_a_busy_table_is_tried_again_not_waited_for(
    empty: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that waits for a table blocks everybody behind it: it steps back and comes again."""
    await schema.migrate(empty, folder=folder)
    monkeypatch.setattr(schema, "TABLE_LOCK_WAIT", "20ms")
    (folder / "0003_more.sql").write_text("alter table first add column more int;")
    holder = await asyncpg.connect(empty)
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("lock table first in access exclusive mode")
    migrating = asyncio.create_task(schema.migrate(empty, folder=folder))
    await asyncio.sleep(0.2)
    await transaction.rollback()
    await holder.close()
    assert (await migrating).is_current


async def test_who_gives_way_to_others_tries_again(empty: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others lock two tables the other way round: PostgreSQL ends one of the two, and it is not the sale that ends."""
    await schema.migrate(empty, folder=folder)
    monkeypatch.setattr(schema, "TABLE_LOCK_WAIT", "10s")
    (folder / "0003_more.sql").write_text("lock table first; lock table other; alter table first add column more int;")
    holder, watcher = await asyncpg.connect(empty), await asyncpg.connect(empty)
    try:
        await holder.execute("create table other (id int)")
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("lock table other")
        migrating = asyncio.create_task(schema.migrate(empty, folder=folder))
        while not await watcher.fetchval("select exists (select from pg_locks where not granted)"):
            await asyncio.sleep(0.01)
        await holder.execute("lock table first")  # the migration waited first, so it is the one that is ended
        await transaction.rollback()
        assert (await migrating).is_current
    finally:
        await holder.close()
        await watcher.close()


@pytest.mark.parametrize("name", ["0004_gap.sql", "0002_twice.sql", "3_short.sql", "0003-Dash.sql"])
def test_strange_file_names_are_refused(folder: Path, name: str) -> None:
    """Order must never be a matter of opinion."""
    (folder / name).write_text("select 1;")
    with pytest.raises(StartRefused):
        schema.load_migrations(folder)


async def test_only_the_owner_migrates(servers: Embedded, database: str) -> None:
    """As superuser the tables would belong to somebody else."""
    with pytest.raises(StartRefused, match="voelgoed_owner"):
        await schema.migrate(servers.postgres_url("postgres", database))


async def test_a_file_outside_a_transaction_holds_one_statement(folder: Path) -> None:
    """Two would run as one transaction after all."""
    (folder / "0003_two.sql").write_text("-- no-transaction\nselect 1; select 2;")
    with pytest.raises(StartRefused, match="one statement only"):
        schema.load_migrations(folder)


async def test_a_turn_that_never_comes_is_said(empty: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else is migrating, and goes on."""
    monkeypatch.setattr(schema, "LOCK_WAIT", "50ms")
    holder = await asyncpg.connect(empty)
    await holder.execute("select pg_advisory_lock($1)", schema.LOCK_KEY)
    with pytest.raises(StartRefused, match="another process has been migrating"):
        await schema.migrate(empty, folder=folder)
    await holder.close()


async def test_the_real_migrations_bring_an_empty_database_up(empty: str) -> None:
    """What ships works from nothing, and says so."""
    done = await schema.migrate(empty)
    assert done.is_current
    assert done.summary == f"up to date, {len(done.applied)} migrations, functions {done.functions_version}"


async def test_status_of_an_empty_database_is_all_pending(empty: str) -> None:
    """Asking changes nothing, and needs no table of ours."""
    conn = await asyncpg.connect(empty)
    standing = await schema.status(conn)
    await conn.close()
    assert len(standing.pending) == len(schema.load_migrations(schema.migrations_folder()))
    assert await tables(empty) == set()


async def test_roles_can_be_made_again(servers: Embedded, database: str, owner_conn: Connection) -> None:
    """An administrator may run the roles twice; none of them is mighty."""
    await schema.create_database(servers.admin_url, database)
    rows = await owner_conn.fetch(
        "select rolname, rolcanlogin, rolsuper or rolbypassrls or rolcreaterole or rolcreatedb as is_mighty"
        "  from pg_roles where rolname like 'voelgoed%' order by rolname"
    )
    assert [tuple(row) for row in rows] == [
        ("voelgoed_app", True, False),
        ("voelgoed_owner", True, False),
        ("voelgoed_registry", False, False),
    ]
