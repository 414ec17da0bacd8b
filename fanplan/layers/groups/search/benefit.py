"""What each group is worth: the paper's two estimates, and what it really saves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.layers.groups.params import GroupPrices, Rank
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.subtrees import shortcuts_of, spans_of


@dataclass(frozen=True, eq=False)
class Candidates:
    """Each group by itself; groups are disjoint, so those of several add up.

    ``matches`` and ``forwards`` are what it saves against default routing, in the window. A group
    that reaches too far may save less than nothing. ``entries`` and ``control`` are what it takes.
    """

    messages: Floats
    leaves: Longs
    inner: Longs
    matches: Floats
    forwards: Floats
    entries: Longs
    control: Longs


def candidates_of(problem: GroupsProblem, shortcuts: bool = True) -> Candidates:
    """Weigh all groups from their induced subtrees. O(size of all subtrees)."""
    routes, messages = problem.routes, problem.messages
    default = spans_of(problem.trees, problem.tree, routes.starts, routes.brokers)
    own = spans_of(problem.trees, problem.span, problem.starts, problem.members)
    used, replies = own.links, np.zeros(problem.size, np.int64)
    if shortcuts:
        short = shortcuts_of(problem)
        used = np.diff(short.starts)
        before = np.concatenate(([0], np.cumsum(short.bypassed > 0)))
        replies = np.diff(before[short.starts])
    return Candidates(
        messages=messages,
        leaves=problem.leaves,
        inner=own.inner,
        matches=problem.summed(routes.messages * default.inner),
        forwards=problem.summed(routes.messages * default.links) - messages * used,
        entries=used,
        control=told(problem) + own.links * (1 + shortcuts) + replies,
    )


def told(problem: GroupsProblem) -> Longs:
    """Members that the coordinator, who is at the root, has to tell of each group."""
    group = np.repeat(np.arange(problem.size), problem.leaves)
    away = problem.members != problem.trees.root[problem.span[group]]
    return np.bincount(group[away], minlength=problem.size)


def benefit(candidates: Candidates, rank: Rank, prices: GroupPrices) -> Floats:
    """What groups are ranked by.

    ``nc``: members × messages, which fits the paper's tables. ``fc``: inner brokers × messages, as
    its section 2.2 says. ``saving``: matches and messages saved, net of state and control.
    """
    if rank == "nc":
        return candidates.leaves * candidates.messages
    if rank == "fc":
        return candidates.inner * candidates.messages
    return gross(candidates, prices) - setup_cost(candidates, prices)


def gross(candidates: Candidates, prices: GroupPrices) -> Floats:
    """What matches and messages each group saves, at their prices."""
    return prices.matched * candidates.matches + prices.forwarded * candidates.forwards


def setup_cost(candidates: Candidates, prices: GroupPrices) -> Floats:
    """What setting up and keeping each group costs."""
    return prices.entry * candidates.entries + prices.control * candidates.control
