"""User clusters: a partition of the users into groups that get all that is still unserved.

A group's channel carries every row that one of its users still needs, and each of its users joins
this one channel, so nothing is left over and nobody joins more than one. The cost of a group is
T · (w2 + w1 · n) for traffic T and n users.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.search.effort import NOISE
from fanplan.layers.channels.search.model.demand import Demand, wanted_rows

PASSES = 6
"""Rounds in which every user may move to another group."""
MOST_MERGED = 512
"""Groups that are compared pair by pair when they are merged."""
MOST_SWAPPED = 1e9
"""Users² × audiences up to which every two users are tried in each other's place."""


class UserGroups(NamedTuple):
    """The group of each user (−1: none), and what each group carries."""

    group: Ints
    carried: Ints
    """Groups × rows: how many of the group need the row."""
    traffic: Floats
    size: Longs


def cluster_users(demand: Demand, groups: int, cap: float) -> Ints:
    """The group of each user that wants anything, −1 for the others and for who fits in no group.

    Users enter many groups one after another; the groups are merged while they are too many,
    always the two that add least to the cost (Adler et al., 2001, user-based merge); then users
    may move. No group's traffic exceeds ``cap``. O(audiences × groups).
    """
    wants = np.diff(demand.user_indptr) > 0
    fine = max(groups, min(int(wants.sum()), MOST_MERGED))
    state = UserGroups(
        np.full(demand.users, -1, dtype=np.int32),
        np.zeros((fine, demand.size), dtype=np.int32),
        np.zeros(fine),
        np.zeros(fine, dtype=np.int64),
    )
    amounts = np.repeat(demand.rate, demand.audience_sizes)
    traffic = np.where(wants, np.bincount(demand.audience, amounts, demand.users), -1.0)
    order = np.argsort(-traffic, kind="stable")[: int(wants.sum())]
    move_users(demand, state, cap, order, 1)
    merge_groups(demand, state, groups, cap)
    kept = np.flatnonzero(state.size)[:groups]
    number = np.full(fine + 1, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept))
    full = np.concatenate((kept, np.flatnonzero(state.size == 0)))[:groups]
    final = UserGroups(
        number[state.group], state.carried[full], state.traffic[full], state.size[full]
    )
    move_users(demand, final, cap, order, PASSES)
    if len(order) ** 2 * len(demand.audience) <= MOST_SWAPPED:
        swap_users(demand, final, cap, order)
        move_users(demand, final, cap, order, PASSES)
    return final.group


@compiled
def move_users(demand: Demand, state: UserGroups, cap: float, order: Longs, passes: int) -> None:
    """Take each user out of its group and put it where it adds least to the cost."""
    for _ in range(passes):
        moved = 0
        for user in order:
            before = state.group[user]
            leave_group(demand, user, state)
            enter_cheapest(demand, user, cap, state)
            moved += state.group[user] != before
        if moved == 0:
            break


@compiled
def leave_group(demand: Demand, user: int, state: UserGroups) -> None:
    g = state.group[user]
    if g < 0:
        return
    for row in wanted_rows(demand, user):
        state.carried[g, row] -= 1
        if state.carried[g, row] == 0:
            state.traffic[g] -= demand.rate[row]
    state.size[g] -= 1
    state.group[user] = -1
    # An empty group carries nothing at all; what is left of the sum is rounding.
    if state.size[g] == 0:
        state.traffic[g] = 0.0


@compiled
def enter_cheapest(demand: Demand, user: int, cap: float, state: UserGroups) -> None:
    mine = wanted_rows(demand, user)
    best, least = -1, np.inf
    for g in range(len(state.size)):
        more = 0.0
        for row in mine:
            if state.carried[g, row] == 0:
                more += demand.rate[row]
        cost = more * (demand.w2 + demand.w1 * (state.size[g] + 1)) + demand.w1 * state.traffic[g]
        if cost < least and state.traffic[g] + more <= cap:
            best, least = g, cost
    if best >= 0:
        enter_group(demand, user, best, state)


@compiled
def swap_users(demand: Demand, state: UserGroups, cap: float, order: Longs) -> None:
    """Let two users change places where that lowers the cost.

    With groups of two or three, a user that moves alone leaves one too small and one too large.
    """
    for i in range(len(order)):
        for k in range(i):
            g, h = state.group[order[i]], state.group[order[k]]
            if g != h and g >= 0 and h >= 0:
                change_places(demand, state, cap, order[i], order[k])


@compiled
def change_places(demand: Demand, state: UserGroups, cap: float, one: int, other: int) -> None:
    """Swap two users of different groups if that lowers the cost of both groups together."""
    g, h = state.group[one], state.group[other]
    before = group_cost(demand, state, g) + group_cost(demand, state, h)
    leave_group(demand, one, state)
    leave_group(demand, other, state)
    enter_group(demand, one, h, state)
    enter_group(demand, other, g, state)
    after = group_cost(demand, state, g) + group_cost(demand, state, h)
    fit = max(state.traffic[g], state.traffic[h]) <= cap
    if fit and after < before * (1.0 - NOISE):
        return
    leave_group(demand, one, state)
    leave_group(demand, other, state)
    enter_group(demand, one, g, state)
    enter_group(demand, other, h, state)


@compiled
def group_cost(demand: Demand, state: UserGroups, g: int) -> float:
    result: float = state.traffic[g] * (demand.w2 + demand.w1 * state.size[g])
    return result


@compiled
def enter_group(demand: Demand, user: int, g: int, state: UserGroups) -> None:
    for row in wanted_rows(demand, user):
        if state.carried[g, row] == 0:
            state.traffic[g] += demand.rate[row]
        state.carried[g, row] += 1
    state.size[g] += 1
    state.group[user] = g


@compiled
def merge_groups(demand: Demand, state: UserGroups, groups: int, cap: float) -> None:
    """Merge two groups at a time until few enough are left or none fit together under the cap.

    A group that must go and fits nowhere is given up: its users have no group then.
    """
    count = len(state.size)
    common = np.zeros((count, count))
    for g in range(count):
        fill_common(demand, state, g, common)
    left = len(np.flatnonzero(state.size))
    while left > groups:
        a, b = cheapest_merge(demand, state, common, cap)
        if a < 0:
            break
        for user in range(len(state.group)):
            if state.group[user] == b:
                state.group[user] = a
        state.carried[a] += state.carried[b]
        state.carried[b] = 0
        state.traffic[a] += state.traffic[b] - common[a, b]
        state.size[a] += state.size[b]
        state.traffic[b], state.size[b] = 0.0, 0
        fill_common(demand, state, a, common)
        left -= 1


@compiled
def fill_common(demand: Demand, state: UserGroups, g: int, common: Floats) -> None:
    """The traffic that group g carries in common with each other group."""
    rows = np.flatnonzero(state.carried[g])
    for other in range(len(state.size)):
        shared = 0.0
        if state.size[other] > 0:
            for row in rows:
                if state.carried[other, row] > 0:
                    shared += demand.rate[row]
        common[g, other] = common[other, g] = shared


@compiled
def cheapest_merge(
    demand: Demand, state: UserGroups, common: Floats, cap: float
) -> tuple[int, int]:
    """The two groups whose merge adds least to the cost within the cap, or (−1, −1)."""
    best_a, best_b, least = -1, -1, np.inf
    traffic, size = state.traffic, state.size
    for a in range(len(size)):
        for b in range(a + 1, len(size)):
            if size[a] > 0 and size[b] > 0:
                together = traffic[a] + traffic[b] - common[a, b]
                more = demand.w1 * (together * (size[a] + size[b]))
                more -= demand.w1 * (traffic[a] * size[a] + traffic[b] * size[b])
                more -= demand.w2 * common[a, b]
                if more < least and together <= cap:
                    best_a, best_b, least = a, b, more
    return best_a, best_b
