"""The organiser's office and the platform's pages: home, team, memberships, keys, journal, interventions."""

import re

import pytest
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, Visit, open_visit
from tests.browser.test_organiser import come_in, event_of
from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, make_venue, soon
from tests.make.seating import publish, seated_event, sell_seat, take_places, zone_rows
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.wiring import Services

expect.set_options(timeout=15_000)

SMALL_PHONE = ViewportSize(width=360, height=740)


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


async def named(site: Site, db: Database, place: Organization, role: Role, name: str) -> Person:
    """Somebody with a name of their own."""
    person = await make_person(db, place, role)
    told = await site.client.patch("/api/me", headers=person.headers, json={"name": name, "locale": "en"})
    assert told.status_code == 204
    return person


async def row(page: Page, name: str) -> Locator:
    """The line of a list that tells of somebody or something."""
    found = page.get_by_role("main").get_by_role("listitem").filter(has_text=name)
    await expect(found).to_be_visible()
    return found


async def test_an_owner_runs_the_team(
    desk: Page, visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """Adds by e-mail, changes a role, removes; a stranger's address and the last owner are refused in words."""
    helper = await named(site, db, place, Role.CUSTOMER, "Berta")
    assert helper.email is not None
    page = desk
    await page.goto(f"/{place.slug}/admin/team")
    await page.get_by_role("button", name="Add somebody").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("E-mail").fill("nobody@example.test")
    await dialog.get_by_role("button", name="Add to the team").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Nobody with this address has an account here")
    visit.complaints.clear()  # the browser's own word about the 404
    await dialog.get_by_label("E-mail").fill(helper.email)
    await dialog.get_by_role("radio", name=re.compile("^Gate")).check()
    await dialog.get_by_role("button", name="Add to the team").click()
    await expect(page.get_by_text("Berta is now part of the team: Gate.")).to_be_visible()

    await page.get_by_role("button", name="Change role of Berta").click()
    await dialog.get_by_role("radio", name=re.compile("^Administrator")).check()
    await dialog.get_by_role("button", name="Change the role").click()
    await expect(await row(page, "Berta")).to_contain_text("Administrator")

    await page.get_by_role("button", name="Change role of Anna").click()
    await dialog.get_by_role("radio", name=re.compile("^Staff")).check()
    await dialog.get_by_role("button", name="Change the role").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("left without an owner")
    visit.complaints.clear()
    await page.keyboard.press("Escape")
    await expect(await row(page, "Anna")).to_contain_text("Owner")

    await page.get_by_role("button", name="Remove Berta").click()
    await dialog.get_by_role("button", name="Yes, remove").click()
    await expect(page.get_by_text("Berta is no longer part of the team.")).to_be_visible()
    members = await site.client.get("/api/admin/members", headers=owner.headers)
    assert [(member["name"], member["role"]) for member in members.json()["data"]] == [("Anna", "owner")]
    assert visit.complaints == []


async def test_a_membership_is_granted_and_ended(
    desk: Page, visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """Somebody is looked for and chosen, the tier counts, and its end has a reason in the journal."""
    customer = await named(site, db, place, Role.CUSTOMER, "Lerato Dlamini")
    page = desk
    await page.goto(f"/{place.slug}/admin/memberships")
    await page.get_by_role("button", name="Grant a membership").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Tier").fill("gold")
    await dialog.get_by_role("button", name="Grant it").click()
    await expect(dialog.get_by_text("Choose somebody first.")).to_be_visible()
    await dialog.get_by_role("searchbox").fill("lerato")
    await dialog.get_by_role("button", name="Lerato Dlamini").click()
    await dialog.get_by_role("button", name="Grant it").click()
    await expect(page.get_by_text("Lerato Dlamini now has the tier gold.")).to_be_visible()
    mine = (await site.client.get("/api/me", headers=customer.headers)).json()["data"]["memberships"]
    assert [(one["tier"], one["status"]) for one in mine] == [("gold", "active")]

    await page.get_by_role("button", name="End it: gold of Lerato Dlamini").click()
    await dialog.get_by_label("Why").fill("The year is over")
    await dialog.get_by_role("button", name="Yes, end it").click()
    await expect(await row(page, "Lerato")).to_contain_text("Ended by the organization")
    await page.get_by_role("button", name="Granted", exact=True).click()
    await expect(page.get_by_text("No membership is like that.")).to_be_visible()
    await expect(page).to_have_url(f"{site.address}/{place.slug}/admin/memberships?status=active")
    facts = await site.client.get("/api/admin/audit?kind=membership_revoked", headers=owner.headers)
    assert [fact["reason"] for fact in facts.json()["data"]] == ["The year is over"]
    assert visit.complaints == []


async def test_a_key_shows_its_secret_once(desk: Page, visit: Visit, site: Site, place: Organization) -> None:
    """The secret can be copied and works; afterwards the page has it no more, and an ended key opens nothing."""
    page = desk
    await visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"/{place.slug}/admin/keys")
    await page.get_by_role("main").get_by_role("button", name="New key").first.click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Make the key").click()
    await expect(dialog.get_by_text("Give it a name.")).to_be_visible()
    await dialog.get_by_label("Name").fill("Box office")
    await dialog.get_by_role("radio", name=re.compile("^Staff")).check()
    await dialog.get_by_role("button", name="Make the key").click()
    await expect(dialog.get_by_role("heading", name="The secret of Box office")).to_be_visible()
    await dialog.get_by_role("button", name="Copy").click()
    await expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    secret = await page.evaluate("navigator.clipboard.readText()")
    headers = {"authorization": f"Bearer {secret}"}
    assert (await site.client.get("/api/admin/events", headers=headers)).status_code == 200
    await dialog.get_by_role("button", name="I have kept it").click()
    await expect(dialog).to_have_count(0)
    # It is closed before it is taken out of the page.
    await page.wait_for_function("secret => !document.documentElement.outerHTML.includes(secret)", arg=secret)

    await page.get_by_role("button", name="End it: the key Box office").click()
    await dialog.get_by_role("button", name="Yes, end it").click()
    await expect(await row(page, "Box office")).to_contain_text("Ended")
    assert (await site.client.get("/api/admin/events", headers=headers)).status_code == 401
    assert visit.complaints == []


async def test_the_journal_finds_a_deed_and_shows_what_changed(
    desk: Page, visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """By event, by kind and by person; the address is the search, and each field stands as it was and as it is."""
    event = await make_event(db, place, await make_venue(db, place), name="Boemeltrein")
    path = f"/api/admin/events/{event.id}"
    changed = await site.client.patch(path, headers=owner.headers, json={"name": "Hamlet", "capacity": 120})
    assert changed.status_code == 200, changed.text
    page = desk
    await page.goto(f"/{place.slug}/admin/events/{event.id}")
    await page.get_by_role("link", name="See everything in the journal").click()
    await expect(page).to_have_url(f"{site.address}/{place.slug}/admin/journal?event={event.id}")
    facts = page.locator("ol > li")
    await expect(facts).to_have_count(2)
    await page.get_by_role("combobox", name="What", exact=True).select_option(label="Changed")
    await expect(facts).to_have_count(1)
    await expect(page).to_have_url(f"{site.address}/{place.slug}/admin/journal?what=event_updated&event={event.id}")
    await expect(facts).to_contain_text("Anna changed “Hamlet”.")
    diff = facts.locator("dl").first
    await expect(diff.locator("div").filter(has_text="Name").locator("del")).to_contain_text("Boemeltrein")
    await expect(diff.locator("div").filter(has_text="Name").locator("ins")).to_contain_text("Hamlet")
    await expect(diff.locator("div").filter(has_text="Capacity").locator("ins")).to_contain_text("120")

    await page.reload()
    await expect(page.get_by_role("combobox", name="What", exact=True)).to_have_value("event_updated")
    await expect(facts).to_have_count(1)
    await facts.get_by_text("Details", exact=True).click()
    await expect(facts).to_contain_text("127.0.0.1")
    await page.get_by_role("button", name="Clear the search").click()
    await expect(page).to_have_url(f"{site.address}/{place.slug}/admin/journal")
    await page.get_by_role("combobox", name="Who", exact=True).select_option(label="Anna")
    await expect(facts).to_have_count(1)
    await page.locator("[name=until]").fill("2020-01-01T00:00")
    await expect(page.get_by_text("Nothing like that is recorded.")).to_be_visible()
    assert visit.complaints == []


async def test_the_platform_intervenes_with_a_reason(
    visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """A super_admin cancels an event and suspends its organization; its own journal tells both, and why."""
    event = await make_event(db, place, await make_venue(db, place), "published", name="Fees")
    home = await make_organization(db, name="The platform's own")
    operator = await make_person(db, home, platform=Role.SUPER_ADMIN)
    page = visit.page
    await page.goto("/platform")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in first")
    await come_in(visit, site, operator)
    await page.goto("/platform")
    await expect(page.get_by_role("heading", name="How this installation is doing")).to_be_visible()
    await page.get_by_role("link", name=f"/{place.slug}").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Passievol")
    await page.get_by_role("button", name="Cancel “Fees”?").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Yes, cancel it").click()
    await expect(dialog.get_by_text("Say why, for the journal.")).to_be_visible()
    await dialog.get_by_label("Why").fill("The roof may fall")
    await dialog.get_by_role("button", name="Yes, cancel it").click()
    await expect(page.get_by_text("Fees is cancelled.")).to_be_visible()
    assert (await event_of(site, owner, event.id))["status"] == "cancelled"

    await page.get_by_label("Why do you read it?").fill("To see that it is told “as it was”")
    await page.get_by_role("button", name="Read the journal").click()
    await expect(page.locator("ol > li").first).to_contain_text("The platform cancelled “Fees”.")

    for button, answer, told in (
        ("Suspend", "Yes, suspend it", "Passievol is suspended."),
        ("Open again", "Open it", "Passievol is open again."),
    ):
        await page.get_by_role("button", name=button, exact=True).click()
        await dialog.get_by_label("Why").fill("A look at its books")
        await dialog.get_by_role("button", name=answer).click()
        await expect(page.get_by_text(told)).to_be_visible()
    assert visit.complaints == []

    await come_in(visit, site, owner)
    await page.goto(f"/{place.slug}/admin/journal")
    facts = page.locator("ol > li")
    for sentence, reason in (
        ("The platform opened the organization again.", "A look at its books"),
        ("The platform suspended the organization.", "A look at its books"),
        ("The platform read this journal.", 'To see that it is told "as it was"'),
        ("The platform cancelled “Fees”.", "The roof may fall"),
    ):
        await expect(facts.filter(has_text=sentence).first).to_contain_text(reason)
    await page.goto("/platform")
    await expect(page.get_by_role("heading", level=1)).to_have_text("This part is for those who run the installation.")
    assert visit.complaints == []


async def test_an_organization_is_founded_and_a_field_locked(visit: Visit, site: Site, db: Database) -> None:
    """A new address exists at once; what the platform locks its owner finds locked."""
    operator = await make_person(db, platform=Role.SUPER_ADMIN)
    await come_in(visit, site, operator)
    page = visit.page
    await page.goto("/platform")
    await page.get_by_role("button", name="Found an organization").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Die Nuwe Skouburg")
    await expect(dialog.get_by_label("Web address")).to_have_value("die-nuwe-skouburg")
    await dialog.get_by_label("Web address").fill("platform")
    await dialog.get_by_role("button", name="Found it").click()
    await expect(dialog.get_by_text("belongs to the installation itself")).to_be_visible()
    slug = f"skouburg-{operator.user_id.hex[-12:]}"
    await dialog.get_by_label("Web address").fill(slug)
    await dialog.get_by_role("button", name="Found it").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Die Nuwe Skouburg")
    assert (await site.client.get(f"/api/storefronts/{slug}")).status_code == 200

    await page.get_by_text("0 of 19 fields are locked").click()
    await page.get_by_role("switch", name="VIP zones").click()
    await page.get_by_role("button", name="Save 1 change").click()
    await dialog.get_by_label("Why").fill("Not before they are vetted")
    await dialog.get_by_role("button", name="Change the locks").click()
    await expect(page.get_by_text("1 of 19 fields are locked")).to_be_visible()
    assert visit.complaints == []


async def test_a_tenant_manager_needs_the_organizations_word(
    visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """They are asked for the approval, which the journal keeps, and are offered nothing that is not theirs."""
    await come_in(visit, site, await make_person(db, platform=Role.TENANT_MANAGER))
    page = visit.page
    await page.goto(f"/platform/orgs/{place.id}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Passievol")
    await expect(page.get_by_role("heading", name="What is locked")).to_have_count(0)
    await page.get_by_role("button", name="Suspend", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Why").fill("They asked for it")
    await dialog.get_by_label("approval").fill("mail of 3 March")
    await dialog.get_by_role("button", name="Yes, suspend it").click()
    await expect(page.get_by_text("Passievol is suspended.")).to_be_visible()
    async with db.transaction(owner.organization.id) as conn:
        told = await conn.fetchval(
            "select data->>'tenant_approval_reference' from journal where kind = 'organization_suspended'"
        )
    assert told == "mail of 3 March"
    assert visit.complaints == []


async def test_staff_and_scanners_see_what_they_may(
    visit: Visit, site: Site, db: Database, place: Organization
) -> None:
    """The way around has no door that stays shut, and a direct address says honestly whom it is for."""
    page = visit.page
    ways = {
        Role.SCANNER: ["Home", "Events", "Venues", "Storefront"],
        Role.STAFF: ["Home", "Events", "Venues", "Policy", "Memberships", "Storefront"],
        Role.ADMIN: ["Home", "Events", "Venues", "Policy", "Team", "Journal", "Storefront"],
    }
    for role, expected in ways.items():
        await come_in(visit, site, await make_person(db, place, role))
        await page.goto(f"/{place.slug}/admin")
        links = page.get_by_role("navigation", name="Behind the scenes").get_by_role("link")
        await expect(links).to_have_text(expected)
    closed = {
        Role.SCANNER: ("policy", "team", "memberships", "keys", "journal"),
        Role.STAFF: ("team", "keys", "journal"),
    }
    for role, offices in closed.items():
        await come_in(visit, site, await make_person(db, place, role))
        for office in offices:
            await page.goto(f"/{place.slug}/admin/{office}")
            await expect(page.get_by_role("heading", level=1)).to_have_text("Not for your role")
    await page.goto(f"/{place.slug}/admin/memberships")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Memberships")
    await expect(page.get_by_role("button", name="Grant a membership")).to_have_count(0)
    assert visit.complaints == []


async def test_the_home_tells_what_needs_somebody(
    desk: Page,
    visit: Visit,
    site: Site,
    db: Database,
    services: Services,
    place: Organization,
    owner: Person,
    owner_conn: Connection,
) -> None:
    """How full, what is missing and where it is mended; a change by somebody else appears by itself."""
    seated = await seated_event(db, services.studio, place, capacity=313)
    event = await publish(services.studio, seated.event)
    zones = {zone["zone_code"]: zone["zone_id"] for zone in await zone_rows(db, event)}
    await take_places(owner_conn, event, zones["P"], sold=300)
    for ordinal in range(5):
        await sell_seat(owner_conn, event, ordinal)
    bare = await make_event(db, place, seated.venue, "published", name="Somerkonsert")
    await make_event(db, place, seated.venue, name="Hamlet", sale_start_at=soon(hours=3))
    page = desk
    await page.goto(f"/{place.slug}/admin")
    care = page.get_by_role("region", name="Needs attention")
    await expect(care.get_by_role("listitem")).to_have_count(3)
    await expect(care).to_contain_text("still a draft")
    await expect(care).to_contain_text("More than nine in ten places are sold.")
    await expect(page.get_by_role("region", name="On sale")).to_contain_text("97 % sold · 305 of 313")
    await expect(page.get_by_text("Up to date")).to_be_visible()

    cancelled = await site.client.post(
        f"/api/admin/events/{bare.id}/cancel", headers=owner.headers, json={"reason": "No hall"}
    )
    assert cancelled.status_code == 200, cancelled.text
    await expect(page.get_by_role("region", name="Past")).to_contain_text("Somerkonsert")
    await expect(care.get_by_role("listitem")).to_have_count(2)
    await care.get_by_role("link", name="Hamlet").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Hamlet")
    assert visit.complaints == []


async def test_an_empty_house_leads_to_the_first_step(
    desk: Page, visit: Visit, site: Site, db: Database, place: Organization, owner: Person
) -> None:
    """Four steps, the next of them with a way to it; what somebody else does is ticked off by itself."""
    page = desk
    await page.goto(f"/{place.slug}/admin")
    step = page.locator("[aria-current=step]")
    await expect(step).to_contain_text("Make a venue")
    await expect(page.get_by_text("Up to date")).to_be_visible()
    body = {"name": "Skouburg", "slug": "skouburg", "timezone": "Africa/Johannesburg", "max_capacity": 300}
    made = await site.client.post("/api/admin/venues", headers=owner.headers, json=body)
    assert made.status_code == 201, made.text
    await expect(step).to_contain_text("Draw its layout")
    await make_event(db, place, None, "published", name="Eerste Nag")
    await expect(page.get_by_role("region", name="On sale")).to_contain_text("Eerste Nag")
    await expect(step).to_have_count(0)
    assert visit.complaints == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing_in_the_office(
    browser: Browser, site: Site, db: Database, place: Organization, owner: Person, *, dark: bool
) -> None:
    """Every page and its dialogs, on a desk and on the smallest phone; nothing is wider than the screen."""
    operator = await make_person(db, place, Role.OWNER, platform=Role.SUPER_ADMIN)
    elsewhere = await make_organization(db)
    venue = await make_venue(db, place)
    await make_event(db, place, venue, "published", name="Fees")
    await make_event(db, place, venue, "postponed", name="Konsert")
    customer = await named(site, db, place, Role.CUSTOMER, "Lerato")
    for path, body in (
        ("memberships", {"user_id": str(customer.user_id), "tier": "gold"}),
        ("api-keys", {"name": "Box office", "role": "staff"}),
    ):
        assert (await site.client.post(f"/api/admin/{path}", headers=owner.headers, json=body)).status_code == 201
    questions = {
        "": (),
        "/team": ("Add somebody", "Change role of Anna"),
        "/memberships": ("Grant a membership", "End it: gold of Lerato"),
        "/keys": ("New key", "End it: the key Box office"),
        "/journal": (),
    }
    for viewport in (DESKTOP, SMALL_PHONE):
        visit = await open_visit(browser, site, viewport=viewport, dark=dark)
        await come_in(visit, site, operator)
        page = visit.page

        async def look(path: str, asked: tuple[str, ...], visit: Visit = visit, page: Page = page) -> None:
            await page.goto(path)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            await expect(page.get_by_text("One moment")).to_have_count(0)
            assert await visit.violations() == [], path
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            for question in asked:
                await page.get_by_role("main").get_by_role("button", name=question).first.click()
                await expect(page.get_by_role("dialog")).to_be_visible()
                assert await visit.violations() == [], question
                await page.keyboard.press("Escape")
                await expect(page.get_by_role("dialog")).to_have_count(0)

        for path, asked in questions.items():
            await look(f"/{place.slug}/admin{path}", asked)
        await look("/platform", ("Found an organization",))
        await look(f"/platform/orgs/{place.id}", ("Cancel “Fees”?",))
        await look(f"/platform/orgs/{elsewhere.id}", ("Suspend",))
        assert visit.complaints == []
        await visit.context.close()
