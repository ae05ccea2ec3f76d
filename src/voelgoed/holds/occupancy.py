"""How full an event is: counts, shares, and how that was minute by minute."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from voelgoed.db import Database
from voelgoed.holds import store
from voelgoed.holds.hotmap import HotMap, HotZone
from voelgoed.holds.model import Counts
from voelgoed.ids import OrganizationId

KEPT: Final = timedelta(days=400)
BATCH_ROWS: Final = 1_000
BATCHES_MAX: Final = 100
MINUTES_MAX: Final = 1_500


class ZoneOccupancy(msgspec.Struct, frozen=True):
    """How full a zone is."""

    zone_id: UUID
    total: int
    available: int
    held: int
    sold: int
    blocked: int


class Occupancy(msgspec.Struct, frozen=True):
    """How full an event is. `map_version` names the state of its places that was counted."""

    event_id: UUID
    epoch: int
    map_version: int
    available: int
    held: int
    sold: int
    blocked: int
    total: int
    percent_available: float
    percent_held: float
    percent_sold: float
    occupancy_percent: float
    timestamp: datetime
    zones: tuple[ZoneOccupancy, ...]


@dataclass(frozen=True, slots=True)
class Minute:
    """How full an event was in a minute."""

    taken_at: datetime
    counts: Counts


def occupancy_of(
    event_id: UUID, epoch: int, map_version: int, zones: Iterable[HotZone], timestamp: datetime
) -> Occupancy:
    """Everything that is said of it, from what its zones count."""
    by_zone = [(zone.zone_id, zone.counts) for zone in zones]
    whole = Counts.total(counts for _, counts in by_zone)
    return Occupancy(
        event_id=event_id,
        epoch=epoch,
        map_version=map_version,
        available=whole.available,
        held=whole.held,
        sold=whole.sold,
        blocked=whole.blocked,
        total=whole.capacity,
        percent_available=share(whole.available, whole.capacity),
        percent_held=share(whole.held, whole.capacity),
        percent_sold=share(whole.sold, whole.capacity),
        occupancy_percent=share(whole.held + whole.sold, whole.capacity),
        timestamp=timestamp,
        zones=tuple(
            ZoneOccupancy(
                zone_id=zone_id,
                total=counts.capacity,
                available=counts.available,
                held=counts.held,
                sold=counts.sold,
                blocked=counts.blocked,
            )
            for zone_id, counts in by_zone
        ),
    )


def occupancy_now(found: HotMap) -> Occupancy:
    """Return how full an event is by its map."""
    return occupancy_of(found.event_id, found.epoch, found.map_version, found.zones, datetime.now(UTC))


def share(part: int, whole: int) -> float:
    """Per cent with one decimal, each rounded by itself: three shares need not make a hundred. Of nothing it is 0."""
    return round(100 * part / whole, 1) if whole else 0.0


async def remember(db: Database, organization_id: OrganizationId, found: Occupancy) -> None:
    """Write down how full an event is in this minute."""
    counts = Counts(available=found.available, held=found.held, sold=found.sold, blocked=found.blocked)
    async with db.transaction(organization_id) as conn:
        await store.add_occupancy(
            conn, organization_id, found.event_id, counts, [msgspec.to_builtins(zone) for zone in found.zones]
        )


async def list_minutes(
    db: Database, organization_id: OrganizationId, event_id: UUID, *, since: datetime | None = None
) -> list[Minute]:
    """How full an event was, in the order of time: of the last day unless said otherwise, and of at most so long."""
    since = since or datetime.now(UTC) - timedelta(days=1)
    async with db.transaction(organization_id) as conn:
        rows = await store.list_occupancy(conn, organization_id, event_id, since, MINUTES_MAX)
    return [
        Minute(
            row["taken_at"],
            Counts(available=row["available"], held=row["held"], sold=row["sold"], blocked=row["blocked"]),
        )
        for row in reversed(rows)
    ]


async def purge(db: Database) -> int:
    """Forget how full events were long ago; how many minutes. What one run leaves, the next one takes."""
    removed = 0
    for _ in range(BATCHES_MAX):
        async with db.system_transaction() as conn:
            count = await store.purge_occupancy(conn, KEPT, BATCH_ROWS)
        removed += count
        if count < BATCH_ROWS:
            break
    return removed
