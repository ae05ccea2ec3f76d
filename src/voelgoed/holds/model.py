"""The places of an event, as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

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
