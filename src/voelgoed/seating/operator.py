"""What the operator of an installation does with layouts and policies, who has the machine itself and so no session."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.events.model import OPERATOR
from voelgoed.seating import policies, store, versions
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import Layout, LayoutId, ListedLayout, Version, VersionStatus
from voelgoed.seating.policies import StoredPolicy
from voelgoed.seating.policy import LOCKS, wrong_policy
from voelgoed.seating.pretix import read_plan
from voelgoed.seating.refusals import PolicyInvalid
from voelgoed.seating.seats_csv import write_seats
from voelgoed.seating.studio import Studio
from voelgoed.seating.versions import OnProgress

SHOWN_MAX = 1_000


def read_file(path: Path, *, is_pretix: bool) -> Layout:
    """The layout in a file; everything that is wrong with it is told at once."""
    data = path.read_bytes()
    return read_plan(data) if is_pretix else read_layout(data)


async def list_layouts(studio: Studio, place: Organization) -> list[ListedLayout]:
    """An organization's layouts, oldest first."""
    async with studio.db.transaction(place.id) as conn:
        return await store.list_layouts(conn, place.id, venue_id=None, after=None, limit=SHOWN_MAX)


async def list_versions(studio: Studio, place: Organization, layout_id: LayoutId) -> list[Version]:
    """The versions of a layout, latest first."""
    async with studio.db.transaction(place.id) as conn:
        return await store.list_versions(conn, place.id, layout_id, before=None, limit=SHOWN_MAX)


async def add_layout(
    studio: Studio, place: Organization, venue_id: UUID, layout: Layout, *, on_progress: OnProgress | None = None
) -> Version:
    """Begin a layout."""
    return await versions.create_layout(studio, place.id, venue_id, layout, by=OPERATOR, on_progress=on_progress)


async def add_version(
    studio: Studio, place: Organization, layout_id: LayoutId, layout: Layout, *, on_progress: OnProgress | None = None
) -> Version:
    """Add a version to a layout."""
    return await versions.create_version(studio, place.id, layout_id, layout, by=OPERATOR, on_progress=on_progress)


async def move(
    studio: Studio, place: Organization, layout_id: LayoutId, number: int, to: VersionStatus, *, reason: str | None
) -> Version:
    """Let a version be chosen, or no longer."""
    async with studio.db.transaction(place.id) as conn:
        return await versions.move(conn, (place.id, layout_id, number), to, by=OPERATOR, reason=reason)


async def load(studio: Studio, place: Organization, layout_id: LayoutId, number: int) -> Layout:
    """A version, to the last seat."""
    async with studio.db.transaction(place.id) as conn:
        return await versions.load(conn, (place.id, layout_id, number))


async def export(studio: Studio, place: Organization, layout_id: LayoutId, number: int, *, is_csv: bool) -> bytes:
    """A version as a file."""
    layout = await load(studio, place, layout_id, number)
    return write_seats(layout) if is_csv else write_layout(layout)


async def get_policy(db: Database, place: Organization) -> StoredPolicy:
    """What an organization lets its seating be."""
    async with db.transaction(place.id) as conn:
        return await policies.load(conn, place.id)


async def change_policy(
    db: Database,
    place: Organization,
    values: Mapping[str, object],
    *,
    reason: str,
    lock: Iterable[str] = (),
    unlock: Iterable[str] = (),
) -> StoredPolicy:
    """Set fields of an organization's policy; lock some, and unlock others."""
    closed, opened, version = frozenset(lock), frozenset(unlock), None
    if wrong := wrong_policy({LOCKS: sorted(closed | opened)}):
        raise PolicyInvalid(fields=wrong)
    async with db.transaction(place.id) as conn:
        if closed or opened:
            found = await policies.load(conn, place.id)
            values = {**values, LOCKS: sorted((closed | frozenset(found.policy.locked_fields)) - opened)}
            version = found.version  # what somebody locks meanwhile is not unlocked by this
        return await policies.save(
            conn, place.id, values, by=OPERATOR, role=Role.SUPER_ADMIN, reason=reason, version=version
        )
