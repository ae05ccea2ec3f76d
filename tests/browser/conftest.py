"""A real browser: Debian's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright

from tests.make.web import Site

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP = ViewportSize(width=1440, height=900)
PHONE = ViewportSize(width=390, height=844)
WAIT_MS = 15_000


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a worker; each test gets a context of its own."""
    program = os.environ.get("VOELGOED_CHROMIUM") or shutil.which("chromium")
    assert program, "there is no Chromium: make setup installs Debian's as root, or set VOELGOED_CHROMIUM"
    # One face for all pictures, wherever they are taken.
    fonts: dict[str, str | float | bool] = {
        **os.environ,
        "FONTCONFIG_FILE": str(Path(__file__).with_name("fonts.conf")),
    }
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], env=fonts)
        yield launched
        await launched.close()


@dataclass(slots=True)
class Visit:
    """A page, and everything the browser complained about."""

    page: Page
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)

    async def violations(self) -> list[str]:
        """What axe finds wrong for people with disabilities."""
        await self.page.evaluate(AXE.read_text())
        found = await self.page.evaluate("axe.run()")
        return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found["violations"]]


async def open_visit(browser: Browser, site: Site, *, viewport: ViewportSize, dark: bool) -> Visit:
    context = await browser.new_context(
        viewport=viewport, color_scheme="dark" if dark else "light", base_url=site.address, locale="en-ZA"
    )
    context.set_default_timeout(WAIT_MS)
    visit = Visit(await context.new_page(), context)
    visit.page.on(
        "console", lambda said: visit.complaints.append(said.text) if said.type in ("error", "warning") else None
    )
    visit.page.on("pageerror", lambda failed: visit.complaints.append(str(failed)))
    return visit


@pytest.fixture
async def visit(browser: Browser, site: Site) -> AsyncIterator[Visit]:
    """A first visit on a desktop by day."""
    opened = await open_visit(browser, site, viewport=DESKTOP, dark=False)
    yield opened
    await opened.context.close()
