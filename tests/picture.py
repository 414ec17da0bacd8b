"""The picture of a report in the README: the top of its page, up to what the cost consists of.

`make picture` makes it anew from the report of the demo.
"""

from __future__ import annotations

import sys
from pathlib import Path

from browsers import MISSING, find_browser
from pages import opened, started

WIDTH, MARGIN = 1200, 12


def take(report: Path, out: Path) -> None:
    """Light and wide; where the pictures of the first section end, the picture ends."""
    program = find_browser() or sys.exit(MISSING)
    with started(program) as browser, opened(browser, report, width=WIDTH) as found:
        box = found.page.locator("#savings .pictures").bounding_box()
        if found.wrong or box is None:
            sys.exit(f"{report} cannot be shown: {', '.join(found.wrong) or 'it saves nothing'}")
        height = box["y"] + box["height"] + MARGIN
        out.parent.mkdir(parents=True, exist_ok=True)
        found.page.screenshot(
            path=out, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
        )
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    take(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))
