"""Which boxes hold a point, for many attributes: bit sets of boxes for every bucket of values.

Every axis of a topic is cut into *buckets* at quantiles of the end points of the topic's boxes. The
boxes of a topic stand in *blocks* of 512, and in a block every bucket has a *line* of 512 bits, set
for the boxes that reach into it. A point falls into one bucket of each axis: the AND of its lines
leaves the boxes that may hold it, and these are tested exactly. The work per point and box is less
than a bit per axis, however wide boxes are and however many axes they leave open.

A block has boxes that are alike, so that most points can pass it by. Points come in batches of one
topic. Sets of points, two for every bucket, tell at once which of them a block must look at, and
its lines stay in the cache while they do.

Bit sets per bucket are the idea of REIN (Qian et al. 2014) and HEM (Shi et al. 2022), which mark
the boxes that fail, for a point at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.boxes.rows import room_for
from fanplan.core.arrays import Bytes, Floats, Ints, Longs, Words, starts_of
from fanplan.core.bits import LINE, and_lines, lowest_bit, set_bit
from fanplan.core.kernels import compiled

BLOCK = 64 * LINE
"""Boxes in a block: as many as a line has bits."""

LINES = 1024
"""Lines of a block, at most; that is 128 bytes for a box."""

BATCH = 8 * BLOCK
"""Points in a batch."""

MOST_BUCKETS = 256
SAMPLE = 4096
"""Boxes from whose end points the quantiles are taken."""

TRIED = 256
"""Boxes on which buckets and blocks are judged."""

# How many boxes, as a share of all, must no longer be tested for a line or a bucket more.
WORTH_A_LINE = 1e-4
WORTH_A_BUCKET = 2e-5

NARROW = 0.5
"""Share of the extent of a part, above which a box is too wide to be told by its place."""

PARTS = 4
WORTH_A_SPLIT = 0.95

PAIRS = 2**22
"""Pairs of point and box in a batch above which batches become smaller."""


class Sieve(NamedTuple):
    """Buckets, blocks and lines of topics, which are numbered from 0 here.

    ``first_edge``, ``buckets`` and ``offset`` have a column per axis. An axis with one bucket has
    no lines; in a block, those of the others start at ``offset``, and ``lines`` counts them all.
    Block b is about the boxes from ``first_box[b]`` up to ``first_box[b + 1]``. Points that it must
    look at are in all sets ``sides[first_side[b]:first_side[b + 1]]`` of a batch.
    """

    edges: Floats
    first_edge: Longs
    buckets: Ints
    offset: Ints
    lines: Longs
    first_block: Longs
    first_box: Longs
    first_line: Longs
    bits: Words
    first_side: Longs
    sides: Ints


class Batch(NamedTuple):
    """Room for a batch of points of one topic: the lines of each, and sets of points.

    ``row`` is the place of a point among those that were put in.

    Set 0 has all of them. Bucket b of an axis has two: 1 + 2 (offset + b) those in it or above,
    the next those in it or below.
    """

    row: Longs
    point: Longs
    line: Ints
    sets: Words
    some: Words
    left: Words


# ---- building


def make_sieve(
    lo: Floats, hi: Floats, bounds: Longs, sizes: Ints, first: int = 0
) -> tuple[Sieve, Longs]:
    """The sieve of the boxes, topic t having those from ``bounds[t]`` up to ``bounds[t + 1]``.

    Returns also the order in which the boxes must stand. The first of them has number ``first``.
    """
    edges, first_edge, buckets = _lay_buckets(lo, hi, bounds, sizes)
    counted = np.where(buckets > 1, buckets, 0)
    offset = (counted.cumsum(axis=1) - counted).astype(np.int32)
    lines = counted.sum(axis=1, dtype=np.int64)
    low, high = _bucket_numbers(lo, hi, bounds, sizes, edges, first_edge, buckets)
    order = _order_alike(low, high, bounds)
    blocks = -(np.diff(bounds) // -BLOCK)
    first_block = starts_of(blocks)
    first_line = starts_of(np.repeat(lines, blocks))
    first_box = _first_boxes(bounds, first_block)
    sides = _sides(low, high, order, first_block, first_box, buckets, offset)
    sieve = Sieve(
        edges, first_edge, buckets, offset, lines, first_block, first_box, first_line,
        np.zeros((first_line[-1], LINE), np.uint64), *sides,
    )  # fmt: skip
    _fill_lines(sieve, low, high, order)
    return sieve._replace(first_box=first_box + first), order


def _first_boxes(bounds: Longs, first_block: Longs) -> Longs:
    topic = np.repeat(np.arange(len(bounds) - 1), np.diff(first_block))
    starts = bounds[topic] + BLOCK * (np.arange(len(topic)) - first_block[topic])
    return np.append(starts, bounds[-1])


@compiled
def _lay_buckets(lo: Floats, hi: Floats, bounds: Longs, sizes: Ints) -> tuple[Floats, Longs, Ints]:
    """Edges of every topic and axis: distinct end points, thinned to the chosen buckets."""
    topics, width = len(sizes), lo.shape[1]
    edges = np.empty(topics * width * (MOST_BUCKETS + 1))
    first_edge = np.zeros((topics, width), np.int64)
    buckets = np.ones((topics, width), np.int32)
    used = 0
    for t in range(topics):
        a, b, size = bounds[t], bounds[t + 1], sizes[t]
        step = max(1, (b - a) // SAMPLE)
        starts, ends = np.zeros(size + 1, np.int64), np.empty(size * (2 * SAMPLE + 4) * 2)
        for axis in range(size):
            found = np.concatenate((lo[a:b:step, axis], hi[a:b:step, axis]))
            found[0], found[-1] = lo[a:b, axis].min(), hi[a:b, axis].max()
            found = np.unique(found)
            starts[axis + 1] = starts[axis] + len(found)
            ends[starts[axis] : starts[axis + 1]] = found
        _choose_buckets(lo[a:b], hi[a:b], ends, starts, buckets[t])
        for axis in range(size):
            first_edge[t, axis] = used
            n, gaps = buckets[t, axis], starts[axis + 1] - starts[axis] - 1
            for i in range(n + 1):
                edges[used + i] = ends[starts[axis] + i * gaps // n]
            used += n + 1
    return edges[:used].copy(), first_edge, buckets


@compiled
def _choose_buckets(lo: Floats, hi: Floats, ends: Floats, starts: Longs, buckets: Ints) -> None:
    """Double the buckets of the axis that spares most tests, while it is worth its lines."""
    size = len(starts) - 1
    step = max(1, len(lo) // TRIED)
    extents, left = np.ones((len(lo[::step]), size)), np.ones(len(lo[::step]))
    for s in range(len(extents)):
        for axis in range(size):
            own = ends[starts[axis] : starts[axis + 1]]
            low = np.searchsorted(own, lo[s * step, axis])
            extents[s, axis] = (np.searchsorted(own, hi[s * step, axis]) - low) / (len(own) - 1)
    room = min(LINES, 2 * len(lo))
    while True:
        chosen, most = -1, 0.0
        for axis in range(size):
            gaps, now = starts[axis + 1] - starts[axis] - 1, buckets[axis]
            more = min(2 * now, gaps, MOST_BUCKETS)
            if more == now or more - now > room:
                continue
            spared = 0.0
            for s in range(len(extents)):
                before = _reached(extents[s, axis], now, gaps)
                spared += left[s] * (1.0 - _reached(extents[s, axis], more, gaps) / before)
            spared /= len(extents)
            if spared > max(most, WORTH_A_LINE if now == 1 else WORTH_A_BUCKET):
                chosen, most = axis, spared
        if chosen < 0:
            return
        gaps, now = starts[chosen + 1] - starts[chosen] - 1, buckets[chosen]
        buckets[chosen] = min(2 * now, gaps, MOST_BUCKETS)
        room -= buckets[chosen] - (now if now > 1 else 0)
        for s in range(len(extents)):
            left[s] *= _reached(extents[s, chosen], buckets[chosen], gaps) / _reached(
                extents[s, chosen], now, gaps
            )


@compiled
def _reached(extent: float, buckets: int, gaps: int) -> float:
    """Share of an axis in whose buckets a box lies that spans this share of its end points."""
    return min(1.0, extent + 1.0 / buckets - 1.0 / gaps)


@compiled
def _bucket_numbers(
    lo: Floats,
    hi: Floats,
    bounds: Longs,
    sizes: Ints,
    edges: Floats,
    first_edge: Longs,
    buckets: Ints,
) -> tuple[Bytes, Bytes]:
    """First and last bucket of every box on every axis."""
    low, high = np.zeros(lo.shape, np.uint8), np.zeros(lo.shape, np.uint8)
    for t in range(len(sizes)):
        for axis in range(sizes[t]):
            first, n = first_edge[t, axis], buckets[t, axis]
            own = edges[first : first + n + 1]
            for box in range(bounds[t], bounds[t + 1]):
                low[box, axis] = np.searchsorted(own, lo[box, axis], side="right") - 1
                high[box, axis] = np.searchsorted(own, hi[box, axis]) - 1
    return low, high


@compiled
def _order_alike(low: Bytes, high: Bytes, bounds: Longs) -> Longs:
    """An order of the boxes in which those of a block are alike.

    A part of the boxes is divided along the axis that tells most: the narrow boxes by their place,
    and the wide ones, which are divided by other axes. All cuts are between blocks.
    """
    order = np.arange(len(low))
    stack = [(bounds[t], bounds[t + 1]) for t in range(len(bounds) - 1)]
    while len(stack) > 0:
        a, b = stack.pop()
        if b - a <= BLOCK:
            continue
        axis, extent = _telling_axis(low, high, order[a:b])
        if axis < 0:
            continue
        narrow = _sort_by_place(low[:, axis], high[:, axis], order[a:b], NARROW * extent)
        parts, start = min(PARTS, max(1, narrow // BLOCK)), a
        for part in range(1, parts + 1):
            end = a + narrow * part // parts // BLOCK * BLOCK
            if end > start and end - start < b - a:
                stack.append((start, end))
                start = end
        if start > a:
            stack.append((start, b))
    return order


@compiled
def _telling_axis(low: Bytes, high: Bytes, boxes: Longs) -> tuple[int, int]:
    """The axis along which parts become smallest, and its extent now; −1 if none is worth it."""
    chosen, best, chosen_extent = -1, WORTH_A_SPLIT, 0
    tried = boxes[:: max(1, len(boxes) // TRIED)]
    place = np.empty(len(tried), np.int64)
    for axis in range(low.shape[1]):
        least, most = 255, 0
        for box in tried:
            least, most = min(least, low[box, axis]), max(most, high[box, axis])
        extent, narrow = most - least + 1, 0
        for box in tried:
            a, b = np.int64(low[box, axis]), np.int64(high[box, axis])
            if b - a + 1 <= NARROW * extent:
                place[narrow] = ((a + b) << 16) + (a << 8) + b
                narrow += 1
        if extent == 1 or narrow == 0:
            continue
        place[:narrow].sort()
        cost = (len(tried) - narrow) * float(extent)
        for part in range(PARTS):
            start, end = narrow * part // PARTS, narrow * (part + 1) // PARTS
            least, most = 255, 0
            for i in range(start, end):
                least, most = min(least, (place[i] >> 8) & 255), max(most, place[i] & 255)
            cost += (end - start) * max(most - least + 1, 1)
        if cost < best * extent * len(tried):
            chosen, best, chosen_extent = axis, cost / (extent * len(tried)), extent
    return chosen, chosen_extent


@compiled
def _sort_by_place(low: Bytes, high: Bytes, boxes: Longs, widest: float) -> int:
    """Sort boxes by their middle, wide ones to the end; returns the number of the others."""
    wide = 2 * MOST_BUCKETS
    place = np.empty(len(boxes), np.int64)
    start = np.zeros(wide + 2, np.int64)
    for i in range(len(boxes)):
        a, b = np.int64(low[boxes[i]]), np.int64(high[boxes[i]])
        place[i] = a + b if b - a + 1 <= widest else wide
        start[place[i] + 1] += 1
    start = np.cumsum(start)
    narrow = start[wide]
    before = boxes.copy()
    for i in range(len(boxes)):
        boxes[start[place[i]]] = before[i]
        start[place[i]] += 1
    return int(narrow)


@compiled
def _sides(
    low: Bytes,
    high: Bytes,
    order: Longs,
    first_block: Longs,
    first_box: Longs,
    buckets: Ints,
    offset: Ints,
) -> tuple[Longs, Ints]:
    """For every block, the sets of points that are within the buckets of its boxes."""
    blocks, width = first_block[-1], low.shape[1]
    first_side, used = np.zeros(blocks + 1, np.int64), 0
    sides = np.empty(blocks * (2 * width + 1), np.int32)
    for t in range(len(buckets)):
        for block in range(first_block[t], first_block[t + 1]):
            sides[used] = 0
            used += 1
            boxes = order[first_box[block] : first_box[block + 1]]
            for axis in range(width):
                if buckets[t, axis] == 1:
                    continue
                least, most = 255, 0
                for box in boxes:
                    least, most = min(least, low[box, axis]), max(most, high[box, axis])
                if least > 0:
                    sides[used] = 1 + 2 * (offset[t, axis] + least)
                    used += 1
                if most < buckets[t, axis] - 1:
                    sides[used] = 2 + 2 * (offset[t, axis] + most)
                    used += 1
            first_side[block + 1] = used
    return first_side, sides[:used].copy()


@compiled
def _fill_lines(sieve: Sieve, low: Bytes, high: Bytes, order: Longs) -> None:
    """Set the bits of all boxes: of the first bucket, and from bucket to bucket up to the last."""
    ends = np.zeros((MOST_BUCKETS + 1, LINE), np.uint64)
    now = np.zeros(LINE, np.uint64)
    for t in range(len(sieve.lines)):
        for block in range(sieve.first_block[t], sieve.first_block[t + 1]):
            boxes = order[sieve.first_box[block] : sieve.first_box[block + 1]]
            for axis in range(low.shape[1]):
                n = sieve.buckets[t, axis]
                if n == 1:
                    continue
                first = sieve.first_line[block] + sieve.offset[t, axis]
                lines = sieve.bits[first : first + n]
                ends[: n + 1], now[:] = 0, 0
                for i in range(len(boxes)):
                    set_bit(lines[low[boxes[i], axis]], i)
                    set_bit(ends[np.int64(high[boxes[i], axis]) + 1], i)
                for bucket in range(n):
                    for word in range(LINE):
                        now[word] = (now[word] & ~ends[bucket, word]) | lines[bucket, word]
                        lines[bucket, word] = now[word]


# ---- matching


@compiled
def make_batch(sieve: Sieve) -> Batch:
    width, lines = sieve.buckets.shape[1], sieve.lines.max() if len(sieve.lines) else 0
    return Batch(
        np.empty(BATCH, np.int64),
        np.empty(BATCH, np.int64),
        np.empty(BATCH * width, np.int32),
        np.empty((BATCH // BLOCK * (2 * lines + 1), LINE), np.uint64),
        np.empty(LINE, np.uint64),
        np.empty(LINE, np.uint64),
    )


@compiled
def fill_batch(
    sieve: Sieve, t: int, size: int, x: Floats, points: Longs, batch: Batch
) -> tuple[int, int]:
    """Put points of topic t into the batch, without those that are outside of all boxes.

    Returns how many are in it, and how many lines each of them has.
    """
    each = int(np.count_nonzero(sieve.buckets[t] > 1))
    count = 0
    for row in range(len(points)):
        point = points[row]
        inside, used = True, count * each
        for axis in range(size):
            low, n, at = sieve.first_edge[t, axis], sieve.buckets[t, axis], x[point, axis]
            first = low
            while n > 1:
                half = n >> 1
                low += half if sieve.edges[low + half] <= at else 0
                n -= half
            inside &= (sieve.edges[low] <= at) & (at < sieve.edges[low + 1])
            if sieve.buckets[t, axis] > 1:
                batch.line[used] = sieve.offset[t, axis] + low - first
                used += 1
        if inside:
            batch.row[count], batch.point[count] = row, point
            count += 1
    for start in range(0, count, BLOCK):
        _fill_sets(sieve, t, batch, start, min(count, start + BLOCK), each)
    return count, each


@compiled
def _fill_sets(sieve: Sieve, t: int, batch: Batch, start: int, end: int, each: int) -> None:
    """Sets of points by bucket: first those in it, and then those beyond it, too."""
    number = 2 * sieve.lines[t] + 1
    sets = batch.sets[start // BLOCK * number : (start // BLOCK + 1) * number]
    sets[:] = 0
    for p in range(start, end):
        set_bit(sets[0], p - start)
        for i in range(p * each, (p + 1) * each):
            set_bit(sets[1 + 2 * batch.line[i]], p - start)
            set_bit(sets[2 + 2 * batch.line[i]], p - start)
    for axis in range(sieve.buckets.shape[1]):
        n, first = sieve.buckets[t, axis], sieve.offset[t, axis]
        if n == 1:
            continue
        for b in range(1, n):
            above, below = 1 + 2 * (first + n - 1 - b), 2 + 2 * (first + b)
            for word in range(LINE):
                sets[above, word] |= sets[above + 2, word]
                sets[below, word] |= sets[below - 2, word]


@compiled
def sift(
    sieve: Sieve,
    t: int,
    lo: Floats,
    hi: Floats,
    size: int,
    x: Floats,
    batch: Batch,
    count: int,
    each: int,
    places: Ints,
    boxes: Ints,
) -> tuple[int, Ints, Ints]:
    """Pairs of a point's place in the batch and a box that holds it, by block.

    Returns their number and the arrays that they are in, which may have grown.
    """
    used = 0
    for block in range(sieve.first_block[t], sieve.first_block[t + 1]):
        side, last = sieve.first_side[block], sieve.first_side[block + 1]
        number = sieve.first_box[block + 1] - sieve.first_box[block]
        for start in range(0, count, BLOCK):
            sets = start // BLOCK * (2 * sieve.lines[t] + 1)
            if not and_lines(  # type: ignore[call-arg]
                batch.sets, sets, sieve.sides, side, last - side, batch.some
            ):
                continue
            more = min(BLOCK, count - start) * number
            places, boxes = room_for(places, used, more), room_for(boxes, used, more)
            for word in range(LINE):
                some = batch.some[word]
                while some != 0:
                    p = start + 64 * word + lowest_bit(some)
                    some &= some - np.uint64(1)
                    if and_lines(
                        sieve.bits, sieve.first_line[block], batch.line, p * each, each, batch.left
                    ):
                        used = _test_left(
                            batch.left, number, sieve.first_box[block], lo, hi, size,
                            x[batch.point[p]], p, places, boxes, used,
                        )  # fmt: skip
    return used, places, boxes


@compiled
def _test_left(
    left: Words,
    number: int,
    first: int,
    lo: Floats,
    hi: Floats,
    size: int,
    point: Floats,
    p: int,
    places: Ints,
    boxes: Ints,
    used: int,
) -> int:
    """Add the boxes of a block that are left and do hold the point."""
    for word in range((number + 63) // 64):
        some = left[word]
        while some != 0:
            i = 64 * word + lowest_bit(some)  # type: ignore[call-arg]
            some &= some - np.uint64(1)
            if i < number and holds(lo[first + i], hi[first + i], point, size):
                places[used], boxes[used] = p, first + i
                used += 1
    return used


@compiled
def holds(lo: Floats, hi: Floats, point: Floats, size: int) -> bool:
    """Whether a box holds a point; without branches, so that it becomes vector instructions."""
    inside = True
    for axis in range(size):
        inside &= (lo[axis] <= point[axis]) & (point[axis] < hi[axis])
    return inside
