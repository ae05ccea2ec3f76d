"""SQL functions have versions: a database keeps the latest set it was given, whole."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import asyncpg
import pytest

from tests.make.races import connect_owner, database_alone
from voelgoed import schema
from voelgoed.config import Settings
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.schema import FunctionSet, FunctionsState

OLD, NEW = 7, 8
UNKNOWN = "0" * 64
FILE, OTHER_FILE = "a/functions.sql", "b/functions.sql"


def answer(value: int, name: str = "answer") -> str:
    return f"create or replace function {name}() returns int language sql as 'select {value}';"


class Node:
    """A node of the release that `install` puts in place of the real one, on a database of its own."""

    def __init__(self, url: str, conn: Connection, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url, self.conn, self.folder = url, conn, folder
        self.monkeypatch = monkeypatch
        monkeypatch.setattr(schema, "FUNCTIONS_LOCK", folder / "functions.lock")

    def install(self, version: int, functions: Mapping[str, str], *, is_edited: bool = False) -> None:
        self.monkeypatch.setattr(schema, "load_functions", lambda: dict(functions))
        checksum = UNKNOWN if is_edited else schema.lock_checksum(functions, schema.load_migrations(self.folder))
        (self.folder / "functions.lock").write_text(f"# a comment\n{version} {checksum}\n")

    async def migrate(self) -> tuple[list[str], schema.Status]:
        """Migrate as a start does; return the steps and the status after them."""
        steps: list[str] = []
        done = await schema.migrate(self.url, folder=self.folder, on_step=lambda step, _seconds: steps.append(step))
        return steps, done

    async def status(self) -> schema.Status:
        return await schema.status(self.conn, schema.load_migrations(self.folder))

    async def answer(self, name: str = "answer") -> int:
        return int(await self.conn.fetchval(f"select {name}()"))


@pytest.fixture
async def node(
    servers: Embedded, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker_id: str
) -> AsyncIterator[Node]:
    name = f"functions_{worker_id}"
    (tmp_path / "0001_first.sql").write_text("create table first (id int primary key);")
    async with database_alone(servers, settings, "template0", name), connect_owner(servers, name) as conn:
        yield Node(servers.postgres_url(schema.OWNER, name), conn, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("ours", "applied", "same", "other"),
    [
        ((NEW, False), (OLD, False), "pending", "pending"),
        ((OLD, False), (OLD, False), "current", "conflict"),
        ((OLD, False), (NEW, False), "newer", "newer"),
        ((NEW, True), (OLD, False), "pending", "pending"),
        ((OLD, True), (OLD, False), "current", "pending"),
        ((OLD, True), (NEW, False), "newer", "newer"),
        ((NEW, False), (OLD, True), "pending", "pending"),
        ((OLD, False), (OLD, True), "current", "pending"),
        ((OLD, False), (NEW, True), "newer", "newer"),
        ((OLD, True), (OLD, True), "current", "pending"),
    ],
)
def test_versions_are_compared_before_texts(
    ours: tuple[int, bool], applied: tuple[int, bool], same: str, other: str
) -> None:
    """A lower version never replaces a higher one; at the same version only a checkout under development changes."""

    def functions(about: tuple[int, bool], text: str) -> FunctionSet:
        return FunctionSet(version=about[0], checksums={FILE: text}, is_edited=about[1])

    assert schema.compare_functions(functions(ours, "x"), functions(applied, "x")) == same
    assert schema.compare_functions(functions(ours, "x"), functions(applied, "y")) == other


async def test_functions_of_an_empty_database_are_pending(node: Node) -> None:
    """Version 1 is the first there is, and an empty database has version 0."""
    node.install(1, {FILE: answer(1)})
    before = await node.status()
    assert (before.functions, before.functions_applied) == (FunctionsState.PENDING, 0)
    assert before.summary == "1 migration pending, functions 0 in the database, 1 here"
    steps, done = await node.migrate()
    assert steps == ["0001_first", "functions 1"]
    assert done.is_current
    assert await node.migrate() == ([], done)


async def test_an_old_node_keeps_newer_functions(node: Node) -> None:
    """A rolling upgrade: the new node migrates, an old one restarts, is ready, and puts nothing back."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    node.install(NEW, {FILE: answer(2)})
    before = await node.status()
    assert not before.is_current
    assert before.summary == f"functions {OLD} in the database, {NEW} here"
    assert await node.migrate() == ([f"functions {NEW}"], await node.status())
    node.install(OLD, {FILE: answer(1)})
    steps, done = await node.migrate()
    assert steps == []
    assert done.is_current
    assert done.stale_functions == ()
    assert done.summary == (
        f"the database is newer than this version, which can run on it (functions {NEW} in the database, {OLD} here)"
    )
    assert await node.answer() == 2


async def test_versions_are_compared_under_the_lock(node: Node) -> None:
    """An old node starts while a new one migrates. It waits, and then finds newer functions."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    await node.conn.execute("select pg_advisory_lock($1)", schema.LOCK_KEY)
    node.install(OLD, {FILE: answer(0)}, is_edited=True)
    starting = asyncio.create_task(node.migrate())
    while not await node.conn.fetchval("select exists (select from pg_locks where not granted)"):
        await asyncio.sleep(0.01)
    await node.conn.execute(answer(2))
    await node.conn.execute("update schema_functions set version = $1", str(NEW))
    await node.conn.execute("select pg_advisory_unlock($1)", schema.LOCK_KEY)
    steps, done = await starting
    assert (steps, done.functions) == ([], FunctionsState.NEWER)
    assert await node.answer() == 2


async def test_a_failing_file_leaves_the_old_set_whole(node: Node) -> None:
    """The first file is not applied either, and the refusal names the file that failed."""
    node.install(OLD, {FILE: answer(1), OTHER_FILE: answer(1, "other")})
    await node.migrate()
    node.install(NEW, {FILE: answer(2), OTHER_FILE: answer(2, "other") + "select 1 / 0;"})
    with pytest.raises(StartRefused, match=f"{OTHER_FILE} failed: division by zero"):
        await node.migrate()
    assert (await node.answer(), await node.answer("other")) == (1, 1)
    assert (await node.status()).functions_applied == OLD


async def test_a_lost_connection_leaves_the_old_set_whole(node: Node) -> None:
    """The process dies after the first file. The next start applies all of them."""
    node.install(OLD, {FILE: answer(1), OTHER_FILE: answer(1, "other")})
    await node.migrate()
    node.install(NEW, {FILE: answer(2), OTHER_FILE: "select pg_terminate_backend(pg_backend_pid());"})
    with pytest.raises(StartRefused, match="connection is closed"):
        await node.migrate()
    assert (await node.answer(), await node.answer("other")) == (1, 1)
    node.install(NEW, {FILE: answer(2), OTHER_FILE: answer(2, "other")})
    assert (await node.migrate())[0] == [f"functions {NEW}"]
    assert (await node.answer(), await node.answer("other")) == (2, 2)


async def test_edited_functions_are_applied_at_the_same_version(node: Node) -> None:
    """In development: edit, restart, edit back, restart. The version is raised once, before the commit."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    for value in (2, 3):
        node.install(OLD, {FILE: answer(value)}, is_edited=True)
        assert (await node.status()).summary == f"functions {OLD} changed since they were applied"
        assert (await node.migrate())[1].is_current
        assert await node.answer() == value
    node.install(OLD, {FILE: answer(1)})
    assert (await node.status()).stale_functions == (FILE,)
    assert (await node.migrate())[1].is_current
    assert await node.answer() == 1


async def test_edited_functions_never_replace_newer_ones(node: Node) -> None:
    """A checkout of an older release is an old node, edited or not."""
    node.install(NEW, {FILE: answer(2)})
    await node.migrate()
    node.install(OLD, {FILE: answer(3)}, is_edited=True)
    steps, done = await node.migrate()
    assert (steps, done.functions) == ([], FunctionsState.NEWER)
    assert await node.answer() == 2


async def test_two_builds_with_one_version_are_refused(node: Node) -> None:
    """Neither is newer, so neither replaces the other, and the second is not ready."""
    node.install(NEW, {FILE: answer(1), OTHER_FILE: answer(1, "other")})
    await node.migrate()
    (node.folder / "0002_second.sql").write_text("create table second (id int primary key);")
    node.install(NEW, {FILE: answer(2), OTHER_FILE: answer(1, "other")})
    assert not (await node.status()).is_current
    with pytest.raises(StartRefused, match=rf"functions {NEW} have another text in the database: {FILE}$") as refused:
        await node.migrate()
    assert "make functions" in refused.value.hint
    assert await node.answer() == 1
    assert await node.conn.fetchval("select to_regclass('second')") is None


async def test_a_forgotten_record_is_applied_again(node: Node) -> None:
    """The way to force functions onto a database: delete from schema_functions."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    await node.conn.execute("delete from schema_functions")
    assert (await node.migrate())[0] == [f"functions {OLD}"]


async def test_functions_follow_a_migration(node: Node) -> None:
    """It may have dropped one of them. The text is the same, and is applied again."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    (node.folder / "0002_drop.sql").write_text("drop function answer();")
    node.install(NEW, {FILE: answer(1)})
    assert (await node.migrate())[0] == ["0002_drop", f"functions {NEW}"]
    assert await node.answer() == 1


async def test_functions_follow_a_migration_at_the_same_version(node: Node) -> None:
    """A new migration in a checkout under development, which has no version of its own yet."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    (node.folder / "0002_drop.sql").write_text("drop function answer();")
    assert (await node.migrate())[0] == ["0002_drop", f"functions {OLD}"]
    assert await node.answer() == 1


async def test_functions_follow_a_migration_after_a_crash(node: Node) -> None:
    """The process dies between the two. A new migration is a new version, so the functions are still due."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    (node.folder / "0002_drop.sql").write_text("drop function answer();")
    node.install(NEW, {FILE: "select pg_terminate_backend(pg_backend_pid());"})
    with pytest.raises(StartRefused, match="connection is closed"):
        await node.migrate()
    node.install(NEW, {FILE: answer(1)})
    assert not (await node.status()).is_current
    assert (await node.migrate())[0] == [f"functions {NEW}"]
    assert await node.answer() == 1


async def test_older_functions_do_not_follow_a_migration(node: Node) -> None:
    """Branches that were not merged: one has newer functions, the other a migration. Both stay."""
    node.install(NEW, {FILE: answer(2)})
    await node.migrate()
    (node.folder / "0002_second.sql").write_text("create table second (id int primary key);")
    node.install(OLD, {FILE: answer(1)})
    before = await node.status()
    assert not before.is_current
    assert before.summary == f"1 migration pending, functions {NEW} in the database, {OLD} here"
    steps, done = await node.migrate()
    assert (steps, done.functions, done.is_current) == (["0002_second"], FunctionsState.NEWER, True)
    assert await node.answer() == 2


async def test_a_busy_table_is_tried_again(node: Node) -> None:
    """Functions that lock a table give way to a sale, and come back."""
    node.install(OLD, {FILE: answer(1)})
    await node.migrate()
    node.monkeypatch.setattr(schema, "TABLE_LOCK_WAIT", "20ms")
    node.install(NEW, {FILE: answer(2), OTHER_FILE: "lock table first;"})
    failures = 0
    execute = asyncpg.Connection.execute
    transaction = node.conn.transaction()
    await transaction.start()
    await node.conn.execute("lock table first")

    async def release_after_failure(conn: Connection, query: str, *values: object) -> str:
        nonlocal failures
        try:
            return str(await execute(conn, query, *values))
        except asyncpg.LockNotAvailableError:
            failures += 1
            await transaction.rollback()
            raise

    node.monkeypatch.setattr(asyncpg.Connection, "execute", release_after_failure)
    assert (await node.migrate())[1].is_current
    assert failures == 1


async def test_functions_without_a_version_are_replaced(node: Node) -> None:
    """Installations from before versions recorded the release that applied a file."""
    node.install(1, {FILE: answer(1)})
    await node.migrate()
    await node.conn.execute("update schema_functions set version = '0.1.0'")
    assert (await node.status()).summary == "functions 0 in the database, 1 here"
    node.install(1, {FILE: answer(2)})
    assert (await node.migrate())[1].is_current
    assert await node.answer() == 2


@pytest.mark.parametrize("is_edited", [False, True])
async def test_a_node_from_before_versions_keeps_ours(node: Node, *, is_edited: bool) -> None:
    """Release 0.1.0 applied a file when its text differed and no later release was recorded. This is its code."""

    def release(version: str) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", version)[:3])

    node.install(1, {FILE: answer(2)}, is_edited=is_edited)
    await node.migrate()
    row = await node.conn.fetchrow("select checksum, version from schema_functions where path = $1", FILE)
    assert row is not None
    is_stale = row["checksum"] != "another" and release(row["version"]) <= release("0.1.0")
    assert not is_stale


async def test_a_removed_file_stays_recorded(node: Node) -> None:
    """A node from before versions looks for it, and would not be ready without it."""
    node.install(OLD, {FILE: answer(1), OTHER_FILE: answer(1, "other")})
    await node.migrate()
    node.install(NEW, {FILE: answer(1)})
    assert (await node.migrate())[1].is_current
    assert {row[0] for row in await node.conn.fetch("select path from schema_functions")} == {FILE, OTHER_FILE}


@pytest.mark.parametrize("text", ["", "8", f"8 {UNKNOWN}\n9 {UNKNOWN}\n", f"<<<<<<< HEAD\n8 {UNKNOWN[1:]}\n"])
async def test_an_unreadable_lock_file_is_refused(node: Node, text: str) -> None:
    """A merge conflict, for one."""
    (node.folder / "functions.lock").write_text(text)
    with pytest.raises(StartRefused, match="must hold one version and checksum") as refused:
        await node.migrate()
    assert "make functions" in refused.value.hint
