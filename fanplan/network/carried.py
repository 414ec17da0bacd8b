"""What trees of brokers cost for given routes, counted without simulating anything.

Delays here are those of an idle network: the latencies along the path, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.network.brokers import OverlayProblem, Rooted, Routes
from fanplan.network.trees import Trees, distances, hang_all


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
        result: np.ndarray = self.processed - self.arrived
        return result

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
    return overlay_ledger_of(Trees(edges, (np.arange(len(edges)),), every), latency, routes)


def trees_ledger(problem: OverlayProblem, trees: Trees) -> OverlayLedger:
    """What all trees cost together, each with the messages that enter where it is taken."""
    return overlay_ledger_of(trees, problem.latencies(trees.links), problem.routes)


def overlay_ledger_of(trees: Trees, latency: Floats | float, routes: Routes) -> OverlayLedger:
    """The ledger of several trees, each of which joins all brokers.

    A message crosses exactly the smallest subtree that holds its source and its destinations. Time
    and memory O(brokers + size of all these subtrees), the latter time only.
    """
    links, brokers = trees.links, len(trees.of)
    latency = np.broadcast_to(np.asarray(latency, np.float64), len(links))
    processed, arrived = np.zeros((2, brokers))
    link, delay = np.zeros((len(links), 2)), 0.0
    for number, member in enumerate(trees.members):
        mine = np.flatnonzero(trees.of[routes.source] == number)
        tree = hang_all(links[member])
        up, down = np.zeros((2, brokers))
        ways = account(tree, distances(tree, latency[member]), mine, routes.source, routes.starts,
                       routes.brokers, routes.messages, processed, arrived, up, down)  # fmt: skip
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
    tree = hang_all(edges)
    far = distances(tree, np.broadcast_to(np.asarray(latency, np.float64), len(edges)))
    counts = np.zeros((4, len(edges) + 1))
    crossed, delays = account(tree, far, np.arange(len(routes)), routes.source, routes.starts,
                              routes.brokers, routes.messages, *counts)  # fmt: skip
    return crossed, delays


@compiled
def account(
    tree: Rooted,
    distance: Floats,
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
    """Count some of the routes. ``up[i]`` are messages from i to its parent; ``distance`` is the
    latency from the root of the tree.

    Returns the messages on links and the sum of delays of each of these routes.

    A route's subtree grows from its source, destination by destination. ``top`` is its highest
    broker. ``away`` is the latency from the source of each broker in it.
    """
    parent, depth = tree.parent, tree.depth
    # Brokers carry the number of the last route through them, so nothing is cleared in between.
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
                # The deeper of the two climbs, until they meet or the way enters the subtree.
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
            # From there down to the destination nothing has been visited yet.
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
    rising = edges[tree.link[child], 0] == child
    link[tree.link[child], 0] = np.where(rising, up[child], down[child])
    link[tree.link[child], 1] = np.where(rising, down[child], up[child])
    return link
