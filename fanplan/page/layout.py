"""Where brokers are drawn: rings around the middle of their network, subtrees side by side."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Longs


def radial(links: Longs, size: int) -> Floats:
    """Positions within the unit circle, a row per broker.

    ``links`` has a row of two brokers per link. A tree is drawn without crossings; of other
    networks a tree of shortest ways decides. Parts that nothing joins hang at the middle, too.
    Time linear in links, after sorting them.
    """
    parent, depth, order = hung(links, size)
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


def hung(links: Longs, size: int) -> tuple[Longs, Longs, Longs]:
    """Parent (−1 for none), depth and an order with parents first, of every part of the network.

    One part hangs at its middle, which is drawn at the centre; several hang side by side.
    """
    starts, near = neighbours(links, size)
    parent, depth = np.full(size, -1), np.full(size, -1)
    order: list[int] = []
    parts = 0
    for broker in range(size):
        if depth[broker] < 0:
            middle = middle_of(starts, near, broker, size)
            order += walk(starts, near, middle, parent, depth)
            parts += 1
    return parent, depth + (parts > 1), np.array(order, np.int64)


def neighbours(links: Longs, size: int) -> tuple[Longs, Longs]:
    """Those of broker i are ``near[starts[i] : starts[i + 1]]``, ascending."""
    ends = np.concatenate((links, links[:, ::-1]))
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    return np.searchsorted(ends[:, 0], np.arange(size + 1)), ends[:, 1]


def middle_of(starts: Longs, near: Longs, broker: int, size: int) -> int:
    """The middle of a longest way: the farthest from anywhere, and the farthest from there."""
    for _ in range(2):
        parent, depth = np.full(size, -1), np.full(size, -1)
        broker = walk(starts, near, broker, parent, depth)[-1]
    for _ in range(int(depth[broker]) // 2):
        broker = int(parent[broker])
    return broker


def walk(starts: Longs, near: Longs, root: int, parent: Longs, depth: Longs) -> list[int]:
    """Breadth first from a root; fills in parents and depths."""
    order, depth[root] = [root], 0
    for broker in order:
        for other in near[starts[broker] : starts[broker + 1]].tolist():
            if depth[other] < 0:
                parent[other], depth[other] = broker, depth[broker] + 1
                order.append(other)
    return order
