"""Sums over pairs of extents that meet: overlap and interest, and covering by several boxes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.boxes.covering import Known, no_volumes, signature
from fanplan.boxes.extents import (
    BLOCK,
    Extents,
    Index,
    OwnerPairs,
    Tiles,
    append_row,
    hull_meets,
    near_blocks,
    shared_volumes,
    start_pairs,
)
from fanplan.boxes.volumes import union_volume
from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled

WHOLE = 1.0 - 1e-12
"""Share of an extent that must lie in another to be covered: sums of volumes are not exact."""


class Arrays(NamedTuple):
    """Extents as compiled code takes them."""

    place: Ints
    weight: Floats
    volume: Floats
    starts: Longs
    lo: Floats
    hi: Floats


def arrays(extents: Extents) -> Arrays:
    return Arrays(
        extents.place,
        extents.weight,
        extents.volume,
        extents.starts,
        extents.lo,
        extents.hi,
    )


class ExtentRoom(NamedTuple):
    """Room for one extent at a time: ``total`` and ``shared`` are zero between two."""

    blocks: Ints
    part: Floats
    total: Floats
    shared: Floats
    met: Ints


@compiled
def _extent_room(y: Arrays, index: Index) -> ExtentRoom:
    return ExtentRoom(
        np.empty(index.hull_lo.shape[1], np.int32),
        np.empty(BLOCK),
        np.zeros(BLOCK),
        np.zeros(len(y.place)),
        np.empty(len(y.place), np.int32),
    )


@compiled
def meeting_sums(
    x: Arrays, tiles: Tiles, y: Arrays, index: Index, owners: int, both: bool
) -> OwnerPairs:
    """Sums over extents of α/A_x, and with ``both`` of α/A_x · α/A_y, by pairs of owners.

    Where both have one box, a tile of one owner is compared with a block, so that the block stays
    in the cache and its extents' sums are added to their owners' once.
    """
    room, sums = _extent_room(y, index), np.zeros(owners)
    out, used, tile = start_pairs(), 0, 0
    simple = np.all(index.single)
    for e in range(len(x.place)):
        while (
            tile + 1 < len(tiles.starts) and x.place[tiles.extent[tiles.starts[tile]]] == x.place[e]
        ):
            _add_tile(x, tiles, tile, index, room, sums, both)
            tile += 1
        if not simple or x.starts[e + 1] - x.starts[e] > 1:
            _add_extent(x, e, y, index, room, sums, both)
        if e + 1 == len(x.place) or x.place[e + 1] != x.place[e]:
            out, used = append_row(sums, x.place[e], out, used)
    return out[0][:used], out[1][:used], out[2][:used]


@compiled
def _add_tile(
    x: Arrays, tiles: Tiles, tile: int, index: Index, room: ExtentRoom, sums: Floats, both: bool
) -> None:
    """Add what extents of one box have in common with others of one box."""
    extents = tiles.extent[tiles.starts[tile] : tiles.starts[tile + 1]]
    hull_lo, hull_hi, bounds = index.hull_lo, index.hull_hi, index.bounds
    part, total = room.part, room.total
    for b in range(near_blocks(index, tiles.lo, tiles.hi, tile, room.blocks)):
        block = room.blocks[b]
        if index.single[block]:
            for e in extents:
                box = x.starts[e]
                if hull_meets(hull_lo, hull_hi, block, x.lo, x.hi, box):
                    factor = shared_volumes(index.ends, bounds, block, x.lo, x.hi, box, part)
                    _add_shares(part, factor, x.weight[e] / x.volume[e], both, total)
            for k in range(min(BLOCK, len(index.place) - block * BLOCK)):
                at = block * BLOCK + k
                per = index.per_volume[at] if both else index.per_volume[at] * index.volume[at]
                sums[index.place[at]] += total[k] * per
            total[:] = 0.0


@compiled
def _add_shares(part: Floats, factor: float, per_volume: float, both: bool, total: Floats) -> None:
    # The product of two small volumes might vanish, so one is divided first.
    each = factor * per_volume
    for k in range(BLOCK):
        share = part[k] * each
        total[k] += share * (part[k] * factor) if both else share


@compiled
def _add_extent(
    x: Arrays, e: int, y: Arrays, index: Index, room: ExtentRoom, sums: Floats, both: bool
) -> None:
    """Add what an extent has in common with those that it meets, unless both have one box."""
    for k in range(_meet(x, e, index, room, x.starts[e + 1] - x.starts[e] == 1)):
        f = room.met[k]
        value = x.weight[e] * y.weight[f] * (room.shared[f] / x.volume[e])
        sums[y.place[f]] += value * (room.shared[f] / y.volume[f] if both else 1.0)
        room.shared[f] = 0.0


@compiled
def _meet(x: Arrays, e: int, index: Index, room: ExtentRoom, several: bool) -> int:
    """List the extents that one meets, with the volumes it shares; returns how many they are.

    Extents may have several boxes, and volumes are summed before they are squared (Eq. 4.1). With
    ``several`` blocks of extents of one box are left out.
    """
    count = 0
    for box in range(x.starts[e], x.starts[e + 1]):
        for b in range(near_blocks(index, x.lo, x.hi, box, room.blocks)):
            block = room.blocks[b]
            if several and index.single[block]:
                continue
            factor = shared_volumes(index.ends, index.bounds, block, x.lo, x.hi, box, room.part)
            for k in range(min(BLOCK, len(index.place) - block * BLOCK)):
                if room.part[k] > 0.0:
                    extent = index.extent[block * BLOCK + k]
                    if room.shared[extent] == 0.0:
                        room.met[count] = extent
                        count += 1
                    room.shared[extent] += room.part[k] * factor
    return count


@compiled
def meeting_cover(x: Arrays, chosen: Longs, y: Arrays, index: Index, sizes: Floats) -> OwnerPairs:
    """Sums over chosen extents x of Eq. 4.3, by pairs of owners."""
    room, sums, known = _extent_room(y, index), np.zeros(len(sizes)), no_volumes()
    out, used = start_pairs(), 0
    for n in range(len(chosen)):
        e = chosen[n]
        covered = _covered_by(x, e, y, index, room)
        first = 0
        for k in range(1, len(covered) + 1):
            if k < len(covered) and y.place[covered[k]] == y.place[covered[first]]:
                continue
            j = y.place[covered[first]]
            # Eq. 4.3: merged volume of what is covered, times the share of subscriptions covered.
            value = _known_volume(y, covered[first:k], known) / x.volume[e]
            value *= y.weight[covered[first:k]].sum() / sizes[j]
            sums[j] += x.weight[e] * value
            first = k
        if n + 1 == len(chosen) or x.place[chosen[n + 1]] != x.place[e]:
            out, used = append_row(sums, x.place[e], out, used)
    return out[0][:used], out[1][:used], out[2][:used]


@compiled
def _covered_by(x: Arrays, e: int, y: Arrays, index: Index, room: ExtentRoom) -> Ints:
    """The extents that extent e covers, ascending, so that an owner's are together."""
    sure = 0
    for k in range(_meet(x, e, index, room, False)):
        f = room.met[k]
        if room.shared[f] >= WHOLE * y.volume[f]:
            room.met[sure] = f
            sure += 1
        room.shared[f] = 0.0
    return np.sort(room.met[:sure])


@compiled
def _known_volume(y: Arrays, extents: Ints, known: Known) -> float:
    """Volume that extents fill together; the same sets come again and again."""
    if len(extents) == 1:
        result: float = y.volume[extents[0]]
        return result
    key = signature(extents.astype(np.uint64).reshape(1, -1), 0, len(extents))
    if key in known:
        return known[key]
    volume = _merged_volume(y, extents)
    known[key] = volume
    return volume


@compiled
def _merged_volume(y: Arrays, extents: Ints) -> float:
    """Volume that extents fill together."""
    boxes = 0
    for e in extents:
        boxes += y.starts[e + 1] - y.starts[e]
    lo, hi = np.empty((boxes, y.lo.shape[1])), np.empty((boxes, y.lo.shape[1]))
    at = 0
    for e in extents:
        for box in range(y.starts[e], y.starts[e + 1]):
            lo[at], hi[at] = y.lo[box], y.hi[box]
            at += 1
    return union_volume(lo, hi)
