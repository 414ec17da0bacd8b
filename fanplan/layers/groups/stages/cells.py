"""The stages of a grid: `group_grid`, which cells brokers want, and the traffic of each cell.

Boxes go to the parts of the grid that they meet. A task has the boxes of some parts and marks all
cells of these at once; no pair of a cell and a broker is ever a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanplan.core.arrays import starts_of
from fanplan.data.ingest.cells import GridRef, cover_cells
from fanplan.data.ingest.derived import Derived
from fanplan.data.schema import spark_schema
from fanplan.data.tables import REGIONS, coordinates
from fanplan.data.tasks import Batches
from fanplan.data.write import write_folder
from fanplan.layers.groups.problem.cell_marks import PART, CellMarks, mark_part, part_at, parts_met
from fanplan.layers.groups.problem.grid import (
    GroupGrid,
    cells_at,
    cells_met,
    equal_cell_edges,
    places_of,
    read_group_grid,
    require_coarse_grid,
    require_few_marks,
)
from fanplan.layers.groups.problem.regions import regions_of
from fanplan.layers.groups.stages.tables import CELL_MARKS, CELL_ROUTES, GROUP_GRID
from fanplan.layers.overlay.stages import routes
from fanplan.network.dataset import require_homes

KEEP = ("cell", "source", "weight")

MOST_TASKS = 64

_LISTS = pa.list_(pa.float64())

_IN_PARTS = "first long, broker int, topic_id int, lo array<double>, hi array<double>"


@dataclass(frozen=True)
class GridStage:
    """Where the finished stage lies, and its sizes: all that a task needs.

    The key tells grids apart that lie at the same path one after the other.
    """

    path: str
    key: str
    topics: int
    dimensions: int

    def load(self) -> GroupGrid:
        return _load_grid(self.path, self.key, self.topics)


# ---- group_grid


def group_grid(source: Derived, cells: int) -> GridStage:
    """Make the stage; a grid that is too fine is refused before."""
    require_coarse_grid(source.dataset, cells)
    lay = partial(_laid, cells)
    build = lambda _: source.read("grid").mapInArrow(lay, spark_schema(GROUP_GRID))  # noqa: E731
    source.stage(GROUP_GRID, cells, build)
    known, path = source.manifest, str(source.dataset / GROUP_GRID.name)
    return GridStage(path, f"{known.inputs} {cells}", known.stages["topics"], known.dimensions)


def _laid(cells: int, batches: Batches) -> Batches:
    for batch in batches:
        ends = [(row[0], row[-1]) for row in batch.column("edges").to_pylist()]
        edges = pa.array([equal_cell_edges(lo, hi, cells) for lo, hi in ends], _LISTS)
        yield pa.record_batch([batch["topic_id"], batch["axis"], edges], batch.schema.names)


@lru_cache(maxsize=2)
def _load_grid(path: str, _key: str, topics: int) -> GroupGrid:
    """The grid, read once by each worker."""
    return read_group_grid(Path(path), topics)


# ---- cell_marks


def cell_marks(source: Derived, grid: GridStage, cells: int) -> None:
    """Make the stage, after an estimate of the work."""

    def build(_: object) -> DataFrame:
        estimate_marks(source, grid, cells)
        return marked_cells(source.read("broker_regions"), grid)

    source.stage(CELL_MARKS, cells, build)


def estimate_marks(source: Derived, grid: GridStage, cells: int) -> None:
    """Say how many cells and marks there are, before the work; too many are refused."""
    with source.progress.stage("estimate") as told:
        regions = source.read("broker_regions")
        counts = regions.mapInArrow(partial(_counts, grid), "marks double")
        marks = float(counts.agg(F.sum("marks")).first()[0] or 0.0)  # type: ignore[index]
        total = int(grid.load().cells[-1])
        told.note(f"{total:,} cells, at most {marks:,.0f} marks")
        require_few_marks(marks, cells, grid.dimensions)


def _counts(grid: GridStage, batches: Batches) -> Batches:
    for batch in batches:
        boxes = regions_of(pa.Table.from_batches([batch]), grid.dimensions)
        *_, count = cells_met(grid.load(), boxes.topic, boxes.lo, boxes.hi)
        yield pa.record_batch({"marks": [count.sum()]})


def marked_cells(regions: DataFrame, grid: GridStage) -> DataFrame:
    """Cells that somebody wants, with the signature and the number of these brokers."""
    placed = regions.mapInArrow(partial(_in_parts, grid), _IN_PARTS)
    tasks = min(MOST_TASKS, int(grid.load().cells[-1]) // PART + 1)
    together = placed.repartition(tasks, "first")
    return together.mapInArrow(partial(_marked_parts, grid), spark_schema(CELL_MARKS))


def _in_parts(grid: GridStage, batches: Batches) -> Batches:
    """Boxes with the first cell of each part they meet."""
    for batch in batches:
        boxes = regions_of(pa.Table.from_batches([batch]), grid.dimensions)
        box, first = parts_met(grid.load(), boxes.topic, boxes.lo, boxes.hi, PART)
        rows = batch.select(["broker", "topic_id", "lo", "hi"]).take(pa.array(box))
        yield pa.record_batch([pa.array(first), *rows.columns], ["first", *rows.schema.names])


def _marked_parts(grid: GridStage, batches: Batches) -> Batches:
    """Marks of the cells of some parts, with all boxes that meet them."""
    gathered = list(batches)
    if not gathered:
        return
    by_part = [("first", "ascending"), ("broker", "ascending")]
    rows = pa.Table.from_batches(gathered).sort_by(by_part).combine_chunks()
    boxes, first = regions_of(rows, grid.dimensions), rows["first"].to_numpy()
    bounds = np.append(np.flatnonzero(np.diff(first, prepend=-1)), len(first))
    found = []
    for a, b in pairwise(bounds):
        part = part_at(grid.load(), first[a], PART)
        marks = mark_part(grid.load(), part, boxes.broker[a:b], boxes.lo[a:b], boxes.hi[a:b])
        found.append(_mark_rows(int(first[a]), marks))
    yield from pa.Table.from_batches(found).combine_chunks().to_batches()


def _mark_rows(first: int, marks: CellMarks) -> pa.RecordBatch:
    """The cells of a part that somebody wants."""
    cell = np.flatnonzero(marks.wanted)
    high, low = marks.signature[:, cell].view(np.int64)
    wanted = marks.wanted[cell]
    columns = (first + cell, high, low, wanted, marks.whole[cell] == wanted)
    return pa.record_batch(list(map(pa.array, columns)), CELL_MARKS.names)


# ---- cell_routes


def cell_routes(source: Derived, grid: GridStage, cells: int) -> None:
    build = lambda folder: _cell_routes(source, grid, folder)  # noqa: E731
    source.stage(CELL_ROUTES, cells, build)


def _cell_routes(source: Derived, grid: GridStage, folder: Path) -> DataFrame:
    require_homes(source.dataset)
    sent = (
        _published_in_cells(source, grid)
        if routes.traffic_is_measured(source)
        else _rates_in_cells(source, grid, folder)
    )
    return routes.summed_routes(routes.to_brokers(source, sent, folder), "cell")


def _published_in_cells(source: Derived, grid: GridStage) -> routes.SentPoints:
    """Publications, each with its cell."""
    points = routes.published_points(source, routes.publisher_brokers, False, "weight")
    return routes.SentPoints(with_cell(points, grid), source.read("regions"), KEEP)


def _rates_in_cells(source: Derived, grid: GridStage, folder: Path) -> routes.SentPoints:
    """Advertised rates, spread over cells so fine that each lies in one cell of both grids.

    Who wants any of a fine cell is taken to want all of it; on an atomic grid that is exact.
    """
    fine = _refined(source, folder / "grid") if grid.dimensions else source.grid
    points = routes.advertised_points(source, routes.publisher_brokers, fine)
    columns = ("topic_id", "source", "weight", *coordinates(grid.dimensions))
    schema = points.select(*columns, F.lit(0).cast("long").alias("cell")).schema
    placed = points.select(*columns).mapInArrow(partial(_placed_rates, grid, fine), schema)
    boxes = cover_cells(source.read("regions"), fine, "overlap")
    return routes.SentPoints(placed, boxes, KEEP)


def _refined(source: Derived, path: Path) -> GridRef:
    """The edges of the dataset's grid and of the groups' grid together."""
    others = source.read("group_grid").withColumnRenamed("edges", "others")
    both = source.read("grid").join(others, on=["topic_id", "axis"], how="inner")
    edges = F.array_sort(F.array_union("edges", "others")).alias("edges")
    write_folder(both.select("topic_id", "axis", edges), path)
    known = source.manifest
    return GridRef(str(path), str(path), known.stages["topics"], known.dimensions)


def _placed_rates(grid: GridStage, fine: GridRef, batches: Batches) -> Batches:
    """Fine cells with the cell of the groups' grid that their lower corners lie in."""
    edges = fine.load()
    for batch in batches:
        topic = batch.column("topic_id").to_numpy()
        corner = np.zeros((len(topic), grid.dimensions))
        for axis, name in enumerate(coordinates(grid.dimensions)):
            at = batch.column(name).to_numpy()
            own = ~np.isnan(at)
            corner[own, axis] = edges.values[edges.start[topic[own], axis] + at[own].astype(int)]
        yield batch.append_column("cell", pa.array(cells_at(grid.load(), topic, corner)))


def with_cell(points: DataFrame, grid: GridStage) -> DataFrame:
    """Points with the number of their cell in a column ``cell``."""
    schema = points.withColumn("cell", F.lit(0).cast("long")).schema
    return points.mapInArrow(partial(_located, grid), schema)


def _located(grid: GridStage, batches: Batches) -> Batches:
    for batch in batches:
        axes = [batch.column(name).to_numpy() for name in coordinates(grid.dimensions)]
        point = np.column_stack(axes) if axes else np.empty((batch.num_rows, 0))
        cell = cells_at(grid.load(), batch.column("topic_id").to_numpy(), point)
        yield batch.append_column("cell", pa.array(cell))


# ---- cells as boxes and points, to be matched with each other


def cell_boxes(regions: DataFrame, grid: GridStage) -> DataFrame:
    """Regions of brokers as boxes of cell numbers, by any overlap; owners are brokers."""
    return regions.mapInArrow(partial(_snapped_boxes, grid), spark_schema(REGIONS))


def _snapped_boxes(grid: GridStage, batches: Batches) -> Batches:
    for batch in batches:
        boxes = regions_of(pa.Table.from_batches([batch]), grid.dimensions)
        low, high, _ = cells_met(grid.load(), boxes.topic, boxes.lo, boxes.hi)
        own = np.arange(grid.dimensions) < boxes.dimensions[:, None]
        offsets = pa.array(starts_of(boxes.dimensions), pa.int32())
        ends = [
            pa.ListArray.from_arrays(offsets, side[own].astype(np.float64)) for side in (low, high)
        ]
        broker = batch.column("broker")
        columns = [batch["topic_id"], broker.cast(pa.int64()), broker, *ends]
        yield pa.record_batch(columns, REGIONS.names)


def cell_places(rows: DataFrame, grid: GridStage) -> DataFrame:
    """Rows with a ``cell`` as points of cell numbers, to be matched with the boxes of cells."""
    points = rows.withColumn("topic_id", F.lit(0))
    for name in coordinates(grid.dimensions):
        points = points.withColumn(name, F.lit(0.0))
    return rows.mapInArrow(partial(_placed_cells, grid), points.schema)


def _placed_cells(grid: GridStage, batches: Batches) -> Batches:
    for batch in batches:
        topic, place = places_of(grid.load(), batch["cell"].to_numpy(), grid.dimensions)
        batch = batch.append_column("topic_id", pa.array(topic, pa.int32()))
        for axis, name in enumerate(coordinates(grid.dimensions)):
            batch = batch.append_column(name, pa.array(place[:, axis], pa.float64()))
        yield batch
