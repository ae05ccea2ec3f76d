"""Pictures of every screen, for the README and for eyes: the demonstration's own data."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, ROOT, open_visit
from tests.make.accounts import make_person
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.cli import demo, demo_events
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.events import operator
from voelgoed.seating import operator as layouts
from voelgoed.wiring import Services

pytestmark = [pytest.mark.screens, pytest.mark.timeout(600)]
SCREENS = ROOT / "docs" / "screens"
ORG = f"/{demo.SLUG}"
STRANGER = {
    "home": "/",
    "not-found": "/no/such/page",
    "storefront": ORG,
    "event": f"{ORG}/events/{demo_events.SHOWS['theatre'].slug}",
    "event-festival": f"{ORG}/events/{demo_events.SHOWS['festival'].slug}",
    "event-postponed": f"{ORG}/events/{demo_events.SHOWS['postponed'].slug}",
    "event-rescheduled": f"{ORG}/events/{demo_events.SHOWS['rescheduled'].slug}",
    "sign-in": f"{ORG}/sign-in",
    "register": f"{ORG}/register",
}


async def taken(page: Page, path: str, name: str) -> Path:
    """Open a page, wait until it has come to rest, take its picture."""
    await page.goto(path)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    if name.startswith("home-"):
        await expect(page.get_by_text("Everything it needs is in place.")).to_be_visible()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    picture = SCREENS / f"{name}.png"
    await page.screenshot(path=picture, full_page=True, animations="disabled")
    print(picture.relative_to(ROOT))
    return picture


async def owners_paths(db: Database, services: Services) -> dict[str, str]:
    """The organiser's own pages."""
    place = await operator.organization_at(db, demo.SLUG)
    theatre = await operator.find_event(db, place, demo_events.SHOWS["theatre"].slug)
    festival = await operator.find_event(db, place, demo_events.SHOWS["festival"].slug)
    halls = {hall.name: hall.id for hall in await layouts.list_layouts(services.studio, place)}
    desk = f"{ORG}/admin"
    return {
        "account": f"{ORG}/account",
        "organiser-home": desk,
        "organiser-team": f"{desk}/team",
        "organiser-journal": f"{desk}/journal",
        "organiser-events": f"{desk}/events",
        "organiser-event": f"{desk}/events/{theatre.event.id}",
        "organiser-seating": f"{desk}/events/{theatre.event.id}/seating",
        "organiser-seating-festival": f"{desk}/events/{festival.event.id}/seating",
        "organiser-policy": f"{desk}/policy",
        "organiser-venue": f"{desk}/venues/{theatre.venue.id}",
        "organiser-generator": f"{desk}/venues/{theatre.venue.id}/layouts/new",
        **{
            f"organiser-layout-{name}": f"{desk}/layouts/{halls[hall]}"
            for name, hall in (
                ("theatre", "Die Skouburg"),
                ("festival", "Oewerpark"),
                ("stadium", "Vaalkrans Stadium"),
            )
        },
    }


async def test_take_the_pictures(
    browser: Browser, site: Site, db: Database, services: Services, settings: Settings
) -> None:
    """Each screen on phone and desktop, light and dark; a picture that is not taken fails here."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    await demo.seed(settings)
    owner = await make_person(db, await operator.organization_at(db, demo.SLUG), Role.OWNER)
    paths = await owners_paths(db, services)
    pictures: list[Path] = []
    for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        for theme in ("light", "dark"):
            visit = await open_visit(browser, site, viewport=viewport, dark=theme == "dark")
            for name, path in STRANGER.items():
                pictures.append(await taken(visit.page, path, f"{name}-{size}-{theme}"))
            cookies = {"vg_session": owner.token, "vg_signed_in": "1"}
            await visit.context.add_cookies(
                [{"name": name, "value": value, "url": site.address} for name, value in cookies.items()]
            )
            for name, path in paths.items():
                pictures.append(await taken(visit.page, path, f"{name}-{size}-{theme}"))
            await visit.context.close()
    assert all(path.stat().st_size > 5_000 for path in pictures)
