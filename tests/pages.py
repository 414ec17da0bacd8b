"""A report opened in a browser, and watched: what it logs, breaks or fetches is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Locator, Page, Request, sync_playwright

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

OVERLAPPING = """svg => {
  const boxes = [...svg.querySelectorAll("text:not(.late)")]
    .map(text => [text.textContent, text.getBoundingClientRect()]);
  const { left, right } = svg.getBoundingClientRect();
  const cut = boxes.filter(([, box]) => box.left < left - 1 || box.right > right + 1);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const over = boxes.filter(([, a], i) => boxes.some(([, b], j) => j > i && meet(a, b)));
  return [...cut, ...over].map(([words]) => words);
}"""
"""Words of a drawing that are cut off, or that lie over others."""

FAINT = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const one of document.querySelectorAll("main *, header *, nav *, #panel *")) {
    const own = [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !one.getClientRects().length || one.closest("option")) continue;
    const style = getComputedStyle(one);
    const ink = parse(one.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${one.tagName} ${one.textContent.slice(0, 30)}`);
  }
  return found;
}"""
"""Words with less contrast than 4.5 to 1."""

NAMELESS = """() => [
  ...[...document.querySelectorAll("svg")].filter(one => !one.getAttribute("aria-label")),
  ...[...document.querySelectorAll("img")].filter(one => !one.alt),
  ...[...document.querySelectorAll("button, a, input")].filter(
    one => !(one.textContent.trim() || one.getAttribute("aria-label"))),
].map(one => one.outerHTML.slice(0, 80))"""
"""What cannot be read out."""

CUT = """() => [...document.querySelectorAll("main *, header *, nav *, #panel *")].filter(one => {
  const moves = one.closest(".scroll, svg, .matrix-scroll, [hidden], .skip");
  if (moves || !one.getClientRects().length) return false;
  const { left, right } = one.getBoundingClientRect();
  return left < -1 || right > innerWidth + 1 || one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).overflowX === "hidden" && !one.matches(".picture");
}).map(one => one.outerHTML.slice(0, 80))"""
"""What is cut off at the side of the screen; tables can be moved."""

GROUND = "getComputedStyle(document.body).backgroundColor"


@dataclass
class Opened:
    """A page, and what it must not do."""

    page: Page
    wrong: list[str] = field(default_factory=list)


@contextmanager
def started(program: str) -> Iterator[Browser]:
    """A browser for some pages."""
    with sync_playwright() as playwright:
        # As root chromium runs only without its sandbox; the page is our own.
        options = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser,
    report: Path,
    width: int = 1280,
    theme: Literal["light", "dark"] = "light",
    **wishes: Any,
) -> Iterator[Opened]:
    """The page as it is first seen, once it can be clicked."""
    seen: Any = {"color_scheme": theme, "viewport": {"width": width, "height": 900}}
    context = browser.new_context(**seen, **wishes)
    found = Opened(context.new_page())
    watch(found, report)
    found.page.goto(report.as_uri())
    if wishes.get("java_script_enabled", True):
        found.page.wait_for_selector("html[data-ready]", state="attached")
    yield found
    context.close()


def watch(found: Opened, report: Path) -> None:
    def requested(request: Request) -> None:
        if request.url != report.as_uri() and not request.url.startswith(("data:", "blob:")):
            found.wrong.append(f"requests {request.url}")

    found.page.on("request", requested)
    found.page.on("console", lambda message: found.wrong.append(f"logs {message.text}"))
    found.page.on("pageerror", lambda error: found.wrong.append(f"breaks: {error}"))


def pictures(page: Page) -> list[str]:
    names: list[str] = page.locator("figure").evaluate_all("all => all.map(one => one.id)")
    return names


def empty_pictures(page: Page) -> list[str]:
    """Pictures of one colour, and drawings of which next to nothing is seen."""
    return [name for name in pictures(page) if not is_drawn(page.locator(f"figure#{name}"))]


def is_drawn(figure: Locator) -> bool:
    if figure.locator("img").count():
        return bool(figure.locator("img").evaluate(COLOURS) > 1)
    return bool(figure.locator("svg").evaluate(SIZED) > 5)


def unreadable(page: Page) -> dict[str, list[str]]:
    """Drawings with words that cannot be read."""
    names = [name for name in pictures(page) if page.locator(f"figure#{name} svg").count()]
    found = {name: page.locator(f"figure#{name} svg").evaluate(OVERLAPPING) for name in names}
    return {name: words for name, words in found.items() if words}


def cells(listing: Locator, column: int) -> list[str]:
    """The words of a column in the rows that are seen."""
    return listing.locator(f"tbody tr:visible td:nth-child({column})").all_inner_texts()


def switch_theme(page: Page) -> tuple[str, str]:
    """The colour of the page before and after."""
    before = page.evaluate(GROUND)
    page.locator("#theme").click()
    return before, page.evaluate(GROUND)
