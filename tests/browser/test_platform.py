"""What the platform does to an organization by its pages: a new date for an event, another role for somebody."""

import re

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, Visit, open_visit
from tests.browser.test_buying import SMALL_PHONE
from tests.browser.test_organiser import come_in, event_of, local
from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, soon
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database

expect.set_options(timeout=15_000)


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db, name="Passievol")


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.fixture
async def desk(visit: Visit, site: Site, db: Database) -> Page:
    """A super_admin at their desk."""
    await come_in(visit, site, await make_person(db, platform=Role.SUPER_ADMIN))
    return visit.page


async def test_an_event_is_postponed_to_a_date(
    desk: Page, visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """A date that is known is given there too, by the venue's clock; one that is missing is asked for at its field."""
    event = await make_event(db, place, status="published", name="Hamlet")
    await desk.goto(f"/platform/orgs/{place.id}")
    await desk.get_by_role("button", name=re.compile("Postpone.*Hamlet")).click()
    dialog = desk.get_by_role("dialog")
    await dialog.get_by_role("radio", name=re.compile("^It is known")).check()
    await dialog.get_by_label("Why", exact=True).fill("The roof may fall")
    await dialog.get_by_role("button", name="Postpone it").click()
    await expect(dialog.get_by_label("New beginning")).to_be_focused()
    await dialog.get_by_label("New beginning").fill(local(soon(days=90)))
    await dialog.get_by_role("button", name="Postpone it").click()
    await expect(dialog).to_have_count(0)
    after = await event_of(site, owner, event.id)
    assert after["status"] == "postponed"
    assert after["rescheduled_at"] is not None
    assert visit.complaints == []


async def test_somebodys_role_is_changed_with_a_reason(
    desk: Page, visit: Visit, db: Database, place: Organization, owner: Person
) -> None:
    """The team is listed, its customers are not; the last owner stays one, and that is said."""
    await make_person(db, place, Role.STAFF)
    await make_person(db, place, Role.CUSTOMER)
    await desk.goto(f"/platform/orgs/{place.id}")
    team = desk.get_by_role("region", name="Team")
    await expect(team.get_by_role("listitem")).to_have_count(2)
    await team.get_by_role("listitem").filter(has_text="Staff").get_by_role("button").click()
    dialog = desk.get_by_role("dialog")
    await dialog.get_by_role("radio", name=re.compile("^Administrator")).check()
    await dialog.get_by_label("Why", exact=True).fill("The owner is ill")
    await dialog.get_by_role("button", name="Change the role").click()
    await expect(team.get_by_role("listitem").filter(has_text="Administrator")).to_have_count(1)
    assert visit.complaints == []

    await team.get_by_role("listitem").filter(has_text="Owner").get_by_role("button").click()
    await dialog.get_by_role("radio", name=re.compile("^Staff")).check()
    await dialog.get_by_label("Why", exact=True).fill("They asked for it")
    await dialog.get_by_role("button", name="Change the role").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("owner")
    async with db.transaction(place.id) as conn:
        told = await conn.fetch("select reason from journal where kind = 'member_role_changed'")
    assert [fact["reason"] for fact in told] == ["The owner is ill"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, SMALL_PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing(
    browser: Browser,
    site: Site,
    db: Database,
    place: Organization,
    owner: Person,
    viewport: ViewportSize,
    dark: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """On the page, in both questions, and at the organization where somebody is signed in, which they cannot close."""
    await make_event(db, place, status="published", name="Hamlet")
    someone = await make_person(db, platform=Role.SUPER_ADMIN)
    visit = await open_visit(browser, site, viewport=viewport, dark=dark)
    await come_in(visit, site, someone)
    page = visit.page
    await page.goto(f"/platform/orgs/{place.id}")
    await expect(page.get_by_role("region", name="Team").get_by_role("listitem")).to_have_count(1)
    assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    assert await visit.violations() == []
    for name in ("Postpone", "Change role of"):
        await page.get_by_role("button", name=re.compile(name)).first.click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await visit.violations() == []
        await page.keyboard.press("Escape")
    await page.goto(f"/platform/orgs/{someone.organization.id}")
    await expect(page.get_by_text("You are signed in here.")).to_be_visible()
    await expect(page.get_by_role("button", name="Suspend")).to_have_count(0)
    assert await visit.violations() == []
    assert visit.complaints == []
    await visit.context.close()
