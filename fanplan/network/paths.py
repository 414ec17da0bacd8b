"""Trees of shortest paths; trees pruned, and laid out in preorder."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Longs, listed_by, starts_of
from fanplan.core.kernels import compiled
from fanplan.network.brokers import Rooted


class LinksByTail(NamedTuple):
    """Directed links by tail: node n has the entries ``starts[n]:starts[n + 1]``.

    An entry leads to ``near`` with ``length`` and is the directed link ``way``.
    """

    starts: Longs
    near: Longs
    way: Longs
    length: Floats


def ways_of(tail: Longs, head: Longs, length: Floats, nodes: int) -> LinksByTail:
    """Directed links, sorted by their tails; link i is way i."""
    starts, order = listed_by(tail, nodes)
    return LinksByTail(starts, head[order], order, length[order])


@compiled
def shortest_tree(root: int, ways: LinksByTail, wanted: np.ndarray) -> Rooted:
    """The shortest paths from a root (Dijkstra 1959), until all wanted nodes are reached.

    Of equal lengths the one with fewer links counts, then the parent with the lower position. As
    links count, a node's parent is settled before it also where lengths are 0. O(m log m).
    """
    size = len(wanted)
    distance, hops = np.full(size, np.inf), np.zeros(size, np.int64)
    parent, via = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    settled, order = np.zeros(size, np.bool_), np.empty(size, np.int32)
    left, found = wanted.sum(), 0
    distance[root] = 0.0
    heap = [(0.0, 0, np.int64(root))]
    while heap and (left > 0 or found == 0):
        _, _, here = heapq.heappop(heap)
        if settled[here]:
            continue
        settled[here] = True
        left -= wanted[here]
        order[found] = here
        found += 1
        for i in range(ways.starts[here], ways.starts[here + 1]):
            there, far = ways.near[i], distance[here] + ways.length[i]
            new, old = (far, hops[here] + 1), (distance[there], hops[there])
            if not settled[there] and (new < old or (new == old and here < parent[there])):
                # An equal way only changes the parent: what is in the heap is as good.
                if new != old:
                    heapq.heappush(heap, (far, hops[here] + 1, there))
                distance[there], hops[there] = new
                parent[there], via[there] = here, ways.way[i]
    return only(Rooted(order[:found], parent, via, hops.astype(np.int32)), settled)


@compiled
def only(tree: Rooted, kept: np.ndarray) -> Rooted:
    """Only some brokers of a tree, with all above them."""
    outside = np.int32(NONE)
    return Rooted(
        tree.order[kept[tree.order]],
        np.where(kept, tree.parent, outside),
        np.where(kept, tree.link, outside),
        np.where(kept, tree.depth, outside),
    )


@compiled
def pruned(tree: Rooted, wanted: np.ndarray) -> Rooted:
    """Only the paths from the root that lead to wanted nodes. O(nodes)."""
    needed = wanted & (tree.depth >= 0)
    needed[tree.order[0]] = True
    for node in tree.order[:0:-1]:
        if needed[node]:
            needed[tree.parent[node]] = True
    return only(tree, needed)


class Laid(NamedTuple):
    """The directed links of trees, tree by tree, those below a link directly after it.

    Tree i has the entries ``starts[i]:starts[i + 1]``. ``above`` is the entry of the link before
    each, NONE for links from a root.
    """

    starts: Longs
    way: Longs
    above: Longs


@compiled
def shortest_trees(roots: Longs, ways: LinksByTail, wanted: np.ndarray) -> Laid:
    """The shortest paths from each root to all wanted nodes, which it must reach."""
    starts = np.zeros(len(roots) + 1, np.int64)
    # Compiled code must see what a list holds, also of an empty one.
    trees = [np.empty((2, 0), np.int64) for _ in range(0)]
    for i, root in enumerate(roots):
        trees.append(preorder(pruned(shortest_tree(root, ways, wanted), wanted)))
        starts[i + 1] = starts[i] + trees[i].shape[1]
    way, above = np.empty((2, starts[-1]), np.int64)
    for i, tree in enumerate(trees):
        way[starts[i] : starts[i + 1]] = tree[0]
        above[starts[i] : starts[i + 1]] = np.where(tree[1] == NONE, NONE, tree[1] + starts[i])
    return Laid(starts, way, above)


def laid(trees: list[Longs]) -> Laid:
    """Trees one after the other, each in preorder."""
    sizes = [tree.shape[1] for tree in trees]
    starts = starts_of(sizes)
    way, above = np.concatenate([np.empty((2, 0), np.int64), *trees], axis=1)
    return Laid(starts, way, np.where(above == NONE, NONE, above + np.repeat(starts[:-1], sizes)))


@compiled
def preorder(tree: Rooted) -> Longs:
    """A tree as its links in preorder, and the positions of the links before them. O(nodes)."""
    nodes = len(tree.parent)
    below = np.ones(nodes, np.int64)
    place, free = np.zeros((2, nodes), np.int64)
    for node in tree.order[:0:-1]:
        below[tree.parent[node]] += below[node]
    found = np.empty((2, len(tree.order) - 1), np.int64)
    place[tree.order[0]] = NONE
    for node in tree.order[1:]:
        over = tree.parent[node]
        # A child takes as many places as there are links in its subtree, its own included.
        at = free[over]
        free[over] += below[node]
        place[node], free[node] = at, at + 1
        found[0, at], found[1, at] = tree.link[node], place[over]
    return found
