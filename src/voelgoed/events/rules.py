"""What an event may become, and what it allows. Pure: the clock is an argument."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final

from voelgoed.events.model import Event, NewDate, Order, SaleState, Scanning, Scheduled, Status, Verb

LONGEST: Final = timedelta(days=366)
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
"""Between these every zone has a local time and every sum of two times is one; at the calendar's ends neither holds."""
OUT_OF_RANGE: Final = f"an event lasts at most {LONGEST.days} days, in the years {EARLIEST.year} to {LATEST.year - 1}"

EDGES: Final[Mapping[Status, frozenset[Status]]] = MappingProxyType(
    {
        Status.DRAFT: frozenset({Status.PUBLISHED, Status.ARCHIVED}),
        Status.PUBLISHED: frozenset({Status.LIVE, Status.POSTPONED, Status.CANCELLED, Status.DRAFT}),
        Status.LIVE: frozenset({Status.ENDED, Status.POSTPONED, Status.CANCELLED}),
        Status.POSTPONED: frozenset({Status.PUBLISHED, Status.LIVE, Status.CANCELLED}),
        Status.ENDED: frozenset({Status.ARCHIVED}),
        Status.CANCELLED: frozenset({Status.ARCHIVED}),
        Status.ARCHIVED: frozenset(),
    }
)
"""The whole lifecycle. PostgreSQL has the same list (events/functions.sql), and a test compares them."""

TARGET: Final[Mapping[Verb, Status]] = MappingProxyType(
    {
        Verb.PUBLISH: Status.PUBLISHED,
        Verb.UNPUBLISH: Status.DRAFT,
        Verb.GO_LIVE: Status.LIVE,
        Verb.END: Status.ENDED,
        Verb.CANCEL: Status.CANCELLED,
        Verb.POSTPONE: Status.POSTPONED,
        Verb.ARCHIVE: Status.ARCHIVED,
    }
)
"""Where a verb leads. `reschedule` leads nowhere: it changes the date of an event that stays where it is."""

RESCHEDULABLE: Final = frozenset({Status.PUBLISHED, Status.POSTPONED})
REASONED: Final = frozenset({Verb.CANCEL, Verb.POSTPONE, Verb.RESCHEDULE})
"""What nobody does without saying why."""


def verbs_of(status: Status) -> list[Verb]:
    """What can be done from here, as far as the status decides it."""
    verbs = [verb for verb, target in TARGET.items() if target in EDGES[status]]
    return [*verbs, Verb.RESCHEDULE] if status in RESCHEDULABLE else verbs


class Sell(Enum):
    """When a status lets tickets be sold."""

    NEVER = "no"
    IN_SALE_WINDOW = "inside the sale window"
    ONCE_DATED = "inside the sale window, once there is a new date"


class Scan(Enum):
    """When a status lets tickets be scanned."""

    NEVER = "no"
    TEST_ONLY = "test scans, which never count"
    ALWAYS = "yes"
    IN_NEW_WINDOW = "from the new start to the new end"


class Show(Enum):
    """Who sees an event of this status."""

    ORGANISER = "the organiser"
    EVERYBODY = "everybody"
    HISTORY = "the organiser, when asked for"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a status allows."""

    sell: Sell
    scan: Scan
    show: Show


ALLOWS: Final[Mapping[Status, Allowance]] = MappingProxyType(
    {
        Status.DRAFT: Allowance(Sell.NEVER, Scan.TEST_ONLY, Show.ORGANISER),
        Status.PUBLISHED: Allowance(Sell.IN_SALE_WINDOW, Scan.TEST_ONLY, Show.EVERYBODY),
        Status.LIVE: Allowance(Sell.IN_SALE_WINDOW, Scan.ALWAYS, Show.EVERYBODY),
        Status.ENDED: Allowance(Sell.NEVER, Scan.NEVER, Show.ORGANISER),
        Status.CANCELLED: Allowance(Sell.NEVER, Scan.NEVER, Show.ORGANISER),
        Status.POSTPONED: Allowance(Sell.ONCE_DATED, Scan.IN_NEW_WINDOW, Show.EVERYBODY),
        Status.ARCHIVED: Allowance(Sell.NEVER, Scan.NEVER, Show.HISTORY),
    }
)
SHOWN: Final = frozenset(status for status in Status if ALLOWS[status].show is Show.EVERYBODY)
"""What a storefront shows; the index of upcoming events holds exactly these."""

assert EDGES.keys() == ALLOWS.keys() == set(Status)
assert TARGET.keys() == set(Verb) - {Verb.RESCHEDULE}


WORDS: Final = frozenset({"name", "description", "settings"})
SCHEDULE: Final = frozenset({"slug", "start_at", "end_at", "sale_start_at", "sale_end_at", "capacity", "is_automatic"})
LINKS: Final = frozenset({"replaced_by_event_id", "recurrence_group_id"})
FIELDS: Final = WORDS | SCHEDULE | LINKS | {"venue_id"}
EDITABLE: Final[Mapping[Status, frozenset[str]]] = MappingProxyType(
    {
        Status.DRAFT: FIELDS,
        # Another date has a verb of its own, with a reason, because people know of it.
        Status.PUBLISHED: WORDS | SCHEDULE - {"start_at", "end_at"} | LINKS,
        Status.LIVE: WORDS | SCHEDULE - {"start_at"} | LINKS,
        # The old date stays as the record of what was announced; the new one is given by `reschedule`.
        Status.POSTPONED: WORDS | SCHEDULE - {"start_at", "end_at"} | LINKS,
        Status.ENDED: LINKS,
        Status.CANCELLED: LINKS,
        Status.ARCHIVED: frozenset(),
    }
)
"""What an edit may change in each status. The venue of anything but a draft has a verb of its own."""


def locked_fields(status: Status, asked: Iterable[str], *, may_schedule: bool) -> list[str]:
    """Which of the fields cannot be changed. Whoever may not schedule has the words, and the rest of a draft."""
    free = EDITABLE[status]
    if not may_schedule and status is not Status.DRAFT:
        free &= WORDS
    return sorted(set(asked) - free)


def document() -> str:
    """The lifecycle for people, as Markdown: drawn, and what each status allows."""
    verbs: dict[tuple[Status, Status], Verb] = {
        (status, target): verb for status in Status for verb, target in TARGET.items() if target in EDGES[status]
    }
    lines = [
        "# The lifecycle of an event",
        "",
        "Written by `make openapi` from `events/rules.py`; PostgreSQL holds the same edges (`events/functions.sql`).",
        "`reschedule` changes the date of a published or postponed event and leaves the status as it is.",
        "Whoever leaves `postponed` takes the new date along. By the clock, unless switched off: `go-live` at the",
        "start, `end` at the end.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "  [*] --> draft",
        *(f"  {status} --> {target}: {verb}" for (status, target), verb in verbs.items()),
        "  archived --> [*]",
        "```",
        "",
        "| status | tickets are sold | tickets are scanned | who sees it | what an edit may change |",
        "|---|---|---|---|---|",
    ]
    for status, allows in ALLOWS.items():
        fields = ", ".join(f"`{name}`" for name in sorted(EDITABLE[status])) or "nothing"
        told = (allows.sell.value, allows.scan.value, allows.show.value, fields)
        lines.append(f"| {status} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def sale_state(event: Scheduled, now: datetime) -> SaleState:
    """Whether tickets can be bought now; both ends of the sale window belong to it."""
    sell = ALLOWS[event.status].sell
    if sell is Sell.NEVER:
        return SaleState.CLOSED
    if sell is Sell.ONCE_DATED and event.rescheduled_at is None:
        return SaleState.SUSPENDED
    if event.sale_start_at is not None and now < event.sale_start_at:
        return SaleState.NOT_YET
    until = event.sale_end_at or event.effective_end_at
    return SaleState.OPEN if now <= until else SaleState.OVER


def is_on_sale(event: Scheduled, now: datetime) -> bool:
    """Computed, never stored."""
    return sale_state(event, now) is SaleState.OPEN


def scanning(event: Scheduled, now: datetime) -> Scanning:
    """What a scan is worth now."""
    match ALLOWS[event.status].scan:
        case Scan.ALWAYS:
            return Scanning.REAL
        case Scan.TEST_ONLY:
            return Scanning.TEST
        case Scan.IN_NEW_WINDOW if event.rescheduled_at and event.rescheduled_end_at:
            return Scanning.REAL if event.rescheduled_at <= now <= event.rescheduled_end_at else Scanning.NONE
        case _:
            return Scanning.NONE


def is_shown(event: Scheduled) -> bool:
    """Whether a storefront shows it."""
    return event.status in SHOWN


def is_upcoming(event: Scheduled, now: datetime) -> bool:
    """Whether a storefront lists it: shown, and not over as things stand.

    One that is postponed without a date leaves the list when its announced time has passed; its own page stays.
    """
    return is_shown(event) and event.effective_end_at >= now


def wrong_times(
    *, start_at: datetime, end_at: datetime, sale_start_at: datetime | None, sale_end_at: datetime | None
) -> str | None:
    """What does not fit in the times at which an event takes place and is sold; None when everything does."""
    if start_at >= end_at:
        return "an event begins before it ends"
    times = [one for one in (start_at, end_at, sale_start_at, sale_end_at) if one is not None]
    if end_at - start_at > LONGEST or min(times) < EARLIEST or max(times) > LATEST:
        return OUT_OF_RANGE
    if sale_start_at and sale_end_at and sale_start_at >= sale_end_at:
        return "the sale begins before it ends"
    if sale_end_at and sale_end_at > end_at:
        return "the sale ends when the event does, or before"
    if sale_start_at and sale_start_at >= end_at:
        return "the sale begins before the event is over"
    return None


def wrong_times_of(event: Event) -> str | None:
    """The same for an event as it stands."""
    return wrong_times(
        start_at=event.effective_start_at,
        end_at=event.effective_end_at,
        sale_start_at=event.sale_start_at,
        sale_end_at=event.sale_end_at,
    )


def refuse_move(event: Event, to: Status, now: datetime) -> str | None:
    """Why an event cannot become this, although an edge leads there; None when it can."""
    if to is Status.PUBLISHED and event.effective_end_at <= now:
        return "its time is over: give it a new date first"
    if to is Status.LIVE and event.status is Status.POSTPONED and event.rescheduled_at is None:
        return "it is postponed without a date: give it one first"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Why an order is not carried out: the lifecycle has no such step, or what is said in words."""

    why: str
    is_about_times: bool = False
    needs_reason: bool = False


def decide(event: Event, order: Order, now: datetime) -> Event | Objection:
    """What an order makes of an event, or why it does not. The only place where this is decided."""
    if order.verb not in verbs_of(event.status):
        return Objection(why=f"an event that is {event.status} cannot {order.verb}")
    if order.verb in REASONED and not (order.reason or "").strip():
        return Objection(why="say why: it stands in the journal", needs_reason=True)
    if order.new_date and not now < order.new_date.start_at < LATEST:
        is_too_late = order.new_date.start_at >= LATEST
        return Objection(why=OUT_OF_RANGE if is_too_late else "a new date lies in the future", is_about_times=True)
    if order.verb is Verb.RESCHEDULE:
        assert order.new_date is not None
        wanted = dated(event, order.new_date)
    else:
        to = TARGET[order.verb]
        if why := refuse_move(event, to, now):
            return Objection(why=why)
        wanted = moved(event, to, new_date=order.new_date, postponement_reason=order.postponement_reason)
    if why := wrong_times_of(wanted):
        return Objection(why=why, is_about_times=True)
    return wanted


def moved(event: Event, to: Status, *, new_date: NewDate | None, postponement_reason: str | None) -> Event:
    """The event after a move that is allowed. Leaving `postponed` makes the new date, if there is one, its own."""
    if to is Status.POSTPONED:
        event = replace(event, postponement_reason=postponement_reason)
        return dated(replace(event, status=to), new_date) if new_date else replace(event, status=to)
    return replace(
        event,
        status=to,
        start_at=event.effective_start_at,
        end_at=event.effective_end_at,
        rescheduled_at=None,
        rescheduled_end_at=None,
        postponement_reason=None,
    )


def dated(event: Event, new: NewDate) -> Event:
    """The event on another date: noted beside the old one while it is postponed, in its place otherwise."""
    end_at = new.end_at or new.start_at + (event.effective_end_at - event.effective_start_at)
    event = replace(
        event, sale_start_at=new.sale_start_at or event.sale_start_at, sale_end_at=new.sale_end_at or new.start_at
    )
    if event.status is Status.POSTPONED:
        return replace(event, rescheduled_at=new.start_at, rescheduled_end_at=end_at)
    return replace(event, start_at=new.start_at, end_at=end_at)


def due_verb(event: Event, now: datetime) -> Verb | None:
    """What the clock does to an event that leaves it to the clock."""
    if not event.is_automatic:
        return None
    if event.status is Status.LIVE:
        return Verb.END if event.effective_end_at <= now else None
    is_dated = event.status is Status.PUBLISHED or (event.status is Status.POSTPONED and event.rescheduled_at)
    return Verb.GO_LIVE if is_dated and event.effective_start_at <= now else None


def refuse_capacity(*, seats: int | None, event: int | None, venue: int) -> str | None:
    """What breaks the chain `seats <= event's capacity <= venue's capacity`; what is not set bounds nothing."""
    if event is not None and event > venue:
        return f"the event's capacity {event} exceeds the venue's {venue}"
    if seats is not None and event is not None and seats > event:
        return f"{seats} places exceed the event's capacity {event}"
    if seats is not None and seats > venue:
        return f"{seats} places exceed the venue's capacity {venue}"
    return None
