"""What an event says of its hall is changed while it is on sale: its places follow exactly, or nothing changes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.holds.expected import require_agreement, require_ledger, stored_places, versions_of, whole_state
from tests.make.accounts import make_organization
from tests.make.events import call_of, make_event, make_venue
from tests.make.layouts import layouts
from tests.make.prices import make_rule
from tests.make.seating import (
    Seated,
    active_pin,
    block_seat,
    event_layout,
    event_now,
    facts_of,
    free_seat,
    hold_seat,
    offered,
    publish,
    save,
    seat_rows,
    seated_event,
    sell_seat,
    take_places,
    zone_rows,
)
from tests.seating.test_overlay import overlays
from voelgoed.accounts.model import Organization
from voelgoed.db import Conn, Connection, Database
from voelgoed.events.model import OPERATOR, Event, Status, Teller
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import inventory
from voelgoed.holds.inventory import Plan, Wanted
from voelgoed.holds.model import Availability, Counts
from voelgoed.holds.refusals import SeatingChanged, SeatingInUse
from voelgoed.ids import new_id
from voelgoed.seating import halls
from voelgoed.seating.model import AccessMode, Layout, Pin, ZoneType
from voelgoed.seating.offer import SeatingInvalid
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.seating.studio import Studio

STANDING: Final = ZoneOverride(zone_type=ZoneType.GA_STANDING, access_mode=AccessMode.PUBLIC)


@pytest.fixture
async def sold(db: Database, studio: Studio, place: Organization) -> Seated:
    """An event on sale, of which nobody has bought anything yet."""
    return await seated_event(db, studio, place, status="published")


async def said(db: Database, event: Event) -> list[tuple[str, int, int, str | None]]:
    """What the ledger tells of seats: kind, ordinal, version, reason."""
    ordinals = {row["seat_id"]: row["ordinal"] for row in await seat_rows(db, event)}
    facts = await facts_of(db, event, "seat_blocked", "seat_unblocked")
    return [(one["kind"], ordinals[one["seat_id"]], one["version"], one["data"].get("blocked_by")) for one in facts]


@pytest.mark.req("LAY-19")
async def test_seats_are_closed_and_opened(db: Database, studio: Studio, place: Organization, sold: Seated) -> None:
    """Each change counts the seat's version up by one and is told with it, by whom; no other seat is touched."""
    by = Teller.of(call_of(place))
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-1", "V-A-2"))), by=by)
    await require_agreement(studio, sold.event)
    assert await versions_of(db, sold.event) == ([2] + [1] * 10 + [2, 1], [2, 2, 1])
    assert sorted(await said(db, sold.event)) == [("seat_blocked", 0, 2, "layout"), ("seat_blocked", 11, 2, "layout")]

    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("V-A-2", "S-A-3"))), by=by)
    await require_agreement(studio, sold.event)
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-1",))), by=by)
    await require_agreement(studio, sold.event)
    await require_ledger(db, sold.event)
    assert await versions_of(db, sold.event) == ([4, 1, 3] + [1] * 8 + [3, 1], [2, 3, 1])
    assert [one[1:] for one in await said(db, sold.event) if one[1] == 0] == [
        (0, 2, "layout"),
        (0, 3, None),
        (0, 4, "layout"),
    ]
    facts = await facts_of(db, sold.event, "seat_blocked", "seat_unblocked")
    assert {(one["actor_id"], one["request_id"]) for one in facts} == {(by.actor_id, by.request_id)}
    assert (await event_now(db, sold.event)).inventory_epoch == 1


@pytest.mark.req("LAY-20")
async def test_a_zone_is_switched_off_and_on(db: Database, studio: Studio, sold: Seated) -> None:
    """Its seats are closed with it; one that was closed by itself stays so when the zone is on again."""
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-1",))))
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-1",), disabled_zones=("S", "P"))))
    await require_agreement(studio, sold.event)
    zones = await offered(db, sold.event)
    assert zones["S"].counts == Counts(available=0, held=0, sold=0, blocked=10)
    assert zones["P"].counts == Counts(available=0, held=0, sold=0, blocked=300)
    assert [zones[code].availability for code in "SVP"] == [
        Availability.CLOSED,
        Availability.AVAILABLE,
        Availability.CLOSED,
    ]
    assert [row["version"] for row in (await seat_rows(db, sold.event))[:2]] == [2, 2]
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-1",))))
    await require_agreement(studio, sold.event)
    await require_ledger(db, sold.event)
    assert [row["version"] for row in (await seat_rows(db, sold.event))[:2]] == [2, 3]


async def test_another_reason_changes_nothing_that_anybody_sees(db: Database, studio: Studio, sold: Seated) -> None:
    """Closed by itself before, with its zone after: the reason is noted, no version and no fact."""
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-1",), disabled_zones=("S",))))
    before = await said(db, sold.event)
    await save(studio, sold.event, sold.wanted(Overlay(disabled_zones=("S",))))
    await require_agreement(studio, sold.event)
    first = (await seat_rows(db, sold.event))[0]
    assert (first["blocked_by"], first["version"]) == ("zone", 2)
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-1",), disabled_zones=("S",))))
    first = (await seat_rows(db, sold.event))[0]
    assert (first["blocked_by"], first["version"]) == ("layout", 2)
    assert await said(db, sold.event) == before


@pytest.mark.req("LAY-22", "LAY-21")
async def test_a_zone_is_sold_otherwise(db: Database, studio: Studio, sold: Seated) -> None:
    """Seats become room to stand and seats again; access changes with it."""
    await save(studio, sold.event, sold.wanted(Overlay(zone_overrides={"V": replace(STANDING, capacity=25)})))
    await require_agreement(studio, sold.event)
    zone = (await offered(db, sold.event))["V"]
    assert (zone.view.zone_type, zone.view.access_mode, zone.view.membership_tier) == ("ga_standing", "public", None)
    assert zone.counts == Counts(available=25, held=0, sold=0, blocked=0)
    assert [row["blocked_by"] for row in (await seat_rows(db, sold.event))[10:]] == ["zone"] * 3
    await save(studio, sold.event, sold.wanted())
    await require_agreement(studio, sold.event)
    await require_ledger(db, sold.event)
    assert (await offered(db, sold.event))["V"].counts == Counts(available=3, held=0, sold=0, blocked=0)


async def test_room_to_stand_becomes_smaller_and_larger(
    db: Database, owner_conn: Connection, studio: Studio, sold: Seated
) -> None:
    """Down to what people have, and not by one place further; no seat is touched."""
    await take_places(owner_conn, sold.event, sold.hall.zone_id("P"), held=3, sold=40)
    await save(studio, sold.event, sold.wanted(Overlay(zone_overrides={"P": ZoneOverride(capacity=43)})))
    assert (await offered(db, sold.event))["P"].counts == Counts(available=0, held=3, sold=40, blocked=0)
    assert (await offered(db, sold.event))["P"].availability is Availability.HELD
    before = await whole_state(db, sold.event)
    with pytest.raises(SeatingInUse) as refused:
        await save(studio, sold.event, sold.wanted(Overlay(zone_overrides={"P": ZoneOverride(capacity=42)})))
    zone = {"zone_id": str(sold.hall.zone_id("P")), "name": "Pit", "room": 42, "held": 3, "sold": 40}
    assert refused.value.facts == {"seats": [], "seat_count": 0, "zones": [zone]}
    assert await whole_state(db, sold.event) == before
    await save(studio, sold.event, sold.wanted())
    assert (await offered(db, sold.event))["P"].counts == Counts(available=257, held=3, sold=40, blocked=0)
    assert (await versions_of(db, sold.event))[0] == [1] * 13


@pytest.mark.req("LAY-23")
async def test_prices_touch_no_seat(
    db: Database, owner_conn: Connection, studio: Studio, place: Organization, sold: Seated
) -> None:
    """Whoever holds or has bought something keeps it; only the zone with the other price is written."""
    await sell_seat(owner_conn, sold.event, 0)
    await hold_seat(owner_conn, sold.event, 1)
    dearer = await make_rule(db, place, amount_minor=25_000)
    before = [tuple(row) for row in await seat_rows(db, sold.event)]
    await save(studio, sold.event, sold.wanted(Overlay(pricing_zones=sold.prices | {"S": dearer.id})))
    assert [tuple(row) for row in await seat_rows(db, sold.event)] == before
    assert [(row["pricing_rule_id"], row["version"]) for row in await zone_rows(db, sold.event)] == [
        (dearer.id, 2),
        (sold.prices["V"], 1),
        (sold.prices["P"], 1),
    ]
    assert await said(db, sold.event) == []


async def test_who_may_book_touches_no_seat(db: Database, owner_conn: Connection, studio: Studio, sold: Seated) -> None:
    """The same for access: what is sold is sold."""
    await sell_seat(owner_conn, sold.event, 10)
    members = ZoneOverride(access_mode=AccessMode.ROLE_BASED, allowed_roles=("staff",))
    await save(studio, sold.event, sold.wanted(Overlay(zone_overrides={"V": members, "S": members})))
    zones = await offered(db, sold.event)
    assert [zones[code].view.allowed_roles for code in "SVP"] == [("staff",), ("staff",), ()]
    assert await said(db, sold.event) == []
    assert (await seat_rows(db, sold.event))[10]["status"] == "sold"


async def test_the_same_again_is_no_change(db: Database, studio: Studio, sold: Seated) -> None:
    """Nothing is counted and nothing told."""
    wanted = sold.wanted(Overlay(blocked_seats=("S-A-2",), disabled_zones=("V",)))
    await save(studio, sold.event, wanted)
    before = await whole_state(db, sold.event)
    await save(studio, sold.event, wanted)
    assert await whole_state(db, sold.event) == before


async def test_a_save_is_told_once(db: Database, studio: Studio, sold: Seated) -> None:
    """With what the event offers by it."""
    await save(studio, sold.event, sold.wanted(Overlay(blocked_seats=("S-A-2",), disabled_zones=("P",))))
    *_, told = await facts_of(db, sold.event, "event_seating_changed")
    about = {name: told["data"][name] for name in ("seating_version", "inventory_epoch", "places", "blocked", "seats")}
    assert about == {"seating_version": 2, "inventory_epoch": 1, "places": 12, "blocked": 301, "seats": 13}


@pytest.mark.parametrize("status", ["live", "postponed"])
async def test_as_long_as_it_is_not_over(db: Database, studio: Studio, place: Organization, status: str) -> None:
    """A running event closes seats as well, and one that waits for a date."""
    made = await seated_event(db, studio, place, status=status)
    await save(studio, made.event, made.wanted(Overlay(blocked_seats=("S-A-2",))))
    event = await require_agreement(studio, made.event)
    assert event.status == status
    assert (await seat_rows(db, event))[1]["status"] == "blocked"


FINE: Final = Overlay(blocked_seats=("S-A-1",), zone_overrides={"P": ZoneOverride(capacity=200)})
"""What could be done, and must not be when something beside it cannot."""


@pytest.mark.parametrize(
    ("overlay", "taken"),
    [
        (replace(FINE, blocked_seats=("S-A-1", "S-A-2")), ["S-A-2"]),
        (replace(FINE, blocked_seats=("S-A-2", "S-B-6", "V-A-1")), ["S-A-2", "S-B-6", "V-A-1"]),
        (replace(FINE, disabled_zones=("S",)), ["S-A-2", "S-B-6"]),
        (replace(FINE, disabled_zones=("V",)), ["V-A-1"]),
        (replace(FINE, zone_overrides={"V": STANDING}), ["V-A-1"]),
    ],
)
async def test_what_people_have_is_not_taken_away(
    db: Database, owner_conn: Connection, studio: Studio, sold: Seated, overlay: Overlay, taken: list[str]
) -> None:
    """Seats that are held or sold are named, and nothing at all has changed."""
    for code, take in (("S-A-2", hold_seat), ("S-B-6", sell_seat), ("V-A-1", sell_seat)):
        await take(owner_conn, sold.event, sold.ordinal(code))
    before = await whole_state(db, sold.event)
    with pytest.raises(SeatingInUse) as refused:
        await save(studio, sold.event, sold.wanted(overlay))
    told: Any = refused.value.facts
    assert [one["seat_id"] for one in told["seats"]] == [str(sold.hall.seat_id(sold.ordinal(code))) for code in taken]
    assert (told["seat_count"], told["zones"]) == (len(taken), [])
    assert await whole_state(db, sold.event) == before


@pytest.mark.parametrize(
    ("overlay", "room"),
    [
        (replace(FINE, disabled_zones=("P",)), 0),
        (replace(FINE, zone_overrides={"P": ZoneOverride(zone_type=ZoneType.GA_SEATED)}), 0),
        (replace(FINE, zone_overrides={"P": ZoneOverride(capacity=4)}), 4),
    ],
)
async def test_nor_are_places_that_are_counted(
    db: Database, owner_conn: Connection, studio: Studio, sold: Seated, overlay: Overlay, room: int
) -> None:
    """Whoever bought room to stand does not find a chair, nor nothing."""
    await take_places(owner_conn, sold.event, sold.hall.zone_id("P"), held=2, sold=3)
    before = await whole_state(db, sold.event)
    with pytest.raises(SeatingInUse) as refused:
        await save(studio, sold.event, sold.wanted(overlay))
    told: Any = refused.value.facts
    assert [(one["name"], one["room"], one["held"], one["sold"]) for one in told["zones"]] == [("Pit", room, 2, 3)]
    assert await whole_state(db, sold.event) == before


async def test_seats_sold_as_room_to_stand_do_not_become_seats_again(
    db: Database, owner_conn: Connection, studio: Studio, sold: Seated
) -> None:
    """As long as somebody has one of the places."""
    await save(studio, sold.event, sold.wanted(Overlay(zone_overrides={"V": STANDING})))
    await take_places(owner_conn, sold.event, sold.hall.zone_id("V"), sold=1)
    before = await whole_state(db, sold.event)
    with pytest.raises(SeatingInUse) as refused:
        await save(studio, sold.event, sold.wanted())
    told: Any = refused.value.facts
    assert [(one["name"], one["sold"]) for one in told["zones"]] == [("Members", 1)]
    assert await whole_state(db, sold.event) == before
    await take_places(owner_conn, sold.event, sold.hall.zone_id("V"))
    await save(studio, sold.event, sold.wanted())
    await require_agreement(studio, sold.event)


async def test_a_seat_that_came_back_can_be_closed(
    db: Database, owner_conn: Connection, studio: Studio, sold: Seated
) -> None:
    """What somebody had once is nobody's now."""
    await sell_seat(owner_conn, sold.event, 0)
    with pytest.raises(SeatingInUse):
        await save(studio, sold.event, sold.wanted(FINE))
    await free_seat(owner_conn, sold.event, 0)
    await save(studio, sold.event, sold.wanted(FINE))
    assert (await seat_rows(db, sold.event))[0]["version"] == 4


async def test_what_staff_blocked_stays_theirs(
    db: Database, owner_conn: Connection, studio: Studio, sold: Seated
) -> None:
    """Whatever the organiser says of the seat and its zone: not closed twice, not opened, not counted, not told."""
    await block_seat(owner_conn, sold.event, 1)
    before = tuple((await seat_rows(db, sold.event))[1])
    for overlay in (
        Overlay(blocked_seats=("S-A-2", "S-A-3")),
        Overlay(),
        Overlay(disabled_zones=("S",)),
        Overlay(zone_overrides={"S": STANDING}),
        Overlay(blocked_seats=("S-A-2",), disabled_zones=("S",)),
        Overlay(),
    ):
        await save(studio, sold.event, sold.wanted(overlay))
        assert tuple((await seat_rows(db, sold.event))[1]) == before
    assert {one[1] for one in await said(db, sold.event)} == {0, *range(2, 10)}
    assert (await offered(db, sold.event))["S"].counts == Counts(available=9, held=0, sold=0, blocked=1)


async def test_who_saw_an_older_word_changes_nothing(db: Database, studio: Studio, sold: Seated) -> None:
    """The number they saw must be the one there is; an event of another organization is not there."""
    await save(studio, sold.event, sold.wanted(FINE), seen=1)
    before = await whole_state(db, sold.event)
    for seen in (0, 1, 3):
        with pytest.raises(SeatingChanged) as refused:
            await save(studio, sold.event, sold.wanted(), seen=seen)
        assert refused.value.facts == {"version": 2}
    stranger = await make_organization(db)
    for event in (replace(sold.event, organization_id=stranger.id), replace(sold.event, id=new_id())):
        with pytest.raises(EventNotFound):
            await save(studio, event, Wanted(pin=None, overrides={}))
    assert await whole_state(db, sold.event) == before


async def test_a_price_that_is_not_there_is_refused(
    db: Database, studio: Studio, place: Organization, sold: Seated
) -> None:
    """Nor one of another organization, nor one in a second currency; nothing has changed."""
    stranger = await make_organization(db)
    dollars = await make_rule(db, place, currency="USD")
    before = await whole_state(db, sold.event)
    for rule_id in (new_id(), (await make_rule(db, stranger)).id, dollars.id):
        overlay = replace(FINE, pricing_zones=sold.prices | {"V": rule_id})
        with pytest.raises(SeatingInvalid) as refused:
            await save(studio, sold.event, sold.wanted(overlay))
        told: Any = refused.value.facts["errors"]
        assert [one["code"] for one in told] == ["price_refused"]
    assert await whole_state(db, sold.event) == before


async def unchecked(_conn: Conn, _planned: Plan) -> None:
    """Prices are not what this is about."""


async def say(studio: Studio, event: Event, pin: Pin, overlay: Overlay) -> None:
    hall = await halls.load_hall(studio, event.organization_id, pin)
    wanted = Wanted(pin=pin, overrides=hall.written(overlay))
    await inventory.save(studio, event.organization_id, event.id, wanted, by=OPERATOR, seen=None, check=unchecked)


WORDS = layouts().flatmap(
    lambda layout: st.tuples(st.just(layout), st.lists(overlays(layout), min_size=1, max_size=4), overlays(layout))
)


@pytest.fixture(scope="module")
async def anywhere(db: Database) -> Organization:
    return await make_organization(db)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=WORDS)
async def test_however_it_came_about_the_places_are_those_of_the_last_word(
    db: Database, studio: Studio, anywhere: Organization, said: tuple[Layout, Sequence[Overlay], Overlay]
) -> None:
    """An event that said one thing after another has the places of one that said only the last of it."""
    layout, words, first = said
    venue = await make_venue(db, anywhere, max_capacity=100_000)
    pin = await active_pin(studio, venue, layout)
    event, fresh = [await make_event(db, anywhere, venue) for _ in range(2)]
    await say(studio, event, pin, first)
    await publish(studio, event)
    for word in words:
        await say(studio, event, pin, word)
    await say(studio, fresh, pin, words[-1])
    await publish(studio, fresh)
    assert await stored_places(db, event) == await stored_places(db, fresh)
    assert (await event_layout(db, event)).overrides == (await event_layout(db, fresh)).overrides
    assert (await require_agreement(studio, event)).status is Status.PUBLISHED
    await require_ledger(db, event)
