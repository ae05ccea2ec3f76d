"""What an organization's people do with accounts: members, memberships, API keys, their own account."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from voelgoed.accounts import idempotency, roles, rules, store, tokens
from voelgoed.accounts.idempotency import Once
from voelgoed.accounts.model import ApiKey, Call, Member, Membership, MembershipStatus, Organization, Role, User
from voelgoed.accounts.permissions import Action, PermissionDenied, require
from voelgoed.accounts.refusals import MembershipInvalid
from voelgoed.accounts.roles import LastOwner, MemberNotFound, fact_of
from voelgoed.accounts.sessions import Sessions
from voelgoed.accounts.signing import PASSWORD_RESET, Door, PasswordRefused, prove
from voelgoed.db import Conn, Database
from voelgoed.errors import DomainError, Kind
from voelgoed.ids import OrganizationId, UserId, new_id
from voelgoed.journal import search
from voelgoed.journal.model import Page as AuditPage, SearchFilter
from voelgoed.journal.recording import record
from voelgoed.network import CONNECTIONS
from voelgoed.paging import Page, after_id, page_by_id


class MembershipNotFound(DomainError):
    """There is no such membership, or it is not active."""

    kind = Kind.MISSING
    code = "membership_not_found"
    message = "There is no such active membership."


class ApiKeyInvalid(DomainError):
    """The key would have run out before it was made."""

    kind = Kind.INVALID
    code = "api_key_invalid"
    message = "A key must end in the future, or not at all."


class ApiKeyNotFound(DomainError):
    """There is no such key, or it is revoked."""

    kind = Kind.MISSING
    code = "api_key_not_found"
    message = "There is no such API key in use."


class SessionNotFound(DomainError):
    """The person has no such session."""

    kind = Kind.MISSING
    code = "session_not_found"
    message = "You have no such session."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A key just made; the token is None when the same ask is answered again."""

    key: ApiKey
    token: str | None


async def found_organization(db: Database, *, slug: str, name: str) -> Organization:
    """Make a new organization: the operator of the installation, from the command line."""
    organization_id = OrganizationId(new_id())
    async with db.transaction(organization_id) as conn:
        return await roles.found(conn, organization_id, slug=slug, name=name, call=None)


async def find_organization(db: Database, *, slug: str) -> Organization | None:
    """The organization at this address, if there is one."""
    async with db.system_transaction() as conn:
        return await store.find_organization(conn, slug)


async def list_members(
    db: Database, call: Call, *, roles: Collection[Role] | None, words: str | None, cursor: str | None, limit: int
) -> Page[Member]:
    """The organization's people, oldest account first: those with such a role, and the words in name or address."""
    require(call.actor, Action.SEE_MEMBERS)
    async with db.transaction(call.organization_id) as conn:
        found = await store.list_members(
            conn, call.organization_id, roles=roles, words=words, after=after_id(cursor), limit=limit + 1
        )
    return page_by_id(found, limit, lambda member: member.user_id)


async def get_member(db: Database, call: Call, user_id: UserId) -> Member:
    """One of the organization's people."""
    require(call.actor, Action.SEE_MEMBERS)
    async with db.transaction(call.organization_id) as conn:
        return await roles.member_of(conn, call.organization_id, user_id)


async def add_member(
    db: Database, sessions: Sessions, call: Call, *, email: str, role: Role, once: Once | None
) -> Member:
    """Give somebody who has been here a role. Whoever has not does not exist for this organization."""
    require(call.actor, Action.CHANGE_MEMBERS)
    _person(call)
    async with db.transaction(call.organization_id) as conn:
        if done := await idempotency.recall(conn, call, once):
            return await roles.member_of(conn, call.organization_id, UserId(UUID(str(done["id"]))))
        found = await store.find_member_by_email(conn, call.organization_id, rules.normal_email(email))
        if found is None:
            raise MemberNotFound
        member = await roles.change_role(conn, call, call.organization_id, found.user_id, role, by=call.actor.role)
        await idempotency.remember(conn, call, once, {"id": str(member.user_id)})
    sessions.end(member.user_id)
    return member


async def set_member_role(db: Database, sessions: Sessions, call: Call, user_id: UserId, role: Role) -> Member:
    """Change what somebody is here; their sessions feel it at once."""
    require(call.actor, Action.CHANGE_MEMBERS)
    _person(call)

    async def work() -> Member:
        async with db.transaction(call.organization_id) as conn:
            await roles.member_of(conn, call.organization_id, user_id)
            return await roles.change_role(conn, call, call.organization_id, user_id, role, by=call.actor.role)

    member = await db.attempt(work)
    sessions.end(user_id)
    return member


async def remove_member(db: Database, sessions: Sessions, call: Call, user_id: UserId) -> None:
    """Take somebody out of the organization and end their sessions here; their account stays."""
    require(call.actor, Action.CHANGE_MEMBERS)
    _person(call)

    async def work() -> None:
        async with db.transaction(call.organization_id) as conn:
            owners = await store.lock_owners(conn, call.organization_id)
            member = await roles.member_of(conn, call.organization_id, user_id)
            roles.require_change(by=call.actor.role, current=member.role, to=None, owners_left=len(owners - {user_id}))
            await store.remove_member(conn, call.organization_id, user_id)
            await store.revoke_sessions_in(conn, call.organization_id, user_id)
            about = {"user_id": str(user_id), "role_before": member.role}
            await record(conn, fact_of("member_removed", call, about))

    await db.attempt(work)
    sessions.end(user_id)


async def list_memberships(
    db: Database,
    call: Call,
    *,
    user_id: UUID | None,
    status: MembershipStatus | None,
    words: str | None,
    cursor: str | None,
    limit: int,
) -> Page[Membership]:
    """Customers' memberships, oldest first."""
    require(call.actor, Action.SEE_MEMBERSHIPS)
    async with db.transaction(call.organization_id) as conn:
        found = await store.list_memberships(
            conn,
            call.organization_id,
            user_id=user_id,
            status=status,
            words=words,
            after=after_id(cursor),
            limit=limit + 1,
        )
    return page_by_id(found, limit, lambda membership: membership.id)


async def grant_membership(
    db: Database,
    call: Call,
    *,
    user_id: UserId,
    tier: str,
    valid_from: datetime | None,
    valid_to: datetime | None,
    once: Once | None,
) -> Membership:
    """Give one of the organization's people a tier."""
    require(call.actor, Action.CHANGE_MEMBERSHIPS)
    if valid_from and valid_to and valid_to <= valid_from:
        raise MembershipInvalid
    async with db.transaction(call.organization_id) as conn:
        if done := await idempotency.recall(conn, call, once):
            return await _membership(conn, call.organization_id, UUID(str(done["id"])))
        await roles.member_of(conn, call.organization_id, user_id)
        membership = await store.add_membership(
            conn, call.organization_id, new_id(), user_id=user_id, tier=tier, valid_from=valid_from, valid_to=valid_to
        )
        about = {"membership_id": str(membership.id), "user_id": str(user_id), "tier": tier}
        await record(conn, fact_of("membership_granted", call, about))
        await idempotency.remember(conn, call, once, {"id": str(membership.id)})
    return membership


async def revoke_membership(db: Database, call: Call, membership_id: UUID, *, reason: str | None) -> Membership:
    """Take a tier away; the next check anywhere sees it."""
    require(call.actor, Action.CHANGE_MEMBERSHIPS)
    async with db.transaction(call.organization_id) as conn:
        membership = await store.revoke_membership(conn, call.organization_id, membership_id)
        if membership is None:
            raise MembershipNotFound
        about = {"membership_id": str(membership.id), "user_id": str(membership.user_id), "tier": membership.tier}
        await record(conn, fact_of("membership_revoked", call, about, reason=reason))
    return membership


async def list_api_keys(db: Database, call: Call, *, cursor: str | None, limit: int) -> Page[ApiKey]:
    """The organization's keys, revoked ones included."""
    require(call.actor, Action.SEE_API_KEYS)
    async with db.transaction(call.organization_id) as conn:
        found = await store.list_api_keys(conn, call.organization_id, after=after_id(cursor), limit=limit + 1)
    return page_by_id(found, limit, lambda key: key.id)


async def create_api_key(
    db: Database, call: Call, *, name: str, role: Role, expires_at: datetime | None, once: Once | None
) -> NewApiKey:
    """Make a key for a program. Only a person does this, and the key lives as long as they lead here."""
    require(call.actor, Action.CHANGE_API_KEYS)
    person = _person(call)
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise ApiKeyInvalid
    async with db.transaction(call.organization_id) as conn:
        if done := await idempotency.recall(conn, call, once):
            found = await store.get_api_key(conn, call.organization_id, UUID(str(done["id"])))
            assert found is not None
            return NewApiKey(key=found, token=None)
        token = tokens.new_api_key()
        key = await store.add_api_key(
            conn,
            call.organization_id,
            new_id(),
            name=name,
            role=role,
            hint=tokens.hint(token),
            token_hash=tokens.token_hash(token),
            created_by=person,
            expires_at=expires_at,
        )
        await record(conn, fact_of("api_key_created", call, {"api_key_id": str(key.id), "name": name, "role": role}))
        await idempotency.remember(conn, call, once, {"id": str(key.id)})
    return NewApiKey(key=key, token=token)


async def revoke_api_key(db: Database, sessions: Sessions, call: Call, key_id: UUID) -> ApiKey:
    """End a key, here and in every process."""
    require(call.actor, Action.CHANGE_API_KEYS)
    _person(call)
    async with db.transaction(call.organization_id) as conn:
        key = await store.revoke_api_key(conn, call.organization_id, key_id)
        if key is None:
            raise ApiKeyNotFound
        await record(conn, fact_of("api_key_revoked", call, {"api_key_id": str(key.id), "name": key.name}))
    sessions.end(key.id)
    return key


async def search_audit(
    db: Database, call: Call, wanted: SearchFilter, *, cursor: str | None, limit: int
) -> tuple[AuditPage, Mapping[UUID, str]]:
    """The organization's own journal, newest first, and what the people in it are called."""
    require(call.actor, Action.SEARCH_AUDIT)
    async with db.transaction(call.organization_id) as conn:
        page = await search.search(conn, call.organization_id, wanted, cursor, limit)
        return page, await roles.name_people(conn, call.organization_id, page.facts)


async def own_account(db: Database, call: Call) -> tuple[User, list[store.Row], list[Membership]]:
    """The person, where they belong, and what they are members of here."""
    require(call.actor, Action.SEE_OWN_ACCOUNT)
    person = _person(call)
    async with db.system_transaction() as conn:
        found = await store.get_user(conn, person)
        assert found is not None
        places = await store.organizations_of_user(conn, person)
    async with db.transaction(call.organization_id) as conn:
        memberships = await store.list_memberships(conn, call.organization_id, user_id=person, after=None, limit=200)
    return found[0], places, memberships


async def change_own_account(db: Database, sessions: Sessions, call: Call, *, name: str, locale: str) -> User:
    """Another name or language."""
    require(call.actor, Action.CHANGE_OWN_ACCOUNT)
    person = _person(call)
    async with db.transaction(call.organization_id) as conn:
        user = await store.change_user(conn, person, name=name, locale=locale)
        assert user is not None
        await record(conn, fact_of("account_changed", call, {"locale": locale}))
    sessions.end(person)
    return user


async def change_password(door: Door, call: Call, *, current: str, new: str) -> None:
    """Another password; every other session of the person ends, and so do links to a new one."""
    require(call.actor, Action.CHANGE_OWN_ACCOUNT)
    person = _person(call)
    user = await _proven(door, call, person, current)
    if why := rules.refuse_password(new, email=user.email or ""):
        raise PasswordRefused(reason=why)
    password_hash = await door.passwords.hash(new, network=call.network(CONNECTIONS))
    async with door.db.transaction(call.organization_id) as conn:
        await store.set_password_hash(conn, person, password_hash)
        await store.use_up_one_time_tokens(conn, person, PASSWORD_RESET)
        await store.revoke_sessions_of_user(conn, person, but=call.actor.session_id)
        await record(conn, fact_of("password_changed", call))
    door.sessions.end(person)


async def own_sessions(db: Database, sessions: Sessions, call: Call) -> list[store.Row]:
    """Where the person is signed in, latest use first."""
    require(call.actor, Action.SEE_OWN_ACCOUNT)
    async with db.system_transaction() as conn:
        return await store.list_sessions(conn, _person(call), idle_s=sessions.idle_s)


async def end_own_session(db: Database, sessions: Sessions, call: Call, session_id: UUID) -> None:
    """Sign out elsewhere."""
    require(call.actor, Action.CHANGE_OWN_ACCOUNT)
    async with db.transaction(call.organization_id) as conn:
        if not await store.revoke_session(conn, session_id, _person(call)):
            raise SessionNotFound
        await record(conn, fact_of("session_ended", call, {"session_id": str(session_id)}))
    sessions.end(session_id)


async def delete_own_account(door: Door, call: Call, *, password: str | None) -> None:
    """Forget the person everywhere. What they bought stays, with nobody's name on it."""
    require(call.actor, Action.CHANGE_OWN_ACCOUNT)
    person = _person(call)
    if not call.actor.is_guest:
        await _proven(door, call, person, password or "")

    async def work() -> None:
        async with door.db.system_transaction() as conn:
            for place in await store.organizations_of_user(conn, person):
                owners = await store.lock_owners(conn, place["organization_id"])
                if owners == {person}:
                    raise LastOwner(organization=place["slug"])
                await store.remove_member(conn, place["organization_id"], person)
                await store.revoke_memberships_of_user(conn, place["organization_id"], person)
                await record(conn, fact_of("account_deleted", call, organization_id=place["organization_id"]))
            if Role.SUPER_ADMIN in call.actor.platform_roles:
                await roles.keep_a_super_admin(conn, person)
            await store.forget_user(conn, person)
            await store.revoke_sessions_of_user(conn, person)

    await door.db.attempt(work)
    door.sessions.end(person)


def _person(call: Call) -> UserId:
    """The person who asks; a program's key has no account of its own."""
    if call.actor.user_id is None:
        raise PermissionDenied(why="this needs a person, not an API key")
    return call.actor.user_id


async def _proven(door: Door, call: Call, person: UserId, password: str) -> User:
    """The person, who has just shown their password once more; wrong ones count as guesses."""
    async with door.db.system_transaction() as conn:
        found = await store.get_user(conn, person)
    user, password_hash = found or (None, None)
    account = user.email if user and user.email else str(person)
    await prove(door, call, account=account, password_hash=password_hash, password=password)
    assert user is not None
    return user


async def _membership(conn: Conn, organization_id: OrganizationId, membership_id: UUID) -> Membership:
    membership = await store.get_membership(conn, organization_id, membership_id)
    if membership is None:
        raise MembershipNotFound
    return membership
