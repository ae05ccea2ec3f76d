"""Who may hold what: zones of every kind, members and others, and the policy as it stands when somebody asks."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from tests.make.accounts import make_organization
from tests.make.events import call_of, make_venue
from tests.make.layouts import changed, encoded, small_layout
from tests.make.seating import Seated, as_registry, save, seated_event
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.db import Connection
from voelgoed.errors import DomainError
from voelgoed.holds import booking
from voelgoed.holds.booking import Held
from voelgoed.seating import operator, presets
from voelgoed.seating.document import read_layout
from voelgoed.seating.faults import LayoutInvalid
from voelgoed.seating.generate import generate
from voelgoed.seating.overlay import Overlay
from voelgoed.ticketing import offering
from voelgoed.wiring import Services

TIER = "voelgoed_vriendinne"


@dataclass(frozen=True, slots=True)
class Sale:
    """An event on sale, and those who want to go there."""

    services: Services
    place: Organization
    made: Seated

    def buyer(self, role: Role = Role.CUSTOMER) -> Call:
        return call_of(self.place, role)

    def seat(self, code: str) -> UUID:
        return self.made.hall.seat_id(self.made.ordinal(code))

    async def hold(self, call: Call, code: str) -> Held:
        seats = [self.seat(code)]
        return (await booking.reserve_seats(self.services.lanes, self.services.db, call, self.made.event.id, seats))[0]

    async def take(self, call: Call, zone: str, quantity: int) -> Held:
        zone_id = self.made.hall.zone_id(zone)
        return await booking.reserve_places(
            self.services.lanes, self.services.db, call, self.made.event.id, zone_id, quantity
        )

    async def left(self, zone: str) -> int:
        offer = await offering.see_offer(
            self.services.studio,
            self.services.availability,
            self.services.catalogue,
            self.buyer(),
            self.made.event.id,
        )
        return next(one.counts.available for one in offer.zones if one.view.code == zone)


async def refusal(asked: object) -> str:
    with pytest.raises(DomainError) as refused:
        await asked  # type: ignore[misc]
    return refused.value.code


@pytest.fixture
async def place(services: Services) -> Organization:
    return await make_organization(services.db)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return Sale(services, place, await seated_event(services.db, services.studio, place, status="published"))


async def member(sale: Sale, tier: str) -> Call:
    """A customer with a membership."""
    call = sale.buyer()
    assert call.actor.user_id is not None
    async with sale.services.db.system_transaction() as conn:
        await conn.execute("insert into users (id, name) values ($1, 'M')", call.actor.user_id)
        await conn.execute(
            "insert into memberships (id, organization_id, user_id, tier) values (gen_random_uuid(), $1, $2, $3)",
            sale.place.id,
            call.actor.user_id,
            tier,
        )
    return call


@pytest.mark.req("ZON-12", "ZON-19")
async def test_anybody_picks_a_very_seat_of_an_open_zone(sale: Sale) -> None:
    """The one they name, by its row and number and where it stands, and no other."""
    held = await sale.hold(sale.buyer(), "S-A-3")
    assert (held.hold.seat_id, held.name) == (sale.seat("S-A-3"), ("Stalls", "A", "3"))
    stalls = next(zone for zone in sale.made.hall.layout.zones if zone.code == "S")
    assert len({(seat.x, seat.y) for row in stalls.rows for seat in row.seats}) == stalls.capacity
    assert await refusal(sale.hold(sale.buyer(), "S-A-3")) == "seat_held_by_another_user"
    assert await refusal(sale.take(sale.buyer(), "S", 1)) == "zone_not_found"
    assert await sale.left("S") == stalls.capacity - 1


@pytest.mark.req("ZON-13")
async def test_a_vip_seat_is_picked_by_those_who_belong_there(sale: Sale) -> None:
    """A very seat as elsewhere, and only with the membership that opens the zone."""
    assert await refusal(sale.hold(sale.buyer(), "V-A-1")) == "zone_access_denied"
    assert await refusal(sale.hold(await member(sale, "silver"), "V-A-1")) == "zone_access_denied"
    held = await sale.hold(await member(sale, "gold"), "V-A-1")
    assert held.hold.seat_id == sale.seat("V-A-1")
    assert await sale.left("V") == 2


@pytest.mark.req("ZON-14")
async def test_seats_without_numbers_are_so_many_and_no_more(services: Services, place: Organization) -> None:
    """Holding takes from the number; there is no seat to choose, and none is given."""
    floor = small_layout({"zones.2.zone_type": "ga_seated", "zones.2.capacity": 5})
    sale = Sale(services, place, await seated_event(services.db, services.studio, place, floor, status="published"))
    held = await sale.take(sale.buyer(), "P", 3)
    assert (held.hold.seat_id, held.hold.quantity, held.name) == (None, 3, None)
    assert await sale.left("P") == 2
    assert await refusal(sale.take(sale.buyer(), "P", 3)) == "block_at_capacity"
    await sale.take(sale.buyer(), "P", 2)
    assert await sale.left("P") == 0


@pytest.mark.req("ZON-32", "POL-05")
async def test_the_lounge_of_the_reference_set_up_end_to_end(services: Services, place: Organization) -> None:
    """Fifty reserved seats for one tier: not while the policy forbids such zones; then for members alone."""
    lounge = generate(presets.preset("festival"))
    venue = await make_venue(services.db, place, max_capacity=2_000)
    with pytest.raises(LayoutInvalid) as invalid:
        await operator.add_layout(services.studio, place, venue.id, lounge)
    assert {fault.code for fault in invalid.value.faults} == {"zone_not_permitted"}
    await operator.change_policy(services.db, place, {"allow_vip_zones": True}, reason="a lounge was built")
    made = await seated_event(services.db, services.studio, place, lounge, venue=venue, status="published")
    sale = Sale(services, place, made)
    vip = next(zone for zone in lounge.zones if zone.code == "VIP")
    assert (vip.capacity, vip.membership_tier) == (50, TIER)
    code = vip.rows[0].seats[3].code
    assert await refusal(sale.hold(sale.buyer(), code)) == "zone_access_denied"
    await sale.hold(await member(sale, TIER), code)
    assert await sale.left("VIP") == 49


@pytest.mark.req("POL-23", "POL-13", "RBAC-10")
async def test_the_policy_is_asked_when_somebody_holds(services: Services, place: Organization, sale: Sale) -> None:
    """As it is at that moment: the organization's, with what the event may say on top. Holds that are there stay."""

    async def lasts(code: str) -> timedelta:
        hold = (await sale.hold(sale.buyer(), code)).hold
        return hold.expires_at - hold.created_at

    db = services.db
    assert await lasts("S-A-1") == timedelta(minutes=10)
    await operator.change_policy(db, place, {"default_hold_ttl_minutes": 15}, reason="more time")
    assert await lasts("S-A-2") == timedelta(minutes=15)
    overlay = Overlay(seating_overrides={"default_hold_ttl_minutes": 5})
    await save(services.studio, sale.made.event, sale.made.wanted(overlay))
    assert await lasts("S-A-3") == timedelta(minutes=5)
    await operator.change_policy(db, place, {}, lock=["default_hold_ttl_minutes"], reason="the same for everybody")
    assert await lasts("S-A-4") == timedelta(minutes=15)


@pytest.mark.req("SEAT-25")
async def test_two_seats_of_one_name_or_one_seat_twice_cannot_be(sale: Sale, owner_conn: Connection) -> None:
    """Neither in a layout that is stored, nor among the places of an event."""
    with pytest.raises(LayoutInvalid) as invalid:
        read_layout(encoded(changed({"zones.0.rows.0.seats.1.number": 1})))
    assert "duplicate_seat_label" in {fault.code for fault in invalid.value.faults}
    copied = (
        "insert into event_seats (organization_id, event_id, ordinal, seat_id, zone_id)"
        " select organization_id, event_id, {}, {}, zone_id from event_seats where event_id = $1 and ordinal = 0"
    )
    for ordinal, seat_id in (("99", "seat_id"), ("1", "gen_random_uuid()")):
        with pytest.raises(asyncpg.UniqueViolationError):
            async with as_registry(owner_conn) as registry:
                await registry.execute(copied.format(ordinal, seat_id), sale.made.event.id)
