"""Holding places: the hot routes of a sale, and those around them."""

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter
from pydantic import Field

from voelgoed.accounts.idempotency import IdempotencyKeyReused, Once
from voelgoed.accounts.permissions import Action
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import booking
from voelgoed.holds.booking import SEATS_PER_ASK_MAX, Claim, Held
from voelgoed.holds.model import Hold, HoldStatus, SeatStatus, Source
from voelgoed.holds.refusals import (
    BlockFull,
    EventNotAvailable,
    EventUnavailable,
    HoldNotFound,
    HoldsExpired,
    NotHoldOwner,
    ReservationFailed,
    SalesClosed,
    SeatGone,
    SeatHeld,
    SeatingLocked,
    SeatNotAvailable,
    SeatNotFound,
    SeatRateLimited,
    SeatsRefused,
    TooManyHolds,
    TooManySeats,
    TooManyWheelchairs,
    ZoneDenied,
    ZoneNotFound,
)
from voelgoed.http.context import KEY_CHARS_MAX, Caller, Context
from voelgoed.http.edge import Tell, Whole
from voelgoed.http.guard import guarded
from voelgoed.http.problems import RequestInvalid
from voelgoed.http.shapes import LIMIT, Body, Cursor, Data, Limit, Listed, ReasonText, View
from voelgoed.ids import read_id
from voelgoed.paging import CursorInvalid
from voelgoed.seating.model import Category

router = APIRouter(prefix="/api", tags=["holds"])

RESERVE_ERRORS = (
    EventNotFound,
    EventNotAvailable,
    EventUnavailable,
    SalesClosed,
    ZoneDenied,
    SeatRateLimited,
    TooManySeats,
    TooManyWheelchairs,
    TooManyHolds,
    ReservationFailed,
)
SEAT_ERRORS = (SeatNotFound, SeatHeld, SeatNotAvailable, SeatGone)
NO_STORE = [(b"cache-control", b"no-cache, no-store")]
CartToken = Annotated[
    str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^(?![\s\S]*[\u0000-\u001f\u007f-\u009f])")
]
"""Without control characters: PostgreSQL takes no NUL, and one ask that it does not take costs its whole batch time."""


class ReserveAsk(msgspec.Struct, forbid_unknown_fields=True):
    """Where the ask comes from, and for which basket; both may be left out."""

    source: Source = Source.WEB
    cart_token: CartToken | None = None


class HoldsAsk(msgspec.Struct, forbid_unknown_fields=True):
    """Seats to be held together: all of them, or none."""

    seat_ids: Annotated[list[UUID], msgspec.Meta(min_length=1, max_length=SEATS_PER_ASK_MAX)]
    source: Source = Source.WEB
    cart_token: CartToken | None = None


class PlacesAsk(msgspec.Struct, forbid_unknown_fields=True):
    """How many places."""

    quantity: Annotated[int, msgspec.Meta(ge=1, le=SEATS_PER_ASK_MAX)]
    source: Source = Source.WEB
    cart_token: CartToken | None = None


class HoldView(View):
    """A hold, to its owner. It lasts until `held_until`; count down from `expires_in_seconds`, not from a clock."""

    hold_id: UUID
    event_id: UUID
    seat_id: UUID | None
    zone_id: UUID
    block_name: str | None
    row: str | None
    seat_number: str | None
    quantity: int
    status: str
    held_until: datetime
    held_until_unix: int
    expires_in_seconds: int
    can_extend: bool
    cart_token: str
    message: str


class StaffHoldView(View):
    """A hold, to those who run the event. `holder_name` is null where who holds it is no longer known here."""

    hold_id: UUID
    seat_id: UUID | None
    zone_id: UUID
    quantity: int
    user_id: UUID
    holder_name: str | None
    is_guest: bool
    source: str
    created_at: datetime
    held_until: datetime
    expires_in_seconds: int
    extended: bool
    status: HoldStatus


class HoldEndsView(View):
    """What became of the holds of an event that ended since then: each once, for however many places it was."""

    since: datetime
    sold: int
    expired: int
    released: int


class SeatDetailView(View):
    """A seat of an event. Whose hold is in the way is nobody's business; how long it lasts may be known."""

    seat_id: UUID
    ordinal: int
    zone_id: UUID
    block_name: str
    row: str
    seat_number: str
    category: Category
    status: SeatStatus
    version: int
    expires_in_seconds: int | None
    own_hold_id: UUID | None


class BlockBody(Body):
    """Which seats, and why."""

    seat_ids: Annotated[list[UUID], Field(min_length=1, max_length=1_000)]
    reason: ReasonText | None = None


class BlockedSeat(View):
    """What was said to one seat: `done`, or why not."""

    seat_id: UUID
    outcome: str


WITHOUT_WORDS: Final = ReserveAsk()
_decode_reserve = msgspec.json.Decoder(ReserveAsk)
_decode_holds = msgspec.json.Decoder(HoldsAsk)
_decode_places = msgspec.json.Decoder(PlacesAsk)


@guarded(Action.RESERVE, *RESERVE_ERRORS, *SEAT_ERRORS, IdempotencyKeyReused)
def reserve_seat(context: Context, tell: Tell) -> None:
    """Hold a seat for a time. Who holds it already gets the same hold again, and no more time."""
    ask = _decode_reserve.decode(context.body) if context.body else WITHOUT_WORDS
    booking.reserve_seat(
        context.services.lanes,
        context.services.db,
        context.call,
        _uuid(context, "event_id"),
        _uuid(context, "seat_id"),
        source=ask.source,
        cart_token=ask.cart_token,
        once=_once(context, "reserve_seat"),
        tell=lambda held: tell(_said(held)),
    )


@guarded(Action.RESERVE, *RESERVE_ERRORS, *SEAT_ERRORS, SeatsRefused, IdempotencyKeyReused)
async def reserve_seats(context: Context) -> Whole:
    """Hold several seats, all of them or none; of a refusal `details.seats` says which and why."""
    ask = _decode_holds.decode(context.body)
    if len(set(ask.seat_ids)) < len(ask.seat_ids):
        raise RequestInvalid(path="seat_ids")
    held = await booking.reserve_seats(
        context.services.lanes,
        context.services.db,
        context.call,
        _uuid(context, "event_id"),
        ask.seat_ids,
        source=ask.source,
        cart_token=ask.cart_token,
        once=_once(context, "reserve_seats"),
    )
    return _answer(any(one.is_new for one in held), [told(one) for one in held])


@guarded(Action.RESERVE, *RESERVE_ERRORS, ZoneNotFound, BlockFull, IdempotencyKeyReused)
async def reserve_places(context: Context) -> Whole:
    """Hold so many places of a zone where nobody chooses a seat."""
    ask = _decode_places.decode(context.body)
    held = await booking.reserve_places(
        context.services.lanes,
        context.services.db,
        context.call,
        _uuid(context, "event_id"),
        _uuid(context, "zone_id"),
        ask.quantity,
        source=ask.source,
        cart_token=ask.cart_token,
        once=_once(context, "reserve_places"),
    )
    return _answer(held.is_new, told(held))


@guarded(Action.RESERVE, HoldNotFound, NotHoldOwner)
async def release_hold(context: Context) -> Whole:
    """Let a hold go; what has ended already is let go."""
    await booking.release(context.services.lanes, context.services.db, context.call, _uuid(context, "hold_id"))
    return Whole(204, b"", [])


@router.get("/events/{event_id}/holds/mine")
@guarded(Action.RESERVE)
async def list_own_holds(event_id: UUID, caller: Caller) -> Data[list[HoldView]]:
    """What the caller holds of an event now."""
    found = await booking.list_own(caller.services.db, caller.call, event_id)
    return Data(data=[HoldView(**told(one)) for one in found])


@router.post("/holds/{hold_id}/extend")
@guarded(Action.RESERVE, HoldNotFound, NotHoldOwner, HoldsExpired, EventNotAvailable)
async def extend_hold(hold_id: UUID, caller: Caller) -> Data[HoldView]:
    """Five minutes more, once for each hold; asked again it stays as it is."""
    hold = await booking.extend(caller.services.db, caller.call, hold_id)
    return Data(data=HoldView(**told(await booking.named(caller.services.db, caller.call, hold))))


@router.get("/events/{event_id}/seats/{seat_id}")
@guarded(Action.RESERVE, SeatNotFound)
async def get_event_seat(event_id: UUID, seat_id: UUID, caller: Caller) -> Data[SeatDetailView]:
    """One seat as it stands now, and whether it is the caller's."""
    seen = await booking.see_seat(caller.services.availability, caller.call, event_id, seat_id)
    return Data(
        data=SeatDetailView(
            seat_id=seen.seat_id,
            ordinal=seen.ordinal,
            zone_id=seen.zone_id,
            block_name=seen.name.block_name,
            row=seen.name.row,
            seat_number=seen.name.seat_number,
            category=Category(seen.category),
            status=seen.status,
            version=seen.version,
            expires_in_seconds=seen.expires_in_s,
            own_hold_id=seen.own_hold_id,
        )
    )


@router.get("/admin/events/{event_id}/holds")
@guarded(Action.SEE_HOLDS, EventNotFound, CursorInvalid)
async def list_event_holds(
    event_id: UUID, caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT
) -> Listed[StaffHoldView]:
    """Everybody's holds of an event, the next to lapse first."""
    page = await booking.list_all(caller.services.db, caller.call, event_id, cursor=cursor, limit=limit)
    return Listed(data=[_to_staff(claim) for claim in page.items], next_cursor=page.next_cursor)


@router.get("/admin/events/{event_id}/holds/ends")
@guarded(Action.SEE_HOLDS, EventNotFound)
async def count_hold_ends(event_id: UUID, caller: Caller) -> Data[HoldEndsView]:
    """What became of the holds that ended within the last hour: how many were sold, lapsed, or were let go."""
    found = await booking.count_ends(caller.services.db, caller.call, event_id)
    return Data(data=HoldEndsView.model_validate(found))


@router.post("/admin/events/{event_id}/seats/block")
@guarded(Action.BLOCK_SEATS, SeatNotFound, SeatingLocked)
async def block_seats(event_id: UUID, body: BlockBody, caller: Caller) -> Data[list[BlockedSeat]]:
    """Take seats out of sale by hand. Who holds one loses it; what is sold stays sold."""
    return await _set_blocked(event_id, body, caller, is_blocked=True)


@router.post("/admin/events/{event_id}/seats/unblock")
@guarded(Action.BLOCK_SEATS, SeatNotFound, SeatingLocked)
async def unblock_seats(event_id: UUID, body: BlockBody, caller: Caller) -> Data[list[BlockedSeat]]:
    """Put seats back on sale that somebody took out by hand; what the event keeps out stays out."""
    return await _set_blocked(event_id, body, caller, is_blocked=False)


async def _set_blocked(
    event_id: UUID, body: BlockBody, caller: Context, *, is_blocked: bool
) -> Data[list[BlockedSeat]]:
    said = await booking.set_blocked(
        caller.services.lanes,
        caller.services.db,
        caller.call,
        event_id,
        body.seat_ids,
        is_blocked=is_blocked,
        reason=body.reason,
    )
    return Data(data=[BlockedSeat(seat_id=seat_id, outcome=outcome) for seat_id, outcome in said.items()])


def told(held: Held) -> dict[str, object]:
    """A hold as its owner is told of it."""
    hold, name = held.hold, held.name
    is_active = hold.is_active
    minutes = round((hold.initial_expires_at - hold.created_at).total_seconds() / 60) if held.is_new else 0
    return {
        "hold_id": hold.id,
        "event_id": hold.event_id,
        "seat_id": hold.seat_id,
        "zone_id": hold.zone_id,
        "block_name": name.block_name if name else None,
        "row": name.row if name else None,
        "seat_number": name.seat_number if name else None,
        "quantity": hold.quantity,
        "status": "held" if is_active else _ended(hold),
        "held_until": hold.expires_at,
        "held_until_unix": int(hold.expires_at.timestamp()),
        "expires_in_seconds": booking.seconds_left(hold.expires_at, hold.now),
        "can_extend": is_active and hold.extended_count == 0,
        "cart_token": hold.cart_token,
        "message": f"Held for {minutes} minutes." if held.is_new else "You hold this already.",
    }


def _said(held: Held | Exception) -> Whole | Exception:
    """What comes of an ask for one seat, as it is sent; whoever tells it has others to tell, and must not fail."""
    if isinstance(held, Exception):
        return held
    try:
        return _answer(held.is_new, told(held))
    except Exception as failed:  # noqa: BLE001 - told, whatever it is
        return failed


def _ended(hold: Hold) -> str:
    """What became of a hold that is none any more, whether or not somebody has noticed that it lapsed."""
    return (HoldStatus.EXPIRED if hold.status is HoldStatus.ACTIVE else hold.status).value


def _to_staff(claim: Claim) -> StaffHoldView:
    hold, holder = claim.hold, claim.holder
    return StaffHoldView(
        hold_id=hold.id,
        seat_id=hold.seat_id,
        zone_id=hold.zone_id,
        quantity=hold.quantity,
        user_id=hold.user_id,
        holder_name=holder.name if holder else None,
        is_guest=holder is not None and holder.is_guest,
        source=hold.source,
        created_at=hold.created_at,
        held_until=hold.expires_at,
        expires_in_seconds=booking.seconds_left(hold.expires_at, hold.now),
        extended=hold.extended_count > 0,
        status=hold.status,
    )


def _answer(is_new: bool, data: object) -> Whole:  # noqa: FBT001 - 201 or 200
    return Whole(201 if is_new else 200, msgspec.json.encode({"data": data}), NO_STORE)


def _uuid(context: Context, name: str) -> UUID:
    try:
        return read_id(context.parameters[name])
    except ValueError:
        raise RequestInvalid(path=name) from None


def _once(context: Context, verb: str) -> Once | None:
    key = context.headers.get(b"idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= KEY_CHARS_MAX or not key.isascii() or any(byte < 0x21 or byte > 0x7E for byte in key):  # noqa: PLR2004 - printable
        raise RequestInvalid(path="Idempotency-Key")
    where = "/".join(context.parameters.values())
    return Once.of(key.decode(), verb, where.encode() + b"\0" + context.body)
