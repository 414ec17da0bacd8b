"""The Spark joins against brute force: replicated, tiled, and from files, all alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from fanplan.core.tables import arrow_schema
from fanplan.data import tables
from fanplan.data.ingest.exact import SelectorData, exact_audiences
from fanplan.data.ingest.joins import (
    JoinLimits,
    PointFiles,
    Points,
    _cuts,
    _placed_points,
    _salts,
    join_audiences,
    join_hits,
    join_wants,
)
from fanplan.data.schema import spark_schema

DIMS = 3
# Topic 2 is plain, topic 4 has no boxes, topic 5 is unknown to the boxes' folder altogether.
AXES = {0: 3, 1: 1, 2: 0, 3: 2, 4: 2, 5: 0}
BOX_SCHEMA = arrow_schema(tables.REGIONS)
TILED = JoinLimits(replicated_boxes=0, tile_boxes=20, tile_points=50)


def make_boxes(random: np.random.Generator, count: int) -> pa.Table:
    """Boxes on a coarse lattice, so that end points meet points; a third of them on one topic."""
    rows = []
    for i in range(count):
        topic = int(random.choice([0, 0, 1, 2, 3]))
        lo = random.integers(0, 8, AXES[topic])
        hi = lo + random.integers(0, 4, AXES[topic])
        subscriber = int(random.integers(999_980, 1_000_000))
        rows.append((topic, 10 * i, subscriber, (lo / 8).tolist(), (hi / 8).tolist()))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return pa.table(dict(zip(BOX_SCHEMA.names, columns, strict=True)), BOX_SCHEMA)


def make_points(random: np.random.Generator, count: int) -> pa.Table:
    """Points on the same lattice; half of them at one and the same hot point."""
    topic = np.where(random.random(count) < 0.5, 0, random.integers(0, 6, count))
    x = random.integers(-1, 12, (count, DIMS)) / 8
    x[: count // 2] = 0.5
    axes = np.array([AXES[t] for t in topic], int)
    x[np.arange(DIMS) >= axes[:, None]] = np.nan
    cells = [(point[:size] * 2).astype(int) for point, size in zip(x, axes, strict=True)]
    return pa.table(
        {
            "cell": pa.array(cells, pa.list_(pa.int32())),
            "topic_id": pa.array(topic, pa.int32()),
            "point": pa.array(np.arange(count)),
            **{f"x{a}": x[:, a] for a in range(DIMS)},
            "weight": random.integers(1, 4, count).astype(float),
        }
    )


def write_folder(table: pa.Table, path: str) -> None:
    """A finished stage: data in several row groups, beside a file that is not data."""
    Path(path).mkdir(exist_ok=True)
    pq.write_table(table, f"{path}/part-0.parquet", row_group_size=60)
    Path(path, "_SUCCESS").touch()


class Case:
    """A random instance on disk, and the answers by brute force."""

    def __init__(self, folder: Path, boxes: int, points: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.boxes, self.points = make_boxes(random, boxes), make_points(random, points)
        self.boxes_path, self.points_path = str(folder / "boxes"), str(folder / "points")
        write_folder(self.boxes, self.boxes_path)
        write_folder(self.points, self.points_path)
        held = self.boxes.to_pylist()
        self.matches = [
            (point, box) for point in self.points.to_pylist() for box in held if holds(box, point)
        ]

    def hits(self) -> dict[int, float]:
        return summed((box["subscription"], point["weight"]) for point, box in self.matches)

    def audiences(self) -> dict[int, list[int]]:
        found: dict[int, set[int]] = {p: set() for p in self.points["point"].to_pylist()}
        for point, box in self.matches:
            found[point["point"]].add(box["subscriber_id"])
        return {point: sorted(subscribers) for point, subscribers in found.items()}

    def wants(self) -> dict[tuple[int, tuple[int, ...], int], float]:
        audiences = self.audiences()
        return summed(
            ((point["topic_id"], tuple(point["cell"]), subscriber), point["weight"])
            for point in self.points.to_pylist()
            for subscriber in audiences[point["point"]]
        )


def holds(box: dict[Any, Any], point: dict[Any, Any]) -> bool:
    ends = enumerate(zip(box["lo"], box["hi"], strict=True))
    same = box["topic_id"] == point["topic_id"]
    return same and all(lo <= point[f"x{axis}"] < hi for axis, (lo, hi) in ends)


def summed(pairs: Any) -> dict[Any, Any]:
    sums: dict[Any, Any] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, 0.0) + value
    return sums


def unique(pairs: list[Any]) -> dict[Any, Any]:
    """A dict of pairs, none of which may hide another."""
    result = dict(pairs)
    assert len(result) == len(pairs)
    return result


def check_joins(points: Points, case: Case, limits: JoinLimits) -> None:
    path = case.boxes_path
    hits = join_hits(points, path, DIMS, limits)
    assert unique([(r.subscription, r.hits) for r in hits.collect()]) == case.hits()
    audiences = join_audiences(points, path, DIMS, ["point"], limits)
    assert unique([(r.point, r.subscribers) for r in audiences.collect()]) == case.audiences()
    wants = join_wants(points, path, DIMS, ["topic_id", "cell"], limits)
    rows = [((r.topic_id, tuple(r.cell), r.subscriber_id), r.messages) for r in wants.collect()]
    assert unique(rows) == case.wants()


SOURCES: dict[str, Callable[[SparkSession, str], Points]] = {
    "frame": lambda spark, path: spark.read.parquet(path),
    "files": PointFiles,
}
WAYS = [("frame", JoinLimits()), ("files", JoinLimits()), ("frame", TILED)]


@pytest.mark.parametrize(("source", "limits"), WAYS, ids=["replicated", "files", "tiled"])
@pytest.mark.parametrize(("boxes", "points"), [(150, 400), (0, 20), (20, 0)])
def test_joins_agree_with_brute_force(
    spark: SparkSession, tmp_path: Path, source: str, limits: JoinLimits, boxes: int, points: int
) -> None:
    case = Case(tmp_path, boxes, points, seed=boxes + points)
    check_joins(SOURCES[source](spark, case.points_path), case, limits)


@pytest.mark.parametrize("limits", [JoinLimits(), TILED], ids=["replicated", "tiled"])
def test_plain_topics_need_no_coordinates(
    spark: SparkSession, tmp_path: Path, limits: JoinLimits
) -> None:
    columns = dict(zip(BOX_SCHEMA.names, ([0, 1], [0, 1], [5, 6], [[], []], [[], []]), strict=True))
    write_folder(pa.table(columns, BOX_SCHEMA), str(tmp_path / "boxes"))
    points = spark.createDataFrame([(0,), (0,), (2,)], "topic_id int")
    hits = join_hits(points, str(tmp_path / "boxes"), 0, limits).collect()
    assert [(row.subscription, row.hits) for row in hits] == [(0, 2.0)]
    found = join_audiences(points, str(tmp_path / "boxes"), 0, ["topic_id"], limits).collect()
    assert sorted((row.topic_id, row.subscribers) for row in found) == [(0, [5]), (0, [5]), (2, [])]


def test_a_folder_written_anew_is_indexed_anew(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "boxes"
    points: DataFrame = spark.createDataFrame([(0, 0.5)], "topic_id int, x0 double")
    for subscriptions in ([1], [1, 2]):
        rows = [(0, s, 3, [0.0], [1.0]) for s in subscriptions]
        columns = dict(zip(BOX_SCHEMA.names, zip(*rows, strict=True), strict=True))
        write_folder(pa.table(columns, BOX_SCHEMA), str(path))
        hits = join_hits(points, str(path), 1).collect()
        assert sorted(row.subscription for row in hits) == subscriptions


def test_one_hot_topic_is_dealt_to_many_tiles(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, boxes=150, points=400, seed=3)
    boxes = spark.read.parquet(case.boxes_path)
    cuts = _cuts(boxes, DIMS, TILED)
    placed = _placed_points(spark.read.parquet(case.points_path), cuts, DIMS)
    tiles = {(r.topic_id, r.part): r.salts for r in _salts(placed, TILED).collect()}
    hot = [salts for (topic, _), salts in tiles.items() if topic == 0]
    assert len(hot) > 1, "boxes of one topic are split by position"
    assert max(hot) > 1, "points at one position are split by salt"


def test_exact_audiences_are_the_same_in_tiles(spark: SparkSession, tmp_path: Path) -> None:
    """Where boxes are too many for every worker, publications meet them tile by tile."""
    draw = np.random.default_rng(5)
    low = draw.random((40, 2)).round(3)
    rows = [(0, i, i % 9, low[i].tolist(), (low[i] + 0.4).tolist()) for i in range(40)]
    spark.createDataFrame(rows, spark_schema(tables.REGIONS)).write.parquet(
        str(tmp_path / "regions")
    )
    people = [(f"s{i}", i) for i in range(9)]
    spark.createDataFrame(people, spark_schema(tables.SUBSCRIBERS)).write.parquet(
        str(tmp_path / "people")
    )
    points = [(0, 7, *map(float, p)) for p in draw.random((60, 2)).round(3)]
    frame = spark.createDataFrame(points, "topic_id int, bytes long, x0 double, x1 double")
    selectors = SelectorData(str(tmp_path / "regions"), str(tmp_path / "people"), "tiles", 2)
    few = JoinLimits(replicated_boxes=1, tile_boxes=5, tile_points=10)
    found = [
        {tuple(r["cell"]): r.asDict() for r in exact_audiences(frame, selectors, limits).collect()}
        for limits in (JoinLimits(), few)
    ]
    assert found[0] == found[1]
    assert sum(row["messages"] for row in found[0].values()) == 60
    wanted = Counter(
        frozenset(i % 9 for i in range(40) if (low[i] <= p).all() and (p < low[i] + 0.4).all())
        for p in np.array([point[2:] for point in points])
    )
    assert {frozenset(r["subscribers"]): r["messages"] for r in found[0].values()} == wanted
