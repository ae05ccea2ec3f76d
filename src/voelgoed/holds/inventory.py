"""The places of an event, made and changed: what it offers, written down seat by seat and zone by zone.

What a hall of 100,000 seats offers is worked out before anything is locked, from what was read; under the lock it is
only looked whether that still holds, and if not, worked out anew. A large hall is written in pieces, each in its own
transaction, because everybody who follows the journal waits for the oldest one. Its seats are there for nobody until
the last transaction writes the last piece, the zones and the status of the event together.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from voelgoed.db import Conn, Database
from voelgoed.errors import LostRace
from voelgoed.events import lifecycle, rules
from voelgoed.events.model import Change, Event, Order, Status, Teller, Venue
from voelgoed.events.refusals import CapacityExceeded, EventChanged
from voelgoed.holds import store
from voelgoed.holds.model import Counts, EventSeat, OfferedZone, SeatFilter
from voelgoed.holds.refusals import SeatingChanged, SeatingInUse, SeatingLocked
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.recording import record
from voelgoed.seating import halls, policies
from voelgoed.seating.model import EventLayout, Pin
from voelgoed.seating.offer import (
    NOTHING_SAID,
    Hall,
    Offer,
    blocked_columns,
    changed_words,
    offer,
    open_hall,
    told_zones,
)
from voelgoed.seating.overlay import View, touched
from voelgoed.seating.studio import Studio

log = structlog.get_logger(__name__)

SEATS_PER_PIECE: Final = 10_000
TRIES: Final = 3
TAKEN_SHOWN_MAX: Final = 100
OVERTAKEN: Final = "somebody else began to publish it, or changed its seating"
BROKEN_OFF_AFTER: Final = timedelta(hours=1)
BROKEN_OFF_PER_RUN: Final = 20

MATERIALISED: Final = frozenset({Status.PUBLISHED, Status.LIVE, Status.POSTPONED})
"""Whoever is one of these has places, and may change them."""

Check = Callable[[Conn, "Plan"], Awaitable[None]]
"""What a higher domain asks of a plan before it is written, in the transaction that writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an event shall have: a version of a layout, or none, and what it says differently."""

    pin: Pin | None
    overrides: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an event offers, or would, and what it was worked out from."""

    event: Event
    venue: Venue
    row: EventLayout | None
    policy_version: int
    offer: Offer

    @property
    def row_version(self) -> int:
        return self.row.version if self.row else 0

    @property
    def pin(self) -> Pin | None:
        return self.offer.hall.pin


class _Outdated(Exception):
    """What was worked out does not hold any more; all of the transaction is undone."""


async def plan(studio: Studio, organization_id: OrganizationId, event_id: UUID, wanted: Wanted | None = None) -> Plan:
    """Work out what an event offers as it is, or would with what is wanted; nothing is locked."""
    async with studio.db.transaction(organization_id) as conn:
        event, venue = await lifecycle.find_at_venue(conn, organization_id, event_id)
        row = await halls.find(conn, organization_id, event_id)
        stored = await policies.load(conn, organization_id)
    if wanted is None:
        wanted = Wanted(pin=row.pin if row else None, overrides=row.overrides if row else NOTHING_SAID)
    hall = await _hall(studio, event, venue, wanted.pin)
    made = await studio.work(
        lambda: offer(
            hall,
            wanted.overrides,
            stored.policy,
            venue_capacity=venue.max_capacity,
            event_capacity=event.capacity,
        )
    )
    return Plan(event=event, venue=venue, row=row, policy_version=stored.version, offer=made)


async def publish(
    studio: Studio, organization_id: OrganizationId, event_id: UUID, order: Order, *, by: Teller
) -> Change:
    """Publish an event: a draft gets its places in the same breath, one that was postponed has them."""
    for _ in range(TRIES):
        try:
            return await _publish(studio, organization_id, event_id, order, by=by)
        except _Outdated:
            continue
    raise EventChanged(why="its seating or the policy kept changing while it was being published")


async def unpublish(conn: Conn, organization_id: OrganizationId, event_id: UUID, order: Order, *, by: Teller) -> Change:
    """Make an event a draft again and remove its places, as long as nobody has any of them."""
    row = await halls.lock(conn, organization_id, event_id)
    event, _ = await lifecycle.find_at_venue(conn, organization_id, event_id)
    is_allowed = isinstance(rules.decide(event, order, await lifecycle.read_clock(conn)), Event)
    if is_allowed:
        await _remove(conn, organization_id, event_id, row.pin)
    done = await lifecycle.move(conn, organization_id, event_id, order, by=by)
    if not is_allowed:  # it was not when this looked, and became so while it waited: its places are still there
        raise LostRace
    return done


async def save(
    studio: Studio,
    organization_id: OrganizationId,
    event_id: UUID,
    wanted: Wanted,
    *,
    by: Teller,
    seen: int | None,
    check: Check,
) -> Plan:
    """Give an event another layout, or another word about it. Places that are there follow, or it is refused."""
    for _ in range(TRIES):
        planned = await plan(studio, organization_id, event_id, wanted)
        if seen is not None and planned.row_version != seen:
            raise SeatingChanged(version=planned.row_version)
        _require_open(planned.event)
        planned.offer.require_right()
        before = None
        if planned.event.status in MATERIALISED:
            before = (await plan(studio, organization_id, event_id)).offer
        try:
            async with studio.db.transaction(organization_id) as conn:
                await _save(conn, planned, before, by=by, check=check)
        except _Outdated:
            continue
        return await plan(studio, organization_id, event_id)
    raise SeatingChanged(why="the event, its seating or the policy kept changing")


async def require_free(studio: Studio, planned: Plan) -> None:
    """Refuse what a save would: it is over, or people hold or have bought it. Only looked at, nothing is locked."""
    event, made = planned.event, planned.offer
    _require_open(event)
    if event.status not in MATERIALISED:
        return
    before = (await plan(studio, event.organization_id, event.id)).offer
    async with studio.db.transaction(event.organization_id) as conn:
        if before.hall.pin != made.hall.pin:
            if await store.is_touched(conn, event.organization_id, event.id):
                raise await _in_use(conn, event, before.hall.pin, None, None)
            return
        moved = touched(before.view, made.view)
        kept = _kept(before.view, made)
        refused = await _in_use(conn, event, made.hall.pin, list(moved.closed), kept)
        if refused.facts["seats"] or refused.facts["zones"]:
            raise refused


async def follow(conn: Conn, change: Change) -> None:
    """After an event's capacity or venue was changed: its places still fit, or follow; its row here is locked."""
    before, after = change.before, change.event
    if before is None or (before.capacity, before.venue_id) == (after.capacity, after.venue_id):
        return
    row = await halls.find(conn, after.organization_id, after.id)
    pin = row and row.pin
    if pin and before.venue_id != after.venue_id:
        await halls.require_of_venue(conn, after.organization_id, after.venue_id, pin)
    if after.status not in MATERIALISED:
        return
    zones = await store.list_zones(conn, after.organization_id, after.id, is_counted=False)
    if pin:
        offered = sum(zone.view.place_count for zone in zones)
        await lifecycle.require_room(conn, after, seats=offered)
        return
    venue = await lifecycle.require_room(conn, after)
    if zones and not _room(after, venue):
        raise CapacityExceeded(why="people can buy places: give it room for somebody, or unpublish it")
    hall = open_hall(after.id, _room(after, venue))
    stored = await policies.load(conn, after.organization_id)
    said = row.overrides if row else NOTHING_SAID
    made = offer(hall, said, stored.policy, venue_capacity=venue.max_capacity, event_capacity=after.capacity)
    made.require_right()
    if zones:
        await _change(conn, after, None, made, closed={}, opened=(), by=None)
    else:
        await store.add_zones(conn, after.organization_id, after.id, told_zones(made))


async def lock_zones(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> None:
    """The zones of an event, for whoever will change them after the event itself."""
    await halls.lock(conn, organization_id, event_id)
    await store.lock_zones(conn, organization_id, event_id)


async def list_zones(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> list[OfferedZone]:
    """The zones of an event that has its places, without counting its seats."""
    return await store.list_zones(conn, organization_id, event_id, is_counted=False)


async def offered_zones(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> list[OfferedZone]:
    """The zones of an event that has its places, with how many of each are left."""
    return await store.list_zones(conn, organization_id, event_id, is_counted=True)


async def list_seats(
    conn: Conn, organization_id: OrganizationId, event_id: UUID, pin: Pin, wanted: SeatFilter, *, after: int, limit: int
) -> list[EventSeat]:
    """The seats of an event that has its places, behind an ordinal."""
    return await store.list_seats(conn, organization_id, event_id, pin, wanted, after=after, limit=limit)


async def is_touched(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> bool:
    """Whether somebody holds or has bought a place of the event."""
    return await store.is_touched(conn, organization_id, event_id)


async def has_history(conn: Conn, organization_id: OrganizationId, event_id: UUID) -> bool:
    """Whether anybody ever held or bought a place of the event."""
    return await store.has_history(conn, organization_id, event_id)


def laid_over(zones: Sequence[OfferedZone], there: Sequence[OfferedZone]) -> list[OfferedZone]:
    """Zones as they would be, with what is held and sold of those that are there."""
    taken = {zone.zone_id: zone.counts for zone in there}
    found = []
    for zone in zones:
        counts = taken.get(zone.zone_id)
        if counts:
            held, sold = counts.held, counts.sold
            left = max(0, zone.view.place_count - held - sold)
            counts = Counts(available=left, held=held, sold=sold, blocked=zone.view.blocked_count)
        found.append(replace(zone, counts=counts or zone.counts))
    return found


def preview_zones(planned: Plan) -> list[OfferedZone]:
    """The zones of an event as they would be if it were published now."""
    return [
        OfferedZone(
            zone_id=planned.offer.hall.zone_id(zone.code),
            view=zone,
            counts=Counts(available=zone.place_count, held=0, sold=0, blocked=zone.blocked_count),
        )
        for zone in planned.offer.view.zones
    ]


async def clear_broken_off(db: Database) -> int:
    """Remove seats that were written for a publication which was broken off long ago; of how many events."""
    async with db.system_transaction() as conn:
        found = await halls.find_broken_off(conn, older_than=BROKEN_OFF_AFTER, limit=BROKEN_OFF_PER_RUN)
    for organization_id, event_id in found:
        try:
            await sweep(db, organization_id, event_id)
        except Exception as failed:  # one that cannot be cleared does not keep the others
            log.exception("sweep_failed", event_id=str(event_id), error=type(failed).__name__)
    return len(found)


async def sweep(db: Database, organization_id: OrganizationId, event_id: UUID) -> None:
    """Remove what is left of a publication that was broken off. Whoever is still at it is told when they go on."""
    claim = new_id()
    async with db.transaction(organization_id) as conn:
        await halls.lock(conn, organization_id, event_id)
        await halls.set_making(conn, organization_id, event_id, claim)
    await _clear(db, organization_id, event_id, claim)
    async with db.transaction(organization_id) as conn:
        if (await halls.lock(conn, organization_id, event_id)).making == claim:
            await halls.set_making(conn, organization_id, event_id, None)


async def _publish(
    studio: Studio, organization_id: OrganizationId, event_id: UUID, order: Order, *, by: Teller
) -> Change:
    found = await _moving(studio.db, organization_id, event_id, order, by=by)
    if isinstance(found, Change):
        return found
    planned = await plan(studio, organization_id, event_id)
    if planned.event.status is not Status.DRAFT:
        raise _Outdated
    planned.offer.require_right()
    claim = await _write_ahead(studio.db, planned)
    async with studio.db.transaction(organization_id) as conn:
        await _settle(conn, planned, claim)
        epoch = planned.event.inventory_epoch + 1
        told = lifecycle.told_by(by, "event_inventory_created", planned.event, _told(planned, epoch))
        await record(conn, told)
        done = await lifecycle.move(conn, organization_id, event_id, order, by=by, inventory_epoch=epoch)
    log.info("event_inventory_created", event_id=str(event_id), seats=len(planned.offer.hall.codes), epoch=epoch)
    return done


async def _moving(
    db: Database, organization_id: OrganizationId, event_id: UUID, order: Order, *, by: Teller
) -> Change | None:
    """Publish an event that has its places, or refuse what the lifecycle refuses; None when places must be made.

    Under the lock: whoever waited for an event to become a draft would publish it without any.
    """
    async with db.transaction(organization_id) as conn:
        event = await lifecycle.lock(conn, organization_id, event_id)
        is_new = event.status is Status.DRAFT and (order.version in (None, event.version))
        if is_new and isinstance(rules.decide(event, order, await lifecycle.read_clock(conn)), Event):
            return None
        return await lifecycle.move(conn, organization_id, event_id, order, by=by)


async def _write_ahead(db: Database, planned: Plan) -> UUID | None:
    """Write all pieces of a large hall but the last. What somebody had begun before is theirs no more."""
    event, seat_count = planned.event, len(planned.offer.hall.codes)
    if seat_count <= SEATS_PER_PIECE:
        if planned.row and planned.row.making:
            await sweep(db, event.organization_id, event.id)
        return None
    claim = new_id()
    async with db.transaction(event.organization_id) as conn:
        await _require_current(conn, planned, await halls.lock(conn, event.organization_id, event.id))
        await halls.set_making(conn, event.organization_id, event.id, claim)
    if not await _clear(db, event.organization_id, event.id, claim):
        raise EventChanged(why=OVERTAKEN)
    for piece in _pieces(seat_count)[:-1]:
        async with db.transaction(event.organization_id) as conn:
            if not await halls.share_making(conn, event.organization_id, event.id, claim):
                raise EventChanged(why=OVERTAKEN)
            await _add_piece(conn, planned, piece)
    return claim


async def _settle(conn: Conn, planned: Plan, claim: UUID | None) -> None:
    """Write the last piece and the zones, if everything still is as it was when it was worked out."""
    event, hall = planned.event, planned.offer.hall
    row = await halls.lock(conn, event.organization_id, event.id)
    if row.making != claim:
        raise EventChanged(why=OVERTAKEN)
    await _require_current(conn, planned, row)
    if hall.pin:
        await halls.require_choosable(conn, event.organization_id, event.venue_id, hall.pin)
    await lifecycle.require_room(conn, event, seats=planned.offer.view.totals.total)
    for piece in _pieces(len(hall.codes))[-1:]:
        await _add_piece(conn, planned, piece)
    await store.add_zones(conn, event.organization_id, event.id, told_zones(planned.offer))
    await halls.set_making(conn, event.organization_id, event.id, None)


async def _add_piece(conn: Conn, planned: Plan, piece: range) -> None:
    event, pin = planned.event, planned.pin
    assert pin is not None
    blocked = blocked_columns(planned.offer.view, piece.start, piece.stop)
    await store.add_seats(conn, event.organization_id, event.id, pin, piece, blocked)


async def _require_current(conn: Conn, planned: Plan, row: EventLayout) -> None:
    """Everything that the plan was worked out from is as it was."""
    event = planned.event
    found, venue = await lifecycle.find_at_venue(conn, event.organization_id, event.id)
    stored = await policies.load(conn, event.organization_id)
    if not (
        row.version == planned.row_version
        and found.version == event.version
        and venue.version == planned.venue.version
        and stored.version == planned.policy_version
    ):
        raise _Outdated


async def _save(conn: Conn, planned: Plan, before: Offer | None, *, by: Teller, check: Check) -> None:
    event, made = planned.event, planned.offer
    row = await halls.lock(conn, event.organization_id, event.id)
    await _require_current(conn, planned, row)
    if made.hall.pin and made.hall.pin != row.pin:
        await halls.require_choosable(conn, event.organization_id, event.venue_id, made.hall.pin)
    await check(conn, planned)
    overrides = made.hall.written(made.overlay)
    if planned.row is not None and (made.hall.pin, overrides) == (row.pin, dict(row.overrides)):
        return
    epoch = event.inventory_epoch
    if before is not None:
        await lifecycle.require_room(conn, event, seats=made.view.totals.total)
    saved = await halls.save(conn, event.organization_id, event.id, made.hall.pin, overrides)
    if before is not None and before.hall.pin == made.hall.pin:
        await _apply(conn, planned, before.view, by=by)
    elif before is not None:
        epoch += 1
        await _rebuild(conn, planned, row.pin)
    await _lock_as_it_was(conn, planned)  # the event last: whoever sells locks it after seats and zones
    if epoch != event.inventory_epoch:
        await lifecycle.change(
            conn,
            event.organization_id,
            event.id,
            lambda found, _now: replace(found, inventory_epoch=epoch),
            kind="event_layout_changed",
            by=by,
        )
    told = _told(planned, epoch) | {"seating_version": saved.version, "changes": changed_words(row, saved)}
    await record(conn, lifecycle.told_by(by, "event_seating_changed", event, told))


async def _lock_as_it_was(conn: Conn, planned: Plan) -> None:
    """The event, which somebody may have moved or changed since it was looked at."""
    try:
        await lifecycle.lock(conn, planned.event.organization_id, planned.event.id, version=planned.event.version)
    except EventChanged as late:
        raise _Outdated from late


async def _apply(conn: Conn, planned: Plan, before: View, *, by: Teller) -> None:
    """Let the places that are there become what is offered now."""
    after = planned.offer.view
    moved = touched(before, after)
    reasons = {ordinal: why.value for ordinal, why in after.blocked.items() if before.blocked.get(ordinal) is not why}
    await _change(conn, planned.event, before, planned.offer, closed=reasons, opened=moved.opened, by=by)


async def _change(
    conn: Conn,
    event: Event,
    before: View | None,
    made: Offer,
    *,
    closed: dict[int, str],
    opened: Sequence[int],
    by: Teller | None,
) -> None:
    kept = _kept(before, made)
    zones = [told | {"kept": kept[str(told["zone_id"])][1]} for told in told_zones(made)]
    if not await store.change_inventory(
        conn,
        event.organization_id,
        event.id,
        closed=closed,
        opened=opened,
        zones=zones,
        actor_id=by.actor_id if by else None,
        request_id=by.request_id if by else None,
    ):
        raise await _in_use(conn, event, made.hall.pin, list(closed), kept)


def _kept(before: View | None, made: Offer) -> dict[str, tuple[str, int]]:
    """How many of a zone's places sold by number may be taken, so that nobody loses one; with its name, by its id."""
    retyped = {one.zone_code: one.pool_kept for one in (touched(before, made.view).zones if before else ())}
    return {
        str(made.hall.zone_id(zone.code)): (zone.name, retyped.get(zone.code, zone.pool_count))
        for zone in made.view.zones
    }


async def _rebuild(conn: Conn, planned: Plan, old: Pin | None) -> None:
    """Replace all places by those of another version; nobody has any of them, so nobody notices but by the epoch."""
    event, made = planned.event, planned.offer
    await _remove(conn, event.organization_id, event.id, old)
    for piece in _pieces(len(made.hall.codes)):
        await _add_piece(conn, planned, piece)
    await store.add_zones(conn, event.organization_id, event.id, told_zones(made))


async def _remove(conn: Conn, organization_id: OrganizationId, event_id: UUID, pin: Pin | None) -> None:
    if await store.remove_inventory(conn, organization_id, event_id):
        event, _ = await lifecycle.find_at_venue(conn, organization_id, event_id)
        raise await _in_use(conn, event, pin, None, None)


async def _in_use(
    conn: Conn, event: Event, pin: Pin | None, ordinals: list[int] | None, names: dict[str, tuple[str, int]] | None
) -> SeatingInUse:
    """Who is in the way: seats by what they are called, zones by how many places of theirs are taken."""
    seats = []
    if pin:
        seats = await store.list_taken_seats(conn, event.organization_id, event.id, pin, ordinals, TAKEN_SHOWN_MAX)
    zones = []
    for zone in await store.list_zones(conn, event.organization_id, event.id, is_counted=True):
        taken = zone.counts.held + zone.counts.sold
        name, room = (names or {}).get(str(zone.zone_id), (zone.view.name, 0))
        if zone.view.pool_count and taken > room:
            told = {"zone_id": str(zone.zone_id), "name": name, "room": room}
            zones.append(told | {"held": zone.counts.held, "sold": zone.counts.sold})
    return SeatingInUse(
        seats=[
            {
                "seat_id": str(row["seat_id"]),
                "zone": row["zone_name"],
                "row": row["row_label"],
                "seat_number": row["label"],
                "status": row["status"],
            }
            for row in seats
        ],
        seat_count=seats[0]["seat_count"] if seats else 0,
        zones=zones,
    )


async def _clear(db: Database, organization_id: OrganizationId, event_id: UUID, claim: UUID) -> bool:
    """Remove seats that nobody finished, a short transaction for each piece; False when others took it over.

    What is there then is theirs: it may be what they have just written.
    """
    while True:
        async with db.transaction(organization_id) as conn:
            if not await halls.share_making(conn, organization_id, event_id, claim):
                return False
            if await store.clear_seats(conn, organization_id, event_id, SEATS_PER_PIECE) < SEATS_PER_PIECE:
                return True


async def _hall(studio: Studio, event: Event, venue: Venue, pin: Pin | None) -> Hall:
    if pin is None:
        return open_hall(event.id, _room(event, venue))
    return await halls.load_hall(studio, event.organization_id, pin)


def _room(event: Event, venue: Venue) -> int:
    """How many an event without a layout has room for: what it says, or else what the venue has."""
    return venue.max_capacity if event.capacity is None else event.capacity


def _require_open(event: Event) -> None:
    if event.status is not Status.DRAFT and event.status not in MATERIALISED:
        raise SeatingLocked(status=event.status)


def _pieces(seat_count: int) -> list[range]:
    return [range(first, min(first + SEATS_PER_PIECE, seat_count)) for first in range(0, seat_count, SEATS_PER_PIECE)]


def _told(planned: Plan, epoch: int) -> dict[str, object]:
    totals, pin = planned.offer.view.totals, planned.pin
    return {
        "layout_id": str(pin.layout_id) if pin else None,
        "layout_version": pin.version if pin else None,
        "inventory_epoch": epoch,
        "seats": len(planned.offer.hall.codes),
        "zones": len(planned.offer.view.zones),
        "places": totals.total,
        "blocked": totals.blocked,
    }
