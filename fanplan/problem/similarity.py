"""How alike brokers or clients are (Tajuddin 2011, chapter 4), from the boxes they ask for.

Every function takes all extents of the owners that it is about, and returns ``(i, j, value)`` for
the pairs of owners that have something in common. So the owners may be dealt out to tasks: a pair
of owners belongs to one of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from fanplan.kernels import compiled
from fanplan.problem.extents import BLOCK, Extents, Index, near_blocks, shared_volumes
from fanplan.problem.interest import Floats, Ints, Longs
from fanplan.problem.overlay import Similarity
from fanplan.problem.volumes import union_volume

Pairs = tuple[Longs, Longs, Floats]
Known = dict[tuple[np.uint64, np.uint64], float]

WHOLE = 1.0 - 1e-12
"""Share of an extent that must lie in another to be covered: sums of volumes are not exact."""


def overlap(left: Extents, right: Extents) -> Pairs:
    """Overlap of owners (Eq. 4.2): the sum of α²/(A_x A_y) over all pairs of their extents."""
    return _pairs(left, right, True)


def interest(advertisements: Extents, subscriptions: Extents) -> Pairs:
    """Interest of owners (Eq. 4.7): the sum of α/A_x over advertisements x and subscriptions."""
    return _pairs(advertisements, subscriptions, False)


def cover(left: Extents, right: Extents, known: Known | None = None) -> Pairs:
    """Covering of owners (Eq. 4.5): how far extents of i cover those of j.

    ``known`` remembers merged volumes from call to call, for one and the same ``right``.
    """
    known = no_volumes() if known is None else known
    found = _cover(_arrays(left), _arrays(right), right.index, right.sizes, known)
    return _named(found, left, right)


@compiled
def no_volumes() -> Known:
    """Merged volumes by the signature of a set of extents: none yet."""
    known = {(np.uint64(0), np.uint64(0)): 0.0}
    return known


def _pairs(left: Extents, right: Extents, both: bool) -> Pairs:
    found = _sums(_arrays(left), _arrays(right), right.index, len(right.owners), both)
    return _named(found, left, right)


def _named(found: Pairs, left: Extents, right: Extents) -> Pairs:
    i, j, value = found
    return left.owners[i], right.owners[j], value


class Arrays(NamedTuple):
    """Extents as compiled code takes them."""

    place: Ints
    weight: Floats
    volume: Floats
    starts: Longs
    lo: Floats
    hi: Floats


def _arrays(extents: Extents) -> Arrays:
    return Arrays(
        extents.place,
        extents.weight,
        extents.volume,
        extents.starts,
        extents.lo,
        extents.hi,
    )


class Scratch(NamedTuple):
    """Room for one extent at a time: all of it is zero or unused between two."""

    blocks: Ints
    part: Floats
    shared: Floats
    met: Ints
    sure: Ints


@compiled
def _scratch(y: Arrays, index: Index) -> Scratch:
    return Scratch(
        np.empty(index.hull_lo.shape[1], np.int32),
        np.empty(BLOCK),
        np.zeros(len(y.place)),
        np.empty(len(y.place), np.int32),
        np.empty(len(y.place), np.int32),
    )


@compiled
def _meet(lo: Floats, hi: Floats, index: Index, block: int, room: Scratch, count: int) -> int:
    """Add the volumes shared with the extents of a block, and append those met for the first time.

    Extents may have several boxes, and volumes are summed before they are squared (Eq. 4.1).
    """
    first = block * BLOCK
    for k in range(shared_volumes(index, block, lo, hi, room.part)):
        if room.part[k] > 0.0:
            extent = index.extent[first + k]
            if room.shared[extent] == 0.0:
                room.met[count] = extent
                count += 1
            room.shared[extent] += room.part[k]
    return count


@compiled
def _sums(x: Arrays, y: Arrays, index: Index, owners: int, both: bool) -> Pairs:
    """Sums over extents of α/A_x, and with ``both`` of α/A_x · α/A_y, by pairs of owners."""
    room, sums = _scratch(y, index), np.zeros(owners)
    out, used = _start(), 0
    for e in range(len(x.place)):
        met = 0
        for box in range(x.starts[e], x.starts[e + 1]):
            for b in range(near_blocks(index, x.lo[box], x.hi[box], room.blocks)):
                block = room.blocks[b]
                if index.single[block] and x.starts[e + 1] - x.starts[e] == 1:
                    _add_block(x, e, index, block, room.part, sums, both)
                else:
                    met = _meet(x.lo[box], x.hi[box], index, block, room, met)
        for k in range(met):
            f = room.met[k]
            value = x.weight[e] * y.weight[f] * (room.shared[f] / x.volume[e])
            # Two quotients: the product of two small volumes might vanish.
            sums[y.place[f]] += value * (room.shared[f] / y.volume[f] if both else 1.0)
            room.shared[f] = 0.0
        if e + 1 == len(x.place) or x.place[e + 1] != x.place[e]:
            out, used = _flush(sums, x.place[e], out, used)
    return out[0][:used], out[1][:used], out[2][:used]


@compiled
def _add_block(
    x: Arrays, e: int, index: Index, block: int, part: Floats, sums: Floats, both: bool
) -> None:
    """Add what an extent of one box has in common with a block of such extents."""
    box, first = x.starts[e], block * BLOCK
    size = shared_volumes(index, block, x.lo[box], x.hi[box], part)
    per_volume = x.weight[e] / x.volume[e]
    other = (index.per_volume if both else index.weight)[first : first + size]
    for k in range(size):
        share = part[k] * per_volume
        part[k] = share * (part[k] * other[k] if both else other[k])
    for k in range(size):
        sums[index.place[first + k]] += part[k]


@compiled
def _start() -> Pairs:
    return np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)


@compiled
def _flush(sums: Floats, i: int, out: Pairs, used: int) -> tuple[Pairs, int]:
    """Write the sums of owner i behind ``used`` entries of a growing table, and clear them."""
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
def _grown(old: np.ndarray, used: int, size: int) -> np.ndarray:
    new = np.empty(size, old.dtype)
    new[:used] = old[:used]
    return new


@compiled
def _cover(x: Arrays, y: Arrays, index: Index, sizes: Floats, known: Known) -> Pairs:
    """Sums over extents x of Eq. 4.3, by pairs of owners."""
    room, sums = _scratch(y, index), np.zeros(len(sizes))
    out, used = _start(), 0
    for e in range(len(x.place)):
        covered = _covered(x, e, y, index, room)
        first = 0
        for k in range(1, len(covered) + 1):
            if k < len(covered) and y.place[covered[k]] == y.place[covered[first]]:
                continue
            j = y.place[covered[first]]
            # Eq. 4.3: merged volume of what is covered, times the share of subscriptions covered.
            value = _merged_once(y, covered[first:k], known) / x.volume[e]
            value *= y.weight[covered[first:k]].sum() / sizes[j]
            sums[j] += x.weight[e] * value
            first = k
        if e + 1 == len(x.place) or x.place[e + 1] != x.place[e]:
            out, used = _flush(sums, x.place[e], out, used)
    return out[0][:used], out[1][:used], out[2][:used]


@compiled
def _covered(x: Arrays, e: int, y: Arrays, index: Index, room: Scratch) -> Ints:
    """The extents that extent e covers, ascending, so that an owner's are together."""
    met, sure = 0, 0
    single = x.starts[e + 1] - x.starts[e] == 1
    for box in range(x.starts[e], x.starts[e + 1]):
        for b in range(near_blocks(index, x.lo[box], x.hi[box], room.blocks)):
            block = room.blocks[b]
            if single and index.single[block]:
                sure = _covered_block(x.lo[box], x.hi[box], index, block, room, sure)
            else:
                met = _meet(x.lo[box], x.hi[box], index, block, room, met)
    for k in range(met):
        f = room.met[k]
        if room.shared[f] >= WHOLE * y.volume[f]:
            room.sure[sure] = f
            sure += 1
        room.shared[f] = 0.0
    return np.sort(room.sure[:sure])


@compiled
def _covered_block(
    lo: Floats, hi: Floats, index: Index, block: int, room: Scratch, count: int
) -> int:
    """Append the extents of a block that lie in a box; each extent has one box."""
    first = block * BLOCK
    for k in range(shared_volumes(index, block, lo, hi, room.part)):
        if room.part[k] >= WHOLE * index.volume[first + k]:
            room.sure[count] = index.extent[first + k]
            count += 1
    return count


@compiled
def _merged_once(y: Arrays, extents: Ints, known: Known) -> float:
    """Volume that extents fill together; the same sets come again and again."""
    if len(extents) == 1:
        return y.volume[extents[0]]
    key = _signature(extents, np.uint64(1)), _signature(extents, np.uint64(2))
    if key in known:
        return known[key]
    volume = _merged(y, extents)
    known[key] = volume
    return volume


@compiled
def _signature(extents: Ints, seed: np.uint64) -> np.uint64:
    """A hash of a list: its numbers chained by the mixing step of SplitMix64 (Steele 2014)."""
    state = seed * np.uint64(0x9E3779B97F4A7C15)
    for e in extents:
        state += np.uint64(e) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


@compiled
def _merged(y: Arrays, extents: Ints) -> float:
    """Volume that extents fill together."""
    if len(extents) == 1:
        return y.volume[extents[0]]
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


def broker_similarity(subscriptions: Extents, advertisements: Extents, brokers: int) -> Similarity:
    """All three metrics between brokers, whose numbers are the owners."""
    shape = (brokers, brokers)
    return Similarity(
        overlap=matrix(both_ways(overlap(subscriptions, subscriptions)), shape),
        cover=matrix(apart(cover(subscriptions, subscriptions)), shape),
        interest=matrix(apart(interest(advertisements, subscriptions)), shape),
    )


def client_similarity(
    subscriptions: Extents, advertisements: Extents, subscribers: int, publishers: int
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Interest of publishers in subscribers, and overlap between subscribers.

    Owners are subscribers and publishers. With weights of advertisements that are a publisher's
    shares of its rate, interest is the expected share of its messages that a subscriber wants.
    """
    shares = matrix(interest(advertisements, subscriptions), (publishers, subscribers))
    common = both_ways(overlap(subscriptions, subscriptions))
    return shares, matrix(common, (subscribers, subscribers))


def matrix(pairs: Pairs, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    i, j, value = pairs
    return scipy.sparse.coo_array((value, (i, j)), shape=shape).tocsr()


def apart(pairs: Pairs) -> Pairs:
    """Pairs of different owners."""
    i, j, value = pairs
    return i[i != j], j[i != j], value[i != j]


def both_ways(pairs: Pairs) -> Pairs:
    """Pairs of different owners with one value for both orders, which rounding could tell apart."""
    i, j, value = pairs
    i, j, value = i[i < j], j[i < j], value[i < j]
    return np.append(i, j), np.append(j, i), np.append(value, value)
