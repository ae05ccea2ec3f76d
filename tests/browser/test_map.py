"""The buyer's seat map by itself: fast with 100,000 seats, the same picture without WebGL, whole by keyboard alone."""

import base64
import json
import mimetypes
import os
import random
import re
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, ViewportSize, expect

from tests.browser.conftest import DESKTOP, ROOT, WAIT_MS, violations_on
from tests.make.layouts import theatre
from voelgoed.http.edge import CONTENT_SECURITY_POLICY
from voelgoed.seating import presets
from voelgoed.seating.generate import generate
from voelgoed.seating.geometry import encode, geometry_of
from voelgoed.seating.model import Layout, LayoutId

expect.set_options(timeout=WAIT_MS)
SMALL_PHONE = ViewportSize(width=360, height=740)
ADDRESS = "http://127.0.0.1:9"
"""Nobody listens there: every request is answered from the folder that the harness was built into."""
LAYOUT_ID = LayoutId(uuid.UUID("01933b5c-7c1e-7d3a-9f00-1234567890ab"))
RANDS = {"Front": 650, "Stalls": 450, "Raised": 320, "Back": 180, "Loges": 900, "Terrace": 95}
TIER_RANDS = {"1": 650, "2": 320, "3": 140}
FREE, HELD, SOLD, BLOCKED = range(4)
ATTEMPTS_MAX = 20


@cache
def hall_of(name: str) -> str:
    """What the component is given, as JSON: geometry, offer and snapshot of a hall that has sold for a while."""
    layout = theatre() if name == "theatre" else generate(presets.preset(name))
    seats = {seat.code: serial for serial, (_, _, seat) in enumerate(layout.seats(), 1)}
    zones = {zone.code: serial for serial, zone in enumerate(layout.zones, 1)}
    geometry = json.loads(
        encode(geometry_of(layout, LAYOUT_ID, 1, seat_serials=seats, zone_serials=zones)),
    )
    if name == "theatre":
        geometry["categories"]["restricted_view"] = [69, 1, 1, 1]
    statuses = sold_for_a_while(geometry)
    given = {"geometry": geometry, "offer": offer_of(geometry, layout), "snapshot": snapshot_of(geometry, statuses)}
    return json.dumps(given)


def sold_for_a_while(geometry: dict[str, Any]) -> list[int]:
    """Sections sell differently well, and people sit together."""
    dice = random.Random(7)
    statuses: list[int] = []
    for zone in geometry["zones"]:
        share = dice.choice((0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0)) if len(geometry["zones"]) > 8 else 0.4
        while len(statuses) < zone["first"] + zone["count"]:
            is_taken = dice.random() < share
            kind = dice.choices((HELD, SOLD, BLOCKED), (2, 16, 1))[0] if is_taken else FREE
            run = 1 if share == 1.0 else dice.randint(1, 4)
            statuses += [SOLD if share == 1.0 else kind] * run
        del statuses[zone["first"] + zone["count"] :]
    return statuses


def snapshot_of(geometry: dict[str, Any], statuses: list[int]) -> dict[str, Any]:
    packed = bytearray(-(-len(statuses) // 4))
    for ordinal, status in enumerate(statuses):
        packed[ordinal // 4] |= status << 2 * (ordinal % 4)
    counts = []
    for zone in geometry["zones"]:
        own = statuses[zone["first"] : zone["first"] + zone["count"]] or [FREE] * 90 + [SOLD] * (zone["capacity"] - 90)
        words = {word: own.count(status) for status, word in enumerate(("available", "held", "sold", "blocked"))}
        counts.append({"zone_id": zone["zone_id"], "total": len(own), **words})
    return {
        "event_id": str(LAYOUT_ID),
        "epoch": 1,
        "map_version": 10,
        "seat_count": len(statuses),
        "statuses": base64.b64encode(packed).decode(),
        "zones": counts,
    }


def offer_of(geometry: dict[str, Any], layout: Layout) -> list[dict[str, Any]]:
    offer = []
    for zone, made in zip(geometry["zones"], layout.zones, strict=True):
        word = zone["name"].split()[0]
        rands = RANDS.get(word) or TIER_RANDS.get(zone["name"].split()[-1][0], 250)
        price = {"amount_minor": rands * 100, "currency": "ZAR"}
        offer.append(
            {
                "zone_id": zone["zone_id"],
                "place": "reserved" if zone["count"] else "standing",
                "access_mode": made.access_mode,
                "is_enabled": True,
                "prices": [{"category": "standard", "price": price}],
                "from_price": price,
            }
        )
    return offer


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The component alone, built as the project builds everything for browsers."""
    folder = tmp_path_factory.mktemp("harness")
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ.get("PATH", "")])
    command = ["npm", "run", "--silent", "build", "--", "--mode", "harness", "--outDir", str(folder), "--emptyOutDir"]
    subprocess.run(command, cwd=ROOT / "web", env={**os.environ, "PATH": path}, check=True, capture_output=True)
    return folder


Opened = Callable[..., Any]


@pytest.fixture
async def opened(browser: Browser, harness: Path) -> AsyncIterator[Opened]:
    """Opens the harness; the browser must have nothing to complain about."""
    complaints: list[str] = []
    contexts = []

    async def answer(route: Route) -> None:
        name = route.request.url.removeprefix(ADDRESS).lstrip("/") or "index.html"
        file = harness / name
        if not file.is_file():
            await route.fulfill(status=204)
            return
        await route.fulfill(
            body=file.read_bytes(),
            content_type=mimetypes.guess_type(name)[0] or "text/plain",
            headers={"content-security-policy": CONTENT_SECURITY_POLICY},
        )

    async def open_page(viewport: ViewportSize = DESKTOP, **options: Any) -> Page:
        context = await browser.new_context(viewport=viewport, locale="en-ZA", **options)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS * 2)
        page = await context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda failed: complaints.append(str(failed)))
        await page.route("**/*", answer)
        await page.goto(ADDRESS)
        await page.wait_for_function("window.harness")
        return page

    yield open_page
    for context in contexts:
        await context.close()
    assert complaints == []


async def show(page: Page, hall: str, **options: Any) -> float:
    """Mount it; how many milliseconds from the data to a picture that can be used."""
    script = f"options => harness.show({{...{hall_of(hall)}, ...options}})"
    taken: float = await page.evaluate(script, options)
    return taken


async def spoken(page: Page) -> str:
    """What a screen reader says of the thing that has the focus."""
    words: str = await page.evaluate("document.activeElement.getAttribute('aria-label')")
    return words.replace("\u00a0", " ")


async def told(page: Page) -> list[list[Any]]:
    found: list[list[Any]] = await page.evaluate("harness.told")
    return found


async def screen_place(page: Page, ordinal: int) -> tuple[float, float]:
    x, y, frame = await page.evaluate(
        """seat => [...harness.map.toScreen(...harness.map.hall.place(seat)),
                    document.querySelector('.frame').getBoundingClientRect().toJSON()]""",
        ordinal,
    )
    return frame["x"] + x, frame["y"] + y


@pytest.mark.alone
@pytest.mark.timeout(180)
async def test_100000_seats_are_drawn_by_the_card_and_changed_in_place(opened: Opened) -> None:
    """A frame of all seats costs a third of the same on a plain canvas at most, a change a tenth of building anew."""
    page = await opened()
    first_ms = await show(page, "stadium-100k")
    print(f"\n100,000 seats: {first_ms:.0f} ms from the data to a picture that can be used")

    # The quickest of each, and patience: a busy machine only adds, and most to WebGL, which would use all its cores.
    webgl, canvas = 1e9, 1e9
    for _ in range(ATTEMPTS_MAX):
        frames = await page.evaluate("harness.race(2000, 1600, 4)")
        webgl, canvas = min(webgl, *frames["webgl"]), min(canvas, *frames["canvas"])
        if canvas >= 3 * webgl:
            break
    print(f"a frame of all seats: {webgl:.0f} ms by WebGL, {canvas:.0f} ms on a canvas")
    assert canvas >= 3 * webgl

    changes = await page.evaluate("harness.deltas(64, 15)")
    delta, rebuild = min(changes["delta"]), min(changes["rebuild"])
    print(f"64 seats changed: {delta:.2f} ms; everything anew: {rebuild:.1f} ms")
    assert rebuild >= 10 * delta


async def test_a_plain_canvas_shows_the_same_picture(opened: Opened) -> None:
    """Every state of a seat has the same colour in the same place by both ways of drawing, near and far."""
    page = await opened()
    await show(page, "theatre")
    await page.evaluate("harness.map.hold([75, 76, 191]); harness.map.pend(140)")
    # The last of them near: most sections are outside, and what the card is given begins with another seat.
    for width, height, zone, looks in ((1_000, 900, "", 8), (2_600, 2_400, "", 8), (2_600, 900, 2, 3)):
        seen = await page.evaluate(f"harness.sampled({width}, {height}, {zone or 'undefined'})")
        pairs = [pair for pair in zip(seen["webgl"], seen["canvas"], strict=True) if pair[0]]
        differing = [pair for pair in pairs if max(abs(a - b) for a, b in zip(*pair, strict=True)) > 40]
        assert len({tuple(webgl) for webgl, _ in pairs}) > looks  # zones and states, not one colour
        assert len(differing) <= len(pairs) * 0.01, differing[:5]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, SMALL_PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing_in_map_and_list(opened: Opened, viewport: ViewportSize, dark: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """The map from afar, a seat with the focus, a refusal, and the list with an open row."""
    page = await opened(viewport, color_scheme="dark" if dark else "light", reduced_motion="reduce")
    await show(page, "theatre", answer="gone")
    assert await violations_on(page) == []
    await page.locator(".layer [tabindex='0']").focus()
    for _ in range(3):
        await page.keyboard.press("Enter")
    assert await violations_on(page) == []
    await page.keyboard.press("l")
    await page.get_by_role("button", name="Stalls,").click()
    await page.get_by_role("button", name="Row F,").click()
    await expect(page.get_by_role("button", name="row F, seat 8,")).to_be_visible()
    assert await violations_on(page) == []


async def test_a_seat_is_picked_and_given_back_by_keyboard_alone(opened: Opened) -> None:
    """Sections, rows, seats: arrows move, Enter goes on, Escape goes back, and each is spoken."""
    page = await opened(reduced_motion="reduce")
    await show(page, "theatre")
    while not await page.evaluate("harness.map.hasFocus"):
        await page.keyboard.press("Tab")
    assert (await spoken(page)).startswith("Front, 650 rand, ")
    await page.keyboard.press("ArrowDown")
    assert (await spoken(page)).startswith("Stalls, 450 rand")

    await page.keyboard.press("Enter")
    assert (await spoken(page)).startswith("Row D, ")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    assert (await spoken(page)).startswith("Stalls, row E, seat ")
    for _ in range(40):
        if "available" in await spoken(page):
            break
        await page.keyboard.press("ArrowRight")
    name = (await spoken(page)).split(", 450")[0]

    await page.keyboard.press("Enter")
    assert await spoken(page) == f"{name}, 450 rand, yours"
    await expect(page.get_by_role("button", name=f"{name}, ", pressed=True)).to_be_focused()
    await page.keyboard.press("Space")  # at once, and meant: nobody presses a key twice by mistake
    assert [word for word, _ in await told(page)] == ["pick", "release"]
    assert "available" in await spoken(page)

    await page.keyboard.press("Escape")
    assert (await spoken(page)).startswith("Row E, ")
    await page.keyboard.press("Escape")
    assert (await spoken(page)).startswith("Stalls, ")
    assert await page.evaluate("harness.map.isWhole")


async def test_the_list_does_what_the_map_does(opened: Opened) -> None:
    """One key away: the same seats, the same prices, the same choice; only what is open stands in the page."""
    page = await opened(SMALL_PHONE, reduced_motion="reduce")
    await show(page, "stadium-100k")
    await page.get_by_role("button", name="List").focus()
    await page.keyboard.press("l")
    await page.get_by_label("Only what is free").check()
    section = page.get_by_role("button", name="Section 1", expanded=False).first
    await section.click()
    await page.locator("button.row").first.click()
    seat = page.locator(".seats button").first
    await seat.click()
    await expect(seat).to_have_attribute("aria-pressed", "true")
    assert [word for word, _ in await told(page)] == ["pick"]
    assert await page.evaluate("document.querySelectorAll('*').length") < 6_000

    await page.keyboard.press("l")
    await expect(page.locator(".stage")).to_be_visible()


async def test_one_moves_by_wheel_drag_and_buttons_and_lights_a_price(opened: Opened) -> None:
    """The place under the pointer stays under it, a drag picks nothing, and the small map shows where one is."""
    page = await opened(reduced_motion="reduce")
    await show(page, "arena-20k")
    before = await page.evaluate("[harness.map.transform.k, ...harness.map.toHall(600, 300)]")
    await page.mouse.move(600, 300)
    await page.mouse.wheel(0, -600)
    await page.wait_for_function("k => harness.map.transform.k > 1.5 * k", arg=before[0])
    after = await page.evaluate("harness.map.toHall(600, 300)")
    assert after == pytest.approx(before[1:], abs=1)
    await expect(page.locator(".minimap")).to_be_visible()

    await page.mouse.down()
    await page.mouse.move(500, 360, steps=4)
    await page.mouse.up()
    assert await page.evaluate("harness.map.toHall(500, 360)") == pytest.approx(before[1:], abs=1)
    assert await told(page) == []

    await page.get_by_role("button", name="The whole hall").click()
    assert await page.evaluate("harness.map.isWhole")
    await expect(page.locator(".minimap")).to_have_count(0)
    await page.keyboard.press("+")
    assert not await page.evaluate("harness.map.isWhole")

    price = page.get_by_role("button", name=re.compile(r"R.320"))
    await price.click()
    await expect(price).to_have_attribute("aria-pressed", "true")
    assert await page.evaluate("harness.map.lit.zones.length") == 32
    await price.click()
    assert await page.evaluate("harness.map.lit") is None


async def test_a_finger_goes_nearer_and_then_holds(opened: Opened) -> None:
    """On a phone seats that are too small are looked at first; then a tap holds the one that is under it."""
    page = await opened(SMALL_PHONE, reduced_motion="reduce", has_touch=True, is_mobile=True)
    await show(page, "theatre")
    free = 150
    await page.evaluate("seat => harness.apply({mapVersion: 99, ordinals: [seat], statuses: [0]})", free)
    await page.touchscreen.tap(*await screen_place(page, free))
    await page.evaluate("harness.drawn()")
    assert await told(page) == []
    assert await page.evaluate("harness.map.seatPx") >= 26

    await page.touchscreen.tap(*await screen_place(page, free))
    await page.evaluate("harness.drawn()")
    assert await told(page) == [["pick", free]]
    await expect(page.locator(".tip")).to_contain_text("yours")


async def test_what_others_do_is_seen_and_spoken(opened: Opened) -> None:
    """A change is drawn without being asked for, and an older one is not; at rest nothing is drawn at all."""
    page = await opened(reduced_motion="reduce")
    await page.evaluate("""() => {
        const draw = window.requestAnimationFrame.bind(window);
        window.frames_asked = 0;
        window.requestAnimationFrame = done => (window.frames_asked++, draw(done));
    }""")
    await show(page, "theatre")
    free = await page.evaluate("harness.map.looks.findIndex(look => look === 0)")
    await page.evaluate("seat => { harness.map.focus = {level: 'seat', seat}; }", free)
    button = page.locator(".layer [tabindex='0']")
    await expect(button).to_have_attribute("aria-label", re.compile(r"^Front, row A, seat \d+, 650\srand, available$"))

    assert await page.evaluate("seat => harness.apply({mapVersion: 11, ordinals: [seat], statuses: [1]})", free)
    await expect(button).to_have_attribute("aria-label", re.compile(r"rand, held by someone else$"))
    await expect(button).to_have_attribute("aria-disabled", "true")
    assert not await page.evaluate("seat => harness.apply({mapVersion: 11, ordinals: [seat], statuses: [0]})", free)

    await page.evaluate("harness.drawn()")
    before = await page.evaluate("frames_asked")
    await page.wait_for_timeout(400)
    assert await page.evaluate("frames_asked") == before


async def test_a_refused_seat_is_given_back_with_the_reason(opened: Opened) -> None:
    page = await opened(reduced_motion="reduce")
    await show(page, "theatre", answer="gone")
    free = await page.evaluate("harness.map.looks.findIndex(look => look === 0)")
    await page.mouse.click(*await screen_place(page, free))
    await expect(page.get_by_role("alert")).to_contain_text("was taken a moment before you")
    assert await page.evaluate("seat => harness.map.answer(seat)", free) == "free"
    await page.get_by_role("button", name="Close").click()
    await expect(page.get_by_role("alert")).to_be_empty()


async def test_places_without_numbers_are_asked_for_by_zone(opened: Opened) -> None:
    page = await opened(reduced_motion="reduce")
    await show(page, "theatre")
    terrace = await page.evaluate("harness.map.hall.sections.find(({isArea}) => isArea)")
    x, y = await page.evaluate("([x, y]) => harness.map.toScreen(x, y)", terrace["outline"]["middle"])
    await page.mouse.click(x, y)
    assert await told(page) == [["zone", terrace["zoneId"]]]


async def test_a_lost_card_comes_back_or_is_done_without(opened: Opened) -> None:
    """Seats are drawn again when the browser gives the card back, and on a plain canvas when it never had one."""
    page = await opened(reduced_motion="reduce")
    await show(page, "theatre")
    inked = """async () => {
        await harness.drawn();
        const seats = document.querySelector('canvas.seats');
        return new Promise(done => requestAnimationFrame(() => {
            harness.map.revision++;
            requestAnimationFrame(() => requestAnimationFrame(async () => {
                const bitmap = await createImageBitmap(seats);
                const ctx = new OffscreenCanvas(seats.width, seats.height).getContext('2d');
                ctx.drawImage(bitmap, 0, 0);
                const { data } = ctx.getImageData(0, 0, seats.width, seats.height);
                let count = 0;
                for (let at = 3; at < data.length; at += 4) if (data[at] > 128) count++;
                done(count);
            }));
        }));
    }"""
    lose = "document.querySelector('canvas.seats').getContext('webgl2').getExtension('WEBGL_lose_context')"
    whole = await page.screenshot()
    await page.evaluate(f"window.lost = {lose}; lost.loseContext()")
    await page.wait_for_timeout(200)
    assert await page.screenshot() != whole
    await page.evaluate("lost.restoreContext()")
    await page.wait_for_timeout(200)
    assert await page.screenshot() == whole

    await page.evaluate("""() => {
        const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
            return kind === 'webgl2' ? null : get.call(this, kind, ...more);
        };
    }""")
    await show(page, "theatre")
    assert await page.evaluate(inked) > 5_000
