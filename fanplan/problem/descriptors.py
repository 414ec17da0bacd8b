"""Descriptors of nodes: the regions that no other region of the same node covers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fanplan.kernels import compiled
from fanplan.problem.interest import Floats, Longs

Bools = NDArray[np.bool_]

BLOCK = 64
"""Boxes that are passed over together."""


def uncovered(group: Longs, lo: Floats, hi: Floats) -> Bools:
    """Which boxes lie within no other box of their group; of equal ones the first counts.

    One row per box, one column per axis. O(n log n), and for each box the blocks of those before it
    on the first axis; most are passed over where boxes are short.
    """
    # A box comes after all that cover it: they begin no later, and end no earlier.
    order = np.lexsort((*(-hi).T[::-1], *lo.T[::-1], group))
    kept = np.zeros(len(group), bool)
    kept[order] = _first_of(group[order], lo[order], hi[order])
    return kept


@compiled
def _first_of(group: Longs, lo: Floats, hi: Floats) -> Bools:
    """Boxes that none of those kept before them in their group holds."""
    kept = np.zeros(len(group), np.bool_)
    rows = np.empty(len(group), np.int64)
    reach = np.empty((len(group) // BLOCK + 1, lo.shape[1]))
    count = 0
    for row in range(len(group)):
        if row > 0 and group[row] != group[row - 1]:
            count = 0
        if not _held(lo, hi, rows[:count], reach, row):
            kept[row], rows[count] = True, row
            block = count // BLOCK
            if count % BLOCK == 0:
                reach[block] = hi[row]
            reach[block] = np.maximum(reach[block], hi[row])
            count += 1
    return kept


@compiled
def _held(lo: Floats, hi: Floats, others: Longs, reach: Floats, row: int) -> bool:
    """Whether one of some boxes holds a box; ``reach`` has the highest ends of each block."""
    for block in range((len(others) + BLOCK - 1) // BLOCK):
        if _below(hi[row], reach[block]):
            for other in others[block * BLOCK : (block + 1) * BLOCK]:
                if _below(lo[other], lo[row]) and _below(hi[row], hi[other]):
                    return True
    return False


@compiled
def _below(one: Floats, other: Floats) -> bool:
    """Whether no coordinate of a point is higher than that of another."""
    axis = 0
    while axis < len(one) and one[axis] <= other[axis]:
        axis += 1
    return axis == len(one)
