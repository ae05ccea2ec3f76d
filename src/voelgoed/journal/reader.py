"""Reading the journal in its order: every committed fact once, none missed, of one record each version after the last.

A fact is shown once every transaction up to its number has ended, so that nothing can appear behind a reader. Why the
order is what it is, and what it asks of writers, is in docs/decisions/0005-journal-order.md.
"""

from collections.abc import Sequence

from voelgoed.db import Conn
from voelgoed.errors import StartRefused
from voelgoed.ids import OrganizationId
from voelgoed.journal import store
from voelgoed.journal.model import Batch, Position

FACTS_PER_READ_MAX = 1_000
FACTS_LOOKED_AT_MAX = 5_000


async def read_after(conn: Conn, position: Position, limit: int = FACTS_PER_READ_MAX) -> Batch:
    """The next facts strictly after a place, of every organization, so in a system transaction.

    A batch may end inside a transaction: its other facts are the next ones. An empty one leaves the reader where it is.
    """
    assert 1 <= limit <= FACTS_PER_READ_MAX
    facts = await store.read_after(conn, position, limit)
    return Batch(facts=facts, position=facts[-1].position if facts else position, is_last=len(facts) < limit)


async def read_kinds_after(
    conn: Conn,
    position: Position,
    prefixes: Sequence[str],
    organization_id: OrganizationId | None = None,
    *,
    limit: int = FACTS_LOOKED_AT_MAX,
) -> Batch:
    """Of the next facts those whose kind begins with one of these, of one organization or of all; how far that is."""
    assert 1 <= limit <= FACTS_LOOKED_AT_MAX
    patterns = [f"{prefix}%" for prefix in prefixes]
    facts, last, count = await store.read_kinds_after(conn, position, limit, patterns, organization_id)
    return Batch(facts=facts, position=last or position, is_last=count < limit)


async def start_position(conn: Conn) -> Position:
    """Now: whatever cannot be seen yet lies after it, and a few facts that can."""
    return await store.find_start(conn)


async def load_position(conn: Conn, reader: str) -> Position | None:
    """Where a reader stands; None when it never read.

    A place that this server's transactions have not reached yet comes from a dump of another server. New facts would
    then lie behind the reader, and be passed over in silence, so it is refused.
    """
    found = await store.load_position(conn, reader)
    if found is None:
        return None
    position, is_ahead = found
    if is_ahead:
        raise StartRefused(
            f"reader {reader} of the journal is at transaction {position.xid}, which this server has not reached",
            hint="the database was restored from a dump: see docs/decisions/0005-journal-order.md",
        )
    return position


async def save_position(conn: Conn, reader: str, position: Position) -> bool:
    """Keep where a reader stands; False when it was there, or further, already."""
    return await store.save_position(conn, reader, position)
