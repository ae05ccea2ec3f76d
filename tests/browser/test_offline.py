"""The application without a connection, and on a home screen."""

import json
from typing import Any

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.browser.conftest import Visit
from tests.browser.test_buying import basket, open_sale, tap
from tests.make.holds import Sale
from tests.make.web import Site

CONTROLLED = """() => new Promise((done) => {
    if (navigator.serviceWorker.controller) done();
    else navigator.serviceWorker.addEventListener('controllerchange', () => done());
})"""
SMALL_PHONE = ViewportSize(width=360, height=740)


async def settle_in(page: Page) -> None:
    """Until the service worker has what it keeps, and looks after this page."""
    await page.evaluate(CONTROLLED)


async def kept(page: Page) -> list[str]:
    """The paths of everything that the browser keeps beside its own cache."""
    found: list[str] = await page.evaluate(
        """async () => {
            const caches_ = await Promise.all((await caches.keys()).map((name) => caches.open(name)));
            const requests = (await Promise.all(caches_.map((one) => one.keys()))).flat();
            return requests.map(({ url }) => new URL(url).pathname);
        }"""
    )
    return found


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize(
    ("language", "heading", "again"),
    [("en", "There is no connection.", "Try again"), ("af", "Daar is geen verbinding nie.", "Probeer weer")],
)
async def test_without_a_connection_it_is_said_so_and_goes_on_by_itself(
    visit: Visit, sale: Sale, language: str, heading: str, again: str
) -> None:
    """In the person's language, by day and by night; as soon as there is a connection the same page is there again."""
    page = visit.page
    await page.goto(f"/{sale.place.slug}/events/{sale.event.slug}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(sale.event.name)
    await page.get_by_label("Language").select_option(language)
    await settle_in(page)

    await visit.context.set_offline(True)
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    await expect(page.get_by_role("button")).to_have_text([again])
    assert await page.evaluate("document.documentElement.lang") == language
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        assert await visit.violations() == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    await visit.context.set_offline(False)
    await expect(page.get_by_role("heading", level=1)).to_have_text(sale.event.name)
    assert page.url.endswith(f"/events/{sale.event.slug}")


@pytest.mark.usefixtures("following")
async def test_the_page_without_a_connection_asks_again_when_it_is_told_to(visit: Visit) -> None:
    """The button tries, and is still there when that was in vain."""
    page = visit.page
    await page.goto("/")
    await settle_in(page)
    await visit.context.set_offline(True)
    await page.reload()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("There is no connection.")


@pytest.mark.usefixtures("following")
async def test_a_connection_is_lost_and_found_while_somebody_buys(visit: Visit, sale: Sale) -> None:
    """What stands on the screen stays there, says that it is cut off, and goes on; nothing of the server's is kept."""
    page = visit.page
    await open_sale(page, sale)
    await settle_in(page)
    await page.reload()
    await tap(page, sale, "STALLS-E-10")
    await expect(basket(page)).to_contain_text("1 place held for you")

    await visit.context.set_offline(True)
    await tap(page, sale, "STALLS-E-12")
    await expect(page.get_by_role("alert").filter(has_text="no answer came from the server")).to_be_visible()
    await expect(basket(page)).to_contain_text("1 place held for you")
    await visit.context.set_offline(False)
    await tap(page, sale, "STALLS-E-14")
    await expect(basket(page)).to_contain_text("2 places held for you")

    paths = await kept(page)
    assert sorted(path for path in paths if not path.startswith("/assets/")) == [
        "/favicon.svg",
        "/offline.css",
        "/offline.html",
        "/offline.js",
        "/theme.js",
    ]
    assert any(path.startswith("/assets/Buy-") for path in paths)


async def test_it_can_be_put_on_a_home_screen(visit: Visit, site: Site) -> None:
    """The browser finds nothing wrong with the manifest; its icons are there, in the sizes that it names."""
    page = visit.page
    await page.goto("/")
    browser = await visit.context.new_cdp_session(page)
    manifest: dict[str, Any] = await browser.send("Page.getAppManifest")
    assert manifest["errors"] == []
    wrong = (await browser.send("Page.getInstallabilityErrors"))["installabilityErrors"]
    assert [one["errorId"] for one in wrong if one["errorId"] != "in-incognito"] == []

    told = json.loads(manifest["data"])
    assert (told["display"], told["start_url"], told["scope"]) == ("standalone", "/", "/")
    sizes = {}
    for icon in told["icons"]:
        answer = await site.client.get(icon["src"])
        assert (answer.status_code, answer.headers["content-type"]) == (200, icon["type"])
        if icon["type"] == "image/png":
            sizes[icon["src"]] = "x".join(str(int.from_bytes(answer.content[at : at + 4])) for at in (16, 20))
    assert sizes == {icon["src"]: icon["sizes"] for icon in told["icons"] if icon["type"] == "image/png"}
    colours = await page.evaluate("[...document.querySelectorAll('meta[name=theme-color]')].map((one) => one.media)")
    assert colours == ["(prefers-color-scheme: light)", "(prefers-color-scheme: dark)"]
