"""Brokers of all trees of a groups problem at work, under random churn.

Subscriptions change and groups are rebuilt while publications flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fanplan.core.arrays import NONE, Ints
from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.layers.groups.protocol.audit import Audit, AuditCounts
from fanplan.layers.groups.protocol.broker import Broker, Neighbours, Surroundings
from fanplan.layers.groups.protocol.coordinator import Chart, Choose, Coordinator
from fanplan.layers.groups.protocol.links import OrderedLinks
from fanplan.layers.groups.protocol.messages import KINDS, Control, Order
from fanplan.layers.groups.protocol.params import GroupsChurn
from fanplan.layers.groups.protocol.root import Root
from fanplan.network.carried import ratio
from fanplan.network.trees import children


def groups_churn(
    problem: GroupsProblem, churn: GroupsChurn, choose: Choose, cell: Ints | None = None
) -> GroupsChurnResult:
    """Set groups up, let events happen, and check that all publications arrive exactly once.

    ``choose`` says which groups are set up whenever a coordinator asks. Raises a CheckError that
    names the publication if one is lost, doubled, or reaches a broker that does not want it.
    O(messages sent), each a Python object: about 50,000 a second.
    """
    if not problem.routes.messages.any():
        raise InputError(Problem("routes", "nothing is published", "Give routes with messages"))
    system = GroupSystem(problem, churn, choose, cell)
    system.start()
    system.tally.begin()
    stir(system, churn)
    links, groups = system.links, sum(len(root.standing) for root in system.roots)
    return GroupsChurnResult(system.tally, links.resent, groups, system.table_entries, links.now)


class GroupSystem:
    """Each tree has brokers of its own, and a coordinator (section 2.4).

    Route i of the problem is traffic; who wants it changes. ``cell`` has the cell of each route; if
    it is not given, each route is a cell of its own, and groups are exact. ``wants`` are the pairs
    (route, broker) as clients have asked for them last.
    """

    def __init__(
        self, problem: GroupsProblem, churn: GroupsChurn, choose: Choose, cell: Ints | None = None
    ) -> None:
        self.problem, self.choose = problem, choose
        self.links = OrderedLinks(churn)
        self.tally, self.audit = AuditCounts(len(problem.brokers)), Audit(problem.brokers)
        self.around = Surroundings(self.links, churn, self.tally, self.audit)
        self.cell = np.arange(len(problem.routes), dtype=np.int32) if cell is None else cell
        self.wants: set[tuple[int, int]] = set()
        self.brokers: dict[tuple[int, int], Broker] = {}
        self.roots: list[Root] = []
        self.coordinators: list[Coordinator] = []
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
        for coordinator in self.coordinators:
            coordinator.begin()
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
        """The brokers of a tree, its root first, and its coordinator."""
        trees, root = self.problem.trees, int(self.problem.trees.root[tree])
        parent, chart = trees.parent[tree], self._chart(tree)
        below = children(parent.tolist())
        brokers = (root, *np.flatnonzero(parent != NONE).tolist())
        coordinator = self._coordinator_of(root, brokers)
        for broker in brokers:
            at = (int(parent[broker]), tuple(below.get(broker, ())), root, coordinator)
            near = Neighbours(tree, broker, *at)
            if broker == root:
                cell = dict(zip(chart.route.tolist(), chart.cell.tolist(), strict=True))
                self.roots.append(Root(near, self.around, cell))
                self.brokers[tree, root] = self.roots[-1]
            else:
                self.brokers[tree, broker] = Broker(near, self.around)
        self._seat(self.brokers[tree, coordinator], self.roots[-1], chart)

    def _coordinator_of(self, root: int, brokers: tuple[int, ...]) -> int:
        """The broker that coordinates a tree."""
        wanted = self.around.churn.coordinator
        if wanted is None:
            return root
        names = self.problem.brokers
        for broker in brokers:
            if names[broker].as_py() == wanted:
                return broker
        what = f"broker {wanted!r} is not in the tree of {names[root].as_py()!r}"
        raise InputError(Problem("coordinator", what, "Name a broker that is in all trees"))

    def _seat(self, host: Broker, root: Root, chart: Chart) -> None:
        """Put a coordinator at a broker; it sends its orders unless the root is there."""

        def tell(message: Control) -> None:
            if isinstance(message, Order) and host is root:
                root.ordered(message)
            else:
                host.send(root.near.broker, message)

        every = self.around.churn.rebuild_every
        host.coordinator = Coordinator(chart, self.choose, every, tell, host.notify)
        self.coordinators.append(host.coordinator)

    def _chart(self, tree: int) -> Chart:
        problem, trees = self.problem, self.problem.trees
        own = np.flatnonzero(problem.tree == tree).astype(np.int32)
        one = slice(tree, tree + 1)
        alone = BrokerTrees(trees.root[one].copy(), trees.parent[one].copy())
        return Chart(problem.brokers, alone, own, self.cell[own], problem.routes.messages[own])


# ---- events


def stir(system: GroupSystem, churn: GroupsChurn) -> None:
    """Let events happen, wait until nothing is under way, and check what arrived."""
    driver = Driver(system, churn)
    for _ in range(churn.events):
        driver.plan_event()
    system.links.run()
    system.audit.close()


class Driver:
    """Draws events in the order in which they happen, and so knows what brokers want by then."""

    def __init__(self, system: GroupSystem, churn: GroupsChurn) -> None:
        self.system, self.churn = system, churn
        self.rng = np.random.default_rng((churn.seed, 1))
        self.time = system.links.now
        self.wants = sorted(system.wants)
        self.wanted = set(self.wants)
        sent = np.cumsum(system.problem.routes.messages)
        self.share = sent / sent[-1]
        self.homes = homes_of(system.problem)
        self.most = sum(len(self.homes[tree]) for tree in system.problem.tree)

    def plan_event(self) -> None:
        self.time += self.rng.exponential(self.churn.every_ms)
        if self.rng.random() < self.churn.updates:
            self.system.links.at(self.time, self.system.toggle, *self.changed())
        else:
            route = int(np.searchsorted(self.share, self.rng.random(), side="right"))
            self.system.links.at(self.time, self.system.publish, route)

    def changed(self) -> tuple[int, int]:
        """A subscription to drop or to add, at even odds where there is a choice."""
        full = len(self.wants) == self.most
        if self.wants and (full or self.rng.random() < 0.5):
            return self.dropped()
        return self.added()

    def dropped(self) -> tuple[int, int]:
        place = int(self.rng.integers(len(self.wants)))
        self.wants[place], self.wants[-1] = self.wants[-1], self.wants[place]
        self.wanted.remove(self.wants[-1])
        return self.wants.pop()

    def added(self) -> tuple[int, int]:
        while True:
            route = int(self.rng.integers(len(self.system.problem.routes)))
            wish = route, int(self.rng.choice(self.homes[self.system.problem.tree[route]]))
            if wish not in self.wanted:
                self.wants.append(wish)
                self.wanted.add(wish)
                return wish


def homes_of(problem: GroupsProblem) -> list[Ints]:
    """The brokers of each tree."""
    trees = problem.trees
    within = trees.parent >= 0
    within[np.arange(len(trees.root)), trees.root] = True
    return [np.flatnonzero(row).astype(np.int32) for row in within]


# ---- what a run shows


@dataclass(frozen=True, eq=False)
class GroupsChurnResult:
    """What a system counted in which every publication was delivered exactly once.

    What is lost on links and sent again is only in ``resent``. ``groups`` stand at the end,
    ``table_entries`` are what default routing then matches against.
    """

    tally: AuditCounts
    resent: int
    groups: int
    table_entries: int
    ended_ms: float

    def summary(self) -> dict[str, Any]:
        """All figures that are one number, and control messages by kind."""
        tally = self.tally
        return {
            "publications": tally.entered,
            "deliveries": int(tally.arrived.sum()),
            "unwanted": int(tally.unwanted.sum()),
            "in_groups": tally.grouped,
            "link_messages": int(tally.received.sum()),
            "matches": int(tally.matched.sum()),
            "matches_most": int(tally.matched.max(initial=0)),
            "delay_mean_ms": ratio(float(tally.delay.sum()), int(tally.arrived.sum())),
            "delay_max_ms": tally.delay_most,
            "held": len(tally.held_ms),
            **mean_and_longest("held", tally.held_ms),
            "updates": len(tally.accepted_ms),
            **mean_and_longest("accepted", tally.accepted_ms),
            "rebuilds": len(tally.rebuild_ms),
            **mean_and_longest("rebuild", tally.rebuild_ms),
            "groups": self.groups,
            "groups_built": tally.built,
            "groups_kept": tally.kept,
            "cells_evicted": tally.evicted,
            "entries": int(tally.entries.sum()),
            "entries_most": int(tally.entries_most.max(initial=0)),
            "table_entries": self.table_entries,
            "overhead": tally.overhead,
            "control_messages": tally.control.total(),
            "resent": self.resent,
            "ended_ms": self.ended_ms,
            "set_up": {kind: tally.set_up[kind] for kind in KINDS.values()},
            "control": {kind: tally.control[kind] for kind in KINDS.values()},
        }


def mean_and_longest(name: str, times: Sequence[float]) -> dict[str, float]:
    """The mean and the longest of some times, 0 if there are none."""
    mean = ratio(float(np.sum(times)), len(times))
    return {f"{name}_mean_ms": mean, f"{name}_max_ms": float(max(times, default=0.0))}
