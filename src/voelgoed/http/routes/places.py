"""An event's places as everybody sees them, and how the tiers behind them stand."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query

from voelgoed.accounts.permissions import Action
from voelgoed.breaker import State
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import viewing
from voelgoed.holds.occupancy import Minute, Occupancy
from voelgoed.holds.reconcile import Report
from voelgoed.holds.viewing import Tiers
from voelgoed.http.context import Caller, Context
from voelgoed.http.edge import Stream, Whole
from voelgoed.http.exchange import Exchange
from voelgoed.http.guard import guarded
from voelgoed.http.problems import RequestInvalid
from voelgoed.http.shapes import Data, Moment, View
from voelgoed.ids import read_id
from voelgoed.realtime.feed import TooManyStreams
from voelgoed.realtime.maps import At, seen_of, snapshot_of

router = APIRouter(prefix="/api", tags=["places"])

NO_CACHE = (b"cache-control", b"no-cache")


class ZoneCounts(View):
    """What is left of a zone."""

    zone_id: UUID
    total: int
    available: int
    held: int
    sold: int
    blocked: int


class SeatMapView(View):
    """Every seat of an event. `statuses` has two bits for each, in base64: 0 available, 1 held, 2 sold, 3 blocked.

    The seat with ordinal n is in byte n / 4, at the bits 2 (n mod 4) and above. `map_version` grows with every change
    within an `epoch`; together they are the ETag.
    """

    event_id: UUID
    epoch: int
    map_version: int
    seat_count: int
    statuses: str
    zones: list[ZoneCounts]


class OccupancyView(View):
    """How full an event is. Each share is rounded by itself."""

    event_id: UUID
    epoch: int
    map_version: int
    available: int
    held: int
    sold: int
    blocked: int
    total: int
    percent_available: float
    percent_held: float
    percent_sold: float
    occupancy_percent: float
    timestamp: datetime
    zones: list[ZoneCounts]


class MinuteView(View):
    """How full an event was in a minute."""

    taken_at: datetime
    available: int
    held: int
    sold: int
    blocked: int


class TiersView(View):
    """How the tiers of an event stand: active holds that this process, Redis and PostgreSQL know, and what differs.

    `ets_count` is null where this process has no map of the event, `redis_count` where Redis is away. While
    the `breaker` of this process is open it does not ask Redis.
    """

    event_id: UUID
    ets_count: int | None
    redis_count: int | None
    db_count: int
    consistent: bool
    status: str
    breaker: State
    message: str
    missing: list[UUID]
    extra: list[UUID]
    seats_differ: list[UUID]
    seats_differ_count: int
    zones_differ: list[UUID]


@guarded(Action.SEE_STOREFRONT, EventNotFound)
async def get_seat_map(context: Context) -> Whole:
    """Every seat of an event as it is now, from memory; at most 36,000 bytes for 100,000 seats.

    The `ETag` is what the stream calls this map: with it as `Last-Event-ID` one is told what came after.
    """
    services = context.services
    found = await viewing.see_map(services.availability, services.catalogue, context.call, _event_id(context))
    tag = b'"%b"' % At.of(found).written
    headers = [(b"etag", tag), NO_CACHE]
    if tag in context.headers.get(b"if-none-match", b""):
        return Whole(304, b"", headers)
    return Whole(200, msgspec.json.encode({"data": snapshot_of(found)}), headers)


@guarded(Action.SEE_STOREFRONT, EventNotFound, TooManyStreams, is_stream=True)
async def follow_map(context: Context) -> Stream:
    """The places of an event, live.

    Frames: `event_status` first, and again with every change of the event itself, whose number is its `version`;
    `snapshot`, which is what `GET /seatmap` answers; `delta` with the ordinals in `seats`, the digit of each in
    `statuses`, and the zones that changed; `occupancy` at most once a second; `resync` before a snapshot that replaces
    everything; `bye` when the process stops. A frame that is about places has an id: a client that comes back with it
    as `Last-Event-ID` is never shown an older map. A `delta` whose `map_version` is not newer than what is shown
    changes nothing.
    """
    services, event_id = context.services, _event_id(context)
    organization_id = await services.catalogue.whose(context.call, event_id)
    seen = seen_of(context.headers.get(b"last-event-id", b"").decode("latin-1"))

    async def stay() -> None:
        await services.sessions.find(context.token or "")

    async def require() -> None:
        await services.catalogue.status_now(organization_id, event_id)

    async def run(exchange: Exchange, begin: Callable[[], None]) -> None:
        await services.maps.show(
            exchange,
            organization_id,
            event_id,
            user_id=context.call.actor.user_id,
            ip=context.call.ip,
            seen=seen,
            begin=begin,
            stay=stay if context.token else None,
        )

    return Stream(run, require)


@guarded(Action.SEE_STOREFRONT, EventNotFound)
async def get_occupancy(context: Context) -> Whole:
    """How full an event is, from memory: ask as often as you like."""
    services = context.services
    found = await viewing.see_occupancy(services.availability, services.catalogue, context.call, _event_id(context))
    return Whole(200, _encode_occupancy(found), [NO_CACHE])


@router.get("/admin/events/{event_id}/occupancy/minutes")
@guarded(Action.SEE_EVENTS, EventNotFound)
async def list_occupancy_minutes(
    event_id: UUID, caller: Caller, since: Annotated[Moment | None, Query()] = None
) -> Data[list[MinuteView]]:
    """How full an event was, minute by minute where something changed: the last day, or since a moment."""
    found = await viewing.list_minutes(caller.services.db, caller.call, event_id, since=since)
    return Data(data=[_minute(one) for one in found])


@router.get("/admin/events/{event_id}/registry")
@guarded(Action.SEE_HOLDS, EventNotFound)
async def get_registry(event_id: UUID, caller: Caller) -> Data[TiersView]:
    """Whether what is held agrees in every tier."""
    return Data(data=_tiers(await viewing.see_tiers(_tiers_of(caller), caller.call, event_id)))


@router.post("/admin/events/{event_id}/registry/reconcile")
@guarded(Action.RECONCILE, EventNotFound)
async def reconcile_registry(event_id: UUID, caller: Caller) -> Data[TiersView]:
    """Make an event's places anew in every tier; says what was found before."""
    return Data(data=_tiers(await viewing.mend_tiers(_tiers_of(caller), caller.call, event_id)))


def _tiers_of(caller: Context) -> Tiers:
    services = caller.services
    return Tiers(services.db, services.availability, services.projection)


def _tiers(report: Report) -> TiersView:
    return TiersView.model_validate(report)


def _minute(one: Minute) -> MinuteView:
    counts = one.counts
    return MinuteView(
        taken_at=one.taken_at,
        available=counts.available,
        held=counts.held,
        sold=counts.sold,
        blocked=counts.blocked,
    )


def _encode_occupancy(found: Occupancy) -> bytes:
    return msgspec.json.encode({"data": found})


def _event_id(context: Context) -> UUID:
    try:
        return read_id(context.parameters["event_id"])
    except ValueError as wrong:
        raise RequestInvalid(path="event_id") from wrong
