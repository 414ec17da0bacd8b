"""The optimum of a tiny problem: every choice of members is looked at, by ``published.exact``.

Limits on a subscriber's channels, on rows and on members hold for each choice by itself. Limits on
what all rows do together (a share of unicast, the rate of a channel) do not; the optimum without
them is theirs too if it happens to keep them, and otherwise the search goes on as for large ones.
"""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.arrays import Bytes, Longs
from fanplan.layers.channels.lone import LEAST
from fanplan.layers.channels.published.exact import (
    Choice,
    audience_bits,
    cheapest_subsets,
    different_subscribers,
    enumerate_members,
    interest_matrix,
    joined_by,
    steps,
    subset_counts,
    used_channels,
)
from fanplan.layers.channels.search.model.cover import Cover, cover_of_table
from fanplan.layers.channels.search.model.rules import channel_traffic
from fanplan.layers.channels.search.ruled.together import without_lone_members
from fanplan.layers.channels.search.task import Task
from fanplan.layers.channels.search.unicast_limit import keeps_limit

MOST_STEPS = 1.5e8
"""Inner steps that are taken, at 2e8 to 1e9 a second: 9 rows of 8 subscribers on 3 channels."""
MOST_CELLS = 50_000
"""Rows × subscribers up to which it is worth finding out how many subscribers differ."""


def look_at_all(task: Task) -> Cover | None:
    """The cheapest cover that keeps all limits; None if that is not found out here."""
    large = task.demand.size * task.demand.users > MOST_CELLS
    if large or task.params.start is not None or not decided_by_members(task):
        return None
    interests, group = told_apart(task)
    size = task.demand.size, len(interests), task.params.channels
    if steps(*size) > MOST_STEPS:
        return None
    choice, best = choices(task, interests, group), np.zeros(used_channels(*size), dtype=np.int64)
    if math.isinf(enumerate_members(choice, best)):
        return None
    chosen = chosen_cover(task, choice, best, group)
    cover = None if chosen is None else without_lone_members(task, chosen)
    if cover is None or np.any(channel_traffic(task.demand, cover) > task.rules.cap):
        return None
    return cover if keeps_limit(task, cover) else None


def decided_by_members(task: Task) -> bool:
    """Whether the members say which channels each row may use.

    A pinned row may be on a channel with one member, and other rows beside it: where that could pay
    for these, it depends on the pinned row's channels.
    """
    return not (task.params.pinned and (task.dear or task.params.multicast_only))


def told_apart(task: Task) -> tuple[Bytes, Longs]:
    """Interests of subscribers who may join apart, one row each, and each subscriber's row.

    Where a channel with one member would pay but must not be, anybody may join to be the second.
    """
    if task.dear:
        return interest_matrix(task.problem), np.arange(task.demand.users)
    return different_subscribers(task.problem, task.rules.limit)


def choices(task: Task, interests: Bytes, group: Longs) -> Choice:
    """The problem as members are chosen for it; rows kept off channels have unicast for nothing."""
    limits = np.zeros(len(interests), dtype=np.int64)
    limits[group[group >= 0]] = task.rules.limit[group >= 0]
    hard, demand = task.rules.hard != 0, task.demand
    alone = task.params.lone or len(task.params.pinned) > 0
    return Choice(
        np.where(task.apart, 0, audience_bits(interests)),
        demand.rate,
        np.where(hard, math.inf, demand.price),
        subset_counts(group, len(interests)),
        limits,
        1 if alone else LEAST,
        demand.w1,
        demand.w2,
        task.params.multiple,
    )


def chosen_cover(task: Task, choice: Choice, best: Longs, group: Longs) -> Cover | None:
    """The cover with these members; rows without traffic use a channel only if they must.

    Members who want nothing there have joined for nothing. None if they were there to keep somebody
    company: a channel for one subscriber by another name, which nobody would set up.
    """
    on = np.zeros((task.demand.size, task.params.channels), dtype=np.uint8)
    members = np.zeros((task.demand.users, task.params.channels), dtype=np.uint8)
    on[:, : len(best)] = cheapest_subsets(choice, best)
    on[(choice.rates == 0) & (task.rules.hard == 0)] = 0
    members[:, : len(best)] = joined_by(best, group)
    members *= on.any(axis=0)
    wanting = members * (interest_matrix(task.problem).astype(np.int64) @ on > 0)
    if np.any(on.any(axis=0) & (wanting.sum(axis=0, dtype=np.int64) < choice.least)):
        return None
    return cover_of_table(wanting.astype(np.uint8), on)
