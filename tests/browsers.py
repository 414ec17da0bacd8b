"""The browser that the report is tested with: one that is there, else installed by `make browser`.

Run as a program it installs one: Debian's chromium where packages may be installed, else the build
that belongs to the locked playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from packages import debian, succeeded

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "There is no browser to test the report with, and none could be installed.\n"
    "Install chromium (on Debian, as root: apt-get install chromium), then run the tests again."
)


def find_browser() -> str | None:
    """The program of a browser on this machine, or playwright's own."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or own_browser()


def own_browser() -> str | None:
    """The browser that playwright downloaded, if it did."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def ways_to_install() -> list[list[list[str]]]:
    """Each a list of commands that all must succeed, the surest first."""
    own = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    return [debian("chromium"), own] if shutil.which("apt-get") else [own]


def main() -> None:
    if find_browser():
        return
    print("Installing a browser for the test of the report", flush=True)
    for way in ways_to_install():
        if all(map(succeeded, way)) and find_browser():
            return
    # All other tests can still run; the one that needs it says that it was left out.
    print(MISSING, file=sys.stderr)


if __name__ == "__main__":
    main()
