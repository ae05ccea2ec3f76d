"""Pictures of every screen, for the README and for eyes."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import DESKTOP, PHONE, ROOT, open_visit
from tests.make.web import Site

pytestmark = pytest.mark.screens
SCREENS = ROOT / "docs" / "screens"
PATHS = {"home": "/", "not-found": "/no/such/page"}


async def test_take_the_pictures(browser: Browser, site: Site) -> None:
    """Each screen on phone and desktop, light and dark; a picture that is not taken fails here."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    taken: list[Path] = []
    for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        for theme in ("light", "dark"):
            visit = await open_visit(browser, site, viewport=viewport, dark=theme == "dark")
            for name, path in PATHS.items():
                await visit.page.goto(path)
                await expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
                if name == "home":
                    await expect(visit.page.get_by_text("Everything it needs is in place.")).to_be_visible()
                taken.append(SCREENS / f"{name}-{size}-{theme}.png")
                await visit.page.screenshot(path=taken[-1], full_page=name == "home", animations="disabled")
                print(taken[-1].relative_to(ROOT))
            await visit.context.close()
    assert all(path.stat().st_size > 5_000 for path in taken)
