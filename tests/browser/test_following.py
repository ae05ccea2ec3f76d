"""Open pages of the organiser follow what happens elsewhere, without being loaded anew; and lead from sale to sale."""

import re

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PRICES, Visit, open_visit
from tests.browser.test_buying import SMALL_PHONE, said_of
from tests.browser.test_organiser import come_in
from tests.make.accounts import Person, make_person
from tests.make.holds import Sale, on_sale
from tests.make.layouts import theatre
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.wiring import Services

expect.set_options(timeout=15_000)
pytestmark = pytest.mark.usefixtures("following")


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.fixture
async def desk(visit: Visit, site: Site, owner: Person) -> Page:
    await come_in(visit, site, owner)
    await visit.page.emulate_media(reduced_motion="reduce")
    return visit.page


async def test_the_home_counts_as_it_is_sold(desk: Page, visit: Visit, sale: Sale) -> None:
    """Held, sold, taken out of sale: the bar follows each, and the server is asked for nothing."""
    await desk.goto(f"/{sale.place.slug}/admin")
    row = desk.get_by_role("region", name="On sale").get_by_role("listitem").filter(has_text=sale.event.name)
    await expect(row).to_contain_text("0 % sold · 0 of 721")
    await expect(desk.get_by_text("Up to date")).to_be_visible()
    asked: list[str] = []
    desk.on("request", lambda request: asked.append(request.url))
    somebody = sale.caller()
    held = await sale.hold(somebody, "STALLS-E-10", "STALLS-E-11")
    await expect(row).to_contain_text("2 held")
    assert (await sale.buy(somebody, *held))[0] == "sold"
    await expect(row).to_contain_text("2 of 721")
    await expect(row).not_to_contain_text("held")
    assert asked == []
    assert said_of(visit) == []


async def test_an_open_seating_page_follows_prices_and_policy(
    desk: Page, visit: Visit, site: Site, sale: Sale, owner: Person
) -> None:
    """Somebody else makes a price and says how many one may have: both are there to be used."""
    await desk.goto(f"/{sale.place.slug}/admin/events/{sale.event.id}/seating")
    choice = desk.locator("[data-zone=STALLS]").get_by_label("Price")
    await expect(choice).to_be_visible()
    limit = desk.locator("[data-field=max_seats_per_booking]")
    await desk.get_by_text("What holds for this event").click()
    await expect(limit).to_contain_text("10")
    price = {"name": "Students", "currency": "ZAR", "amount_minor": 12_000}
    made = await site.client.post("/api/admin/pricing-rules", headers=owner.headers, json=price)
    assert made.status_code == 201, made.text
    await expect(choice.get_by_role("option", name=re.compile("^Students"))).to_have_count(1)
    now = (await site.client.get("/api/admin/seating-policy", headers=owner.headers)).json()["data"]
    headers = owner.headers | {"If-Match": f'"{now["version"]}"'}
    said = {"values": {"max_seats_per_booking": 7}}
    assert (await site.client.patch("/api/admin/seating-policy", headers=headers, json=said)).status_code == 200
    await expect(limit).to_contain_text("7")
    assert said_of(visit) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, SMALL_PHONE], ids=["desktop", "phone"])
async def test_from_one_sale_to_another_by_keyboard(
    browser: Browser,
    site: Site,
    services: Services,
    sale: Sale,
    owner: Person,
    viewport: ViewportSize,
    dark: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """The others that can be watched are listed; whoever goes there sees that sale, and stays who they are."""
    other = await on_sale(
        services, sale.place, layout=theatre(), amounts=PRICES, capacity=None, slug="fees", name="Kaapse Fees"
    )
    visit = await open_visit(browser, site, viewport=viewport, dark=dark)
    await come_in(visit, site, owner)
    page = visit.page
    await page.emulate_media(reduced_motion="reduce")
    await page.goto(f"/{sale.place.slug}/admin/events/{sale.event.id}/live")
    await page.get_by_role("button", name="Another sale").focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Watch another sale")
    await expect(dialog.get_by_role("link")).to_have_count(1)
    await expect(dialog).not_to_contain_text(sale.event.name)
    assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    assert await visit.violations() == []
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Another sale")).to_be_focused()
    await page.keyboard.press("Enter")
    await dialog.get_by_role("link", name=re.compile("Kaapse Fees")).focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"{other.event.id}/live$"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Kaapse Fees")
    await expect(page.get_by_role("heading", level=1)).to_be_focused()
    await expect(page.get_by_role("heading", name=re.compile("sold, 0 of 721"))).to_be_visible()
    await expect(dialog).to_have_count(0)
    assert said_of(visit) == []
    await visit.context.close()
