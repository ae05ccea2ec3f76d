"""A person comes in, makes the place theirs, and leaves."""

from playwright.async_api import Browser, expect

from tests.browser.conftest import PHONE, Visit, open_visit
from tests.make.accounts import PASSWORD, make_organization
from tests.make.web import Site
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.ids import new_id

expect.set_options(timeout=15_000)


async def register(visit: Visit, place: Organization, email: str) -> None:
    page = visit.page
    await page.goto(f"/{place.slug}/register")
    await page.get_by_label("Name", exact=True).fill("Anna")
    await page.get_by_label("E-mail", exact=True).fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Make the account").click()
    await expect(page.get_by_role("link", name="Your account: Anna")).to_be_visible()


async def test_register_change_the_language_sign_out_and_in(visit: Visit, site: Site, db: Database) -> None:
    """The whole round by mouse; a wrong password is explained, the right one opens the door again."""
    place, email = await make_organization(db, name="Die Skouburg"), f"{new_id().hex}@example.test"
    page = visit.page
    await register(visit, place, email)
    await page.get_by_role("link", name="Your account: Anna").click()
    await page.get_by_role("combobox", name="Your language").select_option("af")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Jou rekening")
    await page.get_by_role("button", name="Meld af", exact=True).click()
    await expect(page).to_have_url(f"{site.address}/{place.slug}")

    await page.get_by_label("Taal").select_option("en")
    await page.goto(f"/{place.slug}/account")
    await expect(page).to_have_url(f"{site.address}/{place.slug}/sign-in?next=%2F{place.slug}%2Faccount")
    await page.get_by_label("E-mail", exact=True).fill(email)
    await page.get_by_label("Password", exact=True).fill("not the password")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("The e-mail address or the password is wrong")
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await expect(page).to_have_url(f"{site.address}/{place.slug}/account")
    # The browser itself notes the refused request; nothing else may be said.
    assert all("401" in complaint for complaint in visit.complaints), visit.complaints


async def test_no_script_can_read_the_session(visit: Visit, db: Database) -> None:
    """The cookie is out of reach, and nothing of it is kept where a script could find it."""
    place, email = await make_organization(db), f"{new_id().hex}@example.test"
    await register(visit, place, email)
    seen = await visit.page.evaluate(
        "document.cookie + JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage})"
    )
    assert "vgs_" not in seen
    held = [cookie for cookie in await visit.context.cookies() if cookie.get("name") == "vg_session"]
    assert [(cookie.get("httpOnly"), cookie.get("sameSite")) for cookie in held] == [(True, "Lax")]


async def test_axe_finds_nothing_on_the_doors(browser: Browser, site: Site, db: Database) -> None:
    """Every screen of this stage, in a hand, by night and by day."""
    place, email = await make_organization(db), f"{new_id().hex}@example.test"
    for dark in (False, True):
        visit = await open_visit(browser, site, viewport=PHONE, dark=dark)
        for path in ("", "/sign-in", "/register", "/forgot-password"):
            await visit.page.goto(f"/{place.slug}{path}")
            await expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
            assert await visit.violations() == [], path
        if not dark:
            await register(visit, place, email)
            await visit.page.goto(f"/{place.slug}/account")
            await expect(visit.page.get_by_role("button", name="Delete my account")).to_be_visible()
            assert await visit.violations() == []
        await visit.context.close()
