"""Which links must be s-links because another one is, and which must be decided together.

The first are the pairs of Eq. 1 between neighbours. Links that cannot be decided each on its own
come in parts that do not concern each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from fanplan.core.arrays import NONE, Bools, Ints, Longs, starts_of
from fanplan.core.kernels import compiled
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree


class Requirements(NamedTuple):
    """Item ``i`` requires ``items[starts[i]:starts[i + 1]]``: if it is an s-link, so are they.

    The first items are the links. On a shared tree others follow, that only stand for sets of
    links.
    """

    starts: Longs
    items: Longs

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @property
    def owners(self) -> Longs:
        """The item that each entry of ``items`` is required by."""
        return np.repeat(np.arange(self.size), np.diff(self.starts))


class Entangled(NamedTuple):
    """Items that must be decided together: part ``k`` has ``items[starts[k]:starts[k + 1]]``.

    ``relation`` is what they require of each other, by their positions in ``items``.
    """

    items: Longs
    starts: Longs
    relation: Requirements


def requirements_of(problem: MarkingProblem) -> Requirements:
    """What the trees require, each pair once; linear in the total size of the trees."""
    trees = problem.trees
    if isinstance(trees, SharedTree):
        return shared_requirements(trees, problem.size)
    inner = np.flatnonzero(trees.above >= 0)
    return without_repeats(
        gathered_pairs(trees.link[trees.above[inner]], trees.link[inner], problem.size)
    )


def shared_requirements(tree: SharedTree, links: int) -> Requirements:
    """A link into a node requires all links out of it but its own other direction.

    Written out, that is a square of the node's neighbours. With them in a row, it is two chains of
    helpers: link in *i* requires helpers *i* of both, these the next (or last) helper and the link
    out there.
    """
    child = tree.order[1:]
    at = np.concatenate((tree.parent[child], child))
    into = np.concatenate((tree.up[child], tree.down[child]))
    out = np.concatenate((tree.down[child], tree.up[child]))
    order = np.argsort(at, kind="stable")
    at, into, out = at[order], into[order], out[order]
    right, left = links + np.arange(len(at)), links + len(at) + np.arange(len(at))
    side = np.flatnonzero(at[1:] == at[:-1])  # the next neighbour is one of the same node
    pairs = np.concatenate(
        (
            np.stack((into, right)),
            np.stack((into, left)),
            np.stack((right[side], right[side + 1])),
            np.stack((left[side + 1], left[side])),
            np.stack((right[side], out[side + 1])),
            np.stack((left[side + 1], out[side])),
        ),
        axis=1,
    )
    pairs = pairs[:, (pairs != NONE).all(axis=0)]
    return gathered_pairs(pairs[0], pairs[1], links + 2 * len(at))


def gathered_pairs(owner: Longs | Ints, item: Longs | Ints, size: int) -> Requirements:
    """Pairs as a relation, in their order. O(pairs + size)."""
    starts = starts_of(np.bincount(owner, minlength=size))
    return Requirements(starts, distribute(starts[:-1].copy(), owner, item))


@compiled
def distribute(free: Longs, owner: Longs | Ints, item: Longs | Ints) -> Longs:
    """Items put where their owners have the next free place."""
    items = np.empty(len(item), np.int64)
    for i in range(len(item)):
        items[free[owner[i]]] = item[i]
        free[owner[i]] += 1
    return items


@compiled
def without_repeats(relation: Requirements) -> Requirements:
    """The relation without repeated pairs. O(pairs + size)."""
    size = len(relation.starts) - 1
    starts, items = np.zeros(size + 1, np.int64), np.empty(len(relation.items), np.int64)
    seen = np.full(size, NONE, np.int64)
    found = 0
    for owner in range(size):
        for item in relation.items[relation.starts[owner] : relation.starts[owner + 1]]:
            if seen[item] != owner:
                seen[item] = owner
                items[found] = item
                found += 1
        starts[owner + 1] = found
    return Requirements(starts, items[:found].copy())


def turned_around(relation: Requirements) -> Requirements:
    """The same pairs from the other side."""
    return gathered_pairs(relation.items, relation.owners, relation.size)


# ---- what is entangled


def untangled(relation: Requirements, gain: Longs) -> tuple[Bools, Entangled]:
    """Which items are p-links as far as that is plain, and what is left to decide; linear.

    This is about the best closed set of s-links, and of several the largest. A loss that no gain
    requires, however indirectly, is not in it, nor is what requires such a loss. An item that
    requires no loss is in it. What is left are gains that require losses, these losses, and items
    between them.
    """
    back = turned_around(relation)
    idle = (gain < 0) & ~required_by(relation, gain > 0)
    publish = required_by(back, idle)
    knotted = required_by(back, gain < 0) & ~publish
    return publish, by_parts(relation, knotted)


@compiled
def required_by(relation: Requirements, start: Bools) -> Bools:
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


def by_parts(relation: Requirements, chosen: Bools) -> Entangled:
    """The chosen items in parts that no requirement joins, by the first item of each part."""
    items = np.flatnonzero(chosen)
    inner = chosen[relation.items] & np.repeat(chosen, np.diff(relation.starts))
    place = np.cumsum(chosen) - 1
    pairs = np.stack((place[relation.owners[inner]], place[relation.items[inner]]))
    part = joined_parts(pairs, len(items))
    order = np.argsort(part, kind="stable")
    rank = np.empty(len(items), np.int64)
    rank[order] = np.arange(len(items))
    starts = starts_of(np.bincount(part))
    inside = gathered_pairs(rank[pairs[0]], rank[pairs[1]], len(items))
    return Entangled(items[order], starts, inside)


def joined_parts(pairs: Longs, size: int) -> Longs:
    """The part that each of the items is in."""
    graph = scipy.sparse.coo_array((np.ones(pairs.shape[1], np.int8), pairs), shape=(size, size))
    if not size:
        return np.zeros(0, np.int64)
    _, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
    result: Longs = part.astype(np.int64)
    return result
