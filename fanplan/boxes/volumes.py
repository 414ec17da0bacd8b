"""Unions of boxes, exact in any dimension: their volume, and whether they hold another box."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled

FEW = 48
"""Boxes whose union is found by clipping; space is cut until no part has more."""


@compiled
def union_volume(lo: Floats, hi: Floats) -> float:
    """Volume that half-open boxes fill together: one row per box, one column per axis.

    Without axes every box is 1.
    """
    return volume_of(lo, hi, _by_size(lo, hi))


@compiled
def _by_size(lo: Floats, hi: Floats) -> Longs:
    """Boxes from the largest to the smallest."""
    size = np.empty(len(lo))
    for row in range(len(lo)):
        size[row] = _volume(lo, hi, row)
    return np.argsort(-size)


@compiled
def volume_of(lo: Floats, hi: Floats, rows: Longs) -> float:
    """Volume that some boxes fill together; quicker if the large ones come first.

    Cuts space until a part has few boxes, or slabs only, which reach through it on all axes but
    one (Overmars & Yap 1991; the choice of cuts is ours). About O(n^(d/2)) for n boxes with d
    axes that do not lie within each other.
    """
    kept = np.empty(len(rows), np.int64)
    count = 0
    for row in rows:
        if not _is_hidden(lo, hi, kept[:count], row):
            kept[count] = row
            count += 1
    return union_of_largest(lo, hi, kept[:count])


@compiled
def union_of_largest(lo: Floats, hi: Floats, rows: Longs) -> float:
    """The same for boxes of which none lies within another."""
    if len(rows) <= FEW:
        return _few(lo, hi, rows)
    low, high = lo[rows[0]].copy(), hi[rows[0]].copy()
    for row in rows[1:]:
        low, high = np.minimum(low, lo[row]), np.maximum(high, hi[row])
    return _filled_part(lo, hi, rows, low, high)


@compiled
def _is_hidden(lo: Floats, hi: Floats, others: Longs, row: int) -> bool:
    """Whether a box is empty or lies within another."""
    for k in range(lo.shape[1]):
        if lo[row, k] >= hi[row, k]:
            return True
    held, at = False, 0
    while not held and at < len(others):
        held = holds(lo, hi, others[at], row)
        at += 1
    return held


@compiled
def _filled_part(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> float:
    """Volume of the part from ``low`` to ``high`` that boxes fill."""
    inside = np.empty(len(rows), np.int64)
    count = 0
    for row in rows:
        reach = _reach(lo, hi, row, low, high)
        if reach == 0:
            return float(np.prod(high - low))
        if reach > 0:
            inside[count] = row
            count += 1
    inside = _largest(lo, hi, inside[:count], low, high)
    if len(inside) <= FEW:
        low_ends, high_ends = np.maximum(lo[inside], low), np.minimum(hi[inside], high)
        return _few(low_ends, high_ends, _by_size(low_ends, high_ends))
    axis, at = _cut(lo, hi, inside, low, high)
    if axis < 0:
        return _slabs(lo, hi, inside, low, high)
    middle_low, middle_high = low.copy(), high.copy()
    middle_high[axis] = middle_low[axis] = at
    left = _filled_part(lo, hi, inside, low, middle_high)
    return left + _filled_part(lo, hi, inside, middle_low, high)


@compiled
def _reach(lo: Floats, hi: Floats, row: int, low: Floats, high: Floats) -> int:
    """Number of axes on which a box does not reach through a part; −1 if it lies outside."""
    ends = 0
    for k in range(len(low)):
        if lo[row, k] >= high[k] or hi[row, k] <= low[k]:
            return -1
        ends += lo[row, k] > low[k] or hi[row, k] < high[k]
    return ends


@compiled
def _volume(lo: Floats, hi: Floats, row: int) -> float:
    volume = 1.0
    for k in range(lo.shape[1]):
        volume *= hi[row, k] - lo[row, k]
    return volume


@compiled
def _few(lo: Floats, hi: Floats, rows: Longs) -> float:
    """What a few boxes fill."""
    count = len(rows)
    room_lo = np.empty((count * (count + 1) // 2 + 1, lo.shape[1]))
    room_hi = np.empty_like(room_lo)
    for r in range(count):
        _copy(lo, hi, rows[r], room_lo, room_hi, r)
    return _by_clipping(room_lo, room_hi, count)


@compiled
def _copy(lo: Floats, hi: Floats, row: int, to_lo: Floats, to_hi: Floats, to: int) -> None:
    for k in range(lo.shape[1]):
        to_lo[to, k], to_hi[to, k] = lo[row, k], hi[row, k]


@compiled
def _by_clipping(lo: Floats, hi: Floats, count: int) -> float:
    """Volume that the first ``count`` boxes fill together; the other rows are room.

    Each box adds its volume less what those before it fill of it (While et al. 2012, for corners
    of dominated space). Clipped to it they are a list of their own, one level deeper. With large
    boxes first, most of a list lies within others when it is clipped to a small one.
    """
    first, end, box = np.zeros((3, count + 1), np.int64)
    filled = np.zeros(count + 1)
    level, end[0] = 0, count
    while level > 0 or box[0] < end[0]:
        if box[level] == end[level]:
            level -= 1
            filled[level] -= filled[level + 1]
            continue
        at, start = box[level], first[level]
        box[level] += 1
        filled[level] += _volume(lo, hi, at)
        if at - start == 1:
            filled[level] -= _shared(lo, hi, start, at)
        elif at > start:
            top = end[level]
            for other in range(start, at):
                top = _clip(lo, hi, other, at, end[level], top)
            level += 1
            first[level] = box[level] = end[level - 1]
            end[level], filled[level] = top, 0.0
    result: float = filled[0]
    return result


@compiled
def _shared(lo: Floats, hi: Floats, a: int, b: int) -> float:
    """Volume that two boxes share."""
    volume = 1.0
    for k in range(lo.shape[1]):
        volume *= max(0.0, min(hi[a, k], hi[b, k]) - max(lo[a, k], lo[b, k]))
    return volume


@compiled
def _clip(lo: Floats, hi: Floats, a: int, b: int, first: int, top: int) -> int:
    """Add what a has of b to the list of boxes ``first:top`` unless one holds it; its new end.

    Boxes of the list that lie within the new one are taken out.
    """
    for k in range(lo.shape[1]):
        lo[top, k], hi[top, k] = max(lo[a, k], lo[b, k]), min(hi[a, k], hi[b, k])
        if lo[top, k] >= hi[top, k]:
            return top
    row = first
    while row < top:
        if holds(lo, hi, row, top):
            return top
        if holds(lo, hi, top, row):
            last = top - 1
            _copy(lo, hi, last, lo, hi, row)
            _copy(lo, hi, top, lo, hi, last)
            top = last
        else:
            row += 1
    return top + 1


@compiled
def holds(lo: Floats, hi: Floats, a: int, b: int) -> bool:
    """Whether box b lies within box a."""
    axes, k = lo.shape[1], 0
    while k < axes and lo[a, k] <= lo[b, k] and hi[b, k] <= hi[a, k]:
        k += 1
    result: bool = k == axes
    return result


@compiled
def _largest(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> Longs:
    """The boxes that lie within no other box, as far as a part shows; of equal ones the first."""
    kept = np.empty(len(rows), np.int64)
    count = 0
    for i in range(len(rows)):
        hidden = False
        for j in range(len(rows)):
            if i != j and _within_part(lo, hi, rows[i], rows[j], low, high):
                hidden = j < i or not _within_part(lo, hi, rows[j], rows[i], low, high)
                if hidden:
                    break
        if not hidden:
            kept[count] = rows[i]
            count += 1
    return kept[:count]


@compiled
def _within_part(lo: Floats, hi: Floats, a: int, b: int, low: Floats, high: Floats) -> bool:
    for k in range(len(low)):
        if max(lo[a, k], low[k]) < lo[b, k] or min(hi[a, k], high[k]) > hi[b, k]:
            return False
    return True


@compiled
def _cut(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> tuple[int, float]:
    """The axis with most ends of boxes that are no slabs, and the middle one; −1 if all are."""
    count = np.zeros(len(low), np.int64)
    ends = np.empty((len(low), 2 * len(rows)))
    for row in rows:
        if _reach(lo, hi, row, low, high) > 1:
            for k in range(len(low)):
                for end in (lo[row, k], hi[row, k]):
                    if low[k] < end < high[k]:
                        ends[k, count[k]] = end
                        count[k] += 1
    if count.sum() == 0:
        return -1, 0.0
    axis = int(np.argmax(count))
    middle: float = np.sort(ends[axis, : count[axis]])[count[axis] // 2]
    return axis, middle


@compiled
def _slabs(lo: Floats, hi: Floats, rows: Longs, low: Floats, high: Floats) -> float:
    """What slabs fill: all but the product of the lengths that they leave free on each axis."""
    free = 1.0
    for k in range(len(low)):
        here = np.array([r for r in rows if lo[r, k] > low[k] or hi[r, k] < high[k]], np.int64)
        left, reached = 0.0, low[k]
        for r in here[np.argsort(np.array([lo[r, k] for r in here], np.float64))]:
            left += max(0.0, lo[r, k] - reached)
            reached = max(reached, hi[r, k])
        free *= left + max(0.0, high[k] - reached)
    return float(np.prod(high - low)) - free


@compiled
def union_holds(low: Floats, high: Floats, lo: Floats, hi: Floats) -> bool:
    """Whether every point of [low, high) lies in one of the boxes, of which each line is one.

    Only coordinates are compared. What the first box leaves is cut into pieces, which the next
    ones must hold. It ends at the first piece that no box meets.
    """
    axes = len(low)
    rest_lo, rest_hi = np.empty((8, axes)), np.empty((8, axes))
    box = np.zeros(8, np.int64)
    rest_lo[0], rest_hi[0], pieces = low, high, 1
    while pieces:
        pieces -= 1
        piece_lo, piece_hi = rest_lo[pieces].copy(), rest_hi[pieces].copy()
        k = box[pieces]
        while k < len(lo) and not boxes_meet(piece_lo, piece_hi, lo[k], hi[k]):
            k += 1
        if k == len(lo):
            return False
        if pieces + 2 * axes > len(box):
            rest_lo, rest_hi = _doubled(rest_lo, axes), _doubled(rest_hi, axes)
            box = np.append(box, np.zeros(len(rest_lo) - len(box), np.int64))
        for axis in range(axes):
            if piece_lo[axis] < lo[k, axis]:
                rest_lo[pieces], rest_hi[pieces], box[pieces] = piece_lo, piece_hi, k + 1
                rest_hi[pieces, axis] = piece_lo[axis] = lo[k, axis]
                pieces += 1
            if hi[k, axis] < piece_hi[axis]:
                rest_lo[pieces], rest_hi[pieces], box[pieces] = piece_lo, piece_hi, k + 1
                rest_lo[pieces, axis] = piece_hi[axis] = hi[k, axis]
                pieces += 1
    return True


@compiled
def boxes_meet(a_lo: Floats, a_hi: Floats, b_lo: Floats, b_hi: Floats) -> bool:
    axis = 0
    while axis < len(a_lo) and a_lo[axis] < b_hi[axis] and b_lo[axis] < a_hi[axis]:
        axis += 1
    return axis == len(a_lo)


@compiled
def _doubled(rows: Floats, more: int) -> Floats:
    """The same rows with room for at least as many, and more."""
    room = np.empty((2 * len(rows) + 2 * more, rows.shape[1]))
    room[: len(rows)] = rows
    return room
