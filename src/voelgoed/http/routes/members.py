"""The organization's people, their memberships as customers, and the keys of its programs."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from voelgoed.accounts import usecases
from voelgoed.accounts.idempotency import IdempotencyKeyReused
from voelgoed.accounts.model import MembershipStatus, Role
from voelgoed.accounts.permissions import Action
from voelgoed.accounts.refusals import MembershipExists, MembershipInvalid
from voelgoed.accounts.roles import LastOwner, MemberNotFound, RoleChangeRefused
from voelgoed.accounts.usecases import ApiKeyInvalid, ApiKeyNotFound, MembershipNotFound
from voelgoed.http.context import Caller, IdempotencyKey, once
from voelgoed.http.guard import guarded
from voelgoed.http.shapes import LIMIT, NO_NUL, Body, Cursor, Data, Email, Limit, Listed, Moment, Name, ReasonText, View
from voelgoed.ids import UserId
from voelgoed.paging import CursorInvalid

router = APIRouter(prefix="/api/admin", tags=["people"])

MemberRole = Literal[Role.OWNER, Role.ADMIN, Role.STAFF, Role.SCANNER, Role.CUSTOMER]
KeyRole = Literal[Role.ADMIN, Role.STAFF, Role.SCANNER]
Words = Annotated[str | None, Query(min_length=1, max_length=100, pattern=NO_NUL)]
Tier = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class MemberView(View):
    """One of the organization's people."""

    user_id: UUID
    email: str | None
    name: str
    is_guest: bool
    role: Role
    created_at: datetime
    updated_at: datetime


class NewMemberBody(Body):
    """Somebody who has signed in here before, and what they shall be."""

    email: Email
    role: MemberRole


class MemberBody(Body):
    """What somebody shall be."""

    role: MemberRole


class MembershipView(View):
    """A customer's tier."""

    id: UUID
    user_id: UUID
    name: str
    email: str | None
    tier: str
    status: MembershipStatus
    valid_from: datetime
    valid_to: datetime | None
    created_at: datetime
    updated_at: datetime


class NewMembershipBody(Body):
    """Whose tier, and for how long; from now and for ever unless said."""

    user_id: UUID
    tier: Tier
    valid_from: Moment | None = None
    valid_to: Moment | None = None


class RevokeBody(Body):
    """Why."""

    reason: ReasonText | None = None


class ApiKeyView(View):
    """A program's key, without its secret."""

    id: UUID
    name: str
    role: Role
    hint: str
    created_by: UUID
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewApiKeyView(ApiKeyView):
    """A key just made. The token is shown this once; null when the same ask is answered again."""

    token: str | None


class NewApiKeyBody(Body):
    """What the program is called, and what it may do."""

    name: Name
    role: KeyRole
    expires_at: Moment | None = None


@router.get("/members")
@guarded(Action.SEE_MEMBERS, CursorInvalid)
async def list_members(
    caller: Caller,
    role: Annotated[list[MemberRole] | None, Query(max_length=len(Role))] = None,
    q: Words = None,
    cursor: Cursor = None,
    limit: Limit = LIMIT,
) -> Listed[MemberView]:
    """The organization's people; `q` is a part of a name or an e-mail address."""
    page = await usecases.list_members(caller.services.db, caller.call, roles=role, words=q, cursor=cursor, limit=limit)
    return Listed(data=[MemberView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/members", status_code=201)
@guarded(Action.CHANGE_MEMBERS, MemberNotFound, RoleChangeRefused, LastOwner, IdempotencyKeyReused)
async def add_member(body: NewMemberBody, caller: Caller, idempotency_key: IdempotencyKey = None) -> Data[MemberView]:
    """Give somebody who has signed in here before a role."""
    services = caller.services
    member = await usecases.add_member(
        services.db,
        services.sessions,
        caller.call,
        email=body.email,
        role=body.role,
        once=once(idempotency_key, caller, "add_member"),
    )
    return Data(data=MemberView.model_validate(member))


@router.get("/members/{user_id}")
@guarded(Action.SEE_MEMBERS, MemberNotFound)
async def get_member(user_id: UUID, caller: Caller) -> Data[MemberView]:
    """One of the organization's people."""
    member = await usecases.get_member(caller.services.db, caller.call, UserId(user_id))
    return Data(data=MemberView.model_validate(member))


@router.put("/members/{user_id}")
@guarded(Action.CHANGE_MEMBERS, MemberNotFound, RoleChangeRefused, LastOwner)
async def set_member_role(user_id: UUID, body: MemberBody, caller: Caller) -> Data[MemberView]:
    """Change what somebody is here."""
    services = caller.services
    member = await usecases.set_member_role(services.db, services.sessions, caller.call, UserId(user_id), body.role)
    return Data(data=MemberView.model_validate(member))


@router.delete("/members/{user_id}", status_code=204)
@guarded(Action.CHANGE_MEMBERS, MemberNotFound, RoleChangeRefused, LastOwner)
async def remove_member(user_id: UUID, caller: Caller) -> None:
    """Take somebody out of the organization."""
    await usecases.remove_member(caller.services.db, caller.services.sessions, caller.call, UserId(user_id))


@router.get("/memberships")
@guarded(Action.SEE_MEMBERSHIPS, CursorInvalid)
async def list_memberships(
    caller: Caller,
    user_id: Annotated[UUID | None, Query()] = None,
    status: Annotated[MembershipStatus | None, Query()] = None,
    q: Words = None,
    cursor: Cursor = None,
    limit: Limit = LIMIT,
) -> Listed[MembershipView]:
    """Customers' memberships; `q` is a part of a name, an e-mail address or a tier."""
    page = await usecases.list_memberships(
        caller.services.db, caller.call, user_id=user_id, status=status, words=q, cursor=cursor, limit=limit
    )
    return Listed(data=[MembershipView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/memberships", status_code=201)
@guarded(Action.CHANGE_MEMBERSHIPS, MemberNotFound, MembershipExists, MembershipInvalid, IdempotencyKeyReused)
async def grant_membership(
    body: NewMembershipBody, caller: Caller, idempotency_key: IdempotencyKey = None
) -> Data[MembershipView]:
    """Give one of the organization's people a tier."""
    membership = await usecases.grant_membership(
        caller.services.db,
        caller.call,
        user_id=UserId(body.user_id),
        tier=body.tier,
        valid_from=body.valid_from,
        valid_to=body.valid_to,
        once=once(idempotency_key, caller, "grant_membership"),
    )
    return Data(data=MembershipView.model_validate(membership))


@router.post("/memberships/{membership_id}/revoke")
@guarded(Action.CHANGE_MEMBERSHIPS, MembershipNotFound)
async def revoke_membership(membership_id: UUID, body: RevokeBody, caller: Caller) -> Data[MembershipView]:
    """Take a tier away; the next check anywhere sees it."""
    membership = await usecases.revoke_membership(caller.services.db, caller.call, membership_id, reason=body.reason)
    return Data(data=MembershipView.model_validate(membership))


@router.get("/api-keys")
@guarded(Action.SEE_API_KEYS, CursorInvalid)
async def list_api_keys(caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT) -> Listed[ApiKeyView]:
    """The organization's keys, revoked ones included."""
    page = await usecases.list_api_keys(caller.services.db, caller.call, cursor=cursor, limit=limit)
    return Listed(data=[ApiKeyView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/api-keys", status_code=201)
@guarded(Action.CHANGE_API_KEYS, ApiKeyInvalid, IdempotencyKeyReused)
async def create_api_key(
    body: NewApiKeyBody, caller: Caller, idempotency_key: IdempotencyKey = None
) -> Data[NewApiKeyView]:
    """Make a key for a program; its secret is shown once."""
    made = await usecases.create_api_key(
        caller.services.db,
        caller.call,
        name=body.name,
        role=body.role,
        expires_at=body.expires_at,
        once=once(idempotency_key, caller, "create_api_key"),
    )
    return Data(data=NewApiKeyView(**ApiKeyView.model_validate(made.key).model_dump(), token=made.token))


@router.delete("/api-keys/{key_id}", status_code=204)
@guarded(Action.CHANGE_API_KEYS, ApiKeyNotFound)
async def revoke_api_key(key_id: UUID, caller: Caller) -> None:
    """End a key, everywhere, at once."""
    await usecases.revoke_api_key(caller.services.db, caller.services.sessions, caller.call, key_id)
