"""What trees of brokers cost for given routes, counted without simulating anything.

Delays here are those of an idle network: the latencies along the path, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.network.brokers import Routes


class Counts:
    """What a ledger predicts and a simulation counts, and the metrics of both.

    Of Tajuddin (2011), sections 5.2 and 6.4.3. ``processed`` counts each publication once at every
    broker it visits, its source included; ``arrived`` only where a subscriber wants it. ``link[l]``
    has the publications that crossed link l from its first end to its second, and back.
    """

    publications: float
    processed: np.ndarray
    arrived: np.ndarray
    link: np.ndarray

    @property
    def link_messages(self) -> float:
        """Copies of publications on all links."""
        return float(self.link.sum())

    @property
    def arrivals(self) -> float:
        """Pairs of a publication and a broker that must get it, its source included."""
        return float(self.arrived.sum())

    @property
    def messages_per_publication(self) -> float:
        """Message count as section 6.4.3 defines it: link messages ÷ publications."""
        return ratio(self.link_messages, self.publications)

    @property
    def messages_per_arrival(self) -> float:
        """Message count as Table 5.2 shows it: link messages ÷ destination brokers."""
        return ratio(self.link_messages, self.arrivals)

    @property
    def brokers_per_publication(self) -> float:
        """How many brokers a publication visits, its source included (Figure 5.6b)."""
        return ratio(float(self.processed.sum()), self.publications)

    @property
    def forwarded(self) -> np.ndarray:
        """Publications that a broker took up though none of its own subscribers wants them."""
        return self.processed - self.arrived

    @property
    def forwarding_ratio(self) -> float:
        """Pure forwarding message ratio: the mean of forwarded ÷ processed over busy brokers."""
        busy = self.processed > 0
        shares = self.forwarded[busy] / self.processed[busy]
        return ratio(float(shares.sum()), int(busy.sum()))


def ratio(part: float, whole: float) -> float:
    """A share of something; 0 of nothing."""
    return part / whole if whole else 0.0


@dataclass(frozen=True, eq=False)
class OverlayLedger(Counts):
    """Totals over the window; arrays have an entry per broker, ``link`` a row per link.

    ``delay`` adds up the path latencies of all arrivals, in the unit of the latencies.
    """

    publications: float
    deliveries: float
    processed: Floats
    arrived: Floats
    link: Floats
    delay: float

    @property
    def delay_mean(self) -> float:
        """Mean delay of an arrival; those at the source count with 0."""
        return ratio(self.delay, self.arrivals)


def overlay_ledger(edges: Ints, latency: Floats | float, routes: Routes) -> OverlayLedger:
    """The ledger of a tree. Row ``e`` of ``edges`` links two brokers, as positions."""
    every = np.zeros(len(edges) + 1, dtype=np.int32)
    return overlay_ledger_of(edges, latency, [np.arange(len(edges))], every, routes)


def overlay_ledger_of(
    links: Ints, latency: Floats | float, trees: Sequence[Longs], tree_of: Ints, routes: Routes
) -> OverlayLedger:
    """The ledger of several trees: what enters at broker i takes ``trees[tree_of[i]]``.

    A tree is the positions of its links among ``links``, and joins all brokers. A message crosses
    exactly the smallest subtree that holds its source and its destinations. Time and memory
    O(brokers + size of all these subtrees), the latter time only.
    """
    latency = np.broadcast_to(np.asarray(latency, np.float64), len(links))
    processed, arrived = np.zeros(len(tree_of)), np.zeros(len(tree_of))
    link, delay = np.zeros((len(links), 2)), 0.0
    for number, member in enumerate(trees):
        mine = np.flatnonzero(tree_of[routes.source] == number)
        tree = rooted(links[member], latency[member])
        up, down = np.zeros(len(tree_of)), np.zeros(len(tree_of))
        ways = account(tree, mine, routes.source, routes.starts, routes.brokers, routes.messages,
                       processed, arrived, up, down)  # fmt: skip
        link[member] += by_edge(tree, links[member], up, down)
        delay += float(ways[1].sum())
    return OverlayLedger(
        publications=float(routes.messages.sum()),
        deliveries=float(routes.deliveries.sum()),
        processed=processed,
        arrived=arrived,
        link=link,
        delay=delay,
    )


def route_costs(edges: Ints, latency: Floats | float, routes: Routes) -> tuple[Floats, Floats]:
    """Messages on links, and the sum of delays, of each route on a tree."""
    tree = rooted(edges, latency)
    counts = np.zeros((4, len(edges) + 1))
    crossed, delays = account(tree, np.arange(len(routes)), routes.source, routes.starts,
                              routes.brokers, routes.messages, *counts)  # fmt: skip
    return crossed, delays


class Rooted(NamedTuple):
    """A tree hung up at a root, whose parent is -1. ``order`` lists parents before children.

    ``edge`` is the position of the edge to the parent, ``distance`` the latency from the root.
    """

    parent: Ints
    edge: Ints
    depth: Ints
    distance: Floats
    order: Ints


def rooted(edges: Ints, latency: Floats | float) -> Rooted:
    """Hang up a tree of ``len(edges) + 1`` brokers; an error if it is none. O(brokers)."""
    brokers = len(edges) + 1
    if len(edges) and (edges.min() < 0 or edges.max() >= brokers):
        what = f"a link names broker {edges.max()}, but {len(edges)} links join {brokers} brokers"
        raise InputError(Problem("tree", what, "Give one link less than there are brokers"))
    return rooted_at(0, brokers, edges, latency)


def rooted_at(root: int, brokers: int, edges: Ints, latency: Floats | float) -> Rooted:
    """Hang up a tree that may leave out some of the brokers; an error if it is none."""
    latency = np.broadcast_to(np.asarray(latency, np.float64), len(edges))
    ends = np.concatenate((edges[:, 0], edges[:, 1])).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=brokers))))
    tree = hang(root, np.argsort(ends, kind="stable"), starts, edges.astype(np.int32), latency)
    if len(tree.order) < len(edges) + 1:
        what = f"{len(edges)} links join only {len(tree.order)} brokers"
        raise InputError(Problem("tree", what, "Give links that form one tree, without a cycle"))
    return tree


@compiled
def hang(root: int, ends: Longs, starts: Longs, edges: Ints, latency: Floats) -> Rooted:
    """Breadth first from a root; ``ends[starts[i]:starts[i + 1]]`` are the edge ends at i.

    Brokers that are not reached have depth -1.
    """
    brokers = len(starts) - 1
    parent = np.full(brokers, -1, np.int32)
    edge = np.full(brokers, -1, np.int32)
    depth = np.full(brokers, -1, np.int32)
    distance = np.zeros(brokers)
    order = np.zeros(brokers, np.int32)
    order[0], depth[root] = root, 0
    found = 1
    for at in range(brokers):
        if at == found:
            break
        here = order[at]
        for end in ends[starts[here] : starts[here + 1]]:
            e = end % len(edges)
            there = edges[e, 0] + edges[e, 1] - here
            if depth[there] < 0:
                parent[there], edge[there], depth[there] = here, e, depth[here] + 1
                distance[there] = distance[here] + latency[e]
                order[found] = there
                found += 1
    return Rooted(parent, edge, depth, distance, order[:found])


@compiled
def account(
    tree: Rooted,
    mine: Longs,
    source: Ints,
    starts: Longs,
    brokers: Ints,
    messages: Floats,
    processed: Floats,
    arrived: Floats,
    up: Floats,
    down: Floats,
) -> tuple[Floats, Floats]:
    """Count some of the routes. ``up[i]`` are messages from i to its parent.

    Returns the messages on links and the sum of delays of each of these routes.

    A route's subtree grows from its source, destination by destination. ``top`` is its highest
    broker. ``away`` is the latency from the source of each broker in it.
    """
    parent, depth, distance = tree.parent, tree.depth, tree.distance
    inside = np.full(len(parent), -1, np.int64)
    away = np.empty(len(parent))
    crossed, delays = np.zeros(len(mine)), np.zeros(len(mine))
    for i in range(len(mine)):
        route = mine[i]
        top, count = source[route], messages[route]
        inside[top], away[top] = route, 0.0
        processed[top] += count
        for broker in brokers[starts[route] : starts[route + 1]]:
            here = broker
            while inside[here] != route:
                if depth[here] > depth[top]:
                    here = parent[here]
                    continue
                above = parent[top]
                up[top] += count
                crossed[i] += count
                processed[above] += count
                inside[above] = route
                away[above] = away[top] + (distance[top] - distance[above])
                top = above
            join, here = here, broker
            while inside[here] != route:
                down[here] += count
                crossed[i] += count
                processed[here] += count
                inside[here] = route
                away[here] = away[join] + (distance[here] - distance[join])
                here = parent[here]
            arrived[broker] += count
            delays[i] += count * away[broker]
    return crossed, delays


def by_edge(tree: Rooted, edges: Ints, up: Floats, down: Floats) -> Floats:
    """Messages per edge, from its first end to its second and back."""
    link = np.zeros((len(edges), 2))
    child = tree.order[1:]
    rising = edges[tree.edge[child], 0] == child
    link[tree.edge[child], 0] = np.where(rising, up[child], down[child])
    link[tree.edge[child], 1] = np.where(rising, down[child], up[child])
    return link
