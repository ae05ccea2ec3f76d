"""The one entrance to PostgreSQL: pools, transactions bound to an organization, named queries, bounded retries."""

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from voelgoed.errors import Busy, LostRace, OutcomeUnknown, StartRefused
from voelgoed.ids import OrganizationId
from voelgoed.telemetry import metrics

T = TypeVar("T")

BEGIN_TRIES = 3
WORK_WAITS_S = (0.05, 0.1, 0.2)
STATEMENTS_CACHED = 256
OLDEST_SERVER = 150_000

SERVER_WENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InternalClientError,  # what the driver says after a last word of the server that nobody had asked for
)
# OSError includes the time-outs of the driver, InterfaceError its words about a connection that is closed.
CONNECTION_LOST = (*SERVER_WENT, OSError, asyncpg.InterfaceError, asyncpg.TooManyConnectionsError)
LOST_RACE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)

SAFE_SETTINGS = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_write", "remote_apply"),  # not local: a fail-over would lose what was said
}
# OSError: nobody there, or too slow. InterfaceError and ValueError: a URL that makes no sense.
CONNECT_FAILURES = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError)


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
        """Returns the latest time that PostgreSQL's clock can show unless it has stepped; None where nobody looks."""

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
        """One statement that is a transaction by itself: sent, done and committed in one exchange, never cancelled.

        For functions that set their own organization. When the connection is lost, nobody knows what came of it.
        """
        async with contextlib.AsyncExitStack() as held:
            try:
                conn = await self._pool.acquire(timeout=self._acquire_timeout_s)
            except (TimeoutError, *CONNECTION_LOST) as failed:
                metrics.DB_BUSY.inc()
                raise Busy from failed
            held.push_async_callback(self._release, conn)
            metrics.DB_ACQUIRED.inc()
            try:
                return await _to_its_end(conn.fetch(query, *values))
            except LOST_RACE as failed:
                raise LostRace from failed
            except CONNECTION_LOST as lost:
                _discard(conn)
                raise OutcomeUnknown from lost

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
                if isinstance(failed, LOST_RACE):
                    raise LostRace from failed
                if isinstance(failed, SERVER_WENT) or (isinstance(failed, CONNECTION_LOST) and _is_gone(conn)):
                    raise Busy from failed  # never committed, so the server undoes it
                raise
            await self._commit(conn)

    async def _begin(self, begin: str, held: contextlib.AsyncExitStack) -> Conn:
        """Begin on a live connection. Those that died with a restarted server are met, and dropped, here."""
        for remaining in reversed(range(BEGIN_TRIES)):
            try:
                conn = await self._pool.acquire(timeout=self._acquire_timeout_s)
                held.push_async_callback(self._release, conn)
                await conn.execute(begin)
            except TimeoutError as late:
                metrics.DB_BUSY.inc()
                raise Busy from late
            except CONNECTION_LOST as lost:
                await held.aclose()
                if not remaining:
                    metrics.DB_BUSY.inc()
                    raise Busy from lost
            else:
                metrics.DB_ACQUIRED.inc()
                return conn
        raise AssertionError("the last try returns or raises")

    async def _release(self, conn: Conn) -> None:
        """Give a connection back. When it was lost meanwhile that says nothing of what was done on it: that is done."""
        try:
            await self._pool.release(conn)
        except CONNECTION_LOST:
            _discard(conn)

    async def _undo(self, conn: Conn) -> None:
        """Roll back; a connection that cannot even do that is thrown away."""
        try:
            await _to_its_end(conn.execute("rollback"))
        except (*CONNECTION_LOST, asyncpg.PostgresError):
            _discard(conn)

    async def _commit(self, conn: Conn) -> None:
        """Commit, uncancelled once begun. A lost connection leaves the outcome open, and says so."""
        try:
            outcome = await _to_its_end(conn.execute("commit"))
        except CONNECTION_LOST as lost:
            _discard(conn)
            raise OutcomeUnknown from lost
        # PostgreSQL answers the commit of a failed transaction with a quiet rollback.
        assert outcome == "COMMIT", "an error was swallowed inside a transaction: nothing was written"


async def connect(url: str, *, timeout_s: float = 10.0, application_name: str = "voelgoed") -> Connection:
    """One connection outside any pool, for commands; what keeps it from being made is said in plain words."""
    try:
        return await asyncpg.connect(url, timeout=timeout_s, server_settings={"application_name": application_name})
    except CONNECT_FAILURES as failed:
        raise _cannot_connect(failed) from failed


def _cannot_connect(failed: BaseException) -> StartRefused:
    return StartRefused(
        f"cannot connect to PostgreSQL: {str(failed) or type(failed).__name__}",
        hint="check VOELGOED_DATABASE_URL, and that the server is up",
    )


def _is_gone(conn: Conn) -> bool:
    """Whether the connection is closed; the pool takes a closed one back by itself, and the driver objects then."""
    try:
        return conn.is_closed()
    except asyncpg.InterfaceError:
        return True


def _discard(conn: Conn) -> None:
    """Close without a word to the server."""
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
