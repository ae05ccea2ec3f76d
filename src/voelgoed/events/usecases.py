"""What an organization's people do with venues, gates and events."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from voelgoed.accounts import idempotency
from voelgoed.accounts.idempotency import Once
from voelgoed.accounts.model import Actor, Call, Role
from voelgoed.accounts.permissions import Action, PermissionDenied, may, require
from voelgoed.accounts.roles import fact_of
from voelgoed.db import Conn, Database
from voelgoed.events import lifecycle, rules, settings, store
from voelgoed.events.calendar import zone_names
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import (
    Change,
    Event,
    EventAtVenue,
    EventFilter,
    Gate,
    GateStatus,
    NewEvent,
    NewGate,
    NewVenue,
    Status,
    Teller,
    Venue,
    Verb,
)
from voelgoed.events.refusals import (
    CapacityExceeded,
    ConsentNeeded,
    EventMoveRefused,
    EventNotFound,
    EventTimesInvalid,
    FieldDenied,
    FieldLocked,
    GateChanged,
    GateNotFound,
    ReplacementInvalid,
    SettingsInvalid,
    TimezoneUnknown,
    VenueChanged,
    VenueNotFound,
)
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.recording import record
from voelgoed.paging import Page, after_id, after_moment, page_by_id, page_by_moment


@dataclass(frozen=True, slots=True)
class Beside:
    """What a higher domain does in the transaction of a change: lock its own before the event, follow after it."""

    first: Callable[[Conn], Awaitable[None]] | None = None
    then: Callable[[Conn, Change], Awaitable[None]] | None = None


ALONE = Beside()

LISTED = frozenset(Status) - {Status.ARCHIVED}
"""What the organiser's list shows unless asked otherwise; history is asked for by name."""


async def list_venues(db: Database, call: Call, *, cursor: str | None, limit: int) -> Page[Venue]:
    """The organization's venues, oldest first."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        found = await store.list_venues(conn, call.organization_id, after=after_id(cursor), limit=limit + 1)
    return page_by_id(found, limit, lambda venue: venue.id)


async def get_venue(db: Database, call: Call, venue_id: UUID) -> Venue:
    """One venue."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        return await _venue(conn, call.organization_id, venue_id)


async def create_venue(db: Database, call: Call, new: NewVenue, *, once: Once | None) -> Venue:
    """Make a venue."""
    require(call.actor, Action.CHANGE_VENUES)
    async with db.transaction(call.organization_id) as conn:
        if done := await idempotency.recall(conn, call, once):
            return await _venue(conn, call.organization_id, UUID(str(done["id"])))
        await _require_venue_right(conn, call)
        venue = await make_venue(conn, call.organization_id, new, by=Teller.of(call))
        await idempotency.remember(conn, call, once, {"id": str(venue.id)})
    return venue


async def make_venue(conn: Conn, organization_id: OrganizationId, new: NewVenue, *, by: Teller) -> Venue:
    """Check a new venue, write and tell it."""
    _require_zone(new.timezone)
    _require_settings(new.settings, settings.VENUE)
    _require_settings(new.address, settings.ADDRESS, "address")
    venue = await store.add_venue(conn, organization_id, new_id(), new)
    await store.touch_catalogue(conn, organization_id)
    told = {"venue_id": str(venue.id), "name": venue.name, "timezone": venue.timezone}
    await record(conn, by.fact("venue_created", organization_id, told))
    return venue


async def update_venue(
    db: Database,
    catalogue: Catalogue,
    call: Call,
    venue_id: UUID,
    changed: Mapping[str, Any],
    *,
    version: int | None,
) -> Venue:
    """Change a venue; every list that names it follows."""
    require(call.actor, Action.CHANGE_VENUES)
    if "timezone" in changed:
        _require_zone(changed["timezone"])
    _require_settings(changed.get("settings", {}), settings.VENUE)
    _require_settings(changed.get("address", {}), settings.ADDRESS, "address")
    async with db.transaction(call.organization_id) as conn:
        await _require_venue_right(conn, call)
        before = await _locked_venue(conn, call, venue_id, version)
        wanted = replace(before, **changed)
        if wanted == before:
            return before
        larger = await store.find_larger_events(conn, call.organization_id, venue_id, wanted.max_capacity)
        if wanted.max_capacity < before.max_capacity and larger:
            raise CapacityExceeded(why="events here have a larger capacity", events=larger)
        after = await store.save_venue(conn, wanted)
        await store.touch_catalogue(conn, call.organization_id)
        told = {"venue_id": str(venue_id), "changes": lifecycle.changes(before, after)}
        await record(conn, fact_of("venue_updated", call, told))
    await catalogue.forget(call.organization_id)
    return after


async def delete_venue(db: Database, catalogue: Catalogue, call: Call, venue_id: UUID, *, version: int | None) -> None:
    """Delete a venue with its gates; one with events stays."""
    require(call.actor, Action.DELETE_VENUES)
    async with db.transaction(call.organization_id) as conn:
        venue = await _locked_venue(conn, call, venue_id, version)
        gates = await store.remove_gates_of_venue(conn, call.organization_id, venue_id)
        await store.remove_venue(conn, call.organization_id, venue_id)
        await store.touch_catalogue(conn, call.organization_id)
        told = {"venue_id": str(venue_id), "name": venue.name, "gates": len(gates)}
        await record(conn, fact_of("venue_deleted", call, told))
    await catalogue.forget(call.organization_id)


async def list_gates(
    db: Database, call: Call, venue_id: UUID, *, status: GateStatus | None, cursor: str | None, limit: int
) -> Page[Gate]:
    """A venue's gates, oldest first; the open ones alone when asked for."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        await _venue(conn, call.organization_id, venue_id)
        found = await store.list_gates(
            conn, call.organization_id, venue_id, status=status, after=after_id(cursor), limit=limit + 1
        )
    return page_by_id(found, limit, lambda gate: gate.id)


async def get_gate(db: Database, call: Call, gate_id: UUID) -> Gate:
    """One gate."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        gate = await store.get_gate(conn, call.organization_id, gate_id)
    if gate is None:
        raise GateNotFound
    return gate


async def create_gate(db: Database, call: Call, venue_id: UUID, new: NewGate, *, once: Once | None) -> Gate:
    """Make a gate."""
    require(call.actor, Action.CHANGE_VENUES)
    async with db.transaction(call.organization_id) as conn:
        if done := await idempotency.recall(conn, call, once):
            found = await store.get_gate(conn, call.organization_id, UUID(str(done["id"])))
            if found is None:
                raise GateNotFound
            return found
        await _require_venue_right(conn, call)
        if await store.share_venue(conn, call.organization_id, venue_id) is None:
            raise VenueNotFound
        gate = await make_gate(conn, call.organization_id, venue_id, new, by=Teller.of(call))
        await idempotency.remember(conn, call, once, {"id": str(gate.id)})
    return gate


async def make_gate(conn: Conn, organization_id: OrganizationId, venue_id: UUID, new: NewGate, *, by: Teller) -> Gate:
    """Check a new gate, write and tell it."""
    _require_settings(new.settings, settings.GATE)
    gate = await store.add_gate(conn, organization_id, new_id(), venue_id, new)
    await record(conn, by.fact("gate_created", organization_id, _about(gate) | {"gate_code": gate.gate_code}))
    return gate


async def update_gate(
    db: Database, call: Call, gate_id: UUID, changed: Mapping[str, Any], *, version: int | None
) -> Gate:
    """Change a gate."""
    require(call.actor, Action.CHANGE_VENUES)
    _require_settings(changed.get("settings", {}), settings.GATE)
    async with db.transaction(call.organization_id) as conn:
        await _require_venue_right(conn, call)
        return await _save_gate(conn, call, gate_id, changed, version)


async def set_gate_status(db: Database, call: Call, gate_id: UUID, status: GateStatus, *, reason: str | None) -> Gate:
    """Open or close a gate; whoever works there may, without being able to change anything else of it."""
    require(call.actor, Action.OPEN_GATES)
    async with db.transaction(call.organization_id) as conn:
        return await _save_gate(conn, call, gate_id, {"status": status}, None, reason=reason)


async def delete_gate(db: Database, call: Call, gate_id: UUID, *, version: int | None) -> None:
    """Delete a gate."""
    require(call.actor, Action.DELETE_VENUES)
    async with db.transaction(call.organization_id) as conn:
        gate = await _locked_gate(conn, call, gate_id, version)
        await store.remove_gate(conn, call.organization_id, gate_id)
        await record(conn, fact_of("gate_deleted", call, _about(gate) | {"gate_code": gate.gate_code}))


async def get_policy(db: Database, call: Call) -> bool:
    """Whether staff may change venues."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        return (await store.get_catalogue(conn, call.organization_id))[1]


async def set_policy(db: Database, call: Call, *, staff_may_change_venues: bool) -> None:
    """Let staff change venues, or no longer."""
    require(call.actor, Action.DELETE_VENUES)
    async with db.transaction(call.organization_id) as conn:
        await store.set_policy(conn, call.organization_id, staff_may_change_venues=staff_may_change_venues)
        told = {"staff_may_change_venues": staff_may_change_venues}
        await record(conn, fact_of("event_policy_changed", call, told))


async def list_events(
    db: Database, call: Call, wanted: EventFilter, *, cursor: str | None, limit: int
) -> Page[EventAtVenue]:
    """The organization's events in the order of time."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        return await listed(conn, call.organization_id, wanted, cursor=cursor, limit=limit)


async def listed(
    conn: Conn, organization_id: OrganizationId, wanted: EventFilter, *, cursor: str | None, limit: int
) -> Page[EventAtVenue]:
    """A page of events, each with its venue."""
    ask = store.list_events_backwards if wanted.is_latest_first else store.list_events
    found = await ask(conn, organization_id, wanted, after_moment(cursor), limit + 1)
    venues = await store.get_venues(conn, organization_id, {event.venue_id for event in found})
    pairs = [EventAtVenue(event, venues[event.venue_id]) for event in found]
    return page_by_moment(pairs, limit, lambda one: (one.event.effective_start_at, one.event.id))


async def get_event(db: Database, call: Call, event_id: UUID) -> EventAtVenue:
    """One event with its venue, whatever its status."""
    require(call.actor, Action.SEE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        event = await store.get_event(conn, call.organization_id, event_id)
        if event is None:
            raise EventNotFound
        return await _at_venue(conn, event)


async def create_event(
    db: Database, catalogue: Catalogue, call: Call, new: NewEvent, *, once: Once | None, beside: Beside = ALONE
) -> EventAtVenue:
    """Make an event; it begins as a draft."""
    require(call.actor, Action.CHANGE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        if done := await idempotency.recall(conn, call, once):
            found = await store.get_event(conn, call.organization_id, UUID(str(done["id"])))
            if found is None:
                raise EventNotFound
            return await _at_venue(conn, found)
        made = await make_event(conn, call.organization_id, new, by=Teller.of(call))
        if beside.then:
            await beside.then(conn, Change(None, made.event))
        await idempotency.remember(conn, call, once, {"id": str(made.event.id)})
    await catalogue.announce("event_created", Change(None, made.event))
    return made


async def make_event(conn: Conn, organization_id: OrganizationId, new: NewEvent, *, by: Teller) -> EventAtVenue:
    """Check a new event, write and tell it."""
    _require_settings(new.settings, settings.EVENT)
    if why := rules.wrong_times(
        start_at=new.start_at, end_at=new.end_at, sale_start_at=new.sale_start_at, sale_end_at=new.sale_end_at
    ):
        raise EventTimesInvalid(why=why)
    venue = await lifecycle.require_venue_room(conn, organization_id, new.venue_id, event=new.capacity)
    event = await store.add_event(conn, organization_id, new_id(), new)
    await store.touch_catalogue(conn, organization_id)
    told = {"name": event.name, "old_status": None, "new_status": event.status}
    told |= {"rescheduled_at": None, "replaced_by_event_id": None}
    await record(conn, lifecycle.told_by(by, "event_created", event, told))
    return EventAtVenue(event, venue)


async def update_event(
    db: Database,
    catalogue: Catalogue,
    call: Call,
    event_id: UUID,
    changed: Mapping[str, Any],
    *,
    version: int | None,
    beside: Beside = ALONE,
) -> EventAtVenue:
    """Change what may be changed of an event in its status, by this role."""
    require(call.actor, Action.CHANGE_EVENTS)
    _require_settings(changed.get("settings", {}), settings.EVENT)
    may_schedule = may(call.actor, Action.SCHEDULE_EVENTS)

    def decide(event: Event, now: datetime) -> Event:
        really = {name for name, value in changed.items() if getattr(event, name) != value}
        if locked := rules.locked_fields(event.status, really, may_schedule=True):
            if locked == ["venue_id"] and may_schedule:
                raise ConsentNeeded(status=event.status)
            raise FieldLocked(fields=locked, status=event.status)
        if denied := rules.locked_fields(event.status, really, may_schedule=may_schedule):
            raise FieldDenied(fields=denied, status=event.status)
        wanted = replace(event, **changed)
        if event.status is Status.LIVE and wanted.end_at != event.end_at and wanted.end_at <= now:
            raise EventTimesInvalid(why="it is running: end it, or give it an end that is still to come")
        return wanted

    async with db.transaction(call.organization_id) as conn:
        if beside.first:
            await beside.first(conn)
        if changed.get("replaced_by_event_id"):
            await store.lock_replacements(conn, call.organization_id)
            await lifecycle.lock(conn, call.organization_id, event_id, version=version)
            await _require_replacement(conn, call.organization_id, event_id, changed["replaced_by_event_id"])
        done = await lifecycle.change(
            conn,
            call.organization_id,
            event_id,
            decide,
            kind="event_updated",
            by=Teller.of(call),
            version=version,
        )
        if beside.then:
            await beside.then(conn, done)
        found = await _at_venue(conn, done.event)
    await catalogue.announce("event_updated", done)
    return found


async def change_venue(
    db: Database,
    catalogue: Catalogue,
    call: Call,
    event_id: UUID,
    venue_id: UUID,
    *,
    has_consent: bool,
    reason: str,
    version: int | None,
    beside: Beside = ALONE,
) -> EventAtVenue:
    """Move an event that people know of to another venue. Whoever has tickets is affected, so it must be meant."""
    require(call.actor, Action.SCHEDULE_EVENTS)

    def decide(event: Event, _now: object) -> Event:
        if event.status not in (Status.DRAFT, Status.PUBLISHED, Status.POSTPONED):
            raise EventMoveRefused(status=event.status, verb="change-venue")
        if event.status is not Status.DRAFT and not has_consent:
            raise ConsentNeeded(status=event.status)
        return replace(event, venue_id=venue_id)

    async with db.transaction(call.organization_id) as conn:
        if beside.first:
            await beside.first(conn)
        done = await lifecycle.change(
            conn,
            call.organization_id,
            event_id,
            decide,
            kind="event_venue_changed",
            by=Teller.of(call),
            version=version,
            reason=reason,
        )
        if beside.then:
            await beside.then(conn, done)
        found = await _at_venue(conn, done.event)
    await catalogue.announce("event_venue_changed", done)
    return found


async def delete_event(db: Database, catalogue: Catalogue, call: Call, event_id: UUID, *, version: int | None) -> None:
    """Delete a draft to which nothing refers."""
    require(call.actor, Action.SCHEDULE_EVENTS)
    async with db.transaction(call.organization_id) as conn:
        event = await lifecycle.remove(conn, call.organization_id, event_id, by=Teller.of(call), version=version)
    await catalogue.announce("event_deleted", Change(event, None))


def action_of(verb: Verb) -> Action:
    """What one must be allowed to do."""
    return Action.SCHEDULE_EVENTS if verb is Verb.RESCHEDULE else Action.MOVE_EVENTS


def editable_fields(status: Status, actor: Actor) -> list[str]:
    """What this actor can change of an event in this status."""
    if not may(actor, Action.CHANGE_EVENTS):
        return []
    locked = rules.locked_fields(status, rules.FIELDS, may_schedule=may(actor, Action.SCHEDULE_EVENTS))
    return sorted(rules.FIELDS.difference(locked))


async def _save_gate(
    conn: Conn, call: Call, gate_id: UUID, changed: Mapping[str, Any], version: int | None, *, reason: str | None = None
) -> Gate:
    before = await _locked_gate(conn, call, gate_id, version)
    wanted = replace(before, **changed)
    if wanted == before:
        return before
    after = await store.save_gate(conn, wanted)
    told = _about(after) | {"changes": lifecycle.changes(before, after)}
    await record(conn, fact_of("gate_updated", call, told, reason=reason))
    return after


async def _venue(conn: Conn, organization_id: OrganizationId, venue_id: UUID) -> Venue:
    venue = await store.get_venue(conn, organization_id, venue_id)
    if venue is None:
        raise VenueNotFound
    return venue


async def _at_venue(conn: Conn, event: Event) -> EventAtVenue:
    return EventAtVenue(event, await _venue(conn, event.organization_id, event.venue_id))


async def _locked_venue(conn: Conn, call: Call, venue_id: UUID, version: int | None) -> Venue:
    venue = await store.lock_venue(conn, call.organization_id, venue_id)
    if venue is None:
        raise VenueNotFound
    if version is not None and venue.version != version:
        raise VenueChanged(version=venue.version)
    return venue


async def _locked_gate(conn: Conn, call: Call, gate_id: UUID, version: int | None) -> Gate:
    gate = await store.lock_gate(conn, call.organization_id, gate_id)
    if gate is None:
        raise GateNotFound
    if version is not None and gate.version != version:
        raise GateChanged(version=gate.version)
    return gate


async def _require_venue_right(conn: Conn, call: Call) -> None:
    """Staff change venues only where their organization has said so."""
    is_staff_only = call.actor.role is Role.STAFF
    if is_staff_only and not (await store.get_catalogue(conn, call.organization_id))[1]:
        raise PermissionDenied(why="your organization does not let staff change venues")


async def _require_replacement(conn: Conn, organization_id: OrganizationId, event_id: UUID, other: UUID) -> None:
    """The replacement exists here, and does not lead back."""
    chain = await store.follow_replacements(conn, organization_id, other)
    if not chain:
        raise ReplacementInvalid(why="there is no such event")
    if event_id in chain:
        raise ReplacementInvalid(why="it would be replaced by itself in the end")


def _require_zone(name: str) -> None:
    if name not in zone_names():
        raise TimezoneUnknown(timezone=name)


def _require_settings(given: Mapping[str, Any], known: Mapping[str, settings.Check], where: str = "settings") -> None:
    if wrong := settings.wrong_settings(given, known):
        raise SettingsInvalid(**{where: wrong})


def _about(gate: Gate) -> dict[str, object]:
    return {"gate_id": str(gate.id), "venue_id": str(gate.venue_id)}
