"""Trees of brokers with traffic in common: starts that obey degree limits."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import depth_first_order

from fanplan.core.arrays import NONE, Floats, Longs
from fanplan.layers.overlay.published.spanning import parts, spanning_tree
from fanplan.layers.overlay.search.limits import Rules
from fanplan.layers.overlay.search.shallow import busyness
from fanplan.layers.overlay.search.traffic import some_routes, traffic_of
from fanplan.network.brokers import OverlayProblem, values_at
from fanplan.network.trees import Tree, tree_of

PAIRS = 6
"""Other ends that each end of a route is paired with."""

MOST_ENDS = 500_000
"""Ends of routes that are paired."""


def common_trees(problem: OverlayProblem, rules: Rules) -> list[Tree]:
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
    traffic = traffic_of(some_routes(problem.routes, MOST_ENDS, 0), problem.size)
    sizes = np.diff(traffic.starts)
    route = np.repeat(np.arange(len(sizes)), sizes)
    ends = traffic.ends[np.lexsort((np.random.default_rng(0).random(len(route)), route))]
    begin, size = traffic.starts[route], sizes[route]
    place, found = np.arange(len(route)) - begin, []
    for step in range(1, PAIRS + 1):
        fits = (size > 2 * step) | ((size == 2 * step) & (place < step))
        other = ends[begin[fits] + (place[fits] + step) % size[fits]]
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
    apart = np.unique(parts(tree.a, tree.b, size))[1:]
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
