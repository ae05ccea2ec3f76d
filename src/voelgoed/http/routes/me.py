"""The own account."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Response

from voelgoed.accounts import usecases
from voelgoed.accounts.attempts import RateLimited
from voelgoed.accounts.model import MembershipStatus, Role
from voelgoed.accounts.permissions import Action
from voelgoed.accounts.roles import LastOwner, LastSuperAdmin
from voelgoed.accounts.signing import CredentialsWrong, PasswordRefused
from voelgoed.accounts.usecases import SessionNotFound
from voelgoed.http.context import Caller
from voelgoed.http.guard import guarded
from voelgoed.http.routes.auth import Locale, SessionOrganization, session_cookie
from voelgoed.http.shapes import Body, Data, Name, Password, View

router = APIRouter(prefix="/api/me", tags=["account"])


class OwnMembership(View):
    """A tier the person has here."""

    id: UUID
    tier: str
    status: MembershipStatus
    valid_from: datetime
    valid_to: datetime | None


class Place(View):
    """An organization the person belongs to."""

    slug: str
    name: str
    role: Role


class AccountUser(View):
    """The person, to themselves."""

    id: UUID
    email: str | None
    name: str
    locale: str
    is_guest: bool
    role: Role
    platform_roles: list[Role]


class AccountView(View):
    """Who is signed in, where, and as what. `csrf_token` is there when the session came by cookie."""

    user: AccountUser
    organization: SessionOrganization
    organizations: list[Place]
    memberships: list[OwnMembership]
    csrf_token: str | None


class AccountBody(Body):
    """What a person may change of themselves."""

    name: Name
    locale: Locale


class PasswordBody(Body):
    """The password that is, and the one that shall be."""

    current: Password
    new: Password


class DeleteBody(Body):
    """The password, once more; a guest has none."""

    password: Password | None = None


class SessionEntry(View):
    """A place where the person is signed in."""

    id: UUID
    organization: str
    created_at: datetime
    last_seen_at: datetime
    is_current: bool


@router.get("")
@guarded(Action.SEE_OWN_ACCOUNT)
async def own_account(caller: Caller) -> Data[AccountView]:
    """Who is signed in."""
    actor = caller.call.actor
    user, places, memberships = await usecases.own_account(caller.services.db, caller.call)
    return Data(
        data=AccountView(
            user=AccountUser(
                id=user.id,
                email=user.email,
                name=user.name,
                locale=user.locale,
                is_guest=user.is_guest,
                role=actor.role,
                platform_roles=sorted(actor.platform_roles),
            ),
            organization=SessionOrganization(
                id=caller.call.organization_id, slug=actor.organization_slug, name=actor.organization_name
            ),
            organizations=[Place(slug=place["slug"], name=place["name"], role=Role(place["role"])) for place in places],
            memberships=[OwnMembership.model_validate(membership) for membership in memberships],
            csrf_token=caller.csrf_token,
        )
    )


@router.patch("", status_code=204)
@guarded(Action.CHANGE_OWN_ACCOUNT)
async def change_own_account(body: AccountBody, caller: Caller) -> None:
    """Another name or language."""
    services = caller.services
    await usecases.change_own_account(services.db, services.sessions, caller.call, name=body.name, locale=body.locale)


@router.put("/password", status_code=204)
@guarded(Action.CHANGE_OWN_ACCOUNT, CredentialsWrong, PasswordRefused, RateLimited)
async def change_password(body: PasswordBody, caller: Caller) -> None:
    """Another password; every other session of the person ends."""
    await usecases.change_password(caller.services.door, caller.call, current=body.current, new=body.new)


@router.get("/sessions")
@guarded(Action.SEE_OWN_ACCOUNT)
async def own_sessions(caller: Caller) -> Data[list[SessionEntry]]:
    """Where the person is signed in."""
    rows = await usecases.own_sessions(caller.services.db, caller.services.sessions, caller.call)
    current = caller.call.actor.session_id
    return Data(
        data=[
            SessionEntry(
                id=row["id"],
                organization=row["slug"],
                created_at=row["created_at"],
                last_seen_at=row["last_seen_at"],
                is_current=row["id"] == current,
            )
            for row in rows
        ]
    )


@router.delete("/sessions/{session_id}", status_code=204)
@guarded(Action.CHANGE_OWN_ACCOUNT, SessionNotFound)
async def end_own_session(session_id: UUID, caller: Caller) -> None:
    """Sign out elsewhere."""
    await usecases.end_own_session(caller.services.db, caller.services.sessions, caller.call, session_id)


@router.post("/delete", status_code=204)
@guarded(Action.CHANGE_OWN_ACCOUNT, CredentialsWrong, LastOwner, LastSuperAdmin, RateLimited)
async def delete_own_account(body: DeleteBody, caller: Caller, response: Response) -> None:
    """Forget the person; what they bought stays, without their name."""
    await usecases.delete_own_account(caller.services.door, caller.call, password=body.password)
    response.headers["set-cookie"] = f"{session_cookie(caller, '')}; Max-Age=0"
