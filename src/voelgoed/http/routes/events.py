"""Events, to the organization's own people: every field, every status, every verb."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import Field

from voelgoed.accounts.idempotency import IdempotencyKeyReused
from voelgoed.accounts.model import Actor
from voelgoed.accounts.permissions import Action, may
from voelgoed.events import calendar, rules, settings, usecases
from voelgoed.events.model import (
    Event,
    EventAtVenue,
    EventFilter,
    Json,
    NewDate,
    NewEvent,
    Order,
    SaleState,
    Scanning,
    Status,
    Summary,
    Verb,
)
from voelgoed.events.refusals import (
    CapacityExceeded,
    ConsentNeeded,
    EventChanged,
    EventInUse,
    EventMoveRefused,
    EventNotFound,
    EventSlugTaken,
    EventTimesInvalid,
    FieldDenied,
    FieldLocked,
    ReasonNeeded,
    ReplacementInvalid,
    SettingsInvalid,
    VenueNotFound,
)
from voelgoed.holds import usecases as places
from voelgoed.holds.refusals import SeatingInUse
from voelgoed.http.context import Caller, Context, IdempotencyKey, IfMatch, etag, once, seen
from voelgoed.http.guard import guarded
from voelgoed.http.problems import RequestInvalid
from voelgoed.http.routes.venues import JsonObject, People
from voelgoed.http.shapes import (
    LIMIT,
    NO_NUL,
    SOME_TEXT,
    Body,
    Cursor,
    Data,
    Flag,
    Limit,
    Listed,
    Moment,
    Name,
    ReasonText,
    Slug,
    View,
)
from voelgoed.paging import CursorInvalid
from voelgoed.seating.model import LayoutId, Pin
from voelgoed.seating.offer import SeatingInvalid
from voelgoed.seating.refusals import LayoutNotActive, LayoutNotFound, LayoutOfOtherVenue

router = APIRouter(prefix="/api/admin/events", tags=["events"])

Description = Annotated[str, Field(max_length=20_000, pattern=NO_NUL)]
PostponementReason = Annotated[str, Field(min_length=1, max_length=200, pattern=SOME_TEXT)]
LAYOUT_ERRORS = (LayoutNotFound, LayoutNotActive, LayoutOfOtherVenue)
MOVE_ERRORS = (EventNotFound, EventChanged, EventMoveRefused, ReasonNeeded, EventTimesInvalid)


class VenueBrief(View):
    """What an event says of its venue."""

    id: UUID
    name: str
    slug: str
    timezone: str


class EventView(View):
    """An event, to its organizer. What is computed (sale, scanning, days) holds for this moment.

    `verbs` and `editable_fields` are what whoever asks may do now.
    """

    id: UUID
    name: str
    slug: str
    description: str
    status: Status
    start_at: datetime
    end_at: datetime
    sale_start_at: datetime | None
    sale_end_at: datetime | None
    capacity: int | None
    settings: JsonObject
    replaced_by_event_id: UUID | None
    recurrence_group_id: UUID | None
    rescheduled_at: datetime | None
    rescheduled_end_at: datetime | None
    postponement_reason: str | None
    is_automatic: bool
    version: int
    inventory_epoch: int
    inserted_at: datetime
    updated_at: datetime
    venue: VenueBrief
    effective_start_at: datetime | None
    effective_end_at: datetime | None
    doors_at: datetime | None
    days: list[date]
    on_sale: bool
    sale_state: SaleState
    scanning: Scanning
    is_shown: bool
    verbs: list[Verb]
    editable_fields: list[str]


class NewEventBody(Body):
    """An event to be made. Without a sale window it is on sale from publication until it is over.

    With a layout and version it is seated there; without, it has room for as many as its capacity says.
    """

    venue_id: UUID
    name: Name
    slug: Slug
    start_at: Moment
    end_at: Moment
    description: Description = ""
    sale_start_at: Moment | None = None
    sale_end_at: Moment | None = None
    capacity: People | None = None
    settings: JsonObject = Field(default_factory=dict)
    recurrence_group_id: UUID | None = None
    is_automatic: Flag = True
    layout_id: UUID | None = None
    layout_version: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None

    def pin(self) -> Pin | None:
        """The version of a layout that it shall have, if any; a layout is named with its version."""
        if (self.layout_id is None) != (self.layout_version is None):
            raise RequestInvalid(path="layout_version")
        if self.layout_id is None or self.layout_version is None:
            return None
        return Pin(LayoutId(self.layout_id), self.layout_version)


class EventChangesBody(Body):
    """What shall change of an event; what is left out stays. Which fields can change depends on status and role."""

    venue_id: UUID = Field(default_factory=lambda: UUID(int=0))
    name: Name = Field(default_factory=str)
    slug: Slug = Field(default_factory=str)
    description: Description = Field(default_factory=str)
    start_at: Moment = Field(default_factory=lambda: datetime.min.replace(tzinfo=UTC))
    end_at: Moment = Field(default_factory=lambda: datetime.min.replace(tzinfo=UTC))
    sale_start_at: Moment | None = None
    sale_end_at: Moment | None = None
    capacity: People | None = None
    settings: JsonObject = Field(default_factory=dict)
    replaced_by_event_id: UUID | None = None
    recurrence_group_id: UUID | None = None
    is_automatic: Flag = Field(default_factory=bool)


class OrderBody(Body):
    """Why, where somebody wants to say so."""

    reason: ReasonText | None = None


class ReasonedBody(Body):
    """Why."""

    reason: ReasonText


class PostponeBody(ReasonedBody):
    """Why, what the public is told of it, and the new date if it is known."""

    postponement_reason: PostponementReason | None = None
    start_at: Moment | None = None
    end_at: Moment | None = None
    sale_start_at: Moment | None = None
    sale_end_at: Moment | None = None

    def new_date(self) -> NewDate | None:
        """The date, if there is one; an end without a beginning is none."""
        if self.start_at is None:
            if self.end_at or self.sale_start_at or self.sale_end_at:
                raise EventTimesInvalid(why="a new date begins with its start_at")
            return None
        return NewDate(
            start_at=self.start_at,
            end_at=self.end_at,
            sale_start_at=self.sale_start_at,
            sale_end_at=self.sale_end_at,
        )


class RescheduleBody(ReasonedBody):
    """The new date, and why. As long as before and on sale until it begins, unless said otherwise."""

    start_at: Moment
    end_at: Moment | None = None
    sale_start_at: Moment | None = None
    sale_end_at: Moment | None = None


class ChangeVenueBody(ReasonedBody):
    """Where it shall take place instead, why, and that this is meant although people know of it."""

    venue_id: UUID
    consent: Flag = False


@router.get("")
@guarded(Action.SEE_EVENTS, CursorInvalid)
async def list_events(
    caller: Caller,
    status: Annotated[list[Status] | None, Query(max_length=len(Status))] = None,
    venue_id: UUID | None = None,
    recurrence_group_id: UUID | None = None,
    q: Annotated[str | None, Query(min_length=1, max_length=100, pattern=NO_NUL)] = None,
    order: Literal["asc", "desc"] = "asc",
    cursor: Cursor = None,
    limit: Limit = LIMIT,
) -> Listed[EventView]:
    """The organization's events in the order of time; archived ones only when `status` names them."""
    wanted = EventFilter(
        statuses=frozenset(status or usecases.LISTED),
        venue_id=venue_id,
        recurrence_group_id=recurrence_group_id,
        words=q,
        is_latest_first=order == "desc",
    )
    page = await usecases.list_events(caller.services.db, caller.call, wanted, cursor=cursor, limit=limit)
    shown = [event_view(one, caller.call.actor) for one in page.items]
    return Listed(data=shown, next_cursor=page.next_cursor)


@router.post("", status_code=201)
@guarded(
    Action.CHANGE_EVENTS,
    VenueNotFound,
    EventNotFound,
    EventSlugTaken,
    EventTimesInvalid,
    CapacityExceeded,
    SettingsInvalid,
    IdempotencyKeyReused,
    *LAYOUT_ERRORS,
)
async def create_event(
    body: NewEventBody, caller: Caller, response: Response, key: IdempotencyKey = None
) -> Data[EventView]:
    """Make an event; it begins as a draft."""
    made = await places.create_event(
        caller.services.studio,
        caller.services.catalogue,
        caller.call,
        NewEvent(**body.model_dump(exclude={"layout_id", "layout_version"})),
        pin=body.pin(),
        once=once(key, caller, "create_event"),
    )
    return _answer(made, caller, response)


@router.get("/{event_id}")
@guarded(Action.SEE_EVENTS, EventNotFound)
async def get_event(event_id: UUID, caller: Caller, response: Response) -> Data[EventView]:
    """One event, whatever its status."""
    return _answer(await usecases.get_event(caller.services.db, caller.call, event_id), caller, response)


@router.patch("/{event_id}")
@guarded(
    Action.CHANGE_EVENTS,
    EventNotFound,
    EventChanged,
    EventSlugTaken,
    EventTimesInvalid,
    CapacityExceeded,
    SettingsInvalid,
    FieldLocked,
    FieldDenied,
    ConsentNeeded,
    ReplacementInvalid,
    VenueNotFound,
    LayoutOfOtherVenue,
    SeatingInUse,
    SeatingInvalid,
)
async def update_event(
    event_id: UUID, body: EventChangesBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """Change an event."""
    changed = await places.update_event(
        caller.services.studio,
        caller.services.catalogue,
        caller.call,
        event_id,
        body.model_dump(exclude_unset=True),
        version=seen(if_match),
    )
    return _answer(changed, caller, response)


@router.delete("/{event_id}", status_code=204)
@guarded(Action.SCHEDULE_EVENTS, EventNotFound, EventChanged, EventInUse)
async def delete_event(event_id: UUID, caller: Caller, if_match: IfMatch = None) -> None:
    """Delete a draft to which nothing refers; everything else is archived instead."""
    await places.delete_event(
        caller.services.studio, caller.services.catalogue, caller.call, event_id, version=seen(if_match)
    )


@router.post("/{event_id}/publish")
@guarded(Action.MOVE_EVENTS, *MOVE_ERRORS, CapacityExceeded, SeatingInvalid, *LAYOUT_ERRORS)
async def publish(
    event_id: UUID, body: OrderBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """Show it to everybody, with its places. A postponed event takes place on its new date, if it has one."""
    return await _move(event_id, Order(verb=Verb.PUBLISH, reason=body.reason, version=seen(if_match)), caller, response)


@router.post("/{event_id}/unpublish")
@guarded(Action.MOVE_EVENTS, *MOVE_ERRORS, SeatingInUse)
async def unpublish(
    event_id: UUID, body: OrderBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """Make it a draft again, as long as nobody holds or has bought a place."""
    order = Order(verb=Verb.UNPUBLISH, reason=body.reason, version=seen(if_match))
    return await _move(event_id, order, caller, response)


@router.post("/{event_id}/go-live")
@guarded(Action.MOVE_EVENTS, *MOVE_ERRORS)
async def go_live(
    event_id: UUID, body: OrderBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """It has begun: scans count."""
    return await _move(event_id, Order(verb=Verb.GO_LIVE, reason=body.reason, version=seen(if_match)), caller, response)


@router.post("/{event_id}/end")
@guarded(Action.MOVE_EVENTS, *MOVE_ERRORS)
async def end(
    event_id: UUID, body: OrderBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """It is over."""
    return await _move(event_id, Order(verb=Verb.END, reason=body.reason, version=seen(if_match)), caller, response)


@router.post("/{event_id}/cancel")
@guarded(Action.MOVE_EVENTS, *MOVE_ERRORS)
async def cancel(
    event_id: UUID, body: ReasonedBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """It does not take place: sales stop at once, and the storefront shows it no longer."""
    return await _move(event_id, Order(verb=Verb.CANCEL, reason=body.reason, version=seen(if_match)), caller, response)


@router.post("/{event_id}/postpone")
@guarded(Action.MOVE_EVENTS, *MOVE_ERRORS)
async def postpone(
    event_id: UUID, body: PostponeBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """It takes place later. Without a new date nothing is sold until `reschedule` gives one."""
    order = Order(
        verb=Verb.POSTPONE,
        reason=body.reason,
        version=seen(if_match),
        new_date=body.new_date(),
        postponement_reason=body.postponement_reason,
    )
    return await _move(event_id, order, caller, response)


@router.post("/{event_id}/reschedule")
@guarded(Action.SCHEDULE_EVENTS, *MOVE_ERRORS)
async def reschedule(
    event_id: UUID, body: RescheduleBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """Give a published or postponed event another date."""
    order = Order(
        verb=Verb.RESCHEDULE,
        reason=body.reason,
        version=seen(if_match),
        new_date=NewDate(**body.model_dump(exclude={"reason"})),
    )
    return await _move(event_id, order, caller, response)


@router.post("/{event_id}/archive")
@guarded(Action.MOVE_EVENTS, *MOVE_ERRORS)
async def archive(
    event_id: UUID, body: OrderBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """Put it away; it is found only when asked for by name."""
    return await _move(event_id, Order(verb=Verb.ARCHIVE, reason=body.reason, version=seen(if_match)), caller, response)


@router.post("/{event_id}/change-venue")
@guarded(
    Action.SCHEDULE_EVENTS,
    *MOVE_ERRORS,
    ConsentNeeded,
    VenueNotFound,
    CapacityExceeded,
    LayoutOfOtherVenue,
    SeatingInUse,
    SeatingInvalid,
)
async def change_venue(
    event_id: UUID, body: ChangeVenueBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[EventView]:
    """Move it to another venue; once people know of it, only with `consent`."""
    changed = await places.change_venue(
        caller.services.studio,
        caller.services.catalogue,
        caller.call,
        event_id,
        body.venue_id,
        has_consent=body.consent,
        reason=body.reason,
        version=seen(if_match),
    )
    return _answer(changed, caller, response)


def when(event: Event | Summary, own: Json, venue: Json, timezone: str) -> dict[str, Any]:
    """When an event takes place, by the clock and the habits of its venue; nothing of it while there is no date."""
    if event.status is Status.POSTPONED and event.rescheduled_at is None:
        return {"effective_start_at": None, "effective_end_at": None, "doors_at": None, "days": []}
    start, end = event.effective_start_at, event.effective_end_at
    minutes = settings.doors_open_minutes(own, venue)
    return {
        "effective_start_at": start,
        "effective_end_at": end,
        "doors_at": None if minutes is None else start - timedelta(minutes=minutes),
        "days": calendar.days_of(start, end, timezone, settings.day_cutoff(own, venue)),
    }


def event_view(found: EventAtVenue, actor: Actor) -> EventView:
    """An event as somebody of its organization sees it, computed for now."""
    event, venue = found.event, found.venue
    now = datetime.now(UTC)
    known = {name: getattr(event, name) for name in event.__slots__ if name in EventView.model_fields}
    return EventView(
        **known,
        **when(event, event.settings, venue.settings, venue.timezone),
        venue=VenueBrief.model_validate(venue),
        on_sale=rules.is_on_sale(event, now),
        sale_state=rules.sale_state(event, now),
        scanning=rules.scanning(event, now),
        is_shown=rules.is_shown(event),
        verbs=[verb for verb in rules.verbs_of(event.status) if may(actor, usecases.action_of(verb))],
        editable_fields=usecases.editable_fields(event.status, actor),
    )


async def _move(event_id: UUID, order: Order, caller: Caller, response: Response) -> Data[EventView]:
    moved = await places.move_event(caller.services.studio, caller.services.catalogue, caller.call, event_id, order)
    return _answer(moved, caller, response)


def _answer(found: EventAtVenue, caller: Context, response: Response) -> Data[EventView]:
    response.headers["ETag"] = etag(found.event.version)
    return Data(data=event_view(found, caller.call.actor))
