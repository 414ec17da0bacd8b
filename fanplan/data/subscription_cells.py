"""Boxes of subscriptions and cells with traffic, read from a dataset, and which hold which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.data.reader import read_stage


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of subscriptions, one per line. Axes beyond those of a topic are [0, 1).

    ``owner`` numbers the subscriptions as they were made; ``who`` is the subscriber.
    """

    topic: Longs
    owner: Longs
    who: Longs
    lo: Floats
    hi: Floats


@dataclass(frozen=True, eq=False)
class TrafficCells:
    """Cells with traffic, one per line, with a column per axis; ``volumes`` is per topic."""

    topic: Longs
    cell: Longs
    messages: Floats
    volume: Floats
    volumes: Floats


def read_boxes(dataset: Path, stage: str, width: int) -> Boxes:
    columns = ("topic_id", "subscription", "subscriber_id", "lo", "hi")
    table = read_stage(dataset, stage, columns).combine_chunks()
    numbers = [table[name].to_numpy().astype(np.int64) for name in columns[:3]]
    ends = [padded(table[name], width, fill) for name, fill in (("lo", 0.0), ("hi", 1.0))]
    return Boxes(*numbers, *ends)


def read_traffic_cells(dataset: Path, flows: pa.Table, dimensions: int) -> TrafficCells:
    """All flows as cells, with their volume from the edges of the grid; a plain topic has 1."""
    topics = read_stage(dataset, "topics", ("topic_id",)).num_rows
    width = max(dimensions, 1)
    topic = flows["topic_id"].to_numpy().astype(np.int64)
    cell = padded(flows["cell"], width, 0.0).astype(np.int64)
    messages = flows["messages"].to_numpy().astype(np.float64)
    if dimensions == 0:
        return TrafficCells(topic, cell, messages, np.ones(len(topic)), np.ones(topics))
    grid = read_stage(dataset, "grid", ("topic_id", "axis", "edges")).combine_chunks()
    edges = grid["edges"].combine_chunks()
    values, starts = edges.flatten().to_numpy(), edges.offsets.to_numpy().astype(np.int64)
    slot = np.full((topics, width), -1, dtype=np.int64)
    slot[grid["topic_id"].to_numpy(), grid["axis"].to_numpy()] = np.arange(grid.num_rows)
    volumes = cell_volumes(topic, cell, slot, starts - starts[0], values)
    return TrafficCells(topic, cell, messages, *volumes)


def padded(column: pa.ChunkedArray, width: int, fill: float) -> Floats:
    """A column of lists as a matrix; shorter lists are filled up."""
    column = column.combine_chunks()
    result = np.full((len(column), width), fill)
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    result[np.arange(width) < lengths[:, None]] = column.flatten().to_numpy()
    return result


@compiled
def cell_volumes(
    topic: Longs, cell: Longs, slot: Longs, starts: Longs, edges: Floats
) -> tuple[Floats, Floats]:
    """The volume of each cell and of each topic; ``slot`` is where a topic's axis has its edges."""
    volume, volumes = np.ones(len(topic)), np.ones(len(slot))
    for axis in range(slot.shape[1]):
        for t in range(len(slot)):
            if slot[t, axis] >= 0:
                volumes[t] *= edges[starts[slot[t, axis] + 1] - 1] - edges[starts[slot[t, axis]]]
        for i in range(len(topic)):
            if slot[topic[i], axis] >= 0:
                at = starts[slot[topic[i], axis]] + cell[i, axis]
                volume[i] *= edges[at + 1] - edges[at]
    return volume, volumes


def read_hits(dataset: Path, regions: Boxes) -> Longs:
    """Hits of the subscription of each box; one that the stage leaves out has none."""
    table = read_stage(dataset, "hits", ("subscription", "hits")).sort_by("subscription")
    known, hits = table["subscription"].to_numpy(), table["hits"].to_numpy()
    if not len(known):
        return np.zeros(len(regions.owner), dtype=np.int64)
    at = np.minimum(np.searchsorted(known, regions.owner), len(known) - 1)
    return np.where(known[at] == regions.owner, hits[at], 0)


@dataclass(frozen=True, eq=False)
class HeldCells:
    """Pairs (line of the cover, line of the cells), none twice."""

    left: Longs
    right: Longs


def covered_cells(cover: Boxes, cells: TrafficCells) -> HeldCells:
    """Which cells each box holds; both in cell numbers."""
    columns = [cells.cell[:, axis] for axis in reversed(range(cells.cell.shape[1]))]
    order = np.lexsort((*columns, cells.topic))
    keys = (cells.topic[order] << 32) + cells.cell[order, 0]
    lo, hi = cover.lo.astype(np.int64), cover.hi.astype(np.int64)
    start = np.searchsorted(keys, (cover.topic << 32) + lo[:, 0])
    end = np.searchsorted(keys, (cover.topic << 32) + hi[:, 0])
    left, right = cells_in_boxes(start, end, lo, hi, cells.cell[order])
    return HeldCells(left, order[right])


@compiled
def cells_in_boxes(
    start: Longs, end: Longs, lo: Longs, hi: Longs, cell: Longs
) -> tuple[Longs, Longs]:
    """Candidates are the cells from start to end; the first axis holds already."""
    size = 0
    for turn in range(2):
        if turn:
            left, right = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
            size = 0
        for i in range(len(start)):
            for j in range(start[i], end[i]):
                if np.all((lo[i, 1:] <= cell[j, 1:]) & (cell[j, 1:] < hi[i, 1:])):
                    if turn:
                        left[size], right[size] = i, j
                    size += 1
    return left, right
