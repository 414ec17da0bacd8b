"""Where brokers are drawn: rings around the middle of their network, subtrees side by side."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.network.trees import Near, breadth_first, near_of


def radial(links: Longs, size: int) -> Floats:
    """Positions within the unit circle, a row per broker.

    ``links`` has a row of two brokers per link. A tree is drawn without crossings; of other
    networks a tree of shortest ways decides. Parts that nothing joins hang at the middle, too.
    Time linear in links, after sorting them.
    """
    parent, depth, order = hung_parts(links, size)
    leaves = np.zeros(size, np.int64)
    has_child = np.zeros(size, bool)
    has_child[parent[parent >= 0]] = True
    leaves[~has_child] = 1
    for broker in order[::-1]:
        if parent[broker] >= 0:
            leaves[parent[broker]] += leaves[broker]
    angle = angles(parent, order, leaves)
    radius = depth / max(int(depth.max(initial=0)), 1)
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)


def angles(parent: Longs, order: Longs, leaves: Longs) -> Floats:
    """The middle of the sector of each broker: as wide as it has leaves."""
    roots = order[parent[order] < 0]
    turn = 2 * np.pi / max(int(leaves[roots].sum()), 1)
    start, next_free = np.zeros(len(parent)), np.zeros(len(parent))
    free = -np.pi / 2
    for broker in order:
        above = parent[broker]
        start[broker] = free if above < 0 else next_free[above]
        width = turn * leaves[broker]
        if above < 0:
            free += width
        else:
            next_free[above] += width
        next_free[broker] = start[broker]
    return start + turn * leaves / 2


def hung_parts(links: Longs, size: int) -> tuple[Longs, Longs, Longs]:
    """Parent (−1 for none), depth and an order with parents first, of every part of the network.

    One part hangs at its middle, which is drawn at the centre; several hang side by side.
    """
    near = near_of(links, size)
    parent, depth = np.full((2, size), NONE)
    order: list[Longs | Ints] = [np.empty(0, np.int64)]
    parts = 0
    for broker in range(size):
        if depth[broker] == NONE:
            part = breadth_first(near, middle_of(near, broker))
            parent[part.order], depth[part.order] = part.parent[part.order], part.depth[part.order]
            order.append(part.order)
            parts += 1
    return parent, depth + (parts > 1), np.concatenate(order)


def middle_of(near: Near, broker: int) -> int:
    """The middle of a longest way: the farthest from anywhere, and the farthest from there."""
    farthest = breadth_first(near, broker).order[-1]
    tree = breadth_first(near, farthest)
    middle = tree.order[-1]
    for _ in range(int(tree.depth[middle]) // 2):
        middle = tree.parent[middle]
    return int(middle)
