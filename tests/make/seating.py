"""Events with a hall and prices for tests, and what somebody holds or has bought of them."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg

from tests.make import passing
from tests.make.events import PATHS, make_event, make_venue
from tests.make.layouts import allow_everything, small_layout
from tests.make.prices import make_rule
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.events import lifecycle
from voelgoed.events.model import OPERATOR, Event, Order, Teller, Venue, Verb
from voelgoed.holds import inventory, operator
from voelgoed.holds.inventory import Plan, Wanted
from voelgoed.holds.model import OfferedZone
from voelgoed.ids import OrganizationId, new_id
from voelgoed.seating import halls, versions
from voelgoed.seating.model import EventLayout, Layout, LayoutId, Pin, VersionStatus
from voelgoed.seating.offer import Hall
from voelgoed.seating.overlay import Overlay
from voelgoed.seating.studio import Studio
from voelgoed.ticketing.model import StoredRule
from voelgoed.ticketing.offering import require_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated:
    """An event, where it takes place, its hall, and what each zone costs by its code."""

    event: Event
    venue: Venue
    hall: Hall
    rules: Mapping[str, StoredRule]

    @property
    def organization_id(self) -> OrganizationId:
        return self.event.organization_id

    @property
    def pin(self) -> Pin:
        assert self.hall.pin is not None
        return self.hall.pin

    @property
    def prices(self) -> dict[str, UUID]:
        """The rule of each zone, as an overlay names it."""
        return {code: rule.id for code, rule in self.rules.items()}

    def ordinal(self, code: str) -> int:
        return list(self.hall.codes).index(code)

    def wanted(self, overlay: Overlay | None = None) -> Wanted:
        """The same layout with another word about it; prices stay, unless the overlay names some."""
        overlay = overlay or Overlay()
        if not overlay.pricing_zones:
            overlay = replace(overlay, pricing_zones=self.prices)
        return Wanted(pin=self.pin, overrides=self.hall.written(overlay))


async def active_pin(studio: Studio, venue: Venue, layout: Layout | None = None) -> Pin:
    """A layout at a venue, with its first version active; whatever its zones are is allowed there."""
    await allow_everything(studio.db, venue.organization_id)
    made = await versions.create_layout(studio, venue.organization_id, venue.id, layout or small_layout(), by=OPERATOR)
    await activate(studio.db, venue.organization_id, Pin(made.layout_id, made.version))
    return Pin(made.layout_id, made.version)


async def next_pin(studio: Studio, organization_id: OrganizationId, layout_id: LayoutId, layout: Layout) -> Pin:
    """The next version of a layout, active; the one before is archived by that."""
    made = await versions.create_version(studio, organization_id, layout_id, layout, by=OPERATOR)
    await activate(studio.db, organization_id, Pin(layout_id, made.version))
    return Pin(layout_id, made.version)


async def activate(db: Database, organization_id: OrganizationId, pin: Pin) -> None:
    async with db.transaction(organization_id) as conn:
        await versions.move(conn, (organization_id, *pin), VersionStatus.ACTIVE, by=OPERATOR, reason=None)


async def seated_event(
    db: Database,
    studio: Studio,
    organization: Organization,
    layout: Layout | None = None,
    *,
    venue: Venue | None = None,
    pin: Pin | None = None,
    overlay: Overlay | None = None,
    amounts: Mapping[str, int] | None = None,
    status: str = "draft",
    **fields: Any,
) -> Seated:
    """An event with a hall and a price for each zone, walked to a status; its places are made when it is published.

    Without a pin it gets a layout of its own. `amounts` are by the codes of zones, in cents; a hundred rand otherwise.
    """
    venue = venue or await make_venue(db, organization, max_capacity=200_000)
    pin = pin or await active_pin(studio, venue, layout)
    hall = await halls.load_hall(studio, organization.id, pin)
    rules = {
        zone.code: await make_rule(
            db, organization, name=zone.name, amount_minor=(amounts or {}).get(zone.code, 10_000)
        )
        for zone in hall.layout.zones
    }
    event = await make_event(db, organization, venue, **fields)
    made = Seated(event=event, venue=venue, hall=hall, rules=rules)
    await save(studio, event, made.wanted(overlay))
    for verb in PATHS[status]:
        event = await move(studio, organization, event, verb)
    return replace(made, event=event)


async def move(studio: Studio, organization: Organization, event: Event, verb: Verb) -> Event:
    """Carry out a verb as the operator, with what it does to places."""
    return (await operator.move_event(studio, organization, event.id, Order(verb=verb, reason="in a test"))).event


async def publish(studio: Studio, event: Event, *, by: Teller = OPERATOR, version: int | None = None) -> Event:
    order = Order(verb=Verb.PUBLISH, version=version)
    return (await inventory.publish(studio, event.organization_id, event.id, order, by=by)).event


async def unpublish(studio: Studio, event: Event, *, by: Teller = OPERATOR, version: int | None = None) -> Event:
    order = Order(verb=Verb.UNPUBLISH, version=version)
    async with studio.db.transaction(event.organization_id) as conn:
        return (await inventory.unpublish(conn, event.organization_id, event.id, order, by=by)).event


async def save(studio: Studio, event: Event, wanted: Wanted, *, by: Teller = OPERATOR, seen: int | None = None) -> Plan:
    """Save an event's seating, with prices looked at as people's saves do."""
    return await inventory.save(studio, event.organization_id, event.id, wanted, by=by, seen=seen, check=require_prices)


@asynccontextmanager
async def as_registry(owner: Connection) -> AsyncIterator[Connection]:
    """A transaction of the only role that may write places: the owner can become it, the application cannot."""
    async with owner.transaction():
        await owner.execute("set local role voelgoed_registry")
        await owner.execute("select set_config('app.scope', 'system', true)")
        yield owner
    passing.let(2)  # nobody was told of it: what processes remember must be old enough to be asked for again


async def move_recorded_ends(conn: Connection, holds: Sequence[UUID]) -> None:
    """Write the ends that a test has given to holds into their facts too, because `voelgoed verify` compares them."""
    await conn.execute("set local role none")
    await conn.execute(
        "update journal j set data = jsonb_set(j.data, '{held_until}', to_jsonb(h.expires_at)) from seat_holds h"
        " where j.organization_id = h.organization_id and j.event_id = h.event_id and j.data ->> 'hold_id' = h.id::text"
        " and j.kind in ('seat_reserved', 'seat_hold_extended', 'seat_hold_handed_over') and h.status = 'active'"
        " and h.id = any ($1)",
        list(holds),
    )


async def hold_seat(owner: Connection, event: Event, ordinal: int, *, minutes: float = 10) -> UUID:
    """Let somebody hold a seat, or have held it, with minutes below nothing; the id of the hold."""
    hold_id = new_id()
    await _set_seat(
        owner,
        event,
        ordinal,
        "status = 'held', blocked_by = null, hold_id = $3, held_by = gen_random_uuid(), locked_at = now(),"
        " held_until = now() + make_interval(secs => $4)",
        hold_id,
        minutes * 60,
    )
    return hold_id


async def sell_seat(owner: Connection, event: Event, ordinal: int) -> UUID:
    """Let somebody have bought a seat; the id of the ticket."""
    ticket_id = new_id()
    await _set_seat(
        owner,
        event,
        ordinal,
        "status = 'sold', blocked_by = null, hold_id = null, held_by = null, held_until = null, ticket_id = $3",
        ticket_id,
    )
    return ticket_id


async def free_seat(owner: Connection, event: Event, ordinal: int) -> None:
    """Let a seat be had again."""
    await _set_seat(
        owner,
        event,
        ordinal,
        "status = 'available', blocked_by = null, hold_id = null, held_by = null, held_until = null, ticket_id = null",
    )


async def block_seat(owner: Connection, event: Event, ordinal: int) -> None:
    """Let somebody at the hall block a seat."""
    await _set_seat(owner, event, ordinal, "status = 'blocked', blocked_by = 'staff'")


async def take_places(owner: Connection, event: Event, zone_id: UUID, *, held: int = 0, sold: int = 0) -> None:
    """Let so many places of a zone sold by number be held and sold."""
    async with as_registry(owner):
        done = await owner.execute(
            "update event_zones set held = $3, sold = $4, version = version + 1 where event_id = $1 and zone_id = $2",
            event.id,
            zone_id,
            held,
            sold,
        )
    assert done == "UPDATE 1"


async def _set_seat(owner: Connection, event: Event, ordinal: int, values: str, *given: object) -> None:
    async with as_registry(owner):
        done = await owner.execute(
            f"update event_seats set {values}, version = version + 1 where event_id = $1 and ordinal = $2",
            event.id,
            ordinal,
            *given,
        )
    assert done == "UPDATE 1"


async def seat_rows(db: Database, event: Event) -> list[asyncpg.Record]:
    """The seats of an event as they stand in the table, in the order of their ordinals."""
    async with db.transaction(event.organization_id) as conn:
        return await conn.fetch("select * from event_seats where event_id = $1 order by ordinal", event.id)


async def zone_rows(db: Database, event: Event) -> list[asyncpg.Record]:
    """The zones of an event as they stand in the table, in the order of the layout."""
    async with db.transaction(event.organization_id) as conn:
        return await conn.fetch("select * from event_zones where event_id = $1 order by ordinal", event.id)


async def offered(db: Database, event: Event) -> dict[str, OfferedZone]:
    """The zones of an event that has its places, by code."""
    async with db.transaction(event.organization_id) as conn:
        zones = await inventory.offered_zones(conn, event.organization_id, event.id)
    return {zone.view.code: zone for zone in zones}


async def event_layout(db: Database, event: Event) -> EventLayout:
    """What an event has said of its seating."""
    async with db.transaction(event.organization_id) as conn:
        found = await halls.find(conn, event.organization_id, event.id)
    assert found is not None
    return found


async def event_now(db: Database, event: Event) -> Event:
    """The event as it stands."""
    async with db.transaction(event.organization_id) as conn:
        return (await lifecycle.find_at_venue(conn, event.organization_id, event.id))[0]


async def facts_of(db: Database, event: Event, *kinds: str) -> list[dict[str, Any]]:
    """What the journal tells of an event, of these kinds or of every kind, in the order it was written."""
    async with db.transaction(event.organization_id) as conn:
        rows = await conn.fetch(
            "select kind, seat_id, version, actor_id, request_id, data from journal"
            " where event_id = $1 and (kind = any ($2) or cardinality($2::text[]) = 0) order by xid, seq",
            event.id,
            list(kinds),
        )
    return [{**dict(row), "data": json.loads(row["data"])} for row in rows]
