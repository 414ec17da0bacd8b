"""Points in topics that have a sieve: batch by batch, the boxes that hold them."""

from __future__ import annotations

import numpy as np

from fanplan.boxes.index import BoxIndex
from fanplan.boxes.rows import room_for, sorted_order
from fanplan.boxes.sieve import BATCH, PAIRS, fill_batch, make_batch, sift
from fanplan.core.arrays import Floats, Ints, Longs, Words
from fanplan.core.bits import lowest_bit, set_bit
from fanplan.core.kernels import compiled

FIRST = 64
"""Points in the first batch; more follow if they have few boxes."""


@compiled
def sifted_topics(index: BoxIndex, topic_id: Longs) -> Longs:
    """Number of each point's topic in the sieve, −1 if it is not there."""
    topics = np.full(len(topic_id), -1, np.int64)
    for i in range(len(topic_id)):
        if 0 <= topic_id[i] < len(index.row_of_topic):
            topics[i] = max(index.row_of_topic[topic_id[i]] - index.first_sifted, -1)
    return topics


@compiled
def count_sifted_hits(
    index: BoxIndex, topic_id: Longs, x: Floats, weight: Floats, hits: Floats
) -> None:
    """Add to ``hits`` the weight of the points that each box holds."""
    topics = sifted_topics(index, topic_id)
    order = sorted_order(topics, len(index.sieve.lines), np.arange(len(topics)))
    batch, size, i = make_batch(index.sieve), FIRST, int(np.count_nonzero(topics < 0))
    places, boxes = np.empty(1024, np.int32), np.empty(1024, np.int32)
    while i < len(order):
        t, end = topics[order[i]], batch_end(topics, order, i, size)
        axes = index.dimensions[index.first_sifted + t]
        count, each = fill_batch(index.sieve, t, axes, x, order[i:end], batch)
        pairs, places, boxes = sift(
            index.sieve, t, index.lo, index.hi, axes, x, batch, count, each, places, boxes
        )
        for k in range(pairs):
            hits[boxes[k]] += weight[batch.point[places[k]]]
        i, size = end, next_size(size, pairs)


@compiled
def find_sifted(
    index: BoxIndex, topic_id: Longs, x: Floats, value: Ints, values: int
) -> tuple[Longs, Longs, Ints]:
    """The sorted distinct values of the boxes that hold each point, as compressed rows.

    Values are below ``values``. Rows come in the order in which the points were visited: returns
    (order, offsets, values).
    """
    topics = sifted_topics(index, topic_id)
    order = sorted_order(topics, len(index.sieve.lines), np.arange(len(topics)))
    batch, size, i = make_batch(index.sieve), FIRST, int(np.count_nonzero(topics < 0))
    places, boxes = np.empty(1024, np.int32), np.empty(1024, np.int32)
    seen, some = np.zeros(values // 64 + 1, np.uint64), np.zeros(values // 4096 + 1, np.uint64)
    offsets, found = np.zeros(len(order) + 1, np.int64), np.empty(8 * len(order) + 1, np.int32)
    while i < len(order):
        t, end = topics[order[i]], batch_end(topics, order, i, size)
        axes = index.dimensions[index.first_sifted + t]
        count, each = fill_batch(index.sieve, t, axes, x, order[i:end], batch)
        pairs, places, boxes = sift(
            index.sieve, t, index.lo, index.hi, axes, x, batch, count, each, places, boxes
        )
        starts, sorted_boxes = boxes_by_place(places, boxes, pairs, count)
        place, used = 0, offsets[i]
        found = room_for(found, used, pairs)
        for row in range(end - i):
            if place < count and batch.row[place] == row:
                for k in range(starts[place], starts[place + 1]):
                    set_bit(seen, value[sorted_boxes[k]])
                    set_bit(some, value[sorted_boxes[k]] >> 6)
                used = take_bits(seen, some, found, used)
                place += 1
            offsets[i + row + 1] = used
        i, size = end, next_size(size, pairs)
    return order, offsets, found[: offsets[-1]]


@compiled
def batch_end(topics: Longs, order: Longs, start: int, size: int) -> int:
    """Where a batch ends: it has points of one topic."""
    end = start
    while end < min(len(order), start + size) and topics[order[end]] == topics[order[start]]:
        end += 1
    return end


@compiled
def next_size(size: int, pairs: int) -> int:
    """How many points to handle next, after a batch with so many pairs."""
    return min(2 * size, BATCH) if 2 * pairs < PAIRS else max(size // 2, 1)


@compiled
def boxes_by_place(places: Ints, boxes: Ints, pairs: int, count: int) -> tuple[Longs, Ints]:
    """Boxes sorted by the place of their point: where those of each start, and the boxes."""
    starts, result = np.zeros(count + 2, np.int64), np.empty(pairs, np.int32)
    for k in range(pairs):
        starts[places[k] + 2] += 1
    starts = np.cumsum(starts)
    for k in range(pairs):
        result[starts[places[k] + 1]] = boxes[k]
        starts[places[k] + 1] += 1
    return starts[:-1], result


@compiled
def take_bits(seen: Words, some: Words, found: Ints, used: int) -> int:
    """Write the elements of a set, and empty it; ``some`` tells which of its words have any."""
    for k in range(len(some)):
        while some[k] != 0:
            word = 64 * k + lowest_bit(some[k])  # type: ignore[call-arg]
            some[k] &= some[k] - np.uint64(1)
            while seen[word] != 0:
                found[used] = 64 * word + lowest_bit(seen[word])
                seen[word] &= seen[word] - np.uint64(1)
                used += 1
    return used
