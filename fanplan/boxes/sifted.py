"""Points in topics that have a sieve: batch by batch, the boxes that hold them.

Topics are numbered as in the sieve. Points of topic −1 are in no box.
"""

from __future__ import annotations

import numpy as np

from fanplan.boxes.rows import room_for, sorted_order
from fanplan.boxes.sieve import Sieve
from fanplan.boxes.sifting import BATCH, FEW, Batch, fill_batch, make_batch, sift
from fanplan.core.arrays import Floats, Ints, Longs, Words
from fanplan.core.bits import lowest_bit, set_bit
from fanplan.core.kernels import compiled

FIRST = FEW
"""Points in the first batch, which tells how many boxes hold a point."""

PAIRS = 2**22
"""Pairs of point and box that a batch should have at most, by those of the last one."""


@compiled
def count_sifted_hits(sieve: Sieve, topics: Longs, x: Floats, weight: Floats, hits: Floats) -> None:
    """Add to ``hits`` the weight of the points that each box holds."""
    order = sorted_order(topics, len(sieve.lines), np.arange(len(topics)))
    batch, size = make_batch(sieve, min(len(order), BATCH)), FIRST
    places, boxes = np.empty(1024, np.int32), np.empty(1024, np.int32)
    i = int(np.count_nonzero(topics < 0))
    while i < len(order):
        t, end = topics[order[i]], batch_end(topics, order, i, size)
        batch = fill_batch(sieve, t, x, order[i:end], batch)
        pairs, places, boxes = sift(sieve, t, x, batch, places, boxes)
        for k in range(pairs):
            hits[boxes[k]] += weight[batch.point[places[k]]]
        i, size = end, next_size(end - i, pairs)


@compiled
def find_sifted(sieve: Sieve, topics: Longs, x: Floats) -> tuple[Longs, Longs, Ints]:
    """The boxes that hold each point, ascending, as compressed rows.

    Rows come in the order in which the points were visited: returns (order, offsets, boxes).
    """
    order = sorted_order(topics, len(sieve.lines), np.arange(len(topics)))
    batch, size = make_batch(sieve, min(len(order), BATCH)), FIRST
    places, boxes = np.empty(1024, np.int32), np.empty(1024, np.int32)
    offsets, found = np.zeros(len(order) + 1, np.int64), np.empty(8 * len(order) + 1, np.int32)
    i = int(np.count_nonzero(topics < 0))
    while i < len(order):
        t, end = topics[order[i]], batch_end(topics, order, i, size)
        batch = fill_batch(sieve, t, x, order[i:end], batch)
        pairs, places, boxes = sift(sieve, t, x, batch, places, boxes)
        found = room_for(found, offsets[i], pairs)
        put_rows(batch, places[:pairs], boxes[:pairs], offsets[i : end + 1], found)
        i, size = end, next_size(end - i, pairs)
    return order, offsets, found[: offsets[-1]]


@compiled
def batch_end(topics: Longs, order: Longs, start: int, size: int) -> int:
    """Where a batch ends: it has points of one topic."""
    end = start
    while end < min(len(order), start + size) and topics[order[end]] == topics[order[start]]:
        end += 1
    return end


@compiled
def next_size(points: int, pairs: int) -> int:
    """How many points to handle next, after so many with so many pairs."""
    return max(1, min(BATCH, points * PAIRS // max(pairs, 1)))


@compiled
def put_rows(batch: Batch, places: Ints, boxes: Ints, offsets: Longs, found: Ints) -> None:
    """Write the boxes of a batch row by row from ``offsets[0]`` on, and where the rows end."""
    at = np.zeros(batch.number + 1, np.int64)
    for place in places:
        at[place + 1] += 1
    row, at[0] = 0, offsets[0]
    for place in range(batch.number):
        while row < batch.row[place]:
            row += 1
            offsets[row] = at[place]
        at[place + 1] += at[place]
    offsets[row + 1 :] = at[batch.number]
    for k in range(len(places)):
        found[at[places[k]]] = boxes[k]
        at[places[k]] += 1


@compiled
def distinct_values(offsets: Longs, found: Ints, value: Ints, values: int) -> tuple[Longs, Ints]:
    """Rows of boxes made rows of their distinct values, which ascend; ``found`` is overwritten."""
    seen, some = np.zeros(values // 64 + 1, np.uint64), np.zeros(values // 4096 + 1, np.uint64)
    ends = np.zeros(len(offsets), np.int64)
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            set_bit(seen, value[found[k]])
            set_bit(some, value[found[k]] >> 6)
        ends[row + 1] = take_bits(seen, some, found, ends[row])
    return ends, found[: ends[-1]].copy()


@compiled
def take_bits(seen: Words, some: Words, found: Ints, used: int) -> int:
    """Write the elements of a set, and empty it; ``some`` tells which of its words have any."""
    for k in range(len(some)):
        while some[k] != 0:
            word = 64 * k + lowest_bit(some[k])
            some[k] &= some[k] - np.uint64(1)
            while seen[word] != 0:
                found[used] = 64 * word + lowest_bit(seen[word])
                seen[word] &= seen[word] - np.uint64(1)
                used += 1
    return used
