"""Stage `cell_marks`: which cells brokers want, and whether as a whole, as signatures.

Boxes go to the parts of the grid that they meet. A task has the boxes of some parts and marks all
cells of these at once; no pair of a cell and a broker is ever a row.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from fanplan.data import contracts
from fanplan.data.ingest.derived import Derived
from fanplan.layers.groups.problem.cell_marks import PART, Marks, mark_part, part_of, parts_met
from fanplan.layers.groups.problem.regions import regions_of
from fanplan.layers.groups.stages.grid import Batches, GroupGrid, estimate

MOST_TASKS = 64

_IN_PARTS = "first long, broker int, topic_id int, lo array<double>, hi array<double>"


def cell_marks(source: Derived, grid: GroupGrid, cells: int) -> None:
    """Make the stage, after an estimate of the work."""

    def build(_: object) -> DataFrame:
        estimate(source, grid, cells)
        return marked(source.read("broker_regions"), grid)

    source.stage("cell_marks", cells, contracts.CELL_MARKS, build)


def marked(regions: DataFrame, grid: GroupGrid) -> DataFrame:
    """Cells that somebody wants, with the signature and the number of these brokers."""
    placed = regions.mapInArrow(partial(_in_parts, grid), _IN_PARTS)
    tasks = min(MOST_TASKS, int(grid.load().cells[-1]) // PART + 1)
    together = placed.repartition(tasks, "first")
    return together.mapInArrow(partial(_marked, grid), contracts.CELL_MARKS)


def _in_parts(grid: GroupGrid, batches: Batches) -> Batches:
    """Boxes with the first cell of each part they meet."""
    for batch in batches:
        boxes = regions_of(pa.Table.from_batches([batch]), grid.dimensions)
        box, first = parts_met(grid.load(), boxes.topic, boxes.lo, boxes.hi, PART)
        rows = batch.select(["broker", "topic_id", "lo", "hi"]).take(pa.array(box))
        yield pa.record_batch([pa.array(first), *rows.columns], ["first", *rows.schema.names])


def _marked(grid: GroupGrid, batches: Batches) -> Batches:
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
        part = part_of(grid.load(), first[a], PART)
        marks = mark_part(grid.load(), part, boxes.broker[a:b], boxes.lo[a:b], boxes.hi[a:b])
        found.append(_rows(int(first[a]), marks))
    yield from pa.Table.from_batches(found).combine_chunks().to_batches()


def _rows(first: int, marks: Marks) -> pa.RecordBatch:
    """The cells of a part that somebody wants."""
    cell = np.flatnonzero(marks.wanted)
    high, low = marks.signature[:, cell].view(np.int64)
    wanted = marks.wanted[cell]
    columns = (first + cell, high, low, wanted, marks.whole[cell] == wanted)
    return pa.record_batch(list(map(pa.array, columns)), contracts.CELL_MARKS.names)
