"""Random churn: subscriptions change and groups are rebuilt while publications flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Ints
from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.protocol.audit import Tally
from fanplan.layers.groups.protocol.links import LinkParams
from fanplan.layers.groups.protocol.messages import KINDS
from fanplan.layers.groups.protocol.root import Choose, Hold, RootRules
from fanplan.layers.groups.protocol.system import System, SystemParams
from fanplan.network.carried import ratio


@dataclass(frozen=True)
class GroupsChurn:
    """``events`` happen one after the other, every ``every_ms`` on average.

    An event is a broker that subscribes to a route or no longer does, with the chance ``updates``,
    or else a publication, on a route by its messages. As many subscriptions are added as dropped,
    on average. A message takes from ``latency_ms[0]`` to ``latency_ms[1]``; a share ``loss`` gets
    lost and is sent again. See RootRules for ``rebuild_every`` and ``hold``.
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
        rules = RootRules(choose, self.rebuild_every, self.hold, self.shortcuts)
        links = LinkParams(*self.latency_ms, self.loss)
        return SystemParams(rules, links, self.match_ms, self.seed)


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
    system = System(problem, churn.system_params(choose), cell)
    system.start()
    system.tally.begin()
    stir(system, churn)
    return churn_result(system)


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


# ---- what a run shows


@dataclass(frozen=True, eq=False)
class GroupsChurnResult:
    """What a system counted in which every publication was delivered exactly once.

    What is lost on links and sent again is only in ``resent``. ``groups`` stand at the end,
    ``table_entries`` are what default routing then matches against.
    """

    tally: Tally
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

    def broker_table(self, brokers: pa.Array) -> pa.Table:
        """One row per broker."""
        columns = ("received", "matched", "arrived", "unwanted", "delay", "entries", "entries_most")
        counts = {name: getattr(self.tally, name) for name in columns}
        table = pa.table({"broker": brokers} | counts)
        return table.rename_columns({"delay": "delay_ms"})


def churn_result(system: System) -> GroupsChurnResult:
    """The figures of a system that has come to rest."""
    groups = sum(len(root.standing) for root in system.roots)
    links = system.links
    return GroupsChurnResult(system.tally, links.resent, groups, system.table_entries, links.now)


def mean_and_longest(name: str, times: Sequence[float]) -> dict[str, float]:
    """The mean and the longest of some times, 0 if there are none."""
    mean = ratio(float(np.sum(times)), len(times))
    return {f"{name}_mean_ms": mean, f"{name}_max_ms": float(max(times, default=0.0))}
