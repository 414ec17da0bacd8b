"""User clusters: a partition of the users into groups that get all that is still unserved.

A group's channel carries every row that one of its users still needs, and each of its users joins
this one channel, so nothing is left over and nobody joins more than one. The cost of a group is
T · (w2 + w1 · n) for traffic T and n users.
"""

from __future__ import annotations

import numpy as np

from fanplan.kernels import compiled
from fanplan.planners.channels.kmodes.demand import Demand
from fanplan.problem.interest import Floats, Ints, Longs

PASSES = 6
"""Rounds in which every user may move to another group."""


def cluster_users(demand: Demand, groups: int, cap: float) -> Ints:
    """The group of each user that wants anything, −1 for the others and for who fits in no group.

    Users enter one after another, those with most traffic first, where they add least to the
    cost without raising a group's traffic over ``cap``; then they may move. O(audiences × groups).
    """
    group = np.full(demand.users, -1, dtype=np.int32)
    traffic = user_traffic(demand)
    order = np.argsort(-traffic, kind="stable")[: int((np.diff(demand.user_indptr) > 0).sum())]
    order = np.sort(order)[np.argsort(-traffic[np.sort(order)], kind="stable")]
    place_users(demand, groups, cap, order, group)
    return group


@compiled
def user_traffic(demand: Demand) -> Floats:
    traffic = np.zeros(len(demand.user_indptr) - 1)
    for row in range(len(demand.rate)):
        for user in demand.audience[demand.indptr[row] : demand.indptr[row + 1]]:
            traffic[user] += demand.rate[row]
    return traffic


@compiled
def place_users(demand: Demand, groups: int, cap: float, order: Longs, group: Ints) -> None:
    carried = np.zeros((groups, len(demand.rate)), dtype=np.int32)
    traffic, size = np.zeros(groups), np.zeros(groups, dtype=np.int64)
    for _ in range(PASSES):
        moved = 0
        for user in order:
            before = group[user]
            take_out(demand, user, group, carried, traffic, size)
            put_in(demand, user, cap, group, carried, traffic, size)
            moved += group[user] != before
        if moved == 0:
            break


@compiled
def take_out(
    demand: Demand, user: int, group: Ints, carried: Ints, traffic: Floats, size: Longs
) -> None:
    g = group[user]
    if g < 0:
        return
    for row in demand.user_rows[demand.user_indptr[user] : demand.user_indptr[user + 1]]:
        carried[g, row] -= 1
        if carried[g, row] == 0:
            traffic[g] -= demand.rate[row]
    size[g] -= 1
    group[user] = -1
    if size[g] == 0:
        traffic[g] = 0.0


@compiled
def put_in(
    demand: Demand, user: int, cap: float, group: Ints, carried: Ints, traffic: Floats, size: Longs
) -> None:
    mine = demand.user_rows[demand.user_indptr[user] : demand.user_indptr[user + 1]]
    best, least, best_more = -1, np.inf, 0.0
    for g in range(len(size)):
        more = 0.0
        for row in mine:
            if carried[g, row] == 0:
                more += demand.rate[row]
        cost = more * (demand.w2 + demand.w1 * (size[g] + 1)) + demand.w1 * traffic[g]
        if cost < least and traffic[g] + more <= cap:
            best, least, best_more = g, cost, more
    if best < 0:
        return
    for row in mine:
        carried[best, row] += 1
    traffic[best] += best_more
    size[best] += 1
    group[user] = best
