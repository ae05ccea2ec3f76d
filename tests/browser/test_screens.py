"""Pictures of every screen, for the README and for eyes: the demonstration's own data, and its crowd."""

import asyncio
import io
from pathlib import Path

import httpx2
import pytest
from PIL import Image
from playwright.async_api import Browser, FloatRect, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE, ROOT, open_visit
from tests.make.accounts import make_person
from tests.make.processes import Installation, installation
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
    if path.endswith("/live"):
        await expect(page.locator(".frame[data-drawn]")).to_be_visible()
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


# A sale under way: the demonstration as it runs, with its crowd.

TAKEN_AT_LEAST = {"theatre": 120, "festival": 60, "stadium": 60}
"""So many places are held or sold before the halls are worth a picture."""
NEARER = {"theatre": 4, "festival": 4, "stadium": 10}
FILM = ViewportSize(width=1280, height=860)
FRAMES = 40
FRAME_MS = 250


async def test_take_the_pictures_of_a_sale(browser: Browser, data_dir: Path) -> None:
    """Three halls far and near, the event room, the panel and the platform; and the live map, moving."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    with installation(data_dir, "--crowd", "25") as demonstration:
        site = Site(demonstration.address, httpx2.AsyncClient(base_url=demonstration.address))
        async with site.client:
            await until_sold(site, demonstration)
            pictures = [await film(browser, site)]
            for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
                for theme in ("light", "dark"):
                    visit = await open_visit(browser, site, viewport=viewport, dark=theme == "dark")
                    await visit.page.emulate_media(reduced_motion="reduce")
                    pictures += await halls(visit.page, f"{size}-{theme}")
                    await sign_in(visit.page, demonstration, "owner")
                    room = f"{ORG}/admin/events/{demonstration.about['events']['theatre']}/live"
                    pictures.append(await taken(visit.page, room, f"organiser-room-{size}-{theme}"))
                    pictures.append(await panel(visit.page, f"demo-panel-{size}-{theme}"))
                    await sign_in(visit.page, demonstration, "super_admin")
                    pictures.append(await taken(visit.page, "/platform", f"platform-{size}-{theme}"))
                    await visit.context.close()
    assert all(path.stat().st_size > 5_000 for path in pictures)


async def until_sold(site: Site, demonstration: Installation) -> None:
    """Until the crowd has left something to see in each hall."""
    for name, least in TAKEN_AT_LEAST.items():
        path = f"/api/events/{demonstration.about['events'][name]}/occupancy"
        for _ in range(1_000):
            told = (await site.client.get(path)).json()["data"]
            if told["held"] + told["sold"] >= least:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError(f"nobody buys at {name}")


async def open_hall(page: Page, name: str) -> None:
    await page.goto(f"{ORG}/events/{demo_events.SHOWS[name].slug}/seats")
    await expect(page.locator(".frame[data-drawn]")).to_be_visible()
    await expect(page.get_by_text("The seats are coming")).to_have_count(0)


async def halls(page: Page, how: str) -> list[Path]:
    pictures = []
    for name in TAKEN_AT_LEAST:
        await open_hall(page, name)
        pictures.append(await snapped(page, f"seats-{name}-{how}"))
        box = await page.locator(".seat-map").bounding_box()
        assert box is not None
        await page.mouse.move(box["x"] + 0.36 * box["width"], box["y"] + 0.68 * box["height"])
        for _ in range(NEARER[name]):
            await page.mouse.wheel(0, -300)
        await page.wait_for_timeout(600)  # the camera's way
        pictures.append(await snapped(page, f"seats-{name}-near-{how}"))
    return pictures


async def panel(page: Page, name: str) -> Path:
    await open_hall(page, "theatre")
    await page.get_by_role("button", name="Demo: open the panel").click()
    return await snapped(page, name)


async def snapped(page: Page, name: str) -> Path:
    picture = SCREENS / f"{name}.png"
    await page.screenshot(path=picture)
    print(picture.relative_to(ROOT))
    return picture


async def sign_in(page: Page, demonstration: Installation, role: str) -> None:
    login = demonstration.about["logins"][role]
    await page.context.clear_cookies()
    await page.goto(f"{ORG}/sign-in")
    await page.get_by_label("E-mail", exact=True).fill(login["email"])
    await page.get_by_label("Password", exact=True).fill(login["password"])
    await page.get_by_role("main").get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Sign in")).to_have_count(0)


async def film(browser: Browser, site: Site) -> Path:
    """Ten seconds of the map while others buy."""
    visit = await open_visit(browser, site, viewport=FILM, dark=False)
    await open_hall(visit.page, "theatre")
    await visit.page.get_by_role("button", name="Larger", exact=True).click()
    hall = await visit.page.locator(".seat-map").bounding_box()
    assert hall is not None
    clip = FloatRect(**hall)
    await visit.page.wait_for_timeout(600)  # the camera's way
    frames = []
    for _ in range(FRAMES):
        shot = await visit.page.screenshot(clip=clip)
        frames.append(Image.open(io.BytesIO(shot)).convert("RGB").quantize(96, dither=Image.Dither.NONE))
        await visit.page.wait_for_timeout(FRAME_MS)
    await visit.context.close()
    picture = SCREENS / "live-map.gif"
    frames[0].save(picture, save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0, optimize=True)
    print(picture.relative_to(ROOT), picture.stat().st_size)
    return picture
