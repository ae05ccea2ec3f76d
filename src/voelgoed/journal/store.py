"""The journal's questions to the database."""

from pathlib import Path

import msgspec

from voelgoed.db import Conn, load_queries
from voelgoed.journal.model import Fact

Q = load_queries(Path(__file__).with_name("queries.sql"))


async def record(conn: Conn, fact: Fact) -> None:
    data = msgspec.json.encode(fact.data).decode()
    about = (fact.organization_id, fact.kind, fact.event_id, fact.actor_id, fact.request_id, fact.reason)
    await conn.execute(Q["record"], *about, data)


async def make_partitions(conn: Conn, *, months_ahead: int) -> int:
    """Make the months that are missing; how many were."""
    made: int = await conn.fetchval(Q["make_partitions"], months_ahead)
    return made
