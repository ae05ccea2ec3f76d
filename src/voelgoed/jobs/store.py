"""The worker's own questions to the database; those of the queue itself are the library's."""

from datetime import timedelta
from pathlib import Path

from voelgoed.db import Conn, load_queries

Q = load_queries(Path(__file__).with_name("queries.sql"))


async def lock_reader(conn: Conn, reader: str) -> bool:
    """Whether this transaction has the reader's place to itself now."""
    return await conn.fetchval(Q["lock_reader"], reader) is True


async def purge_log(conn: Conn, older_than: timedelta, limit: int) -> int:
    return _count(await conn.execute(Q["purge_log"], older_than, limit))


async def purge_statistics(conn: Conn, older_than: timedelta, limit: int) -> int:
    return _count(await conn.execute(Q["purge_statistics"], older_than, limit))


async def purge_given_up(conn: Conn, older_than: timedelta, limit: int) -> int:
    return _count(await conn.execute(Q["purge_given_up"], older_than, limit))


def _count(done: str) -> int:
    return int(done.removeprefix("DELETE "))
