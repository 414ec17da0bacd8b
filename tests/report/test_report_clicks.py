"""The second click: wide and narrow, light and dark, by mouse, finger and keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from browsers import MISSING, find_browser
from pages import CUT, FAINT, NAMELESS, Opened, cells, opened, started, unreadable
from playwright.sync_api import Browser, Page, expect
from ready import stages_are_there
from report_worlds import HOSTILE, write_design, write_report_dataset

import fanplan

SITES = ("east", "east", "west", "west", "east", None, "west")


class Look(NamedTuple):
    """How a page is seen."""

    width: int
    theme: Literal["light", "dark"]


LOOKS = [Look(width, theme) for width in (1400, 390) for theme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started(find_browser() or pytest.skip(MISSING)) as browser:
        yield browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plans of all layers on one page; brokers have places."""
    folder = tmp_path_factory.mktemp("clicks")
    dataset = write_report_dataset(folder / "dataset", SITES)
    plans = [
        write_design(dataset, folder / f"plan-{channels}", channels=channels) for channels in (3, 2)
    ]
    with stages_are_there():
        return fanplan.report(plans, folder / "out", workload=dataset, curve=False).page


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: f"{look.width}-{look.theme}")
def seen(request: pytest.FixtureRequest, browser: Browser, report: Path) -> Iterator[Opened]:
    touch: dict[str, Any] = {"has_touch": True} if request.param.width < 500 else {}
    with opened(browser, report, *request.param, **touch) as found:
        yield found


@pytest.fixture
def page(seen: Opened) -> Iterator[Page]:
    seen.page.evaluate("() => { location.hash = 'main'; }")
    expect(seen.page.locator("#panel")).to_be_hidden()
    yield seen.page
    assert seen.wrong == []


def panel_of(page: Page, title: str) -> str:
    """What is told of a thing, once it is open."""
    expect(page.locator("#opened")).to_have_text(title)
    expect(page.locator("#panel")).to_be_visible()
    return page.locator("#told").inner_text()


def listing_of(page: Page, name: str) -> list[str]:
    return page.locator(f"#panel h3:has-text('{name}') + * a").all_inner_texts()


def test_a_channel_opens_with_flows_members_and_its_runner_up(page: Page) -> None:
    page.locator("#channels-0-channels tbody a").first.click()
    name = page.locator("#channels-0-channels tbody a").first.inner_text()
    told = panel_of(page, f"Channel {name}")
    for words in (
        "Flows on it",
        "all of it",
        "next best place",
        "cost there",
        "Members",
        "unwanted",
    ):
        assert words in told
    members = listing_of(page, "Members")
    page.locator("#panel").get_by_role("link", name=members[0], exact=True).first.click()
    told = panel_of(page, f"Subscriber {members[0]}")
    assert name in listing_of(page, "Channels joined")
    (home,) = listing_of(page, "At broker")
    assert page.locator("#overlay-0-tree circle.lit").count() >= 1
    page.go_back()
    panel_of(page, f"Channel {name}")
    assert home


def test_names_in_a_panel_are_data(page: Page) -> None:
    page.locator("#channels-0-channels tbody a").first.click()
    page.locator("#panel ul.rows a").first.click()
    # The page follows its address a moment after the click.
    expect(page.locator("#opened")).to_have_text(re.compile(re.escape(f"Flow {HOSTILE}")))
    assert page.locator("#opened").inner_text().startswith(f"Flow {HOSTILE}")
    assert page.locator("#panel script").count() == 0


def test_a_broker_opens_from_the_tree_and_lights_its_links(page: Page) -> None:
    circle = page.locator("#overlay-0-tree circle[data-name=b0]")
    circle.click()
    told = panel_of(page, "Broker b0")
    for words in ("load", "Links", "Subscribers here", "Enters here"):
        assert words in told
    assert "lit" in (circle.get_attribute("class") or "")
    lit = page.locator("#overlay-0-tree g.lit").evaluate_all("all => all.map(g => g.dataset.name)")
    assert sorted(lit) == sorted(listing_of(page, "Links"))
    assert page.locator("#overlay-1-tree .lit").count() == 0, "another plan"


def test_a_link_and_a_group_tell_what_passes_and_why(page: Page) -> None:
    page.locator("#overlay-0-links tbody a").first.click()
    told = panel_of(page, f"Link {page.locator('#overlay-0-links tbody a').first.inner_text()}")
    assert "What passes, and why" in told
    assert "why for " in told
    page.keyboard.press("Escape")
    groups = page.locator("#groups-0-groups tbody td:first-child a")
    groups.first.click()
    told = panel_of(page, f"Group {groups.first.inner_text()}")
    assert "Brokers it is sent to" in told
    assert "Flows in it" in told


def test_the_keyboard_opens_and_closes(page: Page) -> None:
    circle = page.locator("#overlay-0-tree circle[data-name=b1]")
    circle.focus()
    page.keyboard.press("Enter")
    panel_of(page, "Broker b1")
    assert page.evaluate("document.activeElement.id") == "opened"
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert page.evaluate("document.activeElement.dataset.name") == "b1"
    assert page.locator("svg.dimmed").count() == 0


def test_the_matrix_opens_a_channel_and_shows_it(page: Page) -> None:
    box = page.locator("#channels-0-after .matrix-box")
    box.scroll_into_view_if_needed()
    box.click(position={"x": 3, "y": 20})
    expect(page.locator("#opened")).to_contain_text("Channel ")
    expect(page.locator("#channels-0-after .band")).to_have_count(1)
    page.keyboard.press("Escape")
    width = box.bounding_box()["width"]  # type: ignore[index]
    page.locator("#channels-0-after [data-zoom='0.7']").click()
    assert box.bounding_box()["width"] > width  # type: ignore[index]
    page.locator("#channels-0-after [data-zoom=all]").click()


def test_plans_stand_side_by_side_with_what_changes(page: Page) -> None:
    assert page.locator("#plans h2").inner_text() == "Plans side by side"
    heads = page.locator("#compared th").all_inner_texts()
    assert heads[2:4] == ["plan-3", "plan-2"]
    for kind in ("brokers", "subscribers"):
        listing = page.locator(f"#changes-1-{kind}")
        change = [abs(float(v.replace("−", "-"))) for v in cells(listing, 4)]
        assert change == sorted(change, reverse=True)
    assert page.locator("#changes-1-subscribers-drawn circle").count() > 4


def test_brokers_are_on_a_map_with_land(page: Page) -> None:
    figure = page.locator("#overlay-0-map")
    assert figure.locator("circle").count() == 6
    assert figure.locator(".land").count() == 1
    figure.locator("circle[data-name=b0]").click()
    panel_of(page, "Broker b0")


def test_words_can_be_read(page: Page) -> None:
    assert unreadable(page) == {}
    assert page.evaluate(FAINT) == []
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(CUT) == []
    broker = page.locator("#overlay-0-brokers tbody a").first
    broker.click()
    panel_of(page, f"Broker {broker.inner_text()}")
    assert page.evaluate(FAINT) == []
    assert page.evaluate(CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]  # type: ignore[index]


def test_closer_more_names_have_room(page: Page) -> None:
    figure = page.locator("#overlay-0-map")
    names = figure.locator(".name:not(.late)")
    assert names.count() > 0
    for _ in range(3):
        figure.get_by_role("button", name="Closer").click()
    assert unreadable(page) == {}
    figure.get_by_role("button", name="All").click()


def test_contents_lead_everywhere(page: Page, seen: Opened) -> None:
    narrow = page.viewport_size["width"] < 500  # type: ignore[index]
    assert page.locator("#contents").evaluate("one => one.open") is not narrow
    if narrow:
        page.locator("#contents summary").click()
    page.locator("#contents a[href='#marking-0']").click()
    expect(page.locator("#marking-0 h2")).to_be_in_viewport()
    if narrow:
        assert page.locator("#contents").evaluate("one => one.open") is False
    targets = page.locator("#contents a").evaluate_all("all => all.map(a => a.hash.slice(1))")
    assert len(targets) > 25
    assert all(page.evaluate("id => !!document.getElementById(id)", one) for one in targets)


def test_few_rows_have_no_search(page: Page) -> None:
    assert page.locator("#systems input").count() == (
        page.locator("#systems tbody tr").count() > 15
    )
    assert page.locator("#overlay-0-brokers input").count() == 0
    assert page.locator("#words input").count() == 1


def test_a_finger_finds_what_hovering_tells(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=390, has_touch=True, is_mobile=True) as found:
        page = found.page
        part = page.locator("#delivery-0-people rect").first
        part.scroll_into_view_if_needed()
        part.tap()
        expect(page.locator("#tip")).to_be_visible()
        page.locator("#savings h2").tap()
        expect(page.locator("#tip")).to_be_hidden()
        page.locator("#overlay-0-tree circle[data-name=b0]").tap()
        panel_of(page, "Broker b0")
        assert found.wrong == []


def test_on_paper_all_is_light_and_nothing_is_cut(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=800, theme="dark") as found:
        page = found.page
        page.emulate_media(media="print")
        assert not page.locator("nav").is_visible()
        assert not page.locator("#theme").is_visible()
        assert (
            page.locator(".scroll").first.evaluate("one => getComputedStyle(one).maxHeight")
            == "none"
        )
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
        assert page.locator("#words tbody tr:visible").count() == 40
        assert page.pdf(format="A4").startswith(b"%PDF")


def test_without_its_program_the_page_is_still_read(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=390, java_script_enabled=False) as found:
        assert found.page.locator("#contents a").first.is_visible()
        assert found.page.locator("#channels-0-channels tbody tr").count() > 0
        assert found.page.locator("#overlay-0-tree .name").first.is_visible()
