"""The picture of a report in the README: its tree, with a broker opened.

`make picture` makes it anew from the report of the demo.
"""

from __future__ import annotations

import sys
from pathlib import Path

from browsers import MISSING, find_browser
from pages import opened, started

WIDTH = 1400


def take(report: Path, out: Path) -> None:
    """Light and wide: the broker with the highest load, as its table has it."""
    program = find_browser() or sys.exit(MISSING)
    with started(program) as browser, opened(browser, report, width=WIDTH) as found:
        found.page.locator("#overlay-brokers tbody a").first.click()
        found.page.locator("#overlay-tree").evaluate("one => one.scrollIntoView()")
        found.page.wait_for_function("() => document.querySelector('#overlay-tree .lit')")
        if found.wrong:
            sys.exit(f"{report} cannot be shown: {', '.join(found.wrong)}")
        out.parent.mkdir(parents=True, exist_ok=True)
        found.page.screenshot(path=out)
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    take(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))
