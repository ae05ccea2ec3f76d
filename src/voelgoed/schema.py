"""The schema of the database: roles, numbered migrations, and the SQL functions as one set with a version.

Neither goes back. A migration that has run is never edited, and a set of functions is never replaced by an older one
(docs/decisions/0018). An advisory lock lets one process migrate at a time.
"""

import enum
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import stamina

from voelgoed.db import Conn, Connection, connect
from voelgoed.errors import StartRefused

PACKAGE = Path(__file__).parent
OWNER, APP = "voelgoed_owner", "voelgoed_app"
LOCK_KEY = 7_100_651_118  # any number, the same in every process
LOCK_WAIT = "60s"
TABLE_LOCK_WAIT = "3s"  # a migration that waits longer than this for a table stops everybody behind it
TABLE_LOCK_TRIES = 5
TABLE_BUSY = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
STEP_FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError)  # the latter when the connection is lost
STATEMENT_WAIT = "10min"
FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
OUTSIDE_TRANSACTION = "-- no-transaction"
FUNCTIONS_LOCK = PACKAGE / "functions.lock"
LOCKED = re.compile(r"^(\d+) ([0-9a-f]{64})$", re.MULTILINE)
EDITED = " edited"  # after the version, where the text is not the one that functions.lock names

LEDGER = """
create table if not exists schema_migrations (
  number integer primary key, name text not null, checksum text not null,
  applied_at timestamptz not null default now());
create table if not exists schema_functions (
  path text primary key, checksum text not null, version text not null, applied_at timestamptz not null default now());
grant select on schema_migrations, schema_functions to voelgoed_app;
"""

RECORD_FUNCTIONS = """
insert into schema_functions (path, checksum, version) values ($1, $2, $3)
on conflict (path) do update set checksum = excluded.checksum, version = excluded.version, applied_at = now()
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


@dataclass(frozen=True, slots=True)
class FunctionSet:
    """The SQL functions of all domains as one set: those of this code, or those the database has.

    An edited set has a text that functions.lock does not know. Only a checkout under development has one.
    """

    version: int
    checksums: Mapping[str, str]
    is_edited: bool


class FunctionsState(enum.StrEnum):
    """How the functions in the database compare with those of this code."""

    CURRENT = "current"
    PENDING = "pending"
    NEWER = "newer"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the schema in the database compares with this code."""

    applied: tuple[str, ...]
    pending: tuple[str, ...]
    changed: tuple[str, ...]
    unknown: tuple[str, ...]
    functions: FunctionsState
    functions_version: int
    functions_applied: int
    stale_functions: tuple[str, ...]

    @property
    def is_current(self) -> bool:
        """Return whether this code can run on the database. It can on a newer one, because releases only add."""
        return not (self.pending or self.changed) and self.functions in (FunctionsState.CURRENT, FunctionsState.NEWER)

    @property
    def is_newer(self) -> bool:
        """Return whether the database has something from a later release."""
        return bool(self.unknown) or self.functions is FunctionsState.NEWER

    @property
    def applies_functions(self) -> bool:
        """Return whether migrating applies the functions. A migration may have dropped one, so they follow it."""
        is_due = self.functions is FunctionsState.PENDING
        return is_due or (bool(self.pending) and self.functions is FunctionsState.CURRENT)

    @property
    def summary(self) -> str:
        """Describe the state in one line."""
        differences = ", ".join(self._differences())
        if self.is_newer and self.is_current:
            return f"the database is newer than this version, which can run on it ({differences})"
        return differences or f"up to date, {len(self.applied)} migrations, functions {self.functions_version}"

    def _differences(self) -> list[str]:
        found = [
            f"{len(names)} {what if len(names) > 1 else what.replace('migrations', 'migration')}"
            for names, what in (
                (self.pending, "migrations pending"),
                (self.changed, "migrations changed after being applied"),
                (self.unknown, "migrations newer"),
            )
            if names
        ]
        return found + ([self._functions_differ()] if self.functions is not FunctionsState.CURRENT else [])

    def _functions_differ(self) -> str:
        ours, applied = self.functions_version, self.functions_applied
        if self.functions is FunctionsState.CONFLICT:
            return f"functions {ours} have another text in the database: {', '.join(self.stale_functions)}"
        if ours == applied:
            return f"functions {ours} changed since they were applied"
        return f"functions {applied} in the database, {ours} here"


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
    """Return each domain's `functions.sql` by its path in the package."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.glob("*/functions.sql"))}


def lock_checksum(functions: Mapping[str, str], migrations: Sequence[Migration]) -> str:
    """Return the checksum that functions.lock holds. It covers the migrations too, which functions are applied after.

    So a release with a new migration has a new version of the functions, and a process that dies between the two leaves
    a database that still asks for them.
    """
    lines = [f"{path} {_checksum(sql)}" for path, sql in sorted(functions.items())]
    return _checksum("\n".join([*lines, *(f"{migration.label} {migration.checksum}" for migration in migrations)]))


def load_function_set(migrations: Sequence[Migration]) -> FunctionSet:
    """Return the functions of this code, with the version that functions.lock gives them."""
    locked = LOCKED.findall(FUNCTIONS_LOCK.read_text())
    if len(locked) != 1:
        raise StartRefused(f"{FUNCTIONS_LOCK} must hold one version and checksum", hint="run: make functions")
    [(version, checksum)] = locked
    functions = load_functions()
    return FunctionSet(
        version=int(version),
        checksums={path: _checksum(sql) for path, sql in functions.items()},
        is_edited=checksum != lock_checksum(functions, migrations),
    )


def compare_functions(ours: FunctionSet, applied: FunctionSet) -> FunctionsState:
    """Decide what to do with our functions. One version has one text, except in a checkout where it is being edited."""
    if ours.version != applied.version:
        return FunctionsState.PENDING if ours.version > applied.version else FunctionsState.NEWER
    differing = [path for path, checksum in ours.checksums.items() if applied.checksums.get(path) != checksum]
    if not differing:
        return FunctionsState.CURRENT
    is_missing = not any(path in applied.checksums for path in differing)
    return FunctionsState.PENDING if ours.is_edited or applied.is_edited or is_missing else FunctionsState.CONFLICT


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
        _refuse_rewritten(before)
        for migration in known:
            if migration.label in before.pending:
                started = time.monotonic()
                await _apply(conn, migration)
                on_step(migration.label, time.monotonic() - started)
        if before.applies_functions:
            started = time.monotonic()
            await _apply_functions(conn, load_function_set(known), load_functions())
            on_step(f"functions {before.functions_version}", time.monotonic() - started)
        return await status(conn, known)
    finally:
        await conn.close(timeout=5)


async def status(conn: Connection | Conn, known: Sequence[Migration] | None = None) -> Status:
    """Compare what the database has with what this code brings."""
    known = load_migrations(migrations_folder()) if known is None else known
    ran: dict[str, str] = {}
    applied = FunctionSet(version=0, checksums={}, is_edited=False)
    if await conn.fetchval("select to_regclass('schema_migrations') is not null"):
        rows = await conn.fetch("select number, name, checksum from schema_migrations order by number")
        ran = {f"{row['number']:04}_{row['name']}": row["checksum"] for row in rows}
        applied = await _read_function_set(conn)
    here = {migration.label: migration.checksum for migration in known}
    ours = load_function_set(known)
    return Status(
        applied=tuple(ran),
        pending=tuple(label for label in here if label not in ran),
        changed=tuple(label for label in here if label in ran and ran[label] != here[label]),
        unknown=tuple(label for label in ran if label not in here),
        functions=compare_functions(ours, applied),
        functions_version=ours.version,
        functions_applied=applied.version,
        stale_functions=tuple(
            path
            for path, checksum in ours.checksums.items()
            if ours.version >= applied.version and applied.checksums.get(path) != checksum
        ),
    )


async def _read_function_set(conn: Connection | Conn) -> FunctionSet:
    """Return the functions that the database has: the files recorded with the highest version."""
    rows = await conn.fetch("select path, checksum, version from schema_functions")
    version = max((_version(row["version"]) for row in rows), default=0)
    latest = [row for row in rows if _version(row["version"]) == version]
    return FunctionSet(
        version=version,
        checksums={row["path"]: row["checksum"] for row in latest},
        is_edited=any(row["version"].endswith(EDITED) for row in latest),
    )


def _version(recorded: str) -> int:
    """Return the version of a row. Before functions had versions it held a release (0.1.0), older than any of them."""
    version = recorded.removesuffix(EDITED)
    return int(version) if version.isdecimal() else 0


def _refuse_rewritten(before: Status) -> None:
    """Refuse to migrate where this code has another text for something the database has applied."""
    if before.changed:
        raise StartRefused(
            f"changed after being applied: {', '.join(before.changed)}",
            hint="a migration that has run is never edited: restore it and add a new one",
        )
    if before.functions is FunctionsState.CONFLICT:
        raise StartRefused(
            before.summary,
            hint="two builds have the same version of the functions: run `make functions` in the later one. "
            "A development database takes yours after: delete from schema_functions",
        )


async def _take_turn(conn: Connection) -> None:
    """Wait for other processes to finish migrating, and set the limits that every step has."""
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
    except STEP_FAILURES as failed:
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


async def _apply_functions(conn: Connection, ours: FunctionSet, functions: Mapping[str, str]) -> None:
    """Apply every file in one transaction, so that the database always has one whole set."""
    version = f"{ours.version}{EDITED if ours.is_edited else ''}"
    path = ""
    try:
        async for attempt in stamina.retry_context(
            on=TABLE_BUSY, attempts=TABLE_LOCK_TRIES, wait_initial=0.5, timeout=None
        ):
            with attempt:
                async with conn.transaction():
                    for path, sql in functions.items():  # noqa: B007 - the error message names it
                        await conn.execute(sql)
                    records = [(name, checksum, version) for name, checksum in ours.checksums.items()]
                    await conn.executemany(RECORD_FUNCTIONS, records)
    except STEP_FAILURES as failed:
        raise StartRefused(f"{path} failed: {failed}") from failed


async def _require_owner(conn: Connection) -> None:
    """Refuse any other role: what it made, the application role might own or fail to reach."""
    who = await conn.fetchval("select current_user")
    if who != OWNER:
        raise StartRefused(
            f"migrations run as {OWNER}, and this connection is {who}",
            hint=f"let VOELGOED_OWNER_DATABASE_URL log in as {OWNER}",
        )


def _checksum(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()
