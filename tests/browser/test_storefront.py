"""A stranger looks at what an organization has coming up."""

import asyncio
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Browser, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE, Visit, open_visit
from tests.make.accounts import make_organization
from tests.make.events import make_event, make_venue, move, soon
from tests.make.web import Site
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.events.model import Event, NewDate, Venue, Verb

expect.set_options(timeout=15_000)
JOHANNESBURG = ZoneInfo("Africa/Johannesburg")
DASH = "\N{EN DASH}"
SMALLEST = ViewportSize(width=360, height=740)


def evening(*, days: int, hour: int = 19, zone: ZoneInfo = JOHANNESBURG) -> datetime:
    """An hour at the venue, some days from now."""
    day = (datetime.now(zone) + timedelta(days=days)).date()
    return datetime.combine(day, time(hour, 30), zone).astimezone(UTC)


def said(at: datetime, zone: ZoneInfo = JOHANNESBURG) -> str:
    """How the page begins a day; its short months may have a letter more."""
    return f"{at.astimezone(zone):%a} {at.astimezone(zone).day} {at.astimezone(zone):%b}"


async def a_show(db: Database, place: Organization, venue: Venue | None = None, **fields: object) -> Event:
    """A published event of two hours and a half."""
    start_at = fields.pop("start_at", None) or evening(days=40)
    assert isinstance(start_at, datetime)
    times = {"start_at": start_at, "end_at": start_at + timedelta(hours=2, minutes=30)}
    return await make_event(db, place, venue, "published", **times | fields)


async def in_zone(visit: Visit, zone: str) -> None:
    """Set the browser's own clock."""
    session = await visit.context.new_cdp_session(visit.page)
    await session.send("Emulation.setTimezoneOverride", {"timezoneId": zone})


async def gone(site: Site, path: str) -> None:
    """Wait until every cache of the server has heard of it."""
    async with asyncio.timeout(15):
        while (await site.client.get(path)).status_code != 404:
            await asyncio.sleep(0.05)


async def test_from_the_list_to_an_event_and_back(visit: Visit, db: Database) -> None:
    """The kinds narrow the list, a card leads to its page, and the way back finds the list where it was left."""
    place, page = await make_organization(db, name="Die Skouburg"), visit.page
    address = {"street": "12 Kerk Street", "city": "Potchefstroom"}
    hall = await make_venue(
        db, place, name="Die Groot Saal", address=address, settings={"doors_open_minutes_before": 60}
    )
    start = evening(days=70)
    await a_show(db, place, hall, name="Nagmusiek", slug="nagmusiek", settings={"category": "music"}, start_at=start)
    for number in range(12):
        await a_show(db, place, hall, name=f"Stuk {number}", settings={"category": "theatre"})

    await page.goto(f"/{place.slug}")
    await expect(page.get_by_role("heading", level=3)).to_have_count(13)
    await page.get_by_role("button", name="Music").click()
    await expect(page.get_by_role("heading", level=3)).to_have_text(["Nagmusiek"])
    await expect(page.get_by_role("article")).to_contain_text("Die Groot Saal")
    await expect(page.get_by_role("article")).to_contain_text("On sale")
    await page.get_by_role("button", name="Everything").click()

    await page.get_by_role("link", name="Nagmusiek").scroll_into_view_if_needed()
    assert await page.evaluate("scrollY") > 0
    await page.get_by_role("link", name="Nagmusiek").click()
    title = page.get_by_role("heading", level=1, name="Nagmusiek")
    await expect(title).to_be_focused()
    assert page.url.endswith(f"/{place.slug}/events/nagmusiek")
    await expect(page.get_by_text(f"19:30 {DASH} 22:00")).to_be_visible()
    await expect(page.get_by_text("Doors open at 18:30")).to_be_visible()
    await expect(page.get_by_text("12 Kerk Street")).to_be_visible()
    await expect(page.get_by_role("region", name="Tickets")).to_contain_text("On sale")

    await page.go_back()
    await expect(page.get_by_role("heading", level=3)).to_have_count(13)
    await expect(page.get_by_role("link", name="Nagmusiek")).to_be_in_viewport()
    await page.get_by_role("link", name="Nagmusiek").click()
    await page.get_by_role("link", name="All events at Die Skouburg").click()
    await expect(page.get_by_role("heading", level=1, name="Die Skouburg")).to_be_in_viewport()
    assert visit.complaints == []


async def test_a_long_list_is_shown_in_parts(visit: Visit, db: Database) -> None:
    """The rest comes on request, and the keyboard goes on where it begins."""
    place, page = await make_organization(db), visit.page
    hall = await make_venue(db, place)
    first = evening(days=5)
    for number in range(30):
        await a_show(db, place, hall, name=f"Aand {number}", start_at=first + timedelta(days=number))

    await page.goto(f"/{place.slug}")
    await expect(page.get_by_role("heading", level=3)).to_have_count(24)
    await page.get_by_role("button", name="Show more events").press("Enter")
    await expect(page.get_by_role("heading", level=3)).to_have_count(30)
    await expect(page.get_by_role("link", name="Aand 24")).to_be_focused()
    await expect(page.get_by_role("button", name="Show more events")).to_have_count(0)


@pytest.mark.req("EV-45")
async def test_an_event_without_a_date_says_so_strongly(visit: Visit, db: Database) -> None:
    """Card and page say so and show no date; the notice strikes the old one out, and nothing is on sale."""
    place, page = await make_organization(db), visit.page
    event = await a_show(db, place)
    await move(db, place.id, event.id, Verb.POSTPONE, postponement_reason="weather")

    await page.goto(f"/{place.slug}")
    card = page.get_by_role("article")
    await expect(card).to_contain_text("Postponed")
    await expect(card).to_contain_text("A new date follows")
    await expect(card).not_to_contain_text(said(event.start_at))
    await card.get_by_role("link").click()

    notice = page.get_by_role("region", name="Postponed. A new date is not known yet.")
    await expect(notice).to_contain_text("Your tickets stay valid")
    await expect(notice).to_contain_text("Reason: Bad weather")
    await expect(notice.locator("s")).to_contain_text(said(event.start_at))
    await expect(page.get_by_text(said(event.start_at))).to_have_count(1)
    await expect(page.get_by_role("region", name="Tickets")).to_contain_text(
        "Nothing is sold until there is a new date"
    )
    await page.get_by_label("Language").select_option("af")
    await expect(page.get_by_role("region", name="Uitgestel.")).to_contain_text("Rede: Slegte weer")


async def test_an_event_with_a_new_date_shows_both(visit: Visit, db: Database) -> None:
    """The new date is the date; the old one is struck out; what the organiser wrote stands as written."""
    place, page = await make_organization(db), visit.page
    event, later = await a_show(db, place), evening(days=75, hour=17)
    await move(
        db, place.id, event.id, Verb.POSTPONE, postponement_reason="Die dak lek.", new_date=NewDate(start_at=later)
    )

    await page.goto(f"/{place.slug}")
    await expect(page.get_by_role("article")).to_contain_text("Postponed to")
    await expect(page.get_by_role("article").locator("time")).to_contain_text(said(later))
    await page.get_by_role("article").get_by_role("link").click()

    notice = page.get_by_role("region", name="Postponed to")
    await expect(notice).to_contain_text("17:30")
    await expect(notice).to_contain_text("Reason: Die dak lek.")
    await expect(notice.locator("s")).to_contain_text(said(event.start_at))
    await expect(page.get_by_text(f"17:30 {DASH} 20:00")).to_be_visible()


async def test_a_replaced_event_leads_to_the_other(visit: Visit, site: Site, db: Database) -> None:
    """One click, and the new page has the focus."""
    place, page = await make_organization(db), visit.page
    second = await a_show(db, place, name="Die Tweede Trein", slug="tweede")
    first = await a_show(db, place, slug="eerste", name="Die Eerste Trein")
    async with db.transaction(place.id) as conn:
        await conn.execute(
            "update events set replaced_by_event_id = $1, version = version + 1 where id = $2", second.id, first.id
        )

    await page.goto(f"/{place.slug}/events/eerste")
    await page.get_by_role("link", name="Go to Die Tweede Trein").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Die Tweede Trein")
    await expect(page.get_by_role("heading", level=1)).to_be_focused()
    await expect(page).to_have_url(f"{site.address}/{place.slug}/events/tweede")


async def test_a_cancelled_event_vanishes(visit: Visit, site: Site, db: Database) -> None:
    """From the list and from its address, where a kind word and a way back remain."""
    place, page = await make_organization(db), visit.page
    doomed = await a_show(db, place, slug="trein", name="Die Trein")
    await a_show(db, place, name="Die Ander Een")
    await page.goto(f"/{place.slug}/events/trein")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Die Trein")
    await move(db, place.id, doomed.id, Verb.CANCEL)
    await gone(site, f"/api/storefronts/{place.slug}/events/trein")

    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("There is no such event (any more).")
    await page.get_by_role("link", name="See what is coming up").click()
    await expect(page.get_by_role("heading", level=3)).to_have_text(["Die Ander Een"])
    # The browser itself notes the refused request; nothing else may be said.
    assert all("404" in complaint for complaint in visit.complaints), visit.complaints


@pytest.mark.req("EV-03")
async def test_times_are_those_of_the_venue(browser: Browser, site: Site, db: Database) -> None:
    """Whoever is elsewhere reads the venue's clock and is told so; whoever is there reads the same without a word."""
    place = await make_organization(db)
    far = ZoneInfo("Pacific/Kiritimati")
    venue = await make_venue(db, place, name="Ronton Hall", timezone=far.key)
    # Early on the next day for almost everybody else.
    start = evening(days=30, hour=7, zone=far)
    await a_show(db, place, venue, slug="sunrise", name="Sunrise", start_at=start)
    for zone, is_told in (("America/New_York", True), (far.key, False)):
        visit = await open_visit(browser, site, viewport=PHONE, dark=False)
        await in_zone(visit, zone)
        await visit.page.goto(f"/{place.slug}")
        card = visit.page.get_by_role("article")
        await expect(card).to_contain_text(said(start, far))
        await expect(card).to_contain_text("07:30")
        await expect(visit.page.get_by_text("All times are Kiritimati time (GMT+14).")).to_have_count(int(is_told))
        await card.get_by_role("link").click()
        await expect(visit.page.get_by_text(f"07:30 {DASH} 10:00")).to_be_visible()
        note = visit.page.get_by_text("Times are those of the venue: Kiritimati time (GMT+14).")
        await expect(note).to_have_count(int(is_told))
        await visit.context.close()


async def test_a_festival_shows_its_days(visit: Visit, db: Database) -> None:
    """Two days are two days, on the card and on the page; a sale that has not begun says when it does."""
    place, page = await make_organization(db), visit.page
    start = evening(days=30, hour=10)
    await make_event(
        db,
        place,
        None,
        "published",
        name="Oewerfees",
        start_at=start,
        end_at=start + timedelta(hours=36),
        sale_start_at=soon(days=3),
    )
    await page.goto(f"/{place.slug}")
    days = page.get_by_role("article").locator("time")
    await expect(days).to_contain_text(f"{start.astimezone(JOHANNESBURG):%a} {start.astimezone(JOHANNESBURG).day} ")
    await expect(days).to_contain_text(f" {DASH} ")
    await expect(page.get_by_role("article")).to_contain_text("On sale from")
    await page.get_by_role("article").get_by_role("link").click()
    tickets = page.get_by_role("region", name="Tickets")
    await expect(tickets).to_contain_text("The sale opens")
    await expect(tickets).to_contain_text("Seats go on sale here.")
    assert await page.get_by_role("main").get_by_role("button").count() == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing(browser: Browser, site: Site, db: Database, dark: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """Every face of the storefront, from the smallest phone to the desk; nothing is wider than the screen."""
    place, bare = await make_organization(db), await make_organization(db)
    told = {"access_rules": "Bring your ticket.", "age_min": 12, "language": "af", "category": "theatre"}
    await a_show(db, place, slug="open", name="Die Laaste Boemeltrein", settings=told, description="Een.\n\nTwee.")
    await a_show(db, place, slug="later", sale_start_at=soon(days=2), settings={"category": "music"})
    lost = await a_show(db, place, slug="lost", name="Onafhanklikheidsgedenkfeesvieringsgeleentheid")
    dated = await a_show(db, place, slug="dated")
    await move(db, place.id, lost.id, Verb.POSTPONE, postponement_reason="illness")
    await move(db, place.id, dated.id, Verb.POSTPONE, new_date=NewDate(start_at=evening(days=75)))
    pages = [f"/{bare.slug}", f"/{place.slug}"]
    pages += [f"/{place.slug}/events/{slug}" for slug in ("open", "later", "lost", "dated", "nothing")]
    for viewport in (SMALLEST, DESKTOP):
        visit = await open_visit(browser, site, viewport=viewport, dark=dark)
        for path in pages:
            await visit.page.goto(path)
            await expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
            if path == pages[1]:
                await expect(visit.page.get_by_role("heading", level=3)).to_have_count(4)
            assert await visit.violations() == [], path
            assert not await visit.page.evaluate("document.documentElement.scrollWidth > innerWidth"), path
        await visit.context.close()
