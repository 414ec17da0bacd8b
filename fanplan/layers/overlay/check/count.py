"""The check's own count of what trees carry: how many ends of a route lie beyond each link.

A message crosses a link exactly if some, but not all ends of its route lie beyond it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs, Position
from fanplan.core.kernels import compiled
from fanplan.plan.walks import way_length


class CountedTree(NamedTuple):
    """Per broker: messages processed, arrived, and on the link to its parent; summed delays."""

    processed: Floats
    arrived: Floats
    crossed: Floats
    delay: float


@compiled
def count_routes(
    parent: Ints,
    depth: Ints,
    latency: Floats,
    source: Ints,
    starts: Longs,
    brokers: Ints,
    messages: Floats,
    mine: np.ndarray,
) -> CountedTree:
    """Count the routes in ``mine``; ``latency`` is that of the link to the parent.

    O(ends of routes × depth).
    """
    size = len(parent)
    processed, arrived, crossed = np.zeros(size), np.zeros(size), np.zeros(size)
    beyond = np.zeros(size, np.int64)
    visited, used = np.full((2, size), -1, np.int64)
    delay = 0.0
    for route in np.flatnonzero(mine):
        weight, own = messages[route], source[route]
        wanted = brokers[starts[route] : starts[route + 1]]
        ends = np.unique(np.append(wanted, own))
        for end in ends:
            climb(parent, beyond, end, 1)
        visit(processed, visited, own, route, weight)
        for end in ends:
            here = end
            while beyond[here] < len(ends) and used[here] != route:
                used[here] = route
                crossed[here] += weight
                visit(processed, visited, here, route, weight)
                here = parent[here]
                visit(processed, visited, here, route, weight)
        for end in ends:
            climb(parent, beyond, end, -1)
        for end in wanted:
            arrived[end] += weight
            delay += weight * way_length(parent, depth, latency, own, end)
    return CountedTree(processed, arrived, crossed, delay)


@compiled
def climb(parent: Ints, beyond: Longs, here: int, step: int) -> None:
    """Count an end at a broker and at all above it."""
    while here >= 0:
        beyond[here] += step
        here = parent[here]


@compiled
def visit(processed: Floats, visited: Longs, here: int, route: Position, weight: float) -> None:
    """A broker processes a message once."""
    if visited[here] != route:
        visited[here] = route
        processed[here] += weight
