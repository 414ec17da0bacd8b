"""The page of a watch: for who knows its address, up to date, and fit for a phone."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import MISSING, find_browser
from followed import Unspark, even, first_plan, follower, run, skewed
from pages import started
from playwright.sync_api import Browser, expect

from fanplan.core.errors import InputError
from fanplan.layers.registry import load_plan
from fanplan.systems.observed.carried import Carrier, Counts
from fanplan.watching.measured import Meter
from fanplan.watching.page import served

STREAM = [*({n: even()} for n in range(4)), *({n: skewed(3)} for n in range(4, 12))]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_plan(tmp_path_factory.mktemp("plan"), even())


@pytest.fixture
def watch(plan: Path, tmp_path: Path) -> Unspark:
    made = run(follower(tmp_path, plan, STREAM[:3], {4: 4}))
    made.batches = STREAM
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started(find_browser() or pytest.skip(MISSING)) as browser:
        yield browser


def code_of(address: str) -> int:
    try:
        with urllib.request.urlopen(address) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_only_who_knows_the_address_sees_it(watch: Unspark) -> None:
    with served(watch.state, 0) as address:
        stored = watch.state.folder / "page.json"
        assert json.loads(stored.read_text()) == {"address": address}
        assert stored.stat().st_mode & 0o077 == 0
        host, secret = address.rstrip("/").rsplit("/", 1)
        assert host.startswith("http://127.0.0.1:")
        assert len(secret) >= 32
        assert code_of(address) == code_of(f"{address}told.json") == 200
        for other in ("/", f"/{secret[:-1]}/", f"/{secret}x/told.json", f"/{secret}/../watch.json"):
            assert code_of(host + other) == 404
        with (
            pytest.raises(InputError, match="cannot be listened on"),
            served(watch.state, int(host.rsplit(":", 1)[1])),
        ):
            pass
    assert not stored.exists()


def test_the_page_shows_what_servers_count_and_who_does_not_answer(
    watch: Unspark, browser: Browser
) -> None:
    epoch = load_plan(watch.state.version(0) / "plan").record.seal[:8]
    channel, link = Carrier(epoch, "channel 0"), Carrier("", "link hub → spoke")
    one, two = ("s", "1", "1"), ("s", "link", "1")
    counts: list[Counts] = [{one: (channel, n), two: (link, 2 * n)} for n in (0, 50)]
    meter = Meter(["http://a", "http://b"], 10.0, deque(zip((0.0, 10.0), counts, strict=True)))
    meter.silent["http://b"] = "http://b: no monitor answers"
    with served(watch.state, 0, meter) as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.locator("#measured")).to_contain_text("by the counters of 1 server over")
        expect(page.locator("#silent li")).to_have_text("http://b: no monitor answers")
        rows = page.locator("#links tbody tr")
        expect(rows.first.locator("td").nth(2)).to_have_text("5")
        expect(rows.last).to_contain_text("link hub → spoke")
        expect(rows.last.locator("td").nth(2)).to_have_text("10")
        expect(rows.last.locator("td").nth(1)).to_have_text("–")
        page.close()


def test_the_page_follows_while_the_stream_runs(watch: Unspark, browser: Browser) -> None:
    with served(watch.state, 0) as address:
        context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True)
        page, wrong = context.new_page(), []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        expect(page.locator("#state")).to_contain_text("Window 1: keep")
        expect(page.locator("#versions > li")).to_have_count(1)
        expect(page.locator("#links tbody tr")).to_have_count(3)
        expect(page.locator("#measured")).to_contain_text("rates from the stream are worked out")
        expect(page.locator("#links th", has_text="measured")).to_be_hidden()
        run(watch)
        expect(page.locator("#state")).to_contain_text("Window 10", timeout=30_000)
        versions = watch.state.last().version + 1
        assert versions > 1
        expect(page.locator("#versions > li")).to_have_count(versions)
        first = page.locator("#versions > li").first
        expect(first).to_contain_text("changes in")
        first.locator("summary").click()
        expect(first.locator("details li").first).to_contain_text("Step 1: ")
        assert page.locator("#costs polyline").count() == 3
        assert page.locator("#costs line").count() == versions - 1
        assert page.locator("#drift polyline").count() == 1
        told = page.evaluate("document.querySelector('#costs .now').getAttribute('points')")
        assert len(told.split()) == 11
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert wrong == []
        context.close()
