"""A real browser: Debian's Chromium, driven by Playwright."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright

from tests.make.accounts import make_organization
from tests.make.holds import Sale, on_sale
from tests.make.layouts import theatre
from tests.make.processes import environment, free_port
from tests.make.web import Site
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.holds.following import Follower
from voelgoed.wiring import Services

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP = ViewportSize(width=1440, height=900)
PHONE = ViewportSize(width=390, height=844)
WAIT_MS = 15_000
PRICES = {"FRONT": 65_000, "STALLS": 45_000, "RAISED": 32_000, "BACK": 18_000, "TERRACE": 9_500}


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a worker; each test gets a context of its own."""
    # The shell is the same browser without the windows that nobody sees, which cost more than a quarter of the work.
    program = os.environ.get("VOELGOED_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
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


async def violations_on(page: Page) -> list[str]:
    """What axe finds wrong: by all its rules, but nothing is told of what is right, which would take longer."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    found = await page.evaluate("axe.run({resultTypes: ['violations']})")
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found["violations"]]


@dataclass(slots=True)
class Visit:
    """A page, and everything the browser complained about."""

    page: Page
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)

    async def violations(self) -> list[str]:
        """What axe finds wrong for people with disabilities."""
        return await violations_on(self.page)


Guest = Callable[..., Awaitable[Visit]]
House = tuple[str, dict[str, str]]


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


@pytest.fixture
async def following(services: Services, site: Site) -> AsyncIterator[None]:
    """What a serving process does beside answering: it hears of what others have changed."""
    was, closing = services.availability.is_live, asyncio.Event()
    follower = Follower(services.db, services.redis, services.availability, services.projection, pace_s=0.05)
    running = asyncio.create_task(follower.run(closing))
    yield
    closing.set()
    await running
    services.availability.is_live = was


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db, name="Die Skouburg")


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    """A theatre on sale: four prices, loges for members, a terrace where people stand."""
    return await on_sale(services, place, layout=theatre(), amounts=PRICES, capacity=None, slug="boemeltrein")


@pytest.fixture
async def guest(browser: Browser, site: Site) -> AsyncIterator[Guest]:
    """Opens a browser of its own for each who comes."""
    opened: list[Visit] = []

    async def come(viewport: ViewportSize = DESKTOP, *, dark: bool = False, is_touch: bool = False) -> Visit:
        visit = await open_visit(browser, site, viewport=viewport, dark=dark)
        if is_touch:
            await visit.context.close()
            context = await browser.new_context(
                viewport=viewport, base_url=site.address, locale="en-ZA", has_touch=True, is_mobile=True
            )
            context.set_default_timeout(15_000)
            visit = Visit(await context.new_page(), context)
        opened.append(visit)
        return visit

    yield come
    for visit in opened:
        await visit.context.close()


@pytest.fixture
def house(data_dir: Path) -> Iterator[House]:
    """An installation such as `make serve` starts: its port, and the settings it runs with."""
    port = str(free_port())
    env = environment(data_dir)
    with (data_dir / "serve.log").open("w") as log:
        argv = [str(ROOT / ".venv/bin/voelgoed"), "serve", "--port", port]
        process = subprocess.Popen(argv, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    with process:
        assert process.stdout is not None
        try:
            assert port in process.stdout.readline(), (data_dir / "serve.log").read_text()
            yield port, env
        finally:
            process.terminate()
