"""Which boxes hold a point, for few attributes: a grid over the boxes of each topic.

Every topic has its own grid of *index cells*. Its edges are quantiles of the end points of the
topic's own boxes, so crowded parts of a space get narrow cells, and an axis with few distinct end
points gets cells that no box cuts. An index cell lists the boxes that *cover* all of it, which need
no test, and those that only *cut* it, which are tested point by point. A topic without axes is one
index cell that all its boxes cover.

Points are visited index cell by index cell. The boxes that cut the cell are first copied next to
each other, so that one point is tested against all of them by vector instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled

Grids = tuple[Floats, Floats, Longs, Ints, Floats, Longs, Ints, Longs]

# Bounds on the index, per box. More cells mean fewer tests per point and more memory.
CELLS_PER_BOX = 4
ENTRIES_PER_BOX = 64
MOST_ENTRIES = 2**27
SAMPLE = 256


class Grid(NamedTuple):
    """Index cells of topics, which are numbered from 0.

    ``first_edge`` and ``splits``, the number of index cells along an axis, have a column per axis.
    ``cover_*`` and ``cut_*`` are compressed rows from cell to boxes, the longest with ``longest``
    boxes.
    """

    edges: Floats
    first_edge: Longs
    splits: Ints
    first_cell: Longs
    cover_start: Longs
    cover: Ints
    cut_start: Longs
    cut: Ints
    longest: int


def make_grid(lo: Floats, hi: Floats, bounds: Longs, sizes: Ints) -> Grid:
    """The grids of topics; t has the boxes from ``bounds[t]`` up to ``bounds[t + 1]``.

    Memory is at most ENTRIES_PER_BOX entries per box.
    """
    per_box = min(ENTRIES_PER_BOX, MOST_ENTRIES // max(len(lo), 1) + 1)
    edges, first_edge, splits = _lay_grids(lo, hi, bounds, sizes, per_box)
    first_cell = np.append(0, splits.prod(axis=1, dtype=np.int64).cumsum())
    grids = (lo, hi, bounds, sizes, edges, first_edge, splits, first_cell)
    cover_start, cover, cut_start, cut = _list_boxes(grids)
    longest = _longest(cover_start, cut_start)
    return Grid(edges, first_edge, splits, first_cell, cover_start, cover, cut_start, cut, longest)


def _longest(*starts: Longs) -> int:
    return max(int(np.diff(start).max(initial=0)) for start in starts)


@compiled
def _lay_grids(
    lo: Floats, hi: Floats, bounds: Longs, sizes: Ints, per_box: int
) -> tuple[Floats, Longs, Ints]:
    """Edges of every topic and axis: the distinct end points, thinned to the chosen splits."""
    topics, width = len(sizes), lo.shape[1]
    edges = np.empty(2 * lo.size + 1)
    first_edge = np.zeros((topics, width), np.int64)
    splits = np.ones((topics, width), np.int32)
    used = 0
    for t in range(topics):
        a, b = bounds[t], bounds[t + 1]
        start = used
        distinct = np.zeros(width, np.int64)
        for axis in range(sizes[t]):
            ends = np.unique(np.concatenate((lo[a:b, axis], hi[a:b, axis])))
            first_edge[t, axis] = used
            distinct[axis] = len(ends)
            edges[used : used + len(ends)] = ends
            used += len(ends)
        extents = _extents(lo[a:b], hi[a:b], edges, first_edge[t], distinct, sizes[t])
        _choose_splits(extents, distinct, b - a, per_box, splits[t])
        used = start
        for axis in range(sizes[t]):
            old, n, gaps = first_edge[t, axis], splits[t, axis], distinct[axis] - 1
            first_edge[t, axis] = used
            for i in range(n + 1):
                edges[used + i] = edges[old + i * gaps // n]
            used += n + 1
    return edges[:used].copy(), first_edge, splits


@compiled
def _extents(
    lo: Floats, hi: Floats, edges: Floats, first_edge: Longs, distinct: Longs, size: int
) -> Floats:
    """Of a sample of boxes, the share of each axis' end points that they span."""
    step = max(1, len(lo) // SAMPLE)
    extents = np.ones((len(lo[::step]), size))
    for s in range(len(extents)):
        for axis in range(size):
            first, gaps = first_edge[axis], distinct[axis] - 1
            ends = edges[first : first + gaps + 1]
            low = np.searchsorted(ends, lo[s * step, axis])
            extents[s, axis] = (np.searchsorted(ends, hi[s * step, axis]) - low) / gaps
    return extents


@compiled
def _choose_splits(
    extents: Floats, distinct: Longs, boxes: int, per_box: int, splits: Ints
) -> None:
    """Double the axis that saves most tests, until it no longer pays or the index is full.

    An axis that most boxes leave open, as is common with many attributes, is never split.
    """
    best, _ = _cost(extents, distinct, splits)
    while True:
        chosen, before = -1, best
        for axis in range(extents.shape[1]):
            old = splits[axis]
            splits[axis] = min(2 * old, distinct[axis] - 1)
            cells = 1
            for other in range(extents.shape[1]):
                cells *= splits[other]
            cost, listed = _cost(extents, distinct, splits)
            fits = cells <= CELLS_PER_BOX * boxes and listed * cells <= per_box
            if fits and cost < best and splits[axis] > old:
                chosen, best = axis, cost
            splits[axis] = old
        if chosen < 0 or best > 0.95 * before:
            return
        splits[chosen] = min(2 * splits[chosen], distinct[chosen] - 1)


@compiled
def _cost(extents: Floats, distinct: Longs, splits: Ints) -> tuple[float, float]:
    """Expected work per point and box, and the chance that a box is listed in an index cell.

    A box that covers a cell costs a quarter of a test.
    """
    listed, covers = 0.0, 0.0
    for s in range(len(extents)):
        touch, cover = 1.0, 1.0
        for axis in range(extents.shape[1]):
            fringe = 1.0 / splits[axis] - 1.0 / (distinct[axis] - 1)
            touch *= min(1.0, extents[s, axis] + fringe)
            cover *= max(0.0, extents[s, axis] - fringe)
        listed += touch
        covers += cover
    return (listed - 0.75 * covers) / len(extents), listed / len(extents)


@compiled
def _list_boxes(grids: Grids) -> tuple[Longs, Ints, Longs, Ints]:
    """Rows cell → covering boxes and cell → cutting boxes, each in box order."""
    cells = grids[-1][-1]
    cover_start, cut_start = np.zeros(cells + 1, np.int64), np.zeros(cells + 1, np.int64)
    nothing = np.empty(0, np.int32)
    _visit(grids, cover_start[1:], cut_start[1:], nothing, nothing)
    cover_start[:] = np.cumsum(cover_start)
    cut_start[:] = np.cumsum(cut_start)
    cover, cut = np.empty(cover_start[-1], np.int32), np.empty(cut_start[-1], np.int32)
    _visit(grids, cover_start[:-1].copy(), cut_start[:-1].copy(), cover, cut)
    return cover_start, cover, cut_start, cut


@compiled
def _visit(grids: Grids, cover_at: Longs, cut_at: Longs, cover: Ints, cut: Ints) -> None:
    """Count every box in the cells it meets; with room in ``cover`` and ``cut``, list it too."""
    lo, hi, bounds, sizes, edges, first_edge, splits, first_cell = grids
    width = lo.shape[1]
    low, high = np.zeros(width, np.int64), np.zeros(width, np.int64)
    for t in range(len(sizes)):
        size = sizes[t]
        for box in range(bounds[t], bounds[t + 1]):
            for axis in range(size):
                first, n = first_edge[t, axis], splits[t, axis]
                ends = edges[first : first + n + 1]
                low[axis] = np.searchsorted(ends, lo[box, axis], side="right") - 1
                high[axis] = np.searchsorted(ends, hi[box, axis])
            at, more = low.copy(), True
            while more:
                cell, inside = 0, True
                for axis in range(size):
                    first = first_edge[t, axis] + at[axis]
                    cell = cell * splits[t, axis] + at[axis]
                    inside &= lo[box, axis] <= edges[first] and edges[first + 1] <= hi[box, axis]
                cell += first_cell[t]
                if inside:
                    if len(cover):
                        cover[cover_at[cell]] = box
                    cover_at[cell] += 1
                else:
                    if len(cut):
                        cut[cut_at[cell]] = box
                    cut_at[cell] += 1
                more = _step(at, low, high, size)


@compiled
def _step(at: Longs, low: Longs, high: Longs, size: int) -> bool:
    """Go to the next cell between two corners, the last axis first; false after the last cell."""
    axis = size - 1
    while axis >= 0 and at[axis] + 1 == high[axis]:
        at[axis] = low[axis]
        axis -= 1
    if axis >= 0:
        at[axis] += 1
    return axis >= 0
