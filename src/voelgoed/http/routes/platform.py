"""What the platform's own staff do: the organization is named in the path, a reason is always given."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from voelgoed.accounts import platform
from voelgoed.accounts.permissions import Action
from voelgoed.accounts.platform import ApprovalRequired, OwnOrganization
from voelgoed.accounts.refusals import OrganizationInvalid, SlugReserved, SlugTaken
from voelgoed.accounts.roles import LastOwner, MemberNotFound, RoleChangeRefused
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.events import platform as event_platform
from voelgoed.events.model import EventAtVenue, Order, Status, Verb
from voelgoed.holds import platform as place_platform
from voelgoed.http.context import Caller, IfMatch, seen
from voelgoed.http.guard import guarded
from voelgoed.http.routes.events import MOVE_ERRORS, PostponeBody, VenueBrief
from voelgoed.http.routes.members import MemberRole, MemberView
from voelgoed.http.shapes import LIMIT, SOME_TEXT, Body, Cursor, Data, Limit, Listed, Name, ReasonText, Slug, View
from voelgoed.ids import OrganizationId, UserId
from voelgoed.paging import CursorInvalid

router = APIRouter(prefix="/api/platform/orgs", tags=["platform"])

Approval = Annotated[str, Field(min_length=1, max_length=200, pattern=SOME_TEXT)]


class OrganizationView(View):
    """An organization, to the platform."""

    id: UUID
    slug: str
    name: str
    created_at: datetime
    suspended_at: datetime | None


class NewOrganizationBody(Body):
    """An address and a name."""

    slug: Slug
    name: Name


class InterventionBody(Body):
    """Why, and for a tenant_manager on whose word."""

    reason: ReasonText
    tenant_approval_reference: Approval | None = None


class RoleInterventionBody(InterventionBody):
    """What somebody shall be, and why."""

    role: MemberRole


class PlatformEventView(View):
    """An event, to the platform: enough to know it by. What its organization writes about it is theirs."""

    id: UUID
    name: str
    slug: str
    status: Status
    start_at: datetime
    end_at: datetime
    rescheduled_at: datetime | None
    rescheduled_end_at: datetime | None
    version: int
    venue: VenueBrief


class PostponeInterventionBody(PostponeBody):
    """Why, for a tenant_manager on whose word, and the new date if it is known."""

    tenant_approval_reference: Approval | None = None


@router.get("")
@guarded(Action.PLATFORM_SEE_ORGANIZATIONS, CursorInvalid)
async def list_organizations(caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT) -> Listed[OrganizationView]:
    """Every organization of the installation."""
    page = await platform.list_organizations(caller.services.db, caller.call, cursor=cursor, limit=limit)
    return Listed(data=[OrganizationView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("", status_code=201)
@guarded(Action.PLATFORM_CREATE_ORGANIZATION, SlugTaken, SlugReserved, OrganizationInvalid)
async def create_organization(body: NewOrganizationBody, caller: Caller) -> Data[OrganizationView]:
    """Found an organization."""
    made = await platform.create_organization(caller.services.db, caller.call, slug=body.slug, name=body.name)
    return Data(data=OrganizationView.model_validate(made))


@router.get("/{org_id}")
@guarded(Action.PLATFORM_SEE_ORGANIZATIONS, OrganizationNotFound)
async def get_organization(org_id: UUID, caller: Caller) -> Data[OrganizationView]:
    """One organization."""
    found = await platform.get_organization(caller.services.db, caller.call, OrganizationId(org_id))
    return Data(data=OrganizationView.model_validate(found))


@router.post("/{org_id}/suspend")
@guarded(Action.PLATFORM_INTERVENE, OrganizationNotFound, ApprovalRequired, OwnOrganization)
async def suspend(org_id: UUID, body: InterventionBody, caller: Caller) -> Data[OrganizationView]:
    """Close an organization for now; its people are signed out at once."""
    return await _set_suspended(org_id, body, caller, is_suspended=True)


@router.post("/{org_id}/resume")
@guarded(Action.PLATFORM_INTERVENE, OrganizationNotFound, ApprovalRequired)
async def resume(org_id: UUID, body: InterventionBody, caller: Caller) -> Data[OrganizationView]:
    """Open an organization again."""
    return await _set_suspended(org_id, body, caller, is_suspended=False)


@router.get("/{org_id}/members")
@guarded(Action.PLATFORM_INTERVENE, OrganizationNotFound, CursorInvalid)
async def list_team(org_id: UUID, caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT) -> Listed[MemberView]:
    """Those who work at an organization; its customers are its own."""
    page = await platform.list_team(caller.services.db, caller.call, OrganizationId(org_id), cursor=cursor, limit=limit)
    return Listed(data=[MemberView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.put("/{org_id}/members/{user_id}")
@guarded(
    Action.PLATFORM_INTERVENE, OrganizationNotFound, MemberNotFound, RoleChangeRefused, LastOwner, ApprovalRequired
)
async def set_member_role(org_id: UUID, user_id: UUID, body: RoleInterventionBody, caller: Caller) -> Data[MemberView]:
    """Change what somebody is in an organization, as its owner could."""
    member = await platform.set_member_role(
        caller.services.db,
        caller.services.sessions,
        caller.call,
        OrganizationId(org_id),
        UserId(user_id),
        body.role,
        reason=body.reason,
        approval=body.tenant_approval_reference,
    )
    return Data(data=MemberView.model_validate(member))


@router.get("/{org_id}/events")
@guarded(Action.PLATFORM_SEE_EVENTS, OrganizationNotFound, CursorInvalid)
async def list_organization_events(
    org_id: UUID, caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT
) -> Listed[PlatformEventView]:
    """An organization's events, but for its drafts: nobody outside knows of those."""
    page = await event_platform.list_events(
        caller.services.db, caller.call, OrganizationId(org_id), cursor=cursor, limit=limit
    )
    return Listed(data=[_event(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/{org_id}/events/{event_id}/cancel")
@guarded(Action.PLATFORM_MOVE_EVENTS, *MOVE_ERRORS, ApprovalRequired)
async def cancel_event(
    org_id: UUID, event_id: UUID, body: InterventionBody, caller: Caller, if_match: IfMatch = None
) -> Data[PlatformEventView]:
    """Cancel an event for safety, abuse or the law, or because its organization asked for it."""
    order = Order(verb=Verb.CANCEL, reason=body.reason, approval=body.tenant_approval_reference, version=seen(if_match))
    return await _intervene(org_id, event_id, order, caller)


@router.post("/{org_id}/events/{event_id}/postpone")
@guarded(Action.PLATFORM_MOVE_EVENTS, *MOVE_ERRORS, ApprovalRequired)
async def postpone_event(
    org_id: UUID, event_id: UUID, body: PostponeInterventionBody, caller: Caller, if_match: IfMatch = None
) -> Data[PlatformEventView]:
    """Postpone an event for safety, abuse or the law, or because its organization asked for it."""
    order = Order(
        verb=Verb.POSTPONE,
        reason=body.reason,
        approval=body.tenant_approval_reference,
        version=seen(if_match),
        new_date=body.new_date(),
        postponement_reason=body.postponement_reason,
    )
    return await _intervene(org_id, event_id, order, caller)


async def _intervene(org_id: UUID, event_id: UUID, order: Order, caller: Caller) -> Data[PlatformEventView]:
    moved = await place_platform.intervene(
        caller.services.studio, caller.services.catalogue, caller.call, OrganizationId(org_id), event_id, order
    )
    return Data(data=_event(moved))


def _event(found: EventAtVenue) -> PlatformEventView:
    known = {name: getattr(found.event, name) for name in PlatformEventView.model_fields if name != "venue"}
    return PlatformEventView(**known, venue=VenueBrief.model_validate(found.venue))


async def _set_suspended(
    org_id: UUID, body: InterventionBody, caller: Caller, *, is_suspended: bool
) -> Data[OrganizationView]:
    changed = await platform.set_suspended(
        caller.services.db,
        caller.services.sessions,
        caller.call,
        OrganizationId(org_id),
        is_suspended=is_suspended,
        reason=body.reason,
        approval=body.tenant_approval_reference,
    )
    return Data(data=OrganizationView.model_validate(changed))
