"""What the operator of an installation does to events and their places, who has the machine itself and so no session.

Nothing is announced from here: what is cached elsewhere is right again within a second, and the feed reads the journal.
"""

from uuid import UUID

from voelgoed.accounts.model import Organization
from voelgoed.events import lifecycle
from voelgoed.events.model import OPERATOR, EventAtVenue, Order, Verb
from voelgoed.holds import inventory, usecases
from voelgoed.seating.studio import Studio


async def move_event(studio: Studio, place: Organization, event_id: UUID, order: Order) -> EventAtVenue:
    """Carry out a verb, with what it does to places."""
    if order.verb is Verb.PUBLISH:
        await inventory.publish(studio, place.id, event_id, order, by=OPERATOR)
    async with studio.db.transaction(place.id) as conn:
        if order.verb is Verb.UNPUBLISH:
            await inventory.unpublish(conn, place.id, event_id, order, by=OPERATOR)
        elif order.verb is not Verb.PUBLISH:
            await lifecycle.move(conn, place.id, event_id, order, by=OPERATOR)
        event, venue = await lifecycle.find_at_venue(conn, place.id, event_id)
    await usecases.let_go(studio.db, event, by=OPERATOR)
    return EventAtVenue(event, venue)
