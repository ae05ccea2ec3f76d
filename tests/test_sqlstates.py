"""What each error of PostgreSQL means to the caller: rolled back, lost race, or unknown."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace

import asyncpg
import pytest
from hypothesis import given, strategies as st

from tests.make.races import connect_owner
from tests.make.unwritable import read_only_sessions
from voelgoed import db as module, schema
from voelgoed.db import MEANINGS, Connection, Database, after_commit, explain, meaning_of
from voelgoed.embedded import Embedded
from voelgoed.errors import Busy, DomainError, LostRace, OutcomeUnknown, Unavailable

UNAVAILABLE = ["25006", "53000", "53100", "53200", "53300", "53400", "58000", "58030", "58P01", "58P02", "58P03"]
BUSY = ["57000", "57014"]
LOST_RACES = ["40001", "40P01", "55P03"]
CONNECTION_LOST = [
    "08000", "08001", "08003", "08004", "08006", "08007", "08P01",
    "25P03", "25P04", "40003", "57P01", "57P02", "57P03", "57P04", "57P05",
]  # fmt: skip
NOT_LISTED = [
    "0A000", "22P02", "23502", "23503", "23505", "23514", "25001", "25P02",
    "40000", "42501", "42P01", "55000", "55006", "P0001", "XX000",
]  # fmt: skip
REFUSE = "do $$ begin raise exception 'refused' using errcode = '{}'; end $$"


def raised(sqlstate: str, severity: str = "ERROR") -> asyncpg.PostgresError:
    """An error as the driver makes it of the server's message."""
    made: asyncpg.PostgresError = asyncpg.PostgresError.new({"C": sqlstate, "V": severity, "M": "refused"})
    return made


def meanings() -> Iterator[tuple[str, type[DomainError] | None, type[DomainError] | None]]:
    """Every code with what it means after a commit could have been in flight, and before."""
    yield from ((code, Unavailable, Unavailable) for code in UNAVAILABLE)
    yield from ((code, Busy, Busy) for code in BUSY)
    yield from ((code, LostRace, LostRace) for code in LOST_RACES)
    yield from ((code, OutcomeUnknown, Unavailable) for code in CONNECTION_LOST)
    yield from ((code, None, None) for code in NOT_LISTED)


@pytest.mark.parametrize(("sqlstate", "committing", "earlier"), list(meanings()))
def test_meaning_of_each_code(
    sqlstate: str, committing: type[DomainError] | None, earlier: type[DomainError] | None
) -> None:
    """The table, code by code."""
    failed = raised(sqlstate)
    assert type(explain(failed, could_commit=True)) is (committing or type(None))
    assert type(explain(failed, could_commit=False)) is (earlier or type(None))


def test_every_entry_of_the_table_is_tested() -> None:
    """A code that is added needs a line above."""
    tested = [*UNAVAILABLE, *BUSY, *LOST_RACES, *CONNECTION_LOST]
    assert {entry for entry in MEANINGS if not any(code.startswith(entry) for code in tested)} == set()


ERRORS = [cls for cls in vars(asyncpg).values() if isinstance(cls, type) and issubclass(cls, asyncpg.PostgresError)]
KNOWN = {cls.sqlstate for cls in ERRORS if cls.sqlstate}
sqlstates = st.sampled_from(sorted(KNOWN)) | st.from_regex(r"\A[3-9A-Z][0-9A-Z]{4}\Z")
"""Errors that the driver knows, and others; the classes 00 to 02 are no errors."""


@given(sqlstates, st.sampled_from(["FATAL", "PANIC"]))
def test_ended_connection_leaves_a_commit_in_doubt(sqlstate: str, severity: str) -> None:
    """Whatever the code: a full disk panics while it writes the commit record, with the code of a full disk."""
    failed = raised(sqlstate, severity)
    assert isinstance(explain(failed, could_commit=True), OutcomeUnknown)
    assert isinstance(explain(failed, could_commit=False), Unavailable)


@given(sqlstates, st.booleans())
def test_error_is_in_doubt_only_if_listed(sqlstate: str, could_commit: bool) -> None:  # noqa: FBT001
    """An ERROR rolls back. Only codes that belong to a lost connection are in doubt."""
    found = explain(raised(sqlstate), could_commit=could_commit)
    listed = {code for code, meaning in MEANINGS.items() if meaning is OutcomeUnknown}
    is_listed = sqlstate in listed or sqlstate[:2] in listed
    assert isinstance(found, OutcomeUnknown) == (is_listed and could_commit)
    assert (found is None) == (sqlstate not in MEANINGS and sqlstate[:2] not in MEANINGS)


@pytest.mark.parametrize(
    ("failed", "earlier"),
    [
        (TimeoutError(), Busy),
        (ConnectionResetError(), Unavailable),
        (asyncpg.InterfaceError("connection is closed"), Unavailable),
        (asyncpg.InternalClientError("got a message without a request"), Unavailable),
    ],
)
def test_failure_of_the_driver_leaves_a_commit_in_doubt(failed: Exception, earlier: type[Busy]) -> None:
    """The server may have committed before the driver gave up."""
    assert type(explain(failed, could_commit=True)) is OutcomeUnknown
    assert type(explain(failed, could_commit=False)) is earlier


@pytest.mark.parametrize("failed", [KeyError(), Busy(), RuntimeError(), ValueError()], ids=repr)
def test_other_failures_have_no_meaning(failed: Exception) -> None:
    """They are raised as they are."""
    assert meaning_of(failed) is None


@pytest.mark.parametrize(("sqlstate", "committing", "earlier"), [one for one in meanings() if one[1]])
async def test_server_refuses_a_call(
    db: Database, sqlstate: str, committing: type[DomainError], earlier: type[DomainError]
) -> None:
    """The same through a real server, in both ways into it; the connection is good for the next statement."""
    with pytest.raises(committing) as refused:
        await db.call(REFUSE.format(sqlstate))
    assert type(refused.value) is committing
    with pytest.raises(earlier) as refused_earlier:
        async with db.system_transaction() as conn:
            await conn.execute(REFUSE.format(sqlstate))
    assert type(refused_earlier.value) is earlier
    assert (await db.call("select 1"))[0][0] == 1


@pytest.fixture
async def at_commit(servers: Embedded, database: str) -> AsyncIterator[Connection]:
    """A table whose rows make the commit fail with the SQLSTATE that they name."""
    async with connect_owner(servers, database) as owner:
        await owner.execute(
            "create table doomed (sqlstate text);"
            "create function doom() returns trigger language plpgsql as"
            " $$ begin raise exception 'refused' using errcode = new.sqlstate; end $$;"
            "create constraint trigger doom after insert on doomed deferrable initially deferred"
            " for each row execute function doom();"
            f"grant insert, select on doomed to {schema.APP}"
        )
        yield owner
        await owner.execute("drop table doomed; drop function doom()")


@pytest.mark.parametrize(("sqlstate", "meaning"), [("53100", Unavailable), ("57014", Busy), ("40001", LostRace)])
async def test_commit_that_is_refused_has_rolled_back(
    db: Database, at_commit: Connection, sqlstate: str, meaning: type[DomainError]
) -> None:
    """An ERROR as the answer to COMMIT, or to a statement that commits itself, has changed nothing."""
    with pytest.raises(meaning):
        async with db.system_transaction() as conn:
            await conn.execute("insert into doomed values ($1)", sqlstate)
    with pytest.raises(meaning):
        await db.call("insert into doomed values ($1)", sqlstate)
    assert await at_commit.fetchval("select count(*) from doomed") == 0


async def test_broken_rule_at_commit_is_raised_as_it_is(db: Database, at_commit: Connection) -> None:
    """A deferred constraint is for the domain to explain."""
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with db.system_transaction() as conn:
            await conn.execute("insert into doomed values ('23503')")


async def test_call_whose_server_process_ends_is_in_doubt(db: Database) -> None:
    """FATAL in the middle of a statement that commits itself."""
    with pytest.raises(OutcomeUnknown):
        await db.call("select pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(Unavailable):
        async with db.system_transaction() as conn:
            await conn.execute("select pg_terminate_backend(pg_backend_pid())")


@pytest.fixture
async def impatient(servers: Embedded, database: str) -> AsyncIterator[Database]:
    """A pool whose statements may take 50 ms, by the driver's clock."""
    opened = await Database.open(servers.postgres_url(schema.APP, database), size=1, command_timeout_s=0.05)
    yield opened
    await opened.close()


async def test_statement_timeout_is_busy(servers: Embedded, database: str) -> None:
    """The server's: nothing was changed, by a call or a transaction."""
    limit = {"statement_timeout": "50ms"}
    opened = await Database.open(servers.postgres_url(schema.APP, database), size=1, settings=limit)
    try:
        with pytest.raises(Busy):
            await opened.call("select pg_sleep(5)")
        with pytest.raises(Busy):
            async with opened.system_transaction() as conn:
                await conn.execute("select pg_sleep(5)")
    finally:
        await opened.close()


async def test_driver_timeout_is_busy_before_the_commit(impatient: Database) -> None:
    """The transaction is rolled back, so nothing was changed. A call may have committed by then."""
    with pytest.raises(Busy):
        async with impatient.system_transaction() as conn:
            await conn.execute("select pg_sleep(5)")
    with pytest.raises(OutcomeUnknown):
        await impatient.call("select pg_sleep(5)")
    assert (await impatient.call("select 1"))[0][0] == 1


async def test_wrong_argument_is_no_lost_connection(db: Database) -> None:
    """The driver refuses it before it sends anything."""
    with pytest.raises(asyncpg.DataError):
        await db.call("select $1::uuid", "not a uuid")
    with pytest.raises(asyncpg.InterfaceError, match="expects 1 argument"):
        await db.call("select $1::uuid")


async def test_missing_file_in_a_transaction_is_no_lost_connection(db: Database) -> None:
    """Only the driver's own OSError is one."""
    with pytest.raises(FileNotFoundError):
        async with db.system_transaction():
            raise FileNotFoundError


async def test_pool_leaves_a_read_only_session(
    servers: Embedded, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session keeps the default that it began with, so the pool reconnects: at most once per second."""
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    url = servers.postgres_url(schema.APP, database)

    async def write() -> int:
        async with opened.system_transaction() as conn:
            used.append(conn.get_server_pid())
            await conn.execute("update organizations set name = name where false")
        return used[-1]

    used: list[int] = []
    async with contextlib.AsyncExitStack() as held:
        async with read_only_sessions(servers, database):
            opened = await Database.open(url, size=1)
            held.push_async_callback(opened.close)
            for _ in range(3):
                with pytest.raises(Unavailable):
                    await write()
            assert used[0] != used[1] == used[2]
        now[0] += module.NOTICE_S - 0.01
        with pytest.raises(Unavailable):
            await write()
        now[0] += 0.01
        with pytest.raises(Unavailable):
            await write()
        assert used[1:5] == [used[1]] * 4
        assert await write() != used[1]


async def test_failure_after_the_commit_is_in_doubt(db: Database) -> None:
    """The change is there, so the caller must not hear that there is none."""
    with pytest.raises(OutcomeUnknown), after_commit():
        await db.call(REFUSE.format("53100"))
    with pytest.raises(KeyError), after_commit():
        raise KeyError
