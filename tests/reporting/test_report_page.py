"""The report in a browser: every picture is drawn, tables answer, and nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from browsers import MISSING, find_browser
from playwright.sync_api import Browser, Locator, Page, Request, sync_playwright
from report_worlds import HOSTILE, stages_are_there, write_report_world

import fanplan

COLOURS = """image => {
  const canvas = document.createElement("canvas");
  const width = canvas.width = image.naturalWidth, height = canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return new Set(new Uint32Array(context.getImageData(0, 0, width, height).data.buffer)).size;
}"""
"""How many colours a picture has."""

SIZED = """svg => [...svg.querySelectorAll("rect, circle, path, line, text")].filter(part => {
  const { width, height } = part.getBoundingClientRect();
  return width + height > 0;
}).length"""
"""How many parts of a drawing can be seen."""


@dataclass
class Opened:
    """A page, and what it must not do."""

    page: Page
    wrong: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    world = write_report_world(folder)
    with stages_are_there():
        return fanplan.report(world.plans, folder / "out", workload=world.dataset).page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_browser() or pytest.skip(MISSING)
    with sync_playwright() as playwright:
        # As root chromium runs only without its sandbox; the page is our own.
        options = ["--no-sandbox", "--disable-gpu"]
        started = playwright.chromium.launch(executable_path=program, args=options)
        yield started
        started.close()


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Iterator[Opened]:
    """The page as it is first seen; whatever it logs, breaks or fetches is remembered."""
    context = browser.new_context(color_scheme="light", viewport={"width": 1280, "height": 900})
    opened = Opened(context.new_page())
    watch(opened, report)
    opened.page.goto(report.as_uri())
    yield opened
    context.close()


def watch(opened: Opened, report: Path) -> None:
    def requested(request: Request) -> None:
        if request.url != report.as_uri() and not request.url.startswith(("data:", "blob:")):
            opened.wrong.append(f"requests {request.url}")

    opened.page.on("request", requested)
    opened.page.on("console", lambda message: opened.wrong.append(f"logs {message.text}"))
    opened.page.on("pageerror", lambda error: opened.wrong.append(f"breaks: {error}"))


@pytest.fixture(autouse=True)
def _nothing_is_wrong(opened: Opened) -> Iterator[None]:
    yield
    assert opened.wrong == []


def cells(listing: Locator, column: int) -> list[str]:
    return listing.locator(f"tbody tr:visible td:nth-child({column})").all_inner_texts()


def test_every_picture_is_drawn(opened: Opened) -> None:
    figures = opened.page.locator("figure")
    names = figures.evaluate_all("all => all.map(one => one.id)")
    assert names == [
        *("waterfall-channels", "waterfall-overlay", "waterfall-groups", "waterfall-marking"),
        *("channels-curve", "channels-before", "channels-after"),
        *("overlay-tree", "overlay-load", "overlay-delay"),
        *("groups-benefit", "marking-network"),
    ]
    for name in names:
        figure = opened.page.locator(f"figure#{name}")
        if figure.locator("img").count():
            assert figure.locator("img").evaluate(COLOURS) > 1, name
        else:
            assert figure.locator("svg").evaluate(SIZED) > 5, name


def test_tables_are_sorted(opened: Opened) -> None:
    listing = opened.page.locator("#overlay-brokers")
    heading = listing.locator("th").nth(1)
    heading.click()
    falling = [float(words) for words in cells(listing, 2)]
    assert falling == sorted(falling, reverse=True)
    heading.click()
    assert [float(words) for words in cells(listing, 2)] == falling[::-1]
    listing.locator("th").nth(0).click()
    assert cells(listing, 1) == [f"b{i}" for i in range(7)]


def test_tables_are_searched(opened: Opened) -> None:
    listing = opened.page.locator("#words")
    total = len(cells(listing, 1))
    listing.get_by_role("searchbox").fill("MULTICAST group")
    assert cells(listing, 1) == ["channel"]
    assert listing.locator(".count").inner_text() == f"1 of {total} rows"
    listing.get_by_role("searchbox").fill("")
    assert len(cells(listing, 1)) == total


def test_a_broker_tells_its_figures(opened: Opened) -> None:
    tip = opened.page.locator("#tip")
    assert not tip.is_visible()
    opened.page.locator("#overlay-tree circle").nth(3).hover()
    assert re.fullmatch(
        r"b3\nload [\d.]+ of 1,000 messages/s\n\d links, \d+ clients", tip.inner_text()
    )
    opened.page.mouse.move(2, 2)
    assert not tip.is_visible()


def test_a_network_is_looked_at_closer(opened: Opened) -> None:
    figure = opened.page.locator("#overlay-tree")
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
def test_pictures_are_saved(opened: Opened, figure: str, kind: str, begins: bytes) -> None:
    with opened.page.expect_download() as started:
        opened.page.locator(f"#{figure} [data-save={kind}]").click()
    assert started.value.suggested_filename == f"{figure}.{kind}"
    content = started.value.path().read_bytes()
    assert content.startswith(begins)
    assert b"var(--" not in content, "colours are in the file"


def test_dark_is_chosen_and_remembered(opened: Opened) -> None:
    page = opened.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    assert page.locator("#theme").inner_text() == "Light"
    page.locator("#theme").click()
    assert page.evaluate(ground) == light


def test_the_system_may_be_dark_and_the_screen_narrow(browser: Browser, report: Path) -> None:
    context = browser.new_context(color_scheme="dark", viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#theme").inner_text() == "Light"
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("h1").inner_text() == HOSTILE
    context.close()
