"""The places' questions to the database. What writes them are functions of voelgoed_registry, called here."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import asyncpg
import msgspec

from voelgoed.db import Conn, load_queries
from voelgoed.holds.model import Counts, EventSeat, OfferedZone, SeatFilter, SeatStatus
from voelgoed.ids import OrganizationId
from voelgoed.seating.model import AccessMode, Category, Pin, ZoneType
from voelgoed.seating.overlay import PlaceKind, ZoneView

Q = load_queries(Path(__file__).with_name("queries.sql"))
NOBODY = Counts(available=0, held=0, sold=0, blocked=0)


async def add_seats(
    conn: Conn,
    organization_id: OrganizationId,
    event_id: UUID,
    pin: Pin,
    piece: range,
    blocked: tuple[Sequence[int], Sequence[str]],
) -> None:
    await conn.execute(Q["add_seats"], organization_id, event_id, *pin, piece.start, piece.stop, *blocked)


async def add_zones(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, zones: Iterable[Mapping[str, object]]
) -> None:
    await conn.execute(Q["add_zones"], organization_id, event_id, _json(list(zones)))


async def remove_inventory(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> int:
    """Remove every place, unless some are held or sold: how many."""
    touched: int = await conn.fetchval(Q["remove_inventory"], organization_id, event_id)
    return touched


async def clear_seats(conn: Conn, organization_id: OrganizationId, event_id: UUID, limit: int) -> int:
    removed: int = await conn.fetchval(Q["clear_seats"], organization_id, event_id, limit)
    return removed


async def change_inventory(
    conn: Conn,
    organization_id: OrganizationId,
    event_id: UUID,
    *,
    closed: Mapping[int, str],
    opened: Sequence[int],
    zones: Iterable[Mapping[str, object]],
    actor_id: UUID | None,
    request_id: UUID | None,
) -> bool:
    """Take seats out of sale and put others back; False when somebody has what would be taken away."""
    done: bool = await conn.fetchval(
        Q["change_inventory"],
        organization_id,
        event_id,
        list(closed),
        list(closed.values()),
        opened,
        _json(list(zones)),
        actor_id,
        request_id,
    )
    return done


async def lock_zones(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> None:
    await conn.execute(Q["lock_zones"], organization_id, event_id)


async def list_zones(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> list[OfferedZone]:
    """The zones of an event in the order of the layout; seats are not counted."""
    return [_zone(row, NOBODY) for row in await conn.fetch(Q["list_zones"], organization_id, event_id)]


async def list_counted_zones(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> list[OfferedZone]:
    """The same, each with its counts."""
    rows = await conn.fetch(Q["list_counted_zones"], organization_id, event_id)
    seats = await count_seats(conn, organization_id, event_id)
    return [_zone(row, seats.get(row["zone_id"], NOBODY)) for row in rows]


async def count_seats(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> dict[UUID, Counts]:
    """The seats of an event by zone and state."""
    rows = await conn.fetch(Q["count_seats"], organization_id, event_id)
    return {
        row["zone_id"]: Counts(available=row["available"], held=row["held"], sold=row["sold"], blocked=row["blocked"])
        for row in rows
    }


async def list_seats(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, pin: Pin, wanted: SeatFilter, *, after: int, limit: int
) -> list[EventSeat]:
    """Seats in the order of their ordinals."""
    rows = await conn.fetch(
        Q["list_seats"], organization_id, event_id, *pin, after, wanted.zone_id, wanted.status, limit
    )
    return [
        EventSeat(
            seat_id=row["seat_id"],
            ordinal=row["ordinal"],
            zone_id=row["zone_id"],
            zone_name=row["zone_name"],
            row=row["row_label"],
            seat_number=row["label"],
            category=Category(row["category"]),
            status=SeatStatus(row["status"]),
            version=row["version"],
        )
        for row in rows
    ]


async def list_taken_seats(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, pin: Pin, ordinals: Sequence[int] | None, limit: int
) -> list[asyncpg.Record]:
    return await conn.fetch(Q["list_taken_seats"], organization_id, event_id, *pin, ordinals, limit)


async def is_touched(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> bool:
    found: bool = await conn.fetchval(Q["is_touched"], organization_id, event_id)
    return found


def _zone(row: asyncpg.Record, seats: Counts) -> OfferedZone:
    view = ZoneView(
        code=row["zone_code"],
        name=row["name"],
        zone_type=ZoneType(row["zone_type"]),
        access_mode=AccessMode(row["access_mode"]),
        membership_tier=row["membership_tier"],
        allowed_roles=tuple(row["allowed_roles"]),
        is_enabled=row["is_enabled"],
        capacity=row["capacity"],
        blocked_count=row["blocked"],
        categories=MappingProxyType(msgspec.json.decode(row["categories"], type=dict[Category, int])),
        pricing_rule_id=row["pricing_rule_id"],
    )
    if view.place is PlaceKind.RESERVED:
        return OfferedZone(zone_id=row["zone_id"], view=view, counts=seats)
    held, sold, blocked = row["held"], row["sold"], row["blocked"]
    available = row["capacity"] - blocked - held - sold
    counts = Counts(available=available, held=held, sold=sold, blocked=blocked)
    return OfferedZone(zone_id=row["zone_id"], view=view, counts=counts)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
