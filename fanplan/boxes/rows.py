"""Rows of values, one for each point: their order, their room, their sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled


@compiled
def sorted_order(group: Longs, groups: int, order: Longs) -> Longs:
    """The given order of the points, sorted stably by group: −1 first, up to ``groups`` − 1.

    A counting sort. With far more groups than points, neighbouring groups share a bin and are not
    told apart; that is good enough to visit points cell by cell.
    """
    shift = 0
    while (groups >> shift) > 4 * len(group) + 1024:
        shift += 1
    start = np.zeros((groups >> shift) + 3, np.int64)
    for g in group:
        start[((g + 1) >> shift) + 1] += 1
    start = np.cumsum(start)
    result = np.empty(len(group), np.int64)
    for i in order:
        at = (group[i] + 1) >> shift
        result[start[at]] = i
        start[at] += 1
    return result


@compiled
def room_for(values: NDArray[Any], used: int, more: int) -> NDArray[Any]:
    """The same values in an array with room for ``more``; doubles, so that growth is cheap."""
    if used + more <= len(values):
        return values
    grown = np.empty(2 * (used + more), values.dtype)
    grown[:used] = values[:used]
    return grown


@compiled
def sum_lists(
    key: Longs, keys: int, offsets: Longs, owner: Longs, weight: Floats
) -> tuple[Longs, Longs, Floats]:
    """Sum the lists of (owner, weight) of all rows with the same key: (key, owner, weight)."""
    order = sorted_order(key, keys, np.arange(len(key)))
    place = np.full(owner.max() + 1 if len(owner) else 0, -1, np.int64)
    out_key, out_owner = np.empty(len(owner), np.int64), np.empty(len(owner), np.int64)
    out_weight = np.zeros(len(owner))
    start, used = 0, 0
    for i in range(len(order)):
        row = order[i]
        if i > 0 and key[order[i - 1]] != key[row]:
            start = used
        for k in range(offsets[row], offsets[row + 1]):
            if place[owner[k]] < start:
                place[owner[k]] = used
                out_key[used], out_owner[used] = key[row], owner[k]
                used += 1
            out_weight[place[owner[k]]] += weight[k]
    return out_key[:used], out_owner[:used], out_weight[:used]
