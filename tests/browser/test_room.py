"""The event room, live: organisers watch a sale, take seats out of it and put them back, and those who buy see it."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PRICES, Visit, open_visit
from tests.browser.test_buying import SMALL_PHONE, basket, hold_by, open_sale, said_of, tap
from tests.browser.test_organiser import ask_for, come_in, status_of
from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, move
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.layouts import theatre
from tests.make.seating import publish
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.events.model import Verb
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import Dispatcher, Follower
from voelgoed.holds.projection import Projection
from voelgoed.ids import new_id
from voelgoed.loop import Loop
from voelgoed.wiring import Services

expect.set_options(timeout=15_000)

Comer = Callable[..., Awaitable[Visit]]


@pytest.fixture(autouse=True)
async def processes(services: Services, site: Site) -> AsyncIterator[None]:
    """What a web process and a worker do beside answering: what is committed reaches Redis, and whoever looks."""
    was, closing = services.availability.is_live, asyncio.Event()
    follower = Follower(services.db, services.redis, services.availability, services.projection, pace_s=0.05)
    projection = Projection(services.redis)
    availability = Availability(services.db, projection)
    dispatcher = Dispatcher(services.db, availability, projection)
    running = [
        asyncio.create_task(follower.run(closing)),
        asyncio.create_task(Loop(name="tell", tick=dispatcher.tick, pace_s=0.05).run(closing)),
    ]
    yield
    closing.set()
    await asyncio.gather(*running)
    await availability.close()
    services.availability.is_live = was


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db, name="Die Skouburg")


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    """A theatre on sale: four prices, loges for members, a terrace where people stand."""
    return await on_sale(services, place, layout=theatre(), amounts=PRICES, capacity=None, slug="boemeltrein")


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.fixture
async def come(browser: Browser, site: Site) -> AsyncIterator[Comer]:
    """Opens a browser of its own for each who comes, a stranger or somebody known."""
    opened: list[Visit] = []

    async def open_one(person: Person | None = None, viewport: ViewportSize = DESKTOP, *, dark: bool = False) -> Visit:
        visit = await open_visit(browser, site, viewport=viewport, dark=dark)
        opened.append(visit)
        if person:
            await come_in(visit, site, person)
        return visit

    yield open_one
    for visit in opened:
        await visit.context.close()


async def open_room(page: Page, sale: Sale) -> None:
    await page.emulate_media(reduced_motion="reduce")
    await page.goto(f"/{sale.place.slug}/admin/events/{sale.event.id}/live")
    await expect(page.get_by_role("heading", level=1)).to_have_text(sale.event.name)
    await expect(page.get_by_role("status").filter(has_text=re.compile("^Live$"))).to_be_visible()
    await expect(page.locator(".frame[data-drawn]")).to_be_visible()


def part(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def zone(page: Page, code: str) -> Locator:
    return page.locator(f"[data-zone={code}]")


def figure(page: Page, word: str) -> Locator:
    """A number of the whole house, by its word."""
    return page.locator(".parts div").filter(has=page.get_by_text(word, exact=True)).locator("dd")


async def choose(page: Page, sale: Sale, code: str, reach: str = "Seat") -> None:
    await page.get_by_role("group", name="What a click takes").get_by_role("button", name=reach).click()
    await tap(page, sale, code)


def left_of(page: Page) -> Locator:
    """The buyer's map as it is read out: how many seats are left."""
    return page.locator(".seat-map")


async def expect_left(page: Page, free: int) -> None:
    await expect(left_of(page)).to_have_attribute("aria-label", re.compile(rf"^Seat map: {free} of "))


async def free_seats(page: Page) -> int:
    label = await left_of(page).get_attribute("aria-label")
    found = re.search(r"(\d+) of", label or "")
    assert found, label
    return int(found[1])


async def test_a_sale_is_watched_as_it_happens(
    come: Comer, site: Site, sale: Sale, owner: Person, db: Database, owner_conn: Connection
) -> None:
    """A hold, a sale, a hold that lapses: figures, zones, holds and the chart follow."""
    visit = await come(owner)
    page = visit.page
    await page.goto(f"/{sale.place.slug}/admin/events/{sale.event.id}")
    await page.get_by_role("link", name="Sale", exact=True).click()
    await expect(page).to_have_url(re.compile("/live$"))
    await open_room(page, sale)
    holds = part(page, "Holds")
    await expect(holds).to_contain_text("Nobody holds anything at the moment.")
    await expect(figure(page, "Held")).to_have_text("0")

    buyer = await make_person(db, sale.place)
    assert (await hold_by(site, buyer, sale, "STALLS-E-10")).status_code == 201
    await expect(figure(page, "Held")).to_have_text("1")
    await expect(zone(page, "STALLS")).to_contain_text("Held 1")
    await expect(zone(page, "FRONT")).not_to_contain_text("Held")
    row = holds.get_by_role("row").filter(has_text="Anna")
    await expect(row).to_contain_text("E 10")
    await expect(row).to_contain_text("Stalls")
    await expect(row).to_contain_text(re.compile(r"9:\d\d"))
    await expect(holds.get_by_role("listitem").filter(has_text="In 10 min: 1 place")).to_have_count(1)

    somebody = sale.caller()
    bought = await sale.hold(somebody, "FRONT-B-8", "FRONT-B-9")
    await sale.hold_places(somebody, 4, zone="TERRACE")
    await expect(zone(page, "TERRACE")).to_contain_text("Held 4")
    await expect(holds).to_contain_text("7 places in 2 baskets")
    assert (await sale.buy(somebody, *bought))[0] == "sold"
    await expect(figure(page, "Sold")).to_have_text("2")
    await expect(zone(page, "FRONT")).to_contain_text("2 of 75")
    await expect(page.get_by_role("heading", name=re.compile("sold, 2 of 721"))).to_be_visible()
    await expect(part(page, "Sales and holds").get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"sold from 0 to 2, held now 5\.$")
    )

    # What should have lapsed is looked for when its time has come, though the stream says nothing of it.
    (mine, *_) = [one for one in await sale.rows() if one["user_id"] == buyer.user_id]
    await let_pass(owner_conn, mine["id"], minutes=(600 - 6) / 60)
    await page.reload()
    await expect(row).to_contain_text(re.compile(r"0:0\d"))
    await expect(row).to_have_count(0)
    await expect(holds).to_contain_text("in 1 basket")
    assert said_of(visit) == []


@pytest.mark.req("RBAC-11", "SEAT-21")
async def test_a_row_goes_out_of_sale_and_comes_back(come: Comer, site: Site, sale: Sale, owner: Person) -> None:
    """By row, with a reason; a buyer's map follows; undone; and put back by hand."""
    desk, stranger = await come(owner), await come()
    page, shop = desk.page, stranger.page
    await open_room(page, sale)
    await open_sale(shop, sale)
    free = await free_seats(shop)
    seats = len([seat for _, row, seat in sale.seated.hall.layout.seats() if seat.code.startswith("BACK-N-")])
    assert seats > 20

    await choose(page, sale, "BACK-N-20", reach="Row")
    await expect(page.get_by_text(f"{seats} seats chosen")).to_be_visible()
    await page.get_by_label("Why (for the journal)").fill("The cameras stand here")
    await page.get_by_role("button", name="Take out of sale").click()
    await expect(page.get_by_text(f"{seats} seats are out of sale.")).to_be_visible()
    await expect_left(shop, free - seats)
    await expect(figure(page, "Out of sale")).to_have_text(str(seats))
    await expect(zone(page, "BACK")).to_contain_text(f"Out of sale {seats}")
    path = f"/api/admin/audit?event_id={sale.event.id}&kind=seat_blocked"
    facts = (await site.client.get(path, headers=owner.headers)).json()["data"]
    assert {fact["reason"] for fact in facts} == {"The cameras stand here"}

    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text(f"{seats} seats are on sale again.")).to_be_visible()
    await expect_left(shop, free)

    await page.get_by_role("button", name="Undo").click()
    await expect_left(shop, free - seats)
    await choose(page, sale, "BACK-N-20", reach="Row")
    await page.get_by_role("button", name="Put back on sale").click()
    await expect(page.get_by_text(f"{seats} seats are on sale again.")).to_be_visible()
    await expect_left(shop, free)
    await expect(figure(page, "Out of sale")).to_have_text("0")
    assert said_of(desk) == said_of(stranger) == []


@pytest.mark.req("SEAT-21")
async def test_what_is_held_and_what_is_sold_is_explained(come: Comer, sale: Sale, owner: Person) -> None:
    """A seat in a basket is asked about and its holder told; a seat that is sold stays sold, and that is said."""
    desk, stranger = await come(owner), await come()
    page, shop = desk.page, stranger.page
    somebody = sale.caller()
    await sale.buy(somebody, *await sale.hold(somebody, "STALLS-E-12"))
    await open_sale(shop, sale)
    await tap(shop, sale, "STALLS-E-10")
    await expect(basket(shop)).to_contain_text("1 place held for you")
    await open_room(page, sale)
    await expect(figure(page, "Held")).to_have_text("1")

    for code in ("STALLS-E-10", "STALLS-E-11", "STALLS-E-12"):
        await choose(page, sale, code)
    await expect(page.get_by_text("3 seats chosen")).to_be_visible()
    await page.get_by_role("button", name="Take out of sale").click()
    dialog = page.get_by_role("dialog", name="1 of these seats is in a basket")
    await dialog.get_by_role("button", name="Leave those, take 1").click()
    await expect(page.get_by_text("1 seat is out of sale.")).to_be_visible()
    await expect(basket(shop)).to_contain_text("1 place held for you")

    for code in ("STALLS-E-10", "STALLS-E-12"):
        await choose(page, sale, code)
    await page.get_by_role("button", name="Take out of sale").click()
    await dialog.get_by_role("button", name="Take all 1").click()
    told = page.get_by_role("status").filter(has_text="1 seat is out of sale.")
    await expect(told).to_contain_text("1 of them was held; its holder has lost it.")
    await expect(told.get_by_role("listitem")).to_have_text("Stalls E 12: sold, and stays sold.")
    await expect(basket(shop)).to_contain_text("No longer held")
    assert said_of(desk) == said_of(stranger) == []


async def test_seats_are_chosen_by_frame_and_by_keyboard(come: Comer, sale: Sale, owner: Person) -> None:
    """A frame is drawn around seats; in the list a row, a seat, and with Shift everything between two."""
    visit = await come(owner)
    page = visit.page
    await open_room(page, sale)
    await page.get_by_role("button", name="Frame", exact=True).click()
    box = await page.locator(".map .frame").bounding_box()
    assert box
    await page.mouse.move(box["x"] + 60, box["y"] + 90)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] - 60, box["y"] + box["height"] - 40, steps=4)
    await page.mouse.up()
    await expect(page.get_by_text(re.compile(r"^\d{3} seats chosen$"))).to_be_visible()
    await page.get_by_role("button", name="Choose none").click()
    await expect(page.get_by_text("seats chosen")).to_have_count(0)

    await page.get_by_role("button", name="Seat", exact=True).focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="List").focus()
    await page.keyboard.press("Enter")
    await page.locator(".list").get_by_role("button", name=re.compile("^Front")).focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name=re.compile("^Row A")).focus()
    await page.keyboard.press("Enter")
    first = page.get_by_role("toolbar", name="Seats of row A").get_by_role("button").first
    await first.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 seat chosen")).to_be_visible()
    await expect(first).to_have_accessible_name(re.compile("chosen, available"))
    for _ in range(3):
        await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Shift+Enter")
    await expect(page.get_by_text(re.compile("^[4-9] seats chosen$"))).to_be_visible()
    await page.get_by_role("button", name="Take out of sale").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="seats are out of sale.")).to_be_visible()
    await expect(first).to_have_accessible_name(re.compile("out of sale$"))
    assert said_of(visit) == []


async def test_it_is_cancelled_from_the_room(come: Comer, site: Site, sale: Sale, owner: Person) -> None:
    """With a reason; whoever has seats in the basket is told, and the room says how it stands."""
    desk, stranger = await come(owner), await come()
    page, shop = desk.page, stranger.page
    await open_sale(shop, sale)
    await tap(shop, sale, "STALLS-E-10")
    await expect(basket(shop)).to_contain_text("1 place held for you")
    await open_room(page, sale)
    dialog = await ask_for(page, "Cancel")
    await dialog.get_by_label("Why", exact=True).fill("The company is ill")
    await dialog.get_by_role("button", name="Yes, cancel it").click()
    await expect(page.get_by_text("It is cancelled.")).to_be_visible()
    assert await status_of(site, owner, sale.event.id) == "cancelled"
    await expect(shop.get_by_role("alert").filter(has_text="This event was cancelled")).to_be_visible()
    await expect(part(page, "Holds")).to_contain_text("Nobody holds anything at the moment.")
    assert said_of(desk) == []


@pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.END])
async def test_what_is_over_is_only_looked_at(come: Comer, db: Database, sale: Sale, owner: Person, verb: Verb) -> None:
    """Seats that were chosen are let go, and neither they nor the event are offered anything but what is left to do."""
    visit = await come(owner)
    page = visit.page
    await open_room(page, sale)
    await choose(page, sale, "STALLS-E-12", reach="Row")
    await expect(page.get_by_role("button", name="Take out of sale")).to_be_visible()
    if verb is Verb.END:
        await move(db, sale.place.id, sale.event.id, Verb.GO_LIVE)
    await move(db, sale.place.id, sale.event.id, verb)
    await expect(page.get_by_text("seats stay as they are")).to_be_visible()
    for _ in range(2):
        await expect(part(page, "Live map")).to_be_visible()
        for name in ("Take out of sale", "Choose none", "Frame", "Row", "Undo", "Cancel", "Postpone", "End"):
            await expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        await tap(page, sale, "STALLS-E-12")
        await expect(page.get_by_text(re.compile("seats? chosen"))).to_have_count(0)
        await page.reload()
    assert said_of(visit) == []


@pytest.mark.req("REG-34")
async def test_the_tiers_are_made_anew(come: Comer, sale: Sale, owner: Person, services: Services) -> None:
    """What was found is said in words; a moment later everything agrees."""
    visit = await come(owner)
    page = visit.page
    await sale.hold(sale.caller(), "STALLS-E-10")
    await open_room(page, sale)
    health = part(page, "Health")
    await expect(health).to_contain_text("breaker closed")
    for _ in range(20):
        await health.get_by_role("button", name="Look again").click()
        await expect(health.get_by_role("button", name="Look again")).to_be_enabled()
        if await health.get_by_text("All tiers agree").count():
            break
    await expect(health).to_contain_text("All tiers agree")
    key = f"voelgoed:org:{sale.place.id}:event:{{{sale.event.id}}}:seat_holds"
    assert await services.redis.client.zadd(key, {str(new_id()): 2**45}), "the key is no longer called that"
    await health.get_by_role("button", name="Reconcile").click()
    await expect(health).to_contain_text("1 hold that has ended still stood in Redis.")
    await expect(health).to_contain_text("All tiers agree")
    await health.get_by_role("button", name="Reconcile").click()
    await expect(health).to_contain_text("Nothing had to be mended.")
    assert said_of(visit) == []


@pytest.mark.parametrize("role", [Role.SCANNER, Role.STAFF])
async def test_each_sees_what_they_may(come: Comer, sale: Sale, db: Database, role: Role) -> None:
    """Scanners see how full it is; staff who holds what as well; neither is offered what leaders do."""
    await sale.hold(sale.caller(), "STALLS-E-10")
    visit = await come(await make_person(db, sale.place, role))
    page = visit.page
    await open_room(page, sale)
    await expect(figure(page, "Held")).to_have_text("1")
    is_crew = int(role is Role.STAFF)
    await expect(part(page, "Live map")).to_be_visible()
    await expect(part(page, "Holds")).to_have_count(is_crew)
    await expect(part(page, "Health")).to_have_count(is_crew)
    if is_crew:
        await expect(part(page, "Health")).to_contain_text("Owners and admins may reconcile.")
    await tap(page, sale, "STALLS-E-12")
    await expect(page.get_by_text("seat chosen")).to_have_count(0)
    for name in ("Reconcile", "Take out of sale", "Frame", "Cancel", "Postpone"):
        await expect(page.get_by_role("button", name=name)).to_have_count(0)
    assert said_of(visit) == []


async def test_a_draft_and_an_event_without_a_hall(
    come: Comer, services: Services, db: Database, place: Organization, owner: Person
) -> None:
    """Of a draft there is nothing to watch; without a plan there are figures and no map."""
    draft = await make_event(db, place, capacity=50)
    visit = await come(owner)
    page = visit.page
    await page.goto(f"/{place.slug}/admin/events/{draft.id}")
    await expect(page.get_by_role("link", name="Sale", exact=True)).to_have_count(0)
    await page.goto(f"/{place.slug}/admin/events/{draft.id}/live")
    await expect(page.get_by_text("There is nothing to watch yet")).to_be_visible()
    await publish(services.studio, draft)
    await page.reload()
    await expect(page.get_by_role("heading", name=re.compile("sold, 0 of 50"))).to_be_visible()
    await expect(part(page, "Live map")).to_have_count(0)
    await expect(part(page, "Holds")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, SMALL_PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing(come: Comer, sale: Sale, owner: Person, viewport: ViewportSize, dark: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """With holds, with seats chosen, asking about a basket, after a deed, in both languages; nothing is too wide."""
    await sale.hold(sale.caller(), "STALLS-E-10", "STALLS-E-11")
    visit = await come(owner, viewport, dark=dark)
    page = visit.page
    await open_room(page, sale)
    await expect(part(page, "Holds")).to_contain_text("2 places in 1 basket")
    assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    assert await visit.violations() == []
    await choose(page, sale, "STALLS-E-12", reach="Row")
    await expect(page.get_by_text("seats chosen")).to_be_visible()
    assert await visit.violations() == []
    await page.get_by_role("button", name="Take out of sale").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await visit.violations() == []
    await page.get_by_role("dialog").get_by_role("button", name="Take all").click()
    await expect(page.get_by_text("seats are out of sale.")).to_be_visible()
    await page.get_by_label("Language").select_option("af")
    await expect(page.get_by_text("sitplekke is uit die verkoop.")).to_be_visible()
    await expect(part(page, "Besprekings")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    assert await visit.violations() == []
    assert said_of(visit) == []
