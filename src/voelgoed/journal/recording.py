"""Recording: the one way a fact enters the journal."""

from voelgoed.db import Conn
from voelgoed.journal import store
from voelgoed.journal.model import Fact


async def record(conn: Conn, fact: Fact) -> None:
    """Record in the caller's transaction: the fact stands or falls with the change it tells of."""
    await store.record(conn, fact)
