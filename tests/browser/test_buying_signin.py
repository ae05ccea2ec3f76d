"""A guest signs in while they buy: what they hold stays theirs, and where it cannot they are told."""

import re

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, Guest
from tests.browser.test_buying import SMALL_PHONE, basket, hold_by, open_sale, price, rows, said_of, tap
from tests.make.accounts import PASSWORD, Person, make_person
from tests.make.holds import Sale
from tests.make.seating import as_registry
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.db import Connection
from voelgoed.events.model import OPERATOR
from voelgoed.seating import policies
from voelgoed.wiring import Services

pytestmark = pytest.mark.usefixtures("following")


@pytest.fixture
async def person(services: Services, sale: Sale) -> Person:
    """Somebody with an account at the theatre."""
    password_hash = await services.door.passwords.hash(PASSWORD)
    return await make_person(services.db, sale.place, password_hash=password_hash)


async def allow(sale: Sale, **limits: object) -> None:
    async with sale.db.transaction(sale.place.id) as conn:
        await policies.save(conn, sale.place.id, limits, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test")


async def sign_in(page: Page, person: Person) -> None:
    """At the door, with what the person knows."""
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    await expect(page.get_by_text("What you hold as a guest stays yours.")).to_be_visible()
    await page.get_by_label("E-mail", exact=True).fill(person.email or "")
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()


async def seconds_left(page: Page) -> int:
    minutes, seconds = (await basket(page).get_by_role("timer").inner_text()).split(":")
    return 60 * int(minutes) + int(seconds)


async def test_who_signs_in_keeps_the_basket(guest: Guest, sale: Sale, person: Person) -> None:
    """Seats and places, the countdown, and the seats as theirs on the map; here, in another tab, and for everybody."""
    visit, other = await guest(), await guest()
    page = visit.page
    await open_sale(page, sale)
    await open_sale(other.page, sale)
    await tap(page, sale, "STALLS-E-10")
    await tap(page, sale, "STALLS-E-11")
    await expect(basket(page)).to_contain_text("2 places held for you")
    await basket(page).get_by_role("button", name="Terrace").click()
    await page.get_by_role("dialog").get_by_role("button", name="Hold 1 place").click()
    await expect(basket(page)).to_contain_text("3 places held for you")
    tab = await visit.context.new_page()
    await open_sale(tab, sale)
    await expect(basket(tab)).to_contain_text("3 places held for you")
    await expect(other.page.locator(".area")).to_contain_text("239 left")
    held = {row["id"]: row["expires_at"] for row in await rows(sale)}
    seen_elsewhere = await other.page.locator(".seat-map").get_attribute("aria-label")
    before = await seconds_left(page)

    await basket(page).get_by_role("link", name="Sign in", exact=True).click()
    await sign_in(page, person)

    await expect(page.get_by_role("heading", level=1)).to_have_text(sale.event.name)
    await expect(basket(page)).to_contain_text("3 places held for you")
    await expect(basket(page)).not_to_contain_text("You are here as a guest")
    await expect(basket(page).locator(".total")).to_contain_text(price(995))
    assert 0 < await seconds_left(page) <= before
    await expect(page.get_by_text("went back, because")).to_have_count(0)
    assert {row["id"]: row["expires_at"] for row in await rows(sale)} == held
    assert {row["user_id"] for row in await rows(sale)} == {person.user_id}

    # The other tab is the same person now, with the same seats.
    await expect(basket(tab)).not_to_contain_text("You are here as a guest")
    await expect(basket(tab)).to_contain_text("3 places held for you")
    # To somebody else nothing has happened: the seats are held, and not to be had.
    await tap(other.page, sale, "STALLS-E-10")
    await expect(basket(other.page)).to_contain_text("Nothing is held")
    assert await other.page.locator(".seat-map").get_attribute("aria-label") == seen_elsewhere
    assert {row["user_id"] for row in await rows(sale)} == {person.user_id}

    # On the map the seat is their own: a tap gives it back, here and in the other tab.
    await page.bring_to_front()  # what is behind another tab is not drawn
    await expect(page.locator(".frame[data-drawn]")).to_be_visible()
    await expect(page.get_by_text("The seats are coming")).to_have_count(0)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("2 places held for you")
    await expect(basket(tab)).to_contain_text("2 places held for you")
    assert said_of(visit) == said_of(other) == []


@pytest.mark.parametrize("viewport", [SMALL_PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_what_the_account_may_not_hold_is_told(
    guest: Guest, site: Site, sale: Sale, person: Person, viewport: ViewportSize
) -> None:
    """How much is kept and how much went back, in both languages; what went back is free for others."""
    await allow(sale, max_seats_per_booking=3)
    for code in ("STALLS-F-10", "STALLS-F-11"):
        assert (await hold_by(site, person, sale, code)).status_code == 201
    visit = await guest(viewport, dark=viewport == SMALL_PHONE)
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    await tap(page, sale, "STALLS-E-11")
    await expect(basket(page)).to_contain_text("2 places held for you")
    if viewport == SMALL_PHONE:
        await basket(page).get_by_role("button", name="Show all").click()
    await basket(page).get_by_role("link", name="Sign in", exact=True).click()
    await expect(page.get_by_text("What you hold as a guest stays yours.")).to_be_visible()
    assert await visit.violations() == []
    await sign_in(page, person)

    told = page.get_by_role("status").filter(has_text="Of the places you held as a guest you keep 1; 1 went back")
    await expect(told).to_be_visible()
    await expect(basket(page)).to_contain_text("3 places held for you")
    assert await visit.violations() == []
    # The notice takes its room from the map: what is held stays within the window.
    assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    assert await page.evaluate("document.documentElement.scrollHeight") == viewport["height"]
    assert (await sale.row("STALLS-E-11"))["status"] == "available"
    assert {row["user_id"] for row in await rows(sale)} == {person.user_id}
    await told.get_by_role("button", name="Close").click()
    await expect(told).to_have_count(0)
    assert said_of(visit) == []


async def test_it_is_told_in_afrikaans(guest: Guest, site: Site, sale: Sale, person: Person) -> None:
    """The same words, for whoever reads these."""
    await allow(sale, max_seats_per_booking=1)
    assert (await hold_by(site, person, sale, "STALLS-F-10")).status_code == 201
    page = (await guest()).page
    await page.add_init_script("localStorage.setItem('voelgoed.language', 'af')")
    await page.goto(f"/{sale.place.slug}/events/{sale.event.slug}/seats")
    await expect(page.locator(".frame[data-drawn]")).to_be_visible()
    await tap(page, sale, "STALLS-E-10")
    await basket(page).get_by_role("link", name="Meld aan", exact=True).click()
    await expect(page.get_by_text("Wat jy as gas hou, bly joune.")).to_be_visible()
    await page.get_by_label("E-pos", exact=True).fill(person.email or "")
    await page.get_by_label("Wagwoord", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Meld aan", exact=True).click()
    told = page.get_by_role("status").filter(has_text="behou jy 0; 1 is teruggegee")
    await expect(told).to_be_visible()


async def test_who_cannot_take_it_along_is_told_and_has_it_still(
    guest: Guest, sale: Sale, person: Person, owner_conn: Connection
) -> None:
    """Somebody is at the seat in the database and stays there: try again, they are told; then it works."""
    visit = await guest()
    page = visit.page
    await open_sale(page, sale)
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")
    (before,) = await rows(sale)
    await basket(page).get_by_role("link", name="Sign in", exact=True).click()
    async with as_registry(owner_conn) as conn:
        await conn.execute(
            "select from event_seats where event_id = $1 and seat_id = $2 for update",
            sale.event.id,
            sale.seat("STALLS-E-10"),
        )
        await sign_in(page, person)
        await expect(page.get_by_role("alert")).to_contain_text(re.compile("busy|try again", re.IGNORECASE))
    assert (await rows(sale))[0]["user_id"] == before["user_id"]
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(basket(page)).to_contain_text("1 place held for you")
    assert [(row["id"], row["user_id"]) for row in await rows(sale)] == [(before["id"], person.user_id)]
