"""The panel of a demonstration: found on every page, used by mouse and by keyboard, and by everybody."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, Visit, open_visit
from tests.demo.test_control import Hands
from tests.make.accounts import PASSWORD, Person, make_person
from tests.make.processes import free_port
from tests.make.web import Site, serving
from voelgoed.accounts.model import Role
from voelgoed.db import Database
from voelgoed.demo.control import Control, Json, Line, Parent
from voelgoed.demo.figures import DEEDS
from voelgoed.wiring import Services

Come = Callable[..., Awaitable[Visit]]
SMALL_PHONE = ViewportSize(width=360, height=740)
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")


def figures(holds: float) -> Json:
    per_s = dict.fromkeys(DEEDS, 0.0) | {"holds": holds, "arrivals": 25.0, "refused": 3.0, "sold": 12.0}
    totals = dict.fromkeys(DEEDS, 0)
    return {"per_s": per_s, "totals": totals, "people": 180, "watching": 21, "p50_ms": 6.1, "p95_ms": 48.0}


@pytest.fixture
async def owner(db: Database, services: Services) -> Person:
    """Somebody with a password, which the panel knows."""
    password_hash = await services.door.passwords.hash(PASSWORD)
    return await make_person(db, role=Role.OWNER, password_hash=password_hash)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def held() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as held:
        yield held


@pytest.fixture
async def parent(data_dir: Path, hands: Hands, owner: Person, held: AsyncExitStack) -> Parent:
    """The parent of a demonstration; its hands only note what they are asked."""
    about = {
        "organization": {"slug": owner.organization.slug, "name": owner.organization.name},
        "logins": {"owner": owner.email},
        "password": PASSWORD,
        "events": {},
        "seed": 1,
    }
    parent = Parent(data_dir / "demo.sock", hands, about, per_s=8)
    await held.enter_async_context(parent.open())
    return parent


@pytest.fixture
async def crowd(parent: Parent, held: AsyncExitStack) -> Line:
    """Somebody who says what a crowd would."""
    line = await held.enter_async_context(Control(parent.path).follow())
    for holds in range(30):
        line.tell(figures(10.0 + holds % 7))
    return line


@pytest.fixture
async def stage(services: Services, parent: Parent, crowd: Line, held: AsyncExitStack) -> Site:
    settings = services.settings.model_copy(update={"port": free_port()})
    return await held.enter_async_context(serving(replace(services, settings=settings), Control(parent.path)))


@pytest.fixture
async def come(browser: Browser, stage: Site, owner: Person, held: AsyncExitStack) -> Come:
    async def come(viewport: ViewportSize = DESKTOP) -> Visit:
        visit = await open_visit(browser, stage, viewport=viewport, dark=False)
        held.push_async_callback(visit.context.close)
        await visit.page.emulate_media(reduced_motion="reduce")
        await visit.page.goto(f"/{owner.organization.slug}")
        return visit

    return come


def tab(page: Page) -> Locator:
    return page.get_by_role("button", name="Demo: open the panel")


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="How many people come")


async def test_everything_at_a_click(come: Come, parent: Parent, hands: Hands, crowd: Line) -> None:
    """The figures are the crowd's; Redis, a process, the audit and a role are one click each; it closes again."""
    visit = await come()
    page = visit.page
    await tab(page).click()
    await expect(page.get_by_text("8 arrive every second")).to_be_visible()
    crowd.tell(figures(17.0))
    await expect(page.get_by_text("17/s")).to_be_visible()
    await expect(page.get_by_text("95 % within 48 ms")).to_be_visible()
    await expect(page.get_by_text("No request has failed.")).to_be_visible()

    await page.get_by_role("button", name="Stop Redis").click()
    await expect(page.get_by_role("button", name="Start Redis")).to_be_visible()
    await page.get_by_role("button", name="Start Redis").click()
    await expect(page.get_by_role("button", name="Stop Redis")).to_be_visible()
    assert hands.turns == [False, True]
    await page.get_by_role("button", name="Kill the worker").click()
    await expect(page.get_by_role("button", name="Kill the worker")).to_have_attribute("aria-disabled", "false")
    assert [did[0] for did in hands.did] == ["worker"]

    await page.get_by_role("button", name="Verify").click()
    await expect(page.get_by_role("button", name="Verify again")).to_be_visible()
    await expect(page.locator("[role=status] .note")).to_be_visible(timeout=30_000)

    await page.get_by_role("button", name="Owner").click()
    await expect(page.get_by_text("You are Anna now.")).to_be_visible()
    await expect(page.get_by_role("link", name="Organise")).to_be_visible()
    # Signed in, the panel still works: it does not ask in anybody's name.
    await page.get_by_role("button", name="Kill a web process").click()
    await expect(page.get_by_role("button", name="Kill a web process")).to_have_attribute("aria-disabled", "false")
    assert [did[0] for did in hands.did] == ["worker", "web"]

    await page.get_by_role("button", name="Close the panel").click()
    await expect(tab(page)).to_be_focused()
    assert visit.complaints == []


async def test_by_keyboard_alone(come: Come, parent: Parent) -> None:
    """The last stop of the page opens it, arrows move the crowd, Escape closes it and gives the focus back."""
    visit = await come()
    page = visit.page
    await expect(tab(page)).to_be_visible()
    await tab(page).focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Demonstration")).to_be_focused()
    await expect(slider(page)).to_have_attribute("aria-valuetext", "Many, 8 arrive every second")
    for _ in range(3):
        await page.keyboard.press("Tab")
    await expect(slider(page)).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(slider(page)).to_have_attribute("aria-valuetext", "A rush, 25 arrive every second")
    assert parent.per_s == 25
    await page.keyboard.press("Home")
    await expect(page.get_by_text("Nobody comes")).to_be_visible()
    assert parent.per_s == 0
    await page.keyboard.press("Escape")
    await expect(tab(page)).to_be_focused()


async def test_what_is_refused_is_said(come: Come, hands: Hands) -> None:
    """A process that is away cannot be killed; the next order takes the sentence away."""
    visit = await come()
    page = visit.page
    await tab(page).click()
    await expect(page.get_by_role("button", name="Kill the worker")).to_be_visible()
    hands.can_kill = False
    await page.get_by_role("button", name="Kill the worker").click()
    await expect(page.get_by_role("alert")).to_have_text("That was not done. Try once more.")
    await page.get_by_role("button", name="Stop Redis").click()
    await expect(page.get_by_role("alert")).to_have_text("")


@pytest.mark.parametrize("viewport", [DESKTOP, SMALL_PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing(come: Come, viewport: ViewportSize) -> None:
    """Closed and open, by day and by night, large and small; and nothing is wider than the screen."""
    visit = await come(viewport)
    page = visit.page
    await expect(tab(page)).to_be_visible()
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        assert await visit.violations() == []
    await tab(page).click()
    await expect(slider(page)).to_be_visible()
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        assert await visit.violations() == []
    inner = "[...document.querySelectorAll('.panel, .panel .rest')].every((one) => one.scrollWidth <= one.clientWidth)"
    assert await page.evaluate(inner)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_an_installation_shows_no_tab(visit: Visit) -> None:
    """Nor does it fetch what would show one."""
    fetched: list[str] = []
    visit.page.on("request", lambda request: fetched.append(request.url))
    await visit.page.goto("/", wait_until="networkidle")
    await expect(tab(visit.page)).to_have_count(0)
    assert not [url for url in fetched if "demo" in url]
