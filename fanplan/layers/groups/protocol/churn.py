"""Random churn: subscriptions change and groups are rebuilt while publications flow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.protocol.links import LinkParams
from fanplan.layers.groups.protocol.messages import KINDS, OVERHEAD
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
    """Counts of a run in which every publication was delivered exactly once.

    ``set_up`` are control messages before the first event, ``control`` those since, by kind; what
    is lost on links and sent again is only in ``resent``. Arrays with an entry per broker are as in
    the ledger of groups. Times are in ms: ``held_ms`` of publications held at a root,
    ``accepted_ms`` from asking for an update until it is in force, ``rebuild_ms`` of rebuilds.
    """

    publications: int
    grouped: int
    received: Longs
    matched: Longs
    arrived: Longs
    unwanted: Longs
    delay: Floats
    delay_most_ms: float
    set_up: dict[str, int]
    control: dict[str, int]
    resent: int
    groups: int
    built: int
    kept: int
    evicted: int
    entries: Longs
    entries_most: Longs
    table_entries: int
    held_ms: Floats
    accepted_ms: Floats
    rebuild_ms: Floats
    ended_ms: float

    def summary(self) -> dict[str, Any]:
        """All figures that are one number, and control messages by kind."""
        return {
            "publications": self.publications,
            "deliveries": int(self.arrived.sum()),
            "unwanted": int(self.unwanted.sum()),
            "in_groups": self.grouped,
            "link_messages": int(self.received.sum()),
            "matches": int(self.matched.sum()),
            "matches_most": int(self.matched.max(initial=0)),
            "delay_mean_ms": ratio(float(self.delay.sum()), int(self.arrived.sum())),
            "delay_max_ms": self.delay_most_ms,
            "held": len(self.held_ms),
            **mean_and_longest("held", self.held_ms),
            "updates": len(self.accepted_ms),
            **mean_and_longest("accepted", self.accepted_ms),
            "rebuilds": len(self.rebuild_ms),
            **mean_and_longest("rebuild", self.rebuild_ms),
            "groups": self.groups,
            "groups_built": self.built,
            "groups_kept": self.kept,
            "cells_evicted": self.evicted,
            "entries": int(self.entries.sum()),
            "entries_most": int(self.entries_most.max(initial=0)),
            "table_entries": self.table_entries,
            "overhead": sum(self.control[kind] for kind in OVERHEAD),
            "control_messages": sum(self.control.values()),
            "resent": self.resent,
            "ended_ms": self.ended_ms,
            "set_up": self.set_up,
            "control": self.control,
        }

    def broker_table(self, brokers: pa.Array) -> pa.Table:
        """One row per broker."""
        columns = {
            "broker": brokers,
            "received": self.received,
            "matched": self.matched,
            "arrived": self.arrived,
            "unwanted": self.unwanted,
            "delay_ms": self.delay,
            "entries": self.entries,
            "entries_most": self.entries_most,
        }
        return pa.table(columns)


def churn_result(system: System) -> GroupsChurnResult:
    """The figures of a system that has come to rest."""
    tally = system.tally
    return GroupsChurnResult(
        publications=tally.entered,
        grouped=tally.grouped,
        received=tally.received,
        matched=tally.matched,
        arrived=tally.arrived,
        unwanted=tally.unwanted,
        delay=tally.delay,
        delay_most_ms=tally.delay_most,
        set_up={kind: tally.set_up[kind] for kind in KINDS.values()},
        control={kind: tally.control[kind] for kind in KINDS.values()},
        resent=system.links.resent,
        groups=sum(len(root.standing) for root in system.roots),
        built=tally.built,
        kept=tally.kept,
        evicted=tally.evicted,
        entries=tally.entries,
        entries_most=tally.entries_most,
        table_entries=system.table_entries,
        held_ms=np.array(tally.held_ms, np.float64),
        accepted_ms=np.array(tally.accepted_ms, np.float64),
        rebuild_ms=np.array(tally.rebuild_ms, np.float64),
        ended_ms=system.links.now,
    )


def mean_and_longest(name: str, times: Floats) -> dict[str, float]:
    """The mean and the longest of some times, 0 if there are none."""
    mean = ratio(float(times.sum()), len(times))
    return {f"{name}_mean_ms": mean, f"{name}_max_ms": float(times.max(initial=0.0))}
