"""The maximum spanning tree of a symmetric weight."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.network.trees import Tree, tree_of


def spanning_tree(a: Ints, b: Ints, weight: Floats, size: int, room: Longs | None = None) -> Tree:
    """Kruskal (1956): the heaviest links that close no cycle; ties by (a, b), where a < b.

    ``room`` is how many links each broker may have. Gives fewer than size − 1 links if those at
    hand do not connect all brokers. O(m log m).
    """
    room = np.full(size, size, dtype=np.int64) if room is None else room.copy()
    order = np.lexsort((b, a, -weight))
    kept = order[without_cycles(a[order], b[order], room)]
    return tree_of(a[kept], b[kept])


@compiled
def without_cycles(a: Ints, b: Ints, room: Longs) -> Longs:
    """Positions of the links that join two parts, taken in order; they take up room."""
    size = len(room)
    part = np.arange(size, dtype=np.int64)
    kept = np.empty(max(size - 1, 0), dtype=np.int64)
    count = 0
    for i in range(len(a)):
        one, other = part_of(part, a[i]), part_of(part, b[i])
        if one != other and room[a[i]] > 0 and room[b[i]] > 0:
            part[max(one, other)] = min(one, other)
            room[a[i]] -= 1
            room[b[i]] -= 1
            kept[count] = i
            count += 1
    return kept[:count]


@compiled
def part_of(part: Longs, broker: int) -> int:
    """The lowest broker of the part that a broker is in."""
    while part[broker] != broker:
        part[broker] = part[part[broker]]
        broker = part[broker]
    return broker


@compiled
def parts(a: Ints, b: Ints, size: int) -> Longs:
    """The lowest broker that each broker is connected with."""
    part = np.arange(size, dtype=np.int64)
    for i in range(len(a)):
        one, other = part_of(part, a[i]), part_of(part, b[i])
        part[max(one, other)] = min(one, other)
    for i in range(size):
        part[i] = part_of(part, i)
    return part
