"""Venues and their gates, to the organization's own people."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import Field

from voelgoed.accounts.idempotency import IdempotencyKeyReused
from voelgoed.accounts.permissions import Action
from voelgoed.events import usecases
from voelgoed.events.model import Gate, GateStatus, NewGate, NewVenue, Venue
from voelgoed.events.refusals import (
    CapacityExceeded,
    GateChanged,
    GateCodeTaken,
    GateNotFound,
    SettingsInvalid,
    TimezoneUnknown,
    VenueChanged,
    VenueInUse,
    VenueNotFound,
    VenueSlugTaken,
)
from voelgoed.http.context import Caller, IdempotencyKey, IfMatch, etag, once, seen
from voelgoed.http.guard import guarded
from voelgoed.http.shapes import LIMIT, NO_NUL, Body, Cursor, Data, Flag, Limit, Listed, Name, ReasonText, Slug, View
from voelgoed.paging import CursorInvalid

router = APIRouter(prefix="/api/admin", tags=["venues"])

PEOPLE_MAX = 1_000_000
Zone = Annotated[str, Field(min_length=1, max_length=64, pattern=NO_NUL)]
People = Annotated[int, Field(ge=0, le=PEOPLE_MAX, strict=True)]
GateCode = Annotated[str, Field(pattern=r"^[A-Z0-9][A-Z0-9_-]{0,31}$")]
GateCapacity = Annotated[int, Field(ge=1, le=PEOPLE_MAX, strict=True)]
JsonObject = dict[str, Any]


class VenueView(View):
    """A venue."""

    id: UUID
    name: str
    slug: str
    timezone: str
    address: JsonObject
    max_capacity: int
    settings: JsonObject
    version: int
    inserted_at: datetime
    updated_at: datetime


class NewVenueBody(Body):
    """A venue to be made. `max_capacity` bounds whatever takes place there."""

    name: Name
    slug: Slug
    timezone: Zone
    max_capacity: People
    address: JsonObject = Field(default_factory=dict)
    settings: JsonObject = Field(default_factory=dict)


class VenueChangesBody(Body):
    """What shall change of a venue; what is left out stays."""

    name: Name = Field(default_factory=str)
    slug: Slug = Field(default_factory=str)
    timezone: Zone = Field(default_factory=str)
    max_capacity: People = Field(default_factory=int)
    address: JsonObject = Field(default_factory=dict)
    settings: JsonObject = Field(default_factory=dict)


class GateView(View):
    """A gate."""

    id: UUID
    venue_id: UUID
    gate_code: str
    name: str
    status: GateStatus
    capacity: int | None
    settings: JsonObject
    version: int
    inserted_at: datetime
    updated_at: datetime


class NewGateBody(Body):
    """A gate to be made; it is closed until somebody opens it."""

    gate_code: GateCode
    name: Name
    status: GateStatus = GateStatus.CLOSED
    capacity: GateCapacity | None = None
    settings: JsonObject = Field(default_factory=dict)


class GateChangesBody(Body):
    """What shall change of a gate; what is left out stays."""

    gate_code: GateCode = Field(default_factory=str)
    name: Name = Field(default_factory=str)
    capacity: GateCapacity | None = None
    settings: JsonObject = Field(default_factory=dict)


class GateOrderBody(Body):
    """Why a gate is opened or closed, where somebody wants to say so."""

    reason: ReasonText | None = None


class PolicyView(View):
    """What the organization lets its staff do."""

    staff_may_change_venues: bool


class PolicyBody(Body):
    """What the organization shall let its staff do."""

    staff_may_change_venues: Flag


@router.get("/venues")
@guarded(Action.SEE_EVENTS, CursorInvalid)
async def list_venues(caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT) -> Listed[VenueView]:
    """The organization's venues."""
    page = await usecases.list_venues(caller.services.db, caller.call, cursor=cursor, limit=limit)
    return Listed(data=[VenueView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/venues", status_code=201)
@guarded(Action.CHANGE_VENUES, VenueSlugTaken, TimezoneUnknown, SettingsInvalid, VenueNotFound, IdempotencyKeyReused)
async def create_venue(
    body: NewVenueBody, caller: Caller, response: Response, key: IdempotencyKey = None
) -> Data[VenueView]:
    """Make a venue."""
    made = await usecases.create_venue(
        caller.services.db, caller.call, NewVenue(**body.model_dump()), once=once(key, caller, "create_venue")
    )
    return _venue(made, response)


@router.get("/venues/{venue_id}")
@guarded(Action.SEE_EVENTS, VenueNotFound)
async def get_venue(venue_id: UUID, caller: Caller, response: Response) -> Data[VenueView]:
    """One venue."""
    return _venue(await usecases.get_venue(caller.services.db, caller.call, venue_id), response)


@router.patch("/venues/{venue_id}")
@guarded(
    Action.CHANGE_VENUES,
    VenueNotFound,
    VenueChanged,
    VenueSlugTaken,
    TimezoneUnknown,
    SettingsInvalid,
    CapacityExceeded,
)
async def update_venue(
    venue_id: UUID, body: VenueChangesBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[VenueView]:
    """Change a venue."""
    changed = await usecases.update_venue(
        caller.services.db,
        caller.services.catalogue,
        caller.call,
        venue_id,
        body.model_dump(exclude_unset=True),
        version=seen(if_match),
    )
    return _venue(changed, response)


@router.delete("/venues/{venue_id}", status_code=204)
@guarded(Action.DELETE_VENUES, VenueNotFound, VenueChanged, VenueInUse)
async def delete_venue(venue_id: UUID, caller: Caller, if_match: IfMatch = None) -> None:
    """Delete a venue with its gates; refused while events take place there."""
    await usecases.delete_venue(
        caller.services.db, caller.services.catalogue, caller.call, venue_id, version=seen(if_match)
    )


@router.get("/venues/{venue_id}/gates")
@guarded(Action.SEE_EVENTS, VenueNotFound, CursorInvalid)
async def list_gates(
    venue_id: UUID, caller: Caller, status: GateStatus | None = None, cursor: Cursor = None, limit: Limit = LIMIT
) -> Listed[GateView]:
    """A venue's gates; `status=open` for those through which people pass."""
    page = await usecases.list_gates(
        caller.services.db, caller.call, venue_id, status=status, cursor=cursor, limit=limit
    )
    return Listed(data=[GateView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("/venues/{venue_id}/gates", status_code=201)
@guarded(Action.CHANGE_VENUES, VenueNotFound, GateNotFound, GateCodeTaken, SettingsInvalid, IdempotencyKeyReused)
async def create_gate(
    venue_id: UUID, body: NewGateBody, caller: Caller, response: Response, key: IdempotencyKey = None
) -> Data[GateView]:
    """Make a gate."""
    made = await usecases.create_gate(
        caller.services.db,
        caller.call,
        venue_id,
        NewGate(**body.model_dump()),
        once=once(key, caller, f"create_gate {venue_id}"),
    )
    return _gate(made, response)


@router.get("/gates/{gate_id}")
@guarded(Action.SEE_EVENTS, GateNotFound)
async def get_gate(gate_id: UUID, caller: Caller, response: Response) -> Data[GateView]:
    """One gate."""
    return _gate(await usecases.get_gate(caller.services.db, caller.call, gate_id), response)


@router.patch("/gates/{gate_id}")
@guarded(Action.CHANGE_VENUES, GateNotFound, GateChanged, GateCodeTaken, SettingsInvalid)
async def update_gate(
    gate_id: UUID, body: GateChangesBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[GateView]:
    """Change a gate."""
    changed = await usecases.update_gate(
        caller.services.db, caller.call, gate_id, body.model_dump(exclude_unset=True), version=seen(if_match)
    )
    return _gate(changed, response)


@router.delete("/gates/{gate_id}", status_code=204)
@guarded(Action.DELETE_VENUES, GateNotFound, GateChanged)
async def delete_gate(gate_id: UUID, caller: Caller, if_match: IfMatch = None) -> None:
    """Delete a gate."""
    await usecases.delete_gate(caller.services.db, caller.call, gate_id, version=seen(if_match))


@router.post("/gates/{gate_id}/open")
@guarded(Action.OPEN_GATES, GateNotFound)
async def open_gate(gate_id: UUID, body: GateOrderBody, caller: Caller, response: Response) -> Data[GateView]:
    """Let people pass."""
    return await _set_gate(gate_id, GateStatus.OPEN, body, caller, response)


@router.post("/gates/{gate_id}/close")
@guarded(Action.OPEN_GATES, GateNotFound)
async def close_gate(gate_id: UUID, body: GateOrderBody, caller: Caller, response: Response) -> Data[GateView]:
    """Let nobody pass."""
    return await _set_gate(gate_id, GateStatus.CLOSED, body, caller, response)


@router.get("/event-policy")
@guarded(Action.SEE_EVENTS)
async def get_policy(caller: Caller) -> Data[PolicyView]:
    """What the organization lets its staff do with venues."""
    is_granted = await usecases.get_policy(caller.services.db, caller.call)
    return Data(data=PolicyView(staff_may_change_venues=is_granted))


@router.put("/event-policy")
@guarded(Action.DELETE_VENUES)
async def set_policy(body: PolicyBody, caller: Caller) -> Data[PolicyView]:
    """Let staff change venues, or no longer."""
    await usecases.set_policy(caller.services.db, caller.call, staff_may_change_venues=body.staff_may_change_venues)
    return Data(data=PolicyView(staff_may_change_venues=body.staff_may_change_venues))


async def _set_gate(
    gate_id: UUID, status: GateStatus, body: GateOrderBody, caller: Caller, response: Response
) -> Data[GateView]:
    changed = await usecases.set_gate_status(caller.services.db, caller.call, gate_id, status, reason=body.reason)
    return _gate(changed, response)


def _venue(venue: Venue, response: Response) -> Data[VenueView]:
    response.headers["ETag"] = etag(venue.version)
    return Data(data=VenueView.model_validate(venue))


def _gate(gate: Gate, response: Response) -> Data[GateView]:
    response.headers["ETag"] = etag(gate.version)
    return Data(data=GateView.model_validate(gate))
