"""Which extents lie within others, and the volume that those fill together (Tajuddin 2011, 4.1.2).

An extent of one box covers those of its topic that reach beyond it on no side. The extents of an
owner in a topic are looked up side by side: for each side a table says, by the rank of an end,
which of them stay within, a bit for each. What a box covers is then what all tables agree on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.boxes.extents import Extents, OwnerPairs, append_row, start_pairs
from fanplan.boxes.volumes import volume_of
from fanplan.core.arrays import Floats, Ints, Longs, Words
from fanplan.core.bits import has_bit, mix, set_bit
from fanplan.core.kernels import compiled

Known = dict[tuple[np.uint64, np.uint64], float]

SLACK = 1e-12
"""Share of a side that may lie outside: open and closed ends differ by one float."""

WORDS = 4
GROUP = 64 * WORDS
"""Extents in one table: as many as fit into a few machine words."""


BATCH = 4096
"""Coverers that are ranked together: their ranks stay in a core's cache."""


class Coverers(NamedTuple):
    """Extents of one box, by topic and owner.

    ``ends`` has a row for the low ends of each axis and for the negative high ends. ``order``
    sorts each of them within the batches ``batches[b]:batches[b + 1]``, of ``topic[b]``.
    ``per_volume`` is weight / volume.
    """

    topic: Floats
    place: Ints
    per_volume: Floats
    ends: Floats
    order: Longs
    batches: Longs


class CoveredExtents(NamedTuple):
    """Extents that lie in one topic, by owner, topic and descending volume.

    Those of an owner in a topic are a set: rows ``starts[s]:starts[s + 1]``. ``steps[e]`` are the
    ends e of each group of a set, ascending; ``within[e, start + group + rank]`` are the extents
    of the group but for the ``rank`` first by that end. The boxes of row r are
    ``lo[first[r]:first[r + 1]]``.
    """

    topic: Floats
    place: Ints
    starts: Longs
    groups: Longs
    steps: Floats
    within: Words
    weight: Floats
    first: Longs
    lo: Floats
    hi: Floats


def coverers(extents: Extents) -> Coverers:
    """The extents of one box."""
    single = np.flatnonzero(np.diff(extents.starts) == 1)
    box = extents.starts[single]
    order = np.argsort(extents.lo[box, 0], kind="stable")
    single, box = single[order], box[order]
    ends = np.vstack((extents.lo[box, 1:].T, -extents.hi[box, 1:].T))
    topic = extents.lo[box, 0]
    batches = _batches(topic)
    return Coverers(
        topic[batches[:-1]],
        extents.place[single],
        extents.weight[single] / extents.volume[single],
        ends,
        _orders(ends, batches),
        batches,
    )


def _batches(topic: Floats) -> Longs:
    """Where batches begin: at a new topic, and after BATCH extents."""
    first = np.flatnonzero(np.diff(topic, prepend=-1))
    into = np.arange(len(topic)) - np.repeat(first, np.diff(first, append=len(topic)))
    return np.append(np.flatnonzero(into % BATCH == 0), len(topic)).astype(np.int64)


@compiled
def _orders(ends: Floats, batches: Longs) -> Longs:
    order = np.empty(ends.shape, np.int64)
    for side in range(len(ends)):
        for batch in range(len(batches) - 1):
            first, last = batches[batch], batches[batch + 1]
            order[side, first:last] = first + np.argsort(ends[side, first:last])
    return order


def covered_extents(extents: Extents) -> CoveredExtents:
    """The extents that lie in one topic, with their tables. 64 bytes for each and side."""
    some = np.flatnonzero(np.diff(extents.starts) > 0)
    lo = np.minimum.reduceat(extents.lo, extents.starts[some]) if len(some) else extents.lo
    hi = np.maximum.reduceat(extents.hi, extents.starts[some]) if len(some) else extents.hi
    keep = hi[:, 0] - lo[:, 0] == 1
    rows, lo, hi = some[keep], lo[keep], hi[keep]
    order = np.lexsort((-extents.volume[rows], lo[:, 0], extents.place[rows]))
    rows, lo, hi = rows[order], lo[order], hi[order]
    place = extents.place[rows]
    new = np.flatnonzero(np.diff(place, prepend=-1) | (np.diff(lo[:, 0], prepend=-1) != 0))
    starts = np.append(new, len(rows)).astype(np.int64)
    groups = np.concatenate(([0], np.cumsum(-(-np.diff(starts) // GROUP)))).astype(np.int64)
    slack = SLACK * (hi - lo)[:, 1:]
    ends = np.vstack(((lo[:, 1:] + slack).T, (slack - hi[:, 1:]).T))
    steps, within = _tables(ends, starts, groups)
    first, low, high = _boxes(extents, rows)
    return CoveredExtents(
        lo[new, 0],
        place[new],
        starts,
        groups,
        steps,
        within,
        extents.weight[rows],
        first,
        low,
        high,
    )


def _boxes(extents: Extents, rows: Longs) -> tuple[Longs, Floats, Floats]:
    """The boxes of some extents, in their order."""
    counts = np.diff(extents.starts)[rows]
    first = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    at = np.arange(first[-1]) + np.repeat(extents.starts[rows] - first[:-1], counts)
    return first, extents.lo[at, 1:], extents.hi[at, 1:]


@compiled
def _tables(ends: Floats, starts: Longs, groups: Longs) -> tuple[Floats, Words]:
    """Ends of each group in ascending order, and who is left beyond each of them."""
    sides, count = ends.shape
    steps = np.empty((sides, count))
    within = np.zeros((sides, count + groups[-1], WORDS), np.uint64)
    for s in range(len(starts) - 1):
        for group in range(groups[s], groups[s + 1]):
            first = starts[s] + GROUP * (group - groups[s])
            size = min(GROUP, starts[s + 1] - first)
            for side in range(sides):
                order = np.argsort(ends[side, first : first + size])
                for rank in range(size - 1, -1, -1):
                    row = order[rank]
                    steps[side, first + rank] = ends[side, first + row]
                    at = first + group + rank
                    within[side, at] = within[side, at + 1]
                    set_bit(within[side, at], row)
    return steps, within


@compiled
def no_volumes() -> Known:
    """Values by the signature of a set of extents: none yet."""
    known = {(np.uint64(0), np.uint64(0)): 0.0}
    return known


@compiled
def cover_sums(x: Coverers, y: CoveredExtents, owners: int, sizes: Floats) -> OwnerPairs:
    """Sums over extents x of one box of Eq. 4.3, by pairs of owners: i, j, value.

    Time is proportional to the pairs of an x and a set in its topic, and to the different sets of
    covered extents, of which each needs a union.
    """
    ranks = np.empty((len(x.ends), BATCH), np.int64)
    marks = np.empty((BATCH, _most_groups(y.groups), WORDS), np.uint64)
    sums = np.zeros(owners)
    out, used = start_pairs(), 0
    for s in range(len(y.place)):
        known = no_volumes()
        first = np.searchsorted(x.topic, y.topic[s])
        for batch in range(first, np.searchsorted(x.topic, y.topic[s] + 1)):
            _mark(x, batch, y, s, ranks, marks)
            for e in range(x.batches[batch], x.batches[batch + 1]):
                value = _known_value(y, s, marks[e - x.batches[batch]], known)
                sums[x.place[e]] += x.per_volume[e] * value / sizes[y.place[s]]
        if s + 1 == len(y.place) or y.place[s + 1] != y.place[s]:
            out, used = append_row(sums, y.place[s], out, used)
    return out[1][:used], out[0][:used], out[2][:used]


@compiled
def _most_groups(groups: Longs) -> int:
    most = 1
    for s in range(len(groups) - 1):
        most = max(most, groups[s + 1] - groups[s])
    return most


@compiled
def _mark(x: Coverers, batch: int, y: CoveredExtents, s: int, ranks: Longs, marks: Words) -> None:
    """Mark the extents of a set that each coverer of a batch holds."""
    start = x.batches[batch]
    count = x.batches[batch + 1] - start
    for g in range(y.groups[s + 1] - y.groups[s]):
        first = y.starts[s] + GROUP * g
        last = min(first + GROUP, y.starts[s + 1])
        row = first + y.groups[s] + g
        for side in range(len(x.ends)):
            steps, order = y.steps[side, first:last], x.order[side, start : start + count]
            _rank(x.ends[side], order, start, steps, ranks[side])
        for e in range(count):
            for word in range(WORDS):
                marks[e, g, word] = y.within[0, row + ranks[0, e], word]
            for side in range(1, len(x.ends)):
                if ranks[side, e] > 0:
                    for word in range(WORDS):
                        marks[e, g, word] &= y.within[side, row + ranks[side, e], word]


@compiled
def _rank(ends: Floats, order: Longs, start: int, steps: Floats, ranks: Longs) -> None:
    """How many of some ascending steps lie below each end: both are passed through once."""
    rank = 0
    for e in order:
        while rank < len(steps) and steps[rank] < ends[e]:
            rank += 1
        ranks[e - start] = rank


@compiled
def _known_value(y: CoveredExtents, s: int, marks: Words, known: Known) -> float:
    """Merged volume times number of the marked extents; the same sets come again and again."""
    words = marks.ravel()[: (y.starts[s + 1] - y.starts[s] + 63) // 64]
    if not np.any(words):
        return 0.0
    key = signature(words, np.uint64(1)), signature(words, np.uint64(2))
    if key in known:
        return known[key]
    value = _covered_value(y, s, marks)
    known[key] = value
    return value


@compiled
def signature(words: Words, seed: np.uint64) -> np.uint64:
    """A hash of a list, chained by the mixing step of SplitMix64 (Steele 2014)."""
    state = seed * np.uint64(0x9E3779B97F4A7C15)
    for word in words:
        state = mix(state + word + np.uint64(0x9E3779B97F4A7C15))
    return state


@compiled
def _covered_value(y: CoveredExtents, s: int, marks: Words) -> float:
    """A_j^x γ of Eq. 4.3: the volume that marked extents fill together, and their number."""
    start, end = y.starts[s], y.starts[s + 1]
    boxes = np.empty(y.first[end] - y.first[start], np.int64)
    count, weight = 0, 0.0
    for row in range(end - start):
        if has_bit(marks[row // GROUP], row % GROUP):
            weight += y.weight[start + row]
            for box in range(y.first[start + row], y.first[start + row + 1]):
                boxes[count] = box
                count += 1
    return weight * volume_of(y.lo, y.hi, boxes[:count])
