"""Venues, gates and events, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from voelgoed.accounts.model import Call
from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Fact, Origin

Json = Mapping[str, Any]


class Status(StrEnum):
    """Where an event stands. Whether it is on sale is computed from this and the clock, never stored."""

    DRAFT = "draft"
    PUBLISHED = "published"
    LIVE = "live"
    ENDED = "ended"
    CANCELLED = "cancelled"
    POSTPONED = "postponed"
    ARCHIVED = "archived"


class Verb(StrEnum):
    """What is done to an event's status or date, as people say it."""

    PUBLISH = "publish"
    UNPUBLISH = "unpublish"
    GO_LIVE = "go-live"
    END = "end"
    CANCEL = "cancel"
    POSTPONE = "postpone"
    RESCHEDULE = "reschedule"
    ARCHIVE = "archive"


class SaleState(StrEnum):
    """Why tickets can or cannot be bought."""

    OPEN = "open"
    NOT_YET = "not_yet"
    OVER = "over"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class Scanning(StrEnum):
    """What a scan at the gate is: it counts, it is a test that never counts, or it is refused."""

    REAL = "real"
    TEST = "test"
    NONE = "none"


class GateStatus(StrEnum):
    """Whether people pass."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Venue:
    """Where events take place; its time zone is that of every local time of theirs."""

    id: UUID
    organization_id: OrganizationId
    name: str
    slug: str
    timezone: str
    address: Json
    max_capacity: int
    settings: Json
    version: int
    inserted_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """An entrance, of stone or of software, where tickets are scanned."""

    id: UUID
    organization_id: OrganizationId
    venue_id: UUID
    gate_code: str
    name: str
    status: GateStatus
    capacity: int | None
    settings: Json
    version: int
    inserted_at: datetime
    updated_at: datetime


class Scheduled(Protocol):
    """What the rules look at: an event, or what is cached of one."""

    @property
    def status(self) -> Status: ...
    @property
    def start_at(self) -> datetime: ...
    @property
    def end_at(self) -> datetime: ...
    @property
    def sale_start_at(self) -> datetime | None: ...
    @property
    def sale_end_at(self) -> datetime | None: ...
    @property
    def rescheduled_at(self) -> datetime | None: ...
    @property
    def rescheduled_end_at(self) -> datetime | None: ...
    @property
    def effective_end_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event as it stands in PostgreSQL."""

    id: UUID
    organization_id: OrganizationId
    venue_id: UUID
    name: str
    slug: str
    description: str
    status: Status
    start_at: datetime
    end_at: datetime
    sale_start_at: datetime | None
    sale_end_at: datetime | None
    capacity: int | None
    settings: Json
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

    @property
    def effective_start_at(self) -> datetime:
        """When it begins as things stand."""
        return self.rescheduled_at or self.start_at

    @property
    def effective_end_at(self) -> datetime:
        """When it is over as things stand."""
        return self.rescheduled_end_at or self.end_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a list shows of an event, with what it needs of the venue. Cached; nobody changes it."""

    id: UUID
    organization_id: OrganizationId
    name: str
    slug: str
    status: Status
    start_at: datetime
    end_at: datetime
    sale_start_at: datetime | None
    sale_end_at: datetime | None
    capacity: int | None
    rescheduled_at: datetime | None
    rescheduled_end_at: datetime | None
    postponement_reason: str | None
    replaced_by_event_id: UUID | None
    settings: Json
    version: int
    venue_id: UUID
    venue_name: str
    venue_slug: str
    timezone: str
    venue_settings: Json

    @property
    def effective_start_at(self) -> datetime:
        return self.rescheduled_at or self.start_at

    @property
    def effective_end_at(self) -> datetime:
        return self.rescheduled_end_at or self.end_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The event to go to instead, as far as a stranger may know of it."""

    id: UUID
    slug: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What a storefront tells of one event."""

    summary: Summary
    description: str
    address: Json
    replacement: Replacement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVenue:
    """A venue to be made."""

    name: str
    slug: str
    timezone: str
    max_capacity: int
    address: Json = field(default_factory=dict)
    settings: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGate:
    """A gate to be made."""

    gate_code: str
    name: str
    status: GateStatus = GateStatus.CLOSED
    capacity: int | None = None
    settings: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to be made; it begins as a draft."""

    venue_id: UUID
    name: str
    slug: str
    start_at: datetime
    end_at: datetime
    description: str = ""
    sale_start_at: datetime | None = None
    sale_end_at: datetime | None = None
    capacity: int | None = None
    settings: Json = field(default_factory=dict)
    recurrence_group_id: UUID | None = None
    is_automatic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDate:
    """When an event shall take place instead. What is left out: as long as before, on sale until it begins."""

    start_at: datetime
    end_at: datetime | None = None
    sale_start_at: datetime | None = None
    sale_end_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """On whose behalf something is done and recorded: a person, a program, the operator, or the clock."""

    actor_type: str
    actor_id: UUID | None = None
    request_id: UUID | None = None
    origin: Origin | None = None

    @classmethod
    def of(cls, call: Call, *, is_platform: bool = False) -> "Teller":
        """Whoever asks. A platform role counts only where one intervenes by it."""
        actor = call.actor
        kind = actor.platform_kind if is_platform else actor.kind
        return cls(actor_type=kind, actor_id=actor.id, request_id=call.request_id, origin=call.origin)

    def fact(self, kind: str, organization_id: OrganizationId, data: Json, *, reason: str | None = None) -> Fact:
        """A fact about something of an organization, told by this one."""
        return Fact(
            kind=kind,
            organization_id=organization_id,
            actor_id=self.actor_id,
            request_id=self.request_id,
            origin=self.origin,
            reason=reason,
            data={**data, "actor_type": self.actor_type},
        )


CLOCK = Teller(actor_type="clock")
OPERATOR = Teller(actor_type="operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events a list is asked for; what is left out matches everything."""

    statuses: frozenset[Status]
    venue_id: UUID | None = None
    recurrence_group_id: UUID | None = None
    words: str | None = None
    is_latest_first: bool = False


@dataclass(frozen=True, slots=True)
class EventAtVenue:
    """An event and where it takes place: without the venue's zone nobody can say when."""

    event: Event
    venue: Venue


@dataclass(frozen=True, slots=True)
class Change:
    """An event before and after; it was not there before it was made, nor is it after it was deleted."""

    before: Event | None
    after: Event | None

    @property
    def event(self) -> Event:
        """The latest there is of it."""
        event = self.after or self.before
        assert event is not None
        return event


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A verb, with what belongs to it. `version` is the one the caller has seen; None is whichever there is."""

    verb: Verb
    reason: str | None = None
    approval: str | None = None
    version: int | None = None
    new_date: NewDate | None = None
    postponement_reason: str | None = None
