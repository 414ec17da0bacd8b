"""Which boxes hold a point, for many attributes: bit sets of boxes for every bucket of values.

Every axis of a topic is cut into *buckets* at quantiles of the end points of the topic's boxes. The
boxes of a topic stand in *blocks* of 512, and in a block every bucket has a *line* of 512 bits, set
for the boxes that reach into it. A point falls into one bucket of each axis: the AND of its lines
leaves the boxes that may hold it. The work per point and box is less than a bit per axis, however
wide boxes are and however many axes they leave open.

Buckets consist of finer *steps*. A box that is left is told by the numbers of the steps from which
and up to which it surely holds all, four axes in a word. Its ends are looked at only if one of them
is in the very step of the point.

A block has boxes that are alike, so that most points can pass it by. Points come in batches of one
topic. Sets of points, two for every bucket, tell at once which of them a block must look at, and
its lines stay in the cache while they do.

Bit sets per bucket are the idea of REIN (Qian et al. 2014) and HEM (Shi et al. 2022), which mark
the boxes that fail, for a point at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs, Words, starts_of
from fanplan.core.bits import LINE, set_bit
from fanplan.core.kernels import compiled

BLOCK = 64 * LINE
"""Boxes in a block: as many as a line has bits."""

LINES = 1024
"""Lines of a block, about; that is 128 bytes for a box."""

MOST_BUCKETS = 256
FIRST_BUCKETS = 32
STEPS = 4096
SAMPLE = 4096
"""Boxes from whose end points the quantiles are taken."""

TRIED = 256
"""Boxes on which buckets and blocks are judged."""

# How many boxes, as a share of all, must no longer be tested for a line or a bucket more.
WORTH_A_LINE = 1e-4
WORTH_A_BUCKET = 2e-6

NARROW = (0.5, 0.8)
"""Shares of the extent of a part, above which a box is too wide to be told by its place."""

FIELDS = 4
"""Axes whose numbers of steps share a word; the top bit of a field is free."""
TOPS, ONES = np.uint64(0x8000_8000_8000_8000), np.uint64(0x0001_0001_0001_0001)

PARTS = 4
WORTH_A_SPLIT = 0.95


class Sieve(NamedTuple):
    """Buckets, blocks and lines of topics, which are numbered from 0 here.

    Topic t has ``size[t]`` axes; ``first_edge``, ``steps``, ``buckets`` and ``offset`` have a
    column per axis. Edges are those of steps.
    Line 0 has the boxes that are there at all. Those of an axis start at ``offset``, if it has more
    than one bucket; there are ``lines[t]`` in all. A line's parts for the blocks of a topic are
    neighbours, which is quicker to read for a single point: that of block b of a topic is row
    ``first_line[t] + line * stride[t] + b`` of ``bits``.

    Block b has the boxes from ``first_box[b]`` on, and all of them lie from bucket ``low[b]`` to
    ``high[b]``. So points that it must look at are in all of its ``sides``: sets of points, of
    which number 0 has all; bucket i of an axis has two, 2 (offset + i) − 1 with those in it or
    above, and the next with those in it or below.

    ``within`` has for every box the first steps that it surely holds, and then the last, from 1 on.
    """

    size: Ints
    edges: Floats
    first_edge: Longs
    steps: Ints
    buckets: Ints
    offset: Ints
    lines: Longs
    first_block: Longs
    first_box: Longs
    first_line: Longs
    stride: Longs
    low: Bytes
    high: Bytes
    sides: Ints
    side_count: Ints
    bits: Words
    within: Words
    lo: Floats
    hi: Floats


def make_sieve(
    lo: Floats, hi: Floats, bounds: Longs, sizes: Ints, per_block: int = BLOCK
) -> tuple[Sieve, Longs]:
    """The sieve of the boxes, topic t having those from ``bounds[t]`` up to ``bounds[t + 1]``.

    Returns also the order in which the boxes now stand: those of a block are alike.
    """
    if not len(lo):
        # No kernel is compiled for nothing: that would take seconds.
        none = np.empty((0, lo.shape[1]))
        axes = np.empty(0), none.astype(np.int64), none.astype(np.int32), none.astype(np.int32)
        return _empty_sieve(lo, hi, bounds, sizes, per_block, *axes), np.empty(0, np.int64)
    axes = _lay_buckets(lo, hi, bounds, sizes)
    low, high, within = bucket_numbers(lo, hi, bounds, sizes, *axes)
    order = _order_alike(low, high, bounds, per_block)
    sieve = _empty_sieve(lo[order], hi[order], bounds, sizes, per_block, *axes)
    _fill_blocks(sieve, low[order], high[order])
    return sieve._replace(within=within[order]), order


def _empty_sieve(
    lo: Floats,
    hi: Floats,
    bounds: Longs,
    sizes: Ints,
    per_block: int,
    edges: Floats,
    first_edge: Longs,
    steps: Ints,
    buckets: Ints,
) -> Sieve:
    """A sieve of these boxes, whose blocks are still to be filled."""
    counted = np.where(buckets > 1, buckets, 0)
    lines = 1 + counted.sum(axis=1, dtype=np.int64)
    blocks = -(np.diff(bounds) // -per_block)
    count, width = int(blocks.sum()), lo.shape[1]
    stride = blocks | 1
    first_line = starts_of(lines * stride)
    return Sieve(
        size=sizes, edges=edges, first_edge=first_edge, steps=steps, buckets=buckets,
        offset=(1 + counted.cumsum(axis=1) - counted).astype(np.int32), lines=lines,
        first_block=starts_of(blocks), first_box=_first_boxes(bounds, blocks, per_block),
        first_line=first_line, stride=stride,
        low=np.empty((count, width), np.uint8), high=np.empty((count, width), np.uint8),
        sides=np.zeros((count, 2 * width + 1), np.int32), side_count=np.zeros(count, np.int32),
        bits=np.zeros((first_line[-1], LINE), np.uint64),
        within=np.empty((0, 0), np.uint64), lo=lo, hi=hi,
    )  # fmt: skip


def _first_boxes(bounds: Longs, blocks: Longs, per_block: int) -> Longs:
    """Where the boxes of each block start, with the end of all appended."""
    topic = np.repeat(np.arange(len(blocks)), blocks)
    starts = bounds[topic] + per_block * (np.arange(len(topic)) - starts_of(blocks)[topic])
    return np.append(starts, bounds[-1])


@compiled
def _lay_buckets(
    lo: Floats, hi: Floats, bounds: Longs, sizes: Ints
) -> tuple[Floats, Longs, Ints, Ints]:
    """Edges of every topic and axis: distinct end points, thinned to steps; and the buckets."""
    topics, width = len(sizes), lo.shape[1]
    edges = np.empty(topics * width * (STEPS + 1))
    first_edge = np.zeros((topics, width), np.int64)
    steps = np.ones((topics, width), np.int32)
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
            gaps = starts[axis + 1] - starts[axis] - 1
            n = min(gaps, STEPS)
            for i in range(n + 1):
                edges[used + i] = ends[starts[axis] + i * gaps // n]
            steps[t, axis] = n
            used += n + 1
    return edges[:used].copy(), first_edge, steps, buckets


@compiled
def _choose_buckets(lo: Floats, hi: Floats, ends: Floats, starts: Longs, buckets: Ints) -> None:
    """Give buckets to the axis where a line spares most tests, while it is worth it.

    Buckets are doubled. The first ones of an axis may be many: two spare nothing where boxes span
    half of it.
    """
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
        chosen, then, most = -1, 0, 0.0
        for axis in range(size):
            gaps, now = starts[axis + 1] - starts[axis] - 1, buckets[axis]
            more = now
            while more < min(gaps, MOST_BUCKETS, FIRST_BUCKETS if now == 1 else 2 * now):
                more = min(2 * more, gaps, MOST_BUCKETS)
                lines = more - (now if now > 1 else 0)
                if lines > room:
                    break
                spared = _spared(extents[:, axis], left, now, more, gaps)
                worth = spared > (WORTH_A_LINE if now == 1 else WORTH_A_BUCKET)
                if worth and spared / lines > most:
                    chosen, then, most = axis, more, spared / lines
        if chosen < 0:
            return
        gaps, now = starts[chosen + 1] - starts[chosen] - 1, buckets[chosen]
        buckets[chosen] = then
        room -= then - (now if now > 1 else 0)
        for s in range(len(extents)):
            left[s] *= _reached(extents[s, chosen], then, gaps) / _reached(
                extents[s, chosen], now, gaps
            )


@compiled
def _spared(extent: Floats, left: Floats, now: int, more: int, gaps: int) -> float:
    """Share of the boxes that must no longer be tested if an axis has more buckets."""
    spared = 0.0
    for s in range(len(extent)):
        before = _reached(extent[s], now, gaps)
        spared += left[s] * (1.0 - _reached(extent[s], more, gaps) / before)
    return spared / len(extent)


@compiled
def _reached(extent: float, buckets: int, gaps: int) -> float:
    """Share of an axis in whose buckets a box lies that spans this share of its end points."""
    return min(1.0, extent + 1.0 / buckets - 1.0 / gaps)


@compiled
def bucket_numbers(
    lo: Floats,
    hi: Floats,
    bounds: Longs,
    sizes: Ints,
    edges: Floats,
    first_edge: Longs,
    steps: Ints,
    buckets: Ints,
) -> tuple[Bytes, Bytes, Words]:
    """First and last bucket of every box on every axis, and its steps."""
    low, high = np.zeros(lo.shape, np.uint8), np.zeros(lo.shape, np.uint8)
    words = words_for(lo.shape[1])
    within = np.zeros((len(lo), 2 * words), np.uint64)
    for t in range(len(sizes)):
        for axis in range(sizes[t]):
            first, n, word = first_edge[t, axis], steps[t, axis], axis // FIELDS
            own = edges[first : first + n + 1]
            for box in range(bounds[t], bounds[t + 1]):
                a = np.searchsorted(own, lo[box, axis], side="right") - 1
                b = np.searchsorted(own, hi[box, axis]) - 1
                low[box, axis] = a * buckets[t, axis] // n
                high[box, axis] = b * buckets[t, axis] // n
                # The step of an end is held as a whole only if the end is its edge.
                within[box, word] |= field(a + 1 + (own[a] < lo[box, axis]), axis)
                within[box, words + word] |= field(b + (own[b + 1] <= hi[box, axis]), axis)
    return low, high, within


@compiled
def words_for(axes: int) -> int:
    """Words that the numbers of so many axes take."""
    return -(axes // -FIELDS)


@compiled
def field(number: int, axis: int) -> np.uint64:
    """A number in the field of an axis."""
    return np.uint64(number) << np.uint64(16 * (axis % FIELDS))


@compiled
def _order_alike(low: Bytes, high: Bytes, bounds: Longs, per_block: int) -> Longs:
    """An order of the boxes in which those of a block are alike.

    A part of the boxes is divided along the axis that tells most: the narrow boxes by their place,
    and the wide ones, which are divided by other axes. All cuts are between blocks.
    """
    order = np.arange(len(low))
    stack = [(bounds[t], bounds[t + 1]) for t in range(len(bounds) - 1)]
    while len(stack) > 0:
        a, b = stack.pop()
        if b - a <= per_block:
            continue
        axis, widest = telling_axis(low, high, order[a:b])
        if axis < 0:
            continue
        narrow = sort_by_place(low[:, axis], high[:, axis], order[a:b], widest)
        parts, start = min(PARTS, max(1, narrow // per_block)), a
        for part in range(1, parts + 1):
            end = a + narrow * part // parts // per_block * per_block
            if end > start and end - start < b - a:
                stack.append((start, end))
                start = end
        if start > a:
            stack.append((start, b))
    return order


@compiled
def telling_axis(low: Bytes, high: Bytes, boxes: Longs) -> tuple[int, int]:
    """The axis along which parts become smallest, and the widest box to be told by its place.

    The axis is −1 if none is worth it.
    """
    chosen, best, widest = -1, WORTH_A_SPLIT, 0
    tried = boxes[:: max(1, len(boxes) // TRIED)]
    place = np.empty(len(tried), np.int64)
    for axis in range(low.shape[1]):
        least, most = 255, 0
        for box in tried:
            least, most = min(least, low[box, axis]), max(most, high[box, axis])
        extent = most - least + 1
        for share in NARROW:
            width = int(share * extent)
            left = _left_by_parts(low[:, axis], high[:, axis], tried, width, extent, place)
            if extent > 1 and left < best:
                chosen, best, widest = axis, left, width
    return chosen, widest


@compiled
def _left_by_parts(
    low: Bytes, high: Bytes, boxes: Longs, widest: int, extent: int, place: Longs
) -> float:
    """Share of an extent that a box's part has on average, if the narrow boxes are divided."""
    narrow = 0
    for box in boxes:
        a, b = np.int64(low[box]), np.int64(high[box])
        if b - a < widest:
            place[narrow] = ((a + b) << 16) + (a << 8) + b
            narrow += 1
    place[:narrow].sort()
    cost = (len(boxes) - narrow) * float(extent)
    for part in range(PARTS):
        start, end = narrow * part // PARTS, narrow * (part + 1) // PARTS
        least, most = 255, 0
        for i in range(start, end):
            least, most = min(least, (place[i] >> 8) & 255), max(most, place[i] & 255)
        cost += (end - start) * max(most - least + 1, 1)
    return cost / (extent * len(boxes))


@compiled
def sort_by_place(low: Bytes, high: Bytes, boxes: Longs, widest: int) -> int:
    """Sort boxes by their middle, wide ones to the end; returns the number of the others."""
    wide = 2 * MOST_BUCKETS
    place = np.empty(len(boxes), np.int64)
    start = np.zeros(wide + 2, np.int64)
    for i in range(len(boxes)):
        a, b = np.int64(low[boxes[i]]), np.int64(high[boxes[i]])
        place[i] = a + b if b - a < widest else wide
        start[place[i] + 1] += 1
    start = np.cumsum(start)
    narrow = start[wide]
    before = boxes.copy()
    for i in range(len(boxes)):
        boxes[start[place[i]]] = before[i]
        start[place[i]] += 1
    return int(narrow)


@compiled
def _fill_blocks(sieve: Sieve, low: Bytes, high: Bytes) -> None:
    """Fill all blocks with boxes that have these buckets."""
    for t in range(len(sieve.lines)):
        for block in range(sieve.first_block[t], sieve.first_block[t + 1]):
            first, last = sieve.first_box[block], sieve.first_box[block + 1]
            fill_block(sieve, t, block, low[first:last], high[first:last])


@compiled
def lines_of(sieve: Sieve, t: int, block: int) -> Words:
    """The lines of a block."""
    first, stride = sieve.first_line[t] + block - sieve.first_block[t], sieve.stride[t]
    return sieve.bits[first : first + stride * sieve.lines[t] : stride]


@compiled
def fill_block(sieve: Sieve, t: int, block: int, low: Bytes, high: Bytes) -> None:
    """Fill a block with boxes that have these first and last buckets on each axis."""
    lines = lines_of(sieve, t, block)
    lines[:] = 0
    sieve.low[block], sieve.high[block] = MOST_BUCKETS - 1, 0
    for i in range(len(low)):
        set_bit(lines[0], i)
    for axis in range(sieve.size[t]):
        for i in range(len(low)):
            sieve.low[block, axis] = min(sieve.low[block, axis], low[i, axis])
            sieve.high[block, axis] = max(sieve.high[block, axis], high[i, axis])
        if sieve.buckets[t, axis] > 1:
            start = sieve.offset[t, axis]
            own = lines[start : start + sieve.buckets[t, axis]]
            _fill_lines(own, low[:, axis], high[:, axis])
    set_sides(sieve, t, block)


@compiled
def _fill_lines(lines: Words, low: Bytes, high: Bytes) -> None:
    """Set the bits of boxes from their first bucket to their last."""
    ends, now = np.zeros((MOST_BUCKETS + 1, LINE), np.uint64), np.zeros(LINE, np.uint64)
    for i in range(len(low)):
        set_bit(lines[low[i]], i)
        set_bit(ends[np.int64(high[i]) + 1], i)
    for bucket in range(len(lines)):
        for word in range(LINE):
            now[word] = (now[word] & ~ends[bucket, word]) | lines[bucket, word]
            lines[bucket, word] = now[word]


@compiled
def set_sides(sieve: Sieve, t: int, block: int) -> None:
    """Say which sets of points a block must look at, from the buckets of its boxes."""
    used = 1
    for axis in range(sieve.size[t]):
        low, high = np.int64(sieve.low[block, axis]), np.int64(sieve.high[block, axis])
        if low > 0:
            sieve.sides[block, used] = 2 * (sieve.offset[t, axis] + low) - 1
            used += 1
        if high < sieve.buckets[t, axis] - 1:
            sieve.sides[block, used] = 2 * (sieve.offset[t, axis] + high)
            used += 1
    sieve.side_count[block] = used
