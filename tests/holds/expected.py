"""What the tables must say of an event's places, worked out from what it offers; and what they do say."""

import json
from typing import Any, NamedTuple
from uuid import UUID

from tests.make.seating import event_layout, event_now, facts_of, seat_rows, zone_rows
from voelgoed.db import Database
from voelgoed.events.model import Event, Status
from voelgoed.holds import inventory
from voelgoed.seating.offer import Offer
from voelgoed.seating.studio import Studio

PUBLISHED = (Status.PUBLISHED, Status.LIVE, Status.POSTPONED)


class SeatRow(NamedTuple):
    """A seat without what counts its changes."""

    ordinal: int
    seat_id: UUID
    zone_id: UUID
    status: str
    blocked_by: str | None


class Places(NamedTuple):
    """The seats and zones of an event."""

    seats: list[SeatRow]
    zones: list[dict[str, Any]]


NOTHING = Places([], [])


def places_of(made: Offer) -> Places:
    """What an offer comes to when nobody has bought anything."""
    hall, view = made.hall, made.view
    seats = []
    for ordinal, (zone, _, _) in enumerate(hall.layout.seats()):
        why = view.blocked.get(ordinal)
        status = "blocked" if why else "available"
        seats.append(SeatRow(ordinal, hall.seat_id(ordinal), hall.zone_id(zone.code), status, why and why.value))
    zones = [
        {
            "ordinal": ordinal,
            "zone_id": hall.zone_id(zone.code),
            "zone_code": zone.code,
            "name": zone.name,
            "zone_type": zone.zone_type.value,
            "access_mode": zone.access_mode.value,
            "membership_tier": zone.membership_tier,
            "allowed_roles": list(zone.allowed_roles),
            "is_enabled": zone.is_enabled,
            "categories": {category.value: count for category, count in zone.categories.items()},
            "pricing_rule_id": zone.pricing_rule_id,
            "capacity": zone.capacity,
            "blocked": zone.blocked_count,
        }
        for ordinal, zone in enumerate(view.zones)
    ]
    return Places(seats, zones)


async def stored_places(db: Database, event: Event) -> Places:
    """What the tables say; held and sold are nothing here, and stand beside."""
    seats = [SeatRow(*(row[name] for name in SeatRow._fields)) for row in await seat_rows(db, event)]
    zones = []
    for row in await zone_rows(db, event):
        kept = {name: value for name, value in row.items() if name not in ("organization_id", "event_id")}
        for name in ("version", "held", "sold"):
            del kept[name]
        zones.append(kept | {"categories": json.loads(kept["categories"])})
    return Places(seats, zones)


async def versions_of(db: Database, event: Event) -> tuple[list[int], list[int]]:
    """How often each seat and each zone was changed."""
    seats, zones = await seat_rows(db, event), await zone_rows(db, event)
    return [row["version"] for row in seats], [row["version"] for row in zones]


async def require_agreement(studio: Studio, event: Event) -> Event:
    """Status and places agree, and the places are those of what the event says now; the event as it stands."""
    found = await event_now(studio.db, event)
    stored = await stored_places(studio.db, event)
    if found.status in PUBLISHED:
        assert stored == places_of((await inventory.plan(studio, event.organization_id, event.id)).offer)
        assert (await event_layout(studio.db, event)).making is None
    else:
        assert stored.zones == []
        if stored.seats:  # begun and broken off: nobody's, and known to be so
            assert (await event_layout(studio.db, event)).making is not None
    return found


async def whole_state(db: Database, event: Event) -> list[Any]:
    """Everything that a refusal must leave as it was: the event, what it says, its places, and the journal's length."""
    async with db.transaction(event.organization_id) as conn:
        facts = await conn.fetchval("select count(*) from journal where organization_id = $1", event.organization_id)
        said = await conn.fetch("select * from event_layouts where event_id = $1", event.id)
    return [
        await event_now(db, event),
        [tuple(row) for row in said],
        [tuple(row) for row in await seat_rows(db, event)],
        [tuple(row) for row in await zone_rows(db, event)],
        facts,
    ]


async def require_ledger(db: Database, event: Event) -> None:
    """Every change of a seat since its places were made is told once: its versions follow each other without a gap."""
    facts = await facts_of(db, event)
    made = [
        place for place, fact in enumerate(facts) if fact["kind"] in ("event_inventory_created", "event_layout_changed")
    ]
    told: dict[UUID, list[int]] = {}
    for fact in facts[made[-1] + 1 if made else 0 :]:
        if fact["kind"] in ("seat_blocked", "seat_unblocked"):
            told.setdefault(fact["seat_id"], []).append(fact["version"])
    for row in await seat_rows(db, event):
        assert told.get(row["seat_id"], []) == list(range(2, row["version"] + 1))
    assert len(made) == (await event_now(db, event)).inventory_epoch
