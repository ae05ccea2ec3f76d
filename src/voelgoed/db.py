"""The only way to PostgreSQL: pools, transactions of one organization, named queries, retries, meanings of errors."""

import asyncio
import contextlib
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from uuid import UUID

import asyncpg
import structlog
from asyncpg.pool import PoolConnectionProxy

from voelgoed.errors import Busy, DomainError, LostRace, OutcomeUnknown, StartRefused, Unavailable
from voelgoed.ids import OrganizationId
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

T = TypeVar("T")

BEGIN_TRIES = 3
WORK_WAITS_S = (0.05, 0.1, 0.2)
STATEMENTS_CACHED = 256
OLDEST_SERVER = 150_000

READ_ONLY: Final = "25006"
MEANINGS: Final[Mapping[str, type[DomainError]]] = MappingProxyType(
    {
        "08": OutcomeUnknown,  # connection exception
        READ_ONLY: Unavailable,  # a standby, or default_transaction_read_only
        "25P03": OutcomeUnknown,  # idle_in_transaction_session_timeout ended the connection
        "25P04": OutcomeUnknown,  # transaction_timeout ended the connection
        "40001": LostRace,  # serialization failure, or a conflict with recovery on a standby
        "40003": OutcomeUnknown,  # statement completion unknown
        "40P01": LostRace,  # deadlock
        "53": Unavailable,  # insufficient resources: disk, memory, connections, a configured limit
        "55P03": LostRace,  # lock_timeout
        "57": Busy,  # operator intervention: statement_timeout (57014), or cancelled by an administrator
        "57P01": OutcomeUnknown,  # admin shutdown
        "57P02": OutcomeUnknown,  # crash shutdown
        "57P03": OutcomeUnknown,  # cannot connect now: starting, stopping or recovering
        "57P04": OutcomeUnknown,  # database dropped
        "57P05": OutcomeUnknown,  # idle_session_timeout ended the connection
        "58": Unavailable,  # system error: I/O, a missing file
    }
)
"""What a SQLSTATE, or a class of them (its first two characters), means to the caller.

An ERROR has rolled the statement and its transaction back, even when COMMIT itself reports it: PostgreSQL panics
rather than fail after it has begun to write the commit record. `OutcomeUnknown` marks a lost connection, after which
the outcome is open only if a commit could have been in flight. Codes that are not here are a bug or a broken rule of
the schema, and are raised as they are.
"""
CONNECTION_ENDED: Final = ("FATAL", "PANIC")
"""Severities with which PostgreSQL ends the connection, whatever the code: a full disk panics in the WAL writer."""
NOTICE_S: Final = 1.0

SAFE_SETTINGS = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_write", "remote_apply"),  # not local: a fail-over would lose what was said
}
# OSError: no server, or too slow. InterfaceError and ValueError: a malformed URL. InternalClientError: none of the
# servers in the URL has the role that it asks for.
CONNECT_FAILURES = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, ValueError)
PROBE: Final = """
begin;
set local work_mem = '64kB';
set local temp_tablespaces = '';
select count(*) from generate_series(1, 10000);
rollback;
"""
"""Write 140 kB of temporary file to the disk of the tables. Needs no privilege, and leaves no WAL and no dead rows."""


if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
    Conn = PoolConnectionProxy[asyncpg.Record]
    Pool = asyncpg.Pool[asyncpg.Record]
else:  # the driver's classes take a parameter only in their type stubs
    Connection, Conn, Pool = asyncpg.Connection, PoolConnectionProxy, asyncpg.Pool


class StatelessConnection(Connection):
    """A connection that keeps no session state, so that the pool need not reset it at every release."""

    def get_reset_query(self) -> str:
        """Nothing to reset: settings are local to a transaction, and so are locks."""
        return ""


class Database:
    """A pool, and the two ways into it."""

    def __init__(self, pool: Pool, *, acquire_timeout_s: float) -> None:
        self._pool = pool
        self._acquire_timeout_s = acquire_timeout_s
        self.clock_latest: Callable[[], str | None] = lambda: None
        """Returns the latest time PostgreSQL's clock can show unless it has stepped, or None if it is not watched."""
        self._noticed_at = float("-inf")

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        size: int = 10,
        acquire_timeout_s: float = 3.0,
        command_timeout_s: float = 10.0,
        application_name: str = "voelgoed",
        settings: Mapping[str, str] | None = None,
    ) -> Self:
        """Connect; connections beyond the first are made when they are needed. `settings` hold for each of them."""
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=size,
                timeout=10,
                command_timeout=command_timeout_s,
                statement_cache_size=STATEMENTS_CACHED,
                max_inactive_connection_lifetime=300,
                connection_class=StatelessConnection,
                server_settings={"application_name": application_name, **(settings or {})},
            )
        except CONNECT_FAILURES as failed:
            raise _cannot_connect(failed) from failed
        return cls(pool, acquire_timeout_s=acquire_timeout_s)

    async def close(self) -> None:
        """Close every connection; those still at work are given a moment, then ended."""
        try:
            await asyncio.wait_for(self._pool.close(), timeout=2)
        except TimeoutError:
            self._pool.terminate()

    @contextlib.asynccontextmanager
    async def transaction(self, organization_id: OrganizationId) -> AsyncIterator[Conn]:
        """A transaction that sees and writes the records of one organization, and of no other."""
        assert isinstance(organization_id, UUID)  # it goes into the statement as text
        latest = self.clock_latest() or ""
        async with self._begun(
            f"begin; select set_config('app.organization_id', '{organization_id}', true),"
            f" set_config('app.clock_latest', '{latest}', true)"
        ) as conn:
            yield conn

    @contextlib.asynccontextmanager
    async def system_transaction(self) -> AsyncIterator[Conn]:
        """A transaction across organizations: for loops, checks and global tables, never for a person's request."""
        async with self._begun("begin; select set_config('app.scope', 'system', true)") as conn:
            yield conn

    async def call(self, query: str, *values: Any) -> list[asyncpg.Record]:
        """Run one statement that is its own transaction: sent and committed in one round trip, never cancelled.

        For functions that set their own organization. The outcome is unknown when the connection is lost.
        """
        async with contextlib.AsyncExitStack() as held:
            try:
                conn = await self._pool.acquire(timeout=self._acquire_timeout_s)
            except Exception as failed:
                await self._refuse(failed, None)
                raise
            held.push_async_callback(self._release, conn)
            metrics.DB_ACQUIRED.inc()
            try:
                return await _to_its_end(conn.fetch(query, *values))
            except Exception as failed:
                await self._refuse(failed, conn, could_commit=True)
                raise

    async def attempt(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work with its transaction again when it lost a race inside PostgreSQL; after a few tries it is `busy`.

        Only a transaction that was undone is repeated: deadlock, serialisation failure, lock time-out.
        """
        # Not by stamina: what it builds stays in circles until the collector comes, and every change goes through here.
        for wait_s in (*WORK_WAITS_S, None):
            try:
                return await work()
            except LostRace:
                if wait_s is None:
                    raise
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter: those who met must part
        raise AssertionError("the last try returns or raises")

    @contextlib.asynccontextmanager
    async def _begun(self, begin: str) -> AsyncIterator[Conn]:
        """Begin, work, commit. `begin` and the setting travel as one query: nothing can run between them."""
        async with contextlib.AsyncExitStack() as held:
            conn = await self._begin(begin, held)
            try:
                yield conn
            except BaseException as failed:
                await self._undo(conn)
                await self._refuse(failed, conn)
                raise
            await self._commit(conn)

    async def _begin(self, begin: str, held: contextlib.AsyncExitStack) -> Conn:
        """Begin on a live connection. Connections that died with a restarted server are found and dropped here."""
        for remaining in reversed(range(BEGIN_TRIES)):
            conn: Conn | None = None
            try:
                conn = await self._pool.acquire(timeout=self._acquire_timeout_s)
                held.push_async_callback(self._release, conn)
                await conn.execute(begin)
            except Exception as failed:
                if conn is not None:
                    _discard(conn)
                await held.aclose()
                is_lost = meaning_of(failed) is OutcomeUnknown and not isinstance(failed, TimeoutError)
                if is_lost and remaining:
                    continue
                await self._refuse(failed, conn)
                raise
            else:
                metrics.DB_ACQUIRED.inc()
                return conn
        raise AssertionError("the last try returns or raises")

    async def _release(self, conn: Conn) -> None:
        """Return a connection to the pool. Losing it here does not change what was done on it."""
        try:
            await self._pool.release(conn)
        except Exception as failed:
            if meaning_of(failed) is not OutcomeUnknown:
                raise
            _discard(conn)

    async def _undo(self, conn: Conn) -> None:
        """Roll back, or discard the connection if it cannot even do that."""
        try:
            await _to_its_end(conn.execute("rollback"))
        except Exception as failed:
            if not isinstance(failed, asyncpg.PostgresError) and meaning_of(failed) is None:
                raise
            _discard(conn)

    async def _commit(self, conn: Conn) -> None:
        """Commit, uncancelled once begun."""
        try:
            outcome = await _to_its_end(conn.execute("commit"))
        except Exception as failed:
            await self._refuse(failed, conn, could_commit=True)
            raise
        # PostgreSQL answers the commit of a failed transaction with a quiet rollback.
        assert outcome == "COMMIT", "an error was swallowed inside a transaction: nothing was written"

    async def _refuse(self, failed: BaseException, conn: Conn | None, *, could_commit: bool = False) -> None:
        """Raise what a failure on this connection means to the caller; return if the failure speaks for itself."""
        if conn is not None and not _is_gone(conn) and not _is_of_connection(failed, could_commit=could_commit):
            return
        refused = explain(failed, could_commit=could_commit)
        if isinstance(refused, OutcomeUnknown) and conn is not None:
            _discard(conn)
        if isinstance(refused, Busy) and not isinstance(refused, LostRace):
            metrics.DB_BUSY.inc()
            await self._notice(failed)
        if refused:
            raise refused from failed

    async def _notice(self, failed: BaseException) -> None:
        """Log why PostgreSQL refuses work, and leave a server that is read only. At most once per second.

        Sessions keep the default they began with, and a standby stays one: only new connections find the way back.
        """
        now = time.monotonic()
        if now - self._noticed_at < NOTICE_S:
            return
        self._noticed_at = now
        sqlstate = getattr(failed, "sqlstate", None)
        log.warning("database_refused", error=type(failed).__name__, sqlstate=sqlstate)
        if sqlstate == READ_ONLY:
            await self._pool.expire_connections()


def meaning_of(failed: BaseException) -> type[DomainError] | None:
    """Return the meaning of a failure of PostgreSQL or its driver, or None if it is a bug or a broken rule."""
    if isinstance(failed, asyncpg.PostgresError):
        sqlstate = failed.sqlstate or ""
        if failed.severity_en in CONNECTION_ENDED:
            return OutcomeUnknown
        return MEANINGS.get(sqlstate) or MEANINGS.get(sqlstate[:2])
    # OSError includes the driver's timeouts. InternalClientError follows a message after the end of the connection.
    is_lost = isinstance(failed, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError)
    return OutcomeUnknown if is_lost else None


def explain(failed: BaseException, *, could_commit: bool) -> DomainError | None:
    """Return the error to raise instead of this failure; `could_commit` if a commit could have been in flight."""
    meaning = meaning_of(failed)
    if meaning is OutcomeUnknown and not could_commit:
        return Busy() if isinstance(failed, TimeoutError) else Unavailable()
    return meaning() if meaning else None


@contextlib.contextmanager
def after_commit() -> Iterator[None]:
    """Report a failure in this block as an unknown outcome, because the change itself has been committed before."""
    try:
        yield
    except Busy as busy:
        raise OutcomeUnknown from busy


async def connect(url: str, *, timeout_s: float = 10.0, application_name: str = "voelgoed") -> Connection:
    """Open one connection outside any pool, for commands."""
    try:
        return await asyncpg.connect(url, timeout=timeout_s, server_settings={"application_name": application_name})
    except CONNECT_FAILURES as failed:
        raise _cannot_connect(failed) from failed


def _cannot_connect(failed: BaseException) -> StartRefused:
    return StartRefused(
        f"cannot connect to PostgreSQL: {str(failed) or type(failed).__name__}",
        hint="check VOELGOED_DATABASE_URL, and that the server is up",
    )


def _is_of_connection(failed: BaseException, *, could_commit: bool) -> bool:
    """Return whether a failure on an open connection comes from PostgreSQL, not from other code in the transaction.

    The driver's InterfaceError is a wrong argument there, and an OSError may be a file of the caller's.
    """
    if isinstance(failed, asyncpg.InterfaceError):
        return False
    return could_commit or not isinstance(failed, OSError) or isinstance(failed, TimeoutError)


def _is_gone(conn: Conn) -> bool:
    """Return whether the connection is closed. The pool reclaims a closed one, and then the driver raises."""
    try:
        return conn.is_closed()
    except asyncpg.InterfaceError:
        return True


def _discard(conn: Conn) -> None:
    """Close without notifying the server."""
    if not _is_gone(conn):
        conn.terminate()


async def check_server(database: Database, *, unsafe_accepted: bool = False) -> None:
    """Refuse a server on which an acknowledged hold could be lost, or organizations could see each other."""
    async with database.system_transaction() as conn:
        objections = await find_objections(conn)
    if unsafe_accepted:
        objections = [objection for objection in objections if not objection.startswith("setting ")]
    if objections:
        raise StartRefused("this PostgreSQL is not safe to use:\n  " + "\n  ".join(objections))


async def find_objections(conn: Connection | Conn) -> list[str]:
    """Everything that speaks against running on this server with this login."""
    row = await conn.fetchrow(
        "select current_setting('server_version_num')::int as version, rolsuper, rolbypassrls, rolname,"
        " pg_is_in_recovery() as is_standby,"
        " exists (select from pg_class where relowner = pg_roles.oid and relkind in ('r', 'p')) as owns_tables,"
        " exists (select from pg_roles r where r.rolname in ('voelgoed_owner', 'voelgoed_registry')"
        "         and r.rolname <> current_user and pg_has_role(current_user, r.oid, 'member')) as is_in_them"
        " from pg_roles where rolname = current_user"
    )
    assert row is not None
    found = []
    if row["version"] < OLDEST_SERVER:
        found.append(f"version {row['version'] // 10_000} is too old: {OLDEST_SERVER // 10_000} is the oldest")
    if row["rolsuper"] or row["rolbypassrls"]:
        found.append(f"login {row['rolname']} passes row-level security: use voelgoed_app")
    if row["owns_tables"]:
        found.append(f"login {row['rolname']} owns tables: use voelgoed_app")
    if row["is_in_them"]:
        found.append(f"login {row['rolname']} may become the owner or the registry: revoke those roles from it")
    if row["is_standby"]:
        found.append("the server is a standby: connect to the primary")
    for name, accepted in SAFE_SETTINGS.items():
        value = await conn.fetchval("select current_setting($1)", name)
        if value not in accepted:
            found.append(f"setting {name} is {value}: a crash would lose what was acknowledged")
    return found


async def find_write_fault(conn: Connection) -> str | None:
    """Return why PostgreSQL would refuse a write now, or None. Close the connection if there is a reason."""
    row = await conn.fetchrow(
        "select current_setting('transaction_read_only') = 'on' as is_read_only, pg_is_in_recovery() as is_standby"
    )
    assert row is not None
    if row["is_read_only"]:
        return "PostgreSQL is a standby and read only." if row["is_standby"] else "PostgreSQL is read only."
    try:
        await conn.execute(PROBE)
    except asyncpg.DiskFullError:
        return "The disk of PostgreSQL is full."
    return None


def load_queries(file: Path) -> Mapping[str, str]:
    """Read the named queries of a domain: `-- name: lock_seats`, then comments, then one statement."""
    parts = re.split(r"^-- name: *(\w+) *$", file.read_text(), flags=re.MULTILINE)
    names, bodies = parts[1::2], [body.strip() for body in parts[2::2]]
    assert len(set(names)) == len(names), f"a name occurs twice in {file}"
    assert all(bodies), f"a query is empty in {file}"
    return MappingProxyType(dict(zip(names, bodies, strict=True)))


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await without being cancelled half-way; a cancellation is passed on when the work is done."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():  # bounded by the time-out of a command; however often somebody cancels
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as again:
            cancelled = again
    if cancelled:
        if not task.cancelled():
            task.exception()  # seen: the caller is leaving and takes the cancellation, not the outcome
        raise cancelled
    return task.result()
