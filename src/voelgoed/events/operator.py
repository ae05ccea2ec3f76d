"""What the operator of an installation does to events, who has the machine itself and so needs no session.

Nothing is announced from here: what is cached elsewhere is right again within a second, and the feed reads the journal.
"""

from collections.abc import Iterable

from voelgoed.accounts.model import Organization
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.accounts.usecases import find_organization
from voelgoed.db import Database
from voelgoed.events import store, usecases
from voelgoed.events.model import OPERATOR, EventAtVenue, EventFilter, NewEvent, NewGate, NewVenue, Status, Venue
from voelgoed.events.refusals import EventNotFound, VenueNotFound
from voelgoed.paging import Page


async def organization_at(db: Database, slug: str) -> Organization:
    """The organization at this address."""
    found = await find_organization(db, slug=slug)
    if found is None:
        raise OrganizationNotFound(organization=slug)
    return found


async def list_venues(db: Database, place: Organization, *, limit: int) -> list[Venue]:
    """An organization's venues, oldest first."""
    async with db.transaction(place.id) as conn:
        return await store.list_venues(conn, place.id, after=None, limit=limit)


async def find_venue(db: Database, place: Organization, slug: str) -> Venue:
    """The venue at this address."""
    async with db.transaction(place.id) as conn:
        found = await store.find_venue(conn, place.id, slug)
    if found is None:
        raise VenueNotFound(venue=slug)
    return found


async def create_venue(db: Database, place: Organization, new: NewVenue, gates: Iterable[NewGate] = ()) -> Venue:
    """Make a venue, with gates."""
    async with db.transaction(place.id) as conn:
        venue = await usecases.make_venue(conn, place.id, new, by=OPERATOR)
        for gate in gates:
            await usecases.make_gate(conn, place.id, venue.id, gate, by=OPERATOR)
    return venue


async def list_events(
    db: Database, place: Organization, *, statuses: Iterable[Status], cursor: str | None, limit: int
) -> Page[EventAtVenue]:
    """An organization's events in the order of time."""
    async with db.transaction(place.id) as conn:
        return await usecases.listed(
            conn, place.id, EventFilter(statuses=frozenset(statuses)), cursor=cursor, limit=limit
        )


async def find_event(db: Database, place: Organization, slug: str) -> EventAtVenue:
    """The event at this address, whatever its status."""
    async with db.transaction(place.id) as conn:
        event = await store.find_event(conn, place.id, slug)
        if event is None:
            raise EventNotFound(event=slug)
        venues = await store.get_venues(conn, place.id, [event.venue_id])
    return EventAtVenue(event, venues[event.venue_id])


async def create_event(db: Database, place: Organization, new: NewEvent) -> EventAtVenue:
    """Make an event; it begins as a draft."""
    async with db.transaction(place.id) as conn:
        return await usecases.make_event(conn, place.id, new, by=OPERATOR)
