"""What the platform's own staff do to organizations: always with a reason, always in that organization's journal."""

from collections.abc import Mapping
from uuid import UUID

from voelgoed.accounts import roles, store
from voelgoed.accounts.model import TEAM_ROLES, Call, Member, Organization, Role
from voelgoed.accounts.permissions import Action, require
from voelgoed.accounts.roles import fact_of
from voelgoed.accounts.sessions import Sessions
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.db import Conn, Database
from voelgoed.errors import DomainError, Kind
from voelgoed.ids import OrganizationId, UserId, new_id
from voelgoed.journal import search
from voelgoed.journal.model import Page as AuditPage, SearchFilter
from voelgoed.journal.recording import record
from voelgoed.paging import Page, after_id, page_by_id


class ApprovalRequired(DomainError):
    """A tenant_manager acts only with the organization's own consent."""

    kind = Kind.DENIED
    code = "approval_required"
    message = "A tenant_manager needs the organization's approval: give its reference."


class OwnOrganization(DomainError):
    """Whoever closed the place where they are signed in would be out with their next request."""

    kind = Kind.CONFLICT
    code = "own_organization"
    message = "You are signed in at this organization: sign in at another one to suspend it."


class Reason:
    """Why the platform intervenes, and on whose word."""

    __slots__ = ("_by", "approval", "text")

    def __init__(self, call: Call, text: str, approval: str | None) -> None:
        """Refuse a tenant_manager without the organization's consent; a super_admin answers for themselves."""
        if Role.SUPER_ADMIN not in call.actor.platform_roles and not approval:
            raise ApprovalRequired
        self.text = text
        self.approval = approval
        self._by = call.actor.platform_kind

    def about(self) -> dict[str, str]:
        told = {"tenant_approval_reference": self.approval} if self.approval else {}
        return {"actor_type": self._by, **told}


async def list_organizations(db: Database, call: Call, *, cursor: str | None, limit: int) -> Page[Organization]:
    """Every organization of the installation."""
    require(call.actor, Action.PLATFORM_SEE_ORGANIZATIONS)
    async with db.system_transaction() as conn:
        found = await store.list_organizations(conn, after_id(cursor), limit + 1)
    return page_by_id(found, limit, lambda organization: organization.id)


async def get_organization(db: Database, call: Call, organization_id: OrganizationId) -> Organization:
    """One organization."""
    require(call.actor, Action.PLATFORM_SEE_ORGANIZATIONS)
    async with db.system_transaction() as conn:
        return await _organization(conn, organization_id)


async def create_organization(db: Database, call: Call, *, slug: str, name: str) -> Organization:
    """Found an organization."""
    require(call.actor, Action.PLATFORM_CREATE_ORGANIZATION)
    organization_id = OrganizationId(new_id())
    async with db.transaction(organization_id) as conn:
        return await roles.found(conn, organization_id, slug=slug, name=name, call=call)


async def set_suspended(
    db: Database,
    sessions: Sessions,
    call: Call,
    organization_id: OrganizationId,
    *,
    is_suspended: bool,
    reason: str,
    approval: str | None,
) -> Organization:
    """Close an organization for now, or open it again. Its people are signed out at once."""
    require(call.actor, Action.PLATFORM_INTERVENE)
    why = Reason(call, reason, approval)
    if is_suspended and organization_id == call.actor.organization_id:
        raise OwnOrganization
    async with db.transaction(organization_id) as conn:
        await _organization(conn, organization_id)
        organization = await store.set_suspended(conn, organization_id, is_suspended=is_suspended)
        kind = "organization_suspended" if is_suspended else "organization_resumed"
        await record(conn, fact_of(kind, call, why.about(), organization_id=organization_id, reason=why.text))
    sessions.end(organization_id)
    return organization


async def list_team(
    db: Database, call: Call, organization_id: OrganizationId, *, cursor: str | None, limit: int
) -> Page[Member]:
    """Those who work at an organization, whose roles may have to be changed. Its customers are its own."""
    require(call.actor, Action.PLATFORM_INTERVENE)
    async with db.transaction(organization_id) as conn:
        await _organization(conn, organization_id)
        found = await store.list_members(
            conn, organization_id, roles=TEAM_ROLES, words=None, after=after_id(cursor), limit=limit + 1
        )
    return page_by_id(found, limit, lambda member: member.user_id)


async def set_member_role(
    db: Database,
    sessions: Sessions,
    call: Call,
    organization_id: OrganizationId,
    user_id: UserId,
    role: Role,
    *,
    reason: str,
    approval: str | None,
) -> Member:
    """Change what somebody is in an organization, as its owner could."""
    require(call.actor, Action.PLATFORM_INTERVENE)
    why = Reason(call, reason, approval)
    async with db.transaction(organization_id) as conn:
        await _organization(conn, organization_id)
        await roles.member_of(conn, organization_id, user_id)
        member = await roles.change_role(
            conn, call, organization_id, user_id, role, by=Role.OWNER, reason=why.text, about=why.about()
        )
    sessions.end(user_id)
    return member


async def search_audit(
    db: Database,
    call: Call,
    organization_id: OrganizationId,
    wanted: SearchFilter,
    *,
    reason: str,
    approval: str | None,
    cursor: str | None,
    limit: int,
) -> tuple[AuditPage, Mapping[UUID, str]]:
    """Read an organization's journal; that it was read, and why, is in it too."""
    require(call.actor, Action.PLATFORM_SEARCH_AUDIT)
    why = Reason(call, reason, approval)
    async with db.transaction(organization_id) as conn:
        await _organization(conn, organization_id)
        page = await search.search(conn, organization_id, wanted, cursor, limit)
        names = await roles.name_people(conn, organization_id, page.facts)
        kind = "audit_read_by_platform"
        await record(conn, fact_of(kind, call, why.about(), organization_id=organization_id, reason=why.text))
    return page, names


async def _organization(conn: Conn, organization_id: OrganizationId) -> Organization:
    organization = await store.get_organization(conn, organization_id)
    if organization is None:
        raise OrganizationNotFound
    return organization
