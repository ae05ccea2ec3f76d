"""The two festivals of the examples, from the layout to the last price: zones that know nothing of each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.holds.expected import require_agreement
from tests.make.accounts import make_organization
from tests.make.events import call_of
from tests.make.seating import Seated, event_now, hold_seat, offered, seated_event, sell_seat, take_places
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.holds.model import Availability, Counts
from voelgoed.money import Money
from voelgoed.seating import presets
from voelgoed.seating.generate import generate
from voelgoed.seating.model import AccessMode, ZoneType
from voelgoed.seating.overlay import PlaceKind
from voelgoed.seating.spec import AreaSpec, RowsSpec, Spec
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import offering
from voelgoed.ticketing.offering import Offered
from voelgoed.wiring import Services


@dataclass(frozen=True, kw_only=True)
class Festival:
    """How many places each zone has and what they cost in rand, by the codes of zones."""

    places: Mapping[str, int]
    rand: Mapping[str, int]
    seated: int
    standing: int

    @property
    def total(self) -> int:
        return self.seated + self.standing


A: Final = Festival(
    places={"ORCHESTRA": 200, "FLOOR": 300, "PIT": 400, "VIP": 50},
    rand={"ORCHESTRA": 80, "FLOOR": 60, "PIT": 40, "VIP": 200},
    seated=550,
    standing=400,
)
B: Final = Festival(
    places={"ORCHESTRA": 300, "FLOOR": 400, "PIT": 300, "VIP": 50},
    rand={"ORCHESTRA": 150, "FLOOR": 100, "PIT": 80, "VIP": 300},
    seated=750,
    standing=300,
)
EXAMPLES: Final = {"A": A, "B": B}


def hall(festival: Festival) -> Spec:
    """The preset is B; A is drawn here, in the same zones."""
    if festival is B:
        return presets.preset("festival")
    return Spec(
        name="Festival A",
        blocks=(
            RowsSpec(code="ORCHESTRA", name="Orchestra", rows=10, seats=20, distance=3_000),
            AreaSpec(code="FLOOR", name="Floor", zone_type=ZoneType.GA_SEATED, capacity=300),
            AreaSpec(code="PIT", name="Pit", capacity=400),
            RowsSpec(
                code="VIP",
                name="VIP Lounge",
                zone_type=ZoneType.VIP_RESERVED,
                access_mode=AccessMode.MEMBERSHIP_TIER,
                membership_tier=presets.VIP_TIER,
                rows=5,
                seats=10,
                distance=6_000,
            ),
        ),
    )


async def opened(db: Database, studio: Studio, place: Organization, festival: Festival) -> Seated:
    """The festival on sale."""
    amounts = {code: 100 * rand for code, rand in festival.rand.items()}
    layout = generate(hall(festival))
    return await seated_event(db, studio, place, layout, amounts=amounts, status="published", capacity=festival.total)


async def shown(services: Services, made: Seated) -> Offered:
    """What everybody is shown of it."""
    return await offering.see_offer(
        services.studio,
        services.availability,
        services.catalogue,
        call_of(await make_organization(services.db)),
        made.event.id,
    )


def by_code(found: Offered) -> dict[str, Any]:
    return {zone.view.code: zone for zone in found.zones}


@pytest.mark.req("HYB-01", "HYB-08", "HYB-09", "TEST-28")
@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_examples_add_up(services: Services, db: Database, place: Organization, name: str) -> None:
    """Every zone has its places and its price; the whole is their sum, and what is cheapest is where it begins."""
    festival = EXAMPLES[name]
    made = await opened(db, services.studio, place, festival)
    found = await shown(services, made)
    zones = by_code(found)
    assert {code: zone.counts.available for code, zone in zones.items()} == festival.places
    assert {code: zone.view.capacity for code, zone in zones.items()} == festival.places
    assert {code: zone.view.place for code, zone in zones.items()} == {
        "ORCHESTRA": PlaceKind.RESERVED,
        "FLOOR": PlaceKind.GA_SEATED,
        "PIT": PlaceKind.STANDING,
        "VIP": PlaceKind.RESERVED,
    }
    assert found.counts == Counts(available=festival.total, held=0, sold=0, blocked=0)
    seated = sum(zone.counts.capacity for zone in zones.values() if zone.view.place is not PlaceKind.STANDING)
    assert (seated, zones["PIT"].counts.capacity) == (festival.seated, festival.standing)
    prices = {code: priced.from_price for code, priced in found.prices.zones.items()}
    assert prices == {code: Money(100 * rand, "ZAR") for code, rand in festival.rand.items()}
    assert found.prices.from_price == Money(100 * min(festival.rand.values()), "ZAR")


def test_the_totals_of_the_examples() -> None:
    """950 are 550 seated and 400 standing; the other has 1,050."""
    assert (A.total, A.seated, A.standing, sum(A.places.values())) == (950, 550, 400, 950)
    assert (B.total, sum(B.places.values())) == (1_050, 1_050)


@pytest.mark.req("HYB-04", "HYB-05", "HYB-07", "TEST-28")
@pytest.mark.parametrize("name", EXAMPLES)
async def test_each_zone_is_counted_by_itself(
    services: Services, db: Database, owner_conn: Connection, place: Organization, name: str
) -> None:
    """What is available is the capacity less what is sold and held, in every kind of zone; who comes is their sum."""
    festival = EXAMPLES[name]
    made = await opened(db, services.studio, place, festival)
    orchestra, vip = festival.places["ORCHESTRA"], festival.places["VIP"]
    first_vip = next(n for n, (zone, _, _) in enumerate(made.hall.layout.seats()) if zone.code == "VIP")
    assert first_vip == orchestra
    for ordinal in range(10):
        await sell_seat(owner_conn, made.event, ordinal)
    for ordinal in range(10, 14):
        await hold_seat(owner_conn, made.event, ordinal)
    await hold_seat(owner_conn, made.event, 14, minutes=-1)  # lapsed: nobody has it
    await sell_seat(owner_conn, made.event, first_vip)
    await take_places(owner_conn, made.event, made.hall.zone_id("FLOOR"), held=7, sold=100)
    await take_places(owner_conn, made.event, made.hall.zone_id("PIT"), held=1, sold=30)
    found = await shown(services, made)
    zones = by_code(found)
    assert {code: zone.counts for code, zone in zones.items()} == {
        "ORCHESTRA": Counts(available=orchestra - 14, held=4, sold=10, blocked=0),
        "FLOOR": Counts(available=festival.places["FLOOR"] - 107, held=7, sold=100, blocked=0),
        "PIT": Counts(available=festival.places["PIT"] - 31, held=1, sold=30, blocked=0),
        "VIP": Counts(available=vip - 1, held=0, sold=1, blocked=0),
    }
    for zone in zones.values():
        assert zone.counts.available == zone.view.capacity - zone.counts.sold - zone.counts.held
    assert found.counts == Counts(available=festival.total - 153, held=12, sold=141, blocked=0)
    assert found.counts.attendance == sum(zone.counts.attendance for zone in zones.values()) == 141


@pytest.mark.req("HYB-06")
@pytest.mark.parametrize("full", A.places)
async def test_a_zone_that_is_sold_out_changes_no_other(
    services: Services, db: Database, owner_conn: Connection, place: Organization, full: str
) -> None:
    """Neither how many places the others have nor what they cost."""
    made = await opened(db, services.studio, place, A)
    before = await shown(services, made)
    if full in ("FLOOR", "PIT"):
        await take_places(owner_conn, made.event, made.hall.zone_id(full), sold=A.places[full])
    else:
        for ordinal, (zone, _, _) in enumerate(made.hall.layout.seats()):
            if zone.code == full:
                await sell_seat(owner_conn, made.event, ordinal)
    after = await shown(services, made)
    assert by_code(after)[full].availability is Availability.SOLD_OUT
    assert by_code(after)[full].counts.available == 0
    others = [code for code in A.places if code != full]
    assert [by_code(after)[code] for code in others] == [by_code(before)[code] for code in others]
    assert {code: after.prices.zones[code] for code in others} == {code: before.prices.zones[code] for code in others}
    assert after.counts.available == A.total - A.places[full]


@pytest.mark.req("ZON-32")
async def test_the_lounge_of_the_reference_set_up(services: Services, db: Database, place: Organization) -> None:
    """Fifty reserved seats for members of one tier, where the policy allows such zones."""
    made = await opened(db, services.studio, place, B)
    zone = (await offered(db, made.event))["VIP"]
    assert zone.view.zone_type is ZoneType.VIP_RESERVED
    assert (zone.view.access_mode, zone.view.membership_tier) == (AccessMode.MEMBERSHIP_TIER, "voelgoed_vriendinne")
    assert (zone.view.capacity, zone.counts.available) == (50, 50)
    found = await shown(services, made)
    assert found.policy.policy.allow_vip_zones
    assert found.prices.zones["VIP"].from_price == Money(30_000, "ZAR")


async def test_two_days_are_two_events_with_one_hall(services: Services, db: Database, place: Organization) -> None:
    """Each day has all places of its own."""
    first = await opened(db, services.studio, place, B)
    second = await seated_event(
        db, services.studio, place, venue=first.venue, pin=first.pin, status="published", capacity=B.total
    )
    for made in (first, second):
        await require_agreement(services.studio, made.event)
        counts = Counts.total(zone.counts for zone in (await offered(db, made.event)).values())
        assert counts.available == (await event_now(db, made.event)).capacity == B.total
