"""Halls and what events make of them, in PostgreSQL: which version an event has, what it says, who waits for whom.

Everything that changes the seating of an event, or makes and removes its places, locks the event's row here first, then
seats, then zones, then the event itself. So two of them never wait in a circle.
"""

from datetime import timedelta
from uuid import UUID

from voelgoed.db import Conn
from voelgoed.ids import OrganizationId, new_id
from voelgoed.seating import store, versions
from voelgoed.seating.model import EventLayout, LayoutId, Lineage, Pin, PinnedEvent, Version, VersionStatus
from voelgoed.seating.offer import Hall, numbered_hall
from voelgoed.seating.refusals import LayoutNotActive, LayoutNotFound, LayoutOfOtherVenue
from voelgoed.seating.studio import Studio

PINNED_SHOWN_MAX = 200


async def load_hall(studio: Studio, organization_id: OrganizationId, pin: Pin) -> Hall:
    """A version to the last seat. It never changes, so the last few stay in memory."""
    key = (organization_id, pin.layout_id, pin.version)

    async def load() -> Hall:
        async with studio.db.transaction(organization_id) as conn:
            lineage = await store.get_layout(conn, organization_id, pin.layout_id)
            if lineage is None:
                raise LayoutNotFound
            layout = await versions.load(conn, key)
            serials = await store.list_seat_serials(conn, key)
        return await studio.work(lambda: numbered_hall(layout, pin, serials, lineage.zone_serials), is_begun=True)

    return await studio.hall(key, load)


async def find(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> EventLayout | None:
    """What an event has said of its seating, if anything."""
    return await store.get_event_layout(conn, organization_id, event_id)


async def find_brief(
    conn: Conn, organization_id: OrganizationId, event_id: UUID
) -> tuple[Pin | None, dict[str, object]]:
    """Which version an event has and what it says of the policy; the rest may be as large as its hall."""
    return await store.get_event_pin(conn, organization_id, event_id)


async def lock(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> EventLayout:
    """The same, so that nobody else can change it until this transaction ends; made when there is none."""
    found = await store.lock_event_layout(conn, organization_id, event_id)
    if found is None:
        await store.add_event_layout(conn, organization_id, event_id, new_id())
        found = await store.lock_event_layout(conn, organization_id, event_id)
    assert found is not None
    return found


async def save(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, pin: Pin | None, overrides: dict[str, object]
) -> EventLayout:
    """Write down what an event has and says; its row is locked."""
    return await store.save_event_layout(conn, organization_id, event_id, pin, overrides)


async def set_making(conn: Conn, organization_id: OrganizationId, event_id: UUID, making: UUID | None) -> None:
    """Note whose work the places are that are being written, or that nobody's are; the row is locked."""
    await store.set_making(conn, organization_id, event_id, making)


async def share_making(conn: Conn, organization_id: OrganizationId, event_id: UUID, claim: UUID) -> bool:
    """Whether the places are still this one's work; if so, until the transaction ends."""
    return await store.share_making(conn, organization_id, event_id, claim)


async def require_choosable(conn: Conn, organization_id: OrganizationId, venue_id: UUID, pin: Pin) -> Version:
    """A version that an event at this venue may have."""
    lineage = await store.get_layout(conn, organization_id, pin.layout_id)
    if lineage is None:
        raise LayoutNotFound
    version = await versions.find(conn, (organization_id, pin.layout_id, pin.version))
    _require_same(venue_id, lineage)
    if version.status is not VersionStatus.ACTIVE:
        active = await store.find_active_version(conn, organization_id, pin.layout_id)
        raise LayoutNotActive(version=pin.version, status=version.status, active_version=active)
    return version


async def require_of_venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID, pin: Pin) -> None:
    """Refuse a venue that is not the one where the event's layout stands."""
    lineage = await store.get_layout(conn, organization_id, pin.layout_id)
    assert lineage is not None
    _require_same(venue_id, lineage)


async def find_broken_off(conn: Conn, *, older_than: timedelta, limit: int) -> list[tuple[OrganizationId, UUID]]:
    """Events whose places were begun long ago and never finished, of every organization."""
    return await store.find_broken_off(conn, older_than=older_than, limit=limit)


async def find_version(conn: Conn, organization_id: OrganizationId, pin: Pin) -> Version:
    """The version that an event has, whatever became of it since."""
    return await versions.find(conn, (organization_id, pin.layout_id, pin.version))


async def list_pinned(conn: Conn, organization_id: OrganizationId, layout_id: LayoutId) -> list[PinnedEvent]:
    """Which events have which version of a layout, the latest version first."""
    return await store.list_pinned_events(conn, organization_id, layout_id, limit=PINNED_SHOWN_MAX)


def _require_same(venue_id: UUID, lineage: Lineage) -> None:
    if lineage.venue_id != venue_id:
        raise LayoutOfOtherVenue(layout_id=str(lineage.id), venue_id=str(lineage.venue_id))
