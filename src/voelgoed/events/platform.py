"""What the platform's own staff do to events: they cancel and postpone, with a reason, never more."""

from uuid import UUID

from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.accounts.platform import Reason, get_organization
from voelgoed.db import Database
from voelgoed.events import usecases
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import EventAtVenue, EventFilter, Order, Status, Teller, Verb
from voelgoed.ids import OrganizationId
from voelgoed.paging import Page

NO_DRAFTS = EventFilter(statuses=frozenset(Status) - {Status.DRAFT})


async def list_events(
    db: Database, call: Call, organization_id: OrganizationId, *, cursor: str | None, limit: int
) -> Page[EventAtVenue]:
    """An organization's events, but for its drafts."""
    require(call.actor, Action.PLATFORM_SEE_EVENTS)
    await get_organization(db, call, organization_id)
    async with db.transaction(organization_id) as conn:
        return await usecases.listed(conn, organization_id, NO_DRAFTS, cursor=cursor, limit=limit)


async def intervene(
    db: Database, catalogue: Catalogue, call: Call, organization_id: OrganizationId, event_id: UUID, order: Order
) -> EventAtVenue:
    """Cancel or postpone an event: a super_admin for safety or the law, a tenant_manager with the tenant's approval."""
    require(call.actor, Action.PLATFORM_MOVE_EVENTS)
    assert order.verb in (Verb.CANCEL, Verb.POSTPONE)
    assert order.reason, "an intervention has a reason"
    Reason(call, order.reason, order.approval)
    by = Teller.of(call, is_platform=True)
    return await usecases.carry_out(db, catalogue, organization_id, event_id, order, by=by)
