"""The layout pages: a theatre from a few numbers, a file with faults, versions that are used and compared."""

import json
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, Visit, open_visit
from tests.browser.test_organiser import come_in
from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_venue
from tests.make.layouts import allow_everything, changed, make_layout, small_layout
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.events.model import Venue
from voelgoed.seating import presets
from voelgoed.seating.generate import generate

expect.set_options(timeout=15_000)
SMALL_PHONE = ViewportSize(width=360, height=740)
FIVE_FAULTS = {
    "zones.0.code": "",
    "zones.0.rows.0.label": " A",
    "zones.0.rows.1.breaks": [9],
    "zones.1.membership_tier": None,
    "zones.2.capacity": -1,
}
COLOURS = """canvas => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Map();
    for (let at = 0; at < data.length; at += 4) {
        const colour = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
        seen.set(colour, (seen.get(colour) ?? 0) + 1);
    }
    return [...seen].filter(([, count]) => count > 400).length;
}"""


@pytest.fixture
async def place(db: Database) -> Organization:
    place = await make_organization(db, name="Passievol")
    await allow_everything(db, place.id)
    return place


@pytest.fixture
async def venue(db: Database, place: Organization) -> Venue:
    return await make_venue(db, place, max_capacity=100_000)


@pytest.fixture
async def staff(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.STAFF)


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


async def plan_of(page: Page, seats: int) -> Locator:
    """The plan, once so many seats are drawn; it is not blank."""
    canvas = page.locator("canvas")
    await expect(canvas).to_have_attribute("data-drawn", str(seats))
    # Ground, floor, stage and zones at least.
    assert await canvas.evaluate(COLOURS) >= 4
    return canvas


async def versions_of(site: Site, person: Person, layout_id: object) -> list[dict[str, Any]]:
    answer = await site.client.get(f"/api/admin/layouts/{layout_id}/versions", headers=person.headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def test_a_theatre_is_changed_saved_and_drawn(
    visit: Visit, site: Site, place: Organization, venue: Venue, staff: Person
) -> None:
    """It opens with a theatre; a number that changes is drawn and counted, one that is wrong is told at its field."""
    await come_in(visit, site, staff)
    page = visit.page
    await page.goto(f"/{place.slug}/admin/venues/{venue.id}")
    await page.get_by_role("link", name="New layout").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("New layout")
    await plan_of(page, 350)

    await page.get_by_role("button", name="Rows: more").click()
    await plan_of(page, 378)
    await expect(page.get_by_role("row", name="Stalls")).to_contain_text("286")
    rows = page.get_by_role("textbox", name="Rows", exact=True)
    await rows.fill("1200")
    await expect(page.get_by_text("Between 1 and 1000.")).to_be_visible()
    await expect(rows).to_have_attribute("aria-invalid", "true")
    await plan_of(page, 378)
    await rows.fill("2")
    await plan_of(page, 33 + 92)
    await expect(page.get_by_text("Between 1 and 1000.")).to_have_count(0)

    await page.get_by_role("group", name="Add a block").get_by_role("button", name="Standing").click()
    await expect(page.get_by_role("row", name="Standing")).to_contain_text("300")
    await page.get_by_label("Name of the layout").fill("Kleinsaal")
    await page.get_by_role("button", name="Save as draft").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Kleinsaal")
    await plan_of(page, 33 + 92)
    (version,) = await versions_of(site, staff, page.url.rsplit("/", 1)[-1])
    assert (version["status"], version["seat_count"], version["total_capacity"]) == ("draft", 125, 425)
    # The browser itself notes the preview that was refused.
    assert all("400" in said for said in visit.complaints), visit.complaints


async def test_a_hundred_thousand_seats_are_drawn_and_seen_near(
    visit: Visit, site: Site, place: Organization, venue: Venue, staff: Person
) -> None:
    """Every seat of the largest preset; the wheel goes nearer, the button back to the whole."""
    await come_in(visit, site, staff)
    page = visit.page
    await page.goto(f"/{place.slug}/admin/venues/{venue.id}/layouts/new")
    await page.get_by_role("radio", name="Great stadium").check()
    canvas = await plan_of(page, 100_000)
    whole = await canvas.screenshot()
    await canvas.hover()
    await page.mouse.wheel(0, -1_200)
    await expect(page.locator(".frame-of-plan.whole")).to_have_count(0)
    near = await canvas.screenshot()
    assert near != whole
    await page.get_by_role("button", name="Show it whole").click()
    await expect(page.locator(".frame-of-plan.whole")).to_have_count(1)
    assert visit.complaints == []


async def test_a_file_with_five_faults_shows_five_and_is_mended_in_place(
    visit: Visit, site: Site, place: Organization, venue: Venue, staff: Person
) -> None:
    """Nothing is stored until nothing is wrong; the text is opened at the fault."""
    await come_in(visit, site, staff)
    page = visit.page
    await page.goto(f"/{place.slug}/admin/venues/{venue.id}/layouts/new")
    await page.get_by_role("button", name="Import").click()
    broken = json.dumps(changed(FIVE_FAULTS), indent=2)
    await page.locator("input[type=file]").set_input_files(
        {"name": "hall.json", "mimeType": "application/json", "buffer": broken.encode()}
    )
    faults = page.get_by_role("region", name="What is wrong")
    await expect(faults).to_contain_text("5 things are wrong.")
    await expect(faults.get_by_role("listitem")).to_have_count(5)
    await faults.get_by_role("button", name="Go to zones[2].capacity").click()
    text = page.get_by_label("Or paste the text")
    await expect(text).to_be_focused()
    chosen = await text.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)")
    assert chosen == "-1"
    listed = await site.client.get(f"/api/admin/layouts?venue_id={venue.id}", headers=staff.headers)
    assert listed.json()["data"] == []

    await text.fill(json.dumps(changed({})))
    await expect(page.get_by_text("3 zones, 13 seats, 313 places in all.")).to_be_visible()
    await page.get_by_role("button", name="Store the layout").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Small hall")
    await plan_of(page, 13)
    await page.get_by_role("link", name="Die Skouburg").click()
    await expect(page.get_by_role("link", name="Small hall")).to_contain_text("Not in use yet")


async def test_versions_are_used_and_compared(
    visit: Visit, site: Site, db: Database, place: Organization, venue: Venue, owner: Person
) -> None:
    """A leader puts a version into use with a reason; a sheet with a fault is refused by line; two versions differ."""
    first = await make_layout(db, venue, small_layout())
    await come_in(visit, site, owner)
    page = visit.page
    await page.goto(f"/{place.slug}/admin/layouts/{first.layout_id}")
    await plan_of(page, 13)
    await page.get_by_role("button", name="Put into use").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Why").fill("The first hall")
    await dialog.get_by_role("button", name="Put it into use").click()
    await expect(page.get_by_text("Version 1 is in use. New events can choose it.")).to_be_visible()

    async with page.expect_download() as download:
        await page.get_by_role("link", name="Seats, CSV").click()
    sheet = (await (await download.value).path()).read_text("utf-8-sig")
    lines = sheet.splitlines()
    assert len(lines) == 14
    await page.get_by_role("button", name="New version").click()
    text = page.get_by_label("Or paste the text")
    await text.fill("\n".join([*lines[:3], lines[3].replace(",100,", ",wide,") + ",x", *lines[4:]]))
    await expect(page.get_by_role("region", name="What is wrong").get_by_text("line 4").first).to_be_visible()
    await expect(page.get_by_role("button", name="Seats, CSV", pressed=True)).to_be_visible()
    await page.get_by_role("button", name="Layout, JSON").click()
    document = changed({"zones.0.rows.0.seats.0.x": 40, "zones.0.rows.0.seats.4": {"number": 5, "x": 250, "y": 100}})
    await text.fill(json.dumps(document))
    await page.get_by_role("button", name="Store the version").click()
    await expect(page.get_by_text("Version 2 is stored as a draft.")).to_be_visible()
    await plan_of(page, 14)

    await page.get_by_role("button", name="Compare").click()
    await expect(page.get_by_role("button", name="Added 1")).to_be_visible()
    await expect(page.get_by_text("S · row A · seat 5")).to_be_visible()
    await page.get_by_role("button", name="Moved 1").click()
    await expect(page.get_by_text("10 cm away")).to_be_visible()
    versions = await versions_of(site, owner, first.layout_id)
    assert [(one["version"], one["status"]) for one in versions] == [(2, "draft"), (1, "active")]


async def test_staff_bring_versions_but_do_not_put_them_into_use(
    visit: Visit, site: Site, db: Database, place: Organization, venue: Venue, staff: Person
) -> None:
    """Who may activate and archive is told by what is offered; whoever scans looks and no more."""
    layout = await make_layout(db, venue, small_layout())
    await come_in(visit, site, staff)
    page = visit.page
    await page.goto(f"/{place.slug}/admin/layouts/{layout.layout_id}")
    await plan_of(page, 13)
    await expect(page.get_by_role("button", name="New version")).to_be_visible()
    for move in ("Put into use", "Archive"):
        await expect(page.get_by_role("button", name=move)).to_have_count(0)
    assert visit.complaints == []

    await come_in(visit, site, await make_person(db, place, Role.SCANNER))
    await page.goto(f"/{place.slug}/admin/layouts/{layout.layout_id}")
    await plan_of(page, 13)
    await expect(page.get_by_role("button", name="New version")).to_have_count(0)
    await page.goto(f"/{place.slug}/admin/venues/{venue.id}/layouts/new")
    await expect(page.get_by_text("This is not yours to do.")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing_on_the_layout_pages(
    browser: Browser, site: Site, db: Database, place: Organization, venue: Venue, owner: Person, *, dark: bool
) -> None:
    """Generator, import with faults, plan, comparison and dialog, on a small phone and on a desk; nothing too wide."""
    layout = await make_layout(db, venue, generate(presets.preset("festival")))
    answer = await site.client.post(
        f"/api/admin/layouts/{layout.layout_id}/versions", content=json.dumps(changed({})), headers=owner.headers
    )
    assert answer.status_code == 201, answer.text
    for viewport in (DESKTOP, SMALL_PHONE):
        visit = await open_visit(browser, site, viewport=viewport, dark=dark)
        await come_in(visit, site, owner)
        page = visit.page

        async def is_fine(page: Page = page, visit: Visit = visit) -> None:
            assert await visit.violations() == []
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        await page.goto(f"/{place.slug}/admin/venues/{venue.id}/layouts/new")
        await plan_of(page, 350)
        await page.get_by_text("Place, distances and access").click()
        await page.get_by_role("textbox", name="Rows", exact=True).fill("x")
        await expect(page.get_by_text("Give a whole number.")).to_be_visible()
        await is_fine()
        await page.get_by_role("button", name="Import").click()
        await page.get_by_label("Or paste the text").fill(json.dumps(changed(FIVE_FAULTS)))
        await expect(page.get_by_text("5 things are wrong.")).to_be_visible()
        await is_fine()
        await page.goto(f"/{place.slug}/admin/layouts/{layout.layout_id}")
        await plan_of(page, 13)
        await page.get_by_role("button", name="Compare").click()
        await expect(page.get_by_role("button", name="Removed")).to_be_visible()
        await is_fine()
        await page.get_by_role("button", name="Archive").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await is_fine()
        await visit.context.close()
