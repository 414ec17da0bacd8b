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
from fanplan.boxes.volumes import added_volume, holds, union_of_largest, volume_of
from fanplan.core.arrays import NONE, Floats, Ints, Longs, Position, Shorts, Words
from fanplan.core.bits import (
    LINE,
    and_lines,
    clear_bit,
    has_bit,
    lowest_bit,
    mix,
    popcount,
    set_bit,
)
from fanplan.core.kernels import compiled

Known = dict[tuple[np.uint64, np.uint64], float]

SLACK = 1e-12
"""Share of a side that may lie outside: open and closed ends differ by one float."""

GROUP = 64 * LINE
"""Extents in one table: as many as a line of words has bits."""

MOST = 8192
"""Boxes of a set up to which it is kept who lies within whom."""

HOLDERS = 4
"""Boxes listed of those that hold one, where sets are larger."""

NEAREST = 16_384
"""Boxes next in volume among which they are looked for."""

BATCH = 4096
"""Coverers that are ranked together: their ranks stay in a core's cache."""


class Coverers(NamedTuple):
    """Extents of one box, by topic and volume.

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
    ends e of each group of a set, ascending. Of as many lines for each end, line ``start + group +
    rank`` of ``within`` has the extents of the group but for the ``rank`` first by that end. The
    boxes of row r are ``lo[first[r]:first[r + 1]]``.
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
    # Small ones first: a set of covered extents then mostly comes after those that lack one of it.
    order = np.lexsort((extents.volume[single], extents.lo[box, 0]))
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
    lines = count + groups[-1]
    within = np.zeros((sides * lines, LINE), np.uint64)
    for s in range(len(starts) - 1):
        for group in range(groups[s], groups[s + 1]):
            first = starts[s] + GROUP * (group - groups[s])
            size = min(GROUP, starts[s + 1] - first)
            for side in range(sides):
                order = np.argsort(ends[side, first : first + size])
                for rank in range(size - 1, -1, -1):
                    row = order[rank]
                    steps[side, first + rank] = ends[side, first + row]
                    at = side * lines + first + group + rank
                    within[at] = within[at + 1]
                    set_bit(within[at], row)
    return steps, within


@compiled
def no_volumes() -> Known:
    """Values by the signature of a set of extents: none yet."""
    known = {(np.uint64(0), np.uint64(0)): 0.0}
    return known


class Room(NamedTuple):
    """Room for a batch of coverers, and for the sets of extents that all of a topic cover.

    Coverer e of a batch covers the extents ``marks[e]`` of an owner in a topic, a set with the
    signature ``one[e]``, ``two[e]`` and the number ``number[e]``; ``lines`` are where the tables
    have its ends. ``new`` are coverers whose sets were not seen before.
    Set n has the signature ``known_one[n]``, ``known_two[n]``, and is found by ``slots``.
    ``boxes`` are some of a set.
    """

    lines: Ints
    marks: Words
    one: Words
    two: Words
    number: Ints
    new: Longs
    slots: Ints
    known_one: Words
    known_two: Words
    volume: Floats
    value: Floats
    boxes: Longs


@compiled
def _room(x: Coverers, y: CoveredExtents) -> Room:
    most = 0
    for topic in y.topic:
        first, last = _batches_of(x, topic)
        most = max(most, x.batches[last] - x.batches[first])
    groups = 1
    for s in range(len(y.place)):
        groups = max(groups, y.groups[s + 1] - y.groups[s])
    return Room(
        np.empty(BATCH * len(x.ends), np.int32),
        np.empty((BATCH, groups * LINE), np.uint64),
        np.empty(BATCH, np.uint64),
        np.empty(BATCH, np.uint64),
        np.empty(BATCH, np.int32),
        np.empty(BATCH, np.int64),
        np.empty(_slots_for(most), np.int32),
        np.empty(most + 1, np.uint64),
        np.empty(most + 1, np.uint64),
        np.empty(most + 1),
        np.empty(most + 1),
        np.empty(GROUP * groups, np.int64),
    )


@compiled
def _batches_of(x: Coverers, topic: float) -> tuple[Position, Position]:
    return np.searchsorted(x.topic, topic), np.searchsorted(x.topic, topic + 1)


@compiled
def _slots_for(sets: int) -> int:
    """A power of two, so that half of the slots stay free."""
    slots = 4
    while slots < 2 * (sets + 1):
        slots *= 2
    return slots


@compiled
def cover_sums(x: Coverers, y: CoveredExtents, owners: int, sizes: Floats) -> OwnerPairs:
    """Sums over extents x of one box of Eq. 4.3, by pairs of owners: i, j, value.

    Time is proportional to the pairs of an x and a set in its topic, and to the different sets of
    covered extents, of which each needs a union.
    """
    room, sums = _room(x, y), np.zeros(owners)
    out, used = start_pairs(), 0
    for s in range(len(y.place)):
        _add_covered(x, y, s, room, sums, sizes[y.place[s]])
        if s + 1 == len(y.place) or y.place[s + 1] != y.place[s]:
            out, used = append_row(sums, y.place[s], out, used)
    return out[1][:used], out[0][:used], out[2][:used]


@compiled
def _add_covered(
    x: Coverers, y: CoveredExtents, s: int, room: Room, sums: Floats, size: float
) -> None:
    """Add what coverers have of one owner in one topic."""
    first, last = _batches_of(x, y.topic[s])
    slots = room.slots[: _slots_for(x.batches[last] - x.batches[first])]
    inside, holders, number, value = _inside(y, s), _holders(y, s), room.number, room.value
    width = (y.starts[s + 1] - y.starts[s] + 63) // 64
    # The first set is the empty one.
    slots[:], slots[0], known = NONE, 0, 1
    room.known_one[0] = room.known_two[0] = 0
    room.volume[0] = value[0] = 0.0
    for batch in range(first, last):
        _mark(x, batch, y, s, room)
        start, count = x.batches[batch], x.batches[batch + 1] - x.batches[batch]
        new = _number_sets(room, slots, count, known, width)
        known += new
        _find_values(y, s, room, slots, (inside, holders), new, width)
        for e in range(count):
            sums[x.place[start + e]] += x.per_volume[start + e] * value[number[e]] / size


@compiled
def _mark(x: Coverers, batch: int, y: CoveredExtents, s: int, room: Room) -> None:
    """Mark the extents of a set that each coverer of a batch holds."""
    start, sides = x.batches[batch], len(x.ends)
    count, lines = x.batches[batch + 1] - start, len(y.within) // sides
    marks, one, two, within, ends = room.marks, room.one, room.two, y.within, room.lines
    one[:], two[:] = 0, 0
    for g in range(y.groups[s + 1] - y.groups[s]):
        first = y.starts[s] + GROUP * g
        last = min(first + GROUP, y.starts[s + 1])
        row = first + y.groups[s] + g
        for side in range(sides):
            _rank(x, side, start, count, y.steps[side, first:last], side * lines, ends)
        for e in range(count):
            held = marks[e, LINE * g : LINE * (g + 1)]
            some = and_lines(within, row, 1, ends, e * sides, sides, held)
            while some != 0:
                place = lowest_bit(some)
                a, b = _part(held[place], LINE * g + place)
                one[e] ^= a
                two[e] ^= b
                some &= some - np.uint64(1)


@compiled
def _rank(
    x: Coverers, side: int, start: int, count: int, steps: Floats, lines: int, found: Ints
) -> None:
    """Lines after how many of some ascending steps lie below each end: both are passed once."""
    rank, sides = 0, len(x.ends)
    for k in range(start, start + count):
        while rank < len(steps) and steps[rank] < x.ends[side, k]:
            rank += 1
        found[x.order[side, k] * sides + side] = lines + rank


@compiled
def _number_sets(room: Room, slots: Ints, count: int, known: int, width: int) -> int:
    """Number the sets of a batch; how many are new, listed from small to large."""
    one, two, marks, number, new = room.one, room.two, room.marks, room.number, room.new
    known_one, known_two = room.known_one, room.known_two
    found, bits = 0, np.empty(count, np.int64)
    for e in range(count):
        slot = _slot(slots, known_one, known_two, one[e], two[e])
        if slots[slot] == NONE:
            slots[slot] = known + found
            known_one[known + found], known_two[known + found] = one[e], two[e]
            bits[found] = 0
            for word in marks[e, :width]:
                bits[found] += popcount(word)
            new[found], found = e, found + 1
        number[e] = slots[slot]
    new[:found] = new[:found][np.argsort(bits[:found])]
    return found


@compiled
def _slot(
    slots: Ints, known_one: Words, known_two: Words, one: np.uint64, two: np.uint64
) -> Position:
    """Where a set is, or would be."""
    mask = np.uint64(len(slots) - 1)
    slot = one & mask
    while slots[slot] != NONE and (known_one[slots[slot]] != one or known_two[slots[slot]] != two):
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@compiled
def _inside(y: CoveredExtents, s: int) -> Words:
    """Which later boxes of a set lie within each; no rows if it is too large, or not of boxes."""
    start, count = y.first[y.starts[s]], y.starts[s + 1] - y.starts[s]
    if count > MOST or not _of_boxes(y, s):
        return np.empty((0, 0), np.uint64)
    inside = np.zeros((count, (count + 63) // 64), np.uint64)
    for a in range(count):
        for b in range(a, count):
            if holds(y.lo, y.hi, start + a, start + b):
                set_bit(inside[a], b)
    return inside


@compiled
def _of_boxes(y: CoveredExtents, s: int) -> bool:
    """Whether all extents of a set are single boxes."""
    size: int = y.starts[s + 1] - y.starts[s]
    return bool(y.first[y.starts[s + 1]] - y.first[y.starts[s]] == size)


@compiled
def _holders(y: CoveredExtents, s: int) -> Ints:
    """For each box of a large set the nearest in volume that hold it; NONE if there are fewer.

    Whoever covers a box mostly covers one of them, which is seen at once.
    """
    start, count = y.first[y.starts[s]], y.starts[s + 1] - y.starts[s]
    if count <= MOST or not _of_boxes(y, s):
        return np.empty((0, 0), np.int32)
    holders = np.full((count, HOLDERS), NONE, np.int32)
    for box in range(count):
        found, other = 0, box - 1
        while found < HOLDERS and other >= max(0, box - NEAREST):
            if holds(y.lo, y.hi, start + other, start + box):
                holders[box, found], found = other, found + 1
            other -= 1
    return holders


@compiled
def signature(rows: Words, row: int, words: int) -> tuple[np.uint64, np.uint64]:
    """A hash of the first words of a row, by the mixing step of SplitMix64 (Steele 2014).

    A word's part does not wait for those before, and zeros have none.
    """
    one, two = np.uint64(0), np.uint64(0)
    for place in range(words):
        a, b = _part(rows[row, place], place)
        one ^= a
        two ^= b
    return one, two


@compiled
def _part(word: np.uint64, place: int) -> tuple[np.uint64, np.uint64]:
    if word == 0:
        return np.uint64(0), np.uint64(0)
    state = mix(word + np.uint64(2 * place + 1) * np.uint64(0x9E3779B97F4A7C15))
    return state, mix(state ^ (word * np.uint64(0xD1B54A32D192ED03)))


@compiled
def _find_values(
    y: CoveredExtents, s: int, room: Room, slots: Ints, tables: tuple[Words, Ints], new: int,
    width: int,
) -> None:  # fmt: skip
    """A_j^x γ of Eq. 4.3: the volume that marked extents fill together, and their number."""
    inside, holders = tables
    for e in room.new[:new]:
        words, n = room.marks[e, :width], room.number[e]
        if len(inside):
            room.volume[n] = _volume(y, s, words, room, slots, n, inside)
        elif len(holders):
            boxes = _not_held(words, holders, room.boxes)
            room.volume[n] = volume_of(y.lo, y.hi, y.first[y.starts[s]] + boxes)
        else:
            room.volume[n] = volume_of(y.lo, y.hi, _boxes_of(y, y.starts[s] + _elements(words)))
        room.value[n] = room.volume[n] * _weight(words, y.weight[y.starts[s] :])


@compiled
def _not_held(words: Words, holders: Ints, boxes: Longs) -> Longs:
    """The boxes of a set without most of those that lie within others."""
    count = 0
    for place in range(len(words)):
        word = words[place]
        while word != 0:
            box, at = 64 * place + lowest_bit(word), 0
            while at < HOLDERS and not (holders[box, at] >= 0 and has_bit(words, holders[box, at])):
                at += 1
            if at == HOLDERS:
                boxes[count], count = box, count + 1
            word &= word - np.uint64(1)
    return boxes[:count]


@compiled
def _weight(words: Words, weight: Floats) -> float:
    """What the elements of a set count together."""
    total = 0.0
    for place in range(len(words)):
        word = words[place]
        while word != 0:
            total += weight[64 * place + lowest_bit(word)]
            word &= word - np.uint64(1)
    return total


@compiled
def _volume(
    y: CoveredExtents, s: int, words: Words, room: Room, slots: Ints, n: int, inside: Words
) -> float:
    """The volume of a set of boxes: that of a known one with one box less, and what this adds."""
    boxes, first = _largest(words, inside), y.first[y.starts[s]]
    for box in boxes[::-1]:
        less = _without(words, box, room, slots, n)
        if less != NONE:
            rest = words.copy()
            clear_bit(rest, box)
            rows = first + np.append(_largest(rest, inside), box)
            volume: float = room.volume[less] + added_volume(y.lo, y.hi, rows)
            return volume
    return union_of_largest(y.lo, y.hi, first + boxes)


@compiled
def _without(words: Words, element: int, room: Room, slots: Ints, n: int) -> Position:
    """The number of a known set that has all of set n but one element, or NONE."""
    place = element >> 6
    one, two = _part(words[place], place)
    a, b = _part(words[place] & ~(np.uint64(1) << np.uint64(element & 63)), place)
    one, two = room.known_one[n] ^ one ^ a, room.known_two[n] ^ two ^ b
    found: Position = slots[_slot(slots, room.known_one, room.known_two, one, two)]
    return found


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
def _elements(words: Words) -> Longs:
    elements, count = np.empty(64 * len(words), np.int64), 0
    for place in range(len(words)):
        word = words[place]
        while word != 0:
            elements[count], count = 64 * place + lowest_bit(word), count + 1
            word &= word - np.uint64(1)
    return elements[:count]


@compiled
def _boxes_of(y: CoveredExtents, rows: Longs) -> Longs:
    return np.array([b for row in rows for b in range(y.first[row], y.first[row + 1])], np.int64)
