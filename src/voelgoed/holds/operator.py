"""What the operator of an installation does to events and their places, who has the machine itself and so no session.

Nothing is announced from here: what is cached elsewhere is right again within a second, and the feed reads the journal.
"""

from uuid import UUID

from voelgoed.accounts.model import Organization
from voelgoed.events import lifecycle
from voelgoed.events.model import OPERATOR, EventAtVenue, Order
from voelgoed.holds import usecases
from voelgoed.seating.studio import Studio


async def move_event(studio: Studio, place: Organization, event_id: UUID, order: Order) -> EventAtVenue:
    """Carry out a verb, with what it does to places."""
    done = await usecases.move(studio, place.id, event_id, order, by=OPERATOR)
    await usecases.let_go(studio.db, done, by=OPERATOR)
    async with studio.db.transaction(place.id) as conn:
        event, venue = await lifecycle.find_at_venue(conn, place.id, event_id)
    return EventAtVenue(event, venue)
