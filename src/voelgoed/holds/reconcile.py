"""Comparing the tiers with PostgreSQL, and making them anew where they differ."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import structlog

from voelgoed.breaker import State
from voelgoed.db import Database
from voelgoed.events import lifecycle
from voelgoed.events.model import CLOCK, Teller
from voelgoed.holds import store
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import EVENTS_MAX, HOLDS_MAX, REBUILD
from voelgoed.holds.hotmap import HotMap
from voelgoed.holds.projection import Dump, Projection
from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record
from voelgoed.redis import RedisAway

log = structlog.get_logger(__name__)

NAMED_MAX: Final = 100
GRACE_MS: Final = 1_000
"""Holds that end within this of now are neither missing nor left over."""
AGAIN_S: Final = 0.5
AGREED: Final = "All tiers agree."


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the tiers of an event stand. Counts are of active holds; the lists name a hundred at most of each."""

    organization_id: OrganizationId
    event_id: UUID
    ets_count: int | None
    redis_count: int | None
    db_count: int
    consistent: bool
    missing: Sequence[UUID] = ()
    extra: Sequence[UUID] = ()
    seats_differ: Sequence[UUID] = ()
    seats_differ_count: int = 0
    zones_differ: Sequence[UUID] = ()
    breaker: State
    message: str

    @property
    def status(self) -> str:
        return "ok" if self.consistent else "stale"


async def look(
    db: Database, availability: Availability, projection: Projection, organization_id: OrganizationId, event_id: UUID
) -> Report:
    """Compare what Redis, this process and PostgreSQL have of an event, by the same clock.

    Redis is a moment behind while people buy: only what differs in two looks is different.
    """
    first = await _look(db, availability, projection, organization_id, event_id)
    if first.consistent or first.redis_count is None:
        return first
    await asyncio.sleep(AGAIN_S)
    return _lasting(first, await _look(db, availability, projection, organization_id, event_id))


def _lasting(first: Report, again: Report) -> Report:
    """The second look without what the first had not; where lists are cut off, as it is."""
    if again.consistent or again.redis_count is None or again.seats_differ_count > NAMED_MAX:
        return again
    missing, extra, seats, zones = (
        [one for one in now if one in before]
        for before, now in (
            (first.missing, again.missing),
            (first.extra, again.extra),
            (first.seats_differ, again.seats_differ),
            (first.zones_differ, again.zones_differ),
        )
    )
    has_new = bool(again.missing or again.extra or again.seats_differ or again.zones_differ)
    is_well = has_new and not (missing or extra or seats or zones)
    return replace(
        again,
        missing=missing,
        extra=extra,
        seats_differ=seats,
        seats_differ_count=len(seats),
        zones_differ=zones,
        consistent=is_well,
        message=AGREED if is_well else again.message,
    )


async def reconcile(
    db: Database,
    availability: Availability,
    projection: Projection,
    organization_id: OrganizationId,
    event_id: UUID,
    *,
    by: Teller,
) -> Report:
    """Compare, and have the event's places made anew in every tier: the fact reaches every process, and Redis."""
    report = await look(db, availability, projection, organization_id, event_id)
    await _ask_for_rebuild(db, report, by=by)
    return report


async def reconcile_all(db: Database, availability: Availability, projection: Projection) -> int:
    """Compare every event on sale; those that differ are made anew. How many did."""
    async with db.system_transaction() as conn:
        events = await store.list_materialised(conn, EVENTS_MAX)
    differing = 0
    for organization_id, event_id in events:
        try:
            report = await look(db, availability, projection, organization_id, event_id)
            if report.consistent or report.redis_count is None:
                continue
            differing += 1
            await _ask_for_rebuild(db, report, by=CLOCK)
        except Exception as failed:  # one that cannot be compared does not keep the others
            log.exception("reconcile_failed", event_id=str(event_id), error=type(failed).__name__)
    return differing


async def _look(
    db: Database, availability: Availability, projection: Projection, organization_id: OrganizationId, event_id: UUID
) -> Report:
    async with db.transaction(organization_id) as conn:
        await lifecycle.find_at_venue(conn, organization_id, event_id)
        snapshot = await store.load_map(conn, organization_id, event_id)
        holds = await store.list_active_holds(conn, organization_id, event_id, HOLDS_MAX)
    hot = availability.peek(event_id)
    ets_count = len(hot.holders) if hot and hot.organization_id == organization_id else None
    if snapshot is None:
        return Report(
            organization_id=organization_id,
            event_id=event_id,
            ets_count=ets_count,
            breaker=projection.breaker,
            redis_count=0,
            db_count=0,
            consistent=True,
            message="The event has no places yet.",
        )
    now_ms = snapshot.now_ms
    lasting = {hold_id for hold_id, until in holds.items() if until > now_ms + GRACE_MS}
    try:
        dump = await projection.dump(organization_id, event_id, now_ms)
    except RedisAway:
        return Report(
            organization_id=organization_id,
            event_id=event_id,
            ets_count=ets_count,
            breaker=projection.breaker,
            redis_count=None,
            db_count=len(lasting),
            consistent=False,
            message="Redis is away. PostgreSQL answers; when Redis is back its maps are made anew.",
        )
    missing = sorted(lasting - dump.holds.keys())
    extra = sorted(hold_id for hold_id in dump.holds.keys() - holds.keys() if dump.holds[hold_id] > now_ms + GRACE_MS)
    truth = HotMap(snapshot, read_at=0.0)
    differ = _differing(truth, dump)
    zones = [
        zone.zone_id
        for zone in truth.zones
        if zone.is_by_number and dump.zones.get(zone.zone_id) != (zone.version, zone.held, zone.sold)
    ]
    is_same = not (missing or extra or differ or zones) and dump.epoch is not None
    return Report(
        organization_id=organization_id,
        event_id=event_id,
        ets_count=ets_count,
        breaker=projection.breaker,
        redis_count=sum(until > now_ms + GRACE_MS for until in dump.holds.values()),
        db_count=len(lasting),
        consistent=is_same,
        missing=missing[:NAMED_MAX],
        extra=extra[:NAMED_MAX],
        seats_differ=differ[:NAMED_MAX],
        seats_differ_count=len(differ),
        zones_differ=zones,
        message=AGREED if is_same else "Redis differs from PostgreSQL; reconcile makes it anew.",
    )


def _differing(truth: HotMap, dump: Dump) -> list[UUID]:
    """The seats that stand in Redis as something else than what they are; all of them when it has no map."""
    versions = truth.versions[:]
    versions.byteswap()
    if dump.statuses == bytes(truth.statuses) and dump.versions == versions.tobytes():
        return []
    statuses, known = dump.statuses or b"", dump.versions or b""
    expected = versions.tobytes()
    return [
        truth.seat_id(ordinal)
        for ordinal in range(len(truth))
        if statuses[ordinal : ordinal + 1] != truth.statuses[ordinal : ordinal + 1]
        or known[4 * ordinal : 4 * ordinal + 4] != expected[4 * ordinal : 4 * ordinal + 4]
    ]


async def _ask_for_rebuild(db: Database, report: Report, *, by: Teller) -> None:
    fact = Fact(
        kind=REBUILD,
        organization_id=report.organization_id,
        event_id=report.event_id,
        actor_id=by.actor_id,
        request_id=by.request_id,
        origin=by.origin,
        data={
            "status": report.status,
            "db_count": report.db_count,
            "redis_count": report.redis_count,
            "missing": len(report.missing),
            "extra": len(report.extra),
            "seats_differ": report.seats_differ_count,
        },
    )
    async with db.transaction(report.organization_id) as conn:
        await record(conn, fact)
    log.info(
        "registry_reconciled",
        org_id=str(report.organization_id),
        event_id=str(report.event_id),
        keys_invalidated=report.db_count + (report.redis_count or 0),
        missing=len(report.missing),
        extra=len(report.extra),
        seats_differ=report.seats_differ_count,
    )
