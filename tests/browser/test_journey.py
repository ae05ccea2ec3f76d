"""One journey through a served installation, from an empty house to a cancelled event, with both sides looking on."""

import re
from http import HTTPStatus

import pytest
from playwright.async_api import Browser, ConsoleMessage, Locator, Page, Request, Response, ViewportSize, expect

from tests.browser.conftest import DESKTOP, WAIT_MS, House, Visit
from tests.make.processes import voelgoed

expect.set_options(timeout=WAIT_MS)
pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(240)]

SMALL_PHONE = ViewportSize(width=360, height=740)
SEATS = 378


async def come(browser: Browser, port: str, viewport: ViewportSize, *, is_phone: bool = False) -> Visit:
    """Somebody new; their complaints are what was said on the console, and what was asked for in vain."""
    context = await browser.new_context(
        viewport=viewport,
        base_url=f"http://127.0.0.1:{port}",
        locale="en-ZA",
        reduced_motion="reduce",
        is_mobile=is_phone,
        has_touch=is_phone,
    )
    context.set_default_timeout(WAIT_MS)
    visit = Visit(await context.new_page(), context)

    def hear(said: ConsoleMessage) -> None:
        # That it draws without a card is nobody's fault.
        if said.type in ("error", "warning") and "GL Driver Message" not in said.text:
            visit.complaints.append(said.text)

    def look(response: Response) -> None:
        if response.status >= HTTPStatus.BAD_REQUEST:
            visit.complaints.append(f"{response.status} {response.request.method} {response.url}")

    def miss(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # whoever leaves a page hangs up
            visit.complaints.append(f"{request.failure} {request.method} {request.url}")

    visit.page.on("console", hear)
    visit.page.on("pageerror", lambda failed: visit.complaints.append(str(failed)))
    visit.page.on("response", look)
    visit.page.on("requestfailed", miss)
    return visit


async def sign_in(page: Page, env: dict[str, str]) -> None:
    """The operator founds the house and makes its owner, who signs in."""
    assert voelgoed("org", "create", "karoo", "Karoo Theatre", env=env).returncode == 0
    made = voelgoed("user", "create", "me@example.org", "--org", "karoo", "--name", "Me", "--role", "owner", env=env)
    (password,) = re.findall(r"^password: (.+)$", made.stdout, re.MULTILINE)
    await page.goto("/karoo/admin")
    await page.get_by_label("E-mail").fill("me@example.org")
    await page.get_by_label("Password", exact=True).fill(password)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Karoo Theatre")


async def build(page: Page) -> None:
    """A venue, and a hall for it by the generator, put into use."""
    await page.goto("/karoo/admin/venues/new")
    await page.get_by_label("Name", exact=True).fill("Barn")
    await page.get_by_label("How many people it holds").fill("400")
    await page.get_by_label("Time zone").select_option("Africa/Johannesburg")
    await page.get_by_role("button", name="Make the venue").click()
    await page.get_by_role("link", name="New layout").click()
    await expect(page.locator("canvas")).to_have_attribute("data-drawn", "350")
    await page.get_by_role("button", name="Rows: more").click()
    await expect(page.locator("canvas")).to_have_attribute("data-drawn", str(SEATS))
    await page.get_by_label("Name of the layout").fill("Summer")
    await page.get_by_role("button", name="Save as draft").click()
    await page.get_by_role("button", name="Put into use", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Put it into use").click()
    await expect(page.get_by_text("In use", exact=True).first).to_be_visible()


async def plan(page: Page) -> str:
    """An event whose sale begins much later, seated and priced; its address."""
    await page.goto("/karoo/admin/events/new")
    await page.get_by_label("Name", exact=True).fill("Barn dance")
    await page.get_by_label("Begins", exact=True).fill("2030-03-15T19:30")
    await page.get_by_label("Ends", exact=True).fill("2030-03-15T23:00")
    await page.get_by_label("Sale begins").fill("2030-01-15T09:00")
    await page.get_by_role("button", name="Make the draft").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Barn dance")
    address = page.url
    await page.get_by_role("link", name="Seating", exact=True).click()
    await page.get_by_role("radio", name="Summer").check(force=True)  # what is seen of it lies over it
    stalls = page.locator("[data-zone=STALLS]")
    await stalls.get_by_label("Price").select_option("New price …")
    await stalls.get_by_label("Name").fill("Adult")
    await stalls.get_by_label("Amount").fill("220")
    await stalls.get_by_role("button", name="Make the price").click()
    everywhere = page.get_by_label("One price for all")
    adult = everywhere.get_by_role("option", name=re.compile("^Adult"))
    await everywhere.select_option(await adult.get_attribute("value"))
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("The seating is saved.")).to_be_visible()
    return address


async def publish(page: Page, address: str) -> None:
    await page.goto(address)
    await page.get_by_role("button", name="Publish", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Publish it").click()
    await expect(page.get_by_text("It is published. Everybody can see it.")).to_be_visible()


async def open_sale(page: Page, shop: Page) -> None:
    """Whoever comes too early is told so; the organiser opens the sale at once and goes to watch it."""
    await shop.goto("/karoo")
    await shop.get_by_role("link", name=re.compile("Barn dance")).click()
    await expect(shop.get_by_text("Not on sale yet")).to_be_visible()
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Sale begins").fill("")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("On sale", exact=True)).to_be_visible()
    await shop.reload()
    await shop.get_by_role("link", name="Choose seats").click()
    await expect_left(shop, SEATS)
    await page.get_by_role("link", name="Sale", exact=True).click()
    await expect(page.get_by_role("status").filter(has_text=re.compile("^Live$"))).to_be_visible()


async def open_row(page: Page, row: str) -> Locator:
    """The hall as a list, opened at a row of the stalls; its seats."""
    await page.get_by_role("button", name="List").click()
    await page.locator(".list").get_by_role("button", name=re.compile("^Stalls")).click()
    await page.get_by_role("button", name=re.compile(f"^Row {row}\\b")).click()
    seats = page.get_by_role("toolbar", name=f"Seats of row {row}").get_by_role("button")
    await expect(seats.first).to_be_visible()
    return seats


async def expect_left(shop: Page, free: int) -> None:
    label = re.compile(f"^Seat map: {free} of {SEATS} ")
    await expect(shop.locator(".seat-map")).to_have_attribute("aria-label", label)


async def test_from_an_empty_house_to_a_cancelled_event(browser: Browser, house: House) -> None:
    """The organiser builds, sells, blocks and cancels; a guest with a telephone follows, and neither reloads."""
    port, env = house
    desk = await come(browser, port, DESKTOP)
    stranger = await come(browser, port, SMALL_PHONE, is_phone=True)
    page, shop = desk.page, stranger.page
    await sign_in(page, env)
    await build(page)
    await publish(page, await plan(page))
    await open_sale(page, shop)
    holds = page.get_by_role("region", name="Holds", exact=True)
    await expect(holds).to_contain_text("Nobody holds anything at the moment.")
    for side in (page, shop):
        await side.evaluate("window.isStill = true")

    await (await open_row(shop, "C")).nth(4).click()
    await expect(shop.locator("section.basket")).to_contain_text("1 place held for you")
    await expect(holds.get_by_role("row").filter(has_text="Guest")).to_contain_text("C 5")
    await expect(page.locator("[data-zone=STALLS]")).to_contain_text("Held 1")

    row = await open_row(page, "F")
    seats = await row.count()
    await page.get_by_role("group", name="What a click takes").get_by_role("button", name="Row").click()
    await row.first.click()
    await page.get_by_label("Why (for the journal)").fill("The cameras stand here")
    await page.get_by_role("button", name="Take out of sale").click()
    await expect(page.get_by_text(f"{seats} seats are out of sale.")).to_be_visible()
    await expect_left(shop, SEATS - 1 - seats)
    await expect(shop.locator("section.basket")).to_contain_text("1 place held for you")

    await page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Why", exact=True).fill("The barn has no roof")
    await dialog.get_by_role("button", name="Yes, cancel it").click()
    await expect(page.get_by_text("It is cancelled.")).to_be_visible()
    await expect(shop.get_by_role("alert").filter(has_text="This event was cancelled")).to_be_visible()
    await expect(holds).to_contain_text("Nobody holds anything at the moment.")
    await expect(page.get_by_text("seats stay as they are")).to_be_visible()
    for visit in (desk, stranger):
        assert await visit.page.evaluate("window.isStill") is True
        assert visit.complaints == []
        await visit.context.close()
