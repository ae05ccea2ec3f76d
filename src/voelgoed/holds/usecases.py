"""What an organization's people do to events that touches their places."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog

from voelgoed.accounts.idempotency import Once
from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.db import Conn, Database, after_commit
from voelgoed.errors import Busy, OutcomeUnknown
from voelgoed.events import lifecycle, rules, usecases as events
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import Change, Event, EventAtVenue, NewEvent, Order, SaleState, Status, Teller, Verb
from voelgoed.events.refusals import EventInUse
from voelgoed.holds import inventory, registry
from voelgoed.ids import OrganizationId
from voelgoed.journal.recording import record
from voelgoed.seating import halls
from voelgoed.seating.model import Pin
from voelgoed.seating.offer import changed_words
from voelgoed.seating.studio import Studio

log = structlog.get_logger(__name__)

OUTSIDE_THE_SALE: Final = frozenset({SaleState.NOT_YET, SaleState.OVER})


async def create_event(
    studio: Studio, catalogue: Catalogue, call: Call, new: NewEvent, *, pin: Pin | None, once: Once | None
) -> EventAtVenue:
    """Make an event, with the version of the layout that it is to have."""

    async def choose(conn: Conn, change: Change) -> None:
        if pin:
            event = change.event
            await halls.require_choosable(conn, event.organization_id, event.venue_id, pin)
            before = await halls.lock(conn, event.organization_id, event.id)
            saved = await halls.save(conn, event.organization_id, event.id, pin, {})
            told = {"seating_version": saved.version, "changes": changed_words(before, saved)}
            await record(conn, lifecycle.told_by(Teller.of(call), "event_seating_changed", event, told))

    return await events.create_event(studio.db, catalogue, call, new, once=once, beside=events.Beside(then=choose))


async def update_event(
    studio: Studio, catalogue: Catalogue, call: Call, event_id: UUID, fields: Mapping[str, Any], *, version: int | None
) -> EventAtVenue:
    """Change an event; its places follow its capacity, or refuse. What it no longer sells is held by nobody."""
    following = _following(call.organization_id, event_id) if fields.keys() & {"capacity", "venue_id"} else events.ALONE
    done: list[Change] = []

    async def then(conn: Conn, change: Change) -> None:
        if following.then:
            await following.then(conn, change)
        done.append(change)

    changed = await events.update_event(
        studio.db,
        catalogue,
        call,
        event_id,
        fields,
        version=version,
        beside=events.Beside(first=following.first, then=then),
    )
    await let_go(studio.db, done[0], by=Teller.of(call))
    return changed


async def change_venue(
    studio: Studio,
    catalogue: Catalogue,
    call: Call,
    event_id: UUID,
    venue_id: UUID,
    *,
    has_consent: bool,
    reason: str,
    version: int | None,
) -> EventAtVenue:
    """Move an event to another venue; one with a layout stays where that stands."""
    return await events.change_venue(
        studio.db,
        catalogue,
        call,
        event_id,
        venue_id,
        has_consent=has_consent,
        reason=reason,
        version=version,
        beside=_following(call.organization_id, event_id),
    )


async def delete_event(
    studio: Studio, catalogue: Catalogue, call: Call, event_id: UUID, *, version: int | None
) -> None:
    """Delete a draft, with what is left of a publication that was broken off. What was held once stays on record."""
    require(call.actor, Action.SCHEDULE_EVENTS)
    async with studio.db.transaction(call.organization_id) as conn:
        row = await halls.find(conn, call.organization_id, event_id)
        event = await lifecycle.lock(conn, call.organization_id, event_id, version=version)
        if await inventory.has_history(conn, call.organization_id, event_id):
            raise EventInUse(status=event.status)
    if event.status is Status.DRAFT and row and row.making:
        await inventory.sweep(studio.db, call.organization_id, event_id)
    await events.delete_event(studio.db, catalogue, call, event_id, version=version)


async def move_event(studio: Studio, catalogue: Catalogue, call: Call, event_id: UUID, order: Order) -> EventAtVenue:
    """Publish, cancel, reschedule and so on: whatever the lifecycle has, with what it does to places."""
    require(call.actor, events.action_of(order.verb))
    return await carry_out(studio, catalogue, call.organization_id, event_id, order, by=Teller.of(call))


async def carry_out(
    studio: Studio, catalogue: Catalogue, organization_id: OrganizationId, event_id: UUID, order: Order, *, by: Teller
) -> EventAtVenue:
    """Give an order, and announce what came of it."""
    done = await move(studio, organization_id, event_id, order, by=by)
    await catalogue.announce(lifecycle.kind_of(order.verb), done)
    await let_go(studio.db, done, by=by)
    with after_commit():
        async with studio.db.transaction(organization_id) as conn:
            event, venue = await lifecycle.find_at_venue(conn, organization_id, event_id)
    return EventAtVenue(event, venue)


async def move(studio: Studio, organization_id: OrganizationId, event_id: UUID, order: Order, *, by: Teller) -> Change:
    """Carry out a verb, with what it does to places."""
    if order.verb is Verb.PUBLISH:
        return await inventory.publish(studio, organization_id, event_id, order, by=by)
    async with studio.db.transaction(organization_id) as conn:
        if order.verb is Verb.UNPUBLISH:
            return await inventory.unpublish(conn, organization_id, event_id, order, by=by)
        return await lifecycle.move(conn, organization_id, event_id, order, by=by)


async def let_go(db: Database, change: Change, *, by: Teller) -> None:
    """After a change was committed: an event that is called off or over, or whose sale was moved, is held by nobody.

    Moved away from now, that is; where a sale has ended by itself everybody may finish what they hold. Afterwards, not
    before: whoever was given a hold meanwhile is found as well. What is left, because there is much of it, because
    somebody is at a row of it or because this process ends here, the reaper lets go within seconds when the event is
    cancelled, over or put away; when only its sale was moved, it lapses.
    """
    event = change.event
    try:
        if event.status in (Status.CANCELLED, Status.ARCHIVED, Status.ENDED):
            reason = f"event_{event.status}"
        elif event.status in inventory.MATERIALISED and await _is_sale_moved_away(db, change):
            reason = "outside_sale"
        else:
            return
        await registry.release_all(db, event.organization_id, event.id, by=by, reason=reason)
    except (Busy, OutcomeUnknown) as failed:  # the change itself is done, and must not be answered as if it were not
        log.warning("seat_holds_not_released_yet", event_id=str(event.id), error=type(failed).__name__)


async def _is_sale_moved_away(db: Database, change: Change) -> bool:
    """Whether the times of a sale were changed, and now is not one of them; PostgreSQL's now, which gives the holds."""
    event = change.event
    if change.before is not None and _sale_times(change.before) == _sale_times(event):
        return False
    async with db.transaction(event.organization_id) as conn:
        now = await lifecycle.read_clock(conn)
    return rules.sale_state(event, now) in OUTSIDE_THE_SALE


def _sale_times(event: Event) -> tuple[datetime | None, datetime]:
    return event.sale_start_at, event.sale_end_at or event.effective_end_at


def _following(organization_id: OrganizationId, event_id: UUID) -> events.Beside:
    """Places follow a change of their event; whoever may change them waits before anything else is locked."""

    async def lock(conn: Conn) -> None:
        await inventory.lock_zones(conn, organization_id, event_id)

    return events.Beside(first=lock, then=inventory.follow)
