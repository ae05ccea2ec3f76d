"""What events offer, over HTTP: to the public, to their people, and as an organiser changes it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import asyncpg
import httpx2
import pytest

from tests.make.accounts import Person, make_person
from tests.make.events import PATHS, make_event, make_venue, soon
from tests.make.layouts import changed, small_layout
from tests.make.prices import make_rule
from tests.make.seating import (
    Seated,
    active_pin,
    block_seat,
    hold_seat,
    move,
    next_pin,
    seated_event,
    sell_seat,
    take_places,
)
from tests.make.web import Site
from tests.realtime.test_feed import watching
from voelgoed.accounts.model import Role
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR, Venue, Verb
from voelgoed.holds import inventory
from voelgoed.holds.inventory import Plan
from voelgoed.http.routes.seating import OVERLAY_BYTES_MAX
from voelgoed.ids import new_id
from voelgoed.paging import encode
from voelgoed.seating import versions
from voelgoed.seating.model import Pin
from voelgoed.seating.policy import FIELDS
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services

EVENTS = "/api/admin/events"
SHOWN = ("published", "live", "postponed")
HYBRID = {
    "zones": [
        {
            "code": "R",
            "name": "Reserved",
            "zone_type": "reserved_seating",
            "rows": [{"label": "A", "seats": {"count": 2, "x": [0, 50], "y": [0, 0]}}],
        },
        {
            "code": "M",
            "name": "Members",
            "zone_type": "vip_reserved",
            "access_mode": "membership_tier",
            "membership_tier": "gold",
            "rows": [{"label": "A", "seats": {"count": 2, "x": [0, 50], "y": [100, 100]}}],
        },
        {"code": "G", "name": "Benches", "zone_type": "ga_seated", "capacity": 30},
        {
            "code": "C",
            "name": "Crew",
            "zone_type": "ga_standing",
            "capacity": 20,
            "access_mode": "role_based",
            "allowed_roles": ["staff", "owner"],
        },
        {
            "code": "W",
            "name": "Guests",
            "zone_type": "vip_standing",
            "capacity": 5,
            "access_mode": "whitelist",
        },
    ]
}
"""A zone of each type, and of each kind of access."""


@pytest.fixture
async def owner(db: Database) -> Person:
    return await make_person(db, role=Role.OWNER)


@pytest.fixture
async def venue(db: Database, owner: Person) -> Venue:
    return await make_venue(db, owner.organization, max_capacity=1_000)


@pytest.fixture
def studio(services: Services) -> Studio:
    return services.studio


@pytest.fixture
async def draft(db: Database, studio: Studio, owner: Person, venue: Venue) -> Seated:
    """An event in the small hall, of which nobody knows yet."""
    return await seated_event(db, studio, owner.organization, venue=venue)


@pytest.fixture
async def shown(db: Database, studio: Studio, owner: Person, venue: Venue) -> Seated:
    """The same, and everybody knows of it."""
    return await seated_event(db, studio, owner.organization, venue=venue, status="published")


async def ask(
    site: Site, person: Person | None, method: str, path: str, asked: object = None, **headers: str
) -> httpx2.Response:
    """Ask as a person, or as nobody; a text is sent as it is."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = asked if isinstance(asked, str | None) else json.dumps(asked)
    proof = person.headers if person else {}
    return await site.client.request(
        method, path, headers={**proof, "content-type": "application/json", **named}, content=content
    )


async def read(site: Site, person: Person | None, path: str) -> Any:
    answer = await ask(site, person, "GET", path)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def said(seated: Seated, **overrides: object) -> dict[str, Any]:
    """A body that keeps the layout, and says of it this and nothing else."""
    return {"layout_id": str(seated.pin.layout_id), "layout_version": seated.pin.version, "overrides": overrides}


def new_event(venue: Venue, **fields: object) -> dict[str, Any]:
    known = {"venue_id": str(venue.id), "name": "Seated", "slug": f"seated-{new_id().hex}"}
    return {**known, "start_at": soon(days=1).isoformat(), "end_at": soon(days=2).isoformat(), **fields}


def seating_of(seated: Seated) -> str:
    return f"{EVENTS}/{seated.event.id}/seating"


def zone_id(seated: Seated, code: str) -> str:
    return str(seated.hall.zone_id(code))


def seat_id(seated: Seated, code: str) -> str:
    return str(seated.hall.seat_id(seated.ordinal(code)))


def by_code(zones: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {zone["code"]: zone for zone in zones}


async def state(db: Database, seated: Seated) -> list[list[str]]:
    """Everything there is of an event and its places, and how much was told of it."""
    tables = {"events": "id", "event_layouts": "event_id", "event_seats": "event_id", "event_zones": "event_id"}
    async with db.transaction(seated.organization_id) as conn:
        found = [
            [row[0] for row in await conn.fetch(f"select t::text from {table} t where {key} = $1", seated.event.id)]
            for table, key in tables.items()
        ]
        told = await conn.fetch("select kind from journal where event_id = $1 order by seq", seated.event.id)
    return [sorted(rows) for rows in found] + [[row["kind"] for row in told]]


async def all_seats(site: Site, person: Person | None, seated: Seated, query: str = "limit=200") -> list[Any]:
    """Every seat that a list has, page by page."""
    path, found = f"/api/events/{seated.event.id}/seats?{query}", []
    cursor = ""
    while True:
        answer = await ask(site, person, "GET", path + cursor)
        assert answer.status_code == 200, answer.text
        found += answer.json()["data"]
        if answer.json()["next_cursor"] is None:
            return found
        assert answer.json()["data"], "an empty page has no next one"
        cursor = f"&cursor={answer.json()['next_cursor']}"


@pytest.mark.parametrize("status", PATHS)
async def test_everybody_sees_what_is_shown_and_its_people_the_rest(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue, status: str
) -> None:
    """What is not shown is, to all others, what never was: in the same words."""
    seated = await seated_event(db, studio, owner.organization, venue=venue, status=status)
    place = owner.organization
    crew: list[Person | None] = [
        owner,
        *[await make_person(db, place, role) for role in (Role.ADMIN, Role.STAFF, Role.SCANNER)],
    ]
    others: list[Person | None] = [
        None,
        await make_person(db, place, Role.CUSTOMER),
        await make_person(db, place, is_guest=True),
        await make_person(db, role=Role.OWNER),
        await make_person(db, platform=Role.SUPER_ADMIN),
    ]
    for path in ("/layout", "/seats"):
        for person in crew:
            assert (await ask(site, person, "GET", f"/api/events/{seated.event.id}{path}")).status_code == 200
        for person in others:
            answer = await ask(site, person, "GET", f"/api/events/{seated.event.id}{path}")
            if status in SHOWN:
                assert answer.status_code == 200, person
                continue
            absent = await ask(site, person, "GET", f"/api/events/{new_id()}{path}")
            assert refusal(answer) == refusal(absent) == (404, "event_not_found")
            assert answer.json() | {"request_id": ""} == absent.json() | {"request_id": ""}
    for person in others[1:]:
        for method, body in (("GET", None), ("PUT", said(seated))):
            answer = await ask(site, person, method, seating_of(seated), body)
            is_crew_elsewhere = person is not None and person.role is Role.OWNER
            assert answer.status_code == (404 if is_crew_elsewhere else 403)


async def test_a_closed_organization_shows_nothing(
    site: Site, db: Database, shown: Seated, owner: Person, studio: Studio
) -> None:
    """Neither the offer, nor the seats, nor where they are; within a second of being closed."""
    platform = await make_person(db, platform=Role.SUPER_ADMIN)
    at = f"/api/platform/orgs/{owner.organization.id}"
    closed = await site.client.post(f"{at}/suspend", headers=platform.headers, json={"reason": "unpaid"})
    assert closed.status_code == 200, closed.text
    for path in (f"/api/events/{shown.event.id}/layout", f"/api/events/{shown.event.id}/seats"):
        assert refusal(await ask(site, None, "GET", path)) == (404, "event_not_found")
    drawing = f"/api/layouts/{shown.pin.layout_id}/v1/geometry"
    assert refusal(await ask(site, None, "GET", drawing)) == (404, "layout_not_found")
    await site.client.post(f"{at}/resume", headers=platform.headers, json={"reason": "paid"})
    assert (await ask(site, None, "GET", drawing)).status_code == 200


async def test_a_drawing_is_for_everybody_once_an_event_on_show_has_it(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue, draft: Seated
) -> None:
    """Exactly the version that it has; every other is for the organization's own people."""
    later = await next_pin(studio, owner.organization.id, draft.pin.layout_id, small_layout({"name": "Later"}))
    at = f"/api/layouts/{draft.pin.layout_id}"
    crew: list[Person | None] = [await make_person(db, owner.organization, role) for role in (Role.STAFF, Role.SCANNER)]
    others: list[Person | None] = [
        None,
        await make_person(db, owner.organization),
        await make_person(db, role=Role.OWNER),
        await make_person(db, platform=Role.SUPER_ADMIN),
    ]
    for person in crew:
        for number in (1, 2):
            assert (await ask(site, person, "GET", f"{at}/v{number}/geometry")).status_code == 200
    for person in others:
        for number in (1, 2, 3):
            answer = await ask(site, person, "GET", f"{at}/v{number}/geometry")
            assert refusal(answer) == (404, "layout_not_found")
    await seated_event(db, studio, owner.organization, venue=venue, pin=later, status="published")
    for person in others:
        assert (await ask(site, person, "GET", f"{at}/v2/geometry")).status_code == 200
        assert refusal(await ask(site, person, "GET", f"{at}/v1/geometry")) == (404, "layout_not_found")


@pytest.mark.req("ZON-01", "ZON-03", "ZON-11")
async def test_the_offer_in_full(site: Site, shown: Seated) -> None:
    """Every field of it: the layout, each zone with what is left and what it costs, the sums, what a buyer may."""
    offer = await read(site, None, f"/api/events/{shown.event.id}/layout")
    price = {"amount_minor": 10_000, "currency": "ZAR"}
    zones = offer.pop("zones")
    assert offer == {
        "event_id": str(shown.event.id),
        "status": "published",
        "inventory_epoch": 1,
        "layout": {
            "layout_id": str(shown.pin.layout_id),
            "layout_version": 1,
            "name": "Small hall",
            "status": "active",
            "seat_count": 13,
            "geometry_url": f"/api/layouts/{shown.pin.layout_id}/v1/geometry",
        },
        "counts": {"capacity": 313, "available": 313, "held": 0, "sold": 0, "blocked": 0, "attendance": 0},
        "from_price": price,
        "booking": {"max_seats_per_booking": 10, "hold_minutes": 10},
    }
    assert zones[0] == {
        "zone_id": zone_id(shown, "S"),
        "code": "S",
        "name": "Stalls",
        "zone_type": "reserved_seating",
        "place": "reserved",
        "access_mode": "public",
        "membership_tier": None,
        "allowed_roles": [],
        "is_enabled": True,
        "capacity": 10,
        "available": 10,
        "held": 0,
        "sold": 0,
        "blocked": 0,
        "availability": "available",
        "pricing_rule_id": str(shown.prices["S"]),
        "prices": [{"category": name, "price": price} for name in ("standard", "wheelchair", "companion")],
        "from_price": price,
    }
    assert [(zone["code"], zone["zone_id"], zone["capacity"]) for zone in zones] == [
        ("S", zone_id(shown, "S"), 10), ("V", zone_id(shown, "V"), 3), ("P", zone_id(shown, "P"), 300),
    ]  # fmt: skip
    geometry = (await ask(site, None, "GET", offer["layout"]["geometry_url"])).status_code
    assert geometry == 200


@pytest.mark.req("ZON-02", "ZON-05", "ZON-06", "ZON-07")
async def test_every_type_and_every_access_is_shown(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue
) -> None:
    """Draft and published alike; a tier only where it is looked at, and roles likewise."""
    seated = await seated_event(db, studio, owner.organization, small_layout(changed(HYBRID, {})), venue=venue)
    path = f"/api/events/{seated.event.id}/layout"
    wanted = [
        ("R", "reserved_seating", "reserved", 2, "public", None, []),
        ("M", "vip_reserved", "reserved", 2, "membership_tier", "gold", []),
        ("G", "ga_seated", "ga_seated", 30, "public", None, []),
        ("C", "ga_standing", "standing", 20, "role_based", None, ["staff", "owner"]),
        ("W", "vip_standing", "standing", 5, "whitelist", None, []),
    ]
    fields = ("code", "zone_type", "place", "capacity", "access_mode", "membership_tier", "allowed_roles")
    for _ in range(2):
        offer = await read(site, owner, path)
        assert [tuple(zone[name] for name in fields) for zone in offer["zones"]] == wanted
        await ask(site, owner, "POST", f"{EVENTS}/{seated.event.id}/publish", {})
    assert (await read(site, None, path))["status"] == "published"
    assert (await read(site, owner, seating_of(seated)))["totals"] == {
        "reserved": 4, "ga_seated": 30, "standing": 25, "blocked": 0, "total": 59,
    }  # fmt: skip


@pytest.mark.req("ZON-08", "ZON-09", "ZON-10")
async def test_a_zone_belongs_to_one_layout_of_one_organization(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue, owner_conn: Connection
) -> None:
    """It is the same zone in the layout, with what is noted of it, and in the event; without either it is none."""
    noted = {"rows": 2, "numbering": "odd_even", "accessible": ["ramp"]}
    seated = await seated_event(db, studio, owner.organization, small_layout({"zones.0.metadata": noted}), venue=venue)
    layout = await read(site, owner, f"/api/admin/layouts/{seated.pin.layout_id}/versions/1")
    offer = await read(site, owner, f"/api/events/{seated.event.id}/layout")
    shared = ("zone_id", "code", "name", "zone_type", "capacity", "access_mode", "membership_tier", "allowed_roles")
    assert [[zone[name] for name in shared] for zone in layout["zones"]] == [
        [zone[name] for name in shared] for zone in offer["zones"]
    ]
    assert layout["zones"][0]["metadata"] == noted
    times = {(zone["created_at"], zone["updated_at"]) for zone in layout["zones"]}
    assert len(times) == 1  # all with their version, and never again
    assert times.pop()[0] <= layout["updated_at"]
    assert (offer["layout"]["layout_id"], layout["venue_id"]) == (layout["layout_id"], str(venue.id))
    for field in ("organization_id", "layout_id"):
        with pytest.raises(asyncpg.NotNullViolationError):
            async with owner_conn.transaction():
                await owner_conn.execute("select set_config('app.scope', 'system', true)")
                await owner_conn.execute("alter table layout_zones disable trigger user")
                await owner_conn.execute(f"update layout_zones set {field} = null")


@pytest.mark.req("ZON-12", "ZON-13", "ZON-14", "SEAT-25")
async def test_the_seats_in_full(site: Site, db: Database, shown: Seated, owner: Person) -> None:
    """Those of the plan, in its order, with its ids and words; places without a seat are not among them."""
    seats = await all_seats(site, None, shown)
    price = {"amount_minor": 10_000, "currency": "ZAR"}
    assert seats[4] == {
        "seat_id": seat_id(shown, "S-B-1"),
        "ordinal": 4,
        "zone_id": zone_id(shown, "S"),
        "block_name": "Stalls",
        "row": "B",
        "seat_number": "1",
        "category": "wheelchair",
        "status": "available",
        "price": price,
    }
    assert [seat["ordinal"] for seat in seats] == list(range(13))
    assert [seat["seat_id"] for seat in seats] == [str(shown.hall.seat_id(ordinal)) for ordinal in range(13)]
    assert {seat["zone_id"] for seat in seats} == {zone_id(shown, "S"), zone_id(shown, "V")}
    named = [(seat["zone_id"], seat["row"], seat["seat_number"]) for seat in seats]
    assert len(set(named)) == 13
    async with db.transaction(owner.organization.id) as conn:
        stored = await conn.fetch("select seat_id::text, ordinal from seats order by ordinal")
    assert [(seat["seat_id"], seat["ordinal"]) for seat in seats] == [tuple(row) for row in stored]


async def test_the_list_of_seats_goes_on_by_its_cursor(
    site: Site, shown: Seated, owner_conn: Connection, owner: Person, draft: Seated
) -> None:
    """Each seat once, however long the pages are; of a draft too; also with a filter."""
    for seated, person in ((shown, None), (draft, owner)):
        whole = await all_seats(site, person, seated)
        for limit in (1, 2, 5, 12, 13, 14):
            assert await all_seats(site, person, seated, f"limit={limit}") == whole
    for ordinal in (0, 3, 11):
        await hold_seat(owner_conn, shown.event, ordinal)
    found = await all_seats(site, None, shown, "limit=1&status=held")
    assert [seat["ordinal"] for seat in found] == [0, 3, 11]
    found = await all_seats(site, None, shown, f"limit=2&zone_id={zone_id(shown, 'V')}")
    assert [seat["ordinal"] for seat in found] == [10, 11, 12]


async def test_the_seats_are_filtered(site: Site, shown: Seated, owner_conn: Connection) -> None:
    """By status and by zone; a hold that has lapsed holds nothing, whoever has noticed."""
    await hold_seat(owner_conn, shown.event, 0)
    await hold_seat(owner_conn, shown.event, 1, minutes=-1)
    await sell_seat(owner_conn, shown.event, 2)
    await block_seat(owner_conn, shown.event, 11)

    async def found(query: str) -> list[int]:
        return [seat["ordinal"] for seat in await all_seats(site, None, shown, query)]

    assert await found("status=held") == [0]
    assert await found("status=sold") == [2]
    assert await found("status=blocked") == [11]
    assert await found("status=available") == [1, 3, 4, 5, 6, 7, 8, 9, 10, 12]
    assert await found(f"zone_id={zone_id(shown, 'V')}&status=available") == [10, 12]
    assert await found(f"zone_id={zone_id(shown, 'P')}") == []
    assert await found(f"zone_id={new_id()}") == []
    seats = await all_seats(site, None, shown)
    assert [seat["status"] for seat in seats[:4]] == ["held", "available", "sold", "available"]
    offer = await read(site, None, f"/api/events/{shown.event.id}/layout")
    stalls = by_code(offer["zones"])["S"]
    assert {name: stalls[name] for name in ("capacity", "available", "held", "sold", "blocked")} == {
        "capacity": 10, "available": 8, "held": 1, "sold": 1, "blocked": 0,
    }  # fmt: skip
    assert offer["counts"] == {
        "capacity": 313, "available": 310, "held": 1, "sold": 1, "blocked": 1, "attendance": 1,
    }  # fmt: skip


async def test_a_list_that_nobody_can_give_is_refused(site: Site, shown: Seated) -> None:
    """Wrong filters and limits, and cursors that no list gave out; one beyond the end is the end."""
    path = f"/api/events/{shown.event.id}/seats"
    for wrong in ("status=gone", "status=", "zone_id=1", "limit=0", "limit=201", "limit=-1", "limit=x", "cursor="):
        assert refusal(await ask(site, None, "GET", f"{path}?{wrong}")) == (400, "invalid_request"), wrong
    for cursor in ("x", "!!", "AAAA", encode(b"\xff" * 4), encode(b"\x80\0\0\0"), encode(b"\0" * 5), "a" * 200):
        assert refusal(await ask(site, None, "GET", f"{path}?cursor={cursor}")) == (400, "cursor_invalid"), cursor
    beyond = await ask(site, None, "GET", f"{path}?cursor={encode(bytes.fromhex('7fffffff'))}")
    assert beyond.json() == {"data": [], "next_cursor": None}
    assert refusal(await ask(site, None, "GET", "/api/events/x/seats")) in [
        (404, "not_found"),
        (400, "invalid_request"),
    ]


@pytest.mark.req("ZON-11")
async def test_what_is_left_of_a_zone_is_said_in_a_word(site: Site, shown: Seated, owner_conn: Connection) -> None:
    """Something, nothing at the moment, nothing any more: by what is held and sold just now."""
    pit = shown.hall.zone_id("P")

    async def word(**taken: int) -> str:
        await take_places(owner_conn, shown.event, pit, **taken)
        found = by_code((await read(site, None, f"/api/events/{shown.event.id}/layout"))["zones"])["P"]
        assert (found["held"], found["sold"]) == (taken.get("held", 0), taken.get("sold", 0))
        assert found["available"] == 300 - sum(taken.values())
        return str(found["availability"])

    assert await word() == "available"
    assert await word(held=1, sold=298) == "available"
    assert await word(held=1, sold=299) == "held"
    assert await word(held=300) == "held"
    assert await word(sold=300) == "sold_out"
    for ordinal in (10, 11, 12):
        await sell_seat(owner_conn, shown.event, ordinal)
    zones = by_code((await read(site, None, f"/api/events/{shown.event.id}/layout"))["zones"])
    assert [zones[code]["availability"] for code in ("S", "V", "P")] == ["available", "sold_out", "sold_out"]


@pytest.mark.req("LAY-19", "LAY-20", "LAY-21", "LAY-22")
async def test_a_draft_is_shown_as_publishing_makes_it(site: Site, draft: Seated, owner: Person) -> None:
    """Zones, seats, counts and prices: nothing is different afterwards but that it is published."""
    body = said(
        draft,
        blocked_seat_ids=[seat_id(draft, "S-A-1"), seat_id(draft, "V-A-2")],
        disabled_zones=[zone_id(draft, "V")],
        zone_overrides={
            zone_id(draft, "P"): {"zone_type": "ga_seated", "capacity": 120},
            zone_id(draft, "S"): {"access_mode": "role_based", "allowed_roles": ["staff"]},
        },
        pricing_zones={zone_id(draft, "S"): {"pricing_rule_id": str(draft.prices["S"])}},
        seating_overrides={"max_seats_per_booking": 4, "default_hold_ttl_minutes": 3},
    )
    saved = await ask(site, owner, "PUT", seating_of(draft), body)
    assert saved.status_code == 200, saved.text
    path = f"/api/events/{draft.event.id}/layout"
    before = await read(site, owner, path), await all_seats(site, owner, draft), saved.json()["data"]
    assert (await ask(site, owner, "POST", f"{EVENTS}/{draft.event.id}/publish", {})).status_code == 200
    after = await read(site, None, path), await all_seats(site, None, draft), await read(site, owner, seating_of(draft))
    assert before[0] | {"status": "published", "inventory_epoch": 1} == after[0]
    assert before[1] == after[1]
    assert before[2] | {"is_materialised": True, "inventory_epoch": 1} == after[2]
    assert [seat["ordinal"] for seat in after[1] if seat["status"] == "blocked"] == [0, 10, 11, 12]
    assert after[0]["booking"] == {"max_seats_per_booking": 4, "hold_minutes": 3}
    zones = by_code(after[0]["zones"])
    assert (zones["V"]["is_enabled"], zones["V"]["availability"], zones["V"]["blocked"]) == (False, "closed", 3)
    assert (zones["P"]["zone_type"], zones["P"]["capacity"], zones["P"]["prices"]) == ("ga_seated", 120, [])
    assert (zones["S"]["access_mode"], zones["S"]["allowed_roles"]) == ("role_based", ["staff"])
    assert after[2]["unpriced_zones"] == [zone_id(draft, "P")]


@pytest.mark.req("LAY-23")
@pytest.mark.parametrize("status", ["draft", "published"])
async def test_another_price_is_shown_at_once(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue, status: str
) -> None:
    """For the zone, for each seat by its kind, as the least of the zone and of the event; in every answer."""
    amounts = {"S": 20_000, "V": 50_000, "P": 8_000}
    seated = await seated_event(db, studio, owner.organization, venue=venue, amounts=amounts, status=status)
    path = f"/api/events/{seated.event.id}"

    async def shown() -> tuple[list[Any], Any, Any, Any]:
        offer, told = await read(site, owner, f"{path}/layout"), await read(site, owner, seating_of(seated))
        assert (told["zones"], told["from_price"]) == (offer["zones"], offer["from_price"])
        seats = await all_seats(site, owner, seated)
        return (
            [zone["from_price"]["amount_minor"] for zone in offer["zones"]],
            offer["from_price"]["amount_minor"],
            {one["category"]: one["price"]["amount_minor"] for one in offer["zones"][0]["prices"]},
            [seat["price"]["amount_minor"] for seat in seats],
        )

    same = dict.fromkeys(("standard", "wheelchair", "companion"), 20_000)
    assert await shown() == ([20_000, 50_000, 8_000], 8_000, same, [20_000] * 10 + [50_000] * 3)
    for code, wanted in (
        ("S", {"amount_minor": 7_000, "by_category": {"wheelchair": 3_000, "companion": 0}}),
        ("V", {"amount_minor": 7_500}),
    ):
        rule = f"/api/admin/pricing-rules/{seated.prices[code]}"
        assert (await ask(site, owner, "PATCH", rule, wanted)).status_code == 200
    kinds = {"standard": 7_000, "wheelchair": 3_000, "companion": 0}
    # The seats that are kept for those who need them are nobody's first price.
    assert await shown() == (
        [7_000, 7_500, 8_000], 7_000, kinds, [7_000] * 4 + [3_000, 0] + [7_000] * 4 + [7_500] * 3,
    )  # fmt: skip
    taken = await ask(site, owner, "DELETE", f"/api/admin/pricing-rules/{seated.prices['P']}")
    assert refusal(taken) == (409, "pricing_rule_in_use")
    other = await ask(site, owner, "PATCH", f"/api/admin/pricing-rules/{seated.prices['P']}", {"currency": "EUR"})
    assert refusal(other) == (409, "pricing_rule_in_use")


@pytest.mark.req("LAY-33", "ZON-19")
@pytest.mark.parametrize(("capacity", "room"), [(80, 80), (None, 1_000)])
async def test_an_event_without_a_layout_has_one_zone(
    site: Site, db: Database, owner: Person, venue: Venue, capacity: int | None, room: int
) -> None:
    """As large as the event, or else the venue; nobody chooses a seat; it has a price and can be sold seated."""
    event = await make_event(db, owner.organization, venue, capacity=capacity)
    path, at = f"/api/events/{event.id}", f"{EVENTS}/{event.id}"
    told = await read(site, owner, f"{at}/seating")
    (zone,) = told["zones"]
    assert (told["layout"], told["version"], told["unpriced_zones"]) == (None, 0, [zone["zone_id"]])
    assert (zone["code"], zone["zone_type"], zone["access_mode"], zone["capacity"]) == (
        "GA", "ga_standing", "public", room,
    )  # fmt: skip
    rule = await make_rule(db, owner.organization, amount_minor=5)
    overrides = {
        "pricing_zones": {zone["zone_id"]: {"pricing_rule_id": str(rule.id)}},
        "zone_overrides": {zone["zone_id"]: {"zone_type": "ga_seated"}},
    }
    saved = await ask(site, owner, "PUT", f"{at}/seating", {"overrides": overrides}, if_match='"0"')
    assert (saved.status_code, saved.headers["etag"]) == (200, '"1"'), saved.text
    assert (await ask(site, owner, "POST", f"{at}/publish", {})).status_code == 200
    offer = await read(site, None, f"{path}/layout")
    (sold,) = offer["zones"]
    assert (offer["layout"], sold["zone_id"], sold["zone_type"]) == (None, zone["zone_id"], "ga_seated")
    assert offer["counts"] == {
        "capacity": room, "available": room, "held": 0, "sold": 0, "blocked": 0, "attendance": 0,
    }  # fmt: skip
    assert offer["from_price"] == {"amount_minor": 5, "currency": "ZAR"}
    assert (await ask(site, None, "GET", f"{path}/seats")).json() == {"data": [], "next_cursor": None}
    for wrong in (
        {"zone_overrides": {zone["zone_id"]: {"zone_type": "reserved_seating"}}},
        {"blocked_seat_ids": [zone["zone_id"]]},
        {"disabled_zones": [str(event.id)]},
    ):
        answer = await ask(site, owner, "PUT", f"{at}/seating", {"overrides": wrong})
        assert refusal(answer) == (400, "seating_invalid"), wrong


async def test_an_event_that_nobody_may_come_to_can_still_be_looked_at(
    site: Site, db: Database, owner: Person, venue: Venue
) -> None:
    """Its one zone is gone with its room: what was said of that is told as a fault, and comes right with room again."""
    event = await make_event(db, owner.organization, venue, capacity=80)
    at = f"{EVENTS}/{event.id}"
    rule = await make_rule(db, owner.organization)
    (zone,) = (await read(site, owner, f"{at}/seating"))["zones"]
    body = {"overrides": {"pricing_zones": {zone["zone_id"]: {"pricing_rule_id": str(rule.id)}}}}
    assert (await ask(site, owner, "PUT", f"{at}/seating", body)).status_code == 200
    assert (await ask(site, owner, "PATCH", at, {"capacity": 0})).status_code == 200
    told = await read(site, owner, f"{at}/seating")
    assert (told["zones"], [fault["code"] for fault in told["faults"]]) == ([], ["zone_unknown"])
    assert (await read(site, owner, f"/api/events/{event.id}/layout"))["zones"] == []
    assert await read(site, owner, f"/api/events/{event.id}/seats") == []
    assert refusal(await ask(site, owner, "POST", f"{at}/publish", {})) == (400, "seating_invalid")
    assert (await ask(site, owner, "PATCH", at, {"capacity": 7})).status_code == 200
    told = await read(site, owner, f"{at}/seating")
    assert (told["faults"], told["counts"]["available"], told["from_price"]["amount_minor"]) == ([], 7, 10_000)


@pytest.mark.req("LAY-18", "LAY-26", "LAY-36", "LAY-17")
async def test_an_event_is_made_with_its_layout(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue
) -> None:
    """One pair of layout and version; what is stored is the pair and what is said differently, no seat."""
    pin = await active_pin(studio, venue)
    body = new_event(venue, layout_id=str(pin.layout_id), layout_version=1)
    made = [await ask(site, owner, "POST", EVENTS, body, idempotency_key="once") for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 201], made[0].text
    (event_id,) = {answer.json()["data"]["id"] for answer in made}
    told = await read(site, owner, f"{EVENTS}/{event_id}/seating")
    assert (told["layout"]["layout_id"], told["layout"]["layout_version"]) == (str(pin.layout_id), 1)
    assert (told["version"], told["counts"]["capacity"], told["faults"]) == (1, 313, [])
    async with db.transaction(owner.organization.id) as conn:
        (row,) = await conn.fetch("select * from event_layouts")
        assert await conn.fetchval("select count(*) from event_seats") == 0
    assert isinstance(row["id"], UUID)
    assert (row["organization_id"], str(row["event_id"])) == (owner.organization.id, event_id)
    assert ((row["layout_id"], row["layout_version"]), row["overrides"]) == (tuple(pin), "{}")
    assert row["created_at"] <= row["updated_at"]


async def test_what_is_said_replaces_what_was_said(site: Site, db: Database, draft: Seated, owner: Person) -> None:
    """A PUT is the whole of it; the same again is no change, no version and no fact."""
    blocked = said(draft, blocked_seat_ids=[seat_id(draft, "S-A-1")], disabled_zones=[zone_id(draft, "V")])
    first = await ask(site, owner, "PUT", seating_of(draft), blocked, if_match='"1"')
    assert (first.status_code, first.headers["etag"]) == (200, '"2"'), first.text
    assert first.json()["data"]["overrides"] == {
        "blocked_seat_ids": [seat_id(draft, "S-A-1")],
        "disabled_zones": [zone_id(draft, "V")],
        "zone_overrides": {},
        "pricing_zones": {},
        "seating_overrides": {},
    }
    assert first.json()["data"]["from_price"] is None
    before = await state(db, draft)
    again = await ask(site, owner, "PUT", seating_of(draft), blocked, if_match='"2"')
    assert (again.json(), again.headers["etag"]) == (first.json(), '"2"')
    assert await state(db, draft) == before
    empty = await ask(site, owner, "PUT", seating_of(draft), said(draft), if_match="*")
    assert (empty.headers["etag"], empty.json()["data"]["counts"]["blocked"]) == ('"3"', 0)
    none = await ask(site, owner, "PUT", seating_of(draft), {"overrides": {}})
    assert (none.headers["etag"], none.json()["data"]["layout"]) == ('"4"', None)
    assert [zone["code"] for zone in none.json()["data"]["zones"]] == ["GA"]
    read_back = await ask(site, owner, "GET", seating_of(draft))
    assert (read_back.json(), read_back.headers["etag"]) == (none.json(), '"4"')
    told = (await state(db, draft))[-1]
    assert told.count("event_seating_changed") == 4


async def test_whoever_saw_an_older_seating_is_told(site: Site, db: Database, draft: Seated, owner: Person) -> None:
    """409 with the version there is; a header that names none is refused, and nothing changes."""
    before = await state(db, draft)
    for number in (0, 2, 7):
        answer = await ask(site, owner, "PUT", seating_of(draft), said(draft), if_match=f'"{number}"')
        assert (refusal(answer), answer.json()["details"]) == ((409, "seating_changed"), {"version": 1})
    for broken in ("1", 'W/"1"', '"01"', '"-1"', '"one"', '"1", "2"', ""):
        answer = await ask(site, owner, "PUT", seating_of(draft), said(draft), if_match=broken)
        assert refusal(answer) == (400, "invalid_request"), broken
    assert await state(db, draft) == before


async def test_of_two_who_saw_the_same_one_is_told(site: Site, db: Database, draft: Seated, owner: Person) -> None:
    """At once, ten of them: one version more."""
    codes = ["S-A-1", "S-A-2", "S-A-3", "S-A-4", "S-B-3", "S-B-4", "V-A-1", "V-A-2", "V-A-3", "S-B-5"]
    answers = await asyncio.gather(
        *(
            ask(
                site,
                owner,
                "PUT",
                seating_of(draft),
                said(draft, blocked_seat_ids=[seat_id(draft, code)]),
                if_match='"1"',
            )
            for code in codes
        )
    )
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses[0] == 200
    assert set(statuses[1:]) <= {409, 503}
    won = next(answer for answer in answers if answer.status_code == 200)
    assert await read(site, owner, seating_of(draft)) == won.json()["data"]
    assert won.headers["etag"] == '"2"'


@pytest.mark.parametrize("status", ["draft", "published"])
async def test_a_dry_run_shows_and_changes_nothing(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue, status: str
) -> None:
    """What would come of it, and what would be wrong with it, without a trace."""
    seated = await seated_event(db, studio, owner.organization, venue=venue, status=status)
    before = await state(db, seated)
    path = f"{seating_of(seated)}?dry_run=true"
    good = await ask(site, owner, "PUT", path, said(seated, disabled_zones=[zone_id(seated, "S")]))
    assert good.status_code == 200, good.text
    data = good.json()["data"]
    assert (data["faults"], data["totals"]["blocked"], data["counts"]["available"]) == ([], 10, 303)
    assert (data["version"], good.headers["etag"]) == (1, '"1"')
    wrong = said(
        seated,
        pricing_zones={zone_id(seated, "P"): {"pricing_rule_id": str(new_id())}},
        zone_overrides={zone_id(seated, "P"): {"capacity": 301}},
        seating_overrides={"max_seats_per_booking": 0, "allow_vip_zones": True, "colour": "red"},
    )
    told = await ask(site, owner, "PUT", path, wrong)
    assert told.status_code == 200, told.text
    assert {(fault["path"], fault["code"]) for fault in told.json()["data"]["faults"]} == {
        (f"zone_overrides.{zone_id(seated, 'P')}.capacity", "out_of_range"),
        ("seating_overrides.max_seats_per_booking", "override_refused"),
        ("seating_overrides.allow_vip_zones", "override_refused"),
        ("seating_overrides.colour", "override_refused"),
        (f"pricing_zones.{zone_id(seated, 'P')}", "price_refused"),
    }
    assert all(fault["message"] and fault["hint"] for fault in told.json()["data"]["faults"])
    assert await state(db, seated) == before
    refused = await ask(site, owner, "PUT", seating_of(seated), wrong)
    assert refusal(refused) == (400, "seating_invalid")
    assert await state(db, seated) == before


async def impossible_layouts(
    db: Database, studio: Studio, owner: Person, pin: Pin
) -> list[tuple[dict[str, Any], tuple[int, str]]]:
    """Pairs that no event at the venue can have, and how each is refused; of this layout the first version is past."""
    await next_pin(studio, owner.organization.id, pin.layout_id, small_layout())
    await versions.create_version(studio, owner.organization.id, pin.layout_id, small_layout(), by=OPERATOR)
    stranger = await make_person(db)
    elsewhere = await active_pin(studio, await make_venue(db, owner.organization))
    foreign = await active_pin(studio, await make_venue(db, stranger.organization))
    here, missing = str(pin.layout_id), (404, "layout_not_found")
    return [
        ({"layout_id": here, "layout_version": 1}, (409, "layout_not_active")),
        ({"layout_id": here, "layout_version": 3}, (409, "layout_not_active")),
        ({"layout_id": here, "layout_version": 4}, missing),
        ({"layout_id": here, "layout_version": 1_000_000}, missing),
        ({"layout_id": here}, (400, "invalid_request")),
        ({"layout_id": here, "layout_version": None}, (400, "invalid_request")),
        ({"layout_version": 2}, (400, "invalid_request")),
        ({"layout_id": str(new_id()), "layout_version": 1}, missing),
        ({"layout_id": str(foreign.layout_id), "layout_version": 1}, missing),
        ({"layout_id": str(elsewhere.layout_id), "layout_version": 1}, (409, "layout_of_other_venue")),
        ({"layout_id": "x", "layout_version": 1}, (400, "invalid_request")),
        ({"layout_id": here, "layout_version": "2"}, (400, "invalid_request")),
        ({"layout_id": here, "layout_version": True}, (400, "invalid_request")),
        ({"layout_id": here, "layout_version": 2.0}, (400, "invalid_request")),
        ({"layout_id": here, "layout_version": 0}, (400, "invalid_request")),
        ({"layout_id": here, "layout_version": 2**70}, (400, "invalid_request")),
    ]


@pytest.mark.req("LAY-25", "LAY-36")
async def test_an_event_is_not_made_with_a_layout_that_it_cannot_have(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue
) -> None:
    """Nowhere, somebody else's, of another venue, a draft, one of the past, half a pair: no event, and no fact."""
    for pair, wanted in await impossible_layouts(db, studio, owner, await active_pin(studio, venue)):
        answer = await ask(site, owner, "POST", EVENTS, new_event(venue, **pair))
        assert refusal(answer) == wanted, (pair, answer.text)
    async with db.transaction(owner.organization.id) as conn:
        assert await conn.fetchval("select count(*) from events") == 0
        assert await conn.fetchval("select count(*) from event_layouts") == 0
        assert await conn.fetchval("select count(*) from journal where event_id is not null") == 0


@pytest.mark.req("LAY-25")
async def test_an_event_is_not_given_a_layout_that_it_cannot_have(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue
) -> None:
    """The same refusals, tried or meant; nothing is changed. The version that it has it may keep."""
    seated = await seated_event(db, studio, owner.organization, venue=venue)
    impossible = await impossible_layouts(db, studio, owner, seated.pin)
    before = await state(db, seated)
    kept, *others = impossible
    for pair, wanted in others:
        for query in ("", "?dry_run=true"):
            answer = await ask(site, owner, "PUT", seating_of(seated) + query, pair | {"overrides": {}})
            assert refusal(answer) == wanted, (pair, answer.text)
    assert await state(db, seated) == before
    disabled = {"overrides": {"disabled_zones": [zone_id(seated, "P")]}}
    assert (await ask(site, owner, "PUT", seating_of(seated), kept[0] | disabled)).status_code == 200
    again = await make_event(db, owner.organization, venue)
    answer = await ask(site, owner, "PUT", f"{EVENTS}/{again.id}/seating", kept[0] | {"overrides": {}})
    assert refusal(answer) == (409, "layout_not_active")
    assert answer.json()["details"] == {"version": 1, "status": "archived", "active_version": 2}


async def test_every_fault_is_told_at_once_with_its_path(
    site: Site, db: Database, studio: Studio, owner: Person, draft: Seated
) -> None:
    """Ids of nobody, of another layout, written otherwise; keys and values that mean nothing. Nothing is changed."""
    other = await seated_event(db, studio, owner.organization)
    before = await state(db, draft)
    stalls, pit, nowhere = zone_id(draft, "S"), zone_id(draft, "P"), str(new_id())
    body = said(
        draft,
        blocked_seat_ids=[nowhere, seat_id(other, "S-A-1"), stalls, "S-A-1", 7, seat_id(draft, "S-A-1").upper()],
        disabled_zones=[zone_id(other, "S"), None, seat_id(draft, "S-A-1")],
        zone_overrides={
            nowhere: {},
            stalls: [],
            pit: {"capacity": "many", "zone_type": "balcony", "acess_mode": "public", "allowed_roles": "staff"},
        },
        pricing_zones={pit: {}, stalls: {"pricing_rule_id": "cheap", "amount": 3}},
        seating_overrides=[1],
        surprise=True,
    )
    for query in ("", "?dry_run=true"):
        answer = await ask(site, owner, "PUT", seating_of(draft) + query, body)
        assert refusal(answer) == (400, "seating_invalid")
        errors = answer.json()["details"]["errors"]
        assert {(error["path"], error["code"]) for error in errors} == {
            ("blocked_seat_ids[0]", "unknown_value"),
            ("blocked_seat_ids[1]", "unknown_value"),
            ("blocked_seat_ids[2]", "unknown_value"),
            ("blocked_seat_ids[3]", "unknown_value"),
            ("blocked_seat_ids[4]", "wrong_type"),
            ("blocked_seat_ids[5]", "unknown_value"),
            ("disabled_zones[0]", "unknown_value"),
            ("disabled_zones[1]", "wrong_type"),
            ("disabled_zones[2]", "unknown_value"),
            (f"zone_overrides.{nowhere}", "unknown_value"),
            (f"zone_overrides.{stalls}", "wrong_type"),
            (f"zone_overrides.{pit}.capacity", "wrong_type"),
            (f"zone_overrides.{pit}.zone_type", "unknown_value"),
            (f"zone_overrides.{pit}.acess_mode", "unknown_key"),
            (f"zone_overrides.{pit}.allowed_roles", "wrong_type"),
            (f"pricing_zones.{pit}.pricing_rule_id", "missing"),
            (f"pricing_zones.{stalls}.pricing_rule_id", "unknown_value"),
            (f"pricing_zones.{stalls}.amount", "unknown_key"),
            ("seating_overrides", "wrong_type"),
            ("surprise", "unknown_key"),
        }
        assert answer.json()["details"]["error_count"] == len(errors) == 20
        assert all(error["message"] and error["hint"] for error in errors)
    assert await state(db, draft) == before


@pytest.mark.req("ZON-04", "ZON-06", "ZON-07")
async def test_what_can_be_read_and_cannot_be_is_told_at_once(
    site: Site, db: Database, draft: Seated, owner: Person
) -> None:
    """A seat named twice; access without what it needs; seats where there are none; more room than there is."""
    stalls, members, pit = (zone_id(draft, code) for code in "SVP")
    before = await state(db, draft)
    body = said(
        draft,
        blocked_seat_ids=[seat_id(draft, "S-A-1"), seat_id(draft, "S-A-1")],
        disabled_zones=[pit, pit],
        zone_overrides={
            stalls: {"access_mode": "membership_tier", "capacity": 10},
            members: {"access_mode": "role_based", "membership_tier": "silver"},
            pit: {"zone_type": "vip_reserved", "allowed_roles": ["king"]},
        },
    )
    answer = await ask(site, owner, "PUT", seating_of(draft), body)
    assert {(one["path"], one["code"]) for one in answer.json()["details"]["errors"]} == {
        ("blocked_seat_ids[1]", "named_twice"),
        ("disabled_zones[1]", "named_twice"),
        (f"zone_overrides.{stalls}.membership_tier", "tier_missing"),
        (f"zone_overrides.{stalls}.capacity", "capacity_mismatch"),
        (f"zone_overrides.{members}.allowed_roles", "roles_missing"),
        (f"zone_overrides.{members}.membership_tier", "tier_unused"),
        (f"zone_overrides.{pit}.zone_type", "seats_missing"),
        (f"zone_overrides.{pit}.access_mode", "vip_public"),
        (f"zone_overrides.{pit}.allowed_roles", "roles_unused"),
        (f"zone_overrides.{pit}.allowed_roles[0]", "unknown_value"),
    }
    for capacity in (0, -1, 301, 10**30, 1.5, True):
        answer = await ask(
            site, owner, "PUT", seating_of(draft), said(draft, zone_overrides={pit: {"capacity": capacity}})
        )
        assert refusal(answer) == (400, "seating_invalid"), capacity
    assert await state(db, draft) == before


async def test_of_very_many_faults_the_first_are_told_and_all_are_counted(
    site: Site, draft: Seated, owner: Person
) -> None:
    """So that whoever mends them knows how many are left."""
    answer = await ask(site, owner, "PUT", seating_of(draft), said(draft, blocked_seat_ids=[1] * 700))
    details = answer.json()["details"]
    assert (answer.status_code, len(details["errors"]), details["error_count"]) == (400, 500, 700)


async def test_a_price_of_somebody_else_is_none(
    site: Site, db: Database, owner: Person, draft: Seated, shown: Seated
) -> None:
    """Nor one that is not there, nor two currencies; the fault names the zone, and nothing is changed."""
    stranger = await make_person(db, role=Role.OWNER)
    foreign = await make_rule(db, stranger.organization)
    euros = await make_rule(db, owner.organization, currency="EUR")
    for seated in (draft, shown):
        before = await state(db, seated)
        for code, rule in (("S", foreign.id), ("S", new_id()), ("P", euros.id)):
            zones = {"V": seated.prices["V"], code: rule}
            told = {zone_id(seated, one): {"pricing_rule_id": str(named)} for one, named in zones.items()}
            answer = await ask(site, owner, "PUT", seating_of(seated), said(seated, pricing_zones=told))
            (error,) = answer.json()["details"]["errors"]
            assert (refusal(answer), error["path"], error["code"]) == (
                (400, "seating_invalid"), f"pricing_zones.{zone_id(seated, code)}", "price_refused",
            )  # fmt: skip
        assert await state(db, seated) == before


async def test_a_hall_larger_than_the_event_is_not_offered(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue
) -> None:
    """Until enough of it is blocked; the other way round an event that is sold does not become too small."""
    seated = await seated_event(db, studio, owner.organization, venue=venue, capacity=400)
    at = f"{EVENTS}/{seated.event.id}"
    assert (await ask(site, owner, "PATCH", at, {"capacity": 100})).status_code == 200
    (fault,) = (await read(site, owner, seating_of(seated)))["faults"]
    assert (fault["path"], fault["code"]) == ("$", "capacity_exceeded")
    before = await state(db, seated)
    for method, path, body in (("PUT", seating_of(seated), said(seated)), ("POST", f"{at}/publish", {})):
        refused = await ask(site, owner, method, path, body)
        assert refusal(refused) == (400, "seating_invalid")
        assert [one["code"] for one in refused.json()["details"]["errors"]] == ["capacity_exceeded"]
    assert await state(db, seated) == before
    smaller = said(seated, zone_overrides={zone_id(seated, "P"): {"capacity": 87}})
    assert (await ask(site, owner, "PUT", seating_of(seated), smaller)).json()["data"]["totals"]["total"] == 100
    assert (await ask(site, owner, "POST", f"{at}/publish", {})).status_code == 200
    before = await state(db, seated)
    assert refusal(await ask(site, owner, "PATCH", at, {"capacity": 99})) == (409, "capacity_exceeded")
    assert refusal(await ask(site, owner, "PUT", seating_of(seated), said(seated))) == (400, "seating_invalid")
    assert await state(db, seated) == before


@pytest.mark.req("LAY-24")
async def test_what_an_event_may_say_of_the_policy(site: Site, draft: Seated, owner: Person) -> None:
    """Every field with what holds and who said so; what is the organization's to say is refused."""
    saved = await ask(
        site, owner, "PUT", seating_of(draft), said(draft, seating_overrides={"max_seats_per_booking": 3})
    )
    told = {field["name"]: field for field in saved.json()["data"]["policy"]}
    assert told.keys() == FIELDS.keys()
    assert (told["max_seats_per_booking"]["value"], told["max_seats_per_booking"]["origin"]) == (3, "event")
    assert (told["max_seats_per_booking"]["least"], told["max_seats_per_booking"]["most"]) == (1, 40)
    assert (told["allow_vip_zones"]["value"], told["allow_vip_zones"]["origin"]) == (True, "organization")
    assert told["default_hold_ttl_minutes"]["origin"] == "default"
    assert (await read(site, owner, f"/api/events/{draft.event.id}/layout"))["booking"]["max_seats_per_booking"] == 3
    for name, field in FIELDS.items():
        if not field.is_overridable:
            body = said(draft, seating_overrides={name: told[name]["value"]})
            answer = await ask(site, owner, "PUT", seating_of(draft), body)
            assert (refusal(answer), told[name]["is_overridable"]) == ((400, "seating_invalid"), False)


async def test_staff_seat_drafts_and_leaders_the_rest(
    site: Site, db: Database, owner: Person, draft: Seated, shown: Seated
) -> None:
    """What nobody knows of yet is staff's to change; once people do, it is for those who may schedule."""
    place = owner.organization
    staff, admin = await make_person(db, place, Role.STAFF), await make_person(db, place, Role.ADMIN)
    scanner, customer = await make_person(db, place, Role.SCANNER), await make_person(db, place, Role.CUSTOMER)
    assert (await ask(site, staff, "PUT", seating_of(draft), said(draft))).status_code == 200
    before = await state(db, shown)
    refused = await ask(site, staff, "PUT", seating_of(shown), said(shown))
    assert (refusal(refused), await state(db, shown)) == ((403, "permission_denied"), before)
    for person in (scanner, customer):
        for seated in (draft, shown):
            answer = await ask(site, person, "PUT", seating_of(seated), said(seated))
            assert refusal(answer) == (403, "permission_denied")
    assert refusal(await ask(site, None, "PUT", seating_of(draft), said(draft))) == (401, "unauthorized")
    assert (await ask(site, scanner, "GET", seating_of(draft))).status_code == 200
    assert refusal(await ask(site, customer, "GET", seating_of(draft))) == (403, "permission_denied")
    assert (await ask(site, admin, "PUT", seating_of(shown), said(shown))).status_code == 200


async def test_staff_are_told_when_a_draft_is_published_under_their_hands(
    site: Site, db: Database, studio: Studio, owner: Person, draft: Seated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was a draft when they asked is not theirs any more when it is written: refused, and nothing changed."""
    staff = await make_person(db, owner.organization, Role.STAFF)
    save, found = inventory.save, []

    async def overtaken(*args: Any, **named: Any) -> Plan:
        await move(studio, owner.organization, draft.event, Verb.PUBLISH)
        found.append(await state(db, draft))
        return await save(*args, **named)

    monkeypatch.setattr(inventory, "save", overtaken)
    answer = await ask(site, staff, "PUT", seating_of(draft), said(draft))
    assert (refusal(answer), [await state(db, draft)]) == ((403, "permission_denied"), found)


@pytest.mark.req("LAY-27")
async def test_what_somebody_has_is_not_taken_away(
    site: Site, db: Database, studio: Studio, owner: Person, shown: Seated, owner_conn: Connection
) -> None:
    """Neither seat, nor zone, nor room, nor layout; who is in the way is listed, and nothing at all is changed."""
    await hold_seat(owner_conn, shown.event, shown.ordinal("S-A-2"))
    await sell_seat(owner_conn, shown.event, shown.ordinal("V-A-1"))
    await take_places(owner_conn, shown.event, shown.hall.zone_id("P"), held=5, sold=45)
    later = await next_pin(studio, owner.organization.id, shown.pin.layout_id, small_layout())
    before = await state(db, shown)
    told = await read(site, owner, seating_of(shown))
    assert (told["can_repin"], told["is_materialised"]) == (False, True)
    stalls, members, pit = (zone_id(shown, code) for code in "SVP")
    held = {"seat_id": seat_id(shown, "S-A-2"), "zone": "Stalls", "row": "A", "seat_number": "2", "status": "held"}
    sold = {"seat_id": seat_id(shown, "V-A-1"), "zone": "Members", "row": "A", "seat_number": "1", "status": "sold"}
    standing = {"zone_id": pit, "name": "Pit", "held": 5, "sold": 45}
    moved = {"layout_id": str(later.layout_id), "layout_version": 2, "overrides": {}}
    free = seat_id(shown, "S-A-1")
    for method, path, body, seats, zones in (
        ("PUT", seating_of(shown), said(shown, blocked_seat_ids=[free, held["seat_id"]]), [held], []),
        ("PUT", seating_of(shown), said(shown, disabled_zones=[stalls, members]), [held, sold], []),
        ("PUT", seating_of(shown), said(shown, zone_overrides={stalls: {"zone_type": "ga_seated"}}), [held], []),
        ("PUT", seating_of(shown), said(shown, zone_overrides={pit: {"capacity": 49}}), [], [standing | {"room": 49}]),
        (
            "PUT",
            seating_of(shown),
            said(shown, zone_overrides={pit: {"zone_type": "ga_seated"}}),
            [],
            [standing | {"room": 0}],
        ),
        ("PUT", seating_of(shown), said(shown, disabled_zones=[pit]), [], [standing | {"room": 0}]),
        ("PUT", seating_of(shown), moved, [held, sold], [standing | {"room": 0}]),
        ("PUT", seating_of(shown), {"overrides": {}}, [held, sold], [standing | {"room": 0}]),
        ("POST", f"{EVENTS}/{shown.event.id}/unpublish", {}, [held, sold], [standing | {"room": 0}]),
    ):
        answer = await ask(site, owner, method, path, body)
        assert refusal(answer) == (409, "seating_in_use"), answer.text
        assert answer.json()["details"] == {"seats": seats, "seat_count": len(seats), "zones": zones}
        assert await state(db, shown) == before
    just = said(shown, blocked_seat_ids=[free], zone_overrides={pit: {"capacity": 50}})
    assert (await ask(site, owner, "PUT", seating_of(shown), just)).status_code == 200
    zones_now = by_code((await read(site, None, f"/api/events/{shown.event.id}/layout"))["zones"])
    assert (zones_now["P"]["available"], zones_now["P"]["availability"], zones_now["S"]["blocked"]) == (0, "held", 1)


async def test_an_event_with_a_layout_stays_where_that_stands(
    site: Site, db: Database, owner: Person, draft: Seated, shown: Seated
) -> None:
    """By either way of moving it; without one it may go."""
    elsewhere = str((await make_venue(db, owner.organization)).id)
    moving = {"venue_id": elsewhere, "reason": "a leak", "consent": True}
    for seated in (draft, shown):
        before = await state(db, seated)
        at = f"{EVENTS}/{seated.event.id}"
        for answer in (
            await ask(site, owner, "PATCH", at, {"venue_id": elsewhere}),
            await ask(site, owner, "POST", f"{at}/change-venue", moving),
        ):
            if refusal(answer) == (409, "consent_needed"):
                continue  # people know of it: there is a verb for that
            assert refusal(answer) == (409, "layout_of_other_venue"), answer.text
            assert answer.json()["details"]["venue_id"] == str(seated.venue.id)
        assert await state(db, seated) == before
        assert (await ask(site, owner, "PUT", seating_of(seated), {"overrides": {}})).status_code == 200
        assert (await ask(site, owner, "POST", f"{at}/change-venue", moving)).status_code == 200


@pytest.mark.parametrize("status", ["ended", "cancelled", "archived"])
async def test_what_is_over_keeps_its_seating(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue, status: str
) -> None:
    """It can be looked at, and is as it was."""
    seated = await seated_event(db, studio, owner.organization, venue=venue, status=status)
    before = await state(db, seated)
    for asked in ("", "?dry_run=true"):
        answer = await ask(site, owner, "PUT", seating_of(seated) + asked, said(seated))
        assert (refusal(answer), answer.json()["details"]) == ((409, "seating_locked"), {"status": status})
    assert await state(db, seated) == before
    assert (await read(site, owner, seating_of(seated)))["counts"]["capacity"] == 313


async def test_more_than_eight_megabytes_are_refused(site: Site, db: Database, draft: Seated, owner: Person) -> None:
    """By the announced length alone; what is just within is read, and refused for what it says."""
    before = await state(db, draft)
    host, _, port = site.address.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [
        f"PUT {seating_of(draft)} HTTP/1.1",
        f"host: {host}",
        f"authorization: {owner.headers['authorization']}",
        f"content-length: {OVERLAY_BYTES_MAX + 1}",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    assert (answer[:12], b"body_too_large" in answer) == (b"HTTP/1.1 413", True)
    within = json.dumps(said(draft, surprise="x" * (OVERLAY_BYTES_MAX - 1_000)))
    assert refusal(await ask(site, owner, "PUT", seating_of(draft), within)) == (400, "seating_invalid")
    assert await state(db, draft) == before


DEEP = 5_000
HOSTILE: Mapping[str, str] = {
    "nothing": "",
    "null": "null",
    "a list": "[]",
    "no overrides": "{}",
    "overrides of null": '{"overrides": null}',
    "overrides of another kind": '{"overrides": [1]}',
    "a surprise": '{"overrides": {}, "surprise": 1}',
    "a field that is no text": '{"overrides": {}, "\\ud800": 1}',
    "a field with nul": '{"overrides": {}, "\\u0000": 1}',
    "a key that is no text": '{"overrides": {"\\ud800": 1}}',
    "a key with nul": '{"overrides": {"\\u0000": 1}}',
    "a seat that is no text": '{"overrides": {"blocked_seat_ids": ["\\ud800"]}}',
    "a seat with nul": '{"overrides": {"blocked_seat_ids": ["\\u0000"]}}',
    "a zone that is no text": '{"overrides": {"zone_overrides": {"\\udfff": {}}}}',
    "a zone with nul": '{"overrides": {"zone_overrides": {"\\u0000": {"\\u0000": 1}}}}',
    "a key of a zone that is no text": '{"overrides": {"zone_overrides": {"ZONE": {"\\udfff": 1}}}}',
    "a tier that is no text": '{"overrides": {"zone_overrides": {"ZONE": {"access_mode": "membership_tier", '
    '"membership_tier": "\\ud800"}}}}',
    "a tier with nul": '{"overrides": {"zone_overrides": {"ZONE": {"access_mode": "membership_tier", '
    '"membership_tier": "a\\u0000b"}}}}',
    "a role that is no text": '{"overrides": {"zone_overrides": {"ZONE": {"access_mode": "role_based", '
    '"allowed_roles": ["\\ud800"]}}}}',
    "a policy field that is no text": '{"overrides": {"seating_overrides": {"\\ud800": 1}}}',
    "a policy field with nul": '{"overrides": {"seating_overrides": {"\\u0000": 1}}}',
    "a policy word that is no text": '{"overrides": {"seating_overrides": {"allowed_access_modes": ["\\ud800"]}}}',
    "a rule that is no text": '{"overrides": {"pricing_zones": {"ZONE": {"pricing_rule_id": "\\ud800"}}}}',
    "a rule with nul": '{"overrides": {"pricing_zones": {"ZONE": {"pricing_rule_id": "\\u0000"}}}}',
    "beyond 64 bits": '{"overrides": {"zone_overrides": {"ZONE": {"capacity": 18446744073709551616}}}}',
    "a huge number": '{"overrides": {"zone_overrides": {"ZONE": {"capacity": 1' + "0" * 4_000 + "}}}}",
    "a number too long to read": '{"overrides": {"zone_overrides": {"ZONE": {"capacity": 1' + "0" * 9_000 + "}}}}",
    "infinite": '{"overrides": {"zone_overrides": {"ZONE": {"capacity": 1e999}}}}',
    "not a number": '{"overrides": {"zone_overrides": {"ZONE": {"capacity": NaN}}}}',
    "a policy of a huge number": '{"overrides": {"seating_overrides": {"max_seats_per_booking": 1' + "0" * 400 + "}}}",
    "a policy of no number": '{"overrides": {"seating_overrides": {"max_seats_per_booking": NaN}}}',
    "a policy of words": '{"overrides": {"seating_overrides": {"allowed_access_modes": ["\\u0000", 1, {}]}}}',
    "a policy of many words": json.dumps({"overrides": {"seating_overrides": {"locked_fields": ["x"] * 100_000}}}),
    "deep": '{"overrides": {"seating_overrides": ' + '{"a":' * 400 + "1" + "}" * 402,
    "a deep value": '{"overrides": {"blocked_seat_ids": [' + "[" * 900 + "]" * 900 + "]}}",
    "very deep": '{"overrides": ' + '{"a":' * DEEP + "1" + "}" * (DEEP + 1),
    "very deep lists": '{"overrides": {"blocked_seat_ids": ' + "[" * 100_000 + "]" * 100_000 + "}}",
    "many zones": json.dumps({"overrides": {"zone_overrides": {str(number): {} for number in range(600)}}}),
    "many policy fields": json.dumps({"overrides": {"seating_overrides": {str(number): 1 for number in range(600)}}}),
    "many seats": json.dumps({"overrides": {"blocked_seat_ids": [0] * 100_001}}),
    "half a text": '{"overrides": {"',
    "no JSON": "layout=1",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
async def test_what_cannot_be_kept_is_refused(
    site: Site, db: Database, draft: Seated, owner: Person, text: str
) -> None:
    """400 in the form of every refusal, tried or meant; nothing is changed."""
    before = await state(db, draft)
    pair = f'"layout_id": "{draft.pin.layout_id}", "layout_version": 1, '
    body = text.replace("ZONE", zone_id(draft, "P"))
    if body.startswith('{"'):
        body = "{" + pair + body[1:]
    for query in ("", "?dry_run=true"):
        answer = await ask(site, owner, "PUT", seating_of(draft) + query, body)
        is_told = answer.status_code == 200 and query and answer.json()["data"]["faults"]
        assert is_told or answer.status_code == 400, (answer.status_code, answer.text[:500])
        assert is_told or answer.json()["effect"] == "none"
    assert await state(db, draft) == before


async def test_the_feed_tells_of_seating_and_of_places(site: Site, draft: Seated, owner: Person) -> None:
    """Each change once, in its order; the same said again is none."""
    body = said(draft, disabled_zones=[zone_id(draft, "V")])
    async with watching(site, owner) as stream:
        for _ in range(2):
            assert (await ask(site, owner, "PUT", seating_of(draft), body)).status_code == 200
        assert (await ask(site, owner, "POST", f"{EVENTS}/{draft.event.id}/publish", {})).status_code == 200
        assert (await ask(site, owner, "PUT", seating_of(draft), said(draft))).status_code == 200
        assert (await ask(site, owner, "PUT", seating_of(draft), {"overrides": {}})).status_code == 200
        names: list[str] = []
        while len(names) < 6:
            frame = await stream.next()
            if frame.data.get("event_id") == str(draft.event.id) and frame.name != "event_created":
                names.append(frame.name)
    # A stream begins now or a moment before: what made the draft may be told as well.
    wanted = [
        "event_seating_changed",
        "event_inventory_created",
        "event_status_changed",
        "event_seating_changed",
        "event_layout_changed",
        "event_seating_changed",
    ]
    assert names in (wanted, ["event_seating_changed", *wanted[:-1]])


async def test_nobody_sees_what_is_shown_no_longer(
    site: Site, db: Database, studio: Studio, owner: Person, shown: Seated
) -> None:
    """Not even while it is remembered that it was: the operator takes it back, who announces nothing."""
    paths = [f"/api/events/{shown.event.id}/layout", f"/api/events/{shown.event.id}/seats"]
    for path in paths:
        assert (await ask(site, None, "GET", path)).status_code == 200
    await move(studio, owner.organization, shown.event, Verb.UNPUBLISH)
    for path in paths:
        assert refusal(await ask(site, None, "GET", path)) == (404, "event_not_found")
        assert (await ask(site, owner, "GET", path)).status_code == 200


@pytest.mark.req("LAY-28")
async def test_the_events_of_a_layout_are_listed_by_their_versions(
    site: Site, db: Database, studio: Studio, owner: Person, venue: Venue, shown: Seated
) -> None:
    """A new version leaves those alone that have the one before; each is named with what it has."""
    layout_id = shown.pin.layout_id
    before = await all_seats(site, None, shown)
    later = await next_pin(studio, owner.organization.id, layout_id, small_layout({"zones.1.rows.0.label": "AA"}))
    fresh = await seated_event(db, studio, owner.organization, venue=venue, pin=later, name="Later")
    await seated_event(db, studio, owner.organization, venue=venue)
    path = f"/api/admin/layouts/{layout_id}/events"
    assert await read(site, owner, path) == [
        {"event_id": str(fresh.event.id), "name": "Later", "status": "draft", "layout_version": 2},
        {"event_id": str(shown.event.id), "name": shown.event.name, "status": "published", "layout_version": 1},
    ]
    assert await all_seats(site, None, shown) == before
    offer = await read(site, None, f"/api/events/{shown.event.id}/layout")
    assert (offer["layout"]["layout_version"], offer["layout"]["status"]) == (1, "archived")
    stranger = await make_person(db, role=Role.OWNER)
    for person, at in ((stranger, path), (owner, f"/api/admin/layouts/{new_id()}/events")):
        assert refusal(await ask(site, person, "GET", at)) == (404, "layout_not_found")


async def test_changes_of_events_that_are_not_there_leave_no_trace(site: Site, db: Database, owner: Person) -> None:
    """Nobody's and somebody else's: 404, whichever change it is, and no row of either organization."""
    stranger = await make_person(db, role=Role.OWNER)
    theirs = await make_event(db, stranger.organization)
    moving = {"venue_id": str(new_id()), "reason": "a leak", "consent": True}
    for event_id in (theirs.id, new_id()):
        at = f"{EVENTS}/{event_id}"
        for method, path, body in (
            ("PATCH", at, {"capacity": 5}),
            ("POST", f"{at}/change-venue", moving),
            ("POST", f"{at}/publish", {}),
            ("POST", f"{at}/unpublish", {}),
            ("DELETE", at, None),
            ("GET", f"{at}/seating", None),
            ("PUT", f"{at}/seating", {"overrides": {}}),
            ("PUT", f"{at}/seating?dry_run=true", {"overrides": {}}),
        ):
            assert refusal(await ask(site, owner, method, path, body)) == (404, "event_not_found"), (method, path)
    for person in (owner, stranger):
        async with db.transaction(person.organization.id) as conn:
            assert await conn.fetchval("select count(*) from event_layouts") == 0
