"""What the routing below the protocol tells a node: its neighbour on the way from each root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.marking.params import MarkingParams
from fanplan.layers.marking.problem.marking import MarkedNetwork, MarkingProblem
from fanplan.layers.marking.problem.trees import (
    core_position,
    given_problem,
    network_ways,
    node_positions,
    shared_problem,
    source_problem,
)
from fanplan.network.brokers import Rooted
from fanplan.network.paths import shortest_tree
from fanplan.network.trees import children
from fanplan.workload.tables import TREES


class Way(NamedTuple):
    """A tree from one root to all nodes: the node before each, and those after it."""

    before: list[int]
    after: dict[int, list[int]]


@dataclass
class Routing:
    """Ways from roots, made when they are first asked for, and the problem that they pose.

    ``core`` is that of a shared tree, NONE for trees per source. ``publishing`` and ``subscribing``
    are the nodes where clients can be: those that ways can start at, and that all ways reach.
    ``given`` are the links of given trees.
    """

    network: MarkedNetwork
    core: int
    publishing: list[int]
    subscribing: list[int]
    parents: Callable[[int], Ints]
    pose: Callable[[MarkedNetwork], MarkingProblem]
    given: list[tuple[int, int]] = field(default_factory=list)
    ways: dict[int, Way] = field(default_factory=dict)

    def way(self, root: int) -> Way:
        if root not in self.ways:
            before = self.parents(root).tolist()
            self.ways[root] = Way(before, children(before))
        return self.ways[root]

    def wires(self) -> list[tuple[int, int, float, float]]:
        """Links of the network: both ends, latency in ms and price of a descriptor."""
        links = self.network.links
        if links is None:  # Any links that trees use.
            used = {(min(a, b), max(a, b)) for a, b in self.given}
            return [(a, b, 1.0, 1.0) for a, b in sorted(used)]
        price = np.ones(len(links.a)) if self.network.sending is None else self.network.sending
        columns = (links.a, links.b, links.latency_ms, price)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def problem(self, published: Longs, subscribed: Longs) -> MarkingProblem:
        """The marking problem with these descriptors at the nodes."""
        return self.pose(replace(self.network, published=published, subscribed=subscribed))


def routing_of(network: MarkedNetwork, trees: str, given: pa.Table | None = None) -> Routing:
    """Routing for ``shared:CORE``, ``per-source`` or ``given`` trees (a table of these)."""
    core = MarkingParams(trees).core
    if trees == "given":
        return given_routing(network, given)
    if core and network.storing is not None and np.ptp(network.storing):
        what = "differs between nodes, so links cannot be decided each on its own"
        raise InputError(Problem("storing", what, "Give one price, or use trees per source"))
    every = np.ones(network.size, bool)
    ways = network_ways(network)

    def parents(root: int) -> Ints:
        tree: Rooted = shortest_tree(root, ways, every)
        return tree.parent

    # Without a core any node of the part of the network in which clients are.
    members = (network.published > 0) | (network.subscribed > 0)
    root = core_position(network, core) if core else int(np.argmax(members))
    reached = [root, *np.flatnonzero(parents(root) != NONE).tolist()]
    pose = (lambda world: shared_problem(world, core)) if core else source_problem
    pose(network)  # Refuses clients that cannot reach each other.
    return Routing(network, root if core else NONE, reached, reached, parents, pose)


def given_routing(network: MarkedNetwork, given: pa.Table | None) -> Routing:
    """Clients can only publish where a tree starts, and subscribe where all trees come by."""
    if given is None:
        raise InputError(Problem("trees", "none are given", "Give a table root, parent, child"))
    root, parent, child = (node_positions(network, given, name) for name in TREES.required)
    roots = np.unique(root).tolist()
    given_problem(replace(network, published=np.bincount(root, minlength=network.size)), given)
    given_problem(network, given)

    def parents(start: int) -> Ints:
        before = np.full(network.size, NONE, np.int32)
        before[child[root == start]] = parent[root == start]
        return before

    reached = np.all([(parents(x) != NONE) | (np.arange(network.size) == x) for x in roots], axis=0)
    return Routing(
        network=network,
        core=NONE,
        publishing=roots,
        subscribing=np.flatnonzero(reached).tolist(),
        parents=parents,
        pose=lambda world: given_problem(world, given),
        given=list(zip(parent.tolist(), child.tolist(), strict=True)),
    )
