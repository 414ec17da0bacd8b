"""Brokers of all trees of a groups problem, at work."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fanplan.core.arrays import NONE, Ints
from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.protocol.audit import Audit, Tally
from fanplan.layers.groups.protocol.broker import Broker, Neighbours, Surroundings
from fanplan.layers.groups.protocol.links import LinkParams, OrderedLinks
from fanplan.layers.groups.protocol.root import Chart, Root, RootRules
from fanplan.network.trees import children


@dataclass(frozen=True)
class SystemParams:
    """How coordinators, links and brokers behave. ``match_ms`` is spent on each match."""

    rules: RootRules
    links: LinkParams = field(default_factory=LinkParams)
    match_ms: float = 1.0
    seed: int = 0


class System:
    """Each tree has brokers of its own, with a coordinator at its root (section 2.4).

    Route i of the problem is traffic; who wants it changes. ``cell`` has the cell of each route; if
    it is not given, each route is a cell of its own, and groups are exact. ``wants`` are the pairs
    (route, broker) as clients have asked for them last.
    """

    def __init__(
        self, problem: GroupsProblem, params: SystemParams, cell: Ints | None = None
    ) -> None:
        require_cells(problem, cell)
        size = len(problem.brokers)
        self.problem, self.rules = problem, params.rules
        self.links = OrderedLinks(params.links, params.seed)
        self.tally, self.audit = Tally(size), Audit(problem.brokers)
        self.around = Surroundings(self.links, params.match_ms, self.tally, self.audit)
        self.cell = np.arange(len(problem.routes), dtype=np.int32) if cell is None else cell
        self.wants: set[tuple[int, int]] = set()
        self.brokers: dict[tuple[int, int], Broker] = {}
        self.roots: list[Root] = []
        for tree in range(len(problem.trees.root)):
            self._plant(tree)
        for place, broker in self.brokers.items():
            self.links.receivers[place] = broker.receive

    def start(self) -> None:
        """Subscribe as the problem says, and set groups up, with nothing published meanwhile."""
        routes = self.problem.routes
        first: dict[tuple[int, int], set[int]] = {}
        for route, tree in enumerate(self.problem.tree.tolist()):
            for broker in routes.destinations(route).tolist():
                first.setdefault((tree, broker), set()).add(route)
                self.wants.add((route, broker))
        for place, wanted in first.items():
            self.brokers[place].change(frozenset(wanted), frozenset())
        self.links.run()
        self.rebuild()

    def rebuild(self) -> None:
        """Rebuild the groups of all trees now, and wait until that is done."""
        for root in self.roots:
            root.begin_rebuild()
        self.links.run()

    def publish(self, route: int) -> None:
        self.roots[self.problem.tree[route]].publish(route)

    def toggle(self, route: int, broker: int) -> None:
        """A broker subscribes to a route, or no longer does."""
        wish, one, none = (route, broker), frozenset((route,)), frozenset[int]()
        at = self.brokers[int(self.problem.tree[route]), broker]
        if wish in self.wants:
            at.change(none, one)
        else:
            at.change(one, none)
        self.wants ^= {wish}

    @property
    def table_entries(self) -> int:
        """(route, child) pairs of the tables that default routing matches against."""
        tables = (table for broker in self.brokers.values() for table in broker.table.values())
        return sum(count > 0 for table in tables for count in table.values())

    def _plant(self, tree: int) -> None:
        trees, root = self.problem.trees, int(self.problem.trees.root[tree])
        parent = trees.parent[tree]
        below = children(parent.tolist())
        for broker in (root, *np.flatnonzero(parent != NONE).tolist()):
            near = Neighbours(tree, broker, int(parent[broker]), tuple(below.get(broker, ())), root)
            self.brokers[tree, broker] = self._broker(near)

    def _broker(self, near: Neighbours) -> Broker:
        if near.broker != near.root:
            return Broker(near, self.around)
        root = Root(near, self.around, self._chart(near.tree), self.rules)
        self.roots.append(root)
        return root

    def _chart(self, tree: int) -> Chart:
        problem, trees = self.problem, self.problem.trees
        own = np.flatnonzero(problem.tree == tree).astype(np.int32)
        alone = BrokerTrees(
            trees.root[tree : tree + 1].copy(), trees.parent[tree : tree + 1].copy()
        )
        return Chart(problem.brokers, alone, own, self.cell[own], problem.routes.messages[own])


def require_cells(problem: GroupsProblem, cell: Ints | None) -> None:
    if cell is not None and len(cell) != len(problem.routes):
        what = f"{len(cell)} cells for {len(problem.routes)} routes"
        raise InputError(Problem("cells", what, "Give the cell of each route"))
