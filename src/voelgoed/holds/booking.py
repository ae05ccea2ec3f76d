"""What buyers do with places: hold them, see what they hold, ask for more time, let go; what staff do by hand."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from voelgoed.accounts import roles
from voelgoed.accounts.idempotency import IdempotencyKeyReused, Once
from voelgoed.accounts.model import Call, Member, Role
from voelgoed.accounts.permissions import Action, PermissionDenied, may, require
from voelgoed.db import Database, after_commit
from voelgoed.errors import DomainError, LostRace
from voelgoed.events import lifecycle
from voelgoed.events.model import Teller
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import refusals, registry, store
from voelgoed.holds.availability import Availability
from voelgoed.holds.lane import Lanes
from voelgoed.holds.model import GRANTED, Ask, Hold, Item, Outcome, SeatName, SeatStatus, Source, Verdict
from voelgoed.holds.refusals import (
    EventNotAvailable,
    HoldNotFound,
    HoldsExpired,
    NotHoldOwner,
    ReservationFailed,
    SeatingLocked,
    SeatNotFound,
    SeatsRefused,
)
from voelgoed.holds.waiting import Said
from voelgoed.ids import new_id
from voelgoed.network import HOLDS, network_of
from voelgoed.paging import Page, after_moment, page_by_moment
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

SEATS_PER_ASK_MAX: Final = 40
BASKET_MAX: Final = 200
ENDS_WITHIN: Final = timedelta(hours=1)
STAFF: Final = frozenset({Role.STAFF, Role.ADMIN, Role.OWNER})

REFUSALS: Final[Mapping[Outcome, type[DomainError]]] = {
    Outcome.SEAT_NOT_FOUND: refusals.SeatNotFound,
    Outcome.SEAT_HELD: refusals.SeatHeld,
    Outcome.SEAT_NOT_AVAILABLE: refusals.SeatNotAvailable,
    Outcome.SEAT_GONE: refusals.SeatGone,
    Outcome.ZONE_DENIED: refusals.ZoneDenied,
    Outcome.KEY_REUSED: IdempotencyKeyReused,
    Outcome.RATE_LIMITED: refusals.SeatRateLimited,
    Outcome.TOO_MANY_SEATS: refusals.TooManySeats,
    Outcome.TOO_MANY_WHEELCHAIRS: refusals.TooManyWheelchairs,
    Outcome.TOO_MANY_HOLDS: refusals.TooManyHolds,
    Outcome.ZONE_NOT_FOUND: refusals.ZoneNotFound,
    Outcome.FULL: refusals.BlockFull,
    Outcome.EVENT_NOT_FOUND: EventNotFound,
    Outcome.EVENT_UNAVAILABLE: refusals.EventUnavailable,
    Outcome.EVENT_NOT_AVAILABLE: refusals.EventNotAvailable,
    Outcome.SALES_CLOSED: refusals.SalesClosed,
}
"""What a refused ask is answered with. Of a group the first that is not merely barred by another."""
WHOLE_ASK: Final = frozenset(
    {
        Outcome.KEY_REUSED,
        Outcome.RATE_LIMITED,
        Outcome.TOO_MANY_SEATS,
        Outcome.TOO_MANY_WHEELCHAIRS,
        Outcome.TOO_MANY_HOLDS,
        Outcome.EVENT_NOT_FOUND,
        Outcome.EVENT_UNAVAILABLE,
        Outcome.EVENT_NOT_AVAILABLE,
        Outcome.SALES_CLOSED,
    }
)
"""What is not about one seat: said as it is, to a group too."""
NOT_EXTENDED: Final[Mapping[str, type[DomainError]]] = {
    "not_hold_owner": NotHoldOwner,
    "hold_not_found": HoldNotFound,
    "event_not_available": EventNotAvailable,
}


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A hold as its owner sees it."""

    hold: Hold
    name: SeatName | None
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A hold as those who run the event see it; nobody's where who held it has left the organization."""

    hold: Hold
    holder: Member | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What became of holds since a moment. Each counts once, for however many places it was."""

    since: datetime
    sold: int
    expired: int
    released: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSeat:
    """A seat of an event as somebody sees it; whose hold is in the way is nobody's business."""

    seat_id: UUID
    ordinal: int
    zone_id: UUID
    name: SeatName
    category: str
    status: SeatStatus
    version: int
    expires_in_s: int | None
    own_hold_id: UUID | None


def reserve_seat(
    lanes: Lanes,
    db: Database,
    call: Call,
    event_id: UUID,
    seat_id: UUID,
    *,
    source: Source,
    cart_token: str | None,
    once: Once | None = None,
    tell: Callable[[Held | Exception], None],
) -> None:
    """Hold a seat for a time. Who asks is told the hold, or why there is none, and never before this returns.

    Most of what a sale asks: so it needs no task of its own, and waits in the lane and nowhere else.
    """
    ask = _ask(call, event_id, (Item(new_id(), seat_id=seat_id),), source=source, cart_token=cart_token, once=once)
    began = time.perf_counter()

    def said(verdicts: Said) -> None:
        try:
            held = _at_hand(lanes, ask, verdicts, began)
        except Exception as failed:  # noqa: BLE001 - told, whatever it is
            tell(failed)
            return
        if held is not None:
            tell(held)
        else:
            assert isinstance(verdicts, list)
            lanes.go_on(read(verdicts))

    async def read(verdicts: Sequence[Verdict]) -> None:
        try:
            (held,) = await _held(lanes, db, ask, verdicts)
        except Exception as failed:  # noqa: BLE001 - told, whatever it is
            tell(failed)
        else:
            tell(held)

    lanes.put(ask, said)


async def reserve_seats(
    lanes: Lanes,
    db: Database,
    call: Call,
    event_id: UUID,
    seat_ids: Sequence[UUID],
    *,
    source: Source = Source.WEB,
    cart_token: str | None = None,
    once: Once | None = None,
) -> list[Held]:
    """Hold seats for a time, all of them or none. Who holds one of them already keeps it, with the time it has."""
    items = tuple(Item(new_id(), seat_id=seat_id) for seat_id in seat_ids)
    return await _reserve(lanes, db, call, event_id, items, source=source, cart_token=cart_token, once=once)


async def reserve_places(
    lanes: Lanes,
    db: Database,
    call: Call,
    event_id: UUID,
    zone_id: UUID,
    quantity: int,
    *,
    source: Source = Source.WEB,
    cart_token: str | None = None,
    once: Once | None = None,
) -> Held:
    """Hold so many places of a zone where nobody chooses a seat."""
    items = (Item(new_id(), zone_id=zone_id, quantity=quantity),)
    found = await _reserve(lanes, db, call, event_id, items, source=source, cart_token=cart_token, once=once)
    return found[0]


async def list_own(db: Database, call: Call, event_id: UUID) -> list[Held]:
    """What somebody holds of an event now."""
    user_id = _holder(call)
    async with db.transaction(call.organization_id) as conn:
        holds = await store.list_holds_of_user(conn, call.organization_id, user_id, event_id, BASKET_MAX)
        names = await store.name_seats(
            conn, call.organization_id, event_id, [one.seat_id for one in holds if one.seat_id]
        )
    return [Held(hold=hold, name=names.get(hold.seat_id) if hold.seat_id else None, is_new=False) for hold in holds]


async def list_all(db: Database, call: Call, event_id: UUID, *, cursor: str | None, limit: int) -> Page[Claim]:
    """Everybody's holds of an event, the next to lapse first, for those who run it."""
    require(call.actor, Action.SEE_HOLDS)
    async with db.transaction(call.organization_id) as conn:
        await lifecycle.find_at_venue(conn, call.organization_id, event_id)
        found = await store.list_holds_of_event(
            conn, call.organization_id, event_id, after=after_moment(cursor), limit=limit + 1
        )
        people = await roles.find_people(conn, call.organization_id, [hold.user_id for hold in found])
    claims = [Claim(hold=hold, holder=people.get(hold.user_id)) for hold in found]
    return page_by_moment(claims, limit, lambda claim: (claim.hold.expires_at, claim.hold.id))


async def count_ends(db: Database, call: Call, event_id: UUID) -> Ends:
    """What became of the holds that ended within the last hour, for those who run the event."""
    require(call.actor, Action.SEE_HOLDS)
    async with db.transaction(call.organization_id) as conn:
        await lifecycle.find_at_venue(conn, call.organization_id, event_id)
        since = await store.read_clock(conn) - ENDS_WITHIN
        found = await store.count_hold_ends(conn, call.organization_id, event_id, since)
    return Ends(
        since=since,
        sold=found.get("seat_sold", 0),
        expired=found.get("seat_hold_expired", 0),
        released=found.get("seat_hold_released", 0),
    )


async def extend(db: Database, call: Call, hold_id: UUID) -> Hold:
    """Five minutes more for an own hold, once."""
    user_id = _holder(call)
    hold = await _find(db, call, hold_id)
    said = await registry.extend(db, call.organization_id, hold.event_id, user_id, [hold_id], by=Teller.of(call))
    _, verdict, _ = said[0]
    if verdict != "extended":
        raise NOT_EXTENDED.get(verdict, HoldsExpired)
    with after_commit():
        return await _find(db, call, hold_id)


async def named(db: Database, call: Call, hold: Hold) -> Held:
    """Return a hold that was just extended, with the name of its seat."""
    names = {}
    if hold.seat_id:
        with after_commit():
            async with db.transaction(call.organization_id) as conn:
                names = await store.name_seats(conn, call.organization_id, hold.event_id, [hold.seat_id])
    return Held(hold=hold, name=names.get(hold.seat_id) if hold.seat_id else None, is_new=False)


async def release(lanes: Lanes, db: Database, call: Call, hold_id: UUID) -> None:
    """Let an own hold go; what has ended already is let go."""
    user_id = _holder(call)
    hold = await _find(db, call, hold_id)
    is_anybodys = may(call.actor, Action.RELEASE_HOLDS)
    said = await registry.release(
        db,
        call.organization_id,
        hold.event_id,
        [hold_id],
        user_id=None if is_anybodys else user_id,
        by=Teller.of(call),
        reason="released_by_owner" if hold.user_id == user_id else "released_by_staff",
    )
    if said[hold_id] == "not_hold_owner":
        raise NotHoldOwner
    if hold.seat_id:
        lanes.doubt(hold.event_id, [hold.seat_id])


async def see_seat(availability: Availability, call: Call, event_id: UUID, seat_id: UUID) -> SeenSeat:
    """One seat of an event, and whether it is the caller's."""
    found = await availability.look_up(call.organization_id, event_id, seat_id)
    described = await availability.describe(call.organization_id, event_id, seat_id) if found else None
    if described is None or found is None:
        raise SeatNotFound
    is_own = found.status is SeatStatus.HELD and found.user_id == call.actor.user_id
    return SeenSeat(
        seat_id=seat_id,
        ordinal=described.ordinal,
        zone_id=described.zone_id,
        name=described.name,
        category=described.category,
        status=found.status,
        version=found.version,
        expires_in_s=found.expires_in_s,
        own_hold_id=found.hold_id if is_own else None,
    )


async def set_blocked(
    lanes: Lanes,
    db: Database,
    call: Call,
    event_id: UUID,
    seat_ids: Sequence[UUID],
    *,
    is_blocked: bool,
    reason: str | None,
) -> dict[UUID, str]:
    """Take seats out of sale by hand, or put them back."""
    require(call.actor, Action.BLOCK_SEATS)
    said = await registry.block(
        db, call.organization_id, event_id, seat_ids, is_block=is_blocked, by=Teller.of(call), reason=reason
    )
    lanes.doubt(event_id, seat_ids)
    outcomes = set(said.values())
    if outcomes == {"seat_not_found"}:
        raise SeatNotFound
    if "seating_locked" in outcomes:
        async with db.transaction(call.organization_id) as conn:
            event, _ = await lifecycle.find_at_venue(conn, call.organization_id, event_id)
        raise SeatingLocked(status=event.status)
    return said


def seconds_left(until: datetime, now: datetime) -> int:
    """Whole seconds until then, by the clock that counts; nothing less than none."""
    return max(0, int((until - now).total_seconds()))


def cart_of(user_id: UUID, event_id: UUID) -> str:
    """The basket of somebody at an event, when they name none: always the same."""
    return hashlib.blake2b(user_id.bytes + event_id.bytes, digest_size=16, person=b"voelgoed cart").hexdigest()


async def _reserve(
    lanes: Lanes,
    db: Database,
    call: Call,
    event_id: UUID,
    items: tuple[Item, ...],
    *,
    source: Source,
    cart_token: str | None,
    once: Once | None,
) -> list[Held]:
    ask = _ask(call, event_id, items, source=source, cart_token=cart_token, once=once)
    began = time.perf_counter()
    try:
        verdicts = await lanes.ask(ask)
    except LostRace as lost:
        raise ReservationFailed from lost
    metrics.observe(metrics.HOLD_SECONDS, time.perf_counter() - began)
    return await _held(lanes, db, ask, verdicts)


def _ask(
    call: Call,
    event_id: UUID,
    items: tuple[Item, ...],
    *,
    source: Source,
    cart_token: str | None,
    once: Once | None,
) -> Ask:
    user_id, origin = _holder(call), call.origin
    role = call.actor.role
    return Ask(
        organization_id=call.organization_id,
        event_id=event_id,
        user_id=user_id,
        role=role,
        is_staff=role in STAFF,
        items=items,
        cart_token=cart_token or cart_of(user_id, event_id),
        source=source,
        request_id=call.request_id,
        origin=origin,
        ip=network_of(origin.ip, HOLDS),
        key=once.key if once else None,
        fingerprint=once.fingerprint if once else None,
    )


def _at_hand(lanes: Lanes, ask: Ask, said: Said, began: float) -> Held | None:
    """The hold of an ask for one seat; None when it must be read. What there is instead is raised."""
    if isinstance(said, LostRace):
        raise ReservationFailed from said
    if isinstance(said, Exception):
        raise said
    metrics.observe(metrics.HOLD_SECONDS, time.perf_counter() - began)
    if said[0].outcome not in GRANTED:
        raise _refusal(ask.items, said)
    given = lanes.given(ask, said)
    return Held(hold=given[0][0], name=given[0][1], is_new=True) if given else None


def _refusal(items: Sequence[Item], verdicts: Sequence[Verdict]) -> DomainError:
    refused = [verdict for verdict in verdicts if verdict.outcome not in GRANTED]
    first = next((one for one in refused if one.outcome is not Outcome.GROUP_REFUSED), refused[0])
    if len(items) > 1 and first.outcome not in WHOLE_ASK:
        told = [
            {"seat_id": str(item.seat_id), "error": verdict.outcome}
            for item, verdict in zip(items, verdicts, strict=True)
            if verdict.outcome not in GRANTED and verdict.outcome is not Outcome.GROUP_REFUSED
        ]
        return SeatsRefused(seats=told)
    facts: dict[str, object] = {}
    if first.outcome is Outcome.SEAT_NOT_AVAILABLE:
        facts["current_status"] = first.state
    elif first.outcome is Outcome.SEAT_HELD and first.until:
        facts["expires_in"] = seconds_left(first.until, datetime.now(first.until.tzinfo))
    elif first.outcome is Outcome.RATE_LIMITED and first.until:
        facts["retry_after_s"] = max(1, -((datetime.now(first.until.tzinfo) - first.until) // timedelta(seconds=1)))
    elif first.outcome is Outcome.FULL:
        facts["available"] = int(first.state or 0)
    return REFUSALS[first.outcome](**facts)


async def _held(lanes: Lanes, db: Database, ask: Ask, verdicts: Sequence[Verdict]) -> list[Held]:
    """Return the holds of a request, or raise why there are none. A known key gets its first result again."""
    firsts = [msgspec.structs.replace(one, outcome=one.first) if one.first else one for one in verdicts]
    if not all(verdict.outcome in GRANTED for verdict in firsts):
        raise _refusal(ask.items, firsts)
    with after_commit():
        given = await lanes.known(ask, verdicts)
        if given is None:
            with lanes.reading():
                return await _read_held(db, ask, firsts)
    return [Held(hold=hold, name=name, is_new=True) for hold, name in given]


async def _read_held(db: Database, ask: Ask, verdicts: Sequence[Verdict]) -> list[Held]:
    ids = [verdict.hold_id for verdict in verdicts if verdict.hold_id]
    async with db.transaction(ask.organization_id) as conn:
        holds = await store.find_holds(conn, ask.organization_id, ids)
        seats = [hold.seat_id for hold in holds.values() if hold.seat_id]
        names = await store.name_seats(conn, ask.organization_id, ask.event_id, seats) if seats else {}
    is_new = {verdict.hold_id: verdict.outcome is Outcome.CREATED for verdict in verdicts}
    found = [holds[hold_id] for hold_id in ids]
    return [
        Held(hold=hold, name=names.get(hold.seat_id) if hold.seat_id else None, is_new=is_new[hold.id])
        for hold in found
    ]


async def _find(db: Database, call: Call, hold_id: UUID) -> Hold:
    async with db.transaction(call.organization_id) as conn:
        found = await store.find_holds(conn, call.organization_id, [hold_id])
    if hold_id not in found:
        raise HoldNotFound
    return found[hold_id]


def _holder(call: Call) -> UUID:
    """Whoever asks, as somebody who can hold: a person, not a program."""
    require(call.actor, Action.RESERVE)
    if call.actor.user_id is None:
        raise PermissionDenied(why="a hold has an owner, and a program is nobody")
    return call.actor.user_id
