"""The organiser's pages: from an empty house to an event that is published, postponed, dated and cancelled."""

from datetime import datetime, timedelta

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, Visit, open_visit
from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, make_gate, make_venue, move, soon
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.events.model import Verb

expect.set_options(timeout=15_000)


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db, name="Passievol")


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.fixture
async def desk(visit: Visit, site: Site, owner: Person) -> Page:
    """An owner at their desk."""
    await come_in(visit, site, owner)
    return visit.page


async def come_in(visit: Visit, site: Site, person: Person) -> None:
    await visit.context.add_cookies(
        [
            {"name": "vg_session", "value": person.token, "url": site.address},
            {"name": "vg_signed_in", "value": "1", "url": site.address},
        ]
    )


def local(moment: datetime) -> str:
    """As a field for a date and a time wants it."""
    return moment.strftime("%Y-%m-%dT%H:%M")


async def ask_for(page: Page, deed: str) -> Locator:
    """The dialog that a lifecycle button opens; it has the focus."""
    await page.get_by_role("button", name=deed, exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    assert await dialog.evaluate("dialog => dialog.contains(document.activeElement)")
    return dialog


async def event_of(site: Site, person: Person, event_id: object) -> dict[str, object]:
    """The event as the server has it."""
    answer = await site.client.get(f"/api/admin/events/{event_id}", headers=person.headers)
    assert answer.status_code == 200, answer.text
    event: dict[str, object] = answer.json()["data"]
    return event


async def status_of(site: Site, person: Person, event_id: object) -> object:
    return (await event_of(site, person, event_id))["status"]


async def make_by_hand(page: Page, place: Organization) -> str:
    """A venue and a draft there, by the forms; the draft's id. Leaves its page open."""
    await page.goto(f"/{place.slug}/admin/venues")
    await page.get_by_role("main").get_by_role("link", name="New venue").first.click()
    await page.get_by_label("Name", exact=True).fill("Die Skouburg")
    await expect(page.get_by_label("Web address")).to_have_value("die-skouburg")
    await page.get_by_label("How many people it holds").fill("352")
    await page.get_by_label("Time zone").select_option("Africa/Johannesburg")
    await page.get_by_role("button", name="Make the venue").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Die Skouburg")

    await page.get_by_role("link", name="Events", exact=True).click()
    await page.get_by_role("main").get_by_role("link", name="New event").first.click()
    await page.get_by_label("Name", exact=True).fill("Die Laaste Boemeltrein")
    await page.get_by_label("Begins", exact=True).fill(local(soon(days=40)))
    await page.get_by_label("Ends", exact=True).fill(local(soon(days=40, hours=2)))
    await page.get_by_role("button", name="Make the draft").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Die Laaste Boemeltrein")
    return page.url.rsplit("/", 1)[-1]


async def test_from_an_empty_house_to_a_cancelled_event(
    desk: Page, visit: Visit, site: Site, owner: Person, place: Organization
) -> None:
    """Venue, event, publish, postpone without a date, a date, cancel: each is asked, done, said and recorded."""
    page = desk
    event_id = await make_by_hand(page, place)

    dialog = await ask_for(page, "Publish")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Publish", exact=True)).to_be_focused()
    assert await status_of(site, owner, event_id) == "draft"
    dialog = await ask_for(page, "Publish")
    await dialog.get_by_role("button", name="Publish it").click()
    await expect(page.get_by_text("It is published. Everybody can see it.")).to_be_visible()

    dialog = await ask_for(page, "Postpone")
    await dialog.get_by_role("button", name="Postpone it").click()
    await expect(dialog.get_by_text("Say why, for the journal.")).to_be_visible()
    assert await status_of(site, owner, event_id) == "published"
    await dialog.get_by_label("Why", exact=True).fill("The roof leaks")
    await dialog.get_by_label("What the public is told").select_option("weather")
    await dialog.get_by_role("button", name="Postpone it").click()
    await expect(page.get_by_text("Postponed without a new date.")).to_be_visible()
    postponed = await event_of(site, owner, event_id)
    assert (postponed["status"], postponed["postponement_reason"]) == ("postponed", "weather")

    dialog = await ask_for(page, "Give a new date")
    new_start = soon(days=60).replace(second=0)
    await dialog.get_by_label("New beginning").fill(local(new_start))
    await dialog.get_by_label("Why", exact=True).fill("The roof is mended")
    await dialog.get_by_role("button", name="Use this date").click()
    await expect(page.get_by_text("It has a new date.")).to_be_visible()
    await expect(page.get_by_text("Postponed without a new date.")).to_have_count(0)
    # Two hours east of Greenwich: what was typed is the venue's clock.
    dated = await event_of(site, owner, event_id)
    assert dated["rescheduled_at"] == (new_start - timedelta(hours=2)).isoformat().replace("+00:00", "Z")

    dialog = await ask_for(page, "Cancel")
    await dialog.get_by_label("Why", exact=True).fill("The company is ill")
    await dialog.get_by_role("button", name="Yes, cancel it").click()
    await expect(page.get_by_text("It is cancelled.")).to_be_visible()
    assert await status_of(site, owner, event_id) == "cancelled"

    history = page.get_by_role("region", name="What happened")
    for sentence, reason in (
        ("Anna cancelled it.", "The company is ill"),
        ("Anna gave it a new date:", "The roof is mended"),
        ("Anna postponed it.", "The roof leaks"),
    ):
        await expect(history.get_by_role("listitem").filter(has_text=sentence)).to_contain_text(reason)
    assert visit.complaints == []


async def test_what_somebody_else_does_appears_by_itself(
    desk: Page, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """A list and an event's page follow the feed: a new row, another status, and who was in the way of nobody."""
    venue = await make_venue(db, place)
    event = await make_event(db, place, venue, "published", name="Somerkonsert")
    page = desk
    await page.goto(f"/{place.slug}/admin/events")
    rows = page.get_by_role("main").get_by_role("listitem")
    await expect(rows.filter(has_text="Somerkonsert")).to_contain_text("Published")
    await expect(page.get_by_text("Up to date")).to_be_visible()
    await make_event(db, place, venue, name="Winterkonsert")
    await expect(rows.filter(has_text="Winterkonsert")).to_contain_text("Draft")

    await page.goto(f"/{place.slug}/admin/events/{event.id}")
    await expect(page.get_by_text("Up to date")).to_be_visible()
    await move(db, place.id, event.id, Verb.POSTPONE)
    await expect(page.get_by_role("alert").first).to_contain_text("Somebody else just changed this event.")
    await expect(page.get_by_role("alert").first).to_contain_text("It is now: Postponed.")
    assert await status_of(site, owner, event.id) == "postponed"


async def test_a_stale_decision_is_explained_and_nothing_is_done(
    desk: Page, visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """Somebody cancels while a dialog is open, and renames while a form is: both are told what happened."""
    venue = await make_venue(db, place)
    event = await make_event(db, place, venue, "published", name="Somerkonsert")
    page = desk
    # Without the feed, which would have told them.
    await page.route("**/api/admin/feed", lambda route: route.abort())
    await page.goto(f"/{place.slug}/admin/events/{event.id}")
    dialog = await ask_for(page, "Postpone")
    await dialog.get_by_label("Why", exact=True).fill("The roof leaks")
    await move(db, place.id, event.id, Verb.CANCEL)
    await dialog.get_by_role("button", name="Postpone it").click()
    told = page.get_by_role("alert").filter(has_text="Somebody else was faster")
    await expect(dialog.get_by_role("alert").filter(has_text="Somebody else was faster")).to_contain_text(
        "It is now: Cancelled. As it stands now, this cannot be done any more."
    )
    await expect(dialog.get_by_role("button", name="Postpone it")).to_have_count(0)
    assert await visit.violations() == []
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).to_have_count(0)
    assert await status_of(site, owner, event.id) == "cancelled"

    other = await make_event(db, place, venue, name="Winterkonsert")
    await page.goto(f"/{place.slug}/admin/events/{other.id}")
    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_label("Description").fill("With an interval.")
    renamed = await site.client.patch(
        f"/api/admin/events/{other.id}", json={"name": "Lentekonsert"}, headers=owner.headers
    )
    assert renamed.status_code == 200, renamed.text
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(told).to_contain_text("Changed: name.")
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Lentekonsert")
    await expect(page.get_by_label("Description")).to_have_value("With an interval.")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    saved = await event_of(site, owner, other.id)
    assert (saved["name"], saved["description"]) == ("Lentekonsert", "With an interval.")
    # The browser itself notes the refused requests and the feed that does not come.
    assert all("409" in said or "ERR_FAILED" in said for said in visit.complaints), visit.complaints


async def test_a_dialog_decides_about_what_it_was_opened_for(
    desk: Page, visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """The page behind it follows the feed, the dialog does not: it explains, does nothing, and can be meant again."""
    event = await make_event(db, place, await make_venue(db, place), "published", name="Somerkonsert")
    page = desk
    await page.goto(f"/{place.slug}/admin/events/{event.id}")
    await expect(page.get_by_text("Up to date")).to_be_visible()
    dialog = await ask_for(page, "Cancel")
    await dialog.get_by_label("Why", exact=True).fill("The roof leaks")
    renamed = await site.client.patch(
        f"/api/admin/events/{event.id}", json={"name": "Lentekonsert"}, headers=owner.headers
    )
    assert renamed.status_code == 200, renamed.text
    await expect(page.locator("h1")).to_have_text("Lentekonsert")

    await dialog.get_by_role("button", name="Yes, cancel it").click()
    told = dialog.get_by_role("alert").filter(has_text="Somebody else was faster")
    await expect(told).to_contain_text("Changed: name. If you still want this, confirm it again.")
    after = await event_of(site, owner, event.id)
    assert (after["status"], after["version"]) == ("published", renamed.json()["data"]["version"])
    assert await visit.violations() == []

    await expect(dialog.get_by_label("Why", exact=True)).to_have_value("The roof leaks")
    await dialog.get_by_role("button", name="Yes, cancel it").click()
    await expect(page.get_by_text("It is cancelled.")).to_be_visible()
    assert await status_of(site, owner, event.id) == "cancelled"
    # The browser itself notes the refused request.
    assert all("409" in said for said in visit.complaints), visit.complaints


async def test_the_list_is_searched_by_the_server(desk: Page, visit: Visit, db: Database, place: Organization) -> None:
    """A name is found among more than are loaded; what is over stands with the latest first."""
    venue, page = await make_venue(db, place), desk
    for number in range(101):
        at = soon(days=10, hours=number)
        await make_event(db, place, venue, name=f"Aand {number}", start_at=at, end_at=at + timedelta(hours=1))
    for number in (1, 2, 3):
        at = soon(days=number)
        await make_event(
            db, place, venue, "cancelled", name=f"Verby {number}", start_at=at, end_at=at + timedelta(hours=1)
        )
    await page.goto(f"/{place.slug}/admin/events")
    over = page.get_by_role("region", name="Over").get_by_role("listitem")
    await expect(over.locator("b")).to_have_text(["Verby 3", "Verby 2", "Verby 1"])
    await expect(page.get_by_role("button", name="Cancelled 3", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="Draft", exact=True)).to_be_visible()
    rows = page.get_by_role("main").get_by_role("listitem")
    await expect(rows.filter(has_text="Aand 100")).to_have_count(0)

    await page.get_by_role("searchbox").fill("aand 100")
    await expect(rows.locator("b")).to_have_text(["Aand 100"])
    await expect(page.get_by_role("button", name="All 1", exact=True)).to_be_visible()
    assert await visit.violations() == []
    await page.get_by_role("searchbox").fill("")
    await expect(rows).to_have_count(103)
    await page.get_by_role("button", name="Load more").click()
    await expect(page.get_by_role("button", name="All 104", exact=True)).to_be_visible()
    assert visit.complaints == []


async def test_gates_are_added_opened_renamed_and_removed(
    desk: Page, site: Site, db: Database, place: Organization
) -> None:
    """A gate's whole life on the venue's page; whoever scans sees it open."""
    venue = await make_venue(db, place)
    page = desk
    await page.goto(f"/{place.slug}/admin/venues/{venue.id}")
    await page.get_by_role("button", name="Add a gate").click()
    await page.get_by_role("dialog").get_by_label("Name", exact=True).fill("Main entrance")
    await page.get_by_label("Code", exact=True).fill("main")
    await page.get_by_role("button", name="Add it", exact=True).click()
    switch = page.get_by_role("switch", name="Main entrance: Closed")
    await switch.click()
    await expect(page.get_by_role("switch", name="Main entrance: Open")).to_be_checked()
    scanner = await make_person(db, place, Role.SCANNER)
    seen = await site.client.get(f"/api/admin/venues/{venue.id}/gates?status=open", headers=scanner.headers)
    assert [(gate["gate_code"], gate["name"]) for gate in seen.json()["data"]] == [("MAIN", "Main entrance")]

    await page.get_by_role("button", name="Edit Main entrance").click()
    await page.get_by_role("dialog").get_by_label("Name", exact=True).fill("North entrance")
    await page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    await page.get_by_role("button", name="Delete North entrance").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    await expect(page.get_by_text("There are no gates here yet.")).to_be_visible()


async def test_staff_see_the_event_and_no_lifecycle_buttons(
    visit: Visit, site: Site, db: Database, place: Organization
) -> None:
    """Staff read and change the words of what is published; they change venues when the organization lets them."""
    venue = await make_venue(db, place)
    await make_event(db, place, venue, "published", name="Somerkonsert")
    staff, leader = await make_person(db, place, Role.STAFF), await make_person(db, place, Role.ADMIN)
    await come_in(visit, site, staff)
    page = visit.page
    await page.goto(f"/{place.slug}")
    await page.get_by_role("link", name="Organise").click()
    await page.get_by_role("region", name="On sale").get_by_role("link", name="Somerkonsert").click()
    await expect(page.get_by_text("Administrators and owners publish, postpone and cancel.")).to_be_visible()
    for deed in ("Postpone", "Cancel", "Go live", "Back to draft", "Give a new date", "Change the venue"):
        await expect(page.get_by_role("button", name=deed, exact=True)).to_have_count(0)
    await expect(page.get_by_role("heading", name="What happened")).to_have_count(0)
    await page.get_by_role("button", name="Edit", exact=True).click()
    await expect(page.get_by_label("Name", exact=True)).to_be_visible()
    await expect(page.get_by_label("Begins", exact=True)).to_have_count(0)

    await page.get_by_role("link", name="Venues", exact=True).click()
    await expect(page.get_by_text("Administrators and owners change venues here.")).to_be_visible()
    await expect(page.get_by_role("link", name="New venue")).to_have_count(0)
    changed = await site.client.put(
        "/api/admin/event-policy", json={"staff_may_change_venues": True}, headers=leader.headers
    )
    assert changed.status_code == 200, changed.text
    await expect(page.get_by_role("link", name="New venue")).to_be_visible()
    assert visit.complaints == []


async def test_a_customer_is_told_what_to_do(visit: Visit, site: Site, db: Database, place: Organization) -> None:
    """Nothing of the organiser's pages for a customer, and a stranger is asked to sign in first."""
    page = visit.page
    await page.goto(f"/{place.slug}/admin/venues")
    await expect(page).to_have_url(f"{site.address}/{place.slug}/sign-in?next=%2F{place.slug}%2Fadmin%2Fvenues")
    await come_in(visit, site, await make_person(db, place))
    await page.goto(f"/{place.slug}/admin")
    await expect(page.get_by_role("heading", level=1)).to_have_text("This part is for the people behind the scenes.")
    await expect(page.get_by_text("ask an owner to give you another role")).to_be_visible()
    await expect(page.get_by_role("link", name="Organise")).to_have_count(0)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing_behind_the_scenes(
    browser: Browser, site: Site, db: Database, place: Organization, owner: Person, *, dark: bool
) -> None:
    """Every page and a dialog of each kind, in a hand and on a desk; nothing is wider than the screen."""
    venue = await make_venue(db, place)
    await make_gate(db, venue)
    event = await make_event(db, place, venue, "published")
    undated = await make_event(db, place, venue, "postponed", name="Fees")
    paths = ("events", "events/new", f"events/{event.id}", f"events/{undated.id}", "venues", "venues/new")
    for viewport in (DESKTOP, PHONE):
        visit = await open_visit(browser, site, viewport=viewport, dark=dark)
        await come_in(visit, site, owner)
        page = visit.page
        for path in (*paths, f"venues/{venue.id}"):
            await page.goto(f"/{place.slug}/admin/{path}")
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            await expect(page.get_by_text("One moment")).to_have_count(0)
            assert await visit.violations() == [], path
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        await page.goto(f"/{place.slug}/admin/events/{event.id}")
        for deed in ("Postpone", "Give a new date", "Change the venue", "Cancel"):
            await ask_for(page, deed)
            await page.get_by_role("dialog").locator("button[type=submit]").click()
            assert await visit.violations() == [], deed
            await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Edit", exact=True).click()
        await expect(page.get_by_label("Description")).to_be_visible()
        # Another date is given by its own verb, with a reason.
        await expect(page.get_by_label("Begins", exact=True)).to_have_count(0)
        assert await visit.violations() == []
        assert visit.complaints == []
        await visit.context.close()
