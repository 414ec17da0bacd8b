"""Which extents lie within others, and the volume that those fill together (Tajuddin 2011, 4.1.2).

An extent of one box covers those of its topic that reach beyond it on no side. The extents of an
owner in a topic are looked up side by side: for each side a table says, by the rank of an end,
which of them stay within, a bit for each. What a box covers is then what all tables agree on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fanplan.boxes.extents import Extents, OwnerPairs, append_row, start_pairs
from fanplan.boxes.volumes import holds, union_of_largest, volume_of
from fanplan.core.arrays import Floats, Ints, Longs, Shorts, Words
from fanplan.core.bits import lowest_bit, mix, set_bit
from fanplan.core.kernels import compiled

Known = dict[tuple[np.uint64, np.uint64], float]

SLACK = 1e-12
"""Share of a side that may lie outside: open and closed ends differ by one float."""

WORDS = 4
GROUP = 64 * WORDS
"""Extents in one table: as many as fit into a few machine words."""

MOST = 8192
"""Boxes of a set up to which it is kept who lies within whom."""

BATCH = 4096
"""Coverers that are ranked together: their ranks stay in a core's cache."""


class Coverers(NamedTuple):
    """Extents of one box, by topic and owner.

    ``ends`` has a row for the low ends of each axis and for the negative high ends. They ascend
    within the batches ``batches[b]:batches[b + 1]``, of ``topic[b]``; ``order`` are their places in
    the batch.
    ``per_volume`` is weight / volume.
    """

    topic: Floats
    place: Ints
    per_volume: Floats
    ends: Floats
    order: Shorts
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


@lru_cache(maxsize=1)
def coverers(extents: Extents) -> Coverers:
    """The extents of one box. The last are kept: a worker's tasks have the same."""
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
        *_sorted_ends(ends, batches),
        batches,
    )


def _batches(topic: Floats) -> Longs:
    """Where batches begin: at a new topic, and after BATCH extents."""
    first = np.flatnonzero(np.diff(topic, prepend=-1))
    into = np.arange(len(topic)) - np.repeat(first, np.diff(first, append=len(topic)))
    return np.append(np.flatnonzero(into % BATCH == 0), len(topic)).astype(np.int64)


@compiled
def _sorted_ends(ends: Floats, batches: Longs) -> tuple[Floats, Shorts]:
    order = np.empty(ends.shape, np.uint16)
    for side in range(len(ends)):
        for batch in range(len(batches) - 1):
            first, last = batches[batch], batches[batch + 1]
            own = np.argsort(ends[side, first:last])
            order[side, first:last] = own
            ends[side, first:last] = ends[side, first:last][own]
    return ends, order


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
    ranks = np.empty((len(x.ends), BATCH), np.uint16)
    marks = np.empty((BATCH, _most_groups(y.groups) * WORDS), np.uint64)
    sums = np.zeros(owners)
    out, used = start_pairs(), 0
    for s in range(len(y.place)):
        known, inside, words = no_volumes(), _inside(y, s), _words_of(y, s)
        first = np.searchsorted(x.topic, y.topic[s])
        for batch in range(first, np.searchsorted(x.topic, y.topic[s] + 1)):
            _mark(x, batch, y, s, ranks, marks)
            for e in range(x.batches[batch], x.batches[batch + 1]):
                row = e - x.batches[batch]
                key = signature(marks, row, words)
                # Handing over y takes longer than a look-up: only new sets go there.
                if key not in known:
                    known[key] = _covered_value(y, s, marks[row, :words], inside)
                sums[x.place[e]] += x.per_volume[e] * known[key] / sizes[y.place[s]]
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
def _mark(x: Coverers, batch: int, y: CoveredExtents, s: int, ranks: Shorts, marks: Words) -> None:
    """Mark the extents of a set that each coverer of a batch holds."""
    start = x.batches[batch]
    count = x.batches[batch + 1] - start
    for g in range(y.groups[s + 1] - y.groups[s]):
        first = y.starts[s] + GROUP * g
        last = min(first + GROUP, y.starts[s + 1])
        row = first + y.groups[s] + g
        for side in range(len(x.ends)):
            _rank(x, side, start, count, y.steps[side, first:last], ranks[side])
        for e in range(count):
            for word in range(WORDS):
                marks[e, WORDS * g + word] = y.within[0, row + ranks[0, e], word]
            for side in range(1, len(x.ends)):
                for word in range(WORDS):
                    marks[e, WORDS * g + word] &= y.within[side, row + ranks[side, e], word]


@compiled
def _rank(x: Coverers, side: int, start: int, count: int, steps: Floats, ranks: Shorts) -> None:
    """How many of some ascending steps lie below each end: both are passed through once."""
    rank = 0
    for k in range(start, start + count):
        while rank < len(steps) and steps[rank] < x.ends[side, k]:
            rank += 1
        ranks[x.order[side, k]] = rank


@compiled
def _inside(y: CoveredExtents, s: int) -> Words:
    """Which later boxes of a set lie within each; no rows if it is too large, or not of boxes."""
    start, count = y.first[y.starts[s]], y.starts[s + 1] - y.starts[s]
    if count > MOST or y.first[y.starts[s + 1]] - start != count:
        return np.empty((0, 0), np.uint64)
    inside = np.zeros((count, (count + 63) // 64), np.uint64)
    for a in range(count):
        for b in range(a, count):
            if holds(y.lo, y.hi, start + a, start + b):
                set_bit(inside[a], b)
    return inside


@compiled
def _words_of(y: CoveredExtents, s: int) -> int:
    """Words that the marks of a set take."""
    words: int = (y.starts[s + 1] - y.starts[s] + 63) // 64
    return words


@compiled
def signature(rows: Words, row: int, words: int) -> tuple[np.uint64, np.uint64]:
    """A hash of the first words of a row, by the mixing step of SplitMix64 (Steele 2014).

    A word's part does not wait for those before, and zeros have none.
    """
    one, two = np.uint64(0), np.uint64(0)
    for place in range(words):
        word = rows[row, place]
        if word != 0:
            state = mix(word + np.uint64(2 * place + 1) * np.uint64(0x9E3779B97F4A7C15))
            one ^= state
            two ^= mix(state ^ (word * np.uint64(0xD1B54A32D192ED03)))
    return one, two


@compiled
def _covered_value(y: CoveredExtents, s: int, words: Words, inside: Words) -> float:
    """A_j^x γ of Eq. 4.3: the volume that marked extents fill together, and their number."""
    boxes, count, weight = np.empty(64 * len(words), np.int64), 0, 0.0
    for place in range(len(words)):
        word = words[place]
        while word != 0:
            boxes[count], count = 64 * place + lowest_bit(word), count + 1
            word &= word - np.uint64(1)
    for row in boxes[:count]:
        weight += y.weight[y.starts[s] + row]
    if len(inside):
        return weight * union_of_largest(y.lo, y.hi, y.first[y.starts[s]] + _largest(words, inside))
    return weight * volume_of(y.lo, y.hi, _boxes_of(y, y.starts[s] + boxes[:count]))


@compiled
def _largest(words: Words, inside: Words) -> Longs:
    """The boxes of a set that lie within no other."""
    rest, kept, count = words.copy(), np.empty(64 * len(words), np.int64), 0
    for word in range(len(rest)):
        while rest[word] != 0:
            box = 64 * word + lowest_bit(rest[word])
            kept[count], count = box, count + 1
            for other in range(word, len(rest)):
                rest[other] &= ~inside[box, other]
    return kept[:count]


@compiled
def _boxes_of(y: CoveredExtents, rows: Longs) -> Longs:
    return np.array([b for row in rows for b in range(y.first[row], y.first[row + 1])], np.int64)
