"""The schema of the database: roles, numbered migrations that only go forward, and functions applied anew.

A migration that has run is never edited; its checksum is kept and compared. Two starters at once are kept apart by an
advisory lock.
"""

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import stamina

from voelgoed.config import VERSION
from voelgoed.db import Conn, Connection, connect
from voelgoed.errors import StartRefused

PACKAGE = Path(__file__).parent
OWNER, APP = "voelgoed_owner", "voelgoed_app"
LOCK_KEY = 7_100_651_118  # any number, the same in every process
LOCK_WAIT = "60s"
TABLE_LOCK_WAIT = "3s"  # a migration that waits longer than this for a table stops everybody behind it
TABLE_LOCK_TRIES = 5
TABLE_BUSY = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
STATEMENT_WAIT = "10min"
FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
OUTSIDE_TRANSACTION = "-- no-transaction"

LEDGER = """
create table if not exists schema_migrations (
  number integer primary key, name text not null, checksum text not null,
  applied_at timestamptz not null default now());
create table if not exists schema_functions (
  path text primary key, checksum text not null, version text not null, applied_at timestamptz not null default now());
grant select on schema_migrations, schema_functions to voelgoed_app;
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file of SQL."""

    number: int
    name: str
    sql: str

    @property
    def label(self) -> str:
        return f"{self.number:04}_{self.name}"

    @property
    def checksum(self) -> str:
        return _checksum(self.sql)

    @property
    def is_transactional(self) -> bool:
        return not self.sql.startswith(OUTSIDE_TRANSACTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the database stands against this version of the code."""

    applied: tuple[str, ...]
    pending: tuple[str, ...]
    changed: tuple[str, ...]
    unknown: tuple[str, ...]
    stale_functions: tuple[str, ...]

    @property
    def is_current(self) -> bool:
        """Whether this code may run on it. A database that is ahead may be: changes are additive."""
        return not (self.pending or self.changed or self.stale_functions)

    @property
    def summary(self) -> str:
        """How it stands, in a line."""
        parts = [
            f"{len(names)} {what}"
            for names, what in (
                (self.pending, "migrations pending"),
                (self.changed, "migrations changed after they ran"),
                (self.stale_functions, "function files not applied"),
                (self.unknown, "migrations newer than this version"),
            )
            if names
        ]
        return ", ".join(parts) or f"up to date, {len(self.applied)} migrations"


def migrations_folder() -> Path:
    """The folder of the wheel, else the one at the root of the repository."""
    shipped = PACKAGE / "migrations"
    return shipped if shipped.exists() else PACKAGE.parents[1] / "migrations"


def load_migrations(folder: Path) -> list[Migration]:
    """Every migration in order; a gap, a double number or a strange name is refused."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        named = FILE_NAME.fullmatch(path.name)
        if named is None:
            raise StartRefused(f"{path} is not named like 0001_what_it_does.sql")
        found.append(Migration(int(named[1]), named[2], path.read_text()))
        if not found[-1].is_transactional and found[-1].sql.rstrip().count(";") != 1:
            raise StartRefused(f"{path} runs outside a transaction, so it may hold one statement only")
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise StartRefused(f"the migrations in {folder} are not numbered 1, 2, 3 without gaps")
    return found


def load_functions() -> dict[str, str]:
    """Each domain's `functions.sql`, by its place in the package."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.glob("*/functions.sql"))}


def roles_sql() -> str:
    """What a database administrator runs once per cluster."""
    return (PACKAGE / "roles.sql").read_text()


async def create_database(admin_url: str, database: str) -> None:
    """Make the roles and an empty database that the owner role owns, as a superuser. Harmless when they are there."""
    conn = await connect(admin_url)
    try:
        async with conn.transaction():
            await conn.execute("select pg_advisory_xact_lock($1)", LOCK_KEY)
            await conn.execute(roles_sql())
        if not await conn.fetchval("select true from pg_database where datname = $1", database):
            await conn.execute(f'create database "{database}" owner {OWNER}')
        await conn.execute(f'revoke all on database "{database}" from public')
        await conn.execute(f'grant connect on database "{database}" to {APP}')
    finally:
        await conn.close(timeout=5)


async def migrate(
    owner_url: str,
    *,
    folder: Path | None = None,
    on_step: Callable[[str, float], None] = lambda _label, _seconds: None,
) -> Status:
    """Bring the database up to this version of the code; each step is reported with its seconds."""
    known = load_migrations(folder or migrations_folder())
    conn = await connect(owner_url, application_name="voelgoed migrate")
    try:
        await _require_owner(conn)
        await _take_turn(conn)
        await conn.execute(LEDGER)
        before = await status(conn, known)
        if before.changed:
            raise StartRefused(
                f"changed after they ran: {', '.join(before.changed)}",
                hint="a migration that has run is never edited: restore it and add a new one",
            )
        for migration in known:
            if migration.label in before.pending:
                started = time.monotonic()
                await _apply(conn, migration)
                on_step(migration.label, time.monotonic() - started)
        functions = load_functions()
        # A migration may have dropped or changed what functions stand on: then all of them are applied anew.
        for path in functions if before.pending else before.stale_functions:
            started = time.monotonic()
            await _apply_functions(conn, path, functions[path])
            on_step(path, time.monotonic() - started)
        return await status(conn, known)
    finally:
        await conn.close(timeout=5)


async def status(conn: Connection | Conn, known: Sequence[Migration] | None = None) -> Status:
    """Compare what has run with what this code brings."""
    known = load_migrations(migrations_folder()) if known is None else known
    ran: dict[str, str] = {}
    functions_ran: dict[str, tuple[str, tuple[int, ...]]] = {}
    if await conn.fetchval("select to_regclass('schema_migrations') is not null"):
        rows = await conn.fetch("select number, name, checksum from schema_migrations order by number")
        ran = {f"{row['number']:04}_{row['name']}": row["checksum"] for row in rows}
        rows = await conn.fetch("select path, checksum, version from schema_functions")
        functions_ran = {row["path"]: (row["checksum"], _release(row["version"])) for row in rows}
    here = {migration.label: migration.checksum for migration in known}
    return Status(
        applied=tuple(ran),
        pending=tuple(label for label in here if label not in ran),
        changed=tuple(label for label in here if label in ran and ran[label] != here[label]),
        unknown=tuple(label for label in ran if label not in here),
        stale_functions=tuple(
            path for path, sql in load_functions().items() if _is_stale(_checksum(sql), functions_ran.get(path))
        ),
    )


async def _take_turn(conn: Connection) -> None:
    """Wait for whoever else is migrating, and set the limits that every step has."""
    await conn.execute(f"set lock_timeout = '{LOCK_WAIT}'")
    try:
        await conn.execute("select pg_advisory_lock($1)", LOCK_KEY)
    except asyncpg.LockNotAvailableError as late:
        raise StartRefused(f"another process has been migrating for {LOCK_WAIT}", hint="try again later") from late
    await conn.execute(f"set lock_timeout = '{TABLE_LOCK_WAIT}'")
    await conn.execute(f"set statement_timeout = '{STATEMENT_WAIT}'")


async def _apply(conn: Connection, migration: Migration) -> None:
    try:
        await (_apply_whole(conn, migration) if migration.is_transactional else _apply_alone(conn, migration))
    except asyncpg.PostgresError as failed:
        raise StartRefused(f"migration {migration.label} failed: {failed}") from failed


@stamina.retry(on=TABLE_BUSY, attempts=TABLE_LOCK_TRIES, wait_initial=0.5, timeout=None)
async def _apply_whole(conn: Connection, migration: Migration) -> None:
    """In a transaction, tried again when a table was busy: nothing of the first try is left."""
    async with conn.transaction():
        await conn.execute(migration.sql)
        await _note(conn, migration)


async def _apply_alone(conn: Connection, migration: Migration) -> None:
    """One statement that cannot run in a transaction, such as an index built beside the traffic.

    It waits as long as it must, blocking nobody, and is never tried again by itself: what is left is for a person.
    """
    await conn.execute("set lock_timeout = 0; set statement_timeout = 0")
    try:
        await conn.execute(migration.sql)
    finally:
        await conn.execute(f"set lock_timeout = '{TABLE_LOCK_WAIT}'; set statement_timeout = '{STATEMENT_WAIT}'")
    await _note(conn, migration)


async def _note(conn: Connection, migration: Migration) -> None:
    about = (migration.number, migration.name, migration.checksum)
    await conn.execute("insert into schema_migrations (number, name, checksum) values ($1, $2, $3)", *about)


async def _apply_functions(conn: Connection, path: str, sql: str) -> None:
    try:
        async with conn.transaction():
            await conn.execute(sql)
            await conn.execute(
                "insert into schema_functions (path, checksum, version) values ($1, $2, $3)"
                " on conflict (path) do update"
                " set checksum = excluded.checksum, version = excluded.version, applied_at = now()",
                path,
                _checksum(sql),
                VERSION,
            )
    except asyncpg.PostgresError as failed:
        raise StartRefused(f"{path} failed: {failed}") from failed


async def _require_owner(conn: Connection) -> None:
    """Refuse any other role: what it made, the application role might own or fail to reach."""
    who = await conn.fetchval("select current_user")
    if who != OWNER:
        raise StartRefused(
            f"migrations run as {OWNER}, and this connection is {who}",
            hint=f"let VOELGOED_OWNER_DATABASE_URL log in as {OWNER}",
        )


def _is_stale(checksum: str, ran: tuple[str, tuple[int, ...]] | None) -> bool:
    """Whether our text must be applied: not when a later release has put its own there, which this code may run on."""
    return ran is None or (ran[0] != checksum and ran[1] <= _release(VERSION))


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _checksum(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()
