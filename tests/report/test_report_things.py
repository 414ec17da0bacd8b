"""What opens on a click says what the plan's tables and the questions to a plan say."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from commands import run
from ready import stages_are_there
from report_worlds import (
    HOSTILE,
    ReportWorld,
    write_design,
    write_report_dataset,
    write_report_world,
)

import fanplan
from fanplan.core.errors import CheckError
from fanplan.data.dataset import Dataset
from fanplan.layers.channels.check.evidence import read_channel_truth, read_decisions
from fanplan.layers.channels.explain import explain_row
from fanplan.layers.channels.record import ChannelsRecord
from fanplan.layers.delivery.fixed import fixed_map
from fanplan.layers.registry import load_plan
from fanplan.page.content import Listing
from fanplan.page.details import MOST_PAIRS, Fact, Related, Shelf, longest, packed, plan_things
from fanplan.page.map import ground_of, land
from fanplan.page.network import WIDTH, DrawnBroker, network_drawing
from fanplan.page.numbers import rate, rate_time
from fanplan.plan.findings import Findings

SITES = ("east", "east", "west", "west", "east", None, "west")


@pytest.fixture(autouse=True)
def _no_spark() -> Iterator[None]:
    with stages_are_there():
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ReportWorld:
    return write_report_world(tmp_path_factory.mktemp("things"))


class Designed(NamedTuple):
    dataset: Path
    plan: Path


@pytest.fixture(scope="module")
def designed(tmp_path_factory: pytest.TempPathFactory) -> Designed:
    folder = tmp_path_factory.mktemp("designed")
    dataset = write_report_dataset(folder / "dataset", SITES)
    return Designed(dataset, write_design(dataset, folder / "plan", channels=3))


def things_of(page: Path) -> list[dict[str, Any]]:
    """What a page has packed, by plan."""
    found = re.search(r'id="things">([^<]*)<', page.read_text())
    assert found
    told = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return [plan["things"] for plan in told]


def fact(shelf: dict[str, Any], words: str) -> dict[str, Any]:
    """A fact of all things of a kind, by name."""
    values = next(values for own, _, values in shelf["facts"] if own == words)
    return dict(zip(shelf["names"], values, strict=True))


def listed(things: dict[str, Any], kind: str, title: str) -> dict[str, list[dict[str, Any]]]:
    """A relation of all things of a kind: by name the items with their columns."""
    shelf = things[kind]
    one = next(r for r in shelf["related"] if r["title"] == title)
    names, starts = things[one["kind"]]["names"], np.cumsum([0, *one["sizes"]])
    return {
        name: [
            {"name": names[one["items"][i]]} | {c[0]: c[2][i] for c in one["columns"]}
            for i in range(starts[row], starts[row + 1])
        ]
        for row, name in enumerate(shelf["names"])
    }


def test_a_channel_has_its_flows_and_members(world: ReportWorld, tmp_path: Path) -> None:
    plan = load_plan(world.plans[0])
    made = fanplan.report(plan.folder, tmp_path / "out", workload=world.dataset, curve=False)
    (things,) = things_of(made.page)
    carried, joined = (
        {
            (str(row["channel"]), row[item])
            for row in plan.read(table, ("channel", item)).to_pylist()
        }
        for table, item in (("channel_flows", "flow"), ("channel_subscribers", "subscriber"))
    )
    flows, members = (listed(things, "channel", title) for title in ("Flows on it", "Members"))
    assert {(c, row["name"]) for c, rows in flows.items() for row in rows} == carried
    assert {(c, row["name"]) for c, rows in members.items() for row in rows} == joined
    sent = fact(things["channel"], "sent")
    for channel, rows in members.items():
        assert [row["unwanted"] for row in rows] == sorted(
            (row["unwanted"] for row in rows), reverse=True
        )
        for row in rows:
            assert row["wanted"] + row["unwanted"] == pytest.approx(sent[channel], rel=1e-3)
    assert set(fact(things["flow"], "what it is").values()) == {"all of it"}


def test_unwanted_is_that_of_the_ledger(world: ReportWorld, tmp_path: Path) -> None:
    plan = load_plan(world.plans[0])
    made = fanplan.report(plan.folder, tmp_path / "out", workload=world.dataset, curve=False)
    (things,) = things_of(made.page)
    ledger, seconds = plan.section(ChannelsRecord).ledger, plan.record.input.seconds
    unwanted = sum(fact(things["subscriber"], "unwanted").values())
    assert unwanted * seconds == pytest.approx(ledger["received_unwanted"], rel=1e-3)
    alone = sum(fact(things["subscriber"], "wanted, by unicast").values())
    assert alone * seconds == pytest.approx(ledger["sent_unicast"], rel=1e-3)


def test_the_next_best_place_is_that_of_explain(world: ReportWorld, tmp_path: Path) -> None:
    plan = load_plan(world.plans[0])
    made = fanplan.report(plan.folder, tmp_path / "out", workload=world.dataset, curve=False)
    (things,) = things_of(made.page)
    record, dataset = plan.section(ChannelsRecord), Dataset(world.dataset)
    problem = dataset.interest()
    channels = fixed_map(plan, world.dataset, problem)
    truth = read_channel_truth(world.dataset)
    decisions = read_decisions(plan, truth, Findings())
    single = np.diff(decisions.channels.starts) == 1
    classes = dict(zip(truth.names.to_pylist(), truth.classes.tolist(), strict=True))
    alone = {name for name, one in zip(truth.names.to_pylist(), single, strict=True) if one}
    seen = 0
    for rows in listed(things, "channel", "Flows on it").values():
        for row in rows:
            if row["name"] in alone:
                told = explain_row(problem, channels, record.weights, classes[row["name"]])
                more = told["runner_up_cost"] - told["cost"]
                assert row["next best place"] == told["runner_up"]
                assert row["cost there"] - row["cost here, a second"] == pytest.approx(
                    more, rel=1e-2, abs=1e-2
                )
                seen += 1
    assert seen > 3


def test_what_passes_a_link_adds_up(designed: Designed, tmp_path: Path) -> None:
    """Few flows, so that all are told: together they are what the brokers' ledger counts."""
    made = fanplan.report(designed.plan, tmp_path / "out", workload=designed.dataset, curve=False)
    (things,) = things_of(made.page)
    passing = listed(things, "link", "What passes, and why")
    assert any(passing.values())
    for link, rows in passing.items():
        for row in rows:
            assert set(row["direction"].split(" → ")) == set(link.split(" – "))
            assert row["why"].startswith("for ") or row["why"] == "on the group's way"
    coming = listed(things, "broker", "Comes here, and why")
    total = sum(row["rate"] for rows in passing.values() for row in rows)
    arrived = sum(row["rate"] for rows in coming.values() for row in rows)
    assert total == pytest.approx(arrived, rel=1e-2)


def test_brokers_have_their_clients_and_links(designed: Designed, tmp_path: Path) -> None:
    made = fanplan.report(designed.plan, tmp_path / "out", workload=designed.dataset, curve=False)
    (things,) = things_of(made.page)
    clients = load_plan(designed.plan).read("clients", ("client", "role", "broker")).to_pylist()
    for role, title in (("subscriber", "Subscribers here"), ("publisher", "Publishers here")):
        told = listed(things, "broker", title)
        pairs = {(broker, row["name"]) for broker, rows in told.items() for row in rows}
        assert pairs == {(r["broker"], r["client"]) for r in clients if r["role"] == role}
    assert len(things["link"]["names"]) >= len(things["broker"]["names"]) - 1


def test_before_and_after_come_with_what_to_do(world: ReportWorld, tmp_path: Path) -> None:
    """One plan is held against the naive system, another one against the first."""
    dataset = fanplan.open_dataset(world.dataset)
    other = fanplan.channels(dataset, 2, seed=2).save(tmp_path / "other.plan")
    alone = fanplan.report(world.plans[0], tmp_path / "one", workload=dataset, curve=False)
    assert "if everything went everywhere" in alone.page.read_text()
    both = [world.plans[0], other]
    text = fanplan.report(both, tmp_path / "two", workload=dataset, curve=False).page.read_text()
    assert 'id="plans"' in text
    assert "Before and after: channels.plan and other.plan" in text
    rows = re.findall(
        r"<tr>(.*?)</tr>", text.split('id="changes-1-subscribers"')[1].split("</table>")[0]
    )
    changes = [abs(float(re.findall(r'data-value="([^"]*)"', row)[2])) for row in rows[1:]]
    assert changes == sorted(changes, reverse=True)
    assert any("join" in row or "leave" in row for row in rows[1:])


def test_a_page_of_many_stays_small() -> None:
    """10,000 subscribers on 100 channels of 1,000 each, and 1,000 flows with audiences of 500."""
    random = np.random.default_rng(1)
    people = [f"subscriber-{i:05}" for i in range(10_000)]
    members = random.integers(0, 10_000, 100_000)
    audiences = random.integers(0, 10_000, 500_000)
    rates = random.random(100_000).tolist()
    channels = Shelf(
        "channel",
        [str(i) for i in range(100)],
        (),
        [Related("Members", "subscriber", people, np.arange(0, 100_001, 1000), members,
                 [Fact("wanted", rates, "rate"), Fact("unwanted", rates, "rate")])],
    )  # fmt: skip
    flows = Shelf(
        "flow",
        [f"topic.{i}" for i in range(1000)],
        (),
        [Related("Who wants it", "subscriber", people, np.arange(0, 500_001, 500), audiences)],
    )
    text = packed([("plan", plan_things([channels, flows]))])
    assert len(text) < 1_200_000
    assert packed([("plan", plan_things([channels, flows]))]) == text


def test_lists_are_cut_alike_and_say_so() -> None:
    sizes = np.array([5, 1, 100_000])
    assert longest(sizes, 100) == 94
    assert longest(np.array([2, 2]), 100) == 2
    names = [f"s{i}" for i in range(100_006)]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    related = Related("Members", "subscriber", names, starts, np.arange(100_006))
    told = plan_things([Shelf("channel", ["0", "1", "2"], (), [related])])
    one = told["channel"]["related"][0]
    assert one["totals"] == sizes.tolist()
    assert sum(one["sizes"]) == len(one["items"]) == MOST_PAIRS
    assert len(told["subscriber"]["names"]) == MOST_PAIRS, "what is not told has no name"


def test_names_are_data(world: ReportWorld, tmp_path: Path) -> None:
    made = fanplan.report(world.plans, tmp_path / "out", workload=world.dataset, curve=False)
    things = things_of(made.page)
    assert any(HOSTILE in name for name in things[0]["flow"]["names"])


RATES = {
    12.0: "12 messages/s",
    0.02: "1.2 messages/min",
    0.0003: "1.08 messages/h",
    0.00001: "0.864 messages/day",
    0.0: "0 messages/s",
}


@pytest.mark.parametrize(("value", "words"), RATES.items())
def test_rates_have_a_time_that_fits(value: float, words: str) -> None:
    assert rate(value) == words


def test_a_table_counts_in_one_time() -> None:
    rows = [("a", 0.001, 0.002), ("b", 0.0, 0.0005)]
    listing = Listing("n", "N", ("name", "before, messages/s", "after, messages/s"), rows)
    assert rate_time([0.001, 0.002, 0.0005]) == "h"
    assert listing.titles == ["name", "before, messages/h", "after, messages/h"]
    assert [word for _, word in listing.shown[0]] == ["a", "3.600", "7.200"]
    assert [value for value, _ in listing.shown[0]] == ["a", 0.001, 0.002], "sorted as they are"


@pytest.mark.parametrize(("rows", "searched"), [(15, False), (16, True)])
def test_few_rows_are_not_searched(rows: int, searched: bool) -> None:
    assert Listing("n", "N", ("i",), [(i,) for i in range(rows)]).searched == searched


def test_names_of_brokers_do_not_overlap() -> None:
    """Those without room are hidden until somebody looks closer."""
    crowd = [DrawnBroker(f"a long name of broker {i}", 1 + i % 3, "") for i in range(120)]
    drawn = network_drawing("crowd", crowd, [])
    boxes = []
    for x, y, class_, name in re.findall(
        r'<text x="([-\d.]+)" y="([-\d.]+)" class="(name[^"]*)"[^>]*>([^<]*)<', drawn
    ):
        if class_ == "name":
            half = 6.5 * len(name) / 2
            boxes.append((float(x) - half, float(y) - 9, float(x) + half, float(y)))
    assert 5 < len(boxes) < 120
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]


CITIES = {
    "London": (51.5, -0.1), "Paris": (48.9, 2.3), "Philadelphia": (40.0, -75.2),
    "São Paulo": (-23.5, -46.6), "Nairobi": (-1.3, 36.8), "Tokyo": (35.7, 139.7),
    "Mumbai": (19.1, 73.0), "Canberra": (-35.3, 149.1), "Moscow": (55.8, 37.6),
}  # fmt: skip


def test_cities_lie_on_land() -> None:
    for name, (lat, lon) in CITIES.items():
        assert sum(inside(shape, lon, lat) for shape in land()) == 1, name
    assert not any(inside(shape, -40.0, 30.0) for shape in land()), "the Atlantic"


def inside(shape: np.ndarray, x: float, y: float) -> bool:
    """Whether a ray to the right crosses the outline an odd number of times."""
    a, b = shape, np.roll(shape, -1, axis=0)
    between = (a[:, 1] > y) != (b[:, 1] > y)
    rise = np.where(between, b[:, 1] - a[:, 1], 1.0)
    crossed = between & (x < (b[:, 0] - a[:, 0]) * (y - a[:, 1]) / rise + a[:, 0])
    return bool(crossed.sum() % 2)


def test_a_map_shows_brokers_in_their_directions() -> None:
    lat, lon = zip(*CITIES.values(), strict=True)
    ground = ground_of(lat, lon)
    place = dict(zip(CITIES, ground.places.tolist(), strict=True))
    assert place["Philadelphia"][0] < place["London"][0] < place["Tokyo"][0]
    assert place["Moscow"][1] < place["Nairobi"][1] < place["Canberra"][1]
    assert all(0 <= x <= WIDTH and 0 <= y <= ground.height for x, y in place.values())
    assert len(ground.beneath) < 40_000
    assert len(ground_of((48.0, 49.0), (2.0, 3.0)).beneath) < len(ground.beneath)


def test_brokers_with_a_place_are_on_a_map(designed: Designed, tmp_path: Path) -> None:
    made = fanplan.report(designed.plan, tmp_path / "out", workload=designed.dataset, curve=False)
    text = made.page.read_text()
    assert 'id="overlay-map"' in text
    assert "1 of 7 brokers have no place" in text


def test_only_signed_plans_are_reported_with_a_key(
    world: ReportWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = fanplan.new_key(tmp_path / "key")
    public = tmp_path / "key.pub"
    with pytest.raises(CheckError, match="is not reported: signature"):
        fanplan.report(world.plans[0], tmp_path / "out", key=public)
    assert run("report", world.plans[0], "--out", tmp_path / "out", "--key", public) == 1
    assert "signature" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    fanplan.sign(world.plans[0], tmp_path / "key")
    assert fanplan.report(world.plans[0], tmp_path / "out", key=public).page.is_file()
    assert key
