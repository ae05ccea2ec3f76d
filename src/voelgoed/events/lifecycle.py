"""The one way in which an event changes: locked, decided, written and told in the caller's transaction.

Higher domains call `move` beside their own writes, so that a status and what follows from it commit together.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog

from voelgoed.db import Conn
from voelgoed.events import rules, store
from voelgoed.events.model import Change, Event, Order, SaleState, Status, Teller, Venue, Verb
from voelgoed.events.refusals import (
    CapacityExceeded,
    EventChanged,
    EventInUse,
    EventMoveRefused,
    EventNotFound,
    EventTimesInvalid,
    ReasonNeeded,
    VenueNotFound,
)
from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

LATE = timedelta(minutes=10)
TOLD_CHARS_MAX = 500
"""How much of a long text stands in the journal."""

Decide = Callable[[Event, datetime], Event]


async def move(
    conn: Conn,
    organization_id: OrganizationId,
    event_id: UUID,
    order: Order,
    *,
    by: Teller,
    inventory_epoch: int | None = None,
) -> Change:
    """Carry out a verb on an event, or refuse; one fact for one success, nothing changed by a refusal.

    `inventory_epoch` counts how often its places were made, and is given by whoever makes them beside this.
    """
    kind = kind_of(order.verb)
    done = await change(
        conn,
        organization_id,
        event_id,
        lambda event, now: _decided(event, order, now, inventory_epoch),
        kind=kind,
        by=by,
        version=order.version,
        order=order,
    )
    before, after = done.before, done.after
    assert before is not None
    assert after is not None
    if before == after:  # the date it had already
        return done
    metrics.EVENT_MOVES.labels(order.verb, before.status, after.status).inc()
    log.info(
        kind,
        verb=order.verb,
        old_status=before.status,
        new_status=after.status,
        reason=order.reason,
        actor_id=str(by.actor_id) if by.actor_id else None,
        actor_type=by.actor_type,
        **_labels(after),
    )
    return done


def kind_of(verb: Verb) -> str:
    """The kind of fact that a verb writes."""
    return "event_rescheduled" if verb is Verb.RESCHEDULE else "event_status_changed"


async def change(
    conn: Conn,
    organization_id: OrganizationId,
    event_id: UUID,
    decide: Decide,
    *,
    kind: str,
    by: Teller,
    version: int | None = None,
    order: Order | None = None,
    reason: str | None = None,
) -> Change:
    """Lock an event, let `decide` say what becomes of it, write that and tell it: the event before and after."""
    before = await lock(conn, organization_id, event_id, version=version)
    now = await store.read_clock(conn)
    wanted = decide(before, now)
    if wanted == before:
        return Change(before, before)
    if why := rules.wrong_times_of(wanted):
        note_anomaly("times_refused", before)
        raise EventTimesInvalid(why=why)
    if (wanted.capacity, wanted.venue_id) != (before.capacity, before.venue_id) or wanted.status is Status.PUBLISHED:
        await require_room(conn, wanted)
    after = await store.save_event(conn, wanted)
    await store.touch_catalogue(conn, organization_id)
    await record(conn, _fact(kind, before, after, by=by, order=order, reason=reason))
    if after.status is Status.PUBLISHED and rules.sale_state(after, now) is SaleState.OVER:
        note_anomaly("published_after_its_sale", after)
    if order is not None and by.actor_type == "clock" and now - _was_due_at(before) > LATE:
        note_anomaly("moved_late", after)
    return Change(before, after)


async def lock(conn: Conn, organization_id: OrganizationId, event_id: UUID, *, version: int | None = None) -> Event:
    """An event that nobody else can change until this transaction ends; refused when the caller saw an older one."""
    event = await store.lock_event(conn, organization_id, event_id)
    if event is None:
        raise EventNotFound
    if version is not None and event.version != version:
        raise EventChanged(version=event.version, status=event.status)
    return event


async def find_at_venue(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> tuple[Event, Venue]:
    """An event as it stands, and its venue; nothing is locked."""
    event = await store.get_event(conn, organization_id, event_id)
    if event is None:
        raise EventNotFound
    venue = await store.get_venue(conn, organization_id, event.venue_id)
    assert venue is not None
    return event, venue


async def read_clock(conn: Conn) -> datetime:
    """What time PostgreSQL has, which is the one that counts."""
    return await store.read_clock(conn)


async def remove(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, *, by: Teller, version: int | None
) -> Event:
    """Delete an event for good: a draft to which nothing refers. Everything else is archived."""
    event = await lock(conn, organization_id, event_id, version=version)
    if event.status is not Status.DRAFT:
        raise EventInUse(status=event.status)
    await store.remove_event(conn, organization_id, event_id)
    await store.touch_catalogue(conn, organization_id)
    told = {"name": event.name, "slug": event.slug, "old_status": event.status}
    await record(conn, told_by(by, "event_deleted", event, told))
    return event


async def require_room(conn: Conn, event: Event, *, seats: int | None = None) -> Venue:
    """Refuse what breaks `seats <= event <= venue`; the venue cannot shrink until this transaction ends."""
    return await require_venue_room(conn, event.organization_id, event.venue_id, event=event.capacity, seats=seats)


async def require_venue_room(
    conn: Conn, organization_id: OrganizationId, venue_id: UUID, *, event: int | None = None, seats: int | None = None
) -> Venue:
    """The same for a venue and numbers, such as those of a layout."""
    venue = await store.share_venue(conn, organization_id, venue_id)
    if venue is None:
        raise VenueNotFound
    if why := rules.refuse_capacity(seats=seats, event=event, venue=venue.max_capacity):
        raise CapacityExceeded(why=why)
    return venue


def told_by(by: Teller, kind: str, event: Event, data: Mapping[str, object], *, reason: str | None = None) -> Fact:
    """A fact about an event."""
    about = {"event_id": str(event.id), "venue_id": str(event.venue_id), **data}
    fact = by.fact(kind, event.organization_id, about, reason=reason)
    return replace(fact, event_id=event.id, version=event.version)


def note_anomaly(kind: str, event: Event) -> None:
    """Something about an event's times that a person should look at."""
    metrics.EVENT_ANOMALIES.labels(kind).inc()
    log.warning("event_anomaly", anomaly=kind, status=event.status, **_labels(event))


def _decided(event: Event, order: Order, now: datetime, inventory_epoch: int | None) -> Event:
    wanted = rules.decide(event, order, now)
    if isinstance(wanted, Event):
        return wanted if inventory_epoch is None else replace(wanted, inventory_epoch=inventory_epoch)
    if wanted.is_about_times:
        note_anomaly("times_refused", event)
        raise EventTimesInvalid(why=wanted.why)
    if wanted.needs_reason:
        raise ReasonNeeded(verb=order.verb)
    raise EventMoveRefused(status=event.status, verb=order.verb, allowed=rules.verbs_of(event.status), why=wanted.why)


def _fact(kind: str, before: Event, after: Event, *, by: Teller, order: Order | None, reason: str | None) -> Fact:
    data: dict[str, object] = {
        "old_status": before.status,
        "new_status": after.status,
        "rescheduled_at": _told(after.rescheduled_at),
        "replaced_by_event_id": _told(after.replaced_by_event_id),
        "changes": changes(before, after),
    }
    if order is not None:
        data["verb"] = order.verb
        reason = order.reason
        if order.approval:
            data["tenant_approval_reference"] = order.approval
    return told_by(by, kind, after, data, reason=reason)


def changes(before: Any, after: Any) -> dict[str, list[object]]:
    """What differs between two states of a record, each as [before, after]; the counting fields say nothing new."""
    names = [one.name for one in fields(before) if one.name not in ("version", "updated_at")]
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in names}
    return {name: _differing(old, new) for name, (old, new) in pairs.items() if old != new}


def _differing(old: Any, new: Any) -> list[object]:
    """A value before and after. Of settings only the names: the journal is for ever, and need not bear their form."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = {name for name in (*old, *new) if name not in old or name not in new or old[name] != new[name]}
        return [sorted(names & old.keys()), sorted(names & new.keys())]
    return [_told(old), _told(new)]


def _told(value: Any) -> object:
    """A value as the journal can keep it."""
    match value:
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case str():
            return value[:TOLD_CHARS_MAX]
        case _:
            return value


def _was_due_at(event: Event) -> datetime:
    return event.effective_end_at if event.status is Status.LIVE else event.effective_start_at


def _labels(event: Event) -> dict[str, str]:
    return {
        "event_id": str(event.id),
        "venue_id": str(event.venue_id),
        "organization_id": str(event.organization_id),
    }
