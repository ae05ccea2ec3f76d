"""What the platform's own staff do to events: they cancel and postpone, with a reason, never more."""

from uuid import UUID

from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.accounts.platform import Reason
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import EventAtVenue, Order, Teller, Verb
from voelgoed.holds import usecases
from voelgoed.ids import OrganizationId
from voelgoed.seating.studio import Studio


async def intervene(
    studio: Studio, catalogue: Catalogue, call: Call, organization_id: OrganizationId, event_id: UUID, order: Order
) -> EventAtVenue:
    """Cancel or postpone an event: a super_admin for safety or the law, a tenant_manager with the tenant's approval."""
    require(call.actor, Action.PLATFORM_MOVE_EVENTS)
    assert order.verb in (Verb.CANCEL, Verb.POSTPONE)
    assert order.reason, "an intervention has a reason"
    Reason(call, order.reason, order.approval)
    by = Teller.of(call, is_platform=True)
    return await usecases.carry_out(studio, catalogue, organization_id, event_id, order, by=by)
