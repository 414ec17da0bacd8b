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
from fanplan.problem.extents import Extents, Index, add_shared
from fanplan.problem.interest import Floats, Ints, Longs
from fanplan.problem.overlay import Similarity
from fanplan.problem.volumes import union_volume

Pairs = tuple[Longs, Longs, Floats]

WHOLE = 1.0 - 1e-12
"""Share of an extent that must lie in another to be covered: sums of volumes are not exact."""


def overlap(left: Extents, right: Extents) -> Pairs:
    """Overlap of owners (Eq. 4.2): the sum of α²/(A_x A_y) over all pairs of their extents."""
    return _pairs(left, right, True)


def interest(advertisements: Extents, subscriptions: Extents) -> Pairs:
    """Interest of owners (Eq. 4.7): the sum of α/A_x over advertisements x and subscriptions."""
    return _pairs(advertisements, subscriptions, False)


def cover(left: Extents, right: Extents) -> Pairs:
    """Covering of owners (Eq. 4.5): how far extents of i cover those of j."""
    rows = Rows(np.zeros(len(right.owners)), np.empty(len(right.owners), np.int32))
    found = _cover(_arrays(left), _arrays(right), right.index, right.sizes, rows)
    return _named(found, left, right)


def _pairs(left: Extents, right: Extents, both: bool) -> Pairs:
    rows = Rows(np.zeros(len(right.owners)), np.empty(len(right.owners), np.int32))
    found = _sums(_arrays(left), _arrays(right), right.index, rows, both)
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


class Rows(NamedTuple):
    """Sums of one owner with all others; ``touched`` lists where they are not zero."""

    value: Floats
    touched: Ints


@compiled
def _add(rows: Rows, count: int, j: int, value: float) -> int:
    """Add to the sum with owner j; returns how many are touched now."""
    if rows.value[j] == 0.0:
        rows.touched[count] = j
        count += 1
    rows.value[j] += value
    return count


@compiled
def _flush(rows: Rows, count: int, i: int, out: Pairs, used: int) -> tuple[Pairs, int]:
    """Write the sums of owner i behind ``used`` entries of a growing table, and clear them."""
    left, right, value = out
    if used + count > len(left):
        size = 2 * (used + count)
        left, right = _grown(left, used, size), _grown(right, used, size)
        value = _grown(value, used, size)
    for k in range(count):
        j = rows.touched[k]
        left[used + k], right[used + k], value[used + k] = i, j, rows.value[j]
        rows.value[j] = 0.0
    return (left, right, value), used + count


@compiled
def _grown(old: np.ndarray, used: int, size: int) -> np.ndarray:
    new = np.empty(size, old.dtype)
    new[:used] = old[:used]
    return new


@compiled
def _start() -> tuple[Pairs, int]:
    return (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)), 0


@compiled
def _met(x: Arrays, e: int, index: Index, shared: Floats, met: Ints) -> int:
    """Volumes that an extent shares with those of an index, and the list of those it meets."""
    count = 0
    for box in range(x.starts[e], x.starts[e + 1]):
        count = add_shared(index, x.lo[box], x.hi[box], shared, met, count)
    return count


@compiled
def _sums(x: Arrays, y: Arrays, index: Index, rows: Rows, both: bool) -> Pairs:
    """Sums over extents of α/A_x, and with ``both`` of α/A_x · α/A_y, by pairs of owners."""
    shared, met = np.zeros(len(y.place)), np.empty(len(y.place), np.int32)
    (out, used), touched = _start(), 0
    for e in range(len(x.place)):
        for k in range(_met(x, e, index, shared, met)):
            f = met[k]
            value = x.weight[e] * y.weight[f] * (shared[f] / x.volume[e])
            # Two quotients: the product of two small volumes might vanish.
            value *= shared[f] / y.volume[f] if both else 1.0
            touched = _add(rows, touched, y.place[f], value)
            shared[f] = 0.0
        if e + 1 == len(x.place) or x.place[e + 1] != x.place[e]:
            out, used = _flush(rows, touched, x.place[e], out, used)
            touched = 0
    return out[0][:used], out[1][:used], out[2][:used]


@compiled
def _cover(x: Arrays, y: Arrays, index: Index, sizes: Floats, rows: Rows) -> Pairs:
    """Sums over extents x of Eq. 4.3, by pairs of owners."""
    shared, met = np.zeros(len(y.place)), np.empty(len(y.place), np.int32)
    (out, used), touched = _start(), 0
    for e in range(len(x.place)):
        covered = 0
        for k in range(_met(x, e, index, shared, met)):
            f = met[k]
            if shared[f] >= WHOLE * y.volume[f]:
                met[covered] = f
                covered += 1
            shared[f] = 0.0
        # Extents are in the order of their owners, so sorting brings an owner's together.
        found = np.sort(met[:covered])
        first = 0
        for k in range(1, covered + 1):
            if k < covered and y.place[found[k]] == y.place[found[first]]:
                continue
            j = y.place[found[first]]
            # Eq. 4.3: merged volume of what is covered, times the share of subscriptions covered.
            value = _merged(y, found[first:k]) / x.volume[e]
            value *= y.weight[found[first:k]].sum() / sizes[j]
            touched = _add(rows, touched, j, x.weight[e] * value)
            first = k
        if e + 1 == len(x.place) or x.place[e + 1] != x.place[e]:
            out, used = _flush(rows, touched, x.place[e], out, used)
            touched = 0
    return out[0][:used], out[1][:used], out[2][:used]


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


def broker_similarity(
    subscriptions: Extents, advertisements: Extents, brokers: int
) -> Similarity:
    """All three metrics between brokers, whose numbers are the owners."""
    shape = (brokers, brokers)
    return Similarity(
        overlap=apart(matrix(overlap(subscriptions, subscriptions), shape)),
        cover=apart(matrix(cover(subscriptions, subscriptions), shape)),
        interest=apart(matrix(interest(advertisements, subscriptions), shape)),
    )


def client_similarity(
    subscriptions: Extents, advertisements: Extents, subscribers: int, publishers: int
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Interest of publishers in subscribers, and overlap between subscribers.

    Owners are subscribers and publishers. With weights of advertisements that are a publisher's
    shares of its rate, interest is the expected share of its messages that a subscriber wants.
    """
    shares = matrix(interest(advertisements, subscriptions), (publishers, subscribers))
    common = matrix(overlap(subscriptions, subscriptions), (subscribers, subscribers))
    return shares, apart(common)


def matrix(pairs: Pairs, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    i, j, value = pairs
    return scipy.sparse.coo_array((value, (i, j)), shape=shape).tocsr()


def apart(square: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Without the diagonal."""
    pairs = square.tocoo()
    off = pairs.row != pairs.col
    return matrix((pairs.row[off], pairs.col[off], pairs.data[off]), square.shape)
