"""The groups problem: traffic on trees of brokers, and parts of it that are matched only once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.interest import first_unsorted
from fanplan.network.brokers import Routes


@dataclass(frozen=True, eq=False)
class BrokerTrees:
    """Trees of brokers, each hung at the broker where its traffic enters.

    ``parent[t, b]`` is the broker before b on the way from ``root[t]``: NONE at the root, and at
    brokers that tree t leaves out.
    """

    root: Ints
    parent: Ints

    def __post_init__(self) -> None:
        problems = [*self._roots()] or [*self._ways()]
        if problems:
            raise InputError(problems)
        self.root.setflags(write=False)
        self.parent.setflags(write=False)

    @property
    def brokers(self) -> int:
        result: int = self.parent.shape[1]
        return result

    @property
    def inner(self) -> Bools:
        """Trees × brokers: who has a broker below, and so must match what comes by default."""
        inner = np.zeros(self.parent.shape, bool)
        tree, broker = np.nonzero(self.parent >= 0)
        inner[tree, self.parent[tree, broker]] = True
        return inner

    def of(self, source: Ints) -> Ints:
        """The tree that is hung at each of the brokers; NONE where there is none."""
        tree = np.full(self.brokers, NONE, np.int32)
        tree[self.root] = np.arange(len(self.root))
        found: Ints = tree[source]
        return found

    def _roots(self) -> Iterator[Problem]:
        for tree, root in enumerate(self.root):
            if not 0 <= root < self.brokers or self.parent[tree, root] != NONE:
                what = f"broker {root} is the root, but is none of the brokers or has a parent"
                yield Problem(f"tree {tree}", what, "Give a root without a parent")

    def _ways(self) -> Iterator[Problem]:
        for tree, root in enumerate(self.root):
            broker = first_astray(root, self.parent[tree])
            if broker != NONE:
                what = f"no way leads from the root, broker {root}, to broker {broker}"
                remedy = "Give links that form one tree, without a cycle"
                yield Problem(f"tree {tree}", what, remedy)


@dataclass(frozen=True, eq=False)
class GroupsProblem:
    """What groups are chosen from (Zhang & Hu 2005, section 2).

    Route ``i`` of ``routes`` is traffic that must reach exactly its destinations, on tree
    ``tree[i]``. ``group[i]`` is the group that may carry it; NONE: it always takes default
    content-based routing. So groups are disjoint parts of the traffic. Group ``g`` is sent to all
    of ``members[starts[g]:starts[g + 1]]``, ascending, on tree ``span[g]``: at least to the
    destinations of its routes. What is more is unwanted.
    """

    brokers: pa.Array
    trees: BrokerTrees
    routes: Routes
    tree: Ints
    group: Ints
    span: Ints
    starts: Longs
    members: Ints

    def __post_init__(self) -> None:
        problems = [*self._ends()] or [*self._cover()]
        if problems:
            raise InputError(problems)

    @property
    def size(self) -> int:
        """Number of groups that may be chosen."""
        return len(self.span)

    @property
    def leaves(self) -> Longs:
        """Members of each group."""
        return np.diff(self.starts)

    @property
    def messages(self) -> Floats:
        """Messages of each group in the window."""
        return self.summed(self.routes.messages)

    @property
    def deliveries(self) -> Floats:
        """Deliveries of each group to subscribers in the window."""
        return self.summed(self.routes.deliveries)

    @property
    def unwanted(self) -> Floats:
        """Messages of each group that reach members which do not want them."""
        wanted = self.summed(self.routes.messages * np.diff(self.routes.starts))
        return self.messages * self.leaves - wanted

    def summed(self, amounts: Floats) -> Floats:
        """Amounts of routes, by group."""
        inside = self.group >= 0
        totals = np.bincount(self.group[inside], amounts[inside], self.size)
        return totals.astype(np.float64)

    def _ends(self) -> Iterator[Problem]:
        for name, starts, ends in (
            ("routes", self.routes.starts, self.routes.brokers),
            ("groups", self.starts, self.members),
        ):
            if first_unsorted(starts, ends) >= 0:
                what = f"ends of {first_unsorted(starts, ends)} do not ascend"
                yield Problem(name, what, "Give each broker once, in order")
        if len(self.group) and not NONE <= self.group.min() <= self.group.max() < self.size:
            yield Problem("group", f"one is outside 0 to {self.size - 1}", "Number from 0")

    def _cover(self) -> Iterator[Problem]:
        """No delivery may be lost: trees reach all ends, and groups all who want their traffic."""
        for name, tree, starts, ends in (
            ("route", self.tree, self.routes.starts, self.routes.brokers),
            ("group", self.span, self.starts, self.members),
        ):
            on = np.repeat(tree, np.diff(starts))
            outside = (self.trees.parent[on, ends] == NONE) & (ends != self.trees.root[on])
            for at in np.flatnonzero(outside)[:1]:
                number = np.searchsorted(starts, at, side="right") - 1
                what = f"broker {self.brokers[int(ends[at])].as_py()!r} is not in its tree"
                yield Problem(f"{name} {number}", what, "Give a tree that has all ends")
        route = first_missed(self.group, self.tree, self.routes.starts, self.routes.brokers,
                             self.span, self.starts, self.members)  # fmt: skip
        if route != NONE:
            what = f"group {self.group[route]} has another tree or lacks one of its destinations"
            yield Problem(f"route {route}", what, "Give groups that hold all their routes reach")


@compiled
def first_astray(root: int, parent: Ints) -> int:
    """The first broker whose way up ends elsewhere than at the root, or in a cycle; NONE if none.

    O(brokers): ways known to be good are not walked again.
    """
    good = np.zeros(len(parent), np.bool_)
    good[root] = True
    walked = np.full(len(parent), NONE, np.int64)
    for broker in range(len(parent)):
        if parent[broker] == NONE:
            continue
        here = broker
        while not good[here]:
            if parent[here] == NONE or walked[here] == broker:
                return broker
            walked[here] = broker
            here = parent[here]
        here = broker
        while not good[here]:
            good[here] = True
            here = parent[here]
    return NONE


@compiled
def first_missed(
    group: Ints,
    tree: Ints,
    route_starts: Longs,
    destinations: Ints,
    span: Ints,
    starts: Longs,
    members: Ints,
) -> int:
    """The first route whose group has another tree or lacks a destination; NONE if none."""
    for route in range(len(group)):
        g = group[route]
        if g == NONE:
            continue
        if tree[route] != span[g]:
            return route
        at = starts[g]
        for broker in destinations[route_starts[route] : route_starts[route + 1]]:
            while at < starts[g + 1] and members[at] < broker:
                at += 1
            if at == starts[g + 1] or members[at] != broker:
                return route
    return NONE
