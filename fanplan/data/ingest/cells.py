"""Stages `traffic` and `cover`: what is sent in each cell of the grid, and who wants it.

Traffic is counted from publications, or spread from advertised rates. The cover has each region as
a box of cell numbers: who wants a cell is then the same question as which boxes hold a point. With
*overlap* a subscriber wants every cell that its region meets, so nobody is missed. With *full*
(Zhang & Hu 2005, section 2.2) it wants only the cells wholly inside. On an atomic grid both are the
same, and exact.

Executors get the *path* of the finished grid stage and load its edges once per Python worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.core.kernels import compiled
from fanplan.data.ingest.joins import read_columns
from fanplan.data.schema import spark_schema
from fanplan.data.sizes import at_hand, in_small_mode
from fanplan.data.tables import TRAFFIC, coordinates
from fanplan.workload.description_schema import CoverMode

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Edges:
    """``values[start[t, a] : start[t, a] + count[t, a]]`` are the edges of topic t on axis a.

    A topic without attributes has ``dimensions[t] == 0``.
    """

    start: np.ndarray
    count: np.ndarray
    values: np.ndarray
    dimensions: np.ndarray


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


@lru_cache(maxsize=2)
def load_edges(path: str, _key: str, topics: int, dimensions: int) -> Edges:
    """Read a grid stage; topics that have no rows in it are plain."""
    table = read_columns(path, ["topic_id", "axis", "edges"])
    topic = table["topic_id"].to_numpy()
    axis = table["axis"].to_numpy()
    lengths = pc.list_value_length(table["edges"]).to_numpy().astype(np.int64)
    start = np.zeros((topics, max(dimensions, 1)), np.int64)
    count = np.zeros_like(start)
    start[topic, axis] = np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(lengths) else 0
    count[topic, axis] = lengths
    values = pc.list_flatten(table["edges"]).to_numpy().astype(np.float64)
    return Edges(start, count, values, (count > 0).sum(axis=1).astype(np.int64))


def with_topic_ids(publications: DataFrame, topics: DataFrame) -> DataFrame:
    """Publications with their topic's number instead of its name."""
    ids = topics.select("topic", "topic_id")
    # There may be too many to be at hand, but not where publications are few.
    ids = at_hand(ids) if in_small_mode(ids.sparkSession) else ids
    return publications.join(ids, on="topic", how="inner").drop("topic")


def measured_traffic(publications: DataFrame, topics: DataFrame, grid: GridRef) -> DataFrame:
    """Messages and bytes per cell, counted. Counts are whole numbers, so the sums are exact."""
    points = with_topic_ids(publications, topics)
    if grid.dimensions == 0:
        parts = points.select(
            "topic_id",
            no_cell(),
            F.lit(1.0).alias("messages"),
            F.col("bytes").cast("double").alias("bytes"),
        )
    else:
        narrow = points.select("topic_id", "bytes", *coordinates(grid.dimensions))
        parts = narrow.mapInArrow(partial(_count_cells, grid), spark_schema(TRAFFIC))
    return parts.groupBy("topic_id", "cell").agg(
        F.sum("messages").alias("messages"), unordered_sum("bytes").alias("bytes")
    )


def _count_cells(grid: GridRef, batches: Batches) -> Batches:
    """Points and bytes per cell, batch by batch."""
    dimensions = grid.load().dimensions
    axes = [f"c{axis}" for axis in range(grid.dimensions)]
    for batch in batches:
        cells = cell_numbers(batch, grid)
        table = pa.table(
            {"topic_id": batch.column("topic_id"), "bytes": batch.column("bytes")}
            | {name: cells[:, axis] for axis, name in enumerate(axes)}
        )
        sums = table.group_by(["topic_id", *axes]).aggregate([([], "count_all"), ("bytes", "sum")])
        topic = sums["topic_id"].to_numpy()
        found = np.column_stack([sums[name].to_numpy() for name in axes])
        yield pa.record_batch(
            {
                "topic_id": pa.array(topic, pa.int32()),
                "cell": cell_lists(topic, found, dimensions),
                "messages": pa.array(sums["count_all"].to_numpy(), pa.float64()),
                "bytes": pa.array(sums["bytes_sum"].to_numpy().astype(np.float64)),
            }
        )


def advertised_traffic(advertised: DataFrame, grid: GridRef) -> DataFrame:
    """Messages per second and cell from advertised rates, which say nothing about bytes."""
    plain = advertised.filter(F.size("lo") == 0).select(
        "topic_id", no_cell(), F.col("rate").alias("messages"), F.lit(0.0).alias("bytes")
    )
    boxed = advertised.filter(F.size("lo") > 0).select("topic_id", "rate", "lo", "hi")
    spread = boxed.mapInArrow(partial(_spread_advertised, grid), spark_schema(TRAFFIC))
    parts = plain.unionByName(spread)
    return parts.groupBy("topic_id", "cell").agg(
        unordered_sum("messages").alias("messages"), unordered_sum("bytes").alias("bytes")
    )


def _spread_advertised(grid: GridRef, batches: Batches) -> Batches:
    """Advertised rates, spread over the cells of their boxes."""
    edges = grid.load()
    for batch in batches:
        for row in batch.to_pylist():
            cells, shares = spread_box(edges, *(row[k] for k in ("topic_id", "rate", "lo", "hi")))
            yield pa.record_batch(
                {
                    "topic_id": pa.array(np.full(len(cells), row["topic_id"]), pa.int32()),
                    "cell": pa.array(list(cells), pa.list_(pa.int32())),
                    "messages": pa.array(shares, pa.float64()),
                    "bytes": pa.array(np.zeros(len(cells)), pa.float64()),
                }
            )


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


def _axis_shares(edges: np.ndarray, lo: float, hi: float) -> tuple[range, np.ndarray]:
    """The cells that [lo, hi) meets on one axis and the share of it that lies in each."""
    first = int(np.searchsorted(edges, lo, side="right")) - 1
    last = int(np.searchsorted(edges, hi, side="left"))
    ends = np.clip(edges[first : last + 1], lo, hi)
    return range(first, last), np.diff(ends) / (hi - lo)


def no_cell() -> Column:
    """The cell of a plain topic."""
    return F.array().cast("array<int>").alias("cell")


def unordered_sum(column: Column | str) -> Column:
    """A sum that does not depend on the order of the tasks, as one of floats would.

    The bounds of `fanplan.workload.tables` see to it that it cannot overflow.
    """
    column = F.col(column) if isinstance(column, str) else column
    return F.sum(column.cast("decimal(38,15)")).cast("double")


def with_cells(points: DataFrame, grid: GridRef) -> DataFrame:
    """Points with the list of cell numbers they fall into: empty for a plain topic."""
    if grid.dimensions == 0:
        return points.withColumn("cell", no_cell())
    schema = T.StructType([*points.schema, T.StructField("cell", T.ArrayType(T.IntegerType()))])
    return points.mapInArrow(partial(_locate, grid), schema)


def _locate(grid: GridRef, batches: Batches) -> Batches:
    """Points with the column `cell`."""
    for batch in batches:
        topic = batch.column("topic_id").to_numpy()
        cells = cell_lists(topic, cell_numbers(batch, grid), grid.load().dimensions)
        yield batch.append_column("cell", cells)


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
    offsets = starts_of(lengths).astype(np.int32)
    own = np.arange(cells.shape[1]) < lengths[:, None]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(cells[own], pa.int32()))


@compiled
def cells_of_points(
    start: Longs,
    count: Longs,
    values: Floats,
    dimensions: Longs,
    topic: Longs,
    points: Floats,
    out: Ints,
) -> None:
    """The cell number of each point on each axis: the last edge that is <= x."""
    for row in range(len(topic)):
        t = topic[row]
        for axis in range(dimensions[t]):
            edges = values[start[t, axis] : start[t, axis] + count[t, axis]]
            out[row, axis] = np.searchsorted(edges, points[row, axis], side="right") - 1


# ---- cover


def cover_cells(regions: DataFrame, grid: GridRef, mode: CoverMode) -> DataFrame:
    """Regions as boxes of cell numbers; a region that covers no cell is left out."""
    if grid.dimensions == 0:
        return regions
    snapped = regions.mapInArrow(partial(_in_cell_numbers, grid, mode == "full"), regions.schema)
    holds_cells = F.forall(F.arrays_zip("lo", "hi"), lambda end: end["lo"] < end["hi"])
    return snapped.filter(holds_cells)


def _in_cell_numbers(grid: GridRef, full: bool, batches: Batches) -> Batches:
    """Turn boxes of coordinates into boxes of cell numbers."""
    edges = grid.load()
    for batch in batches:
        lo, hi = batch.column("lo"), batch.column("hi")
        ends = [np.array(side.flatten().to_numpy(), np.float64) for side in (lo, hi)]
        # A batch may be a slice, whose offsets begin anywhere; what is flattened begins at 0.
        offsets = lo.offsets.to_numpy() - lo.offsets[0].as_py()
        topic = batch.column("topic_id").to_numpy()
        low, high = ends
        cells_of_boxes(edges.start, edges.count, edges.values, topic, offsets, low, high, full)
        lists = [pa.ListArray.from_arrays(pa.array(offsets), pa.array(side)) for side in ends]
        yield pa.record_batch(
            [*(batch.column(name) for name in batch.schema.names[:3]), *lists],
            names=batch.schema.names,
        )


def with_cell_extents(rows: DataFrame, grid: GridRef) -> DataFrame:
    """Rows with the ends ``lo`` and ``hi`` of their cells; empty for a plain topic."""
    ends = [T.StructField(name, T.ArrayType(T.DoubleType())) for name in ("lo", "hi")]
    return rows.mapInArrow(partial(_cell_extents, grid), T.StructType([*rows.schema, *ends]))


def _cell_extents(grid: GridRef, batches: Batches) -> Batches:
    edges = grid.load()
    for batch in batches:
        cells = batch.column("cell")
        lengths = cells.value_lengths().to_numpy()
        topic = np.repeat(batch.column("topic_id").to_numpy(), lengths)
        axis = np.arange(len(topic)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = edges.start[topic, axis] + cells.flatten().to_numpy()
        offsets = pa.array(starts_of(lengths), pa.int32())
        for name, values in (("lo", edges.values[at]), ("hi", edges.values[at + 1])):
            batch = batch.append_column(name, pa.ListArray.from_arrays(offsets, values))
        yield batch


@compiled
def cells_of_boxes(
    start: Longs,
    count: Longs,
    values: Floats,
    topic: Longs,
    offsets: Ints,
    lo: Floats,
    hi: Floats,
    full: bool,
) -> None:
    """Turn boxes, in place, into half-open boxes of cell numbers.

    ``full`` keeps the cells wholly inside the box; otherwise all that meet it.
    """
    for row in range(len(topic)):
        t = topic[row]
        for axis in range(offsets[row + 1] - offsets[row]):
            edges = values[start[t, axis] : start[t, axis] + count[t, axis]]
            at = offsets[row] + axis
            if full:
                lo[at] = np.searchsorted(edges, lo[at], side="left")
                hi[at] = np.searchsorted(edges, hi[at], side="right") - 1
            else:
                lo[at] = np.searchsorted(edges, lo[at], side="right") - 1
                hi[at] = np.searchsorted(edges, hi[at], side="left")


def cell_points(traffic: DataFrame, dimensions: int) -> DataFrame:
    """Cells as points of cell numbers, weighted by their messages, to be matched with the cover."""
    numbers = {
        f"x{axis}": F.coalesce(
            F.try_element_at("cell", F.lit(axis + 1)).cast("double"), F.lit(np.nan)
        )
        for axis in range(dimensions)
    }
    return traffic.withColumns({**numbers, "weight": F.col("messages")})
