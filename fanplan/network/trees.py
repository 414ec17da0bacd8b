"""Trees of brokers: their links, and hung up at a root. Every part but the checks hangs them here.

Neighbours are visited in the order of their positions, so equal links give equal trees. Two others
hang trees on purpose: a search, whose tree changes link by link, and the proof of a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.network.brokers import Rooted


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
        near = near_of(self.edges, self.size)
        # The last of any walk is an end of a longest way: a second walk from there measures it.
        farthest = breadth_first(near, 0).order[-1]
        return int(breadth_first(near, farthest).depth.max(initial=0))

    def hops(self, broker: int) -> Ints:
        """Hops from a broker to every other."""
        return hang(self.edges, broker, self.size).depth


def tree_of(one: Ints, other: Ints) -> Tree:
    """A tree from its links in any order and direction."""
    a, b = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((b, a))
    return Tree(a[order].astype(np.int32), b[order].astype(np.int32))


def tree_of_parents(parent: Ints) -> Tree:
    """A tree from each broker's parent; the root has NONE."""
    child = np.flatnonzero(parent != NONE).astype(np.int32)
    return tree_of(parent[child], child)


# ---- hung up


class Near(NamedTuple):
    """Links by broker: those at broker i are the entries ``starts[i]:starts[i + 1]``.

    An entry leads to ``broker``, ascending, by the link at position ``link``.
    """

    starts: Longs
    broker: Ints
    link: Ints


def near_of(links: Ints | Longs, brokers: int) -> Near:
    """Links, each a row of two positions, by the brokers at their ends. O(links × log links)."""
    one, other = np.concatenate((links, links[:, ::-1])).astype(np.int64).T
    order = np.lexsort((other, one))
    starts = starts_of(np.bincount(one, minlength=brokers))
    # Rows i and i + len(links) are one link, seen from either end.
    link = order % max(len(links), 1)
    return Near(starts, other[order].astype(np.int32), link.astype(np.int32))


@compiled
def breadth_first(near: Near, root: int) -> Rooted:
    """What hangs together with a root, by the fewest links from it. O(brokers + links)."""
    size = len(near.starts) - 1
    order = np.empty(size, np.int32)
    parent, link = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    depth = np.full(size, NONE, np.int32)
    order[0], depth[root] = root, 0
    found, at = 1, 0
    while at < found:
        here = order[at]
        for entry in range(near.starts[here], near.starts[here + 1]):
            there = near.broker[entry]
            if depth[there] == NONE:
                parent[there], link[there] = here, near.link[entry]
                depth[there] = depth[here] + 1
                order[found] = there
                found += 1
        at += 1
    return Rooted(order[:found], parent, link, depth)


def hang(links: Ints | Longs, root: int, brokers: int) -> Rooted:
    """The part of links, rows of two positions, that hangs together with a root.

    Of links with cycles those stay that are on ways with the fewest links.
    """
    tree: Rooted = breadth_first(near_of(links, brokers), root)
    return tree


def hang_tree(links: Ints, root: int, brokers: int) -> Rooted:
    """Hang up a tree, which may leave out some of the brokers; an error if links are none."""
    tree = hang(links, root, brokers)
    if len(tree.order) < len(links) + 1:
        what = f"{len(links)} links join only {len(tree.order)} brokers"
        raise InputError(Problem("tree", what, "Give links that form one tree, without a cycle"))
    return tree


def hang_all(links: Ints) -> Rooted:
    """Hang up a tree of one broker more than links at the first; an error if links are none."""
    brokers = len(links) + 1
    if len(links) and (links.min() < 0 or links.max() >= brokers):
        what = f"a link names broker {links.max()}, but {len(links)} links join {brokers} brokers"
        raise InputError(Problem("tree", what, "Give one link less than there are brokers"))
    return hang_tree(links, 0, brokers)


@compiled
def distances(tree: Rooted, latency: Floats) -> Floats:
    """The latencies of links added up from the root to each broker; 0 outside the tree."""
    far = np.zeros(len(tree.parent))
    for here in tree.order[1:]:
        far[here] = far[tree.parent[here]] + latency[tree.link[here]]
    return far


# ---- from parents


@compiled
def depths(parent: Ints) -> Ints:
    """Links from the root to each broker by each one's parent, NONE at the root; 0 outside.

    O(brokers): each climbs only to where another has been.
    """
    depth = np.full(len(parent), NONE, np.int32)
    for broker in range(len(parent)):
        here, steps = broker, 0
        while depth[here] == NONE and parent[here] != NONE:
            here, steps = parent[here], steps + 1
        top = max(depth[here], 0)
        depth[here] = top
        here = broker
        while depth[here] == NONE:
            depth[here] = top + steps
            here, steps = parent[here], steps - 1
    return depth


@compiled
def sums_below(order: Ints, parent: Ints, values: Longs) -> Longs:
    """For each broker of a tree the sum of the values at it and below it; others keep their own.

    ``order`` lists the brokers of the tree, parents first, the root before all.
    """
    total = values.copy()
    for here in order[:0:-1]:
        total[parent[here]] += total[here]
    return total


def downward(parent: Ints) -> Ints:
    """The links of a tree as rows of parent and child, ascending by child."""
    child = np.flatnonzero(parent >= 0)
    return np.stack((parent[child], child), axis=1).astype(np.int32)


def children(parent: Sequence[int]) -> dict[int, list[int]]:
    """The brokers below each that has some, ascending."""
    found: dict[int, list[int]] = {}
    for broker, above in enumerate(parent):
        if above != NONE:
            found.setdefault(above, []).append(broker)
    return found


# ---- several trees


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


def one_tree(tree: Tree) -> Trees:
    """A tree that everything takes."""
    return trees_of((tree.edges,), np.zeros(tree.size, np.int32))


def _keys(tree: Ints, size: int) -> Longs:
    ends = tree.reshape(-1, 2).astype(np.int64)
    result: Longs = ends.min(axis=1) * size + ends.max(axis=1)
    return result
