"""docs/tour.md, done as it is printed: the commands by a shell, the steps by a browser."""

import re
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.conftest import DESKTOP, ROOT, WAIT_MS, House

expect.set_options(timeout=WAIT_MS)
pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(240)]

PRINTED_PORT = "8600"
SECTIONS = ("Begin", "By the web", "By the API")
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\d+\. (.+)$", re.MULTILINE)
OPEN = re.compile(r"Open `(.+?)`( in a private window)?\.")
FILL = re.compile(r"Fill \*\*(.+?)\*\* with `(.+)`\.")
CHOOSE = re.compile(r"Choose `(.+?)` for \*\*(.+?)\*\*\.")
PRESS = re.compile(r"Press \*\*(.+?)\*\*\.")
SEE = re.compile(r"See \*(.+?)\*\.?")


def sections() -> dict[str, str]:
    """The parts of the page by their headings."""
    _, *parts = re.split(r"^## (.+)$", (ROOT / "docs" / "tour.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def shell(script: str, env: dict[str, str]) -> str:
    """Do what is printed, up to what fails; what it says."""
    argv = ["bash", "-euc", script]
    done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


async def test_the_tour_is_true(browser: Browser, house: House, tmp_path: Path) -> None:
    """Every command and every step, in their order; what they promise is seen."""
    port, env = house
    found = sections()
    assert tuple(found) == SECTIONS
    known = tmp_path / "known.sh"
    (begin,) = COMMANDS.findall(found["Begin"].replace(PRINTED_PORT, port))
    password = shell(f"{begin}\ndeclare -p SITE PASSWORD > {known}", env).splitlines()[-1]

    walk = await Walk.begin(browser, f"http://127.0.0.1:{port}", password)
    steps = STEP.findall(found["By the web"])
    assert len(steps) > 30
    for number, step in enumerate(steps, 1):
        try:
            await walk.do(step)
        except Exception as failed:
            raise AssertionError(f"{number}. {step}") from failed
    await expect(walk.page.locator(".seat-map canvas").first).to_be_visible()
    assert walk.complaints == []

    *commands, last = COMMANDS.findall(found["By the API"])
    said = shell("\n".join([f". {known}", *commands]), env)
    for promised in ("active", "published", "Held for 10 minutes.", "event: snapshot"):
        assert promised in said
    assert "nothing" in shell(last, env).lower()


class Walk:
    """Somebody who does what the page says."""

    def __init__(self, browser: Browser, address: str, password: str) -> None:
        self._browser, self._address, self._password = browser, address, password
        self.page: Page
        self.complaints: list[str] = []

    @classmethod
    async def begin(cls, browser: Browser, address: str, password: str) -> "Walk":
        walk = cls(browser, address, password)
        await walk._window()
        return walk

    async def _window(self) -> None:
        context = await self._browser.new_context(viewport=DESKTOP, base_url=self._address, locale="en-ZA")
        context.set_default_timeout(WAIT_MS)
        self.page = await context.new_page()
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda failed: self.complaints.append(str(failed)))

    async def do(self, step: str) -> None:
        if match := OPEN.fullmatch(step):
            if match[2]:
                await self._window()
            await self.page.goto(match[1])
        elif match := FILL.fullmatch(step):
            value = self._password if match[2] == "$PASSWORD" else match[2]
            await self._labelled(match[1]).fill(value)
        elif match := CHOOSE.fullmatch(step):
            box = self._labelled(match[2])
            option = box.locator("option").filter(has_text=match[1]).first
            await box.select_option(await option.get_attribute("value"))
        elif match := PRESS.fullmatch(step):
            await self._press(match[1])
        elif match := SEE.fullmatch(step):
            await expect(self._here().get_by_text(match[1], exact=True).first).to_be_visible()
        else:
            raise AssertionError("nobody knows how to do this")

    def _here(self) -> Locator:
        """Where somebody looks: at the dialog, if there is one."""
        return self.page.locator("dialog[open]").or_(self.page.locator("body:not(:has(dialog[open]))"))

    def _labelled(self, name: str) -> Locator:
        return self._here().get_by_label(name, exact=True).first

    async def _press(self, name: str) -> None:
        """A button before a link of the same name."""
        here = self._here()
        found = [here.get_by_role(role, name=name, exact=True) for role in ("button", "link", "radio")]
        await expect(found[0].or_(found[1]).or_(found[2]).first).to_be_visible()
        (one, *_) = [one.first for one in found if await one.count()]
        await one.click(force=await one.get_attribute("type") == "radio")  # what is seen of it lies over it
