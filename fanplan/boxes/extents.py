"""Extents: what single subscriptions or advertisements ask for, as boxes, and which of them meet.

The topic is the first axis, on which every box has length 1. So boxes in different topics never
meet, and volumes of several topics add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs, Position
from fanplan.core.kernels import compiled

BLOCK = 128
"""Boxes that are tested together, and blocks that are passed over together."""

SMALLEST = 2.0**-100
"""A side is at least as long: `x = 0` has an interval as long as the least number there is."""

OwnerPairs = tuple[Longs, Longs, Floats]
"""A growing table of values (i, j, value) of pairs of owners."""


@dataclass(frozen=True, eq=False)
class Extents:
    """Sets of disjoint boxes, in the order of their owners.

    Extent ``e`` belongs to broker or client ``owner[e]``, counts ``weight[e]`` times and has the
    boxes ``starts[e]:starts[e + 1]``, rows of ``lo`` and ``hi``; column 0 is the topic, and axes
    that a topic lacks are [0, 1).
    """

    owner: Longs
    weight: Floats
    starts: Longs
    lo: Floats
    hi: Floats

    def __len__(self) -> int:
        return len(self.owner)

    @cached_property
    def volume(self) -> Floats:
        """Volume of each extent; 0 without boxes."""
        sums = np.concatenate(([0.0], np.prod(self.hi - self.lo, axis=1)))
        return np.add.reduceat(np.append(sums[1:], 0.0), self.starts[:-1]) * (
            np.diff(self.starts) > 0
        )

    @cached_property
    def owners(self) -> Longs:
        """The different owners, ascending."""
        return np.unique(self.owner)

    @cached_property
    def place(self) -> Ints:
        """Position of each extent's owner among ``owners``."""
        return np.searchsorted(self.owners, self.owner).astype(np.int32)

    @cached_property
    def sizes(self) -> Floats:
        """Total weight of each of ``owners``: with weights that are counts, |S_j|."""
        return np.bincount(self.place, self.weight, len(self.owners)).astype(np.float64)

    @cached_property
    def index(self) -> Index:
        return index_extents(self)

    @cached_property
    def tiles(self) -> Tiles:
        return make_tiles(self)


def make_extents(
    owner: Any, extent: Any, topic: Any, lo: Any, hi: Any, weight: Any = None
) -> Extents:
    """Extents from their owners and weights (1 if not given) and from boxes.

    ``extent``, ``topic``, ``lo`` and ``hi`` have a row per box, in any order; ``extent`` is a
    position in ``owner``. Boxes of one extent must be disjoint.
    """
    owner, extent = np.asarray(owner, np.int64), np.asarray(extent, np.int64)
    weight = np.ones(len(owner)) if weight is None else np.asarray(weight, np.float64)
    order = np.argsort(owner, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    lines = np.argsort(rank[extent], kind="stable")
    number = np.asarray(topic, np.float64)[lines, None]
    low = np.hstack((number, np.asarray(lo, np.float64)[lines]))
    high = np.hstack((number + 1, np.asarray(hi, np.float64)[lines]))
    counts = np.bincount(rank[extent], minlength=len(owner))
    return Extents(
        owner=owner[order],
        weight=weight[order],
        starts=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        lo=low,
        hi=np.maximum(high, low + SMALLEST),
    )


class Index(NamedTuple):
    """Boxes so ordered that neighbours are near each other, with a row per axis.

    Extents of one box come first. ``place`` and ``volume`` are those of a box's extent,
    ``per_volume`` is weight / volume.
    ``ends`` are, by block and axis, BLOCK low ends and then as many high ends.
    ``hull_*`` are the smallest boxes that hold BLOCK boxes, ``far_*`` those that hold BLOCK hulls;
    ``bounds`` are, by block and axis, the ends of the hull and of what all boxes have in common;
    ``single`` says which blocks have only boxes that are whole extents.
    """

    extent: Ints
    place: Ints
    weight: Floats
    volume: Floats
    per_volume: Floats
    ends: Floats
    single: Bools
    hull_lo: Floats
    hull_hi: Floats
    far_lo: Floats
    far_hi: Floats
    bounds: Floats


def index_extents(extents: Extents) -> Index:
    """The index of the boxes of all extents. O(boxes × log boxes)."""
    counts = np.diff(extents.starts)
    extent = np.repeat(np.arange(len(extents), dtype=np.int32), counts)
    order = near_order(extents.lo, extents.hi)
    order = order[np.argsort(counts[extent[order]] > 1, kind="stable")]
    extent = extent[order]
    lo, hi = (np.ascontiguousarray(side[order].T) for side in (extents.lo, extents.hi))
    hulls = hull(lo, hi)
    several = np.add.reduceat(np.append(counts[extent] > 1, False), block_starts(len(extent)))
    return Index(
        extent,
        extents.place[extent],
        extents.weight[extent],
        extents.volume[extent],
        extents.weight[extent] / extents.volume[extent],
        _ends_by_block(lo, hi),
        several == 0,
        *hulls,
        *hull(*hulls),
        np.stack((*hulls, *hull(hi, lo)[::-1]), axis=-1).transpose(1, 0, 2).ravel(),
    )


def _ends_by_block(lo: Floats, hi: Floats) -> Floats:
    """What a block is compared by lies together; zeros, which nobody reads, fill up the last."""
    sides = np.pad(np.stack((lo, hi), axis=1), ((0, 0), (0, 0), (0, -lo.shape[1] % BLOCK)))
    return sides.reshape(len(lo), 2, -1, BLOCK).transpose(2, 0, 1, 3).ravel()


def block_starts(size: int) -> Longs:
    return np.arange(0, size, BLOCK)


def near_order(lo: Floats, hi: Floats) -> Longs:
    """By topic, by axes on which a box is as wide as any, then along a Z-curve through the ranks
    of the boxes' centres."""
    boxes, axes = lo.shape
    bits = min(16, 62 // max(axes - 1, 1))
    ranks = np.argsort(np.argsort(lo[:, 1:] + hi[:, 1:], axis=0, kind="stable"), axis=0)
    steps = ranks * 2**bits // max(boxes, 1)
    code = np.zeros(boxes, np.int64)
    for bit in reversed(range(bits)):
        for axis in range(axes - 1):
            code = code << 1 | steps[:, axis] >> bit & 1
    return np.lexsort((code, *_wide(lo, hi).T, lo[:, 0]))


def _wide(lo: Floats, hi: Floats) -> Bools:
    """Which axes of a box, but for the topic, reach from end to end of all boxes in its topic."""
    _, topic = np.unique(lo[:, 0], return_inverse=True)
    order, count = np.argsort(topic, kind="stable"), np.bincount(topic)
    if not len(count):
        return np.zeros((0, lo.shape[1] - 1), bool)
    starts = np.cumsum(count) - count
    low = np.minimum.reduceat(lo[order, 1:], starts)[topic]
    high = np.maximum.reduceat(hi[order, 1:], starts)[topic]
    wide: Bools = (lo[:, 1:] == low) & (hi[:, 1:] == high)
    return wide


def hull(lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """The smallest boxes that hold BLOCK neighbours each; a row per axis."""
    starts = block_starts(lo.shape[1])
    if not len(starts):
        return lo, hi
    return np.minimum.reduceat(lo, starts, axis=1), np.maximum.reduceat(hi, starts, axis=1)


class Tiles(NamedTuple):
    """Extents of one box, by owner, in tiles of neighbours: ``extent[starts[t]:starts[t + 1]]``.

    ``lo`` and ``hi`` are the smallest boxes that hold a tile; a row per tile.
    """

    extent: Longs
    starts: Longs
    lo: Floats
    hi: Floats


def make_tiles(extents: Extents) -> Tiles:
    """The extents of one box, at most BLOCK of an owner in a tile."""
    near = extents.index.extent
    near = near[np.diff(extents.starts)[near] == 1]
    extent = near[np.argsort(extents.place[near], kind="stable")].astype(np.int64)
    first = np.flatnonzero(np.diff(extents.place[extent], prepend=-1))
    into = np.arange(len(extent)) - np.repeat(first, np.diff(first, append=len(extent)))
    starts = np.flatnonzero(into % BLOCK == 0)
    box = extents.starts[extent]
    lo, hi = extents.lo[box], extents.hi[box]
    if len(starts):
        lo, hi = np.minimum.reduceat(lo, starts), np.maximum.reduceat(hi, starts)
    return Tiles(extent, np.append(starts, len(extent)).astype(np.int64), lo, hi)


@compiled
def near_blocks(index: Index, lo: Floats, hi: Floats, box: int, blocks: Ints) -> int:
    """List the blocks whose hull meets a box, a row of ``lo`` and ``hi``; how many they are.

    Rows go by number: to take one out of a table counts references, which takes longer than a hull.
    """
    count = 0
    for far in range(index.far_lo.shape[1]):
        if hull_meets(index.far_lo, index.far_hi, far, lo, hi, box):
            for block in range(far * BLOCK, min((far + 1) * BLOCK, index.hull_lo.shape[1])):
                if hull_meets(index.hull_lo, index.hull_hi, block, lo, hi, box):
                    blocks[count] = block
                    count += 1
    return count


@compiled
def hull_meets(hull_lo: Floats, hull_hi: Floats, at: int, lo: Floats, hi: Floats, box: int) -> bool:
    for axis in range(lo.shape[1]):
        if hull_lo[axis, at] >= hi[box, axis] or hull_hi[axis, at] <= lo[box, axis]:
            return False
    return True


@compiled
def shared_volumes(
    ends: Floats, bounds: Floats, block: int, lo: Floats, hi: Floats, box: int, part: Floats
) -> float:
    """Volumes that a box shares with those of a block: ``part`` times the result.

    Loops for vector units. An axis on which all of a block reach beyond the box is one factor, and
    one on which all lie within it needs no comparison: most subscriptions leave axes open. Few
    arrays are handed over: to copy all of an index takes longer than to compare a block.
    """
    axes, factor = lo.shape[1], 1.0
    part[:] = 1.0
    for a in range(axes):
        row, low, high = block * axes + a, lo[box, a], hi[box, a]
        if bounds[4 * row + 2] <= low and high <= bounds[4 * row + 3]:
            factor *= high - low
        elif low <= bounds[4 * row] and bounds[4 * row + 1] <= high:
            _widen(ends, row, part)
        else:
            _clip(ends, row, low, high, part)
    return factor


@compiled
def _widen(ends: Floats, row: int, part: Floats) -> None:
    """No slices, and numbers without sign: both would keep the loop from vector units."""
    first, step = np.uint64(2 * BLOCK * row), np.uint64(BLOCK)
    for place in range(BLOCK):
        k = np.uint64(place)
        part[k] *= ends[first + k + step] - ends[first + k]


@compiled
def _clip(ends: Floats, row: int, low: float, high: float, part: Floats) -> None:
    first, step = np.uint64(2 * BLOCK * row), np.uint64(BLOCK)
    for place in range(BLOCK):
        k = np.uint64(place)
        part[k] *= _side(ends[first + k], ends[first + k + step], low, high)


@compiled
def _side(a_low: float, a_high: float, b_low: float, b_high: float) -> float:
    """What two intervals share."""
    start = a_low if a_low > b_low else b_low
    end = a_high if a_high < b_high else b_high
    side = end - start
    return side if side > 0.0 else 0.0


@compiled
def start_pairs() -> OwnerPairs:
    """An empty table."""
    return np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)


@compiled
def append_row(sums: Floats, i: int, out: OwnerPairs, used: int) -> tuple[OwnerPairs, int]:
    """Write the sums of owner i behind ``used`` entries of a table, and clear them."""
    left, right, value = out
    count = used + np.count_nonzero(sums)
    if count > len(left):
        left, right = _grown(left, used, 2 * count), _grown(right, used, 2 * count)
        value = _grown(value, used, 2 * count)
    for j in range(len(sums)):
        if sums[j] != 0.0:
            left[used], right[used], value[used] = i, j, sums[j]
            used += 1
    sums[:] = 0.0
    return (left, right, value), used


@compiled
def _grown(old: np.ndarray, used: int, size: Position) -> np.ndarray:
    new = np.empty(size, old.dtype)
    new[:used] = old[:used]
    return new
