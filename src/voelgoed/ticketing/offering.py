"""What an event offers and for how much: to the public, to its organiser, and as its organiser changes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, may, require
from voelgoed.db import Conn, after_commit
from voelgoed.events import lifecycle
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import Event, Status, Teller
from voelgoed.events.refusals import EventNotFound
from voelgoed.events.rules import is_shown
from voelgoed.holds import inventory
from voelgoed.holds.availability import Availability
from voelgoed.holds.inventory import Plan, Wanted
from voelgoed.holds.model import Counts, EventSeat, OfferedZone, SeatFilter, SeatStatus
from voelgoed.holds.refusals import SeatingChanged
from voelgoed.ids import OrganizationId
from voelgoed.money import Money
from voelgoed.paging import Page, after_place, page_by_place
from voelgoed.seating import halls, policies
from voelgoed.seating.model import Version
from voelgoed.seating.offer import Offer, SeatingInvalid
from voelgoed.seating.overlay import OVERLAY_HINTS, OverlayCode, OverlayFault, View
from voelgoed.seating.policy import Effective, effective
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import rulebook
from voelgoed.ticketing.pricing import PriceRule, Prices, price_of, prices, unpriced_zones, wrong_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What an event offers: its zones with what is left of them and what they cost, and what holds for a booking."""

    event: Event
    version: Version | None
    zones: Sequence[OfferedZone]
    counts: Counts
    prices: Prices
    policy: Effective


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """The same for the organiser, with what was said to make it so, and what is wrong or missing."""

    offered: Offered
    plan: Plan
    is_materialised: bool
    can_repin: bool
    faults: Sequence[OverlayFault]
    unpriced: Sequence[UUID]

    @property
    def view(self) -> View:
        return self.plan.offer.view

    @property
    def seating_version(self) -> int:
        return self.plan.row_version


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedSeat:
    """A seat and what it costs, if somebody has said so."""

    seat: EventSeat
    price: Money | None


async def see_offer(
    studio: Studio, availability: Availability, catalogue: Catalogue, call: Call, event_id: UUID
) -> Offered:
    """What an event offers, to whoever may know of it; a draft as it would be, to its own people."""
    organization_id = await catalogue.whose(call, event_id)
    async with studio.db.transaction(organization_id) as conn:
        event = await _find(conn, call, organization_id, event_id)
        if event.status is not Status.DRAFT:
            pin, said = await halls.find_brief(conn, organization_id, event_id)
            stored = await policies.load(conn, organization_id)
            zones = await _counted(conn, availability, organization_id, event_id)
            version = await halls.find_version(conn, organization_id, pin) if pin else None
            return await _offered(conn, event, version, zones, effective(stored.policy, said))
    planned = await inventory.plan(studio, organization_id, event_id)
    async with studio.db.transaction(organization_id) as conn:
        return await _previewed(conn, planned)


async def list_seats(
    studio: Studio,
    catalogue: Catalogue,
    call: Call,
    event_id: UUID,
    wanted: SeatFilter,
    *,
    cursor: str | None,
    limit: int,
) -> Page[PricedSeat]:
    """The seats of an event one by one, as they stand on the plan, each with its price."""
    organization_id = await catalogue.whose(call, event_id)
    after = after_place(cursor)
    async with studio.db.transaction(organization_id) as conn:
        event = await _find(conn, call, organization_id, event_id)
        if event.status is not Status.DRAFT:
            pin, _ = await halls.find_brief(conn, organization_id, event_id)
            zones = await inventory.list_zones(conn, organization_id, event_id)
            found: list[EventSeat] = []
            if pin:
                found = await inventory.list_seats(
                    conn, organization_id, event_id, pin, wanted, after=after, limit=limit + 1
                )
            return await _priced_page(conn, organization_id, zones, found, limit)
    planned = await inventory.plan(studio, organization_id, event_id)
    found = await studio.work(lambda: list(islice(_previewed_seats(planned, wanted, after), limit + 1)))
    async with studio.db.transaction(organization_id) as conn:
        return await _priced_page(conn, organization_id, inventory.preview_zones(planned), found, limit)


async def see_seating(studio: Studio, call: Call, event_id: UUID) -> Seating:
    """What an organiser has made of an event's seating."""
    require(call.actor, Action.SEE_EVENTS)
    planned = await inventory.plan(studio, call.organization_id, event_id)
    return await seating_of(studio, planned)


async def try_seating(studio: Studio, call: Call, event_id: UUID, wanted: Wanted, *, version: int | None) -> Seating:
    """What would come of it if an event's seating were changed like this.

    What is wrong with what it says is told, not refused; what people have, and a layout that it could not have at all,
    is refused as it would be in earnest.
    """
    require(call.actor, Action.CHANGE_EVENTS)
    planned = await inventory.plan(studio, call.organization_id, event_id, wanted)
    if version not in (None, planned.row_version):
        raise SeatingChanged(version=planned.row_version)
    await inventory.require_free(studio, planned)
    if planned.pin and planned.pin != (planned.row.pin if planned.row else None):
        async with studio.db.transaction(call.organization_id) as conn:
            await halls.require_choosable(conn, call.organization_id, planned.event.venue_id, planned.pin)
    return await seating_of(studio, planned, is_wanted=True)


async def save_seating(studio: Studio, call: Call, event_id: UUID, wanted: Wanted, *, version: int | None) -> Seating:
    """Give an event a layout, or another word about it. Once people know of it, this is for those who may schedule."""
    require(call.actor, Action.CHANGE_EVENTS)
    if not may(call.actor, Action.SCHEDULE_EVENTS):
        async with studio.db.transaction(call.organization_id) as conn:
            event, _ = await lifecycle.find_at_venue(conn, call.organization_id, event_id)
        _require_mine(call, event)

    async def check(conn: Conn, planned: Plan) -> None:
        _require_mine(call, planned.event)  # somebody may have published it a moment ago
        await require_prices(conn, planned)

    saved = await inventory.save(
        studio,
        call.organization_id,
        event_id,
        wanted,
        by=Teller.of(call),
        seen=version,
        check=check,
    )
    with after_commit():
        return await seating_of(studio, saved)


def _require_mine(call: Call, event: Event) -> None:
    """A draft is for everybody who may change events, the rest for those who may schedule them."""
    if event.status is not Status.DRAFT:
        require(call.actor, Action.SCHEDULE_EVENTS)


async def require_prices(conn: Conn, planned: Plan) -> None:
    """Refuse prices that are not there, or of two currencies; none of them goes away before the transaction ends."""
    ids = {zone.pricing_rule_id for zone in planned.offer.view.zones if zone.pricing_rule_id}
    rules = await rulebook.load_rules(conn, planned.event.organization_id, ids, is_locked=True)
    if wrong := _wrong_prices(planned.offer, rules):
        raise SeatingInvalid(wrong)


async def seating_of(studio: Studio, planned: Plan, *, is_wanted: bool = False) -> Seating:
    """A plan with what is sold of it; what is only wanted is shown as it would be."""
    event, made = planned.event, planned.offer
    is_materialised = event.status in inventory.MATERIALISED
    async with studio.db.transaction(event.organization_id) as conn:
        ids = {zone.pricing_rule_id for zone in made.view.zones if zone.pricing_rule_id}
        rules = await rulebook.load_rules(conn, event.organization_id, ids)
        faults = [*made.faults, *_wrong_prices(made, rules)]
        offered = await _previewed(conn, planned)
        can_repin = event.status is Status.DRAFT
        if is_materialised:
            can_repin = not await inventory.is_touched(conn, event.organization_id, event.id)
            zones = await inventory.offered_zones(conn, event.organization_id, event.id)
            if is_wanted:
                zones = inventory.laid_over(offered.zones, zones)
            offered = await _offered(conn, event, offered.version, zones, made.view.policy)
    unpriced = unpriced_zones(made.view.zones)
    return Seating(
        offered=offered,
        plan=planned,
        is_materialised=is_materialised,
        can_repin=can_repin,
        faults=faults,
        unpriced=[made.hall.zone_id(code) for code in unpriced],
    )


async def _counted(
    conn: Conn, availability: Availability, organization_id: OrganizationId, event_id: UUID
) -> list[OfferedZone]:
    """The zones of an event with what is left of them: from memory where that is new, else counted."""
    known = availability.peek(event_id) if availability.is_live() else None
    if known is None:
        availability.prefetch(organization_id, event_id)
        return await inventory.offered_zones(conn, organization_id, event_id)
    counts = {zone.zone_id: zone.counts for zone in known.zones}
    zones = await inventory.list_zones(conn, organization_id, event_id)
    if any(zone.zone_id not in counts for zone in zones):  # its places were made anew this very moment
        return await inventory.offered_zones(conn, organization_id, event_id)
    return [replace(zone, counts=counts[zone.zone_id]) for zone in zones]


def _wrong_prices(made: Offer, rules: dict[UUID, PriceRule]) -> list[OverlayFault]:
    return [
        OverlayFault(
            path=f"pricing_zones.{made.hall.zone_id(code)}",
            code=OverlayCode.PRICE_REFUSED,
            message=f"{why[0].upper()}{why[1:]}.",
            hint=OVERLAY_HINTS[OverlayCode.PRICE_REFUSED],
        )
        for code, why in wrong_prices(made.view.zones, rules)
    ]


async def _previewed(conn: Conn, planned: Plan) -> Offered:
    event, pin = planned.event, planned.pin
    version = await halls.find_version(conn, event.organization_id, pin) if pin else None
    return await _offered(conn, event, version, inventory.preview_zones(planned), planned.offer.view.policy)


async def _offered(
    conn: Conn, event: Event, version: Version | None, zones: Sequence[OfferedZone], policy: Effective
) -> Offered:
    _, priced = await _prices(conn, event.organization_id, zones)
    return Offered(
        event=event,
        version=version,
        zones=zones,
        counts=Counts.total(zone.counts for zone in zones),
        prices=priced,
        policy=policy,
    )


async def _priced_page(
    conn: Conn,
    organization_id: OrganizationId,
    zones: Sequence[OfferedZone],
    found: Sequence[EventSeat],
    limit: int,
) -> Page[PricedSeat]:
    rules, _ = await _prices(conn, organization_id, zones)
    by_zone = {zone.zone_id: rules.get(zone.view.pricing_rule_id) for zone in zones if zone.view.pricing_rule_id}
    priced = []
    for seat in found:
        rule = by_zone.get(seat.zone_id)
        priced.append(PricedSeat(seat=seat, price=price_of(rule, seat.category) if rule else None))
    return page_by_place(priced, limit, lambda one: one.seat.ordinal)


async def _prices(
    conn: Conn, organization_id: OrganizationId, zones: Sequence[OfferedZone]
) -> tuple[dict[UUID, PriceRule], Prices]:
    """The rules that zones name, and what comes of them. A rule of an event long over may be gone: then no price is."""
    rules = await rulebook.load_rules(
        conn, organization_id, {zone.view.pricing_rule_id for zone in zones if zone.view.pricing_rule_id}
    )
    views = [zone.view for zone in zones]
    refused = {code for code, _ in wrong_prices(views, rules)}
    kept = [replace(view, pricing_rule_id=None) if view.code in refused else view for view in views]
    return rules, prices(kept, rules)


def _previewed_seats(planned: Plan, wanted: SeatFilter, after: int) -> Iterator[EventSeat]:
    """The seats of a draft as they would be sold."""
    hall, blocked = planned.offer.hall, planned.offer.view.blocked
    ids = hall.zone_ids()
    for ordinal, (zone, row, seat) in enumerate(hall.layout.seats()):
        status = SeatStatus.BLOCKED if ordinal in blocked else SeatStatus.AVAILABLE
        is_asked = wanted.status in (None, status) and wanted.zone_id in (None, ids[zone.code])
        if ordinal > after and is_asked:
            yield EventSeat(
                seat_id=hall.seat_id(ordinal),
                ordinal=ordinal,
                zone_id=ids[zone.code],
                zone_name=zone.name,
                row=row.label,
                seat_number=seat.label,
                category=seat.category,
                status=status,
                version=0,
            )


async def _find(conn: Conn, call: Call, organization_id: OrganizationId, event_id: UUID) -> Event:
    """The event, if whoever asks may still know of it: what is remembered of whose it is may be a second old."""
    event, _ = await lifecycle.find_at_venue(conn, organization_id, event_id)
    is_own = may(call.actor, Action.SEE_EVENTS) and call.organization_id == organization_id
    if not (is_own or is_shown(event)):
        raise EventNotFound
    return event
