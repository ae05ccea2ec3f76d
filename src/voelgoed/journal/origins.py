"""Where facts came from is kept for a time, then emptied: a fact stays true without anybody's address."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from voelgoed.db import Database
from voelgoed.ids import OrganizationId
from voelgoed.journal import store
from voelgoed.journal.model import Origin
from voelgoed.recent import Recent

log = structlog.get_logger(__name__)

KEPT = timedelta(days=90)
BATCH_ROWS = 1_000
BATCHES_MAX = 100
KNOWN_MAX = 10_000
"""Of each half: a newcomer takes 700 bytes, 1,000 with the longest name of a browser, so all of them 20 MB at most."""
_WRITTEN: Final = Recent[UUID, UUID](KNOWN_MAX)
"""What this process has written of late; only to spare writing it again, which would change nothing."""
_IDS: Final = Recent[tuple[OrganizationId, Origin, date], UUID](KNOWN_MAX)


async def remember(db: Database, organization_id: OrganizationId, seen: Iterable[Origin]) -> None:
    """Write down where facts come from that others record: once for each, as far as this process remembers."""
    origins = list(seen)
    new = unwritten(ids_today(organization_id, origins), origins)
    if not new:
        return
    async with db.transaction(organization_id) as conn:
        await store.add_origins(conn, organization_id, new)
    written(new)


def unwritten(ids: Sequence[UUID], seen: Sequence[Origin]) -> dict[UUID, Origin]:
    """Those of them that this process has not written down, by the id they have."""
    return {origin_id: origin for origin_id, origin in zip(ids, seen, strict=True) if _WRITTEN.get(origin_id) is None}


def written(ids: Iterable[UUID]) -> None:
    """These were written down and committed."""
    for one in ids:
        _WRITTEN.put(one, one)


def ids_today(organization_id: OrganizationId, seen: Sequence[Origin]) -> list[UUID]:
    """The ids under which origins are kept today. Remembered: a browser asks more than once."""
    today = datetime.now(UTC).date()
    ids = []
    for origin in seen:
        key = organization_id, origin, today
        found = _IDS.get(key)
        if found is None:
            found = origin.id_on(organization_id, today)
            _IDS.put(key, found)
        ids.append(found)
    return ids


async def remember_one(db: Database, organization_id: OrganizationId, seen: Origin) -> UUID:
    """The same for one, and the id it has today."""
    await remember(db, organization_id, (seen,))
    return ids_today(organization_id, (seen,))[0]


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
