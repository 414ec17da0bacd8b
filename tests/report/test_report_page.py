"""The report in a browser: every picture is drawn, tables answer, and nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import MISSING, find_browser
from pages import (
    GROUND,
    Opened,
    cells,
    empty_pictures,
    opened,
    pictures,
    started,
    switch_theme,
    unreadable,
)
from playwright.sync_api import Browser
from ready import stages_are_there
from report_worlds import HOSTILE, write_report_world

import fanplan


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    world = write_report_world(folder)
    with stages_are_there():
        return fanplan.report(world.plans, folder / "out", workload=world.dataset).page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started(find_browser() or pytest.skip(MISSING)) as browser:
        yield browser


@pytest.fixture(scope="module")
def seen(browser: Browser, report: Path) -> Iterator[Opened]:
    with opened(browser, report) as found:
        yield found


@pytest.fixture(autouse=True)
def _nothing_is_wrong(seen: Opened) -> Iterator[None]:
    yield
    assert seen.wrong == []


def test_every_picture_is_drawn(seen: Opened) -> None:
    assert pictures(seen.page) == [
        *("waterfall-channels", "waterfall-overlay", "waterfall-groups", "waterfall-marking"),
        *("channels-curve", "channels-before", "channels-after"),
        *("overlay-tree", "overlay-load", "overlay-delay"),
        *("groups-benefit", "marking-network"),
    ]
    assert empty_pictures(seen.page) == []
    assert unreadable(seen.page) == {}


def test_tables_are_sorted(seen: Opened) -> None:
    listing = seen.page.locator("#overlay-brokers")
    heading = listing.locator("th").nth(1)
    heading.click()
    falling = [float(words) for words in cells(listing, 2)]
    assert falling == sorted(falling, reverse=True)
    heading.click()
    assert [float(words) for words in cells(listing, 2)] == falling[::-1]
    listing.locator("th").nth(0).click()
    assert cells(listing, 1) == [f"b{i}" for i in range(7)]


def test_tables_are_searched(seen: Opened) -> None:
    listing = seen.page.locator("#words")
    total = len(cells(listing, 1))
    listing.get_by_role("searchbox").fill("MULTICAST group")
    assert cells(listing, 1) == ["channel"]
    assert listing.locator(".count").inner_text() == f"1 of {total} rows"
    listing.get_by_role("searchbox").fill("")
    assert len(cells(listing, 1)) == total


def test_a_broker_tells_its_figures(seen: Opened) -> None:
    tip = seen.page.locator("#tip")
    assert not tip.is_visible()
    seen.page.locator("#overlay-tree circle").nth(3).hover()
    assert re.fullmatch(
        r"b3\nload [\d.]+ messages/\w+ of 1,000 messages/s\n\d links, \d+ clients", tip.inner_text()
    )
    seen.page.mouse.move(2, 2)
    assert not tip.is_visible()


def test_a_network_is_looked_at_closer(seen: Opened) -> None:
    figure = seen.page.locator("#overlay-tree")
    whole = figure.locator("svg").get_attribute("viewBox")
    figure.get_by_role("button", name="Closer").click()
    assert figure.locator("svg").get_attribute("viewBox") != whole
    figure.get_by_role("button", name="All").click()
    assert figure.locator("svg").get_attribute("viewBox") == whole


@pytest.mark.parametrize(
    ("figure", "kind", "begins"),
    [
        ("overlay-tree", "svg", b"<svg"),
        ("channels-curve", "png", b"\x89PNG"),
        ("channels-after", "png", b"\x89PNG"),
    ],
)
def test_pictures_are_saved(seen: Opened, figure: str, kind: str, begins: bytes) -> None:
    with seen.page.expect_download() as started:
        seen.page.locator(f"#{figure} [data-save={kind}]").click()
    assert started.value.suggested_filename == f"{figure}.{kind}"
    content = started.value.path().read_bytes()
    assert content.startswith(begins)
    assert b"var(--" not in content, "colours are in the file"


def test_dark_is_chosen_and_remembered(seen: Opened) -> None:
    page = seen.page
    light, dark = switch_theme(page)
    assert dark != light
    page.reload()
    assert page.evaluate(GROUND) == dark
    assert page.locator("#theme").inner_text() == "Light"
    page.locator("#theme").click()
    assert page.evaluate(GROUND) == light


def test_the_system_may_be_dark_and_the_screen_narrow(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=390, theme="dark") as found:
        page = found.page
        assert page.locator("#theme").inner_text() == "Light"
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.locator("h1").inner_text() == HOSTILE
        assert unreadable(page) == {}
        assert found.wrong == []
