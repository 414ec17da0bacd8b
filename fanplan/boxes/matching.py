"""Which boxes hold a point: a compiled index over the boxes of all topics, and what to ask of it.

Every topic has its own grid of *index cells*. Its edges are quantiles of the end points of the
topic's own boxes, so crowded parts of a space get narrow cells, and an axis with few distinct end
points gets cells that no box cuts. An index cell lists the boxes that *cover* all of it, which need
no test, and those that only *cut* it, which are tested point by point. A topic without axes is one
index cell that all its boxes cover.

Points are visited index cell by index cell. The boxes that cut the cell are first copied next to
each other, so that one point is tested against all of them by vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled

Grids = tuple[Floats, Floats, Longs, Ints, Floats, Longs, Ints, Longs]

# Bounds on the index, per box. More cells mean fewer tests per point and more memory.
CELLS_PER_BOX = 4
ENTRIES_PER_BOX = 64
MOST_ENTRIES = 2**27
SAMPLE = 256


class BoxIndex(NamedTuple):
    """Boxes sorted by topic and owner, and the index cells of each topic.

    Owners and subscriptions are held as positions in their sorted lists of distinct ids. Topics
    with boxes have rows, found by ``row_of_topic`` (−1 for the others); ``first_edge`` and
    ``splits``, the number of index cells along an axis, have a column per axis. ``cover_*`` and
    ``cut_*`` are compressed rows from cell to boxes, the longest with ``longest`` boxes.
    """

    row_of_topic: Ints
    dimensions: Ints
    lo: Floats
    hi: Floats
    owner: Ints
    owners: Longs
    subscription: Ints
    subscriptions: Longs
    edges: Floats
    first_edge: Longs
    splits: Ints
    first_cell: Longs
    cover_start: Longs
    cover: Ints
    cut_start: Longs
    cut: Ints
    longest: int


def index_boxes(
    topic_id: Longs, dimensions: Ints, lo: Floats, hi: Floats, owner: Longs, subscription: Longs
) -> BoxIndex:
    """Index boxes given as rows of ``lo`` and ``hi``, of which the first ``dimensions`` axes count.

    Empty boxes hold no point and are left out. Memory is at most ENTRIES_PER_BOX entries per box.
    """
    axes = np.arange(lo.shape[1])[None, :] < dimensions[:, None]
    kept = np.flatnonzero(((lo < hi) | ~axes).all(axis=1))
    kept = kept[np.lexsort((subscription[kept], owner[kept], topic_id[kept]))]
    lo, hi = lo[kept], hi[kept]
    topics, first_box = np.unique(topic_id[kept], return_index=True)
    owners, owner_rank = np.unique(owner[kept], return_inverse=True)
    subscriptions, subscription_rank = np.unique(subscription[kept], return_inverse=True)
    sizes = dimensions[kept][first_box].astype(np.int32)
    bounds = np.append(first_box, len(kept))
    per_box = min(ENTRIES_PER_BOX, MOST_ENTRIES // max(len(kept), 1) + 1)
    edges, first_edge, splits = _lay_grids(lo, hi, bounds, sizes, per_box)
    first_cell = np.append(0, splits.prod(axis=1, dtype=np.int64).cumsum())
    grids = (lo, hi, bounds, sizes, edges, first_edge, splits, first_cell)
    cover_start, cover, cut_start, cut = _list_boxes(grids)
    return BoxIndex(
        _rows_of_topics(topics), sizes, lo, hi,
        owner_rank.astype(np.int32), owners.astype(np.int64),
        subscription_rank.astype(np.int32), subscriptions.astype(np.int64),
        edges, first_edge, splits, first_cell,
        cover_start, cover, cut_start, cut, _longest(cover_start, cut_start),
    )  # fmt: skip


def _rows_of_topics(topics: Longs) -> Ints:
    """Table from topic number to its place among the topics with boxes."""
    rows = np.full(topics[-1] + 1 if len(topics) else 0, -1, np.int32)
    rows[topics] = np.arange(len(topics))
    return rows


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


@compiled
def locate_points(index: BoxIndex, topic_id: Longs, x: Floats) -> Longs:
    """Index cell of each point, −1 where no box can hold it.

    The search keeps to the edges' cells; whether the point is really between them is asked last,
    which NaN fails.
    """
    cells = np.full(len(topic_id), -1, np.int64)
    for i in range(len(topic_id)):
        known = 0 <= topic_id[i] < len(index.row_of_topic)
        t = index.row_of_topic[topic_id[i]] if known else -1
        if t < 0:
            continue
        cell, between = 0, True
        for axis in range(index.dimensions[t]):
            first, splits, at = index.first_edge[t, axis], index.splits[t, axis], x[i, axis]
            low, width = first, splits
            while width > 1:
                half = width >> 1
                low += half if index.edges[low + half] <= at else 0
                width -= half
            cell = cell * splits + low - first
            between &= (index.edges[low] <= at) & (at < index.edges[low + 1])
        if between:
            cells[i] = index.first_cell[t] + cell
    return cells


@compiled
def count_candidates(index: BoxIndex, topic_id: Longs, x: Floats) -> Longs:
    """Number of boxes listed in the index cell of each point: at least as many as hold it."""
    cells = locate_points(index, topic_id, x)
    listed = np.zeros(len(cells), np.int64)
    for i in range(len(cells)):
        if cells[i] >= 0:
            listed[i] += index.cut_start[cells[i] + 1] - index.cut_start[cells[i]]
            listed[i] += index.cover_start[cells[i] + 1] - index.cover_start[cells[i]]
    return listed


@compiled
def sorted_order(group: Longs, groups: int, order: Longs) -> Longs:
    """The given order of the points, sorted stably by group: −1 first, up to ``groups`` − 1.

    A counting sort. With far more groups than points, neighbouring groups share a bin and are not
    told apart; that is good enough to visit points cell by cell.
    """
    shift = 0
    while (groups >> shift) > 4 * len(group) + 1024:
        shift += 1
    start = np.zeros((groups >> shift) + 3, np.int64)
    for g in group:
        start[((g + 1) >> shift) + 1] += 1
    start = np.cumsum(start)
    result = np.empty(len(group), np.int64)
    for i in order:
        at = (group[i] + 1) >> shift
        result[start[at]] = i
        start[at] += 1
    return result


@compiled
def _gather(index: BoxIndex, cell: int, lo: Floats, hi: Floats) -> tuple[int, int]:
    """Copy the boxes that cut a cell next to each other; returns their number and their axes."""
    first, size = index.cut_start[cell], 0
    if lo.shape[0]:
        size = index.dimensions[np.searchsorted(index.first_cell, cell, side="right") - 1]
    count = index.cut_start[cell + 1] - first
    for k in range(count):
        box = index.cut[first + k]
        for axis in range(size):
            lo[axis, k] = index.lo[box, axis]
            hi[axis, k] = index.hi[box, axis]
    return count, size


@compiled
def test(
    point: Floats, size: int, lo: Floats, hi: Floats, count: int, weight: float, got: Floats
) -> None:
    """Set ``got[k]`` to the weight if box k holds the point, else to 0.

    Axis by axis and without branches: this is the loop that must become vector instructions.
    """
    for k in range(count):
        got[k] = weight
    for axis in range(size):
        at, low, high = point[axis], lo[axis], hi[axis]
        for k in range(count):
            got[k] = got[k] if (low[k] <= at) & (at < high[k]) else 0.0


@compiled
def count_hits(index: BoxIndex, topic_id: Longs, x: Floats, weight: Floats, hits: Floats) -> None:
    """Add to ``hits`` the weight of the points that each box holds.

    A covering box costs nothing per point: it gets the weight of its cell at once.
    """
    cells = locate_points(index, topic_id, x)
    order = sorted_order(cells, index.first_cell[-1], np.arange(len(cells)))
    lo, hi = np.empty((x.shape[1], index.longest)), np.empty((x.shape[1], index.longest))
    got, found = np.empty(index.longest), np.empty(index.longest)
    i = np.count_nonzero(cells < 0)
    while i < len(order):
        cell, total = cells[order[i]], 0.0
        count, size = _gather(index, cell, lo, hi)
        found[:count] = 0.0
        while i < len(order) and cells[order[i]] == cell:
            p = order[i]
            test(x[p], size, lo, hi, count, weight[p], got)
            for k in range(count):
                found[k] += got[k]
            total += weight[p]
            i += 1
        for k in range(count):
            hits[index.cut[index.cut_start[cell] + k]] += found[k]
        for k in range(index.cover_start[cell], index.cover_start[cell + 1]):
            hits[index.cover[k]] += total


@compiled
def _members(
    index: BoxIndex, cell: int, count: int, got: Floats, tested: Ints, members: Ints
) -> int:
    """Write the distinct owners of the boxes that hold a point, in order; returns their number.

    Both lists of a cell are in box order, hence in owner order: this is a merge. ``tested`` is
    room for the owners whose test succeeded, collected without branches.
    """
    first, passed = index.cut_start[cell], 0
    for k in range(count):
        tested[passed] = index.owner[index.cut[first + k]]
        passed += got[k] > 0.0
    a, b, end, n = 0, index.cover_start[cell], index.cover_start[cell + 1], 0
    last = -1
    while a < passed or b < end:
        covers = b < end and (a == passed or index.owner[index.cover[b]] < tested[a])
        owner = index.owner[index.cover[b]] if covers else tested[a]
        b += covers
        a += not covers
        members[n] = owner
        n += owner != last
        last = owner
    return n


@compiled
def _room(values: NDArray[Any], used: int, more: int) -> NDArray[Any]:
    """The same values in an array with room for ``more``; doubles, so that growth is cheap."""
    if used + more <= len(values):
        return values
    grown = np.empty(2 * (used + more), values.dtype)
    grown[:used] = values[:used]
    return grown


@compiled
def find_audiences(index: BoxIndex, topic_id: Longs, x: Floats) -> tuple[Longs, Longs, Ints]:
    """The sorted distinct owners that want each point, as compressed rows.

    Rows come in the order in which the points were visited: returns (order, offsets, owners).
    """
    cells = locate_points(index, topic_id, x)
    order = sorted_order(cells, index.first_cell[-1], np.arange(len(cells)))
    lo, hi = np.empty((x.shape[1], index.longest)), np.empty((x.shape[1], index.longest))
    got, tested = np.empty(index.longest), np.empty(index.longest + 1, np.int32)
    members = np.empty(2 * index.longest + 1, np.int32)
    offsets, values = np.zeros(len(order) + 1, np.int64), np.empty(8 * len(order) + 1, np.int32)
    last, count, size = -1, 0, 0
    for i in range(len(order)):
        p, n = order[i], 0
        if cells[p] >= 0:
            if cells[p] != last:
                last = cells[p]
                count, size = _gather(index, last, lo, hi)
            test(x[p], size, lo, hi, count, 1.0, got)
            n = _members(index, last, count, got, tested, members)
        values = _room(values, offsets[i], n)
        for k in range(n):
            values[offsets[i] + k] = index.owners[members[k]]
        offsets[i + 1] = offsets[i] + n
    return order, offsets, values[: offsets[-1]]


@compiled
def wants(
    index: BoxIndex, topic_id: Longs, x: Floats, weight: Floats, key: Longs, keys: int
) -> tuple[Longs, Longs, Floats]:
    """Weight of the points of each key that each owner wants: returns (key, owner, weight).

    Keys run from 0 to ``keys`` − 1. Points are visited key by key, so that one array over the
    owners holds the sums; an owner whose boxes overlap counts a point once.
    """
    cells = locate_points(index, topic_id, x)
    order = sorted_order(cells, index.first_cell[-1], np.arange(len(cells)))
    order = sorted_order(key, keys, order)
    lo, hi = np.empty((x.shape[1], index.longest)), np.empty((x.shape[1], index.longest))
    got, tested = np.empty(index.longest), np.empty(index.longest + 1, np.int32)
    members = np.empty(2 * index.longest + 1, np.int32)
    start, used, last, count, size = 0, 0, -1, 0, 0
    place = np.full(len(index.owners), -1, np.int64)
    out_key, out_owner = np.empty(1024, np.int64), np.empty(1024, np.int64)
    out_weight = np.empty(1024)
    for i in range(len(order)):
        p = order[i]
        if i > 0 and key[order[i - 1]] != key[p]:
            start = used
        if cells[p] < 0:
            continue
        if cells[p] != last:
            last = cells[p]
            count, size = _gather(index, last, lo, hi)
        test(x[p], size, lo, hi, count, 1.0, got)
        n = _members(index, last, count, got, tested, members)
        out_key, out_owner = _room(out_key, used, n), _room(out_owner, used, n)
        out_weight = _room(out_weight, used, n)
        for k in range(n):
            owner = members[k]
            # Places before ``start`` are left over from earlier keys.
            if place[owner] < start:
                place[owner] = used
                out_key[used], out_owner[used] = key[p], index.owners[owner]
                out_weight[used] = 0.0
                used += 1
            out_weight[place[owner]] += weight[p]
    return out_key[:used], out_owner[:used], out_weight[:used]


@compiled
def sum_lists(
    key: Longs, keys: int, offsets: Longs, owner: Longs, weight: Floats
) -> tuple[Longs, Longs, Floats]:
    """Sum the lists of (owner, weight) of all rows with the same key: (key, owner, weight)."""
    order = sorted_order(key, keys, np.arange(len(key)))
    place = np.full(owner.max() + 1 if len(owner) else 0, -1, np.int64)
    out_key, out_owner = np.empty(len(owner), np.int64), np.empty(len(owner), np.int64)
    out_weight = np.zeros(len(owner))
    start, used = 0, 0
    for i in range(len(order)):
        row = order[i]
        if i > 0 and key[order[i - 1]] != key[row]:
            start = used
        for k in range(offsets[row], offsets[row + 1]):
            if place[owner[k]] < start:
                place[owner[k]] = used
                out_key[used], out_owner[used] = key[row], owner[k]
                used += 1
            out_weight[place[owner[k]]] += weight[k]
    return out_key[:used], out_owner[:used], out_weight[:used]
