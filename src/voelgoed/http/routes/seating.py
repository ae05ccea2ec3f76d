"""What an event offers: its zones, seats and prices, to the public; and how its organiser makes it so."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import Field

from voelgoed.accounts.permissions import Action
from voelgoed.events.model import Status
from voelgoed.events.refusals import CapacityExceeded, EventNotFound
from voelgoed.holds.inventory import Wanted
from voelgoed.holds.model import Availability, OfferedZone, SeatFilter, SeatStatus
from voelgoed.holds.refusals import SeatingChanged, SeatingInUse, SeatingLocked
from voelgoed.http.context import Caller, IfMatch, etag, seen
from voelgoed.http.guard import guarded
from voelgoed.http.problems import RequestInvalid
from voelgoed.http.routes.layouts import DryRun, geometry_url
from voelgoed.http.routes.seating_policy import Value
from voelgoed.http.routes.venues import JsonObject
from voelgoed.http.shapes import LIMIT, Body, Cursor, Data, Limit, Listed, View
from voelgoed.paging import CursorInvalid
from voelgoed.seating.model import AccessMode, Category, LayoutId, Pin, Version, VersionStatus, ZoneType
from voelgoed.seating.offer import SeatingInvalid
from voelgoed.seating.overlay import PlaceKind
from voelgoed.seating.policy import FIELDS, FieldKind, Origin
from voelgoed.seating.refusals import LayoutNotActive, LayoutNotFound, LayoutOfOtherVenue
from voelgoed.ticketing import offering
from voelgoed.ticketing.offering import Offered, PricedSeat, Seating
from voelgoed.ticketing.pricing import Prices

router = APIRouter(prefix="/api", tags=["seating"])

OVERLAY_BYTES_MAX = 8 * 2**20
"""Every seat of the largest hall, named one by one, and room to spare."""


class MoneyView(View):
    """So many of the least unit of a currency."""

    amount_minor: int
    currency: str


class PriceView(View):
    """What a kind of seat costs."""

    category: Category
    price: MoneyView


class OfferedZoneView(View):
    """A zone as the event sells it. Together the four counts are the capacity.

    `availability` is `held` while everything left is held by somebody: some of it may come back.
    """

    zone_id: UUID
    code: str
    name: str
    zone_type: ZoneType
    place: PlaceKind
    access_mode: AccessMode
    membership_tier: str | None
    allowed_roles: list[str]
    is_enabled: bool
    capacity: int
    available: int
    held: int
    sold: int
    blocked: int
    availability: Availability
    pricing_rule_id: UUID | None
    prices: list[PriceView]
    from_price: MoneyView | None


class CountsView(View):
    """How many places there are of each state, over all zones; `attendance` are those who have one for certain."""

    capacity: int
    available: int
    held: int
    sold: int
    blocked: int
    attendance: int


class EventLayoutView(View):
    """The version of a layout that an event has."""

    layout_id: UUID
    layout_version: int
    name: str
    status: VersionStatus
    seat_count: int
    geometry_url: str


class BookingRules(View):
    """What a buyer should know before choosing."""

    max_seats_per_booking: int
    hold_minutes: int


class OfferView(View):
    """What an event offers. Without a layout it has one zone, and nobody chooses a seat."""

    event_id: UUID
    status: Status
    inventory_epoch: int
    layout: EventLayoutView | None
    zones: list[OfferedZoneView]
    counts: CountsView
    from_price: MoneyView | None
    booking: BookingRules


class SeatView(View):
    """A seat of an event. It is named by its id; `ordinal` is its place in the geometry document."""

    seat_id: UUID
    ordinal: int
    zone_id: UUID
    block_name: str
    row: str
    seat_number: str
    category: Category
    status: SeatStatus
    price: MoneyView | None


class TotalsView(View):
    """What is offered, by what one buys; `blocked` is what is not."""

    reserved: int
    ga_seated: int
    standing: int
    blocked: int
    total: int


class FaultView(View):
    """One thing that is wrong, and where."""

    path: str
    code: str
    message: str
    hint: str


class EventPolicyField(View):
    """A field of the policy as it holds for the event, and who said so."""

    name: str
    kind: FieldKind
    value: Value
    origin: Origin
    is_locked: bool
    is_overridable: bool
    least: int | None
    most: int | None
    is_nullable: bool


class SeatingView(View):
    """What the organiser has made of the seating. `version` is what `If-Match` takes; 0 says that nothing was said."""

    event_id: UUID
    version: int
    layout: EventLayoutView | None
    overrides: JsonObject
    zones: list[OfferedZoneView]
    counts: CountsView
    totals: TotalsView
    event_capacity: int | None
    venue_capacity: int
    is_hybrid: bool
    is_materialised: bool
    can_repin: bool
    inventory_epoch: int
    from_price: MoneyView | None
    faults: list[FaultView]
    unpriced_zones: list[UUID]
    policy: list[EventPolicyField]


class SeatingBody(Body):
    """What the event shall have: a version of a layout, or none, and everything it says differently.

    `overrides`: `blocked_seat_ids`, `disabled_zones`, `zone_overrides`, `pricing_zones`, `seating_overrides`; what is
    left out is not said. Faults are told at their paths.
    """

    layout_id: UUID | None = None
    layout_version: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
    overrides: JsonObject

    def wanted(self) -> Wanted:
        """The same as a value; a layout is named with its version."""
        if (self.layout_id is None) != (self.layout_version is None):
            raise RequestInvalid(path="layout_version")
        if self.layout_id is None or self.layout_version is None:
            return Wanted(pin=None, overrides=self.overrides)
        return Wanted(pin=Pin(LayoutId(self.layout_id), self.layout_version), overrides=self.overrides)


@router.get("/events/{event_id}/layout")
@guarded(Action.SEE_STOREFRONT, EventNotFound)
async def get_event_layout(event_id: UUID, caller: Caller) -> Data[OfferView]:
    """What an event offers: zones, what is left of them, prices, and where its geometry is."""
    services = caller.services
    found = await offering.see_offer(services.studio, services.availability, services.catalogue, caller.call, event_id)
    return Data(data=_offer(found))


@router.get("/events/{event_id}/seats")
@guarded(Action.SEE_STOREFRONT, EventNotFound, CursorInvalid)
async def list_event_seats(
    event_id: UUID,
    caller: Caller,
    status: SeatStatus | None = None,
    zone_id: UUID | None = None,
    cursor: Cursor = None,
    limit: Limit = LIMIT,
) -> Listed[SeatView]:
    """The seats of an event one by one, in the order of their ordinals."""
    services = caller.services
    page = await offering.list_seats(
        services.studio,
        services.catalogue,
        caller.call,
        event_id,
        SeatFilter(status=status, zone_id=zone_id),
        cursor=cursor,
        limit=limit,
    )
    return Listed(data=[_seat(one) for one in page.items], next_cursor=page.next_cursor)


@router.get("/admin/events/{event_id}/seating")
@guarded(Action.SEE_EVENTS, EventNotFound)
async def get_seating(event_id: UUID, caller: Caller, response: Response) -> Data[SeatingView]:
    """What the organiser has made of an event's seating."""
    return _answer(await offering.see_seating(caller.services.studio, caller.call, event_id), response)


@router.put("/admin/events/{event_id}/seating")
@guarded(
    Action.CHANGE_EVENTS,
    EventNotFound,
    LayoutNotFound,
    LayoutNotActive,
    LayoutOfOtherVenue,
    SeatingInvalid,
    SeatingChanged,
    SeatingInUse,
    SeatingLocked,
    CapacityExceeded,
    body_bytes_max=OVERLAY_BYTES_MAX,
)
async def put_seating(
    event_id: UUID,
    body: SeatingBody,
    caller: Caller,
    response: Response,
    dry_run: DryRun = False,  # noqa: FBT002 - a parameter of the address
    if_match: IfMatch = None,
) -> Data[SeatingView]:
    """Give an event its layout and what it says differently; with `dry_run` only look what would come of it."""
    studio, wanted = caller.services.studio, body.wanted()
    if dry_run:
        tried = await offering.try_seating(studio, caller.call, event_id, wanted, version=seen(if_match))
        return _answer(tried, response)
    saved = await offering.save_seating(studio, caller.call, event_id, wanted, version=seen(if_match))
    return _answer(saved, response)


def _answer(found: Seating, response: Response) -> Data[SeatingView]:
    response.headers["ETag"] = etag(found.seating_version)
    offered, planned = found.offered, found.plan
    view, hall = found.view, planned.offer.hall
    return Data(
        data=SeatingView(
            event_id=offered.event.id,
            version=found.seating_version,
            layout=_layout(offered.version),
            overrides=hall.written(planned.offer.overlay),
            zones=[_zone(zone, offered.prices) for zone in offered.zones],
            counts=CountsView.model_validate(offered.counts),
            totals=TotalsView.model_validate(view.totals),
            event_capacity=offered.event.capacity,
            venue_capacity=planned.venue.max_capacity,
            is_hybrid=view.is_hybrid,
            is_materialised=found.is_materialised,
            can_repin=found.can_repin,
            inventory_epoch=offered.event.inventory_epoch,
            from_price=_money(offered.prices.from_price),
            faults=[FaultView.model_validate(fault) for fault in found.faults],
            unpriced_zones=list(found.unpriced),
            policy=_policy(offered),
        )
    )


def _policy(offered: Offered) -> list[EventPolicyField]:
    held = offered.policy
    return [
        EventPolicyField(
            name=name,
            kind=field.kind,
            value=_plain(getattr(held.policy, name)),
            origin=held.origins[name],
            is_locked=name in held.policy.locked_fields,
            is_overridable=field.is_overridable,
            least=field.least if field.kind is FieldKind.WHOLE else None,
            most=field.most if field.kind is FieldKind.WHOLE else None,
            is_nullable=field.is_nullable,
        )
        for name, field in FIELDS.items()
    ]


def _offer(found: Offered) -> OfferView:
    policy = found.policy.policy
    return OfferView(
        event_id=found.event.id,
        status=found.event.status,
        inventory_epoch=found.event.inventory_epoch,
        layout=_layout(found.version),
        zones=[_zone(zone, found.prices) for zone in found.zones],
        counts=CountsView.model_validate(found.counts),
        from_price=_money(found.prices.from_price),
        booking=BookingRules(
            max_seats_per_booking=policy.max_seats_per_booking, hold_minutes=policy.default_hold_ttl_minutes
        ),
    )


def _layout(version: Version | None) -> EventLayoutView | None:
    if version is None:
        return None
    return EventLayoutView(
        layout_id=version.layout_id,
        layout_version=version.version,
        name=version.name,
        status=version.status,
        seat_count=version.seat_count,
        geometry_url=geometry_url(version),
    )


def _zone(zone: OfferedZone, priced: Prices) -> OfferedZoneView:
    view, costs = zone.view, priced.zones.get(zone.view.code)
    shared = ("code", "name", "zone_type", "place", "access_mode", "membership_tier", "is_enabled", "pricing_rule_id")
    return OfferedZoneView(
        zone_id=zone.zone_id,
        **{name: getattr(view, name) for name in shared},
        allowed_roles=list(view.allowed_roles),
        **{name: getattr(zone.counts, name) for name in ("capacity", "available", "held", "sold", "blocked")},
        availability=zone.availability,
        prices=[
            PriceView(category=category, price=MoneyView.model_validate(price))
            for category, price in (costs.by_category if costs else {}).items()
        ],
        from_price=_money(costs.from_price if costs else None),
    )


def _seat(one: PricedSeat) -> SeatView:
    seat = one.seat
    return SeatView(
        seat_id=seat.seat_id,
        ordinal=seat.ordinal,
        zone_id=seat.zone_id,
        block_name=seat.zone_name,
        row=seat.row,
        seat_number=seat.seat_number,
        category=seat.category,
        status=seat.status,
        price=_money(one.price),
    )


def _money(found: object) -> MoneyView | None:
    return MoneyView.model_validate(found) if found else None


def _plain(value: Any) -> Value:
    return list(value) if isinstance(value, tuple) else value
