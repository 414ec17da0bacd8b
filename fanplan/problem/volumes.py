"""Volumes of unions of boxes, exact in any dimension."""

from __future__ import annotations

import numpy as np

from fanplan.kernels import compiled
from fanplan.problem.interest import Floats, Ints


@compiled
def union_volume(lo: Floats, hi: Floats) -> float:
    """Volume that half-open boxes fill together: one row per box, one column per axis.

    Cuts space until the boxes in a part are slabs, which reach through it on all axes but one
    (Overmars & Yap 1991; the choice of cuts is ours). About O(n^(d/2)) for n boxes with d axes.
    Without axes every box is 1.
    """
    axes = lo.shape[1]
    low, high = np.full(axes, np.inf), np.full(axes, -np.inf)
    rows = np.empty(len(lo), np.int32)
    count = 0
    for row in range(len(lo)):
        if np.all(lo[row] < hi[row]):
            rows[count] = row
            count += 1
            low, high = np.minimum(low, lo[row]), np.maximum(high, hi[row])
    return _filled(lo, hi, rows[:count], low, high)


@compiled
def _filled(lo: Floats, hi: Floats, rows: Ints, low: Floats, high: Floats) -> float:
    """Volume of the part from ``low`` to ``high`` that boxes fill."""
    inside = np.empty(len(rows), np.int32)
    count = 0
    for row in rows:
        reach = _reach(lo, hi, row, low, high)
        if reach == 0:
            return _volume(low, high)
        if reach > 0:
            inside[count] = row
            count += 1
    inside = _largest(lo, hi, inside[:count], low, high)
    if len(inside) <= 2:
        return _few(lo, hi, inside, low, high)
    axis, at = _cut(lo, hi, inside, low, high)
    if axis < 0:
        return _slabs(lo, hi, inside, low, high)
    middle_low, middle_high = low.copy(), high.copy()
    middle_high[axis] = middle_low[axis] = at
    left = _filled(lo, hi, inside, low, middle_high)
    return left + _filled(lo, hi, inside, middle_low, high)


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
def _volume(low: Floats, high: Floats) -> float:
    volume = 1.0
    for k in range(len(low)):
        volume *= high[k] - low[k]
    return volume


@compiled
def _few(lo: Floats, hi: Floats, rows: Ints, low: Floats, high: Floats) -> float:
    """What at most two boxes fill: both, less what they share."""
    filled = 0.0
    for row in rows:
        filled += _shared(lo, hi, row, row, low, high)
    return filled - _shared(lo, hi, rows[0], rows[1], low, high) if len(rows) == 2 else filled


@compiled
def _shared(lo: Floats, hi: Floats, a: int, b: int, low: Floats, high: Floats) -> float:
    """Volume that two boxes share in a part."""
    volume = 1.0
    for k in range(len(low)):
        first, last = max(lo[a, k], lo[b, k], low[k]), min(hi[a, k], hi[b, k], high[k])
        volume *= max(0.0, last - first)
    return volume


@compiled
def _largest(lo: Floats, hi: Floats, rows: Ints, low: Floats, high: Floats) -> Ints:
    """The boxes that lie within no other box, as far as a part shows; of equal ones the first."""
    kept = np.empty(len(rows), np.int32)
    count = 0
    for i in range(len(rows)):
        hidden = False
        for j in range(len(rows)):
            if i != j and _within(lo, hi, rows[i], rows[j], low, high):
                hidden = j < i or not _within(lo, hi, rows[j], rows[i], low, high)
                if hidden:
                    break
        if not hidden:
            kept[count] = rows[i]
            count += 1
    return kept[:count]


@compiled
def _within(lo: Floats, hi: Floats, a: int, b: int, low: Floats, high: Floats) -> bool:
    for k in range(len(low)):
        if max(lo[a, k], low[k]) < lo[b, k] or min(hi[a, k], high[k]) > hi[b, k]:
            return False
    return True


@compiled
def _cut(lo: Floats, hi: Floats, rows: Ints, low: Floats, high: Floats) -> tuple[int, float]:
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
def _slabs(lo: Floats, hi: Floats, rows: Ints, low: Floats, high: Floats) -> float:
    """What slabs fill: all but the product of the lengths that they leave free on each axis."""
    free = 1.0
    for k in range(len(low)):
        here = np.array([r for r in rows if lo[r, k] > low[k] or hi[r, k] < high[k]], np.int32)
        left, reached = 0.0, low[k]
        for r in here[np.argsort(np.array([lo[r, k] for r in here], np.float64))]:
            left += max(0.0, lo[r, k] - reached)
            reached = max(reached, hi[r, k])
        free *= left + max(0.0, high[k] - reached)
    return _volume(low, high) - free


@compiled
def union_weight(lo: Floats, hi: Floats, points: Floats, weight: Floats) -> float:
    """Weight of the points that lie in at least one box. O(points × boxes)."""
    total = 0.0
    for p in range(len(points)):
        for row in range(len(lo)):
            inside = True
            for k in range(lo.shape[1]):
                inside &= lo[row, k] <= points[p, k] < hi[row, k]
            if inside:
                total += weight[p]
                break
    return total
