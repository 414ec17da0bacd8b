"""Points through a sieve: in batches of one topic, or a few by themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.boxes.rows import room_for
from fanplan.boxes.sieve import BLOCK, Sieve
from fanplan.core.arrays import Bools, Floats, Ints, Longs, Words
from fanplan.core.bits import LINE, and_lines, lowest_bit, prefetch, set_bit
from fanplan.core.kernels import compiled

BATCH = 8 * BLOCK
"""Points in a batch, at most. The lines of a block are read from memory once for all of them."""

FEW = 16
"""Points up to which it takes longer to make sets of them than to compare them with all blocks."""

AHEAD = 8
"""How many blocks or boxes ahead a point asks for what it needs of them."""


class Batch(NamedTuple):
    """Points of one topic: ``number`` of them, each with ``each`` lines in a block.

    ``row`` is the place of a point among those that were given, ``point`` its place in all.
    """

    number: int
    each: int
    row: Longs
    point: Longs
    line: Ints
    sets: Words
    passes: Bools


@compiled
def make_batch(sieve: Sieve, size: int) -> Batch:
    """Room for a batch of at most so many points."""
    width, lines = sieve.buckets.shape[1], sieve.lines.max() if len(sieve.lines) else 1
    sets = -(size // -BLOCK) * (2 * lines - 1) if size > FEW else 0
    return Batch(
        0, 0,
        np.empty(size, np.int64), np.empty(size, np.int64),
        np.empty(size * (width + 1), np.int32),
        np.empty((sets, LINE), np.uint64), np.empty(2 * lines - 1, np.bool_),
    )  # fmt: skip


@compiled
def fill_batch(sieve: Sieve, t: int, x: Floats, points: Longs, batch: Batch) -> Batch:
    """Put points of topic t into a batch, without those that are outside of all boxes."""
    each = 1 + int(np.count_nonzero(sieve.buckets[t] > 1))
    count = 0
    for row in range(len(points)):
        if set_lines(sieve, t, x[points[row]], batch.line[count * each : (count + 1) * each]):
            batch.row[count], batch.point[count] = row, points[row]
            count += 1
    if count > FEW:
        for start in range(0, count, BLOCK):
            _fill_sets(sieve, t, batch, start, min(count, start + BLOCK), each)
    return Batch(count, each, batch.row, batch.point, batch.line, batch.sets, batch.passes)


@compiled
def set_lines(sieve: Sieve, t: int, point: Floats, line: Ints) -> bool:
    """Write the lines that a point must pass in any block; false if it is outside of all boxes.

    The search keeps to the edges' buckets; whether the point is really between them is asked last,
    which NaN fails.
    """
    line[0], used, inside = 0, 1, True
    for axis in range(sieve.size[t]):
        first, n, at = sieve.first_edge[t, axis], sieve.buckets[t, axis], point[axis]
        low = first
        while n > 1:
            half = n >> 1
            low += half if sieve.edges[low + half] <= at else 0
            n -= half
        inside &= (sieve.edges[low] <= at) & (at < sieve.edges[low + 1])
        if sieve.buckets[t, axis] > 1:
            line[used] = sieve.offset[t, axis] + low - first
            used += 1
    return inside


@compiled
def _fill_sets(sieve: Sieve, t: int, batch: Batch, start: int, end: int, each: int) -> None:
    """Sets of points by bucket: first those in it, and then those beyond it, too."""
    number = 2 * sieve.lines[t] - 1
    sets = batch.sets[start // BLOCK * number : (start // BLOCK + 1) * number]
    sets[:] = 0
    for p in range(start, end):
        set_bit(sets[0], p - start)
        for i in range(p * each + 1, (p + 1) * each):
            set_bit(sets[2 * batch.line[i] - 1], p - start)
            set_bit(sets[2 * batch.line[i]], p - start)
    for axis in range(sieve.size[t]):
        n, first = sieve.buckets[t, axis], sieve.offset[t, axis]
        for b in range(1, n):
            above, below = 2 * (first + n - 1 - b) - 1, 2 * (first + b)
            for word in range(LINE):
                sets[above, word] |= sets[above + 2, word]
                sets[below, word] |= sets[below - 2, word]


@compiled
def sift(
    sieve: Sieve, t: int, x: Floats, batch: Batch, places: Ints, boxes: Ints
) -> tuple[int, Ints, Ints]:
    """Pairs of a point's place in the batch and a box that holds it.

    The boxes of a place ascend. Returns the number of pairs and the arrays that they are in, which
    may have grown.
    """
    if batch.number <= FEW:
        return _sift_few(sieve, t, x, batch, places, boxes)
    used, number, each = 0, 2 * sieve.lines[t] - 1, batch.each
    some, left = np.empty(LINE, np.uint64), np.empty(LINE, np.uint64)
    for block in range(sieve.first_block[t], sieve.first_block[t + 1]):
        first, line, count = (
            sieve.first_box[block],
            sieve.first_line[block],
            sieve.side_count[block],
        )
        for start in range(0, batch.number, BLOCK):
            sets = start // BLOCK * number
            if not and_lines(batch.sets, sets, sieve.sides[block], 0, count, some):
                continue
            more = min(BLOCK, batch.number - start) * BLOCK
            places, boxes = room_for(places, used, more), room_for(boxes, used, more)
            for word in range(LINE):
                while some[word] != 0:
                    p = start + 64 * word + lowest_bit(some[word])
                    some[word] &= some[word] - np.uint64(1)
                    if and_lines(sieve.bits, line, batch.line, p * each, each, left):
                        end = _list_left(left, first, boxes, used)
                        row, size = batch.point[p], sieve.size[t]
                        for k in range(used, end):
                            boxes[used], places[used] = boxes[k], p
                            used += holds(sieve.lo, sieve.hi, boxes[k], x, row, size)
    return used, places, boxes


@compiled
def _sift_few(
    sieve: Sieve, t: int, x: Floats, batch: Batch, places: Ints, boxes: Ints
) -> tuple[int, Ints, Ints]:
    """The same for points one by one.

    What they need of blocks and boxes comes from far, so it is asked for some of them ahead.
    """
    used, each, left = 0, batch.each, np.empty(LINE, np.uint64)
    met = np.empty(sieve.first_block[t + 1] - sieve.first_block[t], np.int64)
    for p in range(batch.number):
        line = batch.line[p * each : (p + 1) * each]
        _fill_passes(sieve, t, line, batch.passes)
        count, first = _met_blocks(sieve, t, batch.passes, met), used
        for i in range(-AHEAD, count):
            if i + AHEAD < count:
                start = sieve.first_line[met[i + AHEAD]]
                for k in range(each):
                    prefetch(sieve.bits, start + line[k], 0)
            if i >= 0 and and_lines(sieve.bits, sieve.first_line[met[i]], line, 0, each, left):
                if used + BLOCK > len(boxes):
                    boxes = room_for(boxes, used, BLOCK)
                used = _list_left(left, sieve.first_box[met[i]], boxes, used)
        row, size = batch.point[p], sieve.size[t]
        used = _keep_holding(sieve.lo, sieve.hi, size, x, row, boxes, first, used)
        places = room_for(places, first, used - first)
        places[first:used] = p
    return used, places, boxes


@compiled
def _met_blocks(sieve: Sieve, t: int, passes: Bools, met: Longs) -> int:
    """List the blocks that a point must look at; returns their number."""
    count = 0
    for block in range(sieve.first_block[t], sieve.first_block[t + 1]):
        side, sides = 1, sieve.side_count[block]
        while side < sides and passes[sieve.sides[block, side]]:
            side += 1
        met[count] = block
        count += side == sides
    return count


@compiled
def _list_left(left: Words, first: int, boxes: Ints, used: int) -> int:
    """Add the boxes of a block that are left."""
    for word in range(LINE):
        some = left[word]
        while some != 0:
            boxes[used] = first + 64 * word + lowest_bit(some)
            some &= some - np.uint64(1)
            used += 1
    return used


@compiled
def _keep_holding(
    lo: Floats, hi: Floats, size: int, x: Floats, row: int, boxes: Ints, first: int, end: int
) -> int:
    """Keep those of the boxes listed from ``first`` on that do hold the point."""
    used = first
    for k in range(first - AHEAD, end):
        if k + AHEAD < end:
            for axis in range(0, size, LINE):
                prefetch(lo, boxes[k + AHEAD], axis)
                prefetch(hi, boxes[k + AHEAD], axis)
        if k >= first:
            boxes[used] = boxes[k]
            used += holds(lo, hi, boxes[k], x, row, size)
    return used


@compiled
def _fill_passes(sieve: Sieve, t: int, line: Ints, passes: Bools) -> None:
    """In which sets of points this one would be."""
    used = 1
    for axis in range(sieve.size[t]):
        n, first = sieve.buckets[t, axis], sieve.offset[t, axis]
        if n > 1:
            for b in range(first, first + n):
                passes[2 * b - 1], passes[2 * b] = b <= line[used], b >= line[used]
            used += 1


@compiled
def holds(lo: Floats, hi: Floats, box: int, x: Floats, row: int, size: int) -> bool:
    """Whether a box holds a point; without branches, so that it becomes vector instructions."""
    inside = True
    for axis in range(size):
        inside &= (lo[box, axis] <= x[row, axis]) & (x[row, axis] < hi[box, axis])
    return inside
