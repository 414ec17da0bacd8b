"""Stage `traffic`: how much is sent in each cell, from publications or from advertised rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.data.cells import Edges, cells_of_points, load_edges
from fanplan.data.contracts import coordinates

Batches = Iterator[pa.RecordBatch]
_TRAFFIC = "topic_id int, cell array<int>, messages double, bytes double"


@dataclass(frozen=True)
class GridRef:
    """Where a finished grid stage lies, and the sizes of its arrays: all that a task needs.

    A worker keeps the edges for as long as it lives, so the stage's key must tell grids apart that
    lie at the same path one after the other.
    """

    path: str
    key: str
    topics: int
    dimensions: int

    def load(self) -> Edges:
        return load_edges(self.path, self.key, self.topics, self.dimensions)


def with_topic_ids(publications: DataFrame, topics: DataFrame) -> DataFrame:
    """Publications with their topic's number instead of its name."""
    ids = topics.select("topic", "topic_id")
    return publications.join(ids, on="topic", how="inner").drop("topic")


def cell_numbers(batch: pa.RecordBatch, grid: GridRef) -> np.ndarray:
    """Cell numbers of a batch of points, one column per axis; 0 beyond a topic's own axes."""
    edges = grid.load()
    columns = [batch.column(name).to_numpy() for name in coordinates(grid.dimensions)]
    points = np.column_stack(columns)
    out = np.zeros(points.shape, np.int32)
    topic = batch.column("topic_id").to_numpy()
    cells_of_points(edges.start, edges.count, edges.values, edges.dimensions, topic, points, out)
    return out


def cell_lists(topic: np.ndarray, cells: np.ndarray, dimensions: np.ndarray) -> pa.ListArray:
    """Rows of cell numbers as lists that are as long as the topic has attributes."""
    lengths = dimensions[topic]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    own = np.arange(cells.shape[1]) < lengths[:, None]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(cells[own], pa.int32()))


def located(grid: GridRef) -> Callable[[Batches], Batches]:
    """A batch function that adds the column `cell` to points."""

    def locate(batches: Batches) -> Batches:
        for batch in batches:
            topic = batch.column("topic_id").to_numpy()
            cells = cell_lists(topic, cell_numbers(batch, grid), grid.load().dimensions)
            yield batch.append_column("cell", cells)

    return locate


def with_cells(points: DataFrame, grid: GridRef) -> DataFrame:
    """Points with the list of cell numbers they fall into: empty for a plain topic."""
    if grid.dimensions == 0:
        return points.withColumn("cell", F.array().cast("array<int>"))
    schema = T.StructType([*points.schema, T.StructField("cell", T.ArrayType(T.IntegerType()))])
    return points.mapInArrow(located(grid), schema)


def _counted(grid: GridRef) -> Callable[[Batches], Batches]:
    """A batch function that counts points and bytes per cell, batch by batch."""

    def count(batches: Batches) -> Batches:
        dimensions = grid.load().dimensions
        axes = [f"c{axis}" for axis in range(grid.dimensions)]
        for batch in batches:
            cells = cell_numbers(batch, grid)
            table = pa.table(
                {"topic_id": batch.column("topic_id"), "bytes": batch.column("bytes")}
                | {name: cells[:, axis] for axis, name in enumerate(axes)}
            )
            sums = table.group_by(["topic_id", *axes]).aggregate(
                [([], "count_all"), ("bytes", "sum")]
            )
            topic = sums["topic_id"].to_numpy()
            found = np.column_stack([sums[name].to_numpy() for name in axes])
            yield pa.record_batch(
                {
                    "topic_id": pa.array(topic, pa.int32()),
                    "cell": cell_lists(topic, found, dimensions),
                    "messages": pa.array(sums["count_all"].to_numpy(), pa.float64()),
                    "bytes": pa.array(sums["bytes_sum"].to_numpy(), pa.float64()),
                }
            )

    return count


def measured_traffic(publications: DataFrame, topics: DataFrame, grid: GridRef) -> DataFrame:
    """Messages and bytes per cell, counted. Counts are whole numbers, so the sums are exact."""
    points = with_topic_ids(publications, topics)
    if grid.dimensions == 0:
        parts = points.select(
            "topic_id",
            F.array().cast("array<int>").alias("cell"),
            F.lit(1.0).alias("messages"),
            F.col("bytes").cast("double").alias("bytes"),
        )
    else:
        narrow = points.select("topic_id", "bytes", *coordinates(grid.dimensions))
        parts = narrow.mapInArrow(_counted(grid), _TRAFFIC)
    return parts.groupBy("topic_id", "cell").agg(
        F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )


def _axis_shares(edges: np.ndarray, lo: float, hi: float) -> tuple[range, np.ndarray]:
    """The cells that [lo, hi) meets on one axis and the share of it that lies in each."""
    first = int(np.searchsorted(edges, lo, side="right")) - 1
    last = int(np.searchsorted(edges, hi, side="left"))
    ends = np.clip(edges[first : last + 1], lo, hi)
    return range(first, last), np.diff(ends) / (hi - lo)


def spread_box(
    edges: Edges, topic: int, rate: float, lo: list[float], hi: list[float]
) -> tuple[np.ndarray, np.ndarray]:
    """The cells a box meets, one row each, and the rate that falls into each by volume."""
    cells, shares = np.zeros((1, 0), np.int32), np.array([rate])
    for axis, (low, high) in enumerate(zip(lo, hi, strict=True)):
        start = edges.start[topic, axis]
        own = edges.values[start : start + edges.count[topic, axis]]
        numbers, parts = _axis_shares(own, low, high)
        grown = np.tile(np.array(numbers, np.int32), len(cells))[:, None]
        cells = np.hstack([np.repeat(cells, len(numbers), axis=0), grown])
        shares = np.outer(shares, parts).ravel()
    return cells, shares


def _spread(grid: GridRef) -> Callable[[Batches], Batches]:
    """A batch function that spreads advertised rates over the cells of their boxes."""

    def spread(batches: Batches) -> Batches:
        edges = grid.load()
        for batch in batches:
            for row in batch.to_pylist():
                cells, shares = spread_box(
                    edges, *(row[k] for k in ("topic_id", "rate", "lo", "hi"))
                )
                yield pa.record_batch(
                    {
                        "topic_id": pa.array(np.full(len(cells), row["topic_id"]), pa.int32()),
                        "cell": pa.array(list(cells), pa.list_(pa.int32())),
                        "messages": pa.array(shares, pa.float64()),
                        "bytes": pa.array(np.zeros(len(cells)), pa.float64()),
                    }
                )

    return spread


def advertised_traffic(advertised: DataFrame, grid: GridRef) -> DataFrame:
    """Messages per second and cell from advertised rates, which say nothing about bytes.

    Sums are taken in decimals: a sum of floats would depend on the order of the tasks.
    """
    plain = advertised.filter(F.size("lo") == 0).select(
        "topic_id",
        F.array().cast("array<int>").alias("cell"),
        F.col("rate").alias("messages"),
        F.lit(0.0).alias("bytes"),
    )
    boxed = advertised.filter(F.size("lo") > 0).select("topic_id", "rate", "lo", "hi")
    parts = plain.unionByName(boxed.mapInArrow(_spread(grid), _TRAFFIC))
    return parts.groupBy("topic_id", "cell").agg(
        F.sum(F.col("messages").cast("decimal(28,12)")).cast("double").alias("messages"),
        F.sum("bytes").alias("bytes"),
    )


def with_quiet_topics(traffic: DataFrame, topics: DataFrame) -> DataFrame:
    """Traffic with a row for each plain topic that sent nothing: it too needs a place in a plan."""
    quiet = topics.filter("space = 0").join(traffic, on="topic_id", how="left_anti")
    return traffic.unionByName(
        quiet.select(
            "topic_id",
            F.array().cast("array<int>").alias("cell"),
            F.lit(0.0).alias("messages"),
            F.lit(0.0).alias("bytes"),
        )
    )
