"""The events' questions to the database."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from voelgoed.db import Conn, load_queries
from voelgoed.errors import DomainError
from voelgoed.events.model import (
    Detail,
    Event,
    EventFilter,
    Gate,
    GateStatus,
    Json,
    NewEvent,
    NewGate,
    NewVenue,
    Replacement,
    Status,
    Summary,
    Venue,
)
from voelgoed.events.refusals import (
    CapacityExceeded,
    EventInUse,
    EventSlugTaken,
    GateCodeTaken,
    SettingsInvalid,
    VenueInUse,
    VenueSlugTaken,
)
from voelgoed.ids import OrganizationId

Q = load_queries(Path(__file__).with_name("queries.sql"))
Row = asyncpg.Record

TAKEN: Mapping[str, type[DomainError]] = {
    "venues_slug_key": VenueSlugTaken,
    "gates_code_key": GateCodeTaken,
    "events_slug_key": EventSlugTaken,
}
FORMS: Mapping[str, str] = {
    "venues_settings_form": "settings",
    "gates_settings_form": "settings",
    "events_settings_form": "settings",
    "venues_address_form": "address",
}
"""What PostgreSQL bounds by its own way of writing JSON, which is longer than ours."""


@contextmanager
def _refusing() -> Iterator[None]:
    """A name that somebody else has, more JSON than is kept, a venue that is too small: refusals, not failures."""
    try:
        yield
    except asyncpg.UniqueViolationError as taken:
        refusal = TAKEN.get(taken.constraint_name or "")
        if refusal is None:
            raise
        raise refusal from taken
    except asyncpg.CheckViolationError as broken:
        if broken.constraint_name == "venues_hold_their_layouts":
            raise CapacityExceeded(why="a layout of the venue has more places") from broken
        if broken.constraint_name == "venues_hold_their_events":
            raise CapacityExceeded(why="an event at the venue offers more places") from broken
        field = FORMS.get(broken.constraint_name or "")
        if field is None:
            raise
        raise SettingsInvalid(**{field: {"": "too large"}}) from broken


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _read(row: Row, *names: str) -> dict[str, Any]:
    """The columns of a row, with its JSON read."""
    return dict(row) | {name: msgspec.json.decode(row[name]) for name in names}


def _venue(row: Row | None) -> Venue | None:
    return Venue(**_read(row, "address", "settings")) if row else None


def _gate(row: Row | None) -> Gate | None:
    return Gate(**_read(row, "settings") | {"status": GateStatus(row["status"])}) if row else None


def _event(row: Row | None) -> Event | None:
    return Event(**_read(row, "settings") | {"status": Status(row["status"])}) if row else None


def _events(rows: Iterable[Row]) -> list[Event]:
    return [event for row in rows if (event := _event(row))]


def _asked(wanted: EventFilter, after: tuple[datetime, UUID] | None) -> tuple[object, ...]:
    """What the two lists of events are asked with, in the order of their parameters."""
    what = (sorted(wanted.statuses), wanted.venue_id, wanted.recurrence_group_id, wanted.words)
    return *what, *(after or (None, None))


def _summary(row: Row) -> Summary:
    known = _read(row, "settings", "venue_settings") | {"status": Status(row["status"])}
    return Summary(**{name: known[name] for name in Summary.__slots__})


async def add_venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID, new: NewVenue) -> Venue:
    with _refusing():
        row = await conn.fetchrow(
            Q["add_venue"],
            organization_id,
            venue_id,
            new.name,
            new.slug,
            new.timezone,
            _json(new.address),
            new.max_capacity,
            _json(new.settings),
        )
    venue = _venue(row)
    assert venue is not None
    return venue


async def get_venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID) -> Venue | None:
    return _venue(await conn.fetchrow(Q["get_venue"], organization_id, venue_id))


async def get_venues(conn: Conn, organization_id: OrganizationId, ids: Iterable[UUID]) -> dict[UUID, Venue]:
    rows = await conn.fetch(Q["get_venues"], organization_id, list(ids))
    return {row["id"]: Venue(**_read(row, "address", "settings")) for row in rows}


async def find_venue(conn: Conn, organization_id: OrganizationId, slug: str) -> Venue | None:
    return _venue(await conn.fetchrow(Q["find_venue"], organization_id, slug))


async def list_venues(conn: Conn, organization_id: OrganizationId, *, after: UUID | None, limit: int) -> list[Venue]:
    rows = await conn.fetch(Q["list_venues"], organization_id, after, limit)
    return [Venue(**_read(row, "address", "settings")) for row in rows]


async def lock_venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID) -> Venue | None:
    return _venue(await conn.fetchrow(Q["lock_venue"], organization_id, venue_id))


async def share_venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID) -> Venue | None:
    return _venue(await conn.fetchrow(Q["share_venue"], organization_id, venue_id))


async def save_venue(conn: Conn, venue: Venue) -> Venue:
    with _refusing():
        row = await conn.fetchrow(
            Q["save_venue"],
            venue.organization_id,
            venue.id,
            venue.name,
            venue.slug,
            venue.timezone,
            _json(venue.address),
            venue.max_capacity,
            _json(venue.settings),
        )
    saved = _venue(row)
    assert saved is not None
    return saved


async def remove_venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID) -> None:
    try:
        await conn.execute(Q["remove_venue"], organization_id, venue_id)
    except asyncpg.ForeignKeyViolationError as used:
        raise VenueInUse from used


async def find_larger_events(
    conn: Conn, organization_id: OrganizationId, venue_id: UUID, max_capacity: int
) -> list[dict[str, object]]:
    rows = await conn.fetch(Q["find_larger_events"], organization_id, venue_id, max_capacity)
    return [{"event_id": str(row["id"]), "name": row["name"], "capacity": row["capacity"]} for row in rows]


async def add_gate(conn: Conn, organization_id: OrganizationId, gate_id: UUID, venue_id: UUID, new: NewGate) -> Gate:
    with _refusing():
        row = await conn.fetchrow(
            Q["add_gate"],
            organization_id,
            gate_id,
            venue_id,
            new.gate_code,
            new.name,
            new.status,
            new.capacity,
            _json(new.settings),
        )
    gate = _gate(row)
    assert gate is not None
    return gate


async def get_gate(conn: Conn, organization_id: OrganizationId, gate_id: UUID) -> Gate | None:
    return _gate(await conn.fetchrow(Q["get_gate"], organization_id, gate_id))


async def list_gates(
    conn: Conn,
    organization_id: OrganizationId,
    venue_id: UUID,
    *,
    status: GateStatus | None,
    after: UUID | None,
    limit: int,
) -> list[Gate]:
    rows = await conn.fetch(Q["list_gates"], organization_id, venue_id, status, after, limit)
    return [Gate(**_read(row, "settings") | {"status": GateStatus(row["status"])}) for row in rows]


async def lock_gate(conn: Conn, organization_id: OrganizationId, gate_id: UUID) -> Gate | None:
    return _gate(await conn.fetchrow(Q["lock_gate"], organization_id, gate_id))


async def save_gate(conn: Conn, gate: Gate) -> Gate:
    with _refusing():
        row = await conn.fetchrow(
            Q["save_gate"],
            gate.organization_id,
            gate.id,
            gate.gate_code,
            gate.name,
            gate.status,
            gate.capacity,
            _json(gate.settings),
        )
    saved = _gate(row)
    assert saved is not None
    return saved


async def remove_gate(conn: Conn, organization_id: OrganizationId, gate_id: UUID) -> None:
    await conn.execute(Q["remove_gate"], organization_id, gate_id)


async def remove_gates_of_venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID) -> list[UUID]:
    return [row["id"] for row in await conn.fetch(Q["remove_gates_of_venue"], organization_id, venue_id)]


async def add_event(conn: Conn, organization_id: OrganizationId, event_id: UUID, new: NewEvent) -> Event:
    with _refusing():
        row = await conn.fetchrow(
            Q["add_event"],
            organization_id,
            event_id,
            new.venue_id,
            new.name,
            new.slug,
            new.description,
            new.start_at,
            new.end_at,
            new.sale_start_at,
            new.sale_end_at,
            new.capacity,
            _json(new.settings),
            new.recurrence_group_id,
            new.is_automatic,
        )
    event = _event(row)
    assert event is not None
    return event


async def get_event(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> Event | None:
    return _event(await conn.fetchrow(Q["get_event"], organization_id, event_id))


async def find_event(conn: Conn, organization_id: OrganizationId, slug: str) -> Event | None:
    return _event(await conn.fetchrow(Q["find_event"], organization_id, slug))


async def lock_event(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> Event | None:
    return _event(await conn.fetchrow(Q["lock_event"], organization_id, event_id))


async def read_clock(conn: Conn) -> datetime:
    now: datetime = await conn.fetchval(Q["read_clock"])
    return now


async def save_event(conn: Conn, event: Event) -> Event:
    with _refusing():
        row = await conn.fetchrow(
            Q["save_event"],
            event.organization_id,
            event.id,
            event.venue_id,
            event.name,
            event.slug,
            event.description,
            event.status,
            event.start_at,
            event.end_at,
            event.sale_start_at,
            event.sale_end_at,
            event.capacity,
            _json(event.settings),
            event.replaced_by_event_id,
            event.recurrence_group_id,
            event.rescheduled_at,
            event.rescheduled_end_at,
            event.postponement_reason,
            event.is_automatic,
            event.inventory_epoch,
        )
    saved = _event(row)
    assert saved is not None
    return saved


async def remove_event(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> None:
    try:
        await conn.execute(Q["remove_event"], organization_id, event_id)
    except asyncpg.ForeignKeyViolationError as used:
        raise EventInUse from used


async def list_events(
    conn: Conn, organization_id: OrganizationId, wanted: EventFilter, after: tuple[datetime, UUID] | None, limit: int
) -> list[Event]:
    return _events(await conn.fetch(Q["list_events"], organization_id, *_asked(wanted, after), limit))


async def list_events_backwards(
    conn: Conn, organization_id: OrganizationId, wanted: EventFilter, after: tuple[datetime, UUID] | None, limit: int
) -> list[Event]:
    return _events(await conn.fetch(Q["list_events_backwards"], organization_id, *_asked(wanted, after), limit))


async def list_upcoming(
    conn: Conn,
    organization_id: OrganizationId,
    *,
    venue_id: UUID | None,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Summary]:
    start_at, event_id = after or (None, None)
    rows = await conn.fetch(Q["list_upcoming"], organization_id, venue_id, start_at, event_id, limit)
    return [_summary(row) for row in rows]


async def get_detail(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> Detail | None:
    row = await conn.fetchrow(Q["get_detail"], organization_id, event_id)
    if row is None:
        return None
    replacement = None
    if row["replacement_id"]:
        replacement = Replacement(id=row["replacement_id"], slug=row["replacement_slug"], name=row["replacement_name"])
    return Detail(
        summary=_summary(row),
        description=row["description"],
        address=msgspec.json.decode(row["address"]),
        replacement=replacement,
    )


async def find_shown_event(conn: Conn, organization_id: OrganizationId, slug: str) -> UUID | None:
    found: UUID | None = await conn.fetchval(Q["find_shown_event"], organization_id, slug)
    return found


async def find_organization_of_event(conn: Conn, event_id: UUID) -> Row | None:
    return await conn.fetchrow(Q["find_organization_of_event"], event_id)


async def lock_replacements(conn: Conn, organization_id: OrganizationId) -> None:
    await conn.execute(Q["lock_replacements"], organization_id)


async def follow_replacements(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> list[UUID]:
    return [row["id"] for row in await conn.fetch(Q["follow_replacements"], organization_id, event_id)]


async def list_due(conn: Conn, limit: int) -> list[tuple[OrganizationId, UUID]]:
    rows = await conn.fetch(Q["list_due"], limit)
    return [(OrganizationId(row["organization_id"]), row["id"]) for row in rows]


async def touch_catalogue(conn: Conn, organization_id: OrganizationId) -> int:
    version: int = await conn.fetchval(Q["touch_catalogue"], organization_id)
    return version


async def get_catalogue(conn: Conn, organization_id: OrganizationId) -> tuple[int, bool]:
    """The number of what the organization shows, and whether its staff may change venues; nothing said yet: 1, no."""
    row = await conn.fetchrow(Q["get_catalogue"], organization_id)
    return (row["version"], row["staff_may_change_venues"]) if row else (1, False)


async def set_policy(conn: Conn, organization_id: OrganizationId, *, staff_may_change_venues: bool) -> int:
    version: int = await conn.fetchval(Q["set_policy"], organization_id, staff_may_change_venues)
    return version
