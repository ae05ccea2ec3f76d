"""Where facts came from is kept for a time, then emptied: a fact stays true without anybody's address."""

from datetime import timedelta

import structlog

from voelgoed.db import Database
from voelgoed.journal import store

log = structlog.get_logger(__name__)

KEPT = timedelta(days=90)
BATCH_ROWS = 1_000
BATCHES_MAX = 100


async def purge(db: Database) -> int:
    """Empty addresses and browsers older than they may be kept; how many. What one run leaves, the next one takes.

    Each batch is a transaction of its own: a long one would hold up the readers of the journal.
    """
    emptied = 0
    for _ in range(BATCHES_MAX):
        async with db.system_transaction() as conn:
            count = await store.empty_origins(conn, older_than=KEPT, limit=BATCH_ROWS)
        emptied += count
        if count < BATCH_ROWS:
            break
    if emptied:
        log.info("origins_purged", count=emptied)
    return emptied
