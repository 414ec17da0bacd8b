"""What a plan says is what happens to the messages: on exact flows and on every kind of grid.

Small workloads are drawn, planned and replayed; a plain count in Python, which knows nothing of
flows, cells or boxes, says what is wanted.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import fanplan
from fanplan.core.progress import quiet
from fanplan.data.engine import Engine
from fanplan.data.ingest.ingest import ingest_workload

GRIDS = ("exact", "uniform", "quantile", "atomic")
ATTRIBUTES = ("depth", "size", "age")
BROKERS = ("b0", "b1", "b2")
HERE = Engine("local[2]")
"""The Spark that all tests share."""


@dataclass(frozen=True)
class Wish:
    """A subscription: closed ranges of some attributes."""

    who: str
    ranges: dict[str, tuple[float, float]]

    @property
    def selector(self) -> str:
        return " AND ".join(f"{a} BETWEEN {lo} AND {hi}" for a, (lo, hi) in self.ranges.items())

    def wants(self, point: dict[str, float]) -> bool:
        return all(lo <= point[name] <= hi for name, (lo, hi) in self.ranges.items())


@dataclass(frozen=True)
class Quakes:
    """A drawn workload of one topic, whose filters end anywhere."""

    wishes: list[Wish]
    points: list[dict[str, float]]

    def wanted(self, points: Sequence[dict[str, float]] | None = None) -> int:
        """Copies that somebody asks for, one for each person."""
        return sum(len(self.audience(p)) for p in (self.points if points is None else points))

    def audience(self, point: dict[str, float]) -> frozenset[str]:
        return frozenset(wish.who for wish in self.wishes if wish.wants(point))

    @property
    def audiences(self) -> Counter[frozenset[str]]:
        return Counter(map(self.audience, self.points))


def draw_quakes(seed: int, people: int = 12, points: int = 150) -> Quakes:
    draw = Random(seed)
    wishes = []
    for number in range(people):
        for _ in range(draw.randint(1, 2)):
            named = draw.sample(ATTRIBUTES, draw.randint(0, 3))
            ranges = {name: draw_range(draw) for name in named}
            wishes.append(Wish(f"u{number:02d}", ranges))
    # One asks for what nobody sends.
    wishes.append(Wish("u99", {"depth": (100.0, 100.0)}))
    return Quakes(wishes, draw_points(draw, points))


def draw_points(draw: Random, count: int) -> list[dict[str, float]]:
    return [{name: round(draw.uniform(0, 99), 3) for name in ATTRIBUTES} for _ in range(count)]


def draw_range(draw: Random) -> tuple[float, float]:
    low = round(draw.uniform(0, 80), 3)
    return low, round(low + draw.uniform(1, 40), 3)


def write_quakes(folder: Path, world: Quakes, brokers: bool) -> Path:
    folder.mkdir()
    axes = "\n".join(f'{a} = {{ type = "number", min = 0.0, max = 200.0 }}' for a in ATTRIBUTES)
    names = ", ".join(f'"{name}"' for name in ATTRIBUTES)
    told = f"seconds = 10.0\n[attributes]\n{axes}\n[topics.quakes]\nattributes = [{names}]\n"
    (folder / "workload.toml").write_text(told)
    homes = {wish.who: BROKERS[i % len(BROKERS)] for i, wish in enumerate(world.wishes)}
    at = ["broker"] if brokers else []
    write_rows(
        folder / "subscriptions.csv",
        ["subscriber", "topic", "filter", *at],
        [[w.who, "quakes", w.selector, *([homes[w.who]] if brokers else [])] for w in world.wishes],
    )
    write_rows(
        folder / "publications.csv",
        ["topic", "publisher", "bytes", *ATTRIBUTES],
        [["quakes", f"p{i % 2}", 8, *p.values()] for i, p in enumerate(world.points)],
    )
    if brokers:
        senders = [[f"p{i}", "quakes", f"b{i}"] for i in range(2)]
        write_rows(folder / "advertisements.csv", ["publisher", "topic", "broker"], senders)
        sites = [[name, "west" if name != "b2" else "east"] for name in BROKERS]
        write_rows(folder / "brokers.csv", ["broker", "site"], sites)
    return folder


def write_rows(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def ingested(
    spark: SparkSession, world: Quakes, folder: Path, grid: str, brokers: bool
) -> fanplan.Dataset:
    workload = folder / "workload"
    if not workload.exists():
        write_quakes(workload, world, brokers)
    cells = {} if grid in ("exact", "atomic") else {"cells": 3}
    ingest_workload(lambda: spark, workload, folder / grid, {"grid": grid} | cells, quiet())
    return fanplan.open_dataset(folder / grid)


@pytest.mark.parametrize("brokers", [False, True])
def test_what_a_design_says_is_what_happens_on_every_grid(
    spark: SparkSession, tmp_path: Path, brokers: bool
) -> None:
    """The plan's ledger, the replayed one and a plain count agree; unwanted is truly unwanted."""
    world, costs = draw_quakes(1 + brokers), {}
    for grid in GRIDS if not brokers else ("exact", "uniform"):
        dataset = ingested(spark, world, tmp_path, grid, brokers)
        made = fanplan.design(dataset, channels=3, engine=HERE)
        folder = made.save(tmp_path / f"{grid}.plan")
        assert fanplan.check(folder, dataset, engine=HERE).ok, grid
        found = fanplan.replay(folder, dataset, engine=HERE)
        assert found.ok, (grid, found.json())
        assert found.json()["differences"] == {}, grid
        assert found.json()["delivered"] == world.wanted(), grid
        steps = {step["step"]: step["cost"] for step in made.summary()["steps"]}
        naive = "planned tree" if brokers else "unicast"
        costs[grid] = steps[naive]
        coarse = grid in ("uniform", "quantile")
        told = " ".join(dataset.manifest.notes)
        assert ("coarser than the filters" in told) == coarse, grid
        assert ("these cells" in made.summary()["bound_name"]) == coarse, grid
    # What exact content routing or unicast costs does not depend on how traffic is cut.
    assert len(set(costs.values())) == 1, costs


def test_audiences_never_seen_miss_nobody(spark: SparkSession, tmp_path: Path) -> None:
    """Other publications by the same people: those of unknown audiences take the default way."""
    world = draw_quakes(4, points=60)
    later = Quakes(world.wishes, draw_points(Random(99), 80))
    new = [p for p in later.points if later.audience(p) not in world.audiences]
    asked = [p for p in new if later.audience(p)]
    assert asked
    dataset = ingested(spark, world, tmp_path, "exact", False)
    (tmp_path / "later").mkdir()
    others = ingested(spark, later, tmp_path / "later", "exact", False)
    for name, plan in (
        ("channels", fanplan.channels(dataset, channels=2)),
        ("design", fanplan.design(dataset, channels=2, engine=HERE)),
    ):
        found = fanplan.replay(plan.save(tmp_path / name), others, engine=HERE).json()
        assert found["missed"] == 0
        assert found["delivered"] == later.wanted()
        assert found["unplanned_publications"] == len(asked)
    once = sum(1 for count in world.audiences.values() if count == 1)
    assert dataset.manifest.traffic.once == once
    assert dataset.manifest.traffic.silent_subscriptions >= 1
