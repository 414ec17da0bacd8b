"""Cells and traffic: each point in one cell, rates spread by volume, nothing lost."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from fanplan.data import tables
from fanplan.data.ingest.cells import (
    GridRef,
    advertised_traffic,
    cells_of_boxes,
    cells_of_points,
    measured_traffic,
)
from fanplan.data.ingest.grid import even_edges, quantile_grid, uniform_grid
from fanplan.data.schema import spark_schema
from fanplan.workload.space import PLAIN, CategoryAttribute, NumberAttribute, Space, just_above

PRICE = NumberAttribute("price", 0.0, 100.0)
VENUE = CategoryAttribute("venue", ("N", "Q", "Z"))
SPACES = (PLAIN, Space((PRICE, VENUE), (4, 3)))


@pytest.fixture(scope="module")
def grid(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> GridRef:
    path = tmp_path_factory.mktemp("grid") / "grid"
    uniform_grid(topics(spark), SPACES).write.parquet(str(path))
    return GridRef(str(path), "uniform", topics=2, dimensions=2)


def topics(spark: SparkSession) -> Any:
    return spark.createDataFrame([("alerts", 0, 0), ("quotes", 1, 1)], spark_schema(tables.TOPICS))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(1, 50))
def test_uniform_edges_tile_the_domain(low: float, width: float, cells: int) -> None:
    edges = even_edges(NumberAttribute("x", low, low + width), cells)
    assert len(edges) == cells + 1
    assert edges[0] == low
    assert edges[-1] == just_above(low + width)
    assert all(a < b for a, b in pairwise(edges))


EDGES = np.array([0.0, 1.0, 2.5, 7.0, just_above(9.0)])
FLAT = (np.zeros((1, 1), np.int64), np.full((1, 1), 5, np.int64), EDGES)


@given(st.sampled_from([*EDGES[:-1], *np.nextafter(EDGES[1:], 0), 0.5, 3.0, 9.0]))
def test_a_point_lies_in_its_cell(x: float) -> None:
    out = np.zeros((1, 1), np.int32)
    cells_of_points(*FLAT, np.ones(1, np.int64), np.zeros(1, np.int32), np.array([[x]]), out)
    assert EDGES[out[0, 0]] <= x < EDGES[out[0, 0] + 1]


ends = st.sampled_from(sorted({*EDGES, *np.nextafter(EDGES[:-1], 9), 0.25, 2.0, 5.0, 8.0}))


@given(ends, ends, st.booleans())
def test_snapped_boxes_hold_the_cells_that_meet_or_lie_inside(
    a: float, b: float, full: bool
) -> None:
    low, high = min(a, b), max(a, b)
    lo, hi = np.array([low]), np.array([high])
    cells_of_boxes(*FLAT, np.zeros(1, np.int32), np.array([0, 1]), lo, hi, full)
    cells = list(pairwise(EDGES))
    inside = [low <= c and d <= high for c, d in cells]
    meets = [low < d and c < high for c, d in cells]
    held = [lo[0] <= i < hi[0] for i in range(len(cells))]
    assert low == high or held == (inside if full else meets)


def test_every_publication_is_counted_in_its_cell(spark: SparkSession, grid: GridRef) -> None:
    rows = [(0.0, None, "p", "alerts", 5, np.nan, np.nan)]
    rows += [
        (0.0, None, "p", "quotes", 10, x, v) for x in (0.0, 24.9, 25.0, 100.0) for v in (0.0, 2.0)
    ]
    published = spark.createDataFrame(rows, spark_schema(tables.publications(2)))
    counted = measured_traffic(published, topics(spark), grid).collect()
    found = {(r["topic_id"], *r["cell"]): (r["messages"], r["bytes"]) for r in counted}
    assert found == {
        (0,): (1.0, 5.0),
        (1, 0, 0): (2.0, 20.0),
        (1, 0, 2): (2.0, 20.0),
        (1, 1, 0): (1.0, 10.0),
        (1, 1, 2): (1.0, 10.0),
        (1, 3, 0): (1.0, 10.0),
        (1, 3, 2): (1.0, 10.0),
    }


def test_advertised_rates_are_spread_by_volume(spark: SparkSession, grid: GridRef) -> None:
    rows = [(0, "p", 3.0, [], []), (1, "p", 4.0, [10.0, 0.0], [60.0, 2.0])]
    boxes = spark.createDataFrame(rows, spark_schema(tables.ADVERTISED))
    spread = advertised_traffic(boxes, grid).collect()
    found = {(r["topic_id"], *r["cell"]): r["messages"] for r in spread}
    expected: dict[tuple[int, ...], float] = {(0,): 3.0}
    for cell, share in ((0, 0.3), (1, 0.5), (2, 0.2)):
        expected |= {(1, cell, venue): 4.0 * share / 2 for venue in (0, 1)}
    assert found.keys() == expected.keys()
    assert all(found[cell] == pytest.approx(expected[cell]) for cell in expected)


def test_quantile_cells_carry_about_equal_traffic(spark: SparkSession) -> None:
    values = 100 * np.random.default_rng(1).random(2000) ** 4
    rows = [(float(x), float(i % 3), 1) for i, x in enumerate(values)]
    points = spark.createDataFrame(rows, "x0 double, x1 double, topic_id int")
    found = quantile_grid(topics(spark), SPACES, points).collect()
    edges = {row["axis"]: row["edges"] for row in found}
    assert edges[1] == [0.0, 1.0, 2.0, 3.0]
    counts = np.histogram(values, edges[0])[0]
    assert len(counts) == 4
    assert counts.max() <= 1.1 * len(values) / 4
