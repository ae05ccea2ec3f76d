"""What people see while they buy and something goes wrong: servers that die, events that change, seats that go."""

import asyncio
import contextlib
import dataclasses
import os
import re
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from playwright.async_api import Browser, Locator, Page, Request, Response, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PRICES, Guest, Visit
from tests.browser.test_buying import basket, hold_by, open_sale, rows, said_of, screen_place, tap
from tests.make.accounts import PASSWORD, Person, make_person
from tests.make.events import soon
from tests.make.holds import Sale, on_sale
from tests.make.layouts import DROP, small_layout, theatre
from tests.make.seating import active_pin, as_registry, save, seated_event, sell_seat, take_places
from tests.make.web import Site
from tests.sim.shop import Shop, shop
from voelgoed.accounts.model import Organization, Role
from voelgoed.cache import Cache
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.redis import RedisLink
from voelgoed.seating import halls
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services

WITHIN_S = 30
LYING_PHONE = ViewportSize(width=640, height=360)


# Servers that die


@pytest.fixture(scope="module")
async def stall(servers: Embedded, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Two web processes and a worker on a Redis of their own, and a theatre on sale."""
    folder = tmp_path_factory.mktemp("trouble")
    async with shop(servers, settings, folder, f"trouble_{settings.port}") as opened:
        studio = Studio(opened.db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nobody is there
        seated = await seated_event(
            opened.db, studio, opened.organization, theatre(), amounts=PRICES, status="published", capacity=None
        )
        yield dataclasses.replace(opened, seated=seated)


@dataclasses.dataclass
class Looker:
    """Somebody who looks at the seats in a browser of their own, and everything that did not go well there."""

    page: Page
    stall: Shop
    complaints: list[str] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)

    def listen(self) -> None:
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._not_answered)
        self.page.on("response", self._answered)

    def _not_answered(self, request: Request) -> None:
        self.failed.append(f"{request.method} {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.failed.append(f"{response.request.method} {response.url}: {response.status}")

    async def shown(self) -> dict[str, Any]:
        """All that the page shows, as it tells it to a tab that comes; nothing while it is cut off."""
        told: dict[str, Any] = await self.page.evaluate(
            """(event) => new Promise((done) => {
                const channel = new BroadcastChannel(`places ${event}`);
                const end = (map) => { channel.close(); done(map); };
                channel.onmessage = ({ data }) => data.frame?.name === 'snapshot' && end(JSON.parse(data.frame.data));
                channel.postMessage({ is: 'hello' });
                setTimeout(() => end({}), 1000);
            })""",
            str(self.stall.seated.event.id),
        )
        return told


@contextlib.asynccontextmanager
async def looking(browser: Browser, stall: Shop) -> AsyncIterator[Looker]:
    context = await browser.new_context(
        viewport=DESKTOP, base_url=stall.address, locale="en-ZA", reduced_motion="reduce"
    )
    context.set_default_timeout(WITHIN_S * 1_000)
    looker = Looker(await context.new_page(), stall)
    looker.listen()
    await looker.page.goto(f"/{stall.organization.slug}/events/{stall.seated.event.slug}/seats")
    await expect(looker.page.locator(".frame[data-drawn]")).to_be_visible()
    yield looker
    await context.close()


def plain(told: dict[str, Any]) -> dict[str, Any]:
    """A map without what says nothing of places."""
    zones = sorted(told.get("zones", []), key=lambda zone: str(zone["zone_id"]))
    return {**{name: told.get(name) for name in ("epoch", "map_version", "seat_count", "statuses")}, "zones": zones}


async def until_equal(stall: Shop, held: int, *lookers: Looker) -> None:
    """Until everybody shows what GET /seatmap says, which is what PostgreSQL has, and so much is held."""
    seen: list[object] = []
    try:
        async with asyncio.timeout(WITHIN_S), httpx2.AsyncClient(base_url=stall.address, timeout=20) as client:
            while True:
                truth = await stall.find_map()
                said = plain((await client.get(f"{stall.places}/seatmap")).json()["data"])
                seen = [truth.counts().held, said, *[plain(await looker.shown()) for looker in lookers]]
                is_true = (said["map_version"], said["statuses"]) == (truth.map_version, truth.encoded())
                if is_true and seen == [held, said, *[said] * len(lookers)]:
                    return
    except TimeoutError:
        pytest.fail(f"they never came to show the same: {seen}")


async def take(looker: Looker, code: str, held: int) -> None:
    await tap(looker.page, looker.stall, code)
    words = "Nothing is held" if held == 0 else f"{held} place{'s' if held > 1 else ''} held for you"
    await expect(basket(looker.page)).to_contain_text(words)


@pytest.mark.timeout(180)
@pytest.mark.req("UI-07", "PUB-11")
async def test_redis_dies_and_comes_back_and_nobody_who_buys_notices(browser: Browser, stall: Shop) -> None:
    """One holds and gives back, with it, without it and with one that knows nothing; the other's map follows."""
    async with looking(browser, stall) as one, looking(browser, stall) as other:
        await take(one, "STALLS-E-10", 1)
        await until_equal(stall, 1, one, other)

        stall.redis.kill()
        await take(one, "STALLS-F-12", 2)
        await take(one, "STALLS-E-10", 1)
        await until_equal(stall, 1, one, other)
        await take(other, "FRONT-B-8", 1)
        await until_equal(stall, 2, one, other)

        stall.redis.lose_dump()
        await stall.redis.start()
        await take(one, "STALLS-E-10", 2)
        await take(other, "FRONT-B-8", 0)
        await basket(one.page).get_by_role("button", name="Give all back").click()
        await until_equal(stall, 0, one, other)
        assert [*one.complaints, *one.failed, *other.complaints, *other.failed] == []
    await stall.agree()


@pytest.mark.timeout(180)
@pytest.mark.req("UI-07", "PUB-11")
async def test_web_processes_die_and_the_page_goes_on_by_itself(
    browser: Browser, stall: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are killed while somebody looks and holds; another has taken a seat meanwhile. Nothing has to be pressed."""
    for name, value in (("UNSAFE_DATABASE", "1"), ("LOG_LEVEL", "error")):
        monkeypatch.setenv(f"VOELGOED_{name}", value)  # for processes that take the place of others
    async with looking(browser, stall) as one:
        await take(one, "STALLS-E-10", 1)
        for name in ("web-1", "web-2"):
            os.kill(stall.tree.pids()[name], signal.SIGKILL)
        await expect(one.page.get_by_text("Reconnecting … what you hold is safe")).to_be_visible()
        async with asyncio.timeout(WITHIN_S):
            while not await _is_held_by_another(stall, "STALLS-E-14"):
                pass
        await expect(one.page.get_by_text("Reconnecting")).to_have_count(0)
        await until_equal(stall, 2, one)
        await expect(basket(one.page)).to_contain_text("1 place held for you")
        await take(one, "STALLS-E-10", 0)
        # The browser itself notes what it could not load. Nothing that they did was lost, only what was being read.
        assert all("Failed to load resource" in said for said in one.complaints), one.complaints
        assert all(re.match(r"GET .*net::ERR_", failed) for failed in one.failed), one.failed


async def _is_held_by_another(stall: Shop, code: str) -> bool:
    """Ask for a seat at whoever is up."""
    seat_id = stall.seated.hall.seat_id(stall.seated.ordinal(code))
    try:
        async with httpx2.AsyncClient(base_url=stall.address, timeout=20) as client:
            path = f"{stall.places}/seats/{seat_id}/reserve"
            return (await client.post(path, headers=stall.people[0].headers)).is_success
    except httpx2.TransportError:
        await asyncio.sleep(0.05)
        return False


# Events that change


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


async def order(site: Site, sale: Sale, owner: Person, verb: str, **body: object) -> None:
    """What the organiser does to the event."""
    path = f"/api/admin/events/{sale.event.id}/{verb}"
    answer = await site.client.post(path, json={"reason": "weather", **body}, headers=owner.headers)
    assert answer.status_code == 200, answer.text


def notice(page: Page, heading: str) -> Locator:
    return page.get_by_role("alert").filter(has=page.get_by_role("heading", name=heading))


@pytest.mark.usefixtures("following")
async def test_an_event_is_postponed_while_somebody_looks(visit: Visit, site: Site, sale: Sale, owner: Person) -> None:
    """Without a date the page says so and offers the event's page; with a date it goes on by itself and names it."""
    page = visit.page
    await open_sale(page, sale)
    await order(site, sale, owner, "postpone")
    told = notice(page, "This event was postponed")
    await expect(told).to_contain_text("Nothing is sold until there is a new date")
    await expect(told.get_by_role("link", name=re.compile("To the event.s page"))).to_be_visible()
    await expect(basket(page)).to_contain_text("Nothing can be held now")
    assert await visit.violations() == []

    dated = soon(days=60).replace(hour=17, minute=30, second=0)
    await order(site, sale, owner, "reschedule", start_at=dated.isoformat(), end_at=dated.replace(hour=20).isoformat())
    await expect(told).to_have_count(0)
    moved = page.get_by_role("status").filter(has_text="This event has a new date")
    await expect(moved).to_contain_text(f"{dated.day} {dated:%B %Y}, 19:30")  # where the venue is
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert await visit.violations() == []
    assert said_of(visit) == []


@pytest.mark.usefixtures("following")
async def test_an_event_ends_while_somebody_looks(visit: Visit, site: Site, sale: Sale, owner: Person) -> None:
    """It is in no programme any more; who was looking is told that it is over, and not that it never was."""
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")

    async def is_seen_live(answer: Response) -> bool:
        is_event = f"/api/storefronts/{sale.place.slug}/events/{sale.event.slug}" in answer.url
        return is_event and (await answer.json())["data"]["status"] == "live"

    async with page.expect_response(is_seen_live):  # or it would ask for what has just left the programme
        await order(site, sale, owner, "go-live")
    await order(site, sale, owner, "end")
    await expect(notice(page, "This event is over")).to_contain_text("Nothing more is sold for it")
    await expect(page.get_by_role("link", name="See what else is on")).to_be_visible()
    assert said_of(visit) == []


@pytest.mark.usefixtures("following")
async def test_a_sale_is_closed_while_somebody_looks(visit: Visit, site: Site, sale: Sale, owner: Person) -> None:
    """The organiser sets the end of the sale to a moment ago, and takes that back."""
    page = visit.page
    await open_sale(page, sale)
    path = f"/api/admin/events/{sale.event.id}"
    for sale_end_at, version in ((soon(seconds=-30).isoformat(), sale.event.version), (None, sale.event.version + 1)):
        headers = {**owner.headers, "if-match": f'"{version}"'}
        answer = await site.client.patch(path, json={"sale_end_at": sale_end_at}, headers=headers)
        assert answer.status_code == 200, answer.text
        if sale_end_at:
            await expect(notice(page, "The sale is over")).to_contain_text("Nothing more is sold for this event")
    await expect(notice(page, "The sale is over")).to_have_count(0)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert said_of(visit) == []


@pytest.mark.usefixtures("following")
async def test_before_the_sale_its_date_is_told(visit: Visit, services: Services, place: Organization) -> None:
    """The day and the time at the venue, on the page and to whoever taps all the same."""
    opens = soon(days=2).replace(hour=8, minute=0, second=0)
    later = await on_sale(services, place, layout=theatre(), amounts=PRICES, capacity=None, sale_start_at=opens)
    page = visit.page
    await open_sale(page, later)
    told = page.get_by_role("status").filter(has_text="Not on sale yet")
    await expect(told).to_contain_text(f"{opens:%A} {opens.day} {opens:%B %Y}, 10:00")
    await expect(basket(page)).to_contain_text("Nothing can be held now")
    await expect(basket(page).get_by_role("button", name="Terrace")).to_have_attribute("aria-disabled", "true")
    assert said_of(visit) == []


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize("with_members", [False, True], ids=["all", "but for members"])
async def test_an_event_is_sold_out_while_somebody_looks(
    visit: Visit,
    services: Services,
    place: Organization,
    owner_conn: Connection,
    with_members: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """What is left is held, then sold: each is said by itself, and seats for members are not counted as theirs."""
    layout = small_layout({} if with_members else {"zones.1": DROP})
    small = await on_sale(services, place, layout=layout)
    for code in small.seated.hall.codes:
        if code.startswith("S-") and code != "S-A-1":
            await sell_seat(owner_conn, small.event, small.seated.ordinal(code))
    await take_places(owner_conn, small.event, small.zone(), sold=300)
    page = visit.page
    await open_sale(page, small)
    banner = page.locator(".banner")
    await expect(banner).to_have_count(0)
    await expect(basket(page).get_by_role("button", name="Pit")).to_contain_text("None left")

    rival = small.caller(Role.STAFF)
    last = await small.hold(rival, "S-A-1")
    await expect(banner).to_contain_text("Everything is held at the moment")
    await small.buy(rival, *last)
    await expect(banner).to_contain_text("Only seats for members are left" if with_members else "Sold out")
    assert await visit.violations() == []
    assert said_of(visit) == []


@pytest.mark.usefixtures("following")
async def test_the_hall_is_exchanged_while_somebody_looks(visit: Visit, services: Services, sale: Sale) -> None:
    """Nobody has anything of it yet, so the organiser may: the page shows the other hall without being loaded anew."""
    page = visit.page
    await open_sale(page, sale)
    await page.evaluate("window.isTheSamePage = true")
    hall = await halls.load_hall(
        services.studio, sale.place.id, await active_pin(services.studio, sale.seated.venue, small_layout())
    )
    rules = dict(zip(("S", "V", "P"), sale.seated.rules.values(), strict=False))
    await save(services.studio, sale.event, dataclasses.replace(sale.seated, hall=hall, rules=rules).wanted())
    await expect(page.locator(".seat-map")).to_have_attribute("aria-label", re.compile("313"))
    await expect(basket(page)).to_contain_text("Pit")
    assert await page.evaluate("window.isTheSamePage")
    assert said_of(visit) == []


# Seats that go, and people who come in


@pytest.mark.usefixtures("following")
@pytest.mark.req("UI-09")
async def test_a_seat_that_somebody_is_at_is_given_up_and_another_one_advised(
    visit: Visit, sale: Sale, owner_conn: Connection
) -> None:
    """Its row stays locked for longer than anybody waits: which seat, and what to do; the next seat is had."""
    page = visit.page
    await open_sale(page, sale)
    async with as_registry(owner_conn):
        await owner_conn.fetch(
            "select from event_seats where event_id = $1 and ordinal = $2 for update",
            sale.event.id,
            sale.seated.ordinal("STALLS-E-12"),
        )
        await tap(page, sale, "STALLS-E-12")
        told = page.get_by_role("alert").filter(has_text="Row E, seat 12 was taken at the same moment")
        await expect(told).to_contain_text("Try another seat")
        await expect(basket(page)).to_contain_text("Nothing is held")
        await tap(page, sale, "STALLS-E-10")
        await expect(basket(page)).to_contain_text("1 place held for you")
    assert [row["seat_id"] for row in await rows(sale)] == [sale.seat("STALLS-E-10")]


@pytest.mark.usefixtures("following")
@pytest.mark.req("SEC-07", "PUB-11")
async def test_a_seat_that_another_holds_tells_when_it_may_come_back(
    visit: Visit, site: Site, sale: Sale, db: Database
) -> None:
    """Asked for once, when somebody looks at it; and when it does come back that is seen without asking."""
    page = visit.page
    rival = await make_person(db, sale.place)
    held = await hold_by(site, rival, sale, "STALLS-E-12")
    seat = f"/seats/{sale.seat('STALLS-E-12')}"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith(seat) else None)
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    await page.mouse.move(*await screen_place(page, sale, "STALLS-E-12"))
    tip = page.locator(".tip")
    await expect(tip).to_contain_text("held by someone else")
    await expect(tip).to_contain_text("may come back within 10 minutes")
    assert await visit.violations() == []
    released = await site.client.delete(f"/api/holds/{held.json()['data']['hold_id']}", headers=rival.headers)
    assert released.status_code == 204
    await expect(tip).to_contain_text("available")
    await expect(tip).not_to_contain_text("come back")
    assert len(asked) == 1
    assert said_of(visit) == []


@pytest.mark.usefixtures("following")
async def test_a_double_click_holds_a_seat_once_and_keeps_it(visit: Visit, sale: Sale) -> None:
    """The second click of it is not a wish to give the seat back; a click a moment later is."""
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    place = await screen_place(page, sale, "STALLS-E-12")
    await page.mouse.dblclick(*place, delay=60)
    await expect(basket(page)).to_contain_text("2 places held for you")
    assert len(await rows(sale)) == 2
    await page.wait_for_timeout(500)
    await page.mouse.click(*place)
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert said_of(visit) == []


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_phone_that_lies_on_its_side(guest: Guest, sale: Sale, dark: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """Map and basket stand beside each other, whole; the page does not scroll, the basket does."""
    visit = await guest(LYING_PHONE, dark=dark)
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    boxes = [await page.locator(one).bounding_box() for one in (".seat-map", "section.basket", ".basket .head")]
    for box in boxes:
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= LYING_PHONE["width"]
        assert box["y"] + box["height"] <= LYING_PHONE["height"]
    assert boxes[0] is not None
    assert boxes[0]["height"] >= 180
    assert await page.evaluate("document.documentElement.scrollHeight") == LYING_PHONE["height"]
    await basket(page).get_by_role("button", name="Give all back").click()
    await expect(basket(page)).to_contain_text("Nothing is held")
    assert await visit.violations() == []


@pytest.mark.usefixtures("following")
async def test_a_guest_makes_an_account_and_keeps_the_basket(visit: Visit, sale: Sale) -> None:
    """They come back to the seats they hold, and hold them under their own name."""
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("You are here as a guest")
    await basket(page).get_by_role("link", name="Make an account").click()
    for field, value in (("Name", "Anna"), ("E-mail", "anna.keeps@example.test"), ("Password", PASSWORD)):
        await page.get_by_role("textbox", name=field).fill(value)
    await page.get_by_role("button", name="Make the account").click()
    await expect(page.locator(".frame[data-drawn]")).to_be_visible()
    await expect(basket(page)).to_contain_text("1 place held for you")
    await expect(basket(page)).not_to_contain_text("You are here as a guest")
    (held,) = await rows(sale)
    assert held["seat_id"] == sale.seat("STALLS-E-10")
    assert said_of(visit) == []
