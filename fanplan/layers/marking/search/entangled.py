"""The links that cannot be decided each on its own, in parts that do not concern each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from fanplan.core.arrays import Bools, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.marking.search.relation import Relation, gathered, turned


class Entangled(NamedTuple):
    """Items that must be decided together: part ``k`` has ``items[starts[k]:starts[k + 1]]``.

    ``relation`` is what they require of each other, by their positions in ``items``.
    """

    items: Longs
    starts: Longs
    relation: Relation


def untangled(relation: Relation, gain: Longs) -> tuple[Bools, Entangled]:
    """Which items are p-links as far as that is plain, and what is left to decide; linear.

    This is about the best closed set of s-links, and of several the largest. A loss that no gain
    requires, however indirectly, is not in it, nor is what requires such a loss. An item that
    requires no loss is in it. What is left are gains that require losses, these losses, and items
    between them.
    """
    back = turned(relation)
    idle = (gain < 0) & ~reached(relation, gain > 0)
    publish = reached(back, idle)
    knotted = reached(back, gain < 0) & ~publish
    return publish, in_parts(relation, knotted)


@compiled
def reached(relation: Relation, start: Bools) -> Bools:
    """Items that are marked at the start or required, directly or not, by one that is."""
    found = start.copy()
    stack = np.empty(len(start), np.int64)
    here = np.flatnonzero(start)
    top = len(here)
    stack[:top] = here
    while top > 0:
        top -= 1
        item = stack[top]
        for other in relation.items[relation.starts[item] : relation.starts[item + 1]]:
            if not found[other]:
                found[other] = True
                stack[top] = other
                top += 1
    return found


def in_parts(relation: Relation, chosen: Bools) -> Entangled:
    """The chosen items in parts that no requirement joins, by the first item of each part."""
    items = np.flatnonzero(chosen)
    inner = chosen[relation.items] & np.repeat(chosen, np.diff(relation.starts))
    place = np.cumsum(chosen) - 1
    pairs = np.stack((place[relation.owners[inner]], place[relation.items[inner]]))
    part = part_of(pairs, len(items))
    order = np.argsort(part, kind="stable")
    rank = np.empty(len(items), np.int64)
    rank[order] = np.arange(len(items))
    starts = np.concatenate(([0], np.cumsum(np.bincount(part)))).astype(np.int64)
    inside = gathered(rank[pairs[0]], rank[pairs[1]], len(items))
    return Entangled(items[order], starts, inside)


def part_of(pairs: Longs, size: int) -> Longs:
    """The part that each of the items is in."""
    graph = scipy.sparse.coo_array((np.ones(pairs.shape[1], np.int8), pairs), shape=(size, size))
    if not size:
        return np.zeros(0, np.int64)
    _, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
    result: Longs = part.astype(np.int64)
    return result
