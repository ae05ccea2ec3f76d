"""A standby in the place of the primary, as after a failover: no write, and no restart once it is promoted."""

from pathlib import Path

import asyncpg
import pytest

from voelgoed.db import Database, find_write_fault
from voelgoed.embedded import Embedded, running
from voelgoed.errors import Unavailable


async def test_standby_refuses_writes_until_it_is_promoted(data_dir: Path) -> None:
    """The pool that met a standby writes as soon as the server may; the check says what it is."""
    embedded = Embedded(data_dir, with_valkey=False, durable=False)
    async with running(embedded) as primary:
        conn = await asyncpg.connect(primary.admin_url)
        await conn.execute("create table kept (value int)")
        await conn.close()
    (data_dir / "pg" / "standby.signal").touch()
    async with running(embedded) as standby:
        db = await Database.open(standby.admin_url, size=1)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await db.call("insert into kept values (1)")
            with pytest.raises(Unavailable):
                async with db.system_transaction() as writing:
                    await writing.execute("insert into kept values (1)")
        assert (await db.call("select count(*) from kept"))[0][0] == 0
        conn = await asyncpg.connect(standby.admin_url)
        assert await find_write_fault(conn) == "PostgreSQL is a standby and read only."
        assert await conn.fetchval("select pg_promote()")
        assert await find_write_fault(conn) is None
        await conn.close()
        await db.call("insert into kept values (1)")
        await db.close()
