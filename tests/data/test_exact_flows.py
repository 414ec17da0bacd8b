"""What a plan says is what happens to the messages: on exact flows and on every kind of grid.

Small workloads are drawn by Hypothesis, planned and replayed; a plain count in Python, which knows
nothing of flows, cells or boxes, says what is wanted.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import fanplan
from fanplan.core.progress import quiet
from fanplan.data.engine import Engine
from fanplan.data.ingest.ingest import ingest_workload

GRIDS = ("exact", "uniform", "quantile", "atomic")
ATTRIBUTES = ("depth", "size", "age")
BROKERS = ("b0", "b1", "b2")
BASELINES = (
    *("broadcast", "unicast"),
    *("flooding on a random tree", "content routing on a random tree", "planned tree"),
)
HERE = Engine("local[2]")
"""The Spark that all tests share."""


@dataclass(frozen=True)
class Range:
    """A part of an attribute, with its upper end or without."""

    low: float
    high: float
    closed: bool = True

    def told(self, name: str) -> str:
        if self.closed:
            return f"{name} BETWEEN {self.low} AND {self.high}"
        return f"{name} >= {self.low} AND {name} < {self.high}"

    def has(self, value: float) -> bool:
        return self.low <= value and (value <= self.high if self.closed else value < self.high)


@dataclass(frozen=True)
class Wish:
    """A subscription: one of several sets of ranges, or all of a topic if there are none."""

    who: str
    any_of: tuple[dict[str, Range], ...]
    topic: str = "quakes"

    @property
    def selector(self) -> str:
        if not all(self.any_of):
            return ""
        told = (" AND ".join(r.told(name) for name, r in one.items()) for one in self.any_of)
        return " OR ".join(f"({one})" for one in told)

    def wants(self, point: Point) -> bool:
        if point.topic != self.topic:
            return False
        fits = [all(r.has(point.values[n]) for n, r in one.items()) for one in self.any_of]
        return any(fits) or not self.any_of


@dataclass(frozen=True)
class Point:
    """A publication."""

    values: dict[str, float]
    topic: str = "quakes"


@dataclass(frozen=True)
class Quakes:
    """A drawn workload, whose filters end anywhere."""

    wishes: list[Wish]
    points: list[Point]

    def wanted(self) -> int:
        """Copies that somebody asks for, one for each person."""
        return sum(len(self.audience(point)) for point in self.points)

    def audience(self, point: Point) -> frozenset[str]:
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
            wishes.append(Wish(f"u{number:02d}", (ranges,) if ranges else ()))
    # One asks for what nobody sends.
    wishes.append(Wish("u99", ({"depth": Range(100.0, 100.0)},)))
    return Quakes(wishes, draw_points(draw, points))


def draw_points(draw: Random, count: int) -> list[Point]:
    return [
        Point({name: round(draw.uniform(0, 99), 3) for name in ATTRIBUTES}) for _ in range(count)
    ]


def draw_range(draw: Random) -> Range:
    low = round(draw.uniform(0, 80), 3)
    return Range(low, round(low + draw.uniform(1, 40), 3))


# Few values, so that ranges often end where publications are.
VALUES = st.integers(0, 12).map(float)
RANGES = st.builds(
    lambda low, width, closed: Range(low, low + width, closed),
    VALUES,
    st.integers(1, 6).map(float),
    st.booleans(),
)
PARTS = st.dictionaries(st.sampled_from(ATTRIBUTES), RANGES, min_size=1)
TOPICS = st.sampled_from(("quakes", "blasts"))
WISHES = st.builds(
    Wish, st.integers(0, 9).map("u{}".format), st.lists(PARTS, max_size=3).map(tuple), TOPICS
)
POINTS = st.builds(Point, st.fixed_dictionaries(dict.fromkeys(ATTRIBUTES, VALUES)), TOPICS)
WORLDS = st.builds(
    Quakes,
    st.lists(WISHES, min_size=6, max_size=25, unique_by=lambda w: (w.who, w.topic, w.selector)),
    st.lists(POINTS, min_size=20, max_size=80),
)


def write_quakes(folder: Path, world: Quakes, brokers: bool) -> Path:
    folder.mkdir()
    axes = "\n".join(f'{a} = {{ type = "number", min = 0.0, max = 200.0 }}' for a in ATTRIBUTES)
    names = ", ".join(f'"{name}"' for name in ATTRIBUTES)
    topics = "".join(f"[topics.{t}]\nattributes = [{names}]\n" for t in ("quakes", "blasts"))
    told = f"seconds = 10.0\n[attributes]\n{axes}\n{topics}"
    (folder / "workload.toml").write_text(told)
    homes = {wish.who: BROKERS[i % len(BROKERS)] for i, wish in enumerate(world.wishes)}
    at = ["broker"] if brokers else []
    write_rows(
        folder / "subscriptions.csv",
        ["subscriber", "topic", "filter", *at],
        [[w.who, w.topic, w.selector, *([homes[w.who]] if brokers else [])] for w in world.wishes],
    )
    write_rows(
        folder / "publications.csv",
        ["topic", "publisher", "bytes", *ATTRIBUTES],
        [
            [p.topic, f"p{i % 2}", 8, *map(p.values.get, ATTRIBUTES)]
            for i, p in enumerate(world.points)
        ],
    )
    if brokers:
        senders = [[f"p{i}", topic, f"b{i}"] for i in range(2) for topic in ("quakes", "blasts")]
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
    ingest_workload(lambda _: spark, workload, folder / grid, {"grid": grid} | cells, quiet())
    return fanplan.open_dataset(folder / grid)


@given(WORLDS, st.sampled_from(GRIDS[1:]), st.booleans())
@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate])
def test_what_a_design_says_is_what_happens_on_every_grid(
    spark: SparkSession, world: Quakes, grid: str, brokers: bool
) -> None:
    """The plan's ledger, the replayed one and a plain count agree, on exact flows and on a grid.

    What flooding, unicast or exact content routing costs does not depend on how traffic is cut.
    """
    assume(world.wanted())
    with TemporaryDirectory() as name:
        costs = [
            designed_and_replayed(spark, world, Path(name), g, brokers) for g in ("exact", grid)
        ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


def designed_and_replayed(
    spark: SparkSession, world: Quakes, folder: Path, grid: str, brokers: bool
) -> list[float]:
    """What systems without a plan cost, by the plan."""
    dataset = ingested(spark, world, folder, grid, brokers)
    made = fanplan.design(dataset, channels=3, engine=HERE)
    plan = made.save(folder / f"{grid}.plan")
    assert fanplan.check(plan, dataset, engine=HERE).ok, grid
    found = fanplan.replay(plan, dataset, engine=HERE)
    told = found.json()
    assert found.ok, (grid, told)
    assert (told["differences"], told["missed"]) == ({}, 0), grid
    assert told["delivered"] == world.wanted(), grid
    summary = made.summary()
    if not dataset.manifest.exact:
        assert "coarser than the filters" in " ".join(dataset.manifest.notes)
        assert "these cells" in summary["bound_name"]
    if grid in ("exact", "atomic"):
        assert dataset.manifest.exact
        assert summary["bound_name"] == "any delivery"
    return [step["cost"] for step in summary["steps"] if step["step"] in BASELINES]


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
