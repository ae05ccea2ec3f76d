"""What the operator of an installation does with prices and seating, who has the machine and so needs no session."""

from uuid import UUID

from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.events.model import OPERATOR
from voelgoed.holds import inventory
from voelgoed.holds.inventory import Wanted
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import offering, rulebook, store
from voelgoed.ticketing.model import NewRule, StoredRule
from voelgoed.ticketing.offering import Seating


async def list_rules(db: Database, place: Organization) -> list[StoredRule]:
    """An organization's pricing rules, oldest first."""
    async with db.transaction(place.id) as conn:
        return await store.list_rules(conn, place.id, after=None, limit=rulebook.RULES_MAX)


async def see_seating(studio: Studio, place: Organization, event_id: UUID) -> Seating:
    """What the organiser has made of an event's seating."""
    return await offering.seating_of(studio, await inventory.plan(studio, place.id, event_id))


async def save_seating(
    studio: Studio, place: Organization, event_id: UUID, wanted: Wanted, *, version: int | None = None
) -> Seating:
    """Give an event a layout, or another word about it."""
    saved = await inventory.save(
        studio, place.id, event_id, wanted, by=OPERATOR, seen=version, check=offering.require_prices
    )
    return await offering.seating_of(studio, saved)


async def create_rule(db: Database, place: Organization, new: NewRule) -> StoredRule:
    """Make a pricing rule."""
    async with db.transaction(place.id) as conn:
        return await rulebook.make_rule(conn, place.id, new, by=OPERATOR)
