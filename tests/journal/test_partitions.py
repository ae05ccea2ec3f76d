"""The journal's months: always there before they are needed."""

import asyncio

import asyncpg
import pytest

from tests.make.accounts import make_organization
from voelgoed import schema
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.journal import partitions, store


async def months(conn: Connection) -> list[str]:
    rows = await conn.fetch(
        "select relname from pg_class"
        " where relispartition and relkind = 'r' and relname like 'journal%' order by relname"
    )
    return [row["relname"] for row in rows]


async def test_missing_months_are_made_by_the_application(db: Database, owner_conn: Connection) -> None:
    """The worker may add months, though it may change no table; two workers at once make each month once."""
    before = await months(owner_conn)
    await owner_conn.execute(f"drop table {before[-1]}")
    await asyncio.gather(partitions.keep_ahead(db), partitions.keep_ahead(db))
    assert await months(owner_conn) == before


async def test_a_new_month_holds_up_nobody(
    db: Database, servers: Embedded, database: str, owner_conn: Connection
) -> None:
    """While somebody reads the journal at length, a month is added and others go on recording."""
    last = (await months(owner_conn))[-1]
    await owner_conn.execute(f"drop table {last}")
    reader = await asyncpg.connect(servers.postgres_url(schema.APP, database))
    transaction = reader.transaction()
    await transaction.start()
    await reader.fetch("select count(*) from journal")  # holds its lock until the transaction ends
    await partitions.keep_ahead(db)
    await make_organization(db)
    assert (await months(owner_conn))[-1] == last
    await transaction.rollback()
    await reader.close()


@pytest.mark.parametrize("months_ahead", [-1, 37])
async def test_a_silly_number_of_months_is_refused(db: Database, months_ahead: int) -> None:
    """The right is lent with a limit."""
    with pytest.raises(asyncpg.InvalidParameterValueError):
        async with db.system_transaction() as conn:
            await store.make_partitions(conn, months_ahead=months_ahead)
