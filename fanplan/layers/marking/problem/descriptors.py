"""Descriptors of nodes: the regions that no other of the same node covers, and who else does."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bools, Floats, Longs
from fanplan.core.kernels import compiled

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


def covering_nodes(
    group: Longs, node: Longs, lo: Floats, hi: Floats, most: int
) -> tuple[Longs, Longs] | None:
    """Other nodes with a box that covers a box: ``nodes[starts[i]:starts[i + 1]]``, ascending.

    Boxes cover each other only within a group. Of equal ones the box of the lowest node covers the
    others. None if there are more than ``most`` pairs. O(n log n), the pairs, and for each box
    the blocks of those before it on the first axis.
    """
    order = np.lexsort((node, *(-hi).T[::-1], *lo.T[::-1], group))
    sizes, nodes = _holders(group[order], node[order], lo[order], hi[order], most)
    if sizes.sum() > most:
        return None
    rank = np.argsort(order, kind="stable")
    starts = np.concatenate(([0], np.cumsum(sizes[rank])))
    owner = np.repeat(order, sizes)
    return starts, nodes[np.lexsort((nodes, owner))]


@compiled
def _holders(group: Longs, node: Longs, lo: Floats, hi: Floats, most: int) -> tuple[Longs, Longs]:
    """For each box how many other nodes hold it, and those one after the other."""
    sizes = np.zeros(len(group), np.int64)
    seen = np.full(node.max() + 1 if len(node) else 0, -1, np.int64)
    reach = np.empty((len(group) // BLOCK + 1, lo.shape[1]))
    found, first, total = [0 for _ in range(0)], 0, 0
    for row in range(len(group)):
        if row > 0 and group[row] != group[row - 1]:
            first = row
        count = row - first
        seen[node[row]] = row
        for block in range((count + BLOCK - 1) // BLOCK):
            if _below(hi[row], reach[block]):
                begin = first + block * BLOCK
                for other in range(begin, min(begin + BLOCK, row)):
                    if seen[node[other]] != row and _within(lo, hi, row, other):
                        seen[node[other]] = row
                        found.append(node[other])
                        sizes[row] += 1
        total += sizes[row]
        if total > most:
            break
        block = count // BLOCK
        if count % BLOCK == 0:
            reach[block] = hi[row]
        reach[block] = np.maximum(reach[block], hi[row])
    return sizes, np.array(found, np.int64)


@compiled
def _within(lo: Floats, hi: Floats, row: int, other: int) -> bool:
    """Whether a box lies in another one."""
    return _below(lo[other], lo[row]) and _below(hi[row], hi[other])


@compiled
def _held(lo: Floats, hi: Floats, others: Longs, reach: Floats, row: int) -> bool:
    """Whether one of some boxes holds a box; ``reach`` has the highest ends of each block."""
    for block in range((len(others) + BLOCK - 1) // BLOCK):
        if _below(hi[row], reach[block]):
            for other in others[block * BLOCK : (block + 1) * BLOCK]:
                if _within(lo, hi, row, other):
                    return True
    return False


@compiled
def _below(one: Floats, other: Floats) -> bool:
    """Whether no coordinate of a point is higher than that of another."""
    axis = 0
    while axis < len(one) and one[axis] <= other[axis]:
        axis += 1
    return axis == len(one)
