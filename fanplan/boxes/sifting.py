"""Points through a sieve: in batches of one topic, or a few by themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.boxes.rows import room_for
from fanplan.boxes.sieve import BLOCK, FIELDS, ONES, TOPS, Sieve, field, words_for
from fanplan.core.arrays import Bools, Floats, Ints, Longs, Words
from fanplan.core.bits import LINE, and_lines, lowest_bit, prefetch, set_bit
from fanplan.core.kernels import compiled

BATCH = 8 * BLOCK
"""Points in a batch, at most. The lines of a block are read from memory once for all of them."""

FEW = 16
"""Points up to which it takes longer to make sets of them than to compare them with all blocks."""

ROWS = 64
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
    steps: Words
    sets: Words
    passes: Bools


class Left(NamedTuple):
    """What is left of blocks for points: which words of a row have bits, its point and first box.

    Lines are taken together for ROWS rows before their boxes are listed: a processor that guessed
    wrong where a list ends need not wait for lines.
    """

    bits: Words
    words: Words
    place: Ints
    first: Longs


@compiled
def make_batch(sieve: Sieve, size: int) -> Batch:
    """Room for a batch of at most so many points."""
    width, lines = sieve.buckets.shape[1], sieve.lines.max() if len(sieve.lines) else 1
    sets = -(size // -BLOCK) * (2 * lines - 1) if size > FEW else 0
    return Batch(
        0, 0,
        np.empty(size, np.int64), np.empty(size, np.int64),
        np.empty(size * (width + 1), np.int32), np.empty((size, words_for(width)), np.uint64),
        np.empty((sets, LINE), np.uint64), np.empty(2 * lines - 1, np.bool_),
    )  # fmt: skip


@compiled
def fill_batch(sieve: Sieve, t: int, x: Floats, points: Longs, batch: Batch) -> Batch:
    """Put points of topic t into a batch, without those that are outside of all boxes."""
    each = 1 + int(np.count_nonzero(sieve.buckets[t] > 1))
    count = 0
    for row in range(len(points)):
        line = batch.line[count * each : (count + 1) * each]
        if set_lines(sieve, t, x[points[row]], line, batch.steps[count]):
            batch.row[count], batch.point[count] = row, points[row]
            count += 1
    if count > FEW:
        for start in range(0, count, BLOCK):
            _fill_sets(sieve, t, batch, start, min(count, start + BLOCK), each)
    return Batch(
        count, each,
        batch.row, batch.point, batch.line, batch.steps, batch.sets, batch.passes,
    )  # fmt: skip


@compiled
def set_lines(sieve: Sieve, t: int, point: Floats, line: Ints, steps: Words) -> bool:
    """Write the lines that a point must pass in any block; false if it is outside of all boxes.

    Its steps are written, too. The search keeps to those there are; whether the point is really
    between the edges is asked last, which NaN fails.
    """
    line[0], used, inside, steps[:] = 0, 1, True, 0
    for axis in range(sieve.size[t]):
        first, n, at = sieve.first_edge[t, axis], sieve.steps[t, axis], point[axis]
        low = first
        while n > 1:
            half = n >> 1
            low += half if sieve.edges[low + half] <= at else 0
            n -= half
        inside &= (sieve.edges[low] <= at) & (at < sieve.edges[low + 1])
        steps[axis // FIELDS] |= field(low - first + 1, axis)
        if sieve.buckets[t, axis] > 1:
            bucket = (low - first) * sieve.buckets[t, axis] // sieve.steps[t, axis]
            line[used] = sieve.offset[t, axis] + bucket
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
    left = Left(
        np.empty((ROWS, LINE), np.uint64), np.empty(ROWS, np.uint64),
        np.empty(ROWS, np.int32), np.empty(ROWS, np.int64),
    )  # fmt: skip
    if batch.number <= FEW:
        return _sift_few(sieve, t, x, batch, left, places, boxes)
    used, number, size = 0, 2 * sieve.lines[t] - 1, sieve.size[t]
    some = np.empty(LINE, np.uint64)
    for block in range(sieve.first_block[t], sieve.first_block[t + 1]):
        end, count = used, sieve.side_count[block]
        if batch.number >= BLOCK:
            _prefetch_lines(sieve, t, block)
        for start in range(0, batch.number, BLOCK):
            sets = start // BLOCK * number
            if and_lines(batch.sets, sets, 1, sieve.sides[block], 0, count, some):
                more = min(BLOCK, batch.number - start) * BLOCK
                places, boxes = room_for(places, end, more), room_for(boxes, end, more)
                end = _list_block(sieve, t, block, batch, start, some, left, places, boxes, end)
        used = _keep_holding(sieve, batch, x, size, places, boxes, used, end)
    return used, places, boxes


@compiled
def _prefetch_lines(sieve: Sieve, t: int, block: int) -> None:
    """Ask for all lines of a block: many points need most of them."""
    first = sieve.first_line[t] + block - sieve.first_block[t]
    for line in range(sieve.lines[t]):
        prefetch(sieve.bits, first + sieve.stride[t] * line, 0)


@compiled
def _list_block(
    sieve: Sieve, t: int, block: int, batch: Batch, start: int, some: Words, left: Left,
    places: Ints, boxes: Ints, used: int,
) -> int:  # fmt: skip
    """List the boxes of a block that are left for some of the points from ``start`` on."""
    bits, line, each, stride = sieve.bits, batch.line, batch.each, sieve.stride[t]
    first, box = sieve.first_line[t] + block - sieve.first_block[t], sieve.first_box[block]
    for word in range(LINE):
        count, now = 0, some[word]
        while now != 0:
            p = start + 64 * word + lowest_bit(now)
            now &= now - np.uint64(1)
            words = and_lines(bits, first, stride, line, p * each, each, left.bits[count])
            left.words[count], left.place[count], left.first[count] = words, p, box
            count += 1
        used = _list_left(left, count, places, boxes, used)
    return used


@compiled
def _sift_few(
    sieve: Sieve, t: int, x: Floats, batch: Batch, left: Left, places: Ints, boxes: Ints
) -> tuple[int, Ints, Ints]:
    """The same for points one by one.

    What they need of blocks and boxes comes from far, so it is asked for some of them ahead.
    """
    used, each, bits, stride = 0, batch.each, sieve.bits, sieve.stride[t]
    met = np.empty(sieve.first_block[t + 1] - sieve.first_block[t], np.int64)
    for p in range(batch.number):
        line = batch.line[p * each : (p + 1) * each]
        _fill_passes(sieve, t, line, batch.passes)
        number, end = _met_blocks(sieve, t, batch.passes, met), used
        for start in range(0, number, ROWS):
            count = min(ROWS, number - start)
            more = count * BLOCK
            places, boxes = room_for(places, end, more), room_for(boxes, end, more)
            for i in range(count):
                if start + i + AHEAD < number:
                    ahead = sieve.first_line[t] + met[start + i + AHEAD]
                    for k in range(each):
                        prefetch(bits, ahead + stride * line[k], 0)
                first = sieve.first_line[t] + met[start + i]
                left.words[i] = and_lines(bits, first, stride, line, 0, each, left.bits[i])
                left.place[i] = p
                left.first[i] = sieve.first_box[sieve.first_block[t] + met[start + i]]
            end = _list_left(left, count, places, boxes, end)
        used = _keep_holding(sieve, batch, x, sieve.size[t], places, boxes, used, end)
    return used, places, boxes


@compiled
def _met_blocks(sieve: Sieve, t: int, passes: Bools, met: Longs) -> int:
    """List the blocks that a point must look at; returns their number."""
    count = 0
    for block in range(sieve.first_block[t], sieve.first_block[t + 1]):
        side, sides = 1, sieve.side_count[block]
        while side < sides and passes[sieve.sides[block, side]]:
            side += 1
        met[count] = block - sieve.first_block[t]
        count += side == sides
    return count


@compiled
def _list_left(left: Left, count: int, places: Ints, boxes: Ints, used: int) -> int:
    """List the boxes of so many rows."""
    for row in range(count):
        words, first, p = left.words[row], left.first[row], left.place[row]
        while words != 0:
            word = lowest_bit(words)
            words &= words - np.uint64(1)
            some = left.bits[row, word]
            while some != 0:
                places[used], boxes[used] = p, first + 64 * word + lowest_bit(some)
                some &= some - np.uint64(1)
                used += 1
    return used


@compiled
def _keep_holding(
    sieve: Sieve, batch: Batch, x: Floats, size: int,
    places: Ints, boxes: Ints, first: int, end: int,
) -> int:  # fmt: skip
    """Keep those of the pairs from ``first`` on whose box holds the point; the end of the others.

    By steps and, if an end is in the very step of the point, by the ends. All fields of a word are
    compared at once: a top bit stays where a difference is not negative. Nearly no branches, and
    indices without sign: it is the inner loop.
    """
    width, used, lo, hi = np.uint64(batch.steps.shape[1]), first, sieve.lo, sieve.hi
    steps, within = batch.steps.ravel(), sieve.within.ravel()
    for k in range(first, min(first + AHEAD, end)):
        _prefetch_box(sieve.within, boxes[k])
    for k in range(first, end):
        if k + AHEAD < end:
            _prefetch_box(sieve.within, boxes[k + AHEAD])
        box, p = boxes[k], places[k]
        at, ends = width * np.uint64(p), (width + width) * np.uint64(box)
        surely, maybe = TOPS, TOPS
        for word in range(width):
            step, low = steps[at + word], within[ends + word]
            above, below = (step | TOPS) - low, (within[ends + width + word] | TOPS) - step
            surely, maybe = surely & above & below, maybe & (above + ONES) & (below + ONES)
        holds = surely == TOPS
        if (surely != TOPS) & (maybe == TOPS):
            holds = _between_ends(lo, hi, box, x, batch.point[p], size)
        places[used], boxes[used] = p, box
        used += holds
    return used


@compiled
def _prefetch_box(within: Words, box: int) -> None:
    for word in range(0, within.shape[1], LINE):
        prefetch(within, box, word)


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
def _between_ends(lo: Floats, hi: Floats, box: int, x: Floats, row: int, size: int) -> bool:
    """Whether a point is between the ends of a box on all axes; without branches."""
    inside = True
    for axis in range(size):
        inside &= (lo[box, axis] <= x[row, axis]) & (x[row, axis] < hi[box, axis])
    return inside
