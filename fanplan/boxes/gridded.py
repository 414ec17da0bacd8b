"""Points in topics that have a grid: how they find its index cells, and what boxes these list."""

from __future__ import annotations

import numpy as np

from fanplan.boxes.grid import Grid
from fanplan.boxes.index import BoxIndex
from fanplan.boxes.rows import room_for, sorted_order
from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled


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
        if not 0 <= t < index.first_sifted:
            continue
        cell, between = 0, True
        for axis in range(index.dimensions[t]):
            first, splits, at = (
                index.grid.first_edge[t, axis],
                index.grid.splits[t, axis],
                x[i, axis],
            )
            low, width = first, splits
            while width > 1:
                half = width >> 1
                low += half if index.grid.edges[low + half] <= at else 0
                width -= half
            cell = cell * splits + low - first
            between &= (index.grid.edges[low] <= at) & (at < index.grid.edges[low + 1])
        if between:
            cells[i] = index.grid.first_cell[t] + cell
    return cells


@compiled
def count_listed(index: BoxIndex, topic_id: Longs, x: Floats) -> Longs:
    """Number of boxes listed in the index cell of each point: at least as many as hold it."""
    cells = locate_points(index, topic_id, x)
    listed = np.zeros(len(cells), np.int64)
    for i in range(len(cells)):
        if cells[i] >= 0:
            listed[i] += index.grid.cut_start[cells[i] + 1] - index.grid.cut_start[cells[i]]
            listed[i] += index.grid.cover_start[cells[i] + 1] - index.grid.cover_start[cells[i]]
    return listed


@compiled
def _gather(index: BoxIndex, cell: int, lo: Floats, hi: Floats) -> tuple[int, int]:
    """Copy the boxes that cut a cell next to each other; returns their number and their axes."""
    first, size = index.grid.cut_start[cell], 0
    if lo.shape[0]:
        size = index.dimensions[np.searchsorted(index.grid.first_cell, cell, side="right") - 1]
    count = index.grid.cut_start[cell + 1] - first
    for k in range(count):
        box = index.grid.cut[first + k]
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
def count_grid_hits(
    index: BoxIndex, topic_id: Longs, x: Floats, weight: Floats, hits: Floats
) -> None:
    """Add to ``hits`` the weight of the points that each box holds.

    A covering box costs nothing per point: it gets the weight of its cell at once.
    """
    cells = locate_points(index, topic_id, x)
    order = sorted_order(cells, index.grid.first_cell[-1], np.arange(len(cells)))
    lo, hi = np.empty((x.shape[1], index.grid.longest)), np.empty((x.shape[1], index.grid.longest))
    got, found = np.empty(index.grid.longest), np.empty(index.grid.longest)
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
            hits[index.grid.cut[index.grid.cut_start[cell] + k]] += found[k]
        for k in range(index.grid.cover_start[cell], index.grid.cover_start[cell + 1]):
            hits[index.grid.cover[k]] += total


@compiled
def _members(
    index: BoxIndex, cell: int, count: int, got: Floats, tested: Ints, members: Ints
) -> int:
    """Write the distinct owners of the boxes that hold a point, in order; returns their number.

    Both lists of a cell are in box order, hence in owner order: this is a merge. ``tested`` is
    room for the owners whose test succeeded, collected without branches.
    """
    first, passed = index.grid.cut_start[cell], 0
    for k in range(count):
        tested[passed] = index.owner[index.grid.cut[first + k]]
        passed += got[k] > 0.0
    a, b, end, n = 0, index.grid.cover_start[cell], index.grid.cover_start[cell + 1], 0
    last = -1
    while a < passed or b < end:
        covers = b < end and (a == passed or index.owner[index.grid.cover[b]] < tested[a])
        owner = index.owner[index.grid.cover[b]] if covers else tested[a]
        b += covers
        a += not covers
        members[n] = owner
        n += owner != last
        last = owner
    return n


@compiled
def find_grid_boxes(index: BoxIndex, topic_id: Longs, x: Floats) -> tuple[Longs, Longs, Ints]:
    """The boxes that hold each point, ascending, as compressed rows: (order, offsets, boxes)."""
    cells = locate_points(index, topic_id, x)
    order = sorted_order(cells, index.grid.first_cell[-1], np.arange(len(cells)))
    longest = index.grid.longest
    lo, hi = np.empty((x.shape[1], longest)), np.empty((x.shape[1], longest))
    got, last, count, size = np.empty(longest), -1, 0, 0
    offsets, boxes = np.zeros(len(order) + 1, np.int64), np.empty(8 * len(order) + 1, np.int32)
    for i in range(len(order)):
        p, n = order[i], offsets[i]
        if cells[p] >= 0:
            if cells[p] != last:
                last = cells[p]
                count, size = _gather(index, last, lo, hi)
            test(x[p], size, lo, hi, count, 1.0, got)
            boxes = room_for(boxes, n, 2 * longest)
            n = _merged(index.grid, last, count, got, boxes, n)
        offsets[i + 1] = n
    return order, offsets, boxes[: offsets[-1]]


@compiled
def _merged(grid: Grid, cell: int, count: int, got: Floats, boxes: Ints, used: int) -> int:
    """Write the boxes that cover a cell and those that passed the test, in order."""
    covering, end = grid.cover_start[cell], grid.cover_start[cell + 1]
    for k in range(count):
        box = grid.cut[grid.cut_start[cell] + k]
        while covering < end and grid.cover[covering] < box:
            boxes[used] = grid.cover[covering]
            covering += 1
            used += 1
        boxes[used] = box
        used += got[k] > 0.0
    while covering < end:
        boxes[used] = grid.cover[covering]
        covering += 1
        used += 1
    return used


@compiled
def find_grid_audiences(index: BoxIndex, topic_id: Longs, x: Floats) -> tuple[Longs, Longs, Ints]:
    """The sorted distinct owners that want each point, as compressed rows.

    Rows come in the order in which the points were visited: returns (order, offsets, owners).
    """
    cells = locate_points(index, topic_id, x)
    order = sorted_order(cells, index.grid.first_cell[-1], np.arange(len(cells)))
    lo, hi = np.empty((x.shape[1], index.grid.longest)), np.empty((x.shape[1], index.grid.longest))
    got, tested = np.empty(index.grid.longest), np.empty(index.grid.longest + 1, np.int32)
    members = np.empty(2 * index.grid.longest + 1, np.int32)
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
        values = room_for(values, offsets[i], n)
        for k in range(n):
            values[offsets[i] + k] = index.owners[members[k]]
        offsets[i + 1] = offsets[i] + n
    return order, offsets, values[: offsets[-1]]


@compiled
def grid_wants(
    index: BoxIndex, topic_id: Longs, x: Floats, weight: Floats, key: Longs, keys: int
) -> tuple[Longs, Longs, Floats]:
    """Weight of the points of each key that each owner grid_wants: returns (key, owner, weight).

    Keys run from 0 to ``keys`` − 1. Points are visited key by key, so that one array over the
    owners holds the sums; an owner whose boxes overlap counts a point once.
    """
    cells = locate_points(index, topic_id, x)
    order = sorted_order(cells, index.grid.first_cell[-1], np.arange(len(cells)))
    order = sorted_order(key, keys, order)
    lo, hi = np.empty((x.shape[1], index.grid.longest)), np.empty((x.shape[1], index.grid.longest))
    got, tested = np.empty(index.grid.longest), np.empty(index.grid.longest + 1, np.int32)
    members = np.empty(2 * index.grid.longest + 1, np.int32)
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
        out_key, out_owner = room_for(out_key, used, n), room_for(out_owner, used, n)
        out_weight = room_for(out_weight, used, n)
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
