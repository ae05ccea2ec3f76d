"""Places, the event's capacity and the venue's: each fits into the next, whoever changes which."""

from typing import Any

import pytest

from tests.holds.expected import NOTHING, require_agreement, stored_places, whole_state
from tests.make.events import call_of, make_event, make_venue
from tests.make.seating import (
    Seated,
    event_now,
    offered,
    publish,
    save,
    seated_event,
    sell_seat,
    take_places,
    unpublish,
    zone_rows,
)
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.errors import DomainError
from voelgoed.events import usecases as events
from voelgoed.events.model import Event, EventAtVenue, Venue
from voelgoed.events.refusals import CapacityExceeded
from voelgoed.holds import usecases
from voelgoed.holds.refusals import SeatingInUse
from voelgoed.seating.model import ZoneType
from voelgoed.seating.offer import SeatingInvalid
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.seating.refusals import LayoutOfOtherVenue
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services


async def resize(services: Services, place: Organization, event: Event, capacity: int | None) -> EventAtVenue:
    fields = {"capacity": capacity}
    call = call_of(place)
    return await usecases.update_event(services.studio, services.catalogue, call, event.id, fields, version=None)


async def resize_venue(services: Services, place: Organization, venue: Venue, room: int) -> Venue:
    fields = {"max_capacity": room}
    return await events.update_venue(services.db, services.catalogue, call_of(place), venue.id, fields, version=None)


async def room_of(db: Database, event: Event) -> int:
    (zone,) = await zone_rows(db, event)
    return int(zone["capacity"])


@pytest.fixture
async def sold(db: Database, studio: Studio, place: Organization) -> Seated:
    """313 places, ten of them closed, at a venue for 1,000."""
    venue = await make_venue(db, place)
    closed = ("S-A-1", "S-B-1", "S-B-2", "S-B-3", "S-B-4", "S-B-5", "S-B-6")
    overlay = Overlay(disabled_zones=("V",), blocked_seats=closed)
    return await seated_event(db, studio, place, venue=venue, overlay=overlay, status="published")


async def test_an_event_on_sale_does_not_become_smaller_than_its_places(
    services: Services, db: Database, place: Organization, sold: Seated
) -> None:
    """Down to what is offered, which is less than the hall has; up to the venue; nothing changed by a refusal."""
    offered_now = sum(zone.view.place_count for zone in (await offered(db, sold.event)).values())
    assert offered_now == 303
    for capacity in (303, None, 1_000):
        await resize(services, place, sold.event, capacity)
    before = await whole_state(db, sold.event)
    for capacity in (302, 0, 1_001):
        with pytest.raises(CapacityExceeded):
            await resize(services, place, sold.event, capacity)
    assert await whole_state(db, sold.event) == before
    await require_agreement(services.studio, sold.event)


async def test_places_do_not_become_more_than_the_event_has_room_for(
    services: Services, db: Database, place: Organization, sold: Seated
) -> None:
    """Opening what was closed is refused where the event says it is for fewer."""
    await resize(services, place, sold.event, 304)
    before = await whole_state(db, sold.event)
    with pytest.raises(SeatingInvalid) as refused:
        await save(services.studio, sold.event, sold.wanted())
    told: Any = refused.value.facts["errors"]
    assert [(one["path"], one["code"]) for one in told] == [("$", "capacity_exceeded")]
    assert await whole_state(db, sold.event) == before


async def test_a_draft_may_say_any_capacity(
    services: Services, db: Database, studio: Studio, place: Organization
) -> None:
    """It is looked at when it is published: nobody has bought anything."""
    made = await seated_event(db, studio, place)
    await resize(services, place, made.event, 10)
    with pytest.raises(DomainError):
        await publish(studio, made.event)
    assert await stored_places(db, made.event) == NOTHING
    await resize(services, place, made.event, 313)
    await publish(studio, made.event)
    await require_agreement(studio, made.event)


async def test_the_one_zone_follows_the_event(
    services: Services, db: Database, owner_conn: Connection, studio: Studio, place: Organization
) -> None:
    """Up and down, and to the venue's size when the event says nothing; never below what people have."""
    venue = await make_venue(db, place, max_capacity=800)
    event = await publish(studio, await make_event(db, place, venue, capacity=200))
    (zone,) = await zone_rows(db, event)
    for capacity, expected in ((500, 500), (100, 100), (None, 800), (300, 300)):
        await resize(services, place, event, capacity)
        assert await room_of(db, event) == expected
        await require_agreement(studio, event)
    await take_places(owner_conn, event, zone["zone_id"], held=20, sold=50)
    await resize(services, place, event, 70)
    assert await room_of(db, event) == 70
    before = await whole_state(db, event)
    with pytest.raises(SeatingInUse) as refused:
        await resize(services, place, event, 69)
    told: Any = refused.value.facts["zones"]
    assert [(one["room"], one["held"], one["sold"]) for one in told] == [(69, 20, 50)]
    for capacity in (0, 801):
        with pytest.raises(CapacityExceeded):
            await resize(services, place, event, capacity)
    assert await whole_state(db, event) == before
    assert (await event_now(db, event)).inventory_epoch == 1


async def test_an_event_for_nobody_is_opened(
    services: Services, db: Database, studio: Studio, place: Organization
) -> None:
    """Published without places, it has some as soon as it says so; then it does not go back."""
    event = await publish(studio, await make_event(db, place, capacity=0))
    await resize(services, place, event, 60)
    assert await room_of(db, event) == 60
    await require_agreement(studio, event)
    with pytest.raises(CapacityExceeded):
        await resize(services, place, event, 0)
    await unpublish(studio, event)
    await resize(services, place, event, 0)
    await publish(studio, event)
    assert await stored_places(db, event) == NOTHING


@pytest.mark.parametrize("status", ["published", "live", "postponed"])
async def test_a_venue_holds_what_its_events_offer(
    services: Services, db: Database, studio: Studio, place: Organization, status: str
) -> None:
    """With people standing where seats were it offers more than its hall has; as a draft it does not mind."""
    venue = await make_venue(db, place)
    crowd = ZoneOverride(zone_type=ZoneType.GA_STANDING, capacity=500)
    made = await seated_event(
        db, studio, place, venue=venue, overlay=Overlay(zone_overrides={"S": crowd}), status=status
    )
    other = await publish(studio, await make_event(db, place, venue, capacity=313))
    with pytest.raises(CapacityExceeded):
        await resize_venue(services, place, venue, 802)
    assert (await events.get_venue(db, call_of(place), venue.id)).max_capacity == 1_000
    await resize_venue(services, place, venue, 803)
    await require_agreement(studio, made.event)
    await require_agreement(studio, other)


async def test_a_venue_holds_an_event_that_says_nothing(
    services: Services, db: Database, studio: Studio, place: Organization
) -> None:
    """It sells as many places as the venue had when it was published; as a draft it does not mind."""
    venue = await make_venue(db, place, max_capacity=500)
    event = await publish(studio, await make_event(db, place, venue))
    with pytest.raises(CapacityExceeded):
        await resize_venue(services, place, venue, 499)
    assert await room_of(db, event) == 500
    await unpublish(studio, event)
    await resize_venue(services, place, venue, 400)
    await publish(studio, event)
    assert await room_of(db, event) == 400


async def test_an_event_with_a_hall_stays_at_its_venue(
    services: Services, db: Database, owner_conn: Connection, place: Organization, sold: Seated
) -> None:
    """The hall stands where it stands; an event without one goes, if there is room for what it has sold."""
    other = await make_venue(db, place, max_capacity=100)
    before = await whole_state(db, sold.event)

    async def go(event: Event) -> None:
        await usecases.change_venue(
            services.studio,
            services.catalogue,
            call_of(place),
            event.id,
            other.id,
            has_consent=True,
            reason="in a test",
            version=None,
        )

    with pytest.raises(LayoutOfOtherVenue):
        await go(sold.event)
    assert await whole_state(db, sold.event) == before
    event = await publish(services.studio, await make_event(db, place, sold.venue))
    (zone,) = await zone_rows(db, event)
    await take_places(owner_conn, event, zone["zone_id"], sold=101)
    with pytest.raises(SeatingInUse):
        await go(event)
    assert await room_of(db, event) == 1_000
    await take_places(owner_conn, event, zone["zone_id"], sold=100)
    await go(event)
    assert await room_of(db, event) == 100
    await require_agreement(services.studio, event)


async def test_sold_seats_do_not_change_what_is_offered(
    services: Services, db: Database, owner_conn: Connection, place: Organization, sold: Seated
) -> None:
    """The chain counts places, whoever has them."""
    await sell_seat(owner_conn, sold.event, 1)
    await resize(services, place, sold.event, 303)
    with pytest.raises(CapacityExceeded):
        await resize(services, place, sold.event, 302)
