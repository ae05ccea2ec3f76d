"""The places of an event: made when it is published, removed when it is not, rebuilt for another version."""

from dataclasses import replace
from typing import Any

import pytest

from tests.holds.expected import NOTHING, places_of, require_agreement, stored_places, versions_of, whole_state
from tests.make.accounts import make_organization
from tests.make.events import call_of, make_event, make_venue, soon
from tests.make.layouts import changed, encoded
from tests.make.seating import (
    active_pin,
    block_seat,
    event_layout,
    event_now,
    facts_of,
    hold_seat,
    move,
    next_pin,
    offered,
    publish,
    save,
    seat_rows,
    seated_event,
    sell_seat,
    take_places,
    unpublish,
    zone_rows,
)
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR, Status, Teller, Verb
from voelgoed.events.refusals import CapacityExceeded, EventChanged, EventMoveRefused, EventNotFound
from voelgoed.holds import inventory
from voelgoed.holds.inventory import Wanted
from voelgoed.holds.refusals import SeatingInUse, SeatingLocked
from voelgoed.ids import new_id
from voelgoed.seating import seat_ids, versions
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import LayoutId, Pin, VersionStatus
from voelgoed.seating.offer import SeatingInvalid
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.seating.refusals import LayoutNotActive, LayoutNotFound, LayoutOfOtherVenue
from voelgoed.seating.studio import Studio

LARGER = {"zones.0.rows.0.seats.4": {"number": 5, "x": 250, "y": 100}}
"""The small hall with one more seat."""


def larger() -> Any:
    return read_layout(encoded(changed(LARGER)))


@pytest.mark.req("LAY-17", "LAY-19", "LAY-20", "HYB-02")
async def test_publishing_makes_exactly_what_the_event_offers(
    db: Database, studio: Studio, place: Organization
) -> None:
    """Every seat and zone with its ids, those out of sale with the reason, each at version 1; one fact tells of it."""
    overlay = Overlay(
        blocked_seats=("S-A-2", "V-A-1"),
        disabled_zones=("V",),
        zone_overrides={"P": ZoneOverride(capacity=120)},
    )
    made = await seated_event(db, studio, place, overlay=overlay)
    by = Teller.of(call_of(place))
    event = await publish(studio, made.event, by=by)

    assert (event.status, event.inventory_epoch) == (Status.PUBLISHED, 1)
    planned = await inventory.plan(studio, place.id, event.id)
    assert await stored_places(db, event) == places_of(planned.offer)
    seats = await seat_rows(db, event)
    codes = [seat.code for _, _, seat in made.hall.layout.seats()]
    assert [row["ordinal"] for row in seats] == list(range(13))
    assert {codes[row["ordinal"]]: row["blocked_by"] for row in seats if row["status"] == "blocked"} == {
        "S-A-2": "layout",
        "V-A-1": "layout",
        "V-A-2": "zone",
        "V-A-3": "zone",
    }
    zones = {row["zone_code"]: row for row in await zone_rows(db, event)}
    assert {code: (row["capacity"], row["blocked"]) for code, row in zones.items()} == {
        "S": (10, 1),
        "V": (3, 3),
        "P": (120, 0),
    }
    assert [row["version"] for row in (*seats, *zones.values())] == [1] * 16
    (fact,) = await facts_of(db, event, "event_inventory_created")
    assert fact["data"] == {
        "event_id": str(event.id),
        "venue_id": str(event.venue_id),
        "actor_type": "owner",
        "layout_id": str(made.pin.layout_id),
        "layout_version": 1,
        "inventory_epoch": 1,
        "seats": 13,
        "zones": 3,
        "places": 129,
        "blocked": 4,
    }
    assert (fact["actor_id"], fact["request_id"]) == (by.actor_id, by.request_id)
    assert len(await facts_of(db, event, "event_status_changed")) == 1
    assert await facts_of(db, event, "seat_blocked", "seat_unblocked") == []


async def test_seats_have_the_ids_of_the_layout(db: Database, studio: Studio, place: Organization) -> None:
    """The same id in the layout's tables, in the event's, and made from the layout's id and a number."""
    made = await seated_event(db, studio, place, status="published")
    async with db.transaction(place.id) as conn:
        rows = await conn.fetch(
            "select ordinal, seat_id, serial from seats join layout_seats using (layout_id, seat_code)"
            " where layout_id = $1 and version = 1 order by ordinal",
            made.pin.layout_id,
        )
        zones = await conn.fetch(
            "select ordinal, zone_id from layout_zones where layout_id = $1 order by ordinal", made.pin.layout_id
        )
    found = await seat_rows(db, made.event)
    assert [(row["ordinal"], row["seat_id"]) for row in found] == [(row["ordinal"], row["seat_id"]) for row in rows]
    assert [row["seat_id"] for row in rows] == seat_ids.seat_ids(made.pin.layout_id, [row["serial"] for row in rows])
    assert [row["zone_id"] for row in await zone_rows(db, made.event)] == [row["zone_id"] for row in zones]


@pytest.mark.req("SEAT-25")
async def test_an_event_has_a_seat_once(db: Database, studio: Studio, place: Organization) -> None:
    """By ordinal, by id, and by zone, row and number."""
    made = await seated_event(db, studio, place, status="published")
    async with db.transaction(place.id) as conn:
        counted = await conn.fetchrow(
            "select count(*) as seats, count(distinct e.ordinal) as ordinals, count(distinct e.seat_id) as ids,"
            " count(distinct (s.zone_ordinal, s.row_ordinal, s.label)) as names"
            " from event_seats e join seats s on s.layout_id = $2 and s.version = $3 and s.ordinal = e.ordinal"
            " where e.event_id = $1",
            made.event.id,
            *made.pin,
        )
    assert tuple(counted or ()) == (13, 13, 13, 13)


@pytest.mark.req("LAY-33", "HYB-03")
@pytest.mark.parametrize(("capacity", "expected"), [(250, 250), (None, 700), (1, 1)])
async def test_an_event_without_a_layout_has_one_zone(
    db: Database, studio: Studio, place: Organization, capacity: int | None, expected: int
) -> None:
    """As large as the event says, or else as its venue; no seats, and nothing need be said of it before."""
    venue = await make_venue(db, place, max_capacity=700)
    event = await publish(studio, await make_event(db, place, venue, capacity=capacity))
    (zone,) = await zone_rows(db, event)
    assert (zone["zone_type"], zone["capacity"], zone["blocked"], zone["version"]) == ("ga_standing", expected, 0, 1)
    assert await seat_rows(db, event) == []
    assert event.inventory_epoch == 1
    (fact,) = await facts_of(db, event, "event_inventory_created")
    told = {name: fact["data"][name] for name in ("layout_id", "seats", "zones", "places")}
    assert told == {"layout_id": None, "seats": 0, "zones": 1, "places": expected}


async def test_an_event_for_nobody_has_no_zone(db: Database, studio: Studio, place: Organization) -> None:
    """Somebody may publish what is not to be booked at all."""
    event = await publish(studio, await make_event(db, place, capacity=0))
    assert (event.status, event.inventory_epoch) == (Status.PUBLISHED, 1)
    assert await stored_places(db, event) == NOTHING


async def test_a_price_of_a_zone_that_went_is_told(db: Database, studio: Studio, place: Organization) -> None:
    """An event for nobody keeps what was said of its one zone: it can be looked at, and is not published like that."""
    event = await make_event(db, place, capacity=100)
    planned = await inventory.plan(studio, place.id, event.id)
    overlay = Overlay(zone_overrides={"GA": ZoneOverride(capacity=50)})
    await save(studio, event, Wanted(pin=None, overrides=planned.offer.hall.written(overlay)))
    async with db.transaction(place.id) as conn:
        await conn.execute("update events set capacity = 0, version = version + 1 where id = $1", event.id)
    assert [fault.code for fault in (await inventory.plan(studio, place.id, event.id)).offer.faults] == ["zone_unknown"]
    with pytest.raises(SeatingInvalid):
        await publish(studio, event)
    assert await stored_places(db, event) == NOTHING


async def test_of_a_draft_nothing_is_stored(db: Database, studio: Studio, place: Organization) -> None:
    """What it would offer is worked out; there is nothing to be held."""
    made = await seated_event(db, studio, place)
    assert await stored_places(db, made.event) == NOTHING
    assert (await event_now(db, made.event)).inventory_epoch == 0


async def test_unpublishing_removes_untouched_places(db: Database, studio: Studio, place: Organization) -> None:
    """Published again they are there again, and a number says that they are others."""
    made = await seated_event(db, studio, place, status="published")
    event = await unpublish(studio, made.event)
    assert (event.status, event.inventory_epoch) == (Status.DRAFT, 1)
    assert await stored_places(db, event) == NOTHING
    event = await publish(studio, event)
    assert event.inventory_epoch == 2
    await require_agreement(studio, event)
    assert await versions_of(db, event) == ([1] * 13, [1] * 3)
    epochs = [fact["data"]["inventory_epoch"] for fact in await facts_of(db, event, "event_inventory_created")]
    assert epochs == [1, 2]


async def test_a_seat_that_staff_block_keeps_nobody_from_unpublishing(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization
) -> None:
    """Nobody has bought it."""
    made = await seated_event(db, studio, place, status="published")
    await block_seat(owner_conn, made.event, 3)
    await unpublish(studio, made.event)
    assert await stored_places(db, made.event) == NOTHING


async def test_unpublishing_is_refused_once_somebody_has_a_seat(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization
) -> None:
    """Whoever is in the way is named, and nothing has changed."""
    made = await seated_event(db, studio, place, status="published")
    await hold_seat(owner_conn, made.event, 1)
    await sell_seat(owner_conn, made.event, 4)
    before = await whole_state(db, made.event)
    with pytest.raises(SeatingInUse) as refused:
        await unpublish(studio, made.event)
    assert refused.value.facts == {
        "seats": [
            {
                "seat_id": str(made.hall.seat_id(1)),
                "zone": "Stalls",
                "row": "A",
                "seat_number": "2",
                "status": "held",
            },
            {
                "seat_id": str(made.hall.seat_id(4)),
                "zone": "Stalls",
                "row": "B",
                "seat_number": "1",
                "status": "sold",
            },
        ],
        "seat_count": 2,
        "zones": [],
    }
    assert await whole_state(db, made.event) == before


@pytest.mark.parametrize("taken", [{"held": 2}, {"sold": 1}, {"held": 2, "sold": 3}])
async def test_unpublishing_is_refused_once_somebody_has_a_place(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization, taken: dict[str, int]
) -> None:
    """The same where places are counted, with a layout and without one."""
    made = await seated_event(db, studio, place, status="published")
    plain = await publish(studio, await make_event(db, place, made.venue, capacity=90))
    (implicit,) = await zone_rows(db, plain)
    for event, zone_id in ((made.event, made.hall.zone_id("P")), (plain, implicit["zone_id"])):
        await take_places(owner_conn, event, zone_id, **taken)
        before = await whole_state(db, event)
        with pytest.raises(SeatingInUse) as refused:
            await unpublish(studio, event)
        zones: Any = refused.value.facts["zones"]
        (told,) = zones
        assert told["zone_id"] == str(zone_id)
        assert (told["held"], told["sold"], told["room"]) == (taken.get("held", 0), taken.get("sold", 0), 0)
        assert await whole_state(db, event) == before


async def test_of_many_taken_seats_some_are_named(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all are counted."""
    monkeypatch.setattr(inventory, "TAKEN_SHOWN_MAX", 2)
    made = await seated_event(db, studio, place, status="published")
    for ordinal in range(5):
        await sell_seat(owner_conn, made.event, ordinal)
    with pytest.raises(SeatingInUse) as refused:
        await unpublish(studio, made.event)
    told: Any = refused.value.facts
    assert (len(told["seats"]), told["seat_count"]) == (2, 5)


async def test_postponed_and_published_again_keeps_its_places(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization
) -> None:
    """Whoever holds or has bought something has it still."""
    made = await seated_event(db, studio, place, status="published")
    await sell_seat(owner_conn, made.event, 2)
    await hold_seat(owner_conn, made.event, 3)
    before = [tuple(row) for row in (*await seat_rows(db, made.event), *await zone_rows(db, made.event))]
    event = await move(studio, place, made.event, Verb.POSTPONE)
    event = await publish(studio, event)
    assert (event.status, event.inventory_epoch) == (Status.PUBLISHED, 1)
    assert [tuple(row) for row in (*await seat_rows(db, event), *await zone_rows(db, event))] == before
    assert len(await facts_of(db, event, "event_inventory_created")) == 1


@pytest.mark.parametrize("status", ["published", "live", "ended", "cancelled", "archived"])
async def test_what_the_lifecycle_refuses_makes_no_places(
    db: Database, studio: Studio, place: Organization, status: str
) -> None:
    """Publishing what is not a draft, nor postponed, changes nothing."""
    made = await seated_event(db, studio, place, status=status)
    before = await whole_state(db, made.event)
    with pytest.raises(EventMoveRefused):
        await publish(studio, made.event)
    assert await whole_state(db, made.event) == before


async def test_an_event_that_is_over_gets_no_places(db: Database, studio: Studio, place: Organization) -> None:
    """Refused before anything is written."""
    made = await seated_event(db, studio, place, start_at=soon(days=-2), end_at=soon(days=-1))
    before = await whole_state(db, made.event)
    with pytest.raises(EventMoveRefused):
        await publish(studio, made.event)
    assert await whole_state(db, made.event) == before


async def test_who_saw_an_older_event_publishes_nothing(db: Database, studio: Studio, place: Organization) -> None:
    """Nor unpublishes; and an event of another organization is not there."""
    made = await seated_event(db, studio, place)
    with pytest.raises(EventChanged):
        await publish(studio, made.event, version=made.event.version + 1)
    event = await publish(studio, made.event, version=made.event.version)
    with pytest.raises(EventChanged):
        await unpublish(studio, event, version=made.event.version)
    stranger = await make_organization(db)
    for verb in (publish, unpublish):
        with pytest.raises(EventNotFound):
            await verb(studio, replace(event, organization_id=stranger.id))
        with pytest.raises(EventNotFound):
            await verb(studio, replace(event, id=new_id()))
    await require_agreement(studio, event)


@pytest.mark.req("LAY-25")
async def test_only_the_active_version_is_chosen(db: Database, studio: Studio, place: Organization) -> None:
    """A draft, an archived version, one that is not there: refused, and nothing is saved."""
    venue = await make_venue(db, place)
    event = await make_event(db, place, venue)
    first = await active_pin(studio, venue)
    second = await next_pin(studio, place.id, first.layout_id, larger())
    third = await versions.create_version(studio, place.id, first.layout_id, larger(), by=OPERATOR)
    for number in (first.version, third.version):
        with pytest.raises(LayoutNotActive) as refused:
            await save(studio, event, Wanted(pin=Pin(first.layout_id, number), overrides={}))
        assert refused.value.facts["active_version"] == second.version
    for pin in (Pin(first.layout_id, 9), Pin(LayoutId(new_id()), 1)):
        with pytest.raises(LayoutNotFound):
            await save(studio, event, Wanted(pin=pin, overrides={}))
    async with db.transaction(place.id) as conn:
        assert await conn.fetchval("select count(*) from event_layouts where layout_id is not null") == 0
    await save(studio, event, Wanted(pin=second, overrides={}))
    assert (await event_layout(db, event)).pin == second


@pytest.mark.req("LAY-25")
async def test_a_draft_whose_version_was_replaced_is_not_published(
    db: Database, studio: Studio, place: Organization
) -> None:
    """It was the active one when it was chosen and is not any more; given the new one, it is published."""
    made = await seated_event(db, studio, place)
    second = await next_pin(studio, place.id, made.pin.layout_id, larger())
    before = await whole_state(db, made.event)
    with pytest.raises(LayoutNotActive):
        await publish(studio, made.event)
    assert await whole_state(db, made.event) == before
    await save(studio, made.event, Wanted(pin=second, overrides={}))
    event = await publish(studio, made.event)
    assert len(await seat_rows(db, event)) == 14
    await require_agreement(studio, event)


async def test_a_hall_of_another_venue_is_refused(db: Database, studio: Studio, place: Organization) -> None:
    """And one of another organization is not there."""
    event = await make_event(db, place)
    elsewhere = await active_pin(studio, await make_venue(db, place))
    with pytest.raises(LayoutOfOtherVenue):
        await save(studio, event, Wanted(pin=elsewhere, overrides={}))
    stranger = await make_organization(db)
    theirs = await active_pin(studio, await make_venue(db, stranger))
    with pytest.raises(LayoutNotFound):
        await save(studio, event, Wanted(pin=theirs, overrides={}))
    async with db.transaction(place.id) as conn:
        assert await conn.fetchval("select count(*) from event_layouts where event_id = $1", event.id) == 0


async def test_another_version_rebuilds_the_places_of_a_published_event(
    db: Database, studio: Studio, place: Organization
) -> None:
    """As long as nobody has any: a number says so, and a fact; seats that are in both keep their ids."""
    made = await seated_event(db, studio, place, status="published")
    old = {row["seat_id"] for row in await seat_rows(db, made.event)}
    second = await next_pin(studio, place.id, made.pin.layout_id, larger())
    await save(studio, made.event, Wanted(pin=second, overrides=made.hall.written(Overlay(blocked_seats=("S-A-1",)))))
    event = await require_agreement(studio, made.event)
    assert (event.status, event.inventory_epoch) == (Status.PUBLISHED, 2)
    seats = await seat_rows(db, event)
    assert len(seats) == 14
    assert old < {row["seat_id"] for row in seats}
    assert await versions_of(db, event) == ([1] * 14, [1] * 3)
    (told,) = (
        fact for fact in await facts_of(db, event, "event_seating_changed") if fact["data"]["layout_version"] == 2
    )
    assert (told["data"]["inventory_epoch"], told["data"]["seats"]) == (2, 14)
    layout_id = str(made.pin.layout_id)
    assert told["data"]["changes"]["layout"] == [[layout_id, 1], [layout_id, 2]]
    assert told["data"]["changes"]["blocked_seats"] == {"added": 1, "removed": 0}
    assert len(await facts_of(db, event, "event_layout_changed")) == 1


async def test_a_published_event_loses_its_layout_and_gets_another(
    db: Database, studio: Studio, place: Organization
) -> None:
    """From a hall to one zone without seats, and back."""
    made = await seated_event(db, studio, place, status="published", capacity=400)
    await save(studio, made.event, Wanted(pin=None, overrides={}))
    event = await require_agreement(studio, made.event)
    assert (event.inventory_epoch, await seat_rows(db, event)) == (2, [])
    assert [row["capacity"] for row in await zone_rows(db, event)] == [400]
    await save(studio, event, made.wanted())
    event = await require_agreement(studio, made.event)
    assert (event.inventory_epoch, len(await seat_rows(db, event))) == (3, 13)


@pytest.mark.req("LAY-27")
@pytest.mark.parametrize("how", ["held", "sold", "pool"])
async def test_another_version_is_refused_once_somebody_has_a_place(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization, how: str
) -> None:
    """The version is frozen, whoever is in the way is named, and nothing has changed."""
    made = await seated_event(db, studio, place, status="published")
    second = await next_pin(studio, place.id, made.pin.layout_id, larger())
    if how == "held":
        await hold_seat(owner_conn, made.event, 0)
    elif how == "sold":
        await sell_seat(owner_conn, made.event, 0)
    else:
        await take_places(owner_conn, made.event, made.hall.zone_id("P"), sold=1)
    before = await whole_state(db, made.event)
    for pin in (second, None):
        with pytest.raises(SeatingInUse) as refused:
            await save(studio, made.event, Wanted(pin=pin, overrides={}))
        told: Any = refused.value.facts
        assert (told["seat_count"], [one["name"] for one in told["zones"]]) == (
            (0, ["Pit"]) if how == "pool" else (1, [])
        )
    assert await whole_state(db, made.event) == before


@pytest.mark.req("LAY-28")
async def test_a_new_version_leaves_events_as_they_are(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization
) -> None:
    """Made and activated while the event sells: its version, its seats and what it may still change stay."""
    made = await seated_event(db, studio, place, status="published")
    await sell_seat(owner_conn, made.event, 5)
    before = await whole_state(db, made.event)
    await next_pin(studio, place.id, made.pin.layout_id, larger())
    after = await whole_state(db, made.event)
    assert after[:-1] == before[:-1]  # the journal tells of the version
    async with db.transaction(place.id) as conn:
        old = await versions.find(conn, (place.id, *made.pin))
    assert old.status is VersionStatus.ARCHIVED
    await save(studio, made.event, made.wanted(Overlay(blocked_seats=("S-A-1",))))
    assert (await event_layout(db, made.event)).pin == made.pin
    assert (await seat_rows(db, made.event))[0]["status"] == "blocked"


@pytest.mark.parametrize("status", ["ended", "cancelled", "archived"])
async def test_what_is_over_keeps_its_seating(db: Database, studio: Studio, place: Organization, status: str) -> None:
    """Nothing of it can be changed any more."""
    made = await seated_event(db, studio, place, status=status)
    before = await whole_state(db, made.event)
    with pytest.raises(SeatingLocked):
        await save(studio, made.event, made.wanted(Overlay(blocked_seats=("S-A-1",))))
    assert await whole_state(db, made.event) == before


async def test_publishing_is_refused_when_the_hall_has_more_places_than_the_event(
    db: Database, studio: Studio, place: Organization
) -> None:
    """The chain holds when it is saved, and again when the event is published."""
    made = await seated_event(db, studio, place, capacity=313)
    async with db.transaction(place.id) as conn:
        await conn.execute("update events set capacity = 312, version = version + 1 where id = $1", made.event.id)
    before = await whole_state(db, made.event)
    with pytest.raises((SeatingInvalid, CapacityExceeded)):
        await publish(studio, made.event)
    assert await whole_state(db, made.event) == before
    await save(studio, made.event, made.wanted(Overlay(blocked_seats=("S-A-1",))))
    await publish(studio, made.event)
    assert sum(zone.view.place_count for zone in (await offered(db, made.event)).values()) == 312


async def test_two_events_have_the_same_hall_and_places_of_their_own(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization
) -> None:
    """A seat sold of one is free in the other; one unpublished leaves the other as it is."""
    first = await seated_event(db, studio, place, status="published")
    second = await seated_event(db, studio, place, venue=first.venue, pin=first.pin, status="published")
    await sell_seat(owner_conn, first.event, 0)
    await take_places(owner_conn, first.event, first.hall.zone_id("P"), sold=300)
    await unpublish(studio, second.event)
    await publish(studio, second.event)
    await require_agreement(studio, second.event)
    assert (await seat_rows(db, first.event))[0]["status"] == "sold"
    assert (await offered(db, second.event))["P"].counts.available == 300
    await unpublish(studio, second.event)
    assert len(await seat_rows(db, first.event)) == 13
