"""An organization's seating policy in PostgreSQL: read, changed under a lock, and held against what is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from voelgoed.accounts.model import Role
from voelgoed.db import Conn
from voelgoed.events import lifecycle
from voelgoed.events.model import Teller
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.recording import record
from voelgoed.seating import store
from voelgoed.seating.faults import FaultCode, Faults, LayoutInvalid
from voelgoed.seating.model import Layout
from voelgoed.seating.policy import (
    Policy,
    changeable_fields,
    changed,
    refused_access,
    refused_seats,
    refused_type,
    wrong_policy,
)
from voelgoed.seating.refusals import PolicyChanged, PolicyFieldLocked, PolicyInvalid
from voelgoed.seating.rules import ModelPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPolicy:
    """What an organization's policy is. Version 0 is that nobody has said anything, and the defaults hold."""

    policy: Policy
    version: int
    updated_at: datetime | None


UNSAID = StoredPolicy(policy=Policy(), version=0, updated_at=None)


async def load(conn: Conn, organization_id: OrganizationId) -> StoredPolicy:
    """What holds for an organization now."""
    return _stored(await store.get_policy(conn, organization_id))


async def save(
    conn: Conn,
    organization_id: OrganizationId,
    values: Mapping[str, object],
    *,
    by: Teller,
    role: Role,
    reason: str | None = None,
    version: int | None = None,
) -> StoredPolicy:
    """Change some fields, as far as this role may. `version` is the one the caller has seen, None whichever there is.

    What may be changed is looked at under the lock: a field locked at this very moment stays as it is.
    """
    if wrong := wrong_policy(values):
        # A name that is none may be no text that could be sent back.
        raise PolicyInvalid(
            fields={name.encode("ascii", "backslashreplace").decode(): why for name, why in wrong.items()}
        )
    before = _stored(await store.lock_policy(conn, organization_id))
    after = _decided(before, values, role, version)
    if after == before.policy:
        return before
    if before.version == 0:  # nothing to lock: of two who are first at once, one decides on what the other has said
        await store.add_policy(conn, organization_id, new_id())
        before = _stored(await store.lock_policy(conn, organization_id))
        after = _decided(before, values, role, version)
        if after == before.policy:
            return before
    saved = _stored(await store.save_policy(conn, organization_id, after))
    told = {"changes": lifecycle.changes(before.policy, after), "version": saved.version}
    await record(conn, by.fact("seating_policy_changed", organization_id, told, reason=reason))
    return saved


async def require_permitted(conn: Conn, organization_id: OrganizationId, layout: Layout) -> None:
    """Refuse a layout with zones or seats that the organization's policy does not allow; all of them are told."""
    policy = (await load(conn, organization_id)).policy
    faults, paths = Faults(), ModelPaths()
    for index, zone in enumerate(layout.zones):
        for key, found in (("zone_type", refused_type), ("access_mode", refused_access)):
            for why in found(policy, zone):
                faults.add(paths.zone(index, key), FaultCode.ZONE_NOT_PERMITTED, f"Zone {zone.code}: {why}.")
    if refused := dict(refused_seats(policy, layout.zones)):
        for index, zone in enumerate(layout.zones):
            for number, row in enumerate(zone.rows):
                for place, seat in enumerate(row.seats):
                    if seat.code in refused:
                        where = paths.seat((index, number, place), "category")
                        faults.add(where, FaultCode.SEAT_NOT_PERMITTED, f"Seat {seat.code}: {refused[seat.code]}.")
    if faults.count:
        raise LayoutInvalid(faults)


def _decided(before: StoredPolicy, values: Mapping[str, object], role: Role, version: int | None) -> Policy:
    """The policy as it shall be, unless the caller has not seen what there is, or may not."""
    if version not in (None, before.version):
        raise PolicyChanged(version=before.version)
    if locked := values.keys() - changeable_fields(role, before.policy):
        raise PolicyFieldLocked(fields=sorted(locked))
    return changed(before.policy, values)


def _stored(row: tuple[Policy, int, datetime] | None) -> StoredPolicy:
    if row is None:
        return UNSAID
    policy, version, updated_at = row
    return StoredPolicy(policy=policy, version=version, updated_at=updated_at)
