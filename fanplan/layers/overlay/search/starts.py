"""Trees to begin with: of similar brokers, of common traffic, shallow ones, an earlier one."""

from __future__ import annotations

from collections import deque

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import depth_first_order

from fanplan.core.arrays import NONE, Floats, Ints, Longs, values_at
from fanplan.layers.overlay.published.similar import SIMILAR, weighed_pairs
from fanplan.layers.overlay.published.spanning import connected_parts, spanning_tree
from fanplan.layers.overlay.search.judge import (
    JudgedTree,
    TreeLimits,
    TreeRules,
    TreeSearch,
    crossing,
    judge_tree,
    merged_links,
    rules_of,
    some_routes,
    whether_in_tree,
)
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree, hang, tree_of, tree_of_parents

PAIRS = 6
"""Other ends that each end of a route is paired with."""
MOST_ENDS = 500_000
"""Ends of routes that are paired."""


def judged_starts(search: TreeSearch) -> list[JudgedTree]:
    """Trees to begin with, each once."""
    problem, rules = search.problem, search.rules
    trees = [make(problem) for make in SIMILAR.values()]
    trees += [*shallow_trees(problem, rules), *common_trees(problem, rules)]
    different = {tree.edges.tobytes(): tree for tree in trees}
    return [judge_tree(search, tree) for tree in different.values()]


def common_trees(problem: OverlayProblem, rules: TreeRules) -> list[Tree]:
    """A nested tree of brokers in a row where neighbours have much traffic in common; or, of given
    links, those with the most. None if the degree limits are in the way.
    """
    common = shares_in_common(problem)
    links = problem.links
    if links is None:
        found = nested(row_of(common), rules.degree, busyness(problem))
    else:
        weight = values_at(common, links.a, links.b)
        found = spanning_tree(links.a, links.b, weight, problem.size, rules.degree)
    return [found] if found is not None and found.size == problem.size else []


def shares_in_common(problem: OverlayProblem) -> scipy.sparse.coo_array:
    """How much of the traffic of brokers a < b is common to both, as the cosine of their messages.

    Estimated from PAIRS pairs for each end of a route, so that long routes do not count squared.
    """
    traffic = crossing(some_routes(problem.routes, MOST_ENDS, 0), problem.size)
    sizes = np.diff(traffic.starts)
    route = np.repeat(np.arange(len(sizes)), sizes)
    ends = traffic.ends[np.lexsort((np.random.default_rng(0).random(len(route)), route))]
    begin, size = traffic.starts[route], sizes[route]
    place, found = np.arange(len(route)) - begin, []
    for step in range(1, PAIRS + 1):
        # Half way round, a pair would be met from both of its ends.
        fits = (size > 2 * step) | ((size == 2 * step) & (place < step))
        other = ends[begin[fits] + (place[fits] + step) % size[fits]]
        # For all others of an end stand the 2 × PAIRS that it was paired with.
        weight = traffic.messages[route[fits]] * np.maximum(1.0, (size[fits] - 1) / (2 * PAIRS))
        found.append((np.minimum(ends[fits], other), np.maximum(ends[fits], other), weight))
    a, b, weights = (np.concatenate(column) for column in zip(*found, strict=True))
    pairs = scipy.sparse.coo_array((weights, (a, b)), shape=(problem.size,) * 2)
    pairs.sum_duplicates()
    busy = np.maximum(busyness(problem), 1e-300)
    pairs.data /= np.sqrt(busy[pairs.row]) * np.sqrt(busy[pairs.col])
    return pairs


def row_of(weight: scipy.sparse.coo_array) -> Longs:
    """Brokers in a row, depth first along the heaviest spanning tree, part after part."""
    size = weight.shape[0]
    tree = spanning_tree(weight.row, weight.col, weight.data, size)
    apart = np.unique(connected_parts(tree.a, tree.b, size))[1:]
    a = np.concatenate((tree.a, np.zeros_like(apart)))
    b = np.concatenate((tree.b, apart))
    graph = scipy.sparse.coo_array((np.ones(len(a)), (a, b)), shape=(size, size)).tocsr()
    return np.asarray(depth_first_order(graph, 0, directed=False)[0], dtype=np.int64)


def nested(row: Longs, degree: Longs, busy: Floats) -> Tree | None:
    """A tree in which every subtree is a stretch of the row, as shallow as degrees allow.

    A stretch hangs from its broker with the highest degree limit, then the busiest; what is left of
    it is divided evenly among as many subtrees as that broker may have. O(n log n).
    """
    links: list[tuple[int, int]] = []
    todo = [(NONE, row)]
    while todo:
        above, stretch = todo.pop()
        top = np.lexsort((-busy[stretch], -np.minimum(degree[stretch], len(row))))[0]
        broker, rest = int(stretch[top]), np.delete(stretch, top)
        if above != NONE:
            links.append((above, broker))
        room = min(int(degree[broker]) - (above != NONE), len(rest))
        if room == 0 and len(rest):
            return None
        todo += [(broker, part) for part in np.array_split(rest, max(room, 1)) if len(part)]
    ends = np.array(links, dtype=np.int32).reshape(-1, 2)
    return tree_of(ends[:, 0], ends[:, 1])


def shallow_trees(problem: OverlayProblem, rules: TreeRules) -> list[Tree]:
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
    trees = [filled_levels(order, degree, centre) for centre in (1, 2)]
    found = [tree for tree in trees if tree is not None]
    return min(found, key=lambda tree: tree.diameter) if found else None


def filled_levels(order: Longs, degree: Longs, centre: int) -> Tree | None:
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


def repaired(problem: OverlayProblem, limits: TreeLimits, start: Tree) -> Tree:
    """The links of the start that may still be used, and the most similar ones for what is apart.

    Degree limits hold as far as similar links allow it; the search sees to the rest.
    """
    kept = kept_links(problem, start)
    a, b, weight = weighed_pairs(problem, problem.similarity.overlap)
    room = rules_of(limits, problem.size).degree
    for degree in (room, None):
        heavy = np.full(len(kept.a), np.inf)
        links = np.concatenate((kept.a, a)), np.concatenate((kept.b, b))
        kept = spanning_tree(*links, np.concatenate((heavy, weight)), problem.size, degree)
    return kept


def kept_links(problem: OverlayProblem, start: Tree) -> Tree:
    """The links of an earlier tree that may still be used."""
    links = problem.links
    if links is None:
        return merged_links(start)
    offered = whether_in_tree(start.a, start.b, Tree(links.a, links.b), problem.size)
    return merged_links(Tree(start.a[offered], start.b[offered]))
