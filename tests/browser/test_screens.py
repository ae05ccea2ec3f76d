"""Pictures of every screen, for the README and for eyes."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import DESKTOP, PHONE, ROOT, open_visit
from tests.make.accounts import make_organization, make_person
from tests.make.web import Site
from voelgoed.db import Database

pytestmark = pytest.mark.screens
SCREENS = ROOT / "docs" / "screens"
PATHS = {
    "home": "/",
    "not-found": "/no/such/page",
    "storefront": "/passievol",
    "sign-in": "/passievol/sign-in",
    "register": "/passievol/register",
    "account": "/passievol/account",
}


async def test_take_the_pictures(browser: Browser, site: Site, db: Database) -> None:
    """Each screen on phone and desktop, light and dark; a picture that is not taken fails here."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    place = await make_organization(db, slug="passievol", name="Passievol")
    taken: list[Path] = []
    for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        for theme in ("light", "dark"):
            visit = await open_visit(browser, site, viewport=viewport, dark=theme == "dark")
            person = await make_person(db, place)
            for name, path in PATHS.items():
                if name == "account":
                    await visit.context.add_cookies(
                        [
                            {"name": "vg_session", "value": person.token, "url": site.address},
                            {"name": "vg_signed_in", "value": "1", "url": site.address},
                        ]
                    )
                await visit.page.goto(path)
                await expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
                if name == "home":
                    await expect(visit.page.get_by_text("Everything it needs is in place.")).to_be_visible()
                if name == "account":
                    await expect(visit.page.get_by_role("button", name="Delete my account")).to_be_visible()
                taken.append(SCREENS / f"{name}-{size}-{theme}.png")
                await visit.page.screenshot(path=taken[-1], full_page=True, animations="disabled")
                print(taken[-1].relative_to(ROOT))
            await visit.context.close()
    assert all(path.stat().st_size > 5_000 for path in taken)
