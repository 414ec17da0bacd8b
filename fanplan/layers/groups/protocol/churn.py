"""Random churn: subscriptions change and groups are rebuilt while publications flow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Ints
from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.protocol.chart import Choose
from fanplan.layers.groups.protocol.links import LinkParams
from fanplan.layers.groups.protocol.result import ChurnResult, result_of
from fanplan.layers.groups.protocol.root import Hold, Rules
from fanplan.layers.groups.protocol.system import System, SystemParams


@dataclass(frozen=True)
class GroupsChurn:
    """``events`` happen one after the other, every ``every_ms`` on average.

    An event is a broker that subscribes to a route or no longer does, with the chance ``updates``,
    or else a publication, on a route by its messages. As many subscriptions are added as dropped,
    on average. A message takes from ``latency_ms[0]`` to ``latency_ms[1]``; a share ``loss`` gets
    lost and is sent again. See Rules for ``rebuild_every`` and ``hold``.
    """

    events: int = 1000
    seed: int = 0
    updates: float = 0.2
    rebuild_every: int = 20
    hold: Hold = "affected"
    shortcuts: bool = True
    every_ms: float = 1.0
    latency_ms: tuple[float, float] = (1.0, 10.0)
    match_ms: float = 1.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        problems = []
        for name in ("events", "seed"):
            if getattr(self, name) < 0:
                what = f"{getattr(self, name)} is negative"
                problems.append(Problem(name, what, "Give 0 or more"))
        if not 0 <= self.updates <= 1:
            what = f"{self.updates} is no share"
            problems.append(Problem("updates", what, "Give a share from 0 to 1"))
        for name in ("every_ms", "match_ms"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                problems.append(Problem(name, f"{value} is no such time", "Give 0 ms or more"))
        if problems:
            raise InputError(problems)

    def system_params(self, choose: Choose) -> SystemParams:
        rules = Rules(choose, self.rebuild_every, self.hold, self.shortcuts)
        links = LinkParams(*self.latency_ms, self.loss)
        return SystemParams(rules, links, self.match_ms, self.seed)


def groups_churn(
    problem: GroupsProblem, churn: GroupsChurn, choose: Choose, cell: Ints | None = None
) -> ChurnResult:
    """Set groups up, let events happen, and check that all publications arrive exactly once.

    ``choose`` says which groups are set up whenever a coordinator asks. Raises a CheckError that
    names the publication if one is lost, doubled, or reaches a broker that does not want it.
    O(messages sent), each a Python object: about 50,000 a second.
    """
    if not problem.routes.messages.any():
        raise InputError(Problem("routes", "nothing is published", "Give routes with messages"))
    system = System(problem, churn.system_params(choose), cell)
    system.start()
    system.tally.begin()
    stir(system, churn)
    return result_of(system)


def stir(system: System, churn: GroupsChurn) -> None:
    """Let events happen, wait until nothing is under way, and check what arrived."""
    driver = Driver(system, churn)
    for _ in range(churn.events):
        driver.plan_event()
    system.links.run()
    system.audit.close()


class Driver:
    """Draws events in the order in which they happen, and so knows what brokers want by then."""

    def __init__(self, system: System, churn: GroupsChurn) -> None:
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
