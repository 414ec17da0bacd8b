"""Which groups are set up: the best share of them, those above a threshold, or a budget's worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.data.interest import Floats
from fanplan.layers.groups.problem.groups import Bools, GroupsProblem
from fanplan.layers.groups.search.benefit import (
    Candidates,
    Prices,
    Rank,
    benefit,
    candidates_of,
    setup_cost,
)
from fanplan.layers.groups.search.knapsack import pack


@dataclass(frozen=True)
class Top:
    """The best share of all groups, from 0 to 1, rounded up (section 5.2)."""

    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            what = f"{self.share} is no share"
            raise InputError(Problem("top", what, "Give a share from 0 to 1"))


@dataclass(frozen=True)
class Threshold:
    """Groups whose benefit, net of what setting them up costs, is above this (section 3.2)."""

    least: float = 0.0


@dataclass(frozen=True)
class Budget:
    """The most benefit for at most so many entries in forwarding tables."""

    entries: int

    def __post_init__(self) -> None:
        if self.entries < 0:
            what = f"{self.entries} is negative"
            raise InputError(Problem("budget", what, "Give 0 entries or more"))


@dataclass(frozen=True)
class GroupsParams:
    """How groups are chosen: by which rule and which benefit, with shortcuts or without."""

    select: Top | Threshold | Budget
    rank: Rank = "saving"
    shortcuts: bool = True
    prices: Prices = field(default_factory=Prices)


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


def choose_groups(problem: GroupsProblem, params: GroupsParams) -> Chosen:
    """Choose groups; the same problem gives the same choice."""
    return choose_among(candidates_of(problem, params.shortcuts), params)


def choose_among(candidates: Candidates, params: GroupsParams) -> Chosen:
    """Choose among groups that are weighed already."""
    worth = benefit(candidates, params.rank, params.prices)
    match params.select:
        case Top(share):
            return settled(best_share(worth, share), worth)
        case Threshold(least):
            # The true saving is net already.
            cost = 0.0 if params.rank == "saving" else setup_cost(candidates, params.prices)
            return settled(worth - cost > least, worth)
        case Budget(entries):
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
