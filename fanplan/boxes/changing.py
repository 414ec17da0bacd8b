"""Boxes that come and go and are matched in between: a sieve for each topic, changed in place.

A box that comes goes into the block that grows least by it; a block that is full is divided first,
like a node of an R-tree (Guttman 1984). A box that goes leaves a free place: one bit is cleared.
Buckets and blocks suit the boxes that were there when a topic was laid out, so it is laid out again
once it has twice as many, or half. A change takes the same time on average however many there were,
and the answers are at any time those of a new index.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fanplan.boxes.sieve import (
    BLOCK,
    Sieve,
    bucket_numbers,
    fill_block,
    lines_of,
    make_sieve,
    set_sides,
    sort_by_place,
    telling_axis,
)
from fanplan.boxes.sifted import find_sifted
from fanplan.core.arrays import Bytes, Floats, Longs, Words
from fanplan.core.bits import LINE, clear_bit, lowest_bit, set_bit
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled

T = TypeVar("T", bound=np.generic)

NOBODY = -1
"""At a place: no box."""

FILLED = BLOCK * 7 // 8
"""Boxes in a block of a topic that was laid out; the other places are for those that come."""


class ChangingBoxes:
    """Boxes of topics, each with a number of the caller's; a topic is whatever it is called.

    A box holds what is at or above its low end and below its high end on all axes of its topic.
    """

    def __init__(self) -> None:
        self._topics: dict[Hashable, _Topic] = {}
        self._topic_of: dict[int, Hashable | None] = {}

    def __len__(self) -> int:
        return len(self._topic_of)

    def add(self, boxes: Iterable[int], topic: Hashable, lo: Floats, hi: Floats) -> None:
        """Add boxes of a topic, given as rows of their low and high ends."""
        numbers = np.fromiter(boxes, np.int64)
        self._check(numbers, topic, lo)
        # An empty box holds no point. It is only remembered, so that it can be removed.
        empty = ~(lo < hi).all(axis=1)
        self._topic_of.update(dict.fromkeys(numbers[empty].tolist()))
        numbers, lo, hi = numbers[~empty], lo[~empty], hi[~empty]
        self._topic_of.update(dict.fromkeys(numbers.tolist(), topic))
        if topic in self._topics:
            self._topics[topic].add(numbers, lo, hi)
        elif len(numbers):
            self._topics[topic] = _Topic.laid_out(numbers, lo, hi)

    def _check(self, numbers: Longs, topic: Hashable, lo: Floats) -> None:
        """Numbers must be new, and a topic has its axes."""
        values, counts = np.unique(numbers, return_counts=True)
        again = [*values[counts > 1].tolist(), *(b for b in values.tolist() if b in self._topic_of)]
        if again:
            problem = Problem(f"box {again[0]}", "it is already there", "Give another number")
            raise InputError(problem)
        axes = self._topics[topic].axes if topic in self._topics else lo.shape[1]
        if axes != lo.shape[1]:
            what = f"its boxes have {axes} axes, not {lo.shape[1]}"
            raise InputError(Problem(f"topic {topic}", what, "Give boxes with these axes"))

    def remove(self, box: int) -> None:
        """Remove a box."""
        if box not in self._topic_of:
            raise InputError(Problem(f"box {box}", "it is not there", "Give one that was added"))
        topic = self._topic_of.pop(box)
        if topic is not None:
            self._topics[topic].remove(box)
            if not self._topics[topic].place:
                del self._topics[topic]

    def find(self, topic: Hashable, x: Floats) -> tuple[Longs, Longs]:
        """Numbers of the boxes that hold each point of a topic, ascending: (offsets, boxes)."""
        if topic not in self._topics:
            return np.zeros(len(x) + 1, np.int64), np.empty(0, np.int64)
        return self._topics[topic].find(x)


@dataclass
class _Topic:
    """The sieve of one topic, and who is at which place in it.

    Block b has the places from b · BLOCK on. ``laid_out_for`` boxes were there at first.
    """

    sieve: Sieve
    box: Longs
    place: dict[int, int]
    laid_out_for: int

    @classmethod
    def laid_out(cls, boxes: Longs, lo: Floats, hi: Floats) -> _Topic:
        bounds, size = np.array([0, len(boxes)]), np.array([lo.shape[1]], np.int32)
        sieve, order = make_sieve(lo, hi, bounds, size, FILLED)
        # Boxes that come later may reach further than those that are there. The outer steps are
        # wider by that, so that no box that ended with one holds all of it any longer.
        first = sieve.first_edge[0]
        sieve.edges[first], sieve.edges[first + sieve.steps[0]] = -np.inf, np.inf
        _, _, within = numbers_in(sieve, sieve.lo, sieve.hi)
        sieve = sieve._replace(within=within)
        block, place = np.divmod(np.arange(len(boxes)), FILLED)
        place += BLOCK * block
        where = dict(zip(boxes[order].tolist(), place.tolist(), strict=True))
        rows = int(place[-1]) + 1
        sieve = with_room(sieve, int(sieve.first_block[1]), rows, place)
        return cls(sieve, spread(boxes[order], rows, place, NOBODY), where, len(boxes))

    @property
    def axes(self) -> int:
        return int(self.sieve.size[0])

    @property
    def blocks(self) -> int:
        return int(self.sieve.first_block[1])

    def find(self, x: Floats) -> tuple[Longs, Longs]:
        points = np.ascontiguousarray(x, np.float64)
        _, offsets, places = find_sifted(self.sieve, np.zeros(len(points), np.int64), points)
        boxes, rows = self.box[places], np.repeat(np.arange(len(points)), np.diff(offsets))
        return offsets, boxes[np.lexsort((boxes, rows))]

    def add(self, boxes: Longs, lo: Floats, hi: Floats) -> None:
        if len(self.place) + len(boxes) > 2 * self.laid_out_for:
            self._lay_out(boxes, lo, hi)
            return
        low, high, within = numbers_in(self.sieve, lo, hi)
        for i in range(len(boxes)):
            place = self._put(int(boxes[i]), low[i], high[i])
            self.sieve.lo[place], self.sieve.hi[place] = lo[i], hi[i]
            self.sieve.within[place] = within[i]

    def _put(self, box: int, low: Bytes, high: Bytes) -> int:
        """Give a box with these buckets a place."""
        block = best_block(self.sieve, low, high)
        while (place := free_place(self.sieve, block)) < 0:
            self._divide(block)
            block = best_block(self.sieve, low, high)
        self._make_room(self.blocks)
        put_box(self.sieve, block, place, low, high)
        self.box[place], self.place[box] = box, place
        return place

    def _divide(self, block: int) -> None:
        """Move half of the boxes of a block to a new one."""
        new = self.blocks
        self._make_room(new + 1)
        self.sieve.first_block[1] = new + 1
        order = divide_block(self.sieve, block, new)
        half = BLOCK // 2
        boxes = self.box[block * BLOCK : (block + 1) * BLOCK][order]
        for first, part in ((block * BLOCK, boxes[:half]), (new * BLOCK, boxes[half:])):
            self.box[first : first + BLOCK] = NOBODY
            self.box[first : first + half] = part
            self.place.update(zip(part.tolist(), range(first, first + half), strict=True))

    def _make_room(self, blocks: int) -> None:
        """Have arrays for so many blocks, and some to spare."""
        rows = BLOCK * blocks
        if blocks == 1:
            # A topic with few boxes stays small: it is laid out again before it has twice as many.
            rows = min(BLOCK, 2 * self.laid_out_for)
        if rows > len(self.box):
            more = 1 + blocks // 4 if blocks > 1 else 0
            rows, place = rows + BLOCK * more, np.arange(len(self.box))
            self.sieve = with_room(self.sieve, blocks + more, rows, place)
            self.box = spread(self.box, rows, place, NOBODY)

    def remove(self, box: int) -> None:
        place = self.place.pop(box)
        self.box[place] = NOBODY
        clear_bit(self.sieve.bits[place // BLOCK], place % BLOCK)
        if BLOCK < 2 * len(self.place) < self.laid_out_for:
            none = np.empty((0, self.axes))
            self._lay_out(np.empty(0, np.int64), none, none)

    def _lay_out(self, boxes: Longs, lo: Floats, hi: Floats) -> None:
        """Choose buckets and blocks anew, for the boxes that are there and for these."""
        there = np.flatnonzero(self.box != NOBODY)
        new = _Topic.laid_out(
            np.concatenate((self.box[there], boxes)),
            np.concatenate((self.sieve.lo[there], lo)),
            np.concatenate((self.sieve.hi[there], hi)),
        )
        self.__dict__.update(new.__dict__)


def with_room(sieve: Sieve, blocks: int, rows: int, place: Longs) -> Sieve:
    """The sieve of one topic with room for so many blocks and rows, its boxes at these places."""
    starts, old = np.arange(blocks + 1), np.arange(len(sieve.low))
    wider = {
        name: spread(getattr(sieve, name), blocks, old)
        for name in ("low", "high", "sides", "side_count")
    }
    lines, stride = int(sieve.lines[0]), blocks | 1
    bits = np.zeros((lines, stride, LINE), np.uint64)
    bits[:, : len(old)] = sieve.bits.reshape(lines, -1, LINE)[:, : len(old)]
    return sieve._replace(
        first_box=BLOCK * starts,
        stride=np.array([stride]),
        bits=bits.reshape(-1, LINE),
        within=spread(sieve.within, rows, place),
        lo=spread(sieve.lo, rows, place),
        hi=spread(sieve.hi, rows, place),
        **wider,
    )


def spread(values: NDArray[T], rows: int, place: Longs, other: int = 0) -> NDArray[T]:
    """Values at their places in an array of so many rows."""
    result = np.full((rows, *values.shape[1:]), other, values.dtype)
    result[place] = values
    return result


@compiled
def numbers_in(sieve: Sieve, lo: Floats, hi: Floats) -> tuple[Bytes, Bytes, Words]:
    """The numbers of buckets and steps of boxes in the sieve of one topic."""
    return bucket_numbers(
        lo, hi, np.array([0, len(lo)]),
        sieve.size, sieve.edges, sieve.first_edge, sieve.steps, sieve.buckets,
    )  # fmt: skip


@compiled
def best_block(sieve: Sieve, low: Bytes, high: Bytes) -> int:
    """The block whose volume in buckets, and so the share of points, grows least by a box."""
    best, least = 0, np.inf
    for block in range(sieve.first_block[1]):
        before, after = 1.0, 1.0
        for axis in range(len(low)):
            a, b = sieve.low[block, axis], sieve.high[block, axis]
            before *= np.float64(b) - a + 1.0
            after *= np.float64(max(b, high[axis])) - min(a, low[axis]) + 1.0
        if after - before < least:
            best, least = block, after - before
    return best


@compiled
def free_place(sieve: Sieve, block: int) -> int:
    """The first free place in a block, −1 if it is full."""
    for word in range(LINE):
        free = ~sieve.bits[block, word]
        if free != 0:
            return int(BLOCK * block + 64 * word + lowest_bit(free))
    return -1


@compiled
def put_box(sieve: Sieve, block: int, place: int, low: Bytes, high: Bytes) -> None:
    """Put a box with these buckets at a place, of which a box that was there may have left bits."""
    bit, lines = place % BLOCK, lines_of(sieve, 0, block)
    set_bit(lines[0], bit)
    for axis in range(len(low)):
        sieve.low[block, axis] = min(sieve.low[block, axis], low[axis])
        sieve.high[block, axis] = max(sieve.high[block, axis], high[axis])
        if sieve.buckets[0, axis] > 1:
            for bucket in range(sieve.buckets[0, axis]):
                line = lines[sieve.offset[0, axis] + bucket]
                if low[axis] <= bucket <= high[axis]:
                    set_bit(line, bit)
                else:
                    clear_bit(line, bit)
    set_sides(sieve, 0, block)


@compiled
def divide_block(sieve: Sieve, block: int, new: int) -> Longs:
    """Move half of the boxes of a full block to a new one; the order in which they now stand."""
    first, other, half = BLOCK * block, BLOCK * new, BLOCK // 2
    lo, hi = sieve.lo[first : first + BLOCK].copy(), sieve.hi[first : first + BLOCK].copy()
    low, high, within = numbers_in(sieve, lo, hi)
    order = np.arange(BLOCK)
    axis, widest = telling_axis(low, high, order)
    if axis >= 0:
        sort_by_place(low[:, axis], high[:, axis], order, widest)
    for start, part in ((first, order[:half]), (other, order[half:])):
        sieve.lo[start : start + half], sieve.hi[start : start + half] = lo[part], hi[part]
        sieve.within[start : start + half] = within[part]
        fill_block(sieve, 0, start // BLOCK, low[part], high[part])
    return order
