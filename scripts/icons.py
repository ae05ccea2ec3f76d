"""Draw the icons of the web application from web/public/favicon.svg, in the sizes that devices ask for."""

import os
import re
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

PUBLIC = Path(__file__).resolve().parents[1] / "web" / "public"
SIZES = {"192": (192, True), "512": (512, True), "maskable-512": (512, False)}
"""Each with its corners, or to be cut to whatever shape a device likes."""


def main() -> None:
    svg = (PUBLIC / "favicon.svg").read_text()
    program = os.environ.get("VOELGOED_CHROMIUM") or shutil.which("chromium")
    (PUBLIC / "icons").mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, (size, is_round) in SIZES.items():
            page = browser.new_page(viewport={"width": size, "height": size})
            drawn = svg if is_round else re.sub(r' rx="14"', "", svg, count=1)
            page.set_content(f"<style>body{{margin:0}}svg{{display:block;width:{size}px}}</style>{drawn}")
            page.screenshot(path=PUBLIC / "icons" / f"{name}.png", omit_background=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
