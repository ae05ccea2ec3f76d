"""The layouts' questions to the database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from voelgoed.db import Conn, load_queries
from voelgoed.events.refusals import EventNotFound
from voelgoed.ids import OrganizationId
from voelgoed.seating.model import (
    AccessMode,
    Category,
    EventLayout,
    Group,
    GroupKind,
    Layout,
    LayoutId,
    Lineage,
    ListedLayout,
    Pin,
    PinnedEvent,
    Point,
    Row,
    Seat,
    Shape,
    Version,
    VersionStatus,
    Zone,
    ZoneId,
    ZoneType,
)
from voelgoed.seating.policy import FIELDS, Policy, changed, values_of

Q = load_queries(Path(__file__).with_name("queries.sql"))
VersionKey = tuple[OrganizationId, LayoutId, int]
BETWEEN = "\x1f"
"""Stands between texts on their way to PostgreSQL; no code or label has it."""


class StoredZone(NamedTuple):
    """A zone as a record; its rows are known by their labels only."""

    zone_id: ZoneId
    row_labels: tuple[str, ...]
    zone: Zone
    created_at: datetime
    updated_at: datetime


class SeatColumns(NamedTuple):
    """What is written of many seats beside what they are themselves, each in the order of the ordinals."""

    serials: Sequence[int]
    zone_ordinals: Sequence[int]
    row_ordinals: Sequence[int]
    companions_of: Sequence[int | None]


async def add_layout(
    conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, venue_id: UUID, name: str
) -> None:
    await conn.execute(Q["add_layout"], organization_id, layout_id, venue_id, name)


async def lock_layout(conn: Conn, organization_id: OrganizationId, layout_id: LayoutId) -> Lineage | None:
    return _lineage(await conn.fetchrow(Q["lock_layout"], organization_id, layout_id))


async def get_layout(conn: Conn, organization_id: OrganizationId, layout_id: LayoutId) -> Lineage | None:
    return _lineage(await conn.fetchrow(Q["get_layout"], organization_id, layout_id))


async def list_layouts(
    conn: Conn, organization_id: OrganizationId, *, venue_id: UUID | None, after: UUID | None, limit: int
) -> list[ListedLayout]:
    rows = await conn.fetch(Q["list_layouts"], organization_id, venue_id, after, limit)
    return [ListedLayout(**row) for row in rows]


async def save_layout(conn: Conn, lineage: Lineage) -> None:
    await conn.execute(
        Q["save_layout"],
        lineage.organization_id,
        lineage.id,
        lineage.version_last,
        lineage.serial_last,
        _json(lineage.zone_serials),
    )


async def name_layout(conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, name: str) -> None:
    await conn.execute(Q["name_layout"], organization_id, layout_id, name)


async def find_serials(
    conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, codes: Sequence[str]
) -> dict[str, int]:
    rows = await conn.fetch(Q["find_serials"], organization_id, layout_id, BETWEEN.join(codes))
    return {row["seat_code"]: row["serial"] for row in rows}


async def add_serials(
    conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, codes: Sequence[str], *, first: int
) -> None:
    await conn.execute(Q["add_serials"], organization_id, layout_id, first, BETWEEN.join(codes))


async def add_version(conn: Conn, key: VersionKey, layout: Layout, *, created_by: UUID | None) -> None:
    await conn.execute(
        Q["add_version"],
        *key,
        layout.name,
        layout.description,
        layout.total_capacity,
        layout.seat_count,
        _json(layout.shapes),
        created_by,
    )


async def add_zones(conn: Conn, key: VersionKey, zones: Iterable[tuple[ZoneId, Zone]]) -> None:
    told = [
        {
            "ordinal": ordinal,
            "zone_id": zone_id,
            "code": zone.code,
            "name": zone.name,
            "zone_type": zone.zone_type,
            "capacity": zone.capacity,
            "access_mode": zone.access_mode,
            "membership_tier": zone.membership_tier,
            "allowed_roles": zone.allowed_roles,
            "focal_point": zone.focal_point,
            "outline": [number for point in zone.outline for number in point],
            "row_labels": [row.label for row in zone.rows],
            "metadata": zone.metadata,
        }
        for ordinal, (zone_id, zone) in enumerate(zones)
    ]
    await conn.execute(Q["add_zones"], *key, _json(told))


async def add_seats(
    conn: Conn, key: VersionKey, first: int, seats: Sequence[Seat], columns: SeatColumns, *, id_prefix: str
) -> None:
    """Add seats from one ordinal on; the columns are those of the whole version."""
    piece = slice(first, first + len(seats))
    await conn.execute(
        Q["add_seats"],
        *key,
        first,
        id_prefix,
        _numbers(columns.serials[piece]),
        BETWEEN.join([seat.code for seat in seats]),
        _numbers(columns.zone_ordinals[piece]),
        _numbers(columns.row_ordinals[piece]),
        _numbers([seat.number for seat in seats]),
        BETWEEN.join([seat.label for seat in seats]),
        _numbers([seat.position for seat in seats]),
        _numbers([seat.segment for seat in seats]),
        _numbers([seat.x for seat in seats]),
        _numbers([seat.y for seat in seats]),
        ",".join([seat.category for seat in seats]),
        ",".join(["" if space is None else str(space) for space in columns.companions_of[piece]]),
    )


async def add_groups(conn: Conn, key: VersionKey, groups: Iterable[tuple[int, Group, list[int]]]) -> None:
    """Add groups: each with the place of its zone and the ordinals of its seats."""
    told = [
        {
            "ordinal": ordinal,
            "zone_ordinal": zone,
            "code": group.code,
            "kind": group.kind,
            "label": group.label,
            "seats": seats,
            "metadata": group.metadata,
        }
        for ordinal, (zone, group, seats) in enumerate(groups)
    ]
    await conn.execute(Q["add_groups"], *key, _json(told))


async def finish_version(conn: Conn, key: VersionKey, geometry: bytes, etag: str) -> Version | None:
    return _version(await conn.fetchrow(Q["finish_version"], *key, geometry, etag))


async def get_version(conn: Conn, key: VersionKey) -> Version | None:
    return _version(await conn.fetchrow(Q["get_version"], *key))


async def list_versions(
    conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, *, before: int | None, limit: int
) -> list[Version]:
    rows = await conn.fetch(Q["list_versions"], organization_id, layout_id, before, limit)
    return [Version(**dict(row) | {"status": VersionStatus(row["status"])}) for row in rows]


async def find_latest_version(
    conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, *, but: int
) -> int | None:
    found: int | None = await conn.fetchval(Q["find_latest_version"], organization_id, layout_id, but)
    return found


async def find_active_version(conn: Conn, organization_id: OrganizationId, layout_id: LayoutId) -> int | None:
    found: int | None = await conn.fetchval(Q["find_active_version"], organization_id, layout_id)
    return found


async def set_version_status(conn: Conn, key: VersionKey, status: VersionStatus) -> Version:
    version = _version(await conn.fetchrow(Q["set_version_status"], *key, status))
    assert version is not None
    return version


async def get_geometry(conn: Conn, key: VersionKey) -> tuple[bytes, str] | None:
    row = await conn.fetchrow(Q["get_geometry"], *key)
    return (row["geometry"], row["geometry_etag"]) if row else None


async def get_shapes(conn: Conn, key: VersionKey) -> tuple[Shape, ...]:
    return msgspec.json.decode(await conn.fetchval(Q["get_shapes"], *key), type=tuple[Shape, ...])


async def list_zones(conn: Conn, key: VersionKey) -> list[StoredZone]:
    """The zones with their ids and the labels of their rows, still without seats."""
    rows = await conn.fetch(Q["list_zones"], *key)
    return [
        StoredZone(row["zone_id"], tuple(row["row_labels"]), _zone(row), row["created_at"], row["updated_at"])
        for row in rows
    ]


async def list_seats(conn: Conn, key: VersionKey) -> list[asyncpg.Record]:
    return await conn.fetch(Q["list_seats"], *key)


async def list_groups(conn: Conn, key: VersionKey) -> list[asyncpg.Record]:
    return await conn.fetch(Q["list_groups"], *key)


async def list_seat_serials(conn: Conn, key: VersionKey) -> str:
    """The last eight digits of every seat's id, one after the other."""
    found: str = await conn.fetchval(Q["list_seat_serials"], *key)
    return found


async def get_event_layout(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> EventLayout | None:
    return _event_layout(await conn.fetchrow(Q["get_event_layout"], organization_id, event_id))


async def get_event_pin(
    conn: Conn, organization_id: OrganizationId, event_id: UUID
) -> tuple[Pin | None, dict[str, object]]:
    row = await conn.fetchrow(Q["get_event_pin"], organization_id, event_id)
    if row is None:
        return None, {}
    pin = Pin(LayoutId(row["layout_id"]), row["layout_version"]) if row["layout_id"] else None
    return pin, msgspec.json.decode(row["seating_overrides"])


async def add_event_layout(conn: Conn, organization_id: OrganizationId, event_id: UUID, new_id: UUID) -> None:
    try:
        await conn.execute(Q["add_event_layout"], organization_id, event_id, new_id)
    except asyncpg.ForeignKeyViolationError as missing:
        raise EventNotFound from missing


async def lock_event_layout(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> EventLayout | None:
    return _event_layout(await conn.fetchrow(Q["lock_event_layout"], organization_id, event_id))


async def save_event_layout(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, pin: Pin | None, overrides: Mapping[str, object]
) -> EventLayout:
    layout_id, version = pin or (None, None)
    row = await conn.fetchrow(Q["save_event_layout"], organization_id, event_id, layout_id, version, _json(overrides))
    saved = _event_layout(row)
    assert saved is not None
    return saved


async def set_making(conn: Conn, organization_id: OrganizationId, event_id: UUID, making: UUID | None) -> None:
    await conn.execute(Q["set_making"], organization_id, event_id, making)


async def share_making(conn: Conn, organization_id: OrganizationId, event_id: UUID, claim: UUID) -> bool:
    return await conn.fetchval(Q["share_making"], organization_id, event_id, claim) is not None


async def find_broken_off(conn: Conn, *, older_than: timedelta, limit: int) -> list[tuple[OrganizationId, UUID]]:
    rows = await conn.fetch(Q["find_broken_off"], older_than, limit)
    return [(OrganizationId(row["organization_id"]), row["event_id"]) for row in rows]


async def list_pinned_events(
    conn: Conn, organization_id: OrganizationId, layout_id: LayoutId, *, limit: int
) -> list[PinnedEvent]:
    return [PinnedEvent(**row) for row in await conn.fetch(Q["list_pinned_events"], organization_id, layout_id, limit)]


async def find_organization_showing(conn: Conn, pin: Pin) -> OrganizationId | None:
    found: OrganizationId | None = await conn.fetchval(Q["find_organization_showing"], *pin)
    return found


async def find_unfinished(conn: Conn, *, older_than: timedelta, limit: int) -> list[VersionKey]:
    rows = await conn.fetch(Q["find_unfinished"], older_than, limit)
    return [(OrganizationId(row["organization_id"]), LayoutId(row["layout_id"]), row["version"]) for row in rows]


async def remove_unfinished(conn: Conn, key: VersionKey) -> None:
    await conn.execute(Q["remove_unfinished"], *key)


async def get_policy(conn: Conn, organization_id: OrganizationId) -> tuple[Policy, int, datetime] | None:
    """What an organization said of its seating, with the version and since when; nothing when it said nothing."""
    return _policy(await conn.fetchrow(Q["get_policy"], organization_id))


async def lock_policy(conn: Conn, organization_id: OrganizationId) -> tuple[Policy, int, datetime] | None:
    return _policy(await conn.fetchrow(Q["lock_policy"], organization_id))


async def add_policy(conn: Conn, organization_id: OrganizationId, policy_id: UUID) -> None:
    await conn.execute(Q["add_policy"], organization_id, policy_id)


async def save_policy(conn: Conn, organization_id: OrganizationId, policy: Policy) -> tuple[Policy, int, datetime]:
    saved = _policy(await conn.fetchrow(Q["save_policy"], organization_id, *values_of(policy).values()))
    assert saved is not None
    return saved


def built(
    zones: Sequence[StoredZone],
    seats: Sequence[asyncpg.Record],
    groups: Sequence[asyncpg.Record],
) -> tuple[Zone, ...]:
    """Put zones, rows, seats and groups together again."""
    codes = [row["seat_code"] for row in seats]
    rows: list[list[list[Seat]]] = [[[] for _ in zone.row_labels] for zone in zones]
    categories = {category.value: category for category in Category}
    for code, zone, row, number, label, position, segment, x, y, category, space in seats:
        rows[zone][row].append(
            Seat(
                code=code,
                number=number,
                label=label,
                position=position,
                segment=segment,
                x=x,
                y=y,
                category=categories[category],
                companion_of=None if space is None else codes[space],
            )
        )
    of_zone: list[list[Group]] = [[] for _ in zones]
    for group in groups:
        of_zone[group["zone_ordinal"]].append(
            Group(
                code=group["group_code"],
                kind=GroupKind(group["kind"]),
                label=group["label"],
                seat_codes=tuple(codes[ordinal] for ordinal in group["seat_ordinals"]),
                metadata=msgspec.json.decode(group["metadata"]),
            )
        )
    whole = []
    for stored, in_zone, some in zip(zones, rows, of_zone, strict=True):
        named = tuple(Row(label=label, seats=tuple(row)) for label, row in zip(stored.row_labels, in_zone, strict=True))
        whole.append(replace(stored.zone, rows=named, groups=tuple(some)))
    return tuple(whole)


def _lineage(row: asyncpg.Record | None) -> Lineage | None:
    return Lineage(**dict(row) | {"zone_serials": msgspec.json.decode(row["zone_serials"])}) if row else None


def _event_layout(row: asyncpg.Record | None) -> EventLayout | None:
    return EventLayout(**dict(row) | {"overrides": msgspec.json.decode(row["overrides"])}) if row else None


def _version(row: asyncpg.Record | None) -> Version | None:
    return Version(**dict(row) | {"status": VersionStatus(row["status"])}) if row else None


def _policy(row: asyncpg.Record | None) -> tuple[Policy, int, datetime] | None:
    if row is None:
        return None
    return changed(Policy(), {name: row[name] for name in FIELDS}), row["version"], row["updated_at"]


def _zone(row: asyncpg.Record) -> Zone:
    numbers: list[int] = row["outline"]
    outline: list[Point] = list(zip(numbers[::2], numbers[1::2], strict=True))
    return Zone(
        code=row["zone_code"],
        name=row["name"],
        zone_type=ZoneType(row["zone_type"]),
        capacity=row["capacity"],
        access_mode=AccessMode(row["access_mode"]),
        membership_tier=row["membership_tier"],
        allowed_roles=tuple(row["allowed_roles"]),
        focal_point=None if row["focal_x"] is None else (row["focal_x"], row["focal_y"]),
        outline=tuple(outline),
        metadata=msgspec.json.decode(row["metadata"]),
    )


def _numbers(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
