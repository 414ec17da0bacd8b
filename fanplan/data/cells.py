"""The edges of every topic's grid as flat arrays, and the compiled searches over them.

Executors get the *path* of the finished grid stage and load it once per Python worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled


@dataclass(frozen=True)
class Edges:
    """``values[start[t, a] : start[t, a] + count[t, a]]`` are the edges of topic t on axis a.

    A topic without attributes has ``dimensions[t] == 0``.
    """

    start: np.ndarray
    count: np.ndarray
    values: np.ndarray
    dimensions: np.ndarray


@lru_cache(maxsize=2)
def load_edges(path: str, key: str, topics: int, dimensions: int) -> Edges:
    """Read a grid stage; topics that have no rows in it are plain."""
    table = ds.dataset(path, format="parquet").to_table(columns=["topic_id", "axis", "edges"])
    topic = table["topic_id"].to_numpy()
    axis = table["axis"].to_numpy()
    lengths = pc.list_value_length(table["edges"]).to_numpy().astype(np.int64)
    start = np.zeros((topics, max(dimensions, 1)), np.int64)
    count = np.zeros_like(start)
    start[topic, axis] = np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(lengths) else 0
    count[topic, axis] = lengths
    values = pc.list_flatten(table["edges"]).to_numpy().astype(np.float64)
    return Edges(start, count, values, (count > 0).sum(axis=1).astype(np.int64))


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
