"""What the platform's own staff do to seating: they say what an organization may offer, and lock it; with a reason."""

from collections.abc import Mapping

from voelgoed.accounts.model import Call, Role
from voelgoed.accounts.permissions import Action, require
from voelgoed.accounts.platform import get_organization
from voelgoed.db import Database
from voelgoed.events.model import Teller
from voelgoed.ids import OrganizationId
from voelgoed.seating import policies
from voelgoed.seating.policies import StoredPolicy


async def get_policy(db: Database, call: Call, organization_id: OrganizationId) -> StoredPolicy:
    """An organization's seating policy."""
    require(call.actor, Action.PLATFORM_SET_POLICY)
    await get_organization(db, call, organization_id)
    async with db.transaction(organization_id) as conn:
        return await policies.load(conn, organization_id)


async def change_policy(
    db: Database,
    call: Call,
    organization_id: OrganizationId,
    values: Mapping[str, object],
    *,
    reason: str,
    version: int | None,
) -> StoredPolicy:
    """Change any field of an organization's seating policy, locks as well."""
    require(call.actor, Action.PLATFORM_SET_POLICY)
    assert reason, "an intervention has a reason"
    await get_organization(db, call, organization_id)
    by = Teller.of(call, is_platform=True)
    async with db.transaction(organization_id) as conn:
        return await policies.save(
            conn, organization_id, values, by=by, role=Role.SUPER_ADMIN, reason=reason, version=version
        )
