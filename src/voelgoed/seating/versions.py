"""Versions of layouts in PostgreSQL: stored piece by piece, whole or not there at all, read back exactly.

No transaction may last while 100,000 seats are written, because everybody who follows the journal waits for it. So a
version is written in pieces and exists for nobody until its geometry is there; one that was broken off is removed.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import structlog

from voelgoed.db import Conn, Database
from voelgoed.errors import Busy
from voelgoed.events.lifecycle import require_venue_room
from voelgoed.events.model import Teller
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.recording import record
from voelgoed.seating import geometry, policies, seat_ids, store
from voelgoed.seating.model import VERSION_MOVES, Layout, LayoutId, Lineage, Seat, Version, VersionStatus
from voelgoed.seating.ordinals import ordinals
from voelgoed.seating.refusals import LayoutMoveRefused, LayoutNotFound
from voelgoed.seating.store import SeatColumns, VersionKey
from voelgoed.seating.studio import Studio

log = structlog.get_logger(__name__)

SEATS_PER_PIECE = 10_000
UNFINISHED_KEPT = timedelta(hours=1)
UNFINISHED_PER_RUN = 100

OnProgress = Callable[[int, int], None]
AtEnd = Callable[[Conn, Version], Awaitable[None]]


class MadeTwice(Busy):
    """The same ask was made at the same time, and the other was first; asked again, it is answered with that."""


async def create_layout(
    studio: Studio,
    organization_id: OrganizationId,
    venue_id: UUID,
    layout: Layout,
    *,
    by: Teller,
    at_end: AtEnd | None = None,
    on_progress: OnProgress | None = None,
) -> Version:
    """Begin a layout with its first version; without one there is no layout."""
    layout_id = LayoutId(new_id())
    return await _create(
        studio, organization_id, layout_id, layout, by=by, venue_id=venue_id, at_end=at_end, on_progress=on_progress
    )


async def create_version(
    studio: Studio,
    organization_id: OrganizationId,
    layout_id: LayoutId,
    layout: Layout,
    *,
    by: Teller,
    at_end: AtEnd | None = None,
    on_progress: OnProgress | None = None,
) -> Version:
    """Add a version to a layout: the next number, the same ids for the same codes. It begins as a draft.

    `at_end` is called in the transaction that makes it whole, so that a memory of it commits with it.
    """
    return await _create(studio, organization_id, layout_id, layout, by=by, at_end=at_end, on_progress=on_progress)


async def _create(
    studio: Studio,
    organization_id: OrganizationId,
    layout_id: LayoutId,
    layout: Layout,
    *,
    by: Teller,
    venue_id: UUID | None = None,
    at_end: AtEnd | None,
    on_progress: OnProgress | None,
) -> Version:
    db = studio.db
    rendering: asyncio.Task[bytes] | None = None
    key: VersionKey | None = None
    try:
        async with db.transaction(organization_id) as conn:
            if venue_id is not None:
                await require_venue_room(conn, organization_id, venue_id, seats=layout.total_capacity)
                await store.add_layout(conn, organization_id, layout_id, venue_id, layout.name)
            draft, lineage = await _begin(conn, organization_id, layout_id, layout)
            # One keeps this processor busy, the other PostgreSQL's.
            rendering = asyncio.create_task(studio.work(lambda: _rendered(draft), is_begun=True))
            await _enter(conn, draft, lineage, by)
        key = draft.key
        await _write_seats(db, draft, on_progress)
        return await _finish(db, draft, await rendering, by, at_end)
    except BaseException:
        if rendering:
            rendering.cancel()
            await asyncio.gather(rendering, return_exceptions=True)  # no failure that nobody has looked at
        if key:
            await _abandon(db, key)
        raise


async def load(conn: Conn, key: VersionKey) -> Layout:
    """A version as it was stored, to the last seat."""
    version = await find(conn, key)
    rows = await store.list_zones(conn, key), await store.list_seats(conn, key), await store.list_groups(conn, key)
    zones = await asyncio.to_thread(store.built, *rows)  # a hall is a second's work for one processor
    shapes = await store.get_shapes(conn, key)
    return Layout(name=version.name, description=version.description, zones=zones, shapes=shapes)


async def find(conn: Conn, key: VersionKey) -> Version:
    """A version that is whole."""
    version = await store.get_version(conn, key)
    if version is None:
        raise LayoutNotFound
    return version


async def move(conn: Conn, key: VersionKey, to: VersionStatus, *, by: Teller, reason: str | None) -> Version:
    """Let a version be chosen, or no longer. Of one layout one version can be chosen: the one before is archived."""
    organization_id, layout_id, number = key
    lineage = await store.lock_layout(conn, organization_id, layout_id)
    if lineage is None:
        raise LayoutNotFound
    version = await find(conn, key)
    if to not in VERSION_MOVES[version.status]:
        raise LayoutMoveRefused(status=version.status, allowed=sorted(VERSION_MOVES[version.status]))
    before = await store.find_active_version(conn, organization_id, layout_id)
    if to is VersionStatus.ACTIVE:
        await require_venue_room(conn, organization_id, lineage.venue_id, seats=version.total_capacity)
        if before is not None:
            await store.set_version_status(conn, (organization_id, layout_id, before), VersionStatus.ARCHIVED)
    moved = await store.set_version_status(conn, key, to)
    after = number if to is VersionStatus.ACTIVE else None if before == number else before
    kind = "layout_version_activated" if to is VersionStatus.ACTIVE else "layout_version_archived"
    about: dict[str, object] = {"version": number, "old_status": version.status, "new_status": to}
    await _tell(conn, kind, lineage, about | {"version_before": before, "version_after": after}, by=by, reason=reason)
    return moved


async def purge_unfinished(db: Database) -> int:
    """Remove versions whose making was broken off long ago; how many."""
    async with db.system_transaction() as conn:
        found = await store.find_unfinished(conn, older_than=UNFINISHED_KEPT, limit=UNFINISHED_PER_RUN)
    for key in found:
        await _abandon(db, key)
    return len(found)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A version on its way: its number, and the serial of each of its codes, in the order of the layout."""

    key: VersionKey
    layout: Layout
    serials: dict[str, int]
    zone_serials: dict[str, int]
    new_codes: list[str]


async def _begin(
    conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, layout: Layout
) -> tuple[_Draft, Lineage]:
    """Take the next number and give every code its serial; nobody else can until this transaction ends."""
    lineage = await store.lock_layout(conn, organization_id, layout_id)
    if lineage is None:
        raise LayoutNotFound
    await require_venue_room(conn, organization_id, lineage.venue_id, seats=layout.total_capacity)
    await policies.require_permitted(conn, organization_id, layout)
    codes = [seat.code for _, _, seat in layout.seats()]
    known = await store.find_serials(conn, organization_id, layout_id, codes)
    serials = await asyncio.to_thread(seat_ids.assign_serials, codes, known, lineage.serial_last)
    return _Draft(
        (organization_id, layout_id, lineage.version_last + 1),
        layout,
        serials,
        seat_ids.assign_serials([zone.code for zone in layout.zones], lineage.zone_serials),
        [code for code in serials if code not in known],
    ), lineage


async def _enter(conn: Conn, draft: _Draft, lineage: Lineage, by: Teller) -> None:
    """Write down the number, the serials and the zones; the version is there, but for nobody yet."""
    organization_id, layout_id, number = draft.key
    if draft.new_codes:
        first = draft.serials[draft.new_codes[0]]
        await store.add_serials(conn, organization_id, layout_id, draft.new_codes, first=first)
    kept = {**lineage.zone_serials, **draft.zone_serials}
    last = lineage.serial_last + len(draft.new_codes)
    await store.save_layout(conn, replace(lineage, version_last=number, serial_last=last, zone_serials=kept))
    await store.add_version(conn, draft.key, draft.layout, created_by=by.actor_id)
    zones = draft.layout.zones
    ids = [seat_ids.zone_id(layout_id, draft.zone_serials[zone.code]) for zone in zones]
    await store.add_zones(conn, draft.key, zip(ids, zones, strict=True))


async def _write_seats(db: Database, draft: _Draft, on_progress: OnProgress | None) -> None:
    """Write seats and groups, a short transaction for each piece."""
    key, layout = draft.key, draft.layout
    numbered, seats, columns = await asyncio.to_thread(_columns, draft)
    prefix = seat_ids.id_prefix(key[1])
    for first in range(0, len(seats), SEATS_PER_PIECE):
        piece = seats[first : first + SEATS_PER_PIECE]
        async with db.transaction(key[0]) as conn:
            await store.add_seats(conn, key, first, piece, columns, id_prefix=prefix)
        if on_progress:
            on_progress(first + len(piece), len(seats))
    groups = [
        (ordinal, group, [numbered[code] for code in group.seat_codes])
        for ordinal, zone in enumerate(layout.zones)
        for group in zone.groups
    ]
    if groups:
        async with db.transaction(key[0]) as conn:
            await store.add_groups(conn, key, groups)


def _columns(draft: _Draft) -> tuple[dict[str, int], list[Seat], SeatColumns]:
    """The seats in the order of their ordinals, and what is written beside them."""
    layout = draft.layout
    numbered = ordinals(layout)
    seats = [seat for _, _, seat in layout.seats()]
    return (
        numbered,
        seats,
        SeatColumns(
            serials=list(draft.serials.values()),
            zone_ordinals=[place for place, zone in enumerate(layout.zones) for _ in range(zone.seat_count)],
            row_ordinals=[place for zone in layout.zones for place, row in enumerate(zone.rows) for _ in row.seats],
            companions_of=[numbered[seat.companion_of] if seat.companion_of else None for seat in seats],
        ),
    )


async def _finish(db: Database, draft: _Draft, made: bytes, by: Teller, at_end: AtEnd | None) -> Version:
    """Make the version whole, and tell of it."""
    layout = draft.layout
    organization_id, layout_id, number = draft.key
    etag = hashlib.sha256(made).hexdigest()[:32]
    async with db.transaction(organization_id) as conn:
        lineage = await store.lock_layout(conn, organization_id, layout_id)
        assert lineage is not None
        version = await store.finish_version(conn, draft.key, made, etag)
        if version is None:
            raise Busy  # it took so long that it was taken for one that was broken off
        before = await store.find_latest_version(conn, organization_id, layout_id, but=number)
        if before is None or number > before:  # a lineage goes by the name of its latest version
            await store.name_layout(conn, organization_id, layout_id, layout.name)
        about: dict[str, object] = {
            "version_before": before,
            "version_after": number,
            "name": layout.name,
            "seat_count": layout.seat_count,
            "total_capacity": layout.total_capacity,
        }
        await _tell(conn, "layout_version_created", lineage, about, by=by, reason=None)
        if at_end:
            await at_end(conn, version)
    return version


async def _abandon(db: Database, key: VersionKey) -> None:
    """Remove what there is of a version that will not be whole."""
    async with db.transaction(key[0]) as conn:
        await store.remove_unfinished(conn, key)


async def _tell(
    conn: Conn, kind: str, lineage: Lineage, about: dict[str, object], *, by: Teller, reason: str | None
) -> None:
    """The fact and the line in the log, in the same words."""
    told = {"venue_id": str(lineage.venue_id), "layout_id": str(lineage.id), **about}
    await record(conn, by.fact(kind, lineage.organization_id, told, reason=reason))
    log.info(kind, org_id=str(lineage.organization_id), reason=reason, actor_type=by.actor_type, **told)


def _rendered(draft: _Draft) -> bytes:
    _, layout_id, number = draft.key
    return geometry.drawn(draft.layout, layout_id, number, draft.serials, draft.zone_serials)
