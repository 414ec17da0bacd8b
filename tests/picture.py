"""The picture of a report in the README: its tree, with a broker opened.

`make picture` makes it anew from the report of the demo.
"""

from __future__ import annotations

import sys
from pathlib import Path

from browsers import MISSING, find_browser
from pages import opened, started
from playwright.sync_api import Page

WIDTH = 1400
ROOM = 16
"""Pixels above and below what is in the picture."""


def take(report: Path, out: Path) -> None:
    """Light and wide: the tree, and the broker with the highest load as its table has it."""
    program = find_browser() or sys.exit(MISSING)
    # A page that glides to its place would be taken on its way.
    with (
        started(program) as browser,
        opened(browser, report, width=WIDTH, reduced_motion="reduce") as found,
    ):
        found.page.locator("#overlay-brokers tbody a").first.click()
        found.page.wait_for_selector("#overlay-tree .lit", state="attached")
        frame(found.page, "#overlay-tree")
        if found.wrong:
            sys.exit(f"{report} cannot be shown: {', '.join(found.wrong)}")
        out.parent.mkdir(parents=True, exist_ok=True)
        found.page.screenshot(path=out)
    print(f"{out}: {out.stat().st_size:,} bytes")


def frame(page: Page, part: str) -> None:
    """The window as high as a part of the page, and that part in it."""
    height = page.locator(part).evaluate("one => one.getBoundingClientRect().height")
    page.set_viewport_size({"width": WIDTH, "height": round(height) + 2 * ROOM})
    page.locator(part).evaluate(
        "(one, room) => scrollTo(0, scrollY + one.getBoundingClientRect().top - room)", ROOM
    )
    top = page.locator(part).evaluate("one => one.getBoundingClientRect().top")
    if abs(top - ROOM) > 1:
        sys.exit(f"{part} cannot be framed: it is {top:.0f} pixels from the top")


if __name__ == "__main__":
    take(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))
