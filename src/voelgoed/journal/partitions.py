"""The journal's monthly partitions: a fact that has no month to go to would stop all selling."""

import structlog

from voelgoed.db import Database
from voelgoed.journal import store

log = structlog.get_logger(__name__)

MONTHS_AHEAD = 12


async def keep_ahead(db: Database) -> None:
    """Make sure a year of months lies ahead."""
    async with db.system_transaction() as conn:
        made = await store.make_partitions(conn, months_ahead=MONTHS_AHEAD)
    if made:
        log.info("journal_partitions_made", count=made)
