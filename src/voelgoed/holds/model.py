"""The places of an event and who holds them, as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Origin
from voelgoed.seating.model import Category, SeatId, ZoneId
from voelgoed.seating.overlay import ZoneView


class SeatStatus(StrEnum):
    """Whether a seat can be had. A hold that has lapsed leaves it available, whoever has noticed."""

    AVAILABLE = "available"
    HELD = "held"
    SOLD = "sold"
    BLOCKED = "blocked"


class Availability(StrEnum):
    """What there is to be had in a zone: something, nothing at the moment, nothing any more, nothing at all."""

    AVAILABLE = "available"
    HELD = "held"
    SOLD_OUT = "sold_out"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many places there are of each state; together they are the capacity."""

    available: int
    held: int
    sold: int
    blocked: int

    @property
    def capacity(self) -> int:
        return self.available + self.held + self.sold + self.blocked

    @property
    def attendance(self) -> int:
        """How many have a place for certain."""
        return self.sold

    @classmethod
    def total(cls, counts: Iterable["Counts"]) -> "Counts":
        """The sum over zones: no zone lends places to another, so nothing else is needed."""
        found = list(counts)
        return cls(
            available=sum(one.available for one in found),
            held=sum(one.held for one in found),
            sold=sum(one.sold for one in found),
            blocked=sum(one.blocked for one in found),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedZone:
    """A zone of an event, with how many of its places are still to be had."""

    zone_id: ZoneId
    view: ZoneView
    counts: Counts

    @property
    def availability(self) -> Availability:
        """Derived from what is held and sold, never stored."""
        if not self.view.is_enabled:
            return Availability.CLOSED
        if self.counts.available:
            return Availability.AVAILABLE
        if self.counts.held:
            return Availability.HELD
        return Availability.SOLD_OUT if self.counts.sold else Availability.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeat:
    """A seat of an event, with what it is called."""

    seat_id: SeatId
    ordinal: int
    zone_id: ZoneId
    zone_name: str
    row: str
    seat_number: str
    category: Category
    status: SeatStatus
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatFilter:
    """Which seats a list is asked for; what is left out matches everything."""

    status: SeatStatus | None = None
    zone_id: UUID | None = None


class SeatName(NamedTuple):
    """What a seat is called: its zone, its row, its number."""

    block_name: str
    row: str
    seat_number: str


class HoldStatus(StrEnum):
    """What became of a hold. An active one whose end has come is expired, whoever has noticed."""

    ACTIVE = "active"
    CONVERTED = "converted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Source(StrEnum):
    """Where a hold comes from, as far as a client may say so."""

    WEB = "web"
    SCANNER = "scanner"


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """An exclusive claim for a time, on one seat or on so many places of a zone. `now` is the clock it was read by."""

    id: UUID
    organization_id: OrganizationId
    event_id: UUID
    zone_id: UUID
    seat_id: UUID | None
    user_id: UUID
    quantity: int
    source: str
    cart_token: str
    created_at: datetime
    initial_expires_at: datetime
    expires_at: datetime
    extended_count: int
    status: HoldStatus
    ended_at: datetime | None
    now: datetime

    @property
    def is_active(self) -> bool:
        return self.status is HoldStatus.ACTIVE and self.expires_at > self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """What became of a guest's hold when they signed in: the account has it, or it was let go."""

    event_id: UUID
    hold_id: UUID
    seat_id: UUID | None
    quantity: int
    verdict: str

    @property
    def is_kept(self) -> bool:
        return self.verdict == "kept"


class Outcome(StrEnum):
    """What is said to one item of an ask."""

    CREATED = "created"
    EXISTING = "existing"
    REPEATED = "repeated"  # the idempotency key is known; `Verdict.first` is the outcome it is known for
    SEAT_NOT_FOUND = "seat_not_found"
    SEAT_HELD = "seat_held_by_another_user"
    SEAT_NOT_AVAILABLE = "seat_not_available"
    SEAT_GONE = "seat_no_longer_available"
    ZONE_DENIED = "zone_access_denied"
    GROUP_REFUSED = "group_refused"
    BUSY = "busy"  # somebody is at the seat at this very moment: the ask goes into the next batch
    KEY_REUSED = "idempotency_key_reused"
    RATE_LIMITED = "rate_limited"
    TOO_MANY_SEATS = "max_seats_exceeded"
    TOO_MANY_WHEELCHAIRS = "max_wheelchair_seats_exceeded"
    TOO_MANY_HOLDS = "max_holds_exceeded"
    ZONE_NOT_FOUND = "zone_not_found"
    FULL = "block_at_capacity"
    EVENT_NOT_FOUND = "event_not_found"
    EVENT_UNAVAILABLE = "event_unavailable"
    EVENT_NOT_AVAILABLE = "event_not_available"
    SALES_CLOSED = "event_sales_closed"


GRANTED: Final = frozenset({Outcome.CREATED, Outcome.EXISTING, Outcome.REPEATED})


class Item(msgspec.Struct, frozen=True):
    """One thing asked for: a seat, or so many places of a zone; and the id that its hold will have."""

    hold_id: UUID
    seat_id: UUID | None = None
    zone_id: UUID | None = None
    quantity: int = 1


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks to hold of an event: all of it, or nothing."""

    organization_id: OrganizationId
    event_id: UUID
    user_id: UUID
    role: str
    is_staff: bool
    items: tuple[Item, ...]
    cart_token: str
    source: str
    request_id: UUID
    origin: Origin
    ip: str | None  # the network that `max_holds_per_ip` counts; the exact address is the origin's
    key: str | None = None  # what the caller calls the ask, so that it has one effect
    fingerprint: bytes | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is said to one item. Of a refusal `until` is the end of the hold in the way, or when to come again."""

    outcome: Outcome
    hold_id: UUID | None = None
    until: datetime | None = None
    version: int | None = None
    state: str | None = None
    holder: UUID | None = None  # never told to anybody
    first: Outcome | None = None  # of `repeated`


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is held of an event: active holds, those that have lapsed and stand there still, the next to lapse."""

    organization: str
    event: str
    status: str
    active: int
    lapsed: int
    next_lapse_at: datetime | None
