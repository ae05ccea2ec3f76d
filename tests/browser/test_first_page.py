"""A stranger opens a new installation."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import DESKTOP, PHONE, Visit, open_visit
from tests.make.web import Site

expect.set_options(timeout=15_000)


async def test_a_stranger_sees_that_it_runs_and_makes_it_theirs(visit: Visit) -> None:
    """The page says how the installation is doing; language and theme are chosen and remembered."""
    page = visit.page
    await page.goto("/")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Nothing is on sale yet")
    await expect(page.get_by_text("Everything it needs is in place.")).to_be_visible()
    await expect(page.get_by_text("In order")).to_have_count(3)

    await page.get_by_label("Language").select_option("af")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Die saal is stil")
    assert await page.evaluate("document.documentElement.lang") == "af"

    before = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    await page.get_by_role("button", name="Donker").click()
    dark = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert dark != before

    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Die saal is stil")
    assert await page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == dark
    assert visit.complaints == []


async def test_an_unknown_address_is_answered_kindly(visit: Visit) -> None:
    """The shell stays, and there is a way back."""
    await visit.page.goto("/no/such/page")
    await expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
    await visit.page.get_by_role("main").get_by_role("link").first.click()
    await expect(visit.page.get_by_role("heading", level=1)).to_contain_text("Nothing is on sale yet")
    assert visit.complaints == []


async def test_the_page_works_with_the_keyboard_alone(visit: Visit) -> None:
    """The first stop is the way past the bar, and focus is always visible."""
    page = visit.page
    await page.goto("/")
    await expect(page.get_by_text("Everything it needs is in place.")).to_be_visible()
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.getAttribute('href')") == "#content"
    for _ in range(4):
        await page.keyboard.press("Tab")
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        around = await page.evaluate("getComputedStyle(document.activeElement.parentElement).outlineStyle")
        assert "solid" in (outline, around)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing(browser: Browser, site: Site, viewport: dict[str, int], dark: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """By day and by night, on a desk and in a hand."""
    visit = await open_visit(
        browser, site, viewport={"width": viewport["width"], "height": viewport["height"]}, dark=dark
    )
    for path in ("/", "/no/such/page"):
        await visit.page.goto(path)
        await expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
        if path == "/":
            await expect(visit.page.get_by_text("Everything it needs is in place.")).to_be_visible()
        assert await visit.violations() == []
        too_wide = await visit.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not too_wide
    await visit.context.close()
