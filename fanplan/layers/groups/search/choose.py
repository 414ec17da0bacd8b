"""Which groups are set up: the best share of them, those above a threshold, or a budget's worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Bools, Floats
from fanplan.layers.groups.params import Choice, EntryBudget, Threshold, Top
from fanplan.layers.groups.problem.groups import GroupsProblem
from fanplan.layers.groups.search.benefit import Candidates, benefit, candidates_of, setup_cost
from fanplan.layers.groups.search.knapsack import pack


@dataclass(frozen=True, eq=False)
class Chosen:
    """The groups that are set up. ``benefit`` is what each one was judged by.

    ``bound`` is a total benefit that no choice by the same rule exceeds.
    """

    selected: Bools
    benefit: Floats
    bound: float

    @property
    def value(self) -> float:
        return float(self.benefit[self.selected].sum())


def choose_groups(problem: GroupsProblem, params: Choice) -> Chosen:
    """Choose groups; the same problem gives the same choice."""
    return choose_among(candidates_of(problem, params.shortcuts), params)


def choose_among(candidates: Candidates, params: Choice) -> Chosen:
    """Choose among groups that are weighed already."""
    worth = benefit(candidates, params.rank, params.prices)
    match params.select:
        case Top(share):
            return settled(best_share(worth, share), worth)
        case Threshold(least):
            # The true saving is net already.
            cost = 0.0 if params.rank == "saving" else setup_cost(candidates, params.prices)
            return settled(worth - cost > least, worth)
        case EntryBudget(entries):
            found = pack(worth, candidates.entries, entries)
            return Chosen(found.taken, worth, found.bound)


def settled(selected: Bools, worth: Floats) -> Chosen:
    """A choice to which its rule leaves no alternative."""
    return Chosen(selected, worth, float(worth[selected].sum()))


def best_share(worth: Floats, share: float) -> Bools:
    """The best of all, ties to the first."""
    # Of 7 % of 100 groups floats make a little more than 7.
    count = math.ceil(round(share * len(worth), 9))
    selected = np.zeros(len(worth), bool)
    selected[np.argsort(-worth, kind="stable")[:count]] = True
    return selected
