"""Buying at the edges: clocks that are wrong, keys that are quick, pages that are left, hidden and come back to."""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, FloatRect, Page, ViewportSize, async_playwright, expect

from tests.browser.conftest import PRICES, Guest, Visit, open_visit
from tests.browser.test_buying import address, basket, hold_by, open_sale, rows, said_of, tap
from tests.make.accounts import make_person
from tests.make.events import soon
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.layouts import theatre
from tests.make.web import Site
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.seating.generate import generate
from voelgoed.seating.model import Layout, Shape, ShapeKind
from voelgoed.seating.spec import AreaSpec, RowsSpec, Spec
from voelgoed.wiring import Services

SMALL_PHONE = ViewportSize(width=360, height=740)
LYING_PHONES = [ViewportSize(width=640, height=360), ViewportSize(width=844, height=390)]
BANDS = 7
pytestmark = pytest.mark.usefixtures("following")


def many_prices() -> Layout:
    """A hall with more prices than four, and two zones that nobody has drawn."""
    rows = [
        RowsSpec(
            code=f"R{band}",
            name=f"Tier {'ABCDEFG'[band]}",
            rows=2,
            seats=20 + band,
            distance=500 + band * 200,
            curve_radius=1_900 + band * 200,
            row_pitch=88,
            first_row=1 + 2 * band,
        )
        for band in range(BANDS)
    ]
    areas = [AreaSpec(code="PIT", name="Pit", capacity=240), AreaSpec(code="LAWN", name="Lawn", capacity=900)]
    stage = Shape(kind=ShapeKind.STAGE, label="Stage", outline=((-560, 60), (560, 60), (620, 330), (-620, 330)))
    return generate(Spec(name="Many prices", blocks=(*rows, *areas), shapes=(stage,)))


@pytest.fixture
async def dear(services: Services, place: Organization) -> Sale:
    """On sale at nine prices."""
    amounts = {f"R{band}": 90_000 - band * 12_000 for band in range(BANDS)} | {"PIT": 15_000, "LAWN": 9_500}
    return await on_sale(services, place, layout=many_prices(), amounts=amounts, capacity=None, slug="pryse")


async def until_watched(services: Services, count: int) -> None:
    """Until so many streams are open."""
    async with asyncio.timeout(15):
        while services.maps.viewers_count != count:
            await asyncio.sleep(0.02)


async def box_of(page: Page, selector: str) -> FloatRect:
    box = await page.locator(selector).bounding_box()
    assert box is not None
    return box


def overlap(one: FloatRect, other: FloatRect) -> bool:
    across = one["x"] < other["x"] + other["width"] and other["x"] < one["x"] + one["width"]
    return across and one["y"] < other["y"] + other["height"] and other["y"] < one["y"] + one["height"]


@pytest.mark.parametrize("hours", [-1, 1], ids=["slow", "fast"])
async def test_a_sale_opens_on_time_where_the_clock_is_an_hour_off(
    visit: Visit, services: Services, place: Organization, hours: int
) -> None:
    """The page opens by the clock of the server, by itself."""
    page = visit.page
    await page.add_init_script(
        f"""(() => {{
            const Real = Date, now = () => Real.now() + {hours} * 3_600_000;
            window.Date = class extends Real {{
                constructor(...given) {{ super(...(given.length > 0 ? given : [now()])); }}
                static now() {{ return now(); }}
            }};
        }})()"""
    )
    opens = soon(seconds=6)
    later = await on_sale(services, place, layout=theatre(), amounts=PRICES, capacity=None, sale_start_at=opens)
    await open_sale(page, later)
    told = page.get_by_role("status").filter(has_text="Not on sale yet")
    await expect(told).to_be_visible()
    await expect(told).to_have_count(0)
    assert soon(seconds=0) >= opens
    await tap(page, later, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert said_of(visit) == []


async def test_quick_keys_are_all_meant(visit: Visit, sale: Sale) -> None:
    """Two seats one after the other without a pause, and one that is taken and given back before anybody answers."""
    page = visit.page
    await open_sale(page, sale)
    await page.locator(".layer [tabindex='0']").focus()
    for key in ("ArrowDown", "Enter", "Enter", "Enter", "ArrowRight", "Enter"):
        await page.keyboard.press(key)
    await expect(basket(page)).to_contain_text("2 places held for you")
    for key in ("ArrowRight", "Enter", "Enter"):
        await page.keyboard.press(key)
    seat = page.locator(".layer [tabindex='0']:focus")
    await expect(seat).to_have_attribute("aria-label", re.compile("available$"))
    await expect(basket(page)).to_contain_text("2 places held for you")
    assert len(await rows(sale)) == 2

    # A key that is held down is one deed.
    await page.keyboard.down("Enter")
    for _ in range(5):
        await page.keyboard.down("Enter")
    await page.keyboard.up("Enter")
    await expect(basket(page)).to_contain_text("3 places held for you")
    await expect(seat).to_have_attribute("aria-label", re.compile("yours$"))
    assert len(await rows(sale)) == 3
    assert said_of(visit) == []


@pytest.mark.parametrize("viewport", LYING_PHONES, ids=["640", "844"])
async def test_tips_keep_clear_of_the_buttons(guest: Guest, sale: Sale, viewport: ViewportSize) -> None:
    """On a phone that lies on its side, wherever the seat is: the tip is whole, and beside the buttons."""
    page = (await guest(viewport, is_touch=True)).page
    await open_sale(page, sale)
    await page.locator(".layer [tabindex='0']").focus()
    for _ in range(2):
        await page.keyboard.press("Enter")
    for key in (*["ArrowRight"] * 9, *["ArrowDown"] * 4, *["ArrowLeft"] * 4):
        await page.keyboard.press(key)
        await page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        tip, zoom, stage = [await box_of(page, one) for one in (".tip", ".zoom", ".stage")]
        assert not overlap(tip, zoom), (tip, zoom)
        assert tip["x"] >= stage["x"]
        assert tip["y"] >= stage["y"]
        assert tip["x"] + tip["width"] <= stage["x"] + stage["width"]
        assert tip["y"] + tip["height"] <= stage["y"] + stage["height"]


async def test_who_leaves_and_goes_back_finds_everything_as_it_is(
    visit: Visit, site: Site, services: Services, sale: Sale, db: Database
) -> None:
    """By a link of the page and by another document: one stream, what is held, and what others do meanwhile."""
    page, rival = visit.page, await make_person(db, sale.place)
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    await until_watched(services, 1)

    await page.get_by_role("link", name=re.compile("^Back to")).click()
    await expect(page.get_by_role("link", name="Choose seats")).to_be_visible()
    await until_watched(services, 0)
    await page.go_back()
    await expect(basket(page)).to_contain_text("1 place held for you")
    await until_watched(services, 1)

    await page.goto("/")
    await until_watched(services, 0)
    await hold_by(site, rival, sale, "STALLS-E-12")
    await page.go_back()
    await still_live(page, site, services, sale, db)
    assert said_of(visit) == []


async def still_live(page: Page, site: Site, services: Services, sale: Sale, db: Database) -> None:
    """The basket is true, one stream is read, and a seat that is taken now is seen to be."""
    await expect(basket(page)).to_contain_text("1 place held for you")
    await until_watched(services, 1)
    await page.locator(".layer [tabindex='0']").focus()
    free = re.compile(r"(\d+) of (\d+)")
    before = await page.locator(".seat-map").get_attribute("aria-label")
    assert before
    assert free.search(before)
    await hold_by(site, await make_person(db, sale.place), sale, "STALLS-F-12")
    await expect(page.locator(".seat-map")).not_to_have_attribute("aria-label", before)


@pytest.fixture
async def keeping() -> AsyncIterator[Browser]:
    """A browser that keeps pages for whoever goes back, as people's do; Playwright forbids it that otherwise."""
    program = os.environ.get("VOELGOED_CHROMIUM") or shutil.which("chromium")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], ignore_default_args=["--disable-back-forward-cache"]
        )
        yield launched
        await launched.close()


async def test_a_page_that_the_browser_has_kept_goes_on(
    keeping: Browser, site: Site, services: Services, sale: Sale, db: Database
) -> None:
    """It let the stream go when it was left, so it could be kept; back on it nothing is loaded anew."""
    visit = await open_visit(keeping, site, viewport=ViewportSize(width=1280, height=800), dark=False)
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    await page.evaluate("window.isTheSamePage = true")
    await page.goto("/")
    await until_watched(services, 0)
    await page.go_back(wait_until="commit")
    assert await page.evaluate("window.isTheSamePage === true")
    await still_live(page, site, services, sale, db)
    await visit.context.close()


async def test_a_hold_that_runs_out_behind_another_tab_is_told_on_return(
    visit: Visit, sale: Sale, owner_conn: Connection
) -> None:
    """The page was hidden and its timers stood still: who comes back reads that the time is up, and may try again."""
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    become = """is => {
        Object.defineProperty(document, 'visibilityState', { value: is, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    await page.evaluate(become, "hidden")
    (held,) = await rows(sale)
    await let_pass(owner_conn, held["id"])
    await page.evaluate(become, "visible")
    await expect(basket(page)).to_contain_text("These are no longer held for you")
    await expect(page.locator("[data-said]")).to_contain_text("no longer held for you")
    await basket(page).get_by_role("button", name="Take Stalls Row E, seat 10 again").click()
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert said_of(visit) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_every_price_has_its_colour_and_what_is_not_drawn_is_found(
    guest: Guest,
    dear: Sale,
    dark: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """On a small phone: no two lines of the legend look alike; a zone without a place on the map is one tap away."""
    visit = await guest(SMALL_PHONE, dark=dark)
    page = visit.page
    await open_sale(page, dear)
    looks: list[str] = await page.locator(".legend svg").evaluate_all("all => all.map(one => one.innerHTML)")
    assert len(looks) == len(set(looks)) == BANDS

    pit = page.get_by_role("button", name=re.compile("^Pit, "))
    box = await pit.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["y"] + box["height"] <= SMALL_PHONE["height"]
    assert not overlap(box, await box_of(page, ".zoom"))
    assert await visit.violations() == []
    await pit.click()
    await page.get_by_role("dialog").get_by_role("button", name="Hold 1 place").click()
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert address(dear) in page.url


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_an_event_without_seats_shows_what_there_is(
    guest: Guest,
    services: Services,
    place: Organization,
    dark: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """On a small phone the zones stand where the map would be, with nothing to open first."""
    areas = (AreaSpec(code="PIT", name="Pit", capacity=240), AreaSpec(code="LAWN", name="Lawn", capacity=900))
    open_air = await on_sale(
        services, place, layout=generate(Spec(name="Open air", blocks=areas, shapes=())), capacity=None, slug="buitelug"
    )
    visit = await guest(SMALL_PHONE, dark=dark)
    page = visit.page
    await page.goto(address(open_air))
    lawn = page.get_by_role("button", name=re.compile("^Lawn"))
    await expect(lawn).to_contain_text("900 left")
    await expect(lawn).to_be_in_viewport(ratio=1)
    assert await visit.violations() == []
    await lawn.click()
    await page.get_by_role("dialog").get_by_role("button", name="Hold 1 place").click()
    await expect(basket(page)).to_contain_text("1 place held for you")
    await expect(lawn).to_contain_text("899 left")
    assert said_of(visit) == []
