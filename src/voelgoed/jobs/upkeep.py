"""Keeping the queue's own tables small: the library writes down every step of every job and forgets none."""

from datetime import timedelta

import structlog

from voelgoed.db import Database
from voelgoed.jobs import store

log = structlog.get_logger(__name__)

LOG_KEPT = timedelta(days=14)
GIVEN_UP_KEPT = timedelta(days=30)
BATCH_ROWS = 1_000
BATCHES_MAX = 100


async def purge(db: Database) -> int:
    """Remove what is older than it is kept; how much. What one run leaves, the next one takes."""
    removed = 0
    for ask, kept in (
        (store.purge_log, LOG_KEPT),
        (store.purge_statistics, LOG_KEPT),
        (store.purge_given_up, GIVEN_UP_KEPT),
    ):
        for _ in range(BATCHES_MAX):
            async with db.system_transaction() as conn:  # one batch each: no transaction may last
                count = await ask(conn, kept, BATCH_ROWS)
            removed += count
            if count < BATCH_ROWS:
                break
    if removed:
        log.info("job_records_purged", count=removed)
    return removed
