"""Roles within an organization: the rules about changing them, kept under locks, and told in the journal."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from voelgoed.accounts import rules, store
from voelgoed.accounts.model import Call, Member, Organization, Role
from voelgoed.accounts.refusals import SlugReserved
from voelgoed.db import Conn
from voelgoed.errors import DomainError, Kind
from voelgoed.ids import OrganizationId, UserId
from voelgoed.journal.model import Fact, RecordedFact
from voelgoed.journal.recording import record

OPERATOR = "operator"
"""What the journal calls whoever has the machine itself."""


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


class LastOwner(DomainError):
    """Without them the organization would have no owner."""

    kind = Kind.CONFLICT
    code = "last_owner"
    message = "This is the last owner of an organization: make somebody else an owner first."


class LastSuperAdmin(DomainError):
    """Without them nobody could run the installation by its pages."""

    kind = Kind.CONFLICT
    code = "last_super_admin"
    message = "This is the last super_admin of the installation: the operator appoints somebody else first."


async def found(
    conn: Conn, organization_id: OrganizationId, *, slug: str, name: str, call: Call | None
) -> Organization:
    """Make an organization; nobody is in it yet."""
    if slug in rules.RESERVED_SLUGS:
        raise SlugReserved(slug=slug)
    organization = await store.add_organization(conn, organization_id, slug, name)
    data = {"slug": slug, "name": name, "actor_type": call.actor.platform_kind if call else OPERATOR}
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
    require_change(by=by, current=current, to=role, owners_left=left)
    await store.set_member(conn, organization_id, user_id, role)
    data = {"user_id": str(user_id), "role_before": current, "role_after": role, **(about or {})}
    await record(conn, fact_of("member_role_changed", call, data, organization_id=organization_id, reason=reason))
    return await member_of(conn, organization_id, user_id)


async def keep_a_super_admin(conn: Conn, leaving: UserId) -> None:
    """Refuse to let the last one go. They are locked first, so that the last two cannot both go."""
    await store.lock_platform_roles(conn)
    if await store.list_super_admins(conn) == {leaving}:
        raise LastSuperAdmin


def require_change(*, by: Role, current: Role | None, to: Role | None, owners_left: int) -> None:
    """Refuse a change of role: one that is not theirs to make, and one that would leave nobody to make any."""
    if why := rules.refuse_role_change(by=by, current=current, to=to):
        raise RoleChangeRefused(why=why)
    if current is Role.OWNER and owners_left == 0:
        raise LastOwner


async def member_of(conn: Conn, organization_id: OrganizationId, user_id: UserId) -> Member:
    """One of the organization's people; anybody else does not exist."""
    member = await store.get_member(conn, organization_id, user_id)
    if member is None:
        raise MemberNotFound
    return member


async def name_people(conn: Conn, organization_id: OrganizationId, facts: Sequence[RecordedFact]) -> Mapping[UUID, str]:
    """What those are called who did something, or to whom it was done, as far as they are the organization's own."""
    ids = {fact.actor_id for fact in facts} | {person_of(fact) for fact in facts}
    return await store.name_people(conn, organization_id, [one for one in ids if one is not None])


def person_of(fact: RecordedFact) -> UUID | None:
    """Whom a fact is about, where it is about somebody."""
    told = fact.data.get("user_id")
    return UUID(told) if isinstance(told, str) else None


async def find_people(conn: Conn, organization_id: OrganizationId, ids: Collection[UUID]) -> dict[UUID, Member]:
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
    """A fact told by whoever asks, from where they ask; what they act as may be said in it."""
    return Fact(
        kind=kind,
        organization_id=organization_id or call.organization_id,
        actor_id=call.actor.id,
        request_id=call.request_id,
        origin=call.origin,
        reason=reason,
        data={"actor_type": call.actor.kind, **(data or {})},
    )
