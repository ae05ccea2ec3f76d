"""The places' questions to the database. What writes them are functions of voelgoed_registry, called here."""

import sys
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar
from uuid import UUID

import asyncpg
import msgspec

from voelgoed.db import Conn, load_queries
from voelgoed.holds.ends import FOREVER_MS
from voelgoed.holds.hotmap import HotZone, Names, Snapshot
from voelgoed.holds.model import (
    Ask,
    Counts,
    EventSeat,
    Hold,
    HoldStatus,
    OfferedZone,
    Outcome,
    SeatFilter,
    SeatName,
    SeatStatus,
    Standing,
    Verdict,
)
from voelgoed.ids import OrganizationId
from voelgoed.journal import origins
from voelgoed.journal.model import Origin
from voelgoed.seating.model import AccessMode, Category, Pin, ZoneType
from voelgoed.seating.overlay import PlaceKind, ZoneView

Q = load_queries(Path(__file__).with_name("queries.sql"))
Caller = Callable[..., Awaitable[list[asyncpg.Record]]]
"""How a function of the registry is called: one statement that is a transaction by itself."""
T = TypeVar("T")
OUTCOMES = {outcome.value: outcome for outcome in Outcome}
ZONE_HOLD = ("ids", "zones", "quantities", "untils")
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
    return int(await conn.fetchval(Q["remove_inventory"], organization_id, event_id))


async def clear_seats(conn: Conn, organization_id: OrganizationId, event_id: UUID, limit: int) -> int:
    return int(await conn.fetchval(Q["clear_seats"], organization_id, event_id, limit))


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


async def list_zones(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, *, is_counted: bool
) -> list[OfferedZone]:
    """The zones of an event in the order of the layout; their seats are counted where that is asked for."""
    rows = await conn.fetch(Q["list_zones"], organization_id, event_id)
    seats = await count_seats(conn, organization_id, event_id) if is_counted else {}
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
    return bool(await conn.fetchval(Q["is_touched"], organization_id, event_id))


async def has_history(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> bool:
    return bool(await conn.fetchval(Q["has_history"], organization_id, event_id))


async def reserve_batch(
    call: Caller,
    batch: Sequence[Ask],
    whence: Sequence[UUID] | None = None,
    new_origins: Mapping[UUID, Origin] = MappingProxyType({}),
    *,
    clock_latest: str | None = None,
) -> list[list[Verdict]]:
    """Ask for holds of one event in one call; verdicts in the order of the asks and their items.

    `whence` is where each ask came from, `new_origins` as far as that stands nowhere yet: written in the same call.
    `clock_latest` is the latest time that PostgreSQL's clock can show unless it has stepped.
    """
    whence = whence or origins.ids_today(batch[0].organization_id, [ask.origin for ask in batch])
    rows = [(number, ask, item) for number, ask in enumerate(batch) for item in ask.items]
    assert rows, "an ask is for something"
    first = batch[0]
    assert {(ask.organization_id, ask.event_id) for ask in batch} == {(first.organization_id, first.event_id)}
    values = [
        first.organization_id,
        first.event_id,
        _as_text([number for number, _, _ in rows]),
        _as_text([item.seat_id for _, _, item in rows]),
        _unless_empty([item.zone_id for _, _, item in rows]),
        _once_if_same([item.quantity for _, _, item in rows]),
        _as_text([ask.user_id for _, ask, _ in rows]),
        _as_text([item.hold_id for _, _, item in rows]),
        _as_text([ask.request_id for _, ask, _ in rows]),
        _as_text([whence[number] for number, _, _ in rows]),
        _once_if_same([ask.ip for _, ask, _ in rows]),
        [ask.cart_token for _, ask, _ in rows],
        _once_if_same([ask.source for _, ask, _ in rows]),
        _once_if_same([ask.role for _, ask, _ in rows]),
        _once_if_same([ask.is_staff for _, ask, _ in rows]),
        list(new_origins),
        [origin.session_id for origin in new_origins.values()],
        [origin.ip for origin in new_origins.values()],
        [origin.user_agent for origin in new_origins.values()],
        clock_latest,
    ]
    if any(ask.key for ask in batch):
        keys = [ask.key for _, ask, _ in rows], [ask.fingerprint for _, ask, _ in rows]
        found = await call(Q["reserve_batch"], *values, *keys)
    else:
        found = await reserve_items(call, *values)
    verdicts: list[list[Verdict]] = [[] for _ in batch]
    for item, verdict, hold_id, until, version, state, holder, first in sorted(found, key=itemgetter(0)):
        number = rows[item - 1][0]
        said = Verdict(
            outcome=OUTCOMES[verdict],
            hold_id=hold_id,
            until=until,
            version=version,
            state=state,
            holder=holder,
            first=OUTCOMES[first] if first else None,
        )
        verdicts[number].append(said)
    return verdicts


async def reserve_items(call: Caller, *values: object) -> list[asyncpg.Record]:
    return await call(Q["reserve_items"], *values)


async def find_holds(conn: Conn, organization_id: OrganizationId, ids: Sequence[UUID]) -> dict[UUID, Hold]:
    return {row["id"]: _hold(row) for row in await conn.fetch(Q["find_holds"], organization_id, ids)}


async def list_holds_of_user(
    conn: Conn, organization_id: OrganizationId, user_id: UUID, event_id: UUID, limit: int
) -> list[Hold]:
    rows = await conn.fetch(Q["list_holds_of_user"], organization_id, user_id, event_id, limit)
    return [_hold(row) for row in rows]


async def list_holds_of_event(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, *, after: tuple[datetime, UUID] | None, limit: int
) -> list[Hold]:
    until, hold_id = after or (None, None)
    rows = await conn.fetch(Q["list_holds_of_event"], organization_id, event_id, until, hold_id, limit)
    return [_hold(row) for row in rows]


async def count_hold_ends(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, since: datetime
) -> dict[str, int]:
    """How many holds ended since then, by the kind of fact that tells of it."""
    rows = await conn.fetch(Q["count_hold_ends"], organization_id, event_id, since)
    return {row["kind"]: row["count"] for row in rows}


async def extend_holds(call: Caller, *values: object) -> list[asyncpg.Record]:
    return await call(Q["extend_holds"], *values)


async def release_holds(call: Caller, *values: object) -> list[asyncpg.Record]:
    return await call(Q["release_holds"], *values)


async def hand_over_holds(conn: Conn, *values: object) -> list[asyncpg.Record]:
    return await conn.fetch(Q["hand_over_holds"], *values)


async def convert_holds(call: Caller, *values: object, clock_latest: str | None = None) -> str:
    return str((await call(Q["convert_holds"], *values, clock_latest))[0][0])


async def find_tickets(conn: Conn, organization_id: OrganizationId, ids: Sequence[UUID]) -> list[asyncpg.Record]:
    return await conn.fetch(Q["find_tickets"], organization_id, ids)


async def expire_holds(
    call: Caller, organization_id: OrganizationId, event_id: UUID, limit: int, clock_latest: str | None = None
) -> int:
    return int((await call(Q["expire_holds"], organization_id, event_id, limit, clock_latest))[0][0])


async def release_all_holds(call: Caller, *values: object) -> int:
    return int((await call(Q["release_all_holds"], *values))[0][0])


async def block_seats(call: Caller, *values: object) -> list[asyncpg.Record]:
    return await call(Q["block_seats"], *values)


async def void_ticket(call: Caller, *values: object) -> str:
    return str((await call(Q["void_ticket"], *values))[0][0])


async def list_events_to_tidy(conn: Conn, limit: int) -> list[tuple[OrganizationId, UUID, bool, str | None]]:
    """Which event, whether a hold of it has lapsed, and what it is if nothing of it may be held any more."""
    rows = await conn.fetch(Q["list_events_to_tidy"], limit)
    return [(OrganizationId(row[0]), *row[1:]) for row in rows]


async def list_standing(conn: Conn, limit: int) -> list[Standing]:
    return [Standing(**row) for row in await conn.fetch(Q["list_standing"], limit)]


async def get_seat(conn: Conn, organization_id: OrganizationId, event_id: UUID, seat_id: UUID) -> asyncpg.Record | None:
    return await conn.fetchrow(Q["get_seat"], organization_id, event_id, seat_id)


async def name_seats(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, seat_ids: Sequence[UUID]
) -> dict[UUID, SeatName]:
    rows = await conn.fetch(Q["name_seats"], organization_id, event_id, seat_ids)
    return {row["seat_id"]: SeatName(row["zone_name"], row["row_label"], row["label"]) for row in rows}


async def load_map(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> Snapshot | None:
    """All places of an event, as one statement sees them; None when it has none."""
    row = await conn.fetchrow(Q["load_map"], organization_id, event_id)
    if row is None:
        return None
    names = await load_names(conn, organization_id, event_id)
    ordinals = array("I", row["ordinals"] or b"")
    expected = array("I", range(len(ordinals)))
    if sys.byteorder == "little":
        expected.byteswap()
    assert ordinals == expected, "the seats of an event are numbered without a gap, and come in that order"
    assert row["are_whole"] is not False, "the seats of a zone follow each other"
    zones = zip(
        *(
            row[name]
            for name in (
                "zone_ids",
                "are_by_number",
                "zone_versions",
                "capacities",
                "blocked",
                "zone_held",
                "zone_sold",
            )
        ),
        strict=True,
    )
    return Snapshot(
        organization_id=organization_id,
        event_id=event_id,
        epoch=row["inventory_epoch"],
        now_ms=row["now_ms"],
        first_seat=row["first_seat"],
        serials=row["serials"] or b"",
        versions=row["versions"] or b"",
        statuses=row["statuses"] or b"",
        zones=[HotZone.of(*zone) for zone in zones],
        ranges=list(
            zip(row["range_zones"] or (), row["firsts"] or (), row["seat_counts"] or (), strict=True),
        ),
        names=names,
        held=list(
            zip(row["held"] or (), row["hold_ids"] or (), row["holders"] or (), row["untils"] or (), strict=True)
        ),
        zone_holds=list(zip(*(row[f"zone_hold_{name}"] or () for name in ZONE_HOLD), strict=True)),
    )


async def load_names(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> Names:
    """What the seats of an event are called."""
    row = await conn.fetchrow(Q["load_names"], organization_id, event_id)
    if row is None or row["labels"] is None:
        return Names((), (), b"", b"", ())
    rows = msgspec.json.decode(row["row_labels"], type=list[list[str]])
    return Names(row["zone_names"], rows, row["zone_ordinals"], row["row_ordinals"], row["labels"].split("\x1f"))


async def count_places(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, expired_by: datetime
) -> tuple[list[HotZone], int, int]:
    """Count what is taken of an event's zones. Return them, the map version they have, and when the next hold ends."""
    rows = await conn.fetch(Q["count_places"], organization_id, event_id, expired_by)
    zones = [
        HotZone.of(*(row[:7] if row["is_by_number"] else (*row[:3], *row[8:12])))  # its own counters, or its seats'
        for row in rows
    ]
    for zone, row in zip(zones, rows, strict=True):
        zone.expired = row["quantity_expired"]
    version = sum(2 * (row["version"] + int(row["seats_version"])) + row["expired_count"] for row in rows)
    return zones, version, min((row["next_end_ms"] for row in rows if row["next_end_ms"]), default=FOREVER_MS)


async def find_inventory_epoch(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> int | None:
    epoch: int | None = await conn.fetchval(Q["find_inventory_epoch"], organization_id, event_id)
    return epoch


async def list_materialised(conn: Conn, limit: int) -> list[tuple[OrganizationId, UUID]]:
    rows = await conn.fetch(Q["list_materialised"], limit)
    return [(OrganizationId(row["organization_id"]), row["event_id"]) for row in rows]


async def list_events_with_inventory(conn: Conn) -> list[tuple[OrganizationId, UUID]]:
    rows = await conn.fetch(Q["list_events_with_inventory"])
    return [(OrganizationId(row["organization_id"]), row["event_id"]) for row in rows]


async def list_active_holds(conn: Conn, organization_id: OrganizationId, event_id: UUID, limit: int) -> dict[UUID, int]:
    """Active holds, and when they end; those that have lapsed and stand there still as well."""
    rows = await conn.fetch(Q["list_active_holds"], organization_id, event_id, limit)
    return {row["id"]: row["until_ms"] for row in rows}


async def take_lease(conn: Conn, name: str, holder: UUID, lasts: timedelta) -> bool:
    return bool(await conn.fetchval(Q["take_lease"], name, holder, lasts))


async def next_projection_epoch(conn: Conn) -> int:
    return int(await conn.fetchval(Q["next_projection_epoch"]))


async def find_database(conn: Conn) -> str:
    return str(await conn.fetchval(Q["find_database"]))


async def add_occupancy(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, counts: Counts, zones: Iterable[Mapping[str, object]]
) -> None:
    await conn.execute(
        Q["add_occupancy"],
        organization_id,
        event_id,
        counts.available,
        counts.held,
        counts.sold,
        counts.blocked,
        _json(list(zones)),
    )


async def list_occupancy(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, since: datetime, limit: int
) -> list[asyncpg.Record]:
    """How full an event was, the last minute first."""
    return await conn.fetch(Q["list_occupancy"], organization_id, event_id, since, limit)


async def purge_occupancy(conn: Conn, older_than: timedelta, limit: int) -> int:
    done: str = await conn.execute(Q["purge_occupancy"], older_than, limit)
    return int(done.rsplit(" ", 1)[1])


async def read_clock(conn: Conn) -> datetime:
    now: datetime = await conn.fetchval(Q["read_clock"])
    return now


async def find_lapses_from(conn: Conn) -> datetime:
    lapses_from: datetime = await conn.fetchval(Q["find_lapses_from"])
    return lapses_from


async def guard_clock(conn: Conn, step: timedelta) -> datetime:
    """No hold is taken over until so much time has passed; until when."""
    lapses_from: datetime = await conn.fetchval(Q["guard_clock"], step)
    return lapses_from


def _hold(row: asyncpg.Record) -> Hold:
    return Hold(**dict(row) | {"status": HoldStatus(row["status"])})


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


def _unless_empty(column: list[T | None]) -> list[T | None]:
    """A column of nothing costs as much as any other, and an array that is too short means the same."""
    return column if any(value is not None for value in column) else []


def _as_text(column: Sequence[UUID | int | None]) -> str:
    """A column as PostgreSQL reads it, where no value has anything in it that must be quoted.

    The driver asks of each value of a list, by two calls in Python, whether it is a list as well: that took a tenth of
    a web process.
    """
    return "{" + ",".join(["NULL" if value is None else str(value) for value in column]) + "}"


def _once_if_same(column: list[T]) -> list[T]:
    """Of most columns of a batch every value is the same."""
    return column[:1] if column.count(column[0]) == len(column) else column


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
