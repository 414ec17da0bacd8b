"""Stage `group_grid`: as many cells on each axis of each topic, and what tasks do on this grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.data import contracts
from fanplan.data.contracts import coordinates
from fanplan.data.ingest.derived import Derived
from fanplan.layers.groups.problem.cell_matcher import Grid, cells_of
from fanplan.layers.groups.problem.grid import (
    cells_met,
    places_of,
    read_group_grid,
    require_few_cells,
    require_few_marks,
    uniform_edges,
)
from fanplan.layers.groups.problem.regions import regions_of

Batches = Iterator[pa.RecordBatch]

STAGE = "group_grid"
_LISTS = pa.list_(pa.float64())


@dataclass(frozen=True)
class GroupGrid:
    """Where the finished stage lies, and its sizes: all that a task needs.

    The key tells grids apart that lie at the same path one after the other.
    """

    path: str
    key: str
    topics: int
    dimensions: int

    def load(self) -> Grid:
        return _load(self.path, self.key, self.topics)


@lru_cache(maxsize=2)
def _load(path: str, key: str, topics: int) -> Grid:
    """The grid, read once by each worker."""
    return read_group_grid(Path(path), topics)


def group_grid(source: Derived, cells: int) -> GroupGrid:
    """Make the stage; a grid that is too fine is refused before."""
    require_few_cells(source.dataset, cells)
    lay = partial(_laid, cells)
    build = lambda _: source.read("grid").mapInArrow(lay, contracts.GRID)  # noqa: E731
    source.stage(STAGE, cells, contracts.GRID, build)
    known = source.manifest
    key = f"{known.inputs} {cells}"
    return GroupGrid(str(source.dataset / STAGE), key, known.stages["topics"], known.dimensions)


def _laid(cells: int, batches: Batches) -> Batches:
    for batch in batches:
        ends = [(row[0], row[-1]) for row in batch.column("edges").to_pylist()]
        edges = pa.array([uniform_edges(lo, hi, cells) for lo, hi in ends], _LISTS)
        yield pa.record_batch([batch["topic_id"], batch["axis"], edges], batch.schema.names)


def estimate(source: Derived, grid: GroupGrid, cells: int) -> None:
    """Say how many cells and marks there are, before the work; too many are refused."""
    with source.progress.stage("estimate") as told:
        regions = source.read("broker_regions")
        counts = regions.mapInArrow(partial(_counts, grid), "marks double")
        marks = float(counts.agg(F.sum("marks")).first()[0] or 0.0)  # type: ignore[index]
        total = int(grid.load().cells[-1])
        told.note(f"{total:,} cells, at most {marks:,.0f} marks")
        require_few_marks(marks, cells, grid.dimensions)


def _counts(grid: GroupGrid, batches: Batches) -> Batches:
    for batch in batches:
        boxes = regions_of(pa.Table.from_batches([batch]), grid.dimensions)
        *_, count = cells_met(grid.load(), boxes.topic, boxes.lo, boxes.hi)
        yield pa.record_batch({"marks": [count.sum()]})


def with_cell(points: DataFrame, grid: GroupGrid) -> DataFrame:
    """Points with the number of their cell in a column ``cell``."""
    schema = points.withColumn("cell", F.lit(0).cast("long")).schema
    return points.mapInArrow(partial(_located, grid), schema)


def _located(grid: GroupGrid, batches: Batches) -> Batches:
    for batch in batches:
        axes = [batch.column(name).to_numpy() for name in coordinates(grid.dimensions)]
        point = np.column_stack(axes) if axes else np.empty((batch.num_rows, 0))
        cell = numbers_at(grid, batch.column("topic_id").to_numpy(), point)
        yield batch.append_column("cell", pa.array(cell))


def numbers_at(grid: GroupGrid, topic: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The number of the cell at each point."""
    return cells_of(grid.load(), topic, point)


def cell_boxes(regions: DataFrame, grid: GroupGrid) -> DataFrame:
    """Regions of brokers as boxes of cell numbers, by any overlap; owners are brokers."""
    return regions.mapInArrow(partial(_snapped, grid), contracts.REGIONS)


def _snapped(grid: GroupGrid, batches: Batches) -> Batches:
    for batch in batches:
        boxes = regions_of(pa.Table.from_batches([batch]), grid.dimensions)
        low, high, _ = cells_met(grid.load(), boxes.topic, boxes.lo, boxes.hi)
        own = np.arange(grid.dimensions) < boxes.dimensions[:, None]
        offsets = pa.array(np.append(0, np.cumsum(boxes.dimensions)), pa.int32())
        ends = [
            pa.ListArray.from_arrays(offsets, side[own].astype(np.float64)) for side in (low, high)
        ]
        broker = batch.column("broker")
        columns = [batch["topic_id"], broker.cast(pa.int64()), broker, *ends]
        yield pa.record_batch(columns, contracts.REGIONS.names)


def cell_places(rows: DataFrame, grid: GroupGrid) -> DataFrame:
    """Rows with a ``cell`` as points of cell numbers, to be matched with the boxes of cells."""
    points = rows.withColumn("topic_id", F.lit(0))
    for name in coordinates(grid.dimensions):
        points = points.withColumn(name, F.lit(0.0))
    return rows.mapInArrow(partial(_placed, grid), points.schema)


def _placed(grid: GroupGrid, batches: Batches) -> Batches:
    for batch in batches:
        topic, place = places_of(grid.load(), batch["cell"].to_numpy(), grid.dimensions)
        batch = batch.append_column("topic_id", pa.array(topic, pa.int32()))
        for axis, name in enumerate(coordinates(grid.dimensions)):
            batch = batch.append_column(name, pa.array(place[:, axis], pa.float64()))
        yield batch
