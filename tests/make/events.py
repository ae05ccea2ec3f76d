"""Venues, gates and events for tests."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from voelgoed.accounts.model import Actor, Call, Organization, Role
from voelgoed.cache import Cache
from voelgoed.db import Database
from voelgoed.events import lifecycle, store, usecases
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import (
    OPERATOR,
    Event,
    EventAtVenue,
    Gate,
    NewDate,
    NewEvent,
    NewGate,
    NewVenue,
    Order,
    Teller,
    Venue,
    Verb,
)
from voelgoed.ids import OrganizationId, UserId, new_id
from voelgoed.redis import RedisLink

PATHS: dict[str, tuple[Verb, ...]] = {
    "draft": (),
    "published": (Verb.PUBLISH,),
    "live": (Verb.PUBLISH, Verb.GO_LIVE),
    "ended": (Verb.PUBLISH, Verb.GO_LIVE, Verb.END),
    "cancelled": (Verb.PUBLISH, Verb.CANCEL),
    "postponed": (Verb.PUBLISH, Verb.POSTPONE),
    "archived": (Verb.ARCHIVE,),
}
"""How an event comes to each status."""


def soon(**ahead: float) -> datetime:
    """A moment from now, to the second."""
    return (datetime.now(UTC) + timedelta(**ahead)).replace(microsecond=0)


def call_of(organization: Organization, role: Role = Role.OWNER, user_id: UUID | None = None) -> Call:
    """A call by somebody of an organization."""
    actor = Actor(
        role=role,
        organization_id=organization.id,
        organization_slug=organization.slug,
        organization_name=organization.name,
        user_id=UserId(user_id or new_id()),
    )
    return Call(actor=actor, request_id=new_id())


def catalogue_of(db: Database, link: RedisLink) -> Catalogue:
    """A process's catalogue, as the wiring makes it."""
    return Catalogue(db, Cache(link=link))


async def make_venue(db: Database, organization: Organization, **fields: Any) -> Venue:
    known: dict[str, Any] = {
        "name": "Die Skouburg",
        "slug": f"venue-{new_id().hex}",
        "timezone": "Africa/Johannesburg",
        "max_capacity": 1_000,
    }
    async with db.transaction(organization.id) as conn:
        return await store.add_venue(conn, organization.id, new_id(), NewVenue(**known | fields))


async def make_gate(db: Database, venue: Venue, **fields: Any) -> Gate:
    known: dict[str, Any] = {"gate_code": "MAIN", "name": "Main entrance"}
    async with db.transaction(venue.organization_id) as conn:
        return await store.add_gate(conn, venue.organization_id, new_id(), venue.id, NewGate(**known | fields))


async def make_event(
    db: Database, organization: Organization, venue: Venue | None = None, status: str = "draft", **fields: Any
) -> Event:
    """An event, walked to a status by the verbs that lead there."""
    venue = venue or await make_venue(db, organization)
    known: dict[str, Any] = {
        "venue_id": venue.id,
        "name": "Die Laaste Boemeltrein",
        "slug": f"event-{new_id().hex}",
        "start_at": soon(days=30),
        "end_at": soon(days=30, hours=3),
    }
    async with db.transaction(organization.id) as conn:
        event = (await usecases.make_event(conn, organization.id, NewEvent(**known | fields), by=OPERATOR)).event
    for verb in PATHS[status]:
        event = await move(db, organization.id, event.id, verb)
    return event


async def carry_out(db: Database, catalogue: Catalogue, call: Call, event_id: UUID, order: Order) -> EventAtVenue:
    """Give an order to the lifecycle alone, as somebody of the organization, and announce what came of it."""
    async with db.transaction(call.organization_id) as conn:
        done = await lifecycle.move(conn, call.organization_id, event_id, order, by=Teller.of(call))
        _, venue = await lifecycle.find_at_venue(conn, call.organization_id, event_id)
    await catalogue.announce(lifecycle.kind_of(order.verb), done)
    return EventAtVenue(done.event, venue)


async def move(
    db: Database,
    organization_id: OrganizationId,
    event_id: UUID,
    verb: Verb,
    *,
    new_date: NewDate | None = None,
    postponement_reason: str | None = None,
) -> Event:
    """Carry out a verb, as the operator."""
    order = Order(verb=verb, reason="in a test", new_date=new_date, postponement_reason=postponement_reason)
    async with db.transaction(organization_id) as conn:
        return (await lifecycle.move(conn, organization_id, event_id, order, by=OPERATOR)).event
