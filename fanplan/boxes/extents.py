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
    ``hull_*`` are the smallest boxes that hold BLOCK boxes, ``far_*`` those that hold BLOCK hulls;
    ``single`` says which blocks have only boxes that are whole extents.
    """

    extent: Ints
    place: Ints
    weight: Floats
    volume: Floats
    per_volume: Floats
    lo: Floats
    hi: Floats
    single: Bools
    hull_lo: Floats
    hull_hi: Floats
    far_lo: Floats
    far_hi: Floats


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
        lo,
        hi,
        several == 0,
        *hulls,
        *hull(*hulls),
    )


def block_starts(size: int) -> Longs:
    return np.arange(0, size, BLOCK)


def near_order(lo: Floats, hi: Floats) -> Longs:
    """By topic, then along a Z-curve through the ranks of the boxes' centres."""
    boxes, axes = lo.shape
    bits = min(16, 62 // max(axes - 1, 1))
    ranks = np.argsort(np.argsort(lo[:, 1:] + hi[:, 1:], axis=0, kind="stable"), axis=0)
    steps = ranks * 2**bits // max(boxes, 1)
    code = np.zeros(boxes, np.int64)
    for bit in reversed(range(bits)):
        for axis in range(axes - 1):
            code = code << 1 | steps[:, axis] >> bit & 1
    return np.lexsort((code, lo[:, 0]))


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
def near_blocks(index: Index, lo: Floats, hi: Floats, blocks: Ints) -> int:
    """List the blocks whose hull meets a box; returns how many they are."""
    count = 0
    for far in range(index.far_lo.shape[1]):
        if hull_meets(index.far_lo, index.far_hi, far, lo, hi):
            for block in range(far * BLOCK, min((far + 1) * BLOCK, index.hull_lo.shape[1])):
                if hull_meets(index.hull_lo, index.hull_hi, block, lo, hi):
                    blocks[count] = block
                    count += 1
    return count


@compiled
def hull_meets(hull_lo: Floats, hull_hi: Floats, at: int, lo: Floats, hi: Floats) -> bool:
    for axis in range(len(lo)):
        if hull_lo[axis, at] >= hi[axis] or hull_hi[axis, at] <= lo[axis]:
            return False
    return True


@compiled
def shared_volumes(index: Index, block: int, lo: Floats, hi: Floats, part: Floats) -> int:
    """Volumes that a box shares with those of a block: loops for vector units. Their number.

    On an axis where it holds all of them, nothing needs to be clipped.
    """
    first = block * BLOCK
    size: int = min(BLOCK, index.lo.shape[1] - first)
    part[:] = 1.0
    for axis in range(len(lo)):
        low, high = lo[axis], hi[axis]
        lows = index.lo[axis, first : first + size]
        highs = index.hi[axis, first : first + size]
        if low <= index.hull_lo[axis, block] and high >= index.hull_hi[axis, block]:
            if axis > 0:
                for k in range(size):
                    part[k] *= highs[k] - lows[k]
            continue
        for k in range(size):
            start = lows[k] if lows[k] > low else low
            end = highs[k] if highs[k] < high else high
            side = end - start
            part[k] *= side if side > 0.0 else 0.0
    return size


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
