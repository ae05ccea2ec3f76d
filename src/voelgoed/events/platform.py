"""What the platform's own staff see of events; what they do to them is done where places are known."""

from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.accounts.platform import get_organization
from voelgoed.db import Database
from voelgoed.events import usecases
from voelgoed.events.model import EventAtVenue, EventFilter, Status
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
