"""Where facts came from is kept for a time, then emptied: a fact stays true without anybody's address."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import structlog
from cachetools import LRUCache

from voelgoed.db import Database
from voelgoed.ids import OrganizationId
from voelgoed.journal import store
from voelgoed.journal.model import Origin

log = structlog.get_logger(__name__)

KEPT = timedelta(days=90)
BATCH_ROWS = 1_000
BATCHES_MAX = 100
_WRITTEN: LRUCache[UUID, bool] = LRUCache(200_000)
"""What this process has written of late; only to spare writing it again."""
_IDS: LRUCache[tuple[OrganizationId, Origin, date], UUID] = LRUCache(100_000)


async def remember(db: Database, organization_id: OrganizationId, seen: Iterable[Origin]) -> None:
    """Write down where facts come from that others record: once for each, as far as this process remembers."""
    new = unwritten(organization_id, seen)
    if not new:
        return
    async with db.transaction(organization_id) as conn:
        await store.add_origins(conn, organization_id, new)
    written(new)


def unwritten(organization_id: OrganizationId, seen: Iterable[Origin]) -> dict[UUID, Origin]:
    """Those of them that this process has not written down today, by the id they have."""
    return {origin_id: origin for origin in seen if (origin_id := id_today(organization_id, origin)) not in _WRITTEN}


def written(ids: Iterable[UUID]) -> None:
    """These were written down and committed."""
    _WRITTEN.update(dict.fromkeys(ids, True))


def id_today(organization_id: OrganizationId, origin: Origin) -> UUID:
    """The id under which an origin is kept today. Remembered: a browser asks more than once."""
    key = organization_id, origin, datetime.now(UTC).date()
    found = _IDS.get(key)
    if found is None:
        found = _IDS[key] = origin.id_on(organization_id, key[2])
    return found


async def remember_one(db: Database, organization_id: OrganizationId, seen: Origin) -> UUID:
    """The same for one, and the id it has today."""
    await remember(db, organization_id, (seen,))
    return id_today(organization_id, seen)


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
