"""The organiser arranges an event's seating, prices its zones, and an owner says what seating may be."""

from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.conftest import DESKTOP, Visit, open_visit
from tests.browser.test_layouts import SMALL_PHONE, plan_of
from tests.browser.test_organiser import come_in
from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, make_venue
from tests.make.seating import Seated, active_pin, hold_seat, seated_event, sell_seat, take_places
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR
from voelgoed.seating import policies
from voelgoed.wiring import Services

expect.set_options(timeout=15_000)


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db, name="Passievol")


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.fixture
async def seated(db: Database, services: Services, place: Organization) -> Seated:
    """A draft in the small hall: 10 seats in the stalls, 3 for members, 300 standing; each with a price."""
    return await seated_event(db, services.studio, place, capacity=313)


def address(place: Organization, event_id: UUID) -> str:
    return f"/{place.slug}/admin/events/{event_id}/seating"


async def seating_of(site: Site, person: Person, event_id: UUID) -> dict[str, Any]:
    answer = await site.client.get(f"/api/admin/events/{event_id}/seating", headers=person.headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def put(site: Site, person: Person, event_id: UUID, **changes: Any) -> None:
    """Save the seating with some other overrides, as somebody else."""
    now = await seating_of(site, person, event_id)
    layout = now["layout"]
    body = {
        "layout_id": layout["layout_id"],
        "layout_version": layout["layout_version"],
        "overrides": now["overrides"] | changes,
    }
    headers = person.headers | {"If-Match": f'"{now["version"]}"'}
    answer = await site.client.put(f"/api/admin/events/{event_id}/seating", json=body, headers=headers)
    assert answer.status_code == 200, answer.text


def zone(page: Page, code: str) -> Locator:
    return page.locator(f"[data-zone={code}]")


def total(page: Page) -> Locator:
    return page.locator("[data-total]")


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Save", exact=True).click()


async def test_a_draft_gets_a_hall_prices_and_an_own_word(
    visit: Visit, site: Site, db: Database, services: Services, place: Organization, owner: Person
) -> None:
    """From no layout at all to a priced hall: totals follow every step, and what is stored is what was seen."""
    venue = await make_venue(db, place, max_capacity=400)
    pin = await active_pin(services.studio, venue)
    event = await make_event(db, place, venue, capacity=320)
    await come_in(visit, site, owner)
    page = visit.page
    await page.goto(f"/{place.slug}/admin/events/{event.id}")
    await page.get_by_role("link", name="Seating", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Seating")
    await expect(total(page)).to_have_text("320")
    await expect(page.get_by_text("One zone has no price.")).to_be_visible()

    await page.get_by_role("radio", name="Small hall").check(force=True)
    await plan_of(page, 13)
    await expect(total(page)).to_have_text("313")
    await expect(page.get_by_text("3 zones have no price.")).to_be_visible()
    await _make_price(page)
    await page.get_by_label("Seats by name").fill("Stalls A 1-3, B 6, B 99")
    await expect(page.get_by_text("Seats found: 4.")).to_be_visible()
    await expect(page.get_by_text("“B 99”")).to_be_visible()
    await page.get_by_role("button", name="Block", exact=True).click()
    await expect(total(page)).to_have_text("309")
    await page.get_by_role("button", name="Open Stalls B 6 again").click()
    await expect(total(page)).to_have_text("310")
    await zone(page, "V").get_by_role("switch").click()
    await expect(total(page)).to_have_text("307")
    pit = zone(page, "P")
    await pit.get_by_text("How it is sold").click()
    await pit.get_by_label("How many people").fill("301")
    await expect(pit.get_by_role("textbox")).to_have_attribute("aria-invalid", "true")
    await pit.get_by_label("How many people").fill("250")
    await expect(total(page)).to_have_text("257")
    await page.get_by_text("What holds for this event").click()
    field = page.locator("[data-field=max_seats_per_booking]")
    await field.get_by_role("button", name="Say otherwise").click()
    await field.get_by_role("textbox").fill("4")
    await save(page)
    await expect(page.get_by_text("The seating is saved.")).to_be_visible()

    kept = await seating_of(site, owner, event.id)
    said = kept["overrides"]
    zones = {one["code"]: one["zone_id"] for one in kept["zones"]}
    assert (kept["layout"]["layout_id"], kept["layout"]["layout_version"]) == (str(pin[0]), pin[1])
    assert len(said["blocked_seat_ids"]) == 3
    assert said["disabled_zones"] == [zones["V"]]
    assert said["zone_overrides"] == {zones["P"]: {"capacity": 250}}
    assert said["pricing_zones"].keys() == set(zones.values())
    assert said["seating_overrides"] == {"max_seats_per_booking": 4}
    assert kept["totals"]["total"] == 257
    (rule,) = (await site.client.get("/api/admin/pricing-rules", headers=owner.headers)).json()["data"]
    assert (rule["amount_minor"], rule["by_category"]) == (45_050, {"wheelchair": 20_000})
    # The browser itself notes the answers that were refusals.
    assert all("400" in said for said in visit.complaints), visit.complaints


async def _make_price(page: Page) -> None:
    """A price is made at a zone and given to all; what may never be dearer is told at its field."""
    stalls = zone(page, "S")
    await stalls.get_by_label("Price").select_option("New price …")
    await stalls.get_by_label("Name").fill("Adult")
    await stalls.get_by_label("Amount").fill("450,5")
    await stalls.get_by_text("Other amounts for some seats").click()
    await stalls.get_by_label("Wheelchair space").fill("900")
    await stalls.get_by_role("button", name="Make the price").click()
    await expect(stalls.get_by_text("This kind never costs more than the others.")).to_be_visible()
    await stalls.get_by_label("Wheelchair space").fill("200")
    await stalls.get_by_role("button", name="Make the price").click()
    await expect(stalls.get_by_text("wheelchair space")).to_contain_text("200")
    await page.get_by_label("One price for all 3").select_option(index=1)
    await expect(page.get_by_text("have no price.")).to_have_count(0)


async def test_a_seat_is_blocked_on_the_plan(
    visit: Visit, site: Site, place: Organization, seated: Seated, owner: Person
) -> None:
    """A click takes one seat, or its row, and a second one gives it back."""
    await come_in(visit, site, owner)
    page = visit.page
    await page.goto(address(place, seated.event.id))
    canvas = await plan_of(page, 13)
    box = await canvas.bounding_box()
    assert box is not None
    at = await _find_seat(page, canvas)
    await canvas.click(position=at)
    await expect(page.get_by_text("1 seats")).to_be_visible()
    await expect(total(page)).to_have_text("312")
    await canvas.click(position=at)
    await expect(page.get_by_text("0 seats")).to_be_visible()
    await page.get_by_role("button", name="its row").click()
    await canvas.click(position=at)
    await expect(page.get_by_role("list", name="Blocked seats").get_by_role("listitem")).to_have_count(1)
    await page.get_by_role("button", name="Discard").click()
    await expect(total(page)).to_have_text("313")
    await expect(page.get_by_role("button", name="Save", exact=True)).to_have_count(0)
    assert visit.complaints == []


async def _find_seat(page: Page, canvas: Locator) -> Any:
    """A place of the plan where a seat is, by what is told of it."""
    box = await canvas.bounding_box()
    assert box is not None
    for down in range(20, int(box["height"]), 8):
        for across in range(int(box["width"] / 4), int(box["width"] * 3 / 4), 8):
            await page.mouse.move(box["x"] + across, box["y"] + down)
            if await page.locator(".told").get_by_text("row").count():
                return {"x": across, "y": down}
    raise AssertionError("there is no seat on the plan")


async def test_what_somebody_else_saved_is_kept_beside_what_was_done_here(
    visit: Visit, site: Site, db: Database, place: Organization, seated: Seated, owner: Person
) -> None:
    """Saved in between by another: nothing is lost, what both did is told, and saving again keeps both."""
    other = await make_person(db, place, Role.ADMIN)
    await come_in(visit, site, owner)
    page = visit.page
    # No stream: the page learns of it only when it saves.
    await page.route("**/api/admin/feed*", lambda route: route.abort())
    await page.goto(address(place, seated.event.id))
    await plan_of(page, 13)
    await page.get_by_label("Seats by name").fill("Stalls B 3")
    await page.get_by_role("button", name="Block", exact=True).click()
    await expect(total(page)).to_have_text("312")
    pit = str(seated.hall.zone_ids()["P"])
    await put(site, other, seated.event.id, disabled_zones=[pit])
    await save(page)
    await expect(page.get_by_text("so nothing of yours was saved")).to_be_visible()
    await expect(page.get_by_text("They changed: zones that are on or off.")).to_be_visible()
    await expect(total(page)).to_have_text("12")
    await save(page)
    await expect(page.get_by_text("The seating is saved.")).to_be_visible()
    said = (await seating_of(site, owner, seated.event.id))["overrides"]
    assert said["disabled_zones"] == [pit]
    assert len(said["blocked_seat_ids"]) == 1


async def test_places_that_people_have_are_not_taken_away(
    visit: Visit,
    site: Site,
    db: Database,
    services: Services,
    owner_conn: Connection,
    place: Organization,
    owner: Person,
) -> None:
    """A published event shows what is held and sold; what would take it away is refused with the very places."""
    seated = await seated_event(db, services.studio, place, status="published")
    await hold_seat(owner_conn, seated.event, seated.ordinal("S-A-1"))
    await sell_seat(owner_conn, seated.event, seated.ordinal("S-A-2"))
    await take_places(owner_conn, seated.event, seated.hall.zone_ids()["P"], held=2, sold=40)
    await come_in(visit, site, owner)
    page = visit.page
    await page.goto(address(place, seated.event.id))
    await plan_of(page, 13)
    await expect(zone(page, "S")).to_contain_text("1 held")
    await expect(zone(page, "S")).to_contain_text("1 sold")
    await expect(zone(page, "P")).to_contain_text("258 of 300 free")
    await page.get_by_label("Seats by name").fill("Stalls A 1-2")
    await page.get_by_role("button", name="Block", exact=True).click()
    await zone(page, "P").get_by_role("switch").click()
    await save(page)
    alert = page.get_by_role("alert").filter(has_text="People have places")
    await expect(alert).to_contain_text("Stalls, row A, seat 1: held")
    await expect(alert).to_contain_text("Stalls, row A, seat 2: sold")
    await expect(alert).to_contain_text("Pit: 2 held and 40 sold")
    kept = await seating_of(site, owner, seated.event.id)
    assert kept["overrides"].get("blocked_seat_ids", []) == []


async def test_an_owner_changes_the_policy_and_the_lock_stays(
    visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """Only what was changed is sent; what the platform locked is shown with its lock; staff look and no more."""
    async with db.transaction(place.id) as conn:
        await policies.save(
            conn,
            place.id,
            {"max_holds_per_ip": 50, "locked_fields": ["max_holds_per_ip"]},
            by=OPERATOR,
            role=Role.SUPER_ADMIN,
            reason="test",
        )
    await come_in(visit, site, owner)
    page = visit.page
    await page.goto(f"/{place.slug}/admin")
    await page.get_by_role("navigation").get_by_role("link", name="Policy").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Seating policy")
    locked = page.locator("[data-field=max_holds_per_ip]")
    await expect(locked).to_contain_text("Set by the platform")
    await expect(locked.get_by_role("textbox")).to_have_count(0)
    seats = page.locator("[data-field=max_seats_per_booking]")
    await seats.get_by_role("textbox").fill("99")
    await expect(seats.get_by_text("Between 1 and 40.")).to_be_visible()
    await seats.get_by_role("textbox").fill("6")
    await page.locator("[data-field=allow_vip_zones]").get_by_role("switch").click()
    await expect(page.get_by_text("2 changes are not saved.")).to_be_visible()
    async with page.expect_request(lambda request: request.method == "PATCH") as sent:
        await page.get_by_role("button", name="Save", exact=True).click()
    assert (await sent.value).post_data_json == {"values": {"allow_vip_zones": True, "max_seats_per_booking": 6}}
    await expect(page.get_by_text("The policy is saved")).to_be_visible()
    await expect(seats).to_contain_text("Your own")

    await come_in(visit, site, await make_person(db, place, Role.STAFF))
    await page.goto(f"/{place.slug}/admin/policy")
    await expect(page.get_by_text("Owners change the policy.")).to_be_visible()
    await expect(page.get_by_role("switch")).to_have_count(0)
    assert visit.complaints == []


async def test_those_who_scan_look_and_no_more(
    visit: Visit, site: Site, db: Database, place: Organization, seated: Seated
) -> None:
    """Everything is shown and nothing is offered; the policy is not theirs to see."""
    await come_in(visit, site, await make_person(db, place, Role.SCANNER))
    page = visit.page
    await page.goto(address(place, seated.event.id))
    await plan_of(page, 13)
    await expect(page.get_by_text("You can look at the seating.")).to_be_visible()
    await expect(page.get_by_role("switch")).to_have_count(0)
    await expect(page.get_by_role("button", name="Block", exact=True)).to_have_count(0)
    await expect(page.get_by_role("link", name="Policy")).to_have_count(0)
    assert visit.complaints == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing_on_the_seating_pages(
    browser: Browser, site: Site, place: Organization, seated: Seated, owner: Person, *, dark: bool
) -> None:
    """Everything open and something wrong, on a small phone and on a desk; nothing too wide."""
    for viewport in (DESKTOP, SMALL_PHONE):
        visit = await open_visit(browser, site, viewport=viewport, dark=dark)
        await come_in(visit, site, owner)
        page = visit.page

        async def is_fine(page: Page = page, visit: Visit = visit) -> None:
            assert await visit.violations() == []
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        await page.goto(address(place, seated.event.id))
        await plan_of(page, 13)
        await is_fine()
        for code in ("S", "V", "P"):
            await zone(page, code).get_by_text("How it is sold").click()
        await zone(page, "S").get_by_label("Who may book").select_option("role_based")
        await zone(page, "P").get_by_label("How many people").fill("301")
        await expect(zone(page, "P").get_by_role("textbox")).to_have_attribute("aria-invalid", "true")
        await page.get_by_label("Seats by name").fill("Stalls A 1, Z 9")
        await zone(page, "V").get_by_label("Price").select_option("New price …")
        await page.get_by_text("What holds for this event").click()
        await page.locator("[data-field=default_hold_ttl_minutes]").get_by_role("button", name="Say otherwise").click()
        await is_fine()
        await page.goto(f"/{place.slug}/admin/policy")
        await page.locator("[data-field=max_group_split]").get_by_role("textbox").fill("x")
        await page.locator("[data-field=allow_vip_zones]").get_by_role("switch").click()
        await is_fine()
        await visit.context.close()
