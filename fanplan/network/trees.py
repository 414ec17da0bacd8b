"""A tree of brokers: its links, and walks over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.kernels import compiled


class Tree(NamedTuple):
    """Links between brokers as positions with a < b, ascending by (a, b): one less than brokers."""

    a: Ints
    b: Ints

    @property
    def size(self) -> int:
        """Number of brokers."""
        return len(self.a) + 1

    @property
    def edges(self) -> Ints:
        """The links as rows of two positions."""
        return np.stack((self.a, self.b), axis=1)

    @property
    def degrees(self) -> Longs:
        ends = np.concatenate((self.a, self.b))
        return np.bincount(ends, minlength=self.size).astype(np.int64)

    @property
    def diameter(self) -> int:
        """The most hops between two brokers."""
        starts, near = neighbours(self)
        order, _, _ = walk(starts, near, 0, NONE, NONE)
        _, _, depth = walk(starts, near, order[-1], NONE, NONE)
        return int(depth.max(initial=0))

    def hops(self, broker: int) -> Ints:
        """Hops from a broker to every other."""
        starts, near = neighbours(self)
        return np.asarray(walk(starts, near, broker, NONE, NONE)[2])


def tree_of(one: Ints, other: Ints) -> Tree:
    """A tree from its links in any order and direction."""
    a, b = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((b, a))
    return Tree(a[order].astype(np.int32), b[order].astype(np.int32))


def tree_of_parents(parent: Ints) -> Tree:
    """A tree from each broker's parent; the root has NONE."""
    child = np.flatnonzero(parent != NONE).astype(np.int32)
    return tree_of(parent[child], child)


def neighbours(tree: Tree) -> tuple[Longs, Ints]:
    """The brokers linked to each broker, ascending, as starts and brokers."""
    ends = np.concatenate((tree.a, tree.b))
    others = np.concatenate((tree.b, tree.a))
    starts = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=tree.size))))
    return starts.astype(np.int64), others[np.lexsort((others, ends))]


@compiled
def walk(starts: Longs, near: Ints, root: int, u: int, v: int) -> tuple[Ints, Ints, Ints]:
    """Breadth first from a root, never over the link of u and v.

    The brokers met in order, and for every broker its parent and depth (NONE if not met).
    """
    size = len(starts) - 1
    order = np.empty(size, dtype=np.int32)
    parent = np.full(size, NONE, dtype=np.int32)
    depth = np.full(size, NONE, dtype=np.int32)
    order[0], depth[root] = root, 0
    count, i = 1, 0
    while i < count:
        here = order[i]
        for k in range(starts[here], starts[here + 1]):
            there = near[k]
            cut = (here == u and there == v) or (here == v and there == u)
            if depth[there] == NONE and not cut:
                parent[there], depth[there] = here, depth[here] + 1
                order[count] = there
                count += 1
        i += 1
    return order[:count], parent, depth


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over the same brokers, as positions; what enters at broker i takes ``of[i]``.

    ``links`` has each link of any tree once, a < b, ascending; ``members[t]`` are the positions of
    the links of tree t.
    """

    links: Ints
    members: tuple[Longs, ...]
    of: Ints


def trees_of(edges: tuple[Ints, ...], of: Ints) -> Trees:
    """Trees from their links, each a row of two positions in any order."""
    size = 1 + max((int(tree.max(initial=0)) for tree in edges), default=0)
    keys = [_keys(tree, size) for tree in edges]
    found = np.unique(np.concatenate(keys))
    links = np.stack((found // size, found % size), axis=1).astype(np.int32)
    members = tuple(np.searchsorted(found, np.sort(tree)) for tree in keys)
    return Trees(links, members, of)


def _keys(tree: Ints, size: int) -> Longs:
    ends = tree.reshape(-1, 2).astype(np.int64)
    return ends.min(axis=1) * size + ends.max(axis=1)
