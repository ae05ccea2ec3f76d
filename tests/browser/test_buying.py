"""Somebody buys: from an event's page to held seats, by mouse, by keyboard, by finger, alone and against others."""

import asyncio
import re
from typing import Any
from uuid import UUID

import httpx2
import pytest
from playwright.async_api import Browser, Locator, Page, Response, Route, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PRICES, Guest, Visit
from tests.browser.test_organiser import come_in
from tests.make.accounts import Person, make_person
from tests.make.events import make_event, soon
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.layouts import theatre
from tests.make.seating import publish
from tests.make.web import Site
from tests.sim.shop import Shop
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.seating import presets
from voelgoed.wiring import Services

expect.set_options(timeout=15_000)
SMALL_PHONE = ViewportSize(width=360, height=740)
HOLD_S = 600
SCRIPTS_GZIP_MAX = 150 * 1024
SPACE = "[\u00a0\u202f ]"
pytestmark = pytest.mark.usefixtures("following")


def address(sale: Sale) -> str:
    return f"/{sale.place.slug}/events/{sale.event.slug}/seats"


def basket(page: Page) -> Locator:
    return page.locator("section.basket")


def said_of(visit: Visit) -> list[str]:
    """What the browser complained about; that it draws without a card is nobody's fault."""
    return [complaint for complaint in visit.complaints if "GL Driver Message" not in complaint]


async def open_sale(page: Page, sale: Sale) -> None:
    await page.emulate_media(reduced_motion="reduce")
    await page.goto(address(sale))
    await expect(page.get_by_role("heading", level=1)).to_have_text(sale.event.name)
    await expect(page.locator(".frame[data-drawn]")).to_be_visible()
    await expect(page.get_by_text("The seats are coming")).to_have_count(0)


async def screen_place(page: Page, sale: Sale | Shop, code: str) -> tuple[float, float]:
    """Where a seat is on the screen, as the map is turned now."""
    x, y = next((seat.x, seat.y) for _, _, seat in sale.seated.hall.layout.seats() if seat.code == code)
    at: list[float] = await page.evaluate(
        """([x, y]) => {
            const layer = document.querySelector('.layer');
            const [tx, ty, k] = layer.style.transform.match(/-?\\d[\\d.e-]*/g).map(Number);
            const box = layer.parentElement.getBoundingClientRect();
            return [box.left + x * k + tx, box.top + y * k + ty];
        }""",
        [x, y],
    )
    return at[0], at[1]


async def tap(page: Page, sale: Sale | Shop, code: str, *, by_finger: bool = False) -> None:
    """Point at a seat and press; where seats are too small a press only goes nearer, to a section and then to seats."""
    transform = page.locator(".layer")
    press = page.touchscreen.tap if by_finger else page.mouse.click
    before = None
    while before != (before := await transform.get_attribute("style")):
        await press(*await screen_place(page, sale, code))
        await page.wait_for_timeout(100)


async def rows(sale: Sale) -> list[Any]:
    """What is held now, as it stands in the table."""
    return [row for row in await sale.rows() if row["status"] == "active"]


async def hold_by(site: Site, person: Person, sale: Sale, code: str) -> httpx2.Response:
    path = f"/api/events/{sale.event.id}/seats/{sale.seat(code)}/reserve"
    return await site.client.post(path, headers=person.headers)


def price(rand: int) -> re.Pattern[str]:
    """As people here write it, whatever stands for the gap."""
    grouped = f"{rand:,}".replace(",", f"{SPACE}?")
    return re.compile(f"R{SPACE}?{grouped}")


async def test_the_seats_come_with_little_code(browser: Browser, site: Site, sale: Sale) -> None:
    """Every script that a browser fetches for them the first time, as large as it came over the wire."""
    context = await browser.new_context(base_url=site.address, locale="en-ZA", service_workers="block")
    await context.set_extra_http_headers({"accept-encoding": "gzip"})
    page = await context.new_page()
    came: list[Response] = []
    page.on("response", lambda response: came.append(response) if "javascript" in _type_of(response) else None)
    await open_sale(page, sale)
    assert {response.headers.get("content-encoding", "none") for response in came} <= {"gzip", "none"}
    sizes = {response.url.rsplit("/", 1)[-1]: (await response.request.sizes())["responseBodySize"] for response in came}
    await context.close()
    print(f"\nscripts of the seats, gzip: {sum(sizes.values())} of at most {SCRIPTS_GZIP_MAX} bytes: {sizes}")
    assert len(sizes) > 3
    assert 0 < sum(sizes.values()) <= SCRIPTS_GZIP_MAX


def _type_of(response: Response) -> str:
    return response.headers.get("content-type", "")


@pytest.mark.req("UI-01", "UI-02", "UI-07", "PUB-11")
async def test_from_the_event_to_held_seats_by_mouse(visit: Visit, sale: Sale) -> None:
    """A tap holds at once; the basket counts, adds up, gives back one and all, and is there after a reload."""
    page = visit.page
    await page.emulate_media(reduced_motion="reduce")
    await page.goto(f"/{sale.place.slug}/events/{sale.event.slug}")
    await page.get_by_role("link", name="Choose seats").click()
    await expect(page.get_by_role("heading", level=1)).to_be_focused()
    await expect(basket(page)).to_contain_text("Nothing is held")
    await expect(page.locator(".frame[data-drawn]")).to_be_visible()

    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    await expect(basket(page).get_by_role("listitem").filter(has_text="Row E, seat 10")).to_contain_text(price(450))
    await tap(page, sale, "FRONT-B-8")
    await expect(basket(page)).to_contain_text("2 places held for you")
    await expect(basket(page).locator(".total")).to_contain_text(price(1_100))
    assert len(await rows(sale)) == 2
    clock = basket(page).get_by_role("timer")
    first = await clock.inner_text()
    assert re.fullmatch(r"9:\d\d", first)
    await expect(clock).not_to_have_text(first)
    await expect(basket(page)).to_contain_text("ask Die Skouburg how to pay")

    await page.reload()
    await expect(basket(page)).to_contain_text("2 places held for you")
    await basket(page).get_by_role("button", name="Give Front Row B, seat 8 back").click()
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert len(await rows(sale)) == 1
    await basket(page).get_by_role("button", name="5 more minutes").click()
    await expect(clock).to_have_text(re.compile(r"14:\d\d"))
    await expect(basket(page).get_by_role("button", name="5 more minutes")).to_have_count(0)

    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("Nothing is held")
    await page.get_by_role("group", name="Seats at a time").get_by_role("button", name="More").click(click_count=2)
    await tap(page, sale, "STALLS-F-12")
    await expect(basket(page)).to_contain_text("3 places held for you")
    await basket(page).get_by_role("button", name="Give all back").click()
    await expect(basket(page)).to_contain_text("Nothing is held")
    assert await rows(sale) == []
    assert said_of(visit) == []


async def test_the_whole_way_by_keyboard_alone(visit: Visit, sale: Sale) -> None:
    """Tab, arrows and Enter: a seat is held, said, extended and given back; nothing needs a mouse."""
    page = visit.page
    await open_sale(page, sale)
    while not await page.evaluate("document.activeElement.closest('.layer') !== null"):
        await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowDown")
    for _ in range(3):
        await page.keyboard.press("Enter")
    await expect(basket(page)).to_contain_text("1 place held for you")
    await expect(page.locator("[aria-pressed=true]:focus")).to_have_attribute(
        "aria-label", re.compile("^Stalls, row D, seat .* yours$")
    )
    await expect(page.get_by_role("status").filter(has_text="yours")).to_have_count(1)

    async def tab_to(name: str) -> None:
        for _ in range(40):
            await page.keyboard.press("Tab")
            if name in str(await page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.innerText")):
                return
        pytest.fail(f"no way to {name}")

    await tab_to("5 more minutes")
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-said]")).to_contain_text("You have more time")
    await tab_to("Terrace")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await tab_to("More")
    await page.keyboard.press("Enter")
    await tab_to("Hold 2 places")
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-said]")).to_have_text("2 places in Terrace are held for you.")
    await expect(basket(page)).to_contain_text("3 places held for you")
    assert said_of(visit) == []


async def test_with_a_finger_on_a_small_phone(guest: Guest, sale: Sale) -> None:
    """The sheet below the map says what is held and opens to everything; nothing is wider than the screen."""
    page = (await guest(SMALL_PHONE, is_touch=True)).page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-F-14", by_finger=True)
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    await expect(basket(page).get_by_role("button", name="Give all back")).to_be_hidden()
    await basket(page).get_by_role("button", name="Show all").tap()
    await expect(basket(page)).to_contain_text("Row F, seat 14")
    await basket(page).get_by_role("button", name="Give Stalls Row F, seat 14 back").tap()
    await expect(basket(page)).to_contain_text("Nothing is held")


@pytest.mark.req("PUB-11", "UI-07")
async def test_two_want_one_seat(guest: Guest, sale: Sale, site: Site, db: Database) -> None:
    """Who looks sees another's hold by itself; who is cut off and too late is told which seat, and what to do."""
    one, other = await guest(), await guest()
    await other.page.route("**/stream", lambda route: route.abort())
    await open_sale(one.page, sale)
    await open_sale(other.page, sale)
    await expect(other.page.get_by_text("Reconnecting")).to_be_visible()
    summary = one.page.locator(".seat-map")
    before = await summary.get_attribute("aria-label")

    rival = await make_person(db, sale.place)
    assert (await hold_by(site, rival, sale, "STALLS-E-12")).status_code == 201
    await expect(summary).not_to_have_attribute("aria-label", before or "")
    await tap(one.page, sale, "STALLS-E-12")
    await one.page.wait_for_timeout(200)
    assert len(await rows(sale)) == 1

    await tap(other.page, sale, "STALLS-E-12")
    told = other.page.get_by_role("alert").filter(has_text="Somebody was faster")
    await expect(told).to_contain_text("Row E, seat 12")
    await expect(told).to_contain_text("Try another seat")
    await expect(basket(other.page)).to_contain_text("Nothing is held")
    assert said_of(one) == []


@pytest.mark.req("UI-02", "UI-03", "UI-04")
async def test_a_hold_runs_out_and_is_taken_again(visit: Visit, sale: Sale, owner_conn: Connection) -> None:
    """The last seconds are said, 0:00 says that it is over, and one press has it back while nobody took it."""
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    (held,) = await rows(sale)
    await let_pass(owner_conn, held["id"], minutes=(HOLD_S - 8) / 60)
    await page.reload()
    await expect(basket(page).locator(".ring.ending")).to_be_visible()
    await expect(page.locator("[data-said]")).to_contain_text("seconds left for what you hold")
    await expect(basket(page).get_by_role("heading", level=2)).to_have_text("The time is up")
    await expect(page.locator("[data-said]")).to_contain_text("1 place is no longer held for you")
    await expect(basket(page)).to_contain_text("No longer held")

    await basket(page).get_by_role("button", name="Take Stalls Row E, seat 10 again").click()
    await expect(basket(page)).to_contain_text("1 place held for you")
    await expect(basket(page)).not_to_contain_text("No longer held")
    assert said_of(visit) == []


@pytest.mark.req("RSV-41", "UI-06")
async def test_an_answer_that_is_lost_loses_no_seat(visit: Visit, sale: Sale) -> None:
    """The server holds it, the answers never come: the seat is looked at, and it is theirs."""
    page = visit.page
    await open_sale(page, sale)

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/reserve", lose)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert len(await rows(sale)) == 1
    # The browser itself notes the requests that failed; nothing else may be said.
    assert all("ERR_FAILED" in complaint for complaint in said_of(visit)), said_of(visit)


async def test_places_without_numbers(visit: Visit, sale: Sale) -> None:
    """A stepper says how many; more than are left is refused in words, and what was asked for stays."""
    page = visit.page
    await open_sale(page, sale)
    await basket(page).get_by_role("button", name="Terrace").click()
    dialog = page.get_by_role("dialog", name="Terrace")
    await expect(dialog).to_contain_text("240 left")
    await dialog.get_by_role("button", name="More").click(click_count=3)
    await dialog.get_by_role("button", name=re.compile("Hold 4 places")).click()
    await expect(dialog).to_have_count(0)
    await expect(basket(page)).to_contain_text("4 places held for you")
    await expect(basket(page).locator(".total")).to_contain_text(price(380))
    await expect(basket(page).locator(".area")).to_contain_text("236 left")
    assert said_of(visit) == []


async def test_an_event_without_a_hall(visit: Visit, db: Database, services: Services, place: Organization) -> None:
    """One zone and no plan: the places are asked for all the same."""
    event = await publish(services.studio, await make_event(db, place, capacity=50))
    page = visit.page
    await page.goto(f"/{place.slug}/events/{event.slug}/seats")
    await expect(page.get_by_role("heading", level=1)).to_have_text(event.name)
    await page.locator(".instead .area").click()
    await page.get_by_role("dialog").get_by_role("button", name="Hold 1 place").click()
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert said_of(visit) == []


async def test_a_zone_for_members_is_locked_with_its_reason(
    visit: Visit, site: Site, sale: Sale, db: Database, owner_conn: Connection
) -> None:
    """A stranger is told whose it is; a member may; one who is a member no longer is refused in words."""
    page = visit.page
    await open_sale(page, sale)
    await expect(basket(page)).to_contain_text(f"only for members of “{presets.VIP_TIER.replace('_', ' ')}”")
    await tap(page, sale, "LOGES1-A-1")
    told = page.get_by_role("alert").filter(has_text="Loges 1: only for members")
    await expect(told).to_contain_text("Sign in if you are one")
    assert await rows(sale) == []

    member = await make_person(db, sale.place)
    await _let_be_member(owner_conn, sale.place.id, member.user_id)
    await come_in(visit, site, member)
    await open_sale(page, sale)
    await expect(basket(page)).not_to_contain_text("Some seats are for members")
    await tap(page, sale, "LOGES1-A-1")
    await expect(basket(page)).to_contain_text("1 place held for you")
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute("delete from memberships where user_id = $1", member.user_id)
    await tap(page, sale, "LOGES1-A-2")
    told = page.get_by_role("alert").filter(has_text="this part is for members")
    await expect(told).to_contain_text("Row A, seat 2")
    await expect(basket(page)).to_contain_text("1 place held for you")


async def _let_be_member(owner: Connection, organization_id: UUID, user_id: UUID) -> None:
    async with owner.transaction():
        await owner.execute("select set_config('app.scope', 'system', true)")
        await owner.execute(
            "insert into memberships (id, organization_id, user_id, tier) values (gen_random_uuid(), $1, $2, $3)",
            organization_id,
            user_id,
            presets.VIP_TIER,
        )


@pytest.mark.req("PUB-12")
async def test_an_event_is_cancelled_while_somebody_holds(visit: Visit, site: Site, sale: Sale, db: Database) -> None:
    """The page says so by itself and calmly; nothing is held any more, and the map can still be seen."""
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    owner = await make_person(db, sale.place, Role.OWNER)
    path = f"/api/admin/events/{sale.event.id}/cancel"
    answer = await site.client.post(path, json={"reason": "weather"}, headers=owner.headers)
    assert answer.status_code == 200, answer.text
    notice = page.get_by_role("alert").filter(has_text="This event was cancelled")
    await expect(notice).to_contain_text("nothing has to be paid")
    await expect(basket(page)).not_to_contain_text("held for you")
    await expect(page.locator("canvas.seats")).to_be_visible()
    await page.get_by_role("link", name="See what else is on").click()
    await expect(page).to_have_url(re.compile(f"/{sale.place.slug}$"))
    assert said_of(visit) == []


async def test_before_the_sale_one_may_look(visit: Visit, services: Services, place: Organization) -> None:
    later = await on_sale(services, place, layout=theatre(), amounts=PRICES, capacity=None, sale_start_at=soon(days=2))
    page = visit.page
    await open_sale(page, later)
    await expect(page.get_by_role("status").filter(has_text="Not on sale yet")).to_contain_text("opens by itself")
    await tap(page, later, "STALLS-E-10")
    await expect(page.get_by_role("alert").filter(has_text="Not on sale yet")).to_be_visible()
    assert await rows(later) == []
    assert said_of(visit) == []


async def test_two_tabs_share_a_stream_and_a_basket(visit: Visit, sale: Sale) -> None:
    """One of them reads; the other hears of everything, and takes over when the first is closed."""
    asked: list[str] = []
    visit.context.on("request", lambda request: asked.append(request.url) if "/stream" in request.url else None)
    await open_sale(visit.page, sale)
    second = await visit.context.new_page()
    await open_sale(second, sale)
    await tap(second, sale, "STALLS-E-10")
    await expect(basket(second)).to_contain_text("1 place held for you")
    await expect(basket(visit.page)).to_contain_text("1 place held for you")
    assert len(asked) == 1

    await visit.page.close()
    async with asyncio.timeout(10):
        while len(asked) < 2:
            await second.wait_for_timeout(50)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, SMALL_PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing(guest: Guest, sale: Sale, viewport: ViewportSize, dark: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """Empty, filled, asking how many, in the other language."""
    visit = await guest(viewport, dark=dark)
    page = visit.page
    await open_sale(page, sale)
    assert await visit.violations() == []
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    if viewport == SMALL_PHONE:
        await basket(page).get_by_role("button", name="Show all").click()
    assert await visit.violations() == []
    await page.get_by_label("Language").select_option("af")
    await expect(basket(page)).to_contain_text("1 plek word vir jou gehou")
    await basket(page).get_by_role("button", name="Terrace").last.click()
    await expect(page.get_by_role("dialog")).to_contain_text("Hoeveel plekke?")
    assert await visit.violations() == []
    assert said_of(visit) == []
