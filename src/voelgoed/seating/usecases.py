"""What an organization's people do with layouts, and with what their seating may be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from voelgoed import paging
from voelgoed.accounts import idempotency
from voelgoed.accounts.idempotency import Once
from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, may, require
from voelgoed.db import Conn, Database
from voelgoed.events.lifecycle import require_venue_room
from voelgoed.events.model import Teller
from voelgoed.ids import OrganizationId
from voelgoed.paging import Page, after_id, page_by_id
from voelgoed.seating import geometry, halls, policies, seat_ids, store, versions
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.diff import LayoutDiff, diff
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import (
    Layout,
    LayoutId,
    ListedLayout,
    Pin,
    PinnedEvent,
    Version,
    VersionStatus,
    Zone,
    ZoneId,
)
from voelgoed.seating.policies import StoredPolicy
from voelgoed.seating.pretix import read_plan
from voelgoed.seating.refusals import LayoutNotFound
from voelgoed.seating.seats_csv import read_seats, write_seats
from voelgoed.seating.studio import Drawing, Studio


class Format(StrEnum):
    """How a layout is written down."""

    JSON = "json"
    CSV = "csv"
    PRETIX = "pretix"


READERS: Final[dict[Format, Callable[[bytes], Layout]]] = {Format.JSON: read_layout, Format.PRETIX: read_plan}
"""What is a whole layout by itself; a sheet of seats needs one that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What came of an import: the layout as it was read and, unless it was only tried, the version."""

    layout: Layout
    version: Version | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneOf:
    """A zone of a version, with the id it has in all of them; without its rows."""

    zone_id: ZoneId
    zone: Zone
    row_count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionDetail:
    """A version with its zones."""

    version: Version
    venue_id: UUID
    zones: tuple[ZoneOf, ...]


async def list_layouts(
    studio: Studio, call: Call, *, venue_id: UUID | None, cursor: str | None, limit: int
) -> Page[ListedLayout]:
    """The organization's layouts, oldest first."""
    require(call.actor, Action.SEE_LAYOUTS)
    async with studio.db.transaction(call.organization_id) as conn:
        found = await store.list_layouts(
            conn, call.organization_id, venue_id=venue_id, after=after_id(cursor), limit=limit + 1
        )
    return page_by_id(found, limit, lambda layout: layout.id)


async def list_versions(
    studio: Studio, call: Call, layout_id: LayoutId, *, cursor: str | None, limit: int
) -> Page[Version]:
    """The versions of a layout, latest first."""
    require(call.actor, Action.SEE_LAYOUTS)
    before = paging.after_number(cursor)
    async with studio.db.transaction(call.organization_id) as conn:
        await _lineage_venue(conn, call.organization_id, layout_id)
        found = await store.list_versions(conn, call.organization_id, layout_id, before=before, limit=limit + 1)
    return paging.page_by_number(found, limit, lambda version: version.version)


async def list_pinned_events(studio: Studio, call: Call, layout_id: LayoutId) -> list[PinnedEvent]:
    """Which events have which version of a layout, the latest version first; so many as anybody would read."""
    require(call.actor, Action.SEE_LAYOUTS)
    async with studio.db.transaction(call.organization_id) as conn:
        await _lineage_venue(conn, call.organization_id, layout_id)
        return await halls.list_pinned(conn, call.organization_id, layout_id)


async def get_version(studio: Studio, call: Call, layout_id: LayoutId, number: int) -> VersionDetail:
    """One version with its zones."""
    require(call.actor, Action.SEE_LAYOUTS)
    key = (call.organization_id, layout_id, number)
    async with studio.db.transaction(call.organization_id) as conn:
        version = await versions.find(conn, key)
        zones = await store.list_zones(conn, key)
        venue_id = await _lineage_venue(conn, call.organization_id, layout_id)
    return VersionDetail(
        version=version,
        venue_id=venue_id,
        zones=tuple(
            ZoneOf(
                zone_id=one.zone_id,
                zone=one.zone,
                row_count=len(one.row_labels),
                created_at=one.created_at,
                updated_at=one.updated_at,
            )
            for one in zones
        ),
    )


async def import_layout(
    studio: Studio, call: Call, venue_id: UUID, data: bytes, written: Format, *, is_dry_run: bool, once: Once | None
) -> Stored:
    """Begin a layout from a file."""
    require(call.actor, Action.CHANGE_LAYOUTS)
    layout = await studio.work(lambda: READERS[written](data))
    return await add_layout(studio, call, venue_id, layout, is_dry_run=is_dry_run, once=once)


async def add_layout(
    studio: Studio, call: Call, venue_id: UUID, layout: Layout, *, is_dry_run: bool, once: Once | None
) -> Stored:
    """Begin a layout that was read or generated, unless it is only tried."""
    require(call.actor, Action.CHANGE_LAYOUTS)
    if is_dry_run:
        async with studio.db.transaction(call.organization_id) as conn:
            await require_venue_room(conn, call.organization_id, venue_id, seats=layout.total_capacity)
            await policies.require_permitted(conn, call.organization_id, layout)
        return Stored(layout=layout, version=None)
    if done := await _recalled(studio, call, once):
        return Stored(layout=layout, version=done)
    made = await versions.create_layout(
        studio, call.organization_id, venue_id, layout, by=Teller.of(call), at_end=_remembering(call, once)
    )
    return Stored(layout=layout, version=made)


async def import_version(
    studio: Studio,
    call: Call,
    layout_id: LayoutId,
    data: bytes,
    written: Format,
    *,
    is_dry_run: bool,
    is_odd_even: bool = False,
    once: Once | None,
) -> Stored:
    """Add a version to a layout from a file. A sheet of seats is read into the latest version's zones."""
    require(call.actor, Action.CHANGE_LAYOUTS)
    if not is_dry_run and (done := await _recalled(studio, call, once)):
        return Stored(layout=await _loaded(studio, call.organization_id, done.layout_id, done.version), version=done)
    if written is Format.CSV:
        base = await _latest(studio, call.organization_id, layout_id)
        layout = await studio.work(lambda: read_seats(data, base, is_odd_even=is_odd_even))
    else:
        layout = await studio.work(lambda: READERS[written](data))
    if is_dry_run:
        async with studio.db.transaction(call.organization_id) as conn:
            venue_id = await _lineage_venue(conn, call.organization_id, layout_id)
            await require_venue_room(conn, call.organization_id, venue_id, seats=layout.total_capacity)
            await policies.require_permitted(conn, call.organization_id, layout)
        return Stored(layout=layout, version=None)
    made = await versions.create_version(
        studio, call.organization_id, layout_id, layout, by=Teller.of(call), at_end=_remembering(call, once)
    )
    return Stored(layout=layout, version=made)


async def move_version(
    studio: Studio, call: Call, layout_id: LayoutId, number: int, to: VersionStatus, *, reason: str | None
) -> Version:
    """Let a version be chosen for events, or no longer."""
    require(call.actor, Action.MOVE_LAYOUTS)
    async with studio.db.transaction(call.organization_id) as conn:
        key = (call.organization_id, layout_id, number)
        return await versions.move(conn, key, to, by=Teller.of(call), reason=reason)


async def compare(studio: Studio, call: Call, layout_id: LayoutId, before: int, after: int) -> LayoutDiff:
    """What is different between two versions."""
    require(call.actor, Action.SEE_LAYOUTS)
    old, new = [await _loaded(studio, call.organization_id, layout_id, number) for number in (before, after)]
    return await studio.work(lambda: diff(old, new))


async def export(studio: Studio, call: Call, layout_id: LayoutId, number: int, written: Format) -> bytes:
    """A version as a file: the whole layout, or the sheet of its seats."""
    require(call.actor, Action.SEE_LAYOUTS)
    layout = await _loaded(studio, call.organization_id, layout_id, number)
    write = write_seats if written is Format.CSV else write_layout
    return await studio.work(lambda: write(layout))


def preview(layout: Layout) -> bytes:
    """The geometry that a layout would have, compressed; its ids are of no layout that there is."""
    seats = seat_ids.assign_serials((seat.code for _, _, seat in layout.seats()), {})
    zones = seat_ids.assign_serials((zone.code for zone in layout.zones), {})
    return geometry.drawn(layout, LayoutId(UUID(int=0)), 1, seats, zones)


async def get_drawing(studio: Studio, call: Call, layout_id: LayoutId, number: int) -> Drawing:
    """The geometry of a version: to the organization's people, and to everybody once an event on show has it."""
    whose = None
    if may(call.actor, Action.SEE_LAYOUTS):
        async with studio.db.transaction(call.organization_id) as conn:
            if await store.get_version(conn, (call.organization_id, layout_id, number)):
                whose = call.organization_id
    return await studio.drawing(whose or await studio.shown_by(Pin(layout_id, number)), layout_id, number)


async def get_policy(db: Database, call: Call) -> StoredPolicy:
    """What the organization lets its seating be."""
    require(call.actor, Action.SEE_SEATING_POLICY)
    async with db.transaction(call.organization_id) as conn:
        return await policies.load(conn, call.organization_id)


async def change_policy(db: Database, call: Call, values: Mapping[str, object], *, version: int | None) -> StoredPolicy:
    """Change what the platform has not locked."""
    require(call.actor, Action.CHANGE_SEATING_POLICY)
    async with db.transaction(call.organization_id) as conn:
        return await policies.save(
            conn, call.organization_id, values, by=Teller.of(call), role=call.actor.role, version=version
        )


async def _loaded(studio: Studio, organization_id: OrganizationId, layout_id: LayoutId, number: int) -> Layout:
    async with studio.db.transaction(organization_id) as conn:
        return await versions.load(conn, (organization_id, layout_id, number))


async def _latest(studio: Studio, organization_id: OrganizationId, layout_id: LayoutId) -> Layout:
    async with studio.db.transaction(organization_id) as conn:
        found = await store.list_versions(conn, organization_id, layout_id, before=None, limit=1)
        if not found:
            raise LayoutNotFound
        return await versions.load(conn, (organization_id, layout_id, found[0].version))


async def _lineage_venue(conn: Conn, organization_id: OrganizationId, layout_id: LayoutId) -> UUID:
    lineage = await store.get_layout(conn, organization_id, layout_id)
    if lineage is None:
        raise LayoutNotFound
    return lineage.venue_id


async def _recalled(studio: Studio, call: Call, once: Once | None) -> Version | None:
    """What came of the same ask before, if it was made before."""
    async with studio.db.transaction(call.organization_id) as conn:
        done = await idempotency.recall(conn, call, once)
        if done is None:
            return None
        key = (call.organization_id, LayoutId(UUID(str(done["layout_id"]))), int(str(done["version"])))
        return await versions.find(conn, key)


def _remembering(call: Call, once: Once | None) -> versions.AtEnd:
    """Remember what came of an ask, in the transaction that makes it true."""

    async def at_end(conn: Conn, version: Version) -> None:
        if await idempotency.recall(conn, call, once):
            raise versions.MadeTwice
        about = {"layout_id": str(version.layout_id), "version": version.version}
        await idempotency.remember(conn, call, once, about)

    return at_end
