"""Reading in order: what a reader sees, when, and what it would lose by an easier way."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from voelgoed import schema
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.model import Fact, Position, RecordedFact
from voelgoed.journal.reader import load_position, read_after, save_position, start_position
from voelgoed.journal.recording import record, record_all

OTHERS_END_S = 30.0
"""How long to wait for transactions of other tests on the same server: they hold up a reader here as well."""
SYSTEM = "begin; select set_config('app.scope', 'system', true)"
INSERT = "insert into journal (organization_id, kind) values ($1, $2) returning seq"


@pytest.fixture
async def start(db: Database) -> Position:
    async with db.system_transaction() as conn:
        return await start_position(conn)


@pytest.fixture
async def other_conn(servers: Embedded, database: str) -> AsyncIterator[Connection]:
    """A second connection of the application's role."""
    conn = await asyncpg.connect(servers.postgres_url(schema.APP, database))
    yield conn
    await conn.close()


async def read_of(
    db: Database, organization_id: OrganizationId, start: Position, *, count: int, limit: int = 1_000
) -> list[RecordedFact]:
    """Read on until an organization has told that many facts."""
    seen: list[RecordedFact] = []
    async with asyncio.timeout(OTHERS_END_S):
        while True:
            async with db.system_transaction() as conn:
                batch = await read_after(conn, start, limit)
            seen += [fact for fact in batch.facts if fact.organization_id == organization_id]
            if len(seen) >= count and not batch.facts:
                return seen
            start = batch.position
            await asyncio.sleep(0 if batch.facts else 0.005)


async def test_facts_are_read_once_in_order_whatever_the_limit(db: Database, start: Position) -> None:
    """Also when a batch ends inside a transaction."""
    here = OrganizationId(new_id())
    for first in (0, 10):
        async with db.transaction(here) as conn:
            await record_all(
                conn, [Fact(kind="made_in_a_test", organization_id=here, version=first + n) for n in range(10)]
            )
    for limit in (1, 3, 10, 1_000):
        seen = await read_of(db, here, start, count=20, limit=limit)
        assert [fact.version for fact in seen] == list(range(20))
        assert [fact.position for fact in seen] == sorted(fact.position for fact in seen)


async def test_a_reader_gets_all_of_a_fact(db: Database, start: Position) -> None:
    """Everything but the address, which it has no use for."""
    told = Fact(
        kind="seat_held",
        organization_id=OrganizationId(new_id()),
        event_id=new_id(),
        seat_id=new_id(),
        version=2,
        actor_id=new_id(),
        request_id=new_id(),
        reason="omdat",
        data={"status": "held"},
    )
    async with db.transaction(told.organization_id) as conn:
        await record(conn, told)
    (seen,) = await read_of(db, told.organization_id, start, count=1)
    assert {name: getattr(seen, name) for name in Fact.__slots__} == {
        name: getattr(told, name) for name in Fact.__slots__
    }
    assert seen.position == Position(xid=seen.xid, seq=seen.seq)


async def test_without_anything_new_the_reader_stays(db: Database) -> None:
    """An empty batch ends where it began."""
    async with db.system_transaction() as conn:
        now = await start_position(conn)
        batch = await read_after(conn, Position(xid=now.xid + 1_000_000, seq=0), 10)
    assert list(batch.facts) == []
    assert batch.position == Position(xid=now.xid + 1_000_000, seq=0)


async def test_a_later_fact_waits_for_an_earlier_transaction_and_a_reader_by_number_loses_one(
    db: Database, start: Position, app_conn: Connection, other_conn: Connection
) -> None:
    """The first to write is the last to commit: by number alone its fact is passed over for ever."""
    here = OrganizationId(new_id())
    by_number = "select seq, kind from journal where organization_id = $1 and seq > $2 order by seq"
    await app_conn.execute(SYSTEM)
    slow_seq = await app_conn.fetchval(INSERT, here, "slow")
    await other_conn.execute(SYSTEM)
    quick_seq = await other_conn.fetchval(INSERT, here, "quick")
    await other_conn.execute("commit")
    assert slow_seq < quick_seq

    async with db.system_transaction() as conn:
        seen_by_number = await conn.fetch(by_number, here, 0)
        seen = await read_after(conn, start, 1_000)
    assert [row["kind"] for row in seen_by_number] == ["quick"]
    assert [fact.kind for fact in seen.facts if fact.organization_id == here] == []

    await app_conn.execute("commit")
    async with db.system_transaction() as conn:
        assert await conn.fetch(by_number, here, seen_by_number[-1]["seq"]) == []
    assert [fact.kind for fact in await read_of(db, here, seen.position, count=2)] == ["slow", "quick"]


async def test_a_rollback_lets_the_reader_go_on(
    db: Database, start: Position, app_conn: Connection, other_conn: Connection
) -> None:
    """What was undone was never there, and holds up nobody any more."""
    here = OrganizationId(new_id())
    for conn, kind in ((app_conn, "undone"), (other_conn, "kept")):
        await conn.execute(SYSTEM)
        await conn.execute(INSERT, here, kind)
    await other_conn.execute("commit")
    await app_conn.execute("rollback")
    assert [fact.kind for fact in await read_of(db, here, start, count=1)] == ["kept"]


async def test_the_months_are_read_as_one(db: Database, start: Position) -> None:
    """The order is that of the telling, whichever partition a fact lies in."""
    here = OrganizationId(new_id())
    now = datetime.now(UTC)
    for kind, days in (("first", 40), ("second", 0), ("third", 75), ("fourth", 0), ("fifth", 40)):
        async with db.transaction(here) as conn:
            await conn.execute(
                "insert into journal (organization_id, kind, recorded_at) values ($1, $2, $3)",
                here,
                kind,
                now + timedelta(days=days),
            )
    for limit in (1, 1_000):
        seen = await read_of(db, here, start, count=5, limit=limit)
        assert [fact.kind for fact in seen] == ["first", "second", "third", "fourth", "fifth"]


async def test_a_version_follows_the_one_before_whoever_began_first(
    db: Database, start: Position, app_conn: Connection, other_conn: Connection
) -> None:
    """By the transaction's number alone the later version would come first: it began earlier and got the lock later."""
    here = OrganizationId(new_id())
    insert = "insert into journal (organization_id, kind, version) values ($1, 'made_in_a_test', $2)"
    await app_conn.execute(SYSTEM)
    earlier = await app_conn.fetchval("select pg_current_xact_id()")
    await other_conn.execute(SYSTEM)
    later = await other_conn.fetchval("select pg_current_xact_id()")
    assert earlier < later
    await other_conn.execute(insert, here, 2)
    await other_conn.execute("commit")
    await app_conn.execute(insert, here, 3)
    await app_conn.execute("commit")
    assert [fact.version for fact in await read_of(db, here, start, count=2)] == [2, 3]


async def test_a_version_told_while_its_lock_is_waited_for_keeps_its_place(
    db: Database, start: Position, owner_conn: Connection, app_conn: Connection, other_conn: Connection
) -> None:
    """Also when lock and fact are one statement, which began to look before the other transaction ended."""
    here = OrganizationId(new_id())
    await owner_conn.execute("insert into organizations (id, slug, name) values ($1, $2, '1')", here, f"o-{here}")
    change = (
        "with changed as (update organizations set name = name::int + 1 where id = $1 returning id, name)"
        " insert into journal (organization_id, kind, version) select id, 'made_in_a_test', name::int from changed"
    )
    await app_conn.execute(SYSTEM)
    await app_conn.execute("select pg_current_xact_id()")
    await other_conn.execute(SYSTEM)
    await other_conn.execute(change, here)
    waiting = asyncio.create_task(app_conn.execute(change, here))
    async with asyncio.timeout(10), db.system_transaction() as conn:
        while not await conn.fetchval("select pg_blocking_pids($1) <> '{}'", app_conn.get_server_pid()):
            await asyncio.sleep(0.005)
    await other_conn.execute("commit")
    await waiting
    await app_conn.execute("commit")
    assert [fact.version for fact in await read_of(db, here, start, count=2)] == [2, 3]


async def test_the_last_fact_of_a_quiet_evening_is_read(
    db: Database, start: Position, app_conn: Connection, other_conn: Connection
) -> None:
    """A fact placed after a later transaction waits for no further one to come along."""
    here = OrganizationId(new_id())
    await app_conn.execute(SYSTEM)
    await app_conn.execute("select pg_current_xact_id()")
    for _ in range(5):
        await other_conn.execute("select pg_current_xact_id()")
    await app_conn.execute(INSERT, here, "last")
    await app_conn.execute("commit")
    async with db.system_transaction() as conn:
        row = await conn.fetchrow(
            "select xid < pg_snapshot_xmax(pg_current_snapshot()) as is_below from journal where organization_id = $1",
            here,
        )
    assert row is not None
    assert row["is_below"] is True
    assert [fact.kind for fact in await read_of(db, here, start, count=1)] == ["last"]


async def test_a_reader_is_remembered_and_never_goes_back(db: Database) -> None:
    """A slower twin saves in vain; forward goes by the transaction first, then by the number."""
    reader = f"test_{new_id().hex}"
    async with db.system_transaction() as conn:
        xid = (await start_position(conn)).xid
        assert await load_position(conn, reader) is None
        steps = [
            (Position(xid=xid - 1, seq=50), True),
            (Position(xid=xid - 1, seq=50), False),
            (Position(xid=xid - 1, seq=49), False),
            (Position(xid=xid - 2, seq=99), False),
            (Position(xid=xid - 1, seq=51), True),
            (Position(xid=xid, seq=0), True),
        ]
        for position, moves in steps:
            assert await save_position(conn, reader, position) is moves
        assert await load_position(conn, reader) == Position(xid=xid, seq=0)


async def test_a_place_from_another_server_is_refused(db: Database) -> None:
    """After a dump was restored, new facts would lie behind the reader: it must not pass over them in silence."""
    reader = f"test_{new_id().hex}"
    async with db.system_transaction() as conn:
        xid = (await start_position(conn)).xid
        await save_position(conn, reader, Position(xid=xid + 1_000_000, seq=0))
        with pytest.raises(StartRefused, match="has not reached"):
            await load_position(conn, reader)


async def test_a_reader_that_was_away_takes_small_steps(
    db: Database, start: Position, owner_conn: Connection, servers: Embedded, database: str
) -> None:
    """A batch touches its own facts and not all that lie ahead: catching up must not get slower with the way."""
    here = OrganizationId(new_id())
    touched = (
        "select sum(idx_tup_fetch + seq_tup_read)::int from pg_stat_xact_user_tables where relname like 'journal_2%'"
    )
    for _ in range(10):
        async with db.transaction(here) as conn:
            await record_all(conn, [Fact(kind="made_in_a_test", organization_id=here)] * 1_000)
    assert len(await read_of(db, here, start, count=10_000)) == 10_000
    await owner_conn.execute("analyze journal")  # with what it then knows the planner would rather sort
    fresh = await Database.open(servers.postgres_url(schema.APP, database), size=1)  # one that has no plan yet
    async with fresh.system_transaction() as conn:
        before = await conn.fetchval(touched)
        batch = await read_after(conn, start, 200)
        assert len(batch.facts) == 200
        assert await conn.fetchval(touched) - before <= 220
    await fresh.close()


@pytest.mark.parametrize("limit", [0, 1_001])
async def test_a_batch_has_a_limit(db: Database, start: Position, limit: int) -> None:
    """No reader can ask for the whole journal at once."""
    with pytest.raises(AssertionError):
        async with db.system_transaction() as conn:
            await read_after(conn, start, limit)
