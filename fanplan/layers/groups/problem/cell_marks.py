"""Which brokers mark which cells of a grid (Zhang & Hu 2005, section 3.1.1), as signatures.

Marks are never listed. A broker with one box adds its words to the corners of the box; sums along
the axes then give every cell its signature, whatever the number of marks. Boxes of a broker with
several may overlap, and are painted cell by cell. Work goes part by part: a *part* is a topic, or
some rows of the first axis of a large one, so that memory is bounded and tasks are many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fanplan.boxes.volumes import union_holds
from fanplan.core.arrays import Floats, Ints, Longs, Words
from fanplan.core.kernels import compiled
from fanplan.layers.groups.problem.grid import (
    GroupGrid,
    cells_along,
    cells_held,
    edges_of,
    shape_of_topic,
)
from fanplan.layers.groups.problem.regions import broker_words

PART = 1 << 17
"""Cells of a part, if a row of the first axis has no more."""

ONE, SEVERAL, ALL = 1, 2, 3
"""What a broker's boxes are to a cell: one meets it, several do, or one holds all of it."""

NEARLY = 1.0 - 1e-9
"""Boxes whose shares of a cell sum up to less cannot hold all of it, whatever the rounding."""


WHOLE = -1.0
"""All of a cell on one axis. Not 1, which rounding may give for less."""


class GridPart(NamedTuple):
    """Rows of a topic's first axis from ``first_row`` on; ``shape`` is that of the part."""

    topic: int
    first_row: int
    shape: Longs


class CellMarks(NamedTuple):
    """Of each cell: the signature of the brokers that want any of it, their number, and the number
    of those that want all of it."""

    signature: Words
    wanted: Ints
    whole: Ints


class Ranges(NamedTuple):
    """Cells of a part that boxes meet, and that they hold: boxes × axes, ends not included."""

    met_lo: Longs
    met_hi: Longs
    held_lo: Longs
    held_hi: Longs


class Brush(NamedTuple):
    """What one broker's boxes are to the cells of a part, and the cells they meet."""

    state: NDArray[np.int8]
    share: Floats
    cells: Longs


class Canvas(NamedTuple):
    """A part of the grid, and the boxes that are painted on it."""

    grid: GroupGrid
    part: GridPart
    lo: Floats
    hi: Floats
    ranges: Ranges
    brush: Brush


@compiled
def part_rows(grid: GroupGrid, topic: int, room: int) -> int:
    """Rows of the first axis that a part has: as many as have room, but at least one."""
    shape = shape_of_topic(grid, topic)
    inner = (grid.cells[topic + 1] - grid.cells[topic]) // shape[0]
    result: int = max(1, min(shape[0], room // inner))
    return result


@compiled
def part_at(grid: GroupGrid, first: int, room: int) -> GridPart:
    """The part with a first cell."""
    topic = int(np.searchsorted(grid.cells, first, side="right")) - 1
    shape = shape_of_topic(grid, topic)
    inner = (grid.cells[topic + 1] - grid.cells[topic]) // shape[0]
    row = (first - grid.cells[topic]) // inner
    shape[0] = min(shape[0] - row, part_rows(grid, topic, room))
    return GridPart(topic, row, shape)


@compiled
def parts_met(
    grid: GroupGrid, topic: Longs, lo: Floats, hi: Floats, room: int
) -> tuple[Longs, Longs]:
    """Pairs of a box and the first cell of a part that it meets."""
    size = 0
    box, first = np.empty(0, np.int64), np.empty(0, np.int64)
    for turn in range(2):
        if turn:
            box, first, size = np.empty(size, np.int64), np.empty(size, np.int64), 0
        for b in range(len(topic)):
            rows, start = part_rows(grid, topic[b], room), grid.cells[topic[b]]
            shape = shape_of_topic(grid, topic[b])
            step = rows * ((grid.cells[topic[b] + 1] - start) // shape[0])
            low, high = 0, 1
            if lo.shape[1]:
                low, high = cells_along(edges_of(grid, topic[b], 0), lo[b, 0], hi[b, 0])
            for part in range(low // rows, (high + rows - 1) // rows):
                if turn:
                    box[size], first[size] = b, start + part * step
                size += 1
    return box, first


@compiled
def mark_part(grid: GroupGrid, part: GridPart, broker: Longs, lo: Floats, hi: Floats) -> CellMarks:
    """Marks of all cells of a part, by boxes that come broker by broker.

    O(cells × axes), and the cells that boxes of brokers with several of them meet.
    """
    ranges = ranges_of(grid, part, lo, hi)
    words = broker_words(broker)
    cells = part.shape.prod()
    signature = np.zeros((2, cells), np.uint64)
    wanted, whole = np.zeros(cells, np.int32), np.zeros(cells, np.int32)
    start = np.append(np.flatnonzero(np.diff(broker)) + 1, len(broker))
    a = 0
    for b in start:
        if b - a == 1:
            add_box(signature[0], part.shape, ranges.met_lo[a], ranges.met_hi[a], words[a, 0])
            add_box(signature[1], part.shape, ranges.met_lo[a], ranges.met_hi[a], words[a, 1])
            add_box(wanted, part.shape, ranges.met_lo[a], ranges.met_hi[a], np.int32(1))
            add_box(whole, part.shape, ranges.held_lo[a], ranges.held_hi[a], np.int32(1))
        a = b
    for counts in (signature[0], signature[1]):
        sum_along(counts, part.shape)
    for numbers in (wanted, whole):
        sum_along(numbers, part.shape)
    marks = CellMarks(signature, wanted, whole)
    brush = Brush(np.zeros(cells, np.int8), np.zeros(cells), np.empty(cells, np.int64))
    canvas = Canvas(grid, part, lo, hi, ranges, brush)
    a = 0
    for b in start:
        if b - a > 1:
            count = 0
            for box in range(a, b):
                count = paint(canvas, box, count)
            lift(canvas, a, b, words[a], count, marks)
        a = b
    return marks


@compiled
def ranges_of(grid: GroupGrid, part: GridPart, lo: Floats, hi: Floats) -> Ranges:
    size = (len(lo), len(part.shape))
    ranges = Ranges(
        np.zeros(size, np.int64),
        np.ones(size, np.int64),
        np.zeros(size, np.int64),
        np.ones(size, np.int64),
    )
    for axis in range(min(len(part.shape), lo.shape[1])):
        edges = edges_of(grid, part.topic, axis)
        skip = part.first_row if axis == 0 else 0
        for box in range(len(lo)):
            a, b = cells_along(edges, lo[box, axis], hi[box, axis])
            c, d = cells_held(edges, lo[box, axis], hi[box, axis])
            ranges.met_lo[box, axis] = max(a - skip, 0)
            ranges.met_hi[box, axis] = min(b - skip, part.shape[axis])
            ranges.held_lo[box, axis] = max(c - skip, 0)
            ranges.held_hi[box, axis] = min(d - skip, part.shape[axis])
    return ranges


@compiled
def add_box(sums: NDArray[Any], shape: Longs, lo: Ints, hi: Ints, amount: np.integer[Any]) -> None:
    """Add an amount to all cells of a box, once `sum_along` has run: only corners are touched."""
    for axis in range(len(shape)):
        if lo[axis] >= hi[axis]:
            return
    for corner in range(1 << len(shape)):
        cell, even, outside = 0, True, False
        for axis in range(len(shape)):
            high = (corner >> axis) & 1
            at = hi[axis] if high else lo[axis]
            outside |= at == shape[axis]
            even ^= high == 1
            cell = cell * shape[axis] + at
        if not outside:
            if even:
                sums[cell] += amount
            else:
                sums[cell] -= amount


@compiled
def sum_along(sums: NDArray[Any], shape: Longs) -> None:
    """Sums along every axis, in place."""
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        for row in range(0, len(sums), step * shape[axis]):
            for cell in range(row + step, row + step * shape[axis]):
                sums[cell] += sums[cell - step]
        step *= shape[axis]


@compiled
def paint(canvas: Canvas, box: int, count: int) -> int:
    """Paint all cells that a box meets; returns the number of cells painted so far."""
    ranges, shape = canvas.ranges, canvas.part.shape
    low, high, last = ranges.met_lo[box], ranges.met_hi[box], len(shape) - 1
    if (low >= high).any():
        return count
    at = low.copy()
    while True:
        row, share, inside = 0, 1.0, True
        for axis in range(last):
            row = (row + at[axis]) * shape[axis + 1]
            own = share_of(canvas, box, axis, at[axis])
            share *= abs(own)
            inside &= own == WHOLE
        count = paint_row(canvas, box, count, row, share, inside)
        axis = last - 1
        while axis >= 0 and at[axis] + 1 == high[axis]:
            at[axis] = low[axis]
            axis -= 1
        if axis < 0:
            return count
        at[axis] += 1


@compiled
def paint_row(canvas: Canvas, box: int, count: int, row: int, share: float, inside: bool) -> int:
    """Paint the cells along the last axis of a row, of which the box has a share."""
    brush, last = canvas.brush, len(canvas.part.shape) - 1
    for i in range(canvas.ranges.met_lo[box, last], canvas.ranges.met_hi[box, last]):
        cell = row + i
        if brush.state[cell] == 0:
            brush.cells[count] = cell
            count += 1
        own = share_of(canvas, box, last, i)
        if inside and own == WHOLE:
            brush.state[cell] = ALL
        elif brush.state[cell] != ALL:
            brush.state[cell] = ONE if brush.state[cell] == 0 else SEVERAL
            brush.share[cell] += share * abs(own)
    return count


@compiled
def share_of(canvas: Canvas, box: int, axis: int, at: int) -> float:
    """The part of a cell that a box holds on one axis; WHOLE, and nothing else, is all of it."""
    if canvas.ranges.held_lo[box, axis] <= at < canvas.ranges.held_hi[box, axis]:
        return WHOLE
    cell = at + (canvas.part.first_row if axis == 0 else 0)
    edges = edges_of(canvas.grid, canvas.part.topic, axis)
    low, high = max(canvas.lo[box, axis], edges[cell]), min(canvas.hi[box, axis], edges[cell + 1])
    result: float = (high - low) / (edges[cell + 1] - edges[cell])
    return result


@compiled
def lift(canvas: Canvas, first: int, end: int, word: Words, count: int, marks: CellMarks) -> None:
    """Add the cells that boxes of one broker painted to the marks, and clean the brush."""
    brush, axes = canvas.brush, len(canvas.part.shape)
    lo, hi = canvas.lo[first:end, :axes], canvas.hi[first:end, :axes]
    low, high = np.empty(axes), np.empty(axes)
    for cell in brush.cells[:count]:
        marks.signature[0, cell] += word[0]
        marks.signature[1, cell] += word[1]
        marks.wanted[cell] += 1
        whole = brush.state[cell] == ALL
        if brush.state[cell] == SEVERAL and brush.share[cell] >= NEARLY:
            corners(canvas.grid, canvas.part, cell, low, high)
            whole = union_holds(low, high, lo, hi)
        marks.whole[cell] += whole
        brush.state[cell], brush.share[cell] = 0, 0.0


@compiled
def corners(grid: GroupGrid, part: GridPart, cell: int, low: Floats, high: Floats) -> None:
    """The ends of a cell on each axis."""
    for axis in range(len(part.shape) - 1, -1, -1):
        at = cell % part.shape[axis] + (part.first_row if axis == 0 else 0)
        cell //= part.shape[axis]
        edges = edges_of(grid, part.topic, axis)
        low[axis], high[axis] = edges[at], edges[at + 1]
