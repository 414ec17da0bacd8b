"""Which links must be s-links because another one is: the pairs of Eq. 1 between neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree


class Relation(NamedTuple):
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


def relation_of(problem: MarkingProblem) -> Relation:
    """What the trees require, each pair once; linear in the total size of the trees."""
    trees = problem.trees
    if isinstance(trees, SharedTree):
        return shared_relation(trees, problem.size)
    inner = np.flatnonzero(trees.above >= 0)
    return once(gathered(trees.link[trees.above[inner]], trees.link[inner], problem.size))


def gathered(owner: Longs | Ints, item: Longs | Ints, size: int) -> Relation:
    """Pairs as a relation, in their order. O(pairs + size)."""
    starts = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=size)))).astype(np.int64)
    return Relation(starts, distribute(starts[:-1].copy(), owner, item))


@compiled
def distribute(free: Longs, owner: Longs | Ints, item: Longs | Ints) -> Longs:
    """Items put where their owners have the next free place."""
    items = np.empty(len(item), np.int64)
    for i in range(len(item)):
        items[free[owner[i]]] = item[i]
        free[owner[i]] += 1
    return items


@compiled
def once(relation: Relation) -> Relation:
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
    return Relation(starts, items[:found].copy())


def turned(relation: Relation) -> Relation:
    """The same pairs from the other side."""
    return gathered(relation.items, relation.owners, relation.size)


def shared_relation(tree: SharedTree, links: int) -> Relation:
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
    return gathered(pairs[0], pairs[1], links + 2 * len(at))
