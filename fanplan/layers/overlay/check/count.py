"""The check's own count of what trees carry: how many ends of a route lie beyond each link.

A message crosses a link exactly if some, but not all ends of its route lie beyond it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled


class Counted(NamedTuple):
    """Per broker: messages processed, arrived, and on the link to its parent; summed delays."""

    processed: Floats
    arrived: Floats
    crossed: Floats
    delay: float


@compiled
def hung(a: Ints, b: Ints, brokers: int) -> tuple[Ints, Ints]:
    """Parent and depth of each broker below broker 0, by passes over the links; -1 if not reached.

    O(links × depth).
    """
    parent = np.full(brokers, -1, np.int32)
    depth = np.full(brokers, -1, np.int32)
    depth[0] = 0
    grown = True
    while grown:
        grown = False
        for i in range(len(a)):
            x, y = a[i], b[i]
            if depth[x] < 0:
                x, y = y, x
            if depth[x] >= 0 and depth[y] < 0:
                parent[y], depth[y] = x, depth[x] + 1
                grown = True
    return parent, depth


@compiled
def count(
    parent: Ints,
    depth: Ints,
    latency: Floats,
    source: Ints,
    starts: Longs,
    brokers: Ints,
    messages: Floats,
    mine: np.ndarray,
) -> Counted:
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
            delay += weight * apart(parent, depth, latency, own, end)
    return Counted(processed, arrived, crossed, delay)


@compiled
def climb(parent: Ints, beyond: Longs, here: int, step: int) -> None:
    """Count an end at a broker and at all above it."""
    while here >= 0:
        beyond[here] += step
        here = parent[here]


@compiled
def visit(processed: Floats, visited: Longs, here: int, route: int, weight: float) -> None:
    """A broker processes a message once."""
    if visited[here] != route:
        visited[here] = route
        processed[here] += weight


@compiled
def apart(parent: Ints, depth: Ints, latency: Floats, one: int, other: int) -> float:
    """Latency between two brokers, from both up to where they meet."""
    total = 0.0
    while one != other:
        if depth[one] < depth[other]:
            one, other = other, one
        total += latency[one]
        one = parent[one]
    return total
