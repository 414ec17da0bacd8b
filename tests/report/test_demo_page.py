"""The report of the demo in a browser: all pictures drawn, it answers, and fetches nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import MISSING, find_browser
from pages import Opened, cells, empty_pictures, opened, pictures, started, switch_theme, unreadable
from playwright.sync_api import Browser

PICTURES = [
    *("waterfall-delivery", "delivery-parts", "changes-subscribers-drawn", "changes-brokers-drawn"),
    *("delivery-people", "delivery-brokers"),
    *("waterfall-channels", "channels-curve", "channels-before", "channels-after"),
    *("overlay-tree", "overlay-load", "overlay-delay"),
    *("waterfall-groups", "groups-benefit", "marking-network"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started(find_browser() or pytest.skip(MISSING)) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(demo: Path) -> Path:
    return demo / "report" / "index.html"


@pytest.fixture(scope="module")
def seen(browser: Browser, page: Path) -> Iterator[Opened]:
    with opened(browser, page, width=1440) as found:
        yield found


@pytest.fixture(autouse=True)
def _nothing_is_wrong(seen: Opened) -> Iterator[None]:
    yield
    assert seen.wrong == []


def test_every_picture_is_drawn(seen: Opened) -> None:
    assert pictures(seen.page) == PICTURES
    assert empty_pictures(seen.page) == []
    assert unreadable(seen.page) == {}


def test_one_headline_is_first(seen: Opened) -> None:
    assert seen.page.locator(".headline").count() == 1
    assert re.fullmatch(r"\d+ % less", seen.page.locator(".headline .big").inner_text())
    assert seen.page.locator("section").first.get_attribute("id") == "savings"


def test_audience_classes_are_sorted(seen: Opened) -> None:
    listing = seen.page.locator("#delivery-classes")
    listing.locator("th").nth(3).click()
    people = [int(words) for words in cells(listing, 4)]
    assert people == sorted(people, reverse=True)
    assert people[0] > people[-1]
    listing.locator("th").nth(3).click()
    assert [int(words) for words in cells(listing, 4)] == people[::-1]


def test_a_broker_tells_its_figures(seen: Opened) -> None:
    seen.page.locator("#overlay-tree circle").first.hover()
    said = seen.page.locator("#tip").inner_text()
    assert re.match(
        r"b\d+, site\d\nload [\d.,]+ messages/\w+ of [\d,]+ messages/s\nwithout channels", said
    )
    assert re.search(r"\d+ multicast channels inside site\d$", said)


def test_a_part_of_the_cost_tells_its_figures(seen: Opened) -> None:
    seen.page.locator("#delivery-parts rect").last.hover()
    assert seen.page.locator("#tip").inner_text().startswith("this plan\n")


def test_dark_is_switched_on_and_off(seen: Opened) -> None:
    light, dark = switch_theme(seen.page)
    assert dark != light
    assert empty_pictures(seen.page) == []
    assert switch_theme(seen.page) == (dark, light)


def test_a_phone_shows_all_of_it(browser: Browser, page: Path) -> None:
    with opened(browser, page, width=390, theme="dark") as found:
        assert found.page.evaluate("document.documentElement.scrollWidth") == 390
        assert empty_pictures(found.page) == []
        assert unreadable(found.page) == {}
        assert found.wrong == []
