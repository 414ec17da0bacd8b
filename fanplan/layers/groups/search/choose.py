"""Which groups are set up: the best share of them, those above a threshold, or a budget's worth.

What each is worth is one of the paper's two estimates, or what it really saves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Bools, Floats, Longs
from fanplan.layers.groups.params import EntryBudget, GroupChoice, GroupPrices, Rank, Threshold, Top
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.problem.subtrees import (
    hanging_of,
    sent_groups,
    sent_routes,
    set_up,
    spans_of,
)
from fanplan.layers.groups.search.knapsack import pack


@dataclass(frozen=True, eq=False)
class Chosen:
    """The groups that are set up, ``among`` all. ``benefit`` is what each one was judged by.

    ``bound`` is a total benefit that no choice by the same rule exceeds.
    """

    selected: Bools
    benefit: Floats
    bound: float
    among: Candidates

    @property
    def value(self) -> float:
        return float(self.benefit[self.selected].sum())


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


def choose_groups(problem: GroupsProblem, params: GroupChoice) -> Chosen:
    """Choose groups; the same problem gives the same choice."""
    return choose_among(candidates_of(problem, params.shortcuts), params)


def choose_among(candidates: Candidates, params: GroupChoice) -> Chosen:
    """Choose among groups that are weighed already."""
    worth = benefit(candidates, params.rank, params.prices)
    match params.select:
        case Top(share):
            selected = best_share(worth, share)
        case Threshold(least):
            # The true saving is net already.
            cost = 0.0 if params.rank == "saving" else setup_cost(candidates, params.prices)
            selected = worth - cost > least
        case EntryBudget(entries):
            found = pack(worth, candidates.entries, entries)
            return Chosen(found.taken, worth, found.bound, candidates)
    # The other rules leave no alternative.
    return Chosen(selected, worth, float(worth[selected].sum()), candidates)


def best_share(worth: Floats, share: float) -> Bools:
    """The best of all, ties to the first."""
    # Of 7 % of 100 groups floats make a little more than 7.
    count = math.ceil(round(share * len(worth), 9))
    selected = np.zeros(len(worth), bool)
    selected[np.argsort(-worth, kind="stable")[:count]] = True
    return selected


# ---- what groups are worth


def candidates_of(problem: GroupsProblem, shortcuts: bool = True) -> Candidates:
    """Weigh all groups from their induced subtrees. O(size of all subtrees)."""
    routes, messages = problem.routes, problem.messages
    trees, taken = hanging_of(problem.trees), set_up(problem, shortcuts)
    default = spans_of(trees, sent_routes(problem))
    return Candidates(
        messages=messages,
        leaves=problem.leaves,
        inner=spans_of(trees, sent_groups(problem)).inner,
        matches=problem.summed(routes.messages * default.inner),
        forwards=problem.summed(routes.messages * default.links) - messages * taken.entries,
        entries=taken.entries,
        control=taken.control,
    )


def benefit(candidates: Candidates, rank: Rank, prices: GroupPrices) -> Floats:
    """What groups are ranked by.

    ``nc``: members × messages, which fits the paper's tables. ``fc``: inner brokers × messages, as
    its section 2.2 says. ``saving``: matches and messages saved, net of state and control.
    """
    if rank == "nc":
        return candidates.leaves * candidates.messages
    if rank == "fc":
        return candidates.inner * candidates.messages
    gross = prices.matched * candidates.matches + prices.forwarded * candidates.forwards
    return gross - setup_cost(candidates, prices)


def setup_cost(candidates: Candidates, prices: GroupPrices) -> Floats:
    """What setting up and keeping each group costs."""
    return prices.entry * candidates.entries + prices.control * candidates.control
