"""Links that a mesh can spare: every topic stays connected without them."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs, Words, listed_by
from fanplan.core.bits import bits_of_lists, has_bit
from fanplan.core.kernels import compiled
from fanplan.layers.mesh.problem import Wants


def without_spare(wants: Wants, links: Longs) -> Longs:
    """The links that are left when those that can be spared go, one after the other.

    O(links · common topics of two nodes · links of a topic).
    """
    nodes = len(wants.at) - 1
    wanted = bits_of_lists(wants.at, wants.topic, max(len(wants.first) - 1, 1))
    ends = np.concatenate((links // nodes, links % nodes))
    starts, listed = listed_by(ends, nodes)
    other = np.concatenate((links % nodes, links // nodes))[listed].astype(np.int32)
    number = (listed % max(len(links), 1)).astype(np.int32)
    kept = np.ones(len(links), np.bool_)
    drop_spare(wants, wanted, links, starts, other, number, kept)
    return links[kept]


@compiled
def drop_spare(
    wants: Wants, wanted: Words, links: Longs, starts: Longs, other: Ints, number: Ints, kept: Bools
) -> None:
    """Mark links that are not needed, in their order, as not kept."""
    nodes = len(wants.at) - 1
    seen, queue = np.full(nodes, -1, np.int64), np.empty(nodes, np.int32)
    mark = 0
    for i in range(len(links)):
        u, v = links[i] // nodes, links[i] % nodes
        kept[i] = False
        spare = True
        for k in range(wants.at[u], wants.at[u + 1]):
            topic = wants.topic[k]
            if not has_bit(wanted[v], topic):
                continue
            # A walk from one end in the topic: does it come to the other?
            mark += 1
            queue[0], seen[u], first, last = u, mark, 0, 1
            while first < last and seen[v] != mark:
                here = queue[first]
                first += 1
                for j in range(starts[here], starts[here + 1]):
                    near = other[j]
                    if kept[number[j]] and seen[near] != mark and has_bit(wanted[near], topic):
                        seen[near] = mark
                        queue[last] = near
                        last += 1
            if seen[v] != mark:
                spare = False
                break
        kept[i] = not spare
