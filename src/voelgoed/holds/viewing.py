"""What people see of an event's places: the map, how full it is, and how the tiers behind it stand."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.db import Database
from voelgoed.events import lifecycle
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import Teller
from voelgoed.holds import occupancy, reconcile
from voelgoed.holds.availability import Availability
from voelgoed.holds.hotmap import HotMap
from voelgoed.holds.occupancy import Minute, Occupancy
from voelgoed.holds.projection import Projection
from voelgoed.holds.reconcile import Report


@dataclass(frozen=True, slots=True)
class Tiers:
    """What a process has for looking at places."""

    db: Database
    availability: Availability
    projection: Projection


async def see_map(availability: Availability, catalogue: Catalogue, call: Call, event_id: UUID) -> HotMap:
    """The places of an event, to whoever may know of it."""
    return await availability.map_of(await catalogue.whose(call, event_id), event_id)


async def see_occupancy(availability: Availability, catalogue: Catalogue, call: Call, event_id: UUID) -> Occupancy:
    """How full an event is, to whoever may know of it."""
    return await availability.occupancy(await catalogue.whose(call, event_id), event_id)


async def list_minutes(db: Database, call: Call, event_id: UUID, *, since: datetime | None) -> list[Minute]:
    """How full an event was, to those who run it."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        await lifecycle.find_at_venue(conn, call.organization_id, event_id)
    return await occupancy.list_minutes(db, call.organization_id, event_id, since=since)


async def see_tiers(tiers: Tiers, call: Call, event_id: UUID) -> Report:
    """How what this process and Redis have of an event compares with PostgreSQL."""
    require(call.actor, Action.SEE_HOLDS)
    return await reconcile.look(tiers.db, tiers.availability, tiers.projection, call.organization_id, event_id)


async def mend_tiers(tiers: Tiers, call: Call, event_id: UUID) -> Report:
    """Have an event's places made anew in every tier; what was found before."""
    require(call.actor, Action.RECONCILE)
    return await reconcile.reconcile(
        tiers.db, tiers.availability, tiers.projection, call.organization_id, event_id, by=Teller.of(call)
    )
