"""Trees with a small diameter: starts for the search, and proof of what is possible."""

from __future__ import annotations

from collections import deque

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.layers.overlay.search.limits import Rules
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree, hang, tree_of, tree_of_parents


def shallow_trees(problem: OverlayProblem, rules: Rules) -> list[Tree]:
    """The tree of least diameter under the degree limits, or trees of fewest hops over links."""
    busy = busyness(problem)
    if problem.links is not None:
        return [fewest_hops(problem, root) for root in (int(busy.argmax()), middle(problem))]
    tree = least_diameter(rules.degree, busy)
    return [] if tree is None else [tree]


def busyness(problem: OverlayProblem) -> Floats:
    """Messages that enter at a broker or must reach it."""
    routes = problem.routes
    arriving = np.repeat(routes.messages, np.diff(routes.starts))
    busy = np.bincount(routes.brokers, arriving, problem.size)
    return np.asarray(busy + np.bincount(routes.source, routes.messages, problem.size))


def least_diameter(degree: Longs, busy: Floats) -> Tree | None:
    """A tree of the least diameter that degrees allow, or None if they allow no tree.

    A tree of diameter 2h hangs from a broker with height h, one of 2h + 1 from a link. Either is
    lowest if filled level by level by descending degree: then every level has as much room as it
    can. Ties go to the busier broker, then by position. Without limits it is a star. O(n log n).
    """
    order = np.lexsort((-busy, -degree))
    trees = [filled(order, degree, centre) for centre in (1, 2)]
    found = [tree for tree in trees if tree is not None]
    return min(found, key=lambda tree: tree.diameter) if found else None


def filled(order: Longs, degree: Longs, centre: int) -> Tree | None:
    """Hang brokers level by level below the first, or below the link of the first two."""
    if len(order) < centre:
        return None
    one, other = list(order[1:centre]), [order[0]] * (centre - 1)
    open_to = deque((broker, int(degree[broker]) - (centre - 1)) for broker in order[:centre])
    for broker in order[centre:]:
        while open_to and open_to[0][1] <= 0:
            open_to.popleft()
        if not open_to:
            return None
        above, room = open_to.popleft()
        one.append(above)
        other.append(broker)
        open_to.appendleft((above, room - 1))
        open_to.append((broker, int(degree[broker]) - 1))
    return tree_of(np.array(one, dtype=np.int32), np.array(other, dtype=np.int32))


def fewest_hops(problem: OverlayProblem, root: int) -> Tree:
    """The tree with the fewest hops from a root over the given links."""
    return tree_of_parents(hang(given_links(problem), root, problem.size).parent)


def middle(problem: OverlayProblem) -> int:
    """The middle of a long shortest way over the given links."""
    links = given_links(problem)
    start = hang(links, 0, problem.size).order[-1]
    tree = hang(links, start, problem.size)
    way = [int(tree.order[-1])]
    while way[-1] != start:
        way.append(int(tree.parent[way[-1]]))
    return way[len(way) // 2]


def given_links(problem: OverlayProblem) -> Ints:
    """The given links as rows of two positions."""
    assert problem.links is not None
    return np.stack((problem.links.a, problem.links.b), axis=1)
