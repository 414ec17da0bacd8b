"""Four ways in which a page once misled its reader, on small workloads of the same shape.

Earthquakes over a backbone, asked for by rectangles: with cells that are coarser the page promised
a saving, an unwanted share and a bound that the messages did not keep. Flights over a backbone,
asked for by single subscribers of a site: every channel had one member.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from commands import run
from pyspark.sql import SparkSession

import fanplan
from fanplan.data.engine import Engine

HERE = Engine("local[2]")
BROKERS = [f"b{i}" for i in range(8)]


class Case(NamedTuple):
    """A dataset, a plan of it, what the page of the plan says, and what a replay counts."""

    dataset: fanplan.Dataset
    plan: Path
    page: str
    savings: dict[str, Any]
    replayed: dict[str, Any]

    @property
    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.plan / "plan.json").read_text())
        return record


def write_rows(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def write_backbone(folder: Path, sites: int, people: Sequence[tuple[str, str, str]]) -> Path:
    """Brokers on a ring with chords, people (name, broker, filter), and 400 points on a map."""
    draw, names = Random(7), ("lat", "lon")
    folder.mkdir()
    axes = 'lat = { type = "number", min = -90.0, max = 90.0 }\n'
    axes += 'lon = { type = "number", min = -180.0, max = 180.0 }\n'
    told = f'seconds = 60.0\n[attributes]\n{axes}[topics.seen]\nattributes = ["lat", "lon"]\n'
    (folder / "workload.toml").write_text(told)
    write_rows(
        folder / "brokers.csv",
        ("broker", "site"),
        [(b, f"site{i % sites}") for i, b in enumerate(BROKERS)],
    )
    pairs = [(i, (i + 1) % 8) for i in range(8)] + [(0, 4), (2, 6)]
    write_rows(
        folder / "links.csv",
        ("a", "b", "latency_ms"),
        [(BROKERS[a], BROKERS[b], draw.randint(2, 20)) for a, b in pairs],
    )
    write_rows(
        folder / "subscriptions.csv",
        ("subscriber", "topic", "filter", "broker"),
        [(who, "seen", filter, broker) for who, broker, filter in people],
    )
    write_rows(
        folder / "advertisements.csv", ("publisher", "topic", "broker"), [("p", "seen", "b0")]
    )
    points = [(draw.gauss(10, 25), draw.gauss(40, 60)) for _ in range(400)]
    rows = [("seen", "p", 100, max(-90, min(90, a)), max(-180, min(180, o))) for a, o in points]
    write_rows(folder / "publications.csv", ("topic", "publisher", "bytes", *names), rows)
    return folder


def rectangle(draw: Random) -> str:
    lat, lon = draw.uniform(-60, 50), draw.uniform(-120, 100)
    high, wide = draw.uniform(5, 30), draw.uniform(10, 60)
    return f"lat BETWEEN {lat} AND {lat + high} AND lon BETWEEN {lon} AND {lon + wide}"


def quakes(folder: Path) -> Path:
    draw = Random(3)
    people = [(f"u{i:02d}", draw.choice(BROKERS), rectangle(draw)) for i in range(40)]
    return write_backbone(folder, 3, people)


def flights(folder: Path) -> Path:
    """One subscriber a site: nobody shares a multicast domain with anybody."""
    draw = Random(5)
    people = [(f"u{i}", broker, rectangle(draw)) for i, broker in enumerate(BROKERS)]
    return write_backbone(folder, len(BROKERS), people)


def tried(workload: Path, folder: Path, **options: Any) -> Case:
    """As a new user would: ingest, design, report; and a replay."""
    dataset = fanplan.ingest(workload, folder / "dataset", engine=HERE, **options)
    plan = fanplan.design(dataset, channels=6, engine=HERE).save(folder / "plan")
    told = fanplan.report(plan, folder / "page", workload=dataset.path, curve=False, engine=HERE)
    found = fanplan.replay(plan, dataset, engine=HERE)
    assert found.ok
    return Case(dataset, plan, told.page.read_text(), told.savings[0], found.json())


@pytest.fixture(scope="module")
def default(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("quakes")
    return tried(quakes(folder / "workload"), folder)


@pytest.fixture(scope="module")
def coarse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("coarse")
    return tried(quakes(folder / "workload"), folder, grid="uniform", cells=6)


def costs(case: Case) -> dict[str, float]:
    return {step["name"]: step["cost"] for step in case.record["delivery"]["steps"]}


@pytest.mark.parametrize("name", ["default", "coarse"])
def test_the_saving_is_that_of_the_messages(name: str, request: pytest.FixtureRequest) -> None:
    """What the headline is made of is what a replay counts, and descriptors that travel."""
    case: Case = request.getfixturevalue(name)
    steps, last = case.savings["steps"], case.record["delivery"]["steps"][-1]
    counted = case.replayed["cost"] + last["parts"].get("subscriptions", 0.0)
    assert steps[-1]["value"] == pytest.approx(counted)
    assert case.savings["saved_percent"] == pytest.approx(100 * (1 - counted / steps[0]["value"]))


def test_baselines_do_not_depend_on_cells(default: Case, coarse: Case) -> None:
    """Content routing is by selectors, so that a coarse grid cannot look good beside it."""
    for name in ("content routing on a random tree", "planned tree"):
        assert costs(default)[name] == pytest.approx(costs(coarse)[name])
    assert costs(default)["all together"] <= costs(coarse)["all together"]


def test_unwanted_is_what_nobody_asked_for(default: Case, coarse: Case) -> None:
    for case in (default, coarse):
        ledger = case.record["channels"]["ledger"]
        assert ledger["received_unwanted"] == case.replayed["unwanted"]
    assert "coarser than the filters" in coarse.page
    assert "coarser than the filters" not in default.page
    assert coarse.replayed["unwanted"] > default.replayed["unwanted"]


def test_a_bound_of_cells_is_called_so(default: Case, coarse: Case) -> None:
    assert "what no plan can undercut at these cells" in coarse.page
    assert "at these cells" not in default.page
    assert default.record["delivery"]["bound"] <= default.replayed["cost"] * (1 + 1e-9)


def test_no_channel_for_one(spark: SparkSession, tmp_path: Path) -> None:
    case = tried(flights(tmp_path / "workload"), tmp_path)
    assert case.record["channels"]["channels"] == 0, "nobody shares a site with another"
    assert pq.read_table(case.plan / "channel_subscribers.parquet").num_rows == 0
    assert run("check", case.plan, tmp_path / "dataset", "--master", "local[2]") == 0
