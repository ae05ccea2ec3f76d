"""Roles within an organization: the rules about changing them, kept under locks, and told in the journal."""

from collections.abc import Collection, Mapping
from uuid import UUID

from voelgoed.accounts import rules, store
from voelgoed.accounts.model import Call, Member, Organization, Role
from voelgoed.db import Conn
from voelgoed.errors import DomainError, Kind
from voelgoed.ids import OrganizationId, UserId
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record


class MemberNotFound(DomainError):
    """Nobody in this organization has this id or address."""

    kind = Kind.MISSING
    code = "member_not_found"
    message = "There is no such person in this organization."


class UserNotFound(DomainError):
    """Nobody has registered with this address."""

    kind = Kind.MISSING
    code = "user_not_found"
    message = "Nobody has registered with this e-mail address yet."


class RoleChangeRefused(DomainError):
    """This change of role is not theirs to make."""

    kind = Kind.DENIED
    code = "role_change_refused"
    message = "This change of role is not allowed."


async def found(
    conn: Conn, organization_id: OrganizationId, *, slug: str, name: str, call: Call | None
) -> Organization:
    """Make an organization; nobody is in it yet."""
    organization = await store.add_organization(conn, organization_id, slug, name)
    data = {"slug": slug, "name": name}
    if call is None:
        await record(conn, Fact(kind="organization_created", organization_id=organization_id, data=data))
    else:
        await record(conn, fact_of("organization_created", call, data, organization_id=organization_id))
    return organization


async def change_role(
    conn: Conn,
    call: Call,
    organization_id: OrganizationId,
    user_id: UserId,
    role: Role,
    *,
    by: Role,
    reason: str | None = None,
    about: Mapping[str, object] | None = None,
) -> Member:
    """Set a role within the rules, and record it. Owners are locked first, so that the last two cannot both go."""
    owners = await store.lock_owners(conn, organization_id)
    before = await store.get_member(conn, organization_id, user_id)
    left = len(owners - {user_id}) if role is not Role.OWNER else 1
    current = before.role if before else None
    if before and before.is_guest and role is not Role.CUSTOMER:
        raise RoleChangeRefused(why="a guest has no way to sign in again: let them register first")
    if why := rules.refuse_role_change(by=by, current=current, to=role, owners_left=left):
        raise RoleChangeRefused(why=why)
    await store.set_member(conn, organization_id, user_id, role)
    data = {"user_id": str(user_id), "role_before": current, "role_after": role, **(about or {})}
    await record(conn, fact_of("member_role_changed", call, data, organization_id=organization_id, reason=reason))
    return await member_of(conn, organization_id, user_id)


async def member_of(conn: Conn, organization_id: OrganizationId, user_id: UserId) -> Member:
    """One of the organization's people; anybody else does not exist."""
    member = await store.get_member(conn, organization_id, user_id)
    if member is None:
        raise MemberNotFound
    return member


async def name_people(conn: Conn, organization_id: OrganizationId, ids: Collection[UUID]) -> dict[UUID, Member]:
    """Those of the organization's people who have these ids."""
    return {member.user_id: member for member in await store.name_members(conn, organization_id, list(set(ids)))}


def fact_of(
    kind: str,
    call: Call,
    data: Mapping[str, object] | None = None,
    *,
    organization_id: OrganizationId | None = None,
    reason: str | None = None,
) -> Fact:
    """A fact told by whoever asks, from where they ask."""
    return Fact(
        kind=kind,
        organization_id=organization_id or call.organization_id,
        actor_id=call.actor.id,
        request_id=call.request_id,
        origin=call.origin,
        reason=reason,
        data=data or {},
    )
