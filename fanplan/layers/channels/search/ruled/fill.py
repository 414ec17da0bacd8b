"""Filling: what a unicast limit still allows is used where it saves most per unicast message.

Under a price, a whole cover may fall apart at once: one row less on a channel makes the next one
leave too. So no price has a cover near the limit. Here rows and users leave channels one by one,
those first that save most for each message they add to unicast, and only while the limit holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats
from fanplan.core.kernels import compiled
from fanplan.layers.channels.search.model.assign import channel_costs
from fanplan.layers.channels.search.model.cover import Cover, row_audience, served_by
from fanplan.layers.channels.search.model.demand import Demand, demand_of
from fanplan.layers.channels.search.model.rules import Rules, channel_traffic, improve

STEPS = 10
FALL = 0.6
"""Steps of the least saving per message that is asked for, each a part of the one before."""
MOST_CELLS = 20_000_000
"""Rows × channels up to which covers are filled: a byte is kept for each."""
SURE = 1e-9
"""The part of the limit that is left free for rounding."""
MULTICAST, UNICAST = 0, 1


class Filling(NamedTuple):
    """A cover as tables, changed in place."""

    members: Bytes
    """Users × channels."""
    on: Bytes
    """Rows × channels: whether the row goes there."""
    costs: Floats
    """What a message on each channel costs."""
    traffic: Floats
    sent: Floats
    """Messages sent by ``MULTICAST`` and by ``UNICAST``."""
    limit: float


def fill(demand: Demand, cover: Cover, rules: Rules, limit: float, passes: int) -> Cover:
    """The cover with as much more unicast as pays and the limit allows, and the rest improved.

    The cost never rises at the demand's prices. O(audiences × channels per row × steps).
    """
    if demand.size * cover.members.shape[1] > MOST_CELLS:
        return cover
    cover = filled(demand, cover, rules, limit)
    return filled(demand, improve_carried(demand, cover, rules, limit, passes), rules, limit)


def filled(demand: Demand, cover: Cover, rules: Rules, limit: float) -> Cover:
    """Rows and users leave channels in the order of what that saves per unicast message."""
    state = filling(demand, cover, limit)
    least = float(state.costs.max(initial=0.0))
    for _ in range(STEPS):
        rows_leave(demand, rules.hard, state, least)
        users_leave(demand, rules.hard, state, least)
        least *= FALL
    rows_leave(demand, rules.hard, state, 0.0)
    users_leave(demand, rules.hard, state, 0.0)
    rows, channels = np.nonzero(state.on)
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=demand.size))))
    return Cover(state.members, starts.astype(np.int64), channels.astype(np.int32))


def filling(demand: Demand, cover: Cover, limit: float) -> Filling:
    on = np.zeros((demand.size, cover.members.shape[1]), dtype=np.uint8)
    on[np.repeat(np.arange(demand.size), np.diff(cover.starts)), cover.channels] = 1
    return Filling(
        cover.members.copy(),
        on,
        channel_costs(demand, cover.members),
        channel_traffic(demand, cover, on.shape[1]),
        messages_sent(demand, cover),
        limit * (1 - SURE),
    )


def messages_sent(demand: Demand, cover: Cover) -> Floats:
    """By multicast and by unicast."""
    carried = served_pairs(demand, cover)
    rows = np.repeat(np.arange(demand.size), demand.audience_sizes)
    by_unicast = float(demand.rate[rows[carried == 0]].sum())
    return np.array([float(np.dot(demand.rate, np.diff(cover.starts))), by_unicast])


def improve_carried(demand: Demand, cover: Cover, rules: Rules, limit: float, passes: int) -> Cover:
    """Improve the cover as if all that channels carry had to stay there; kept if within the limit.

    The share may rise: rows that need fewer channels send less by multicast.
    """
    carried = served_pairs(demand, cover) != 0
    rows = np.repeat(np.arange(demand.size), demand.audience_sizes)[carried]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=demand.size))))
    channels = cover.members.shape[1]
    forbidding = demand.price + channels * (demand.w2 + demand.w1 * demand.users)
    rest = demand_of(
        indptr.astype(np.int64),
        demand.audience[carried],
        demand.rate,
        forbidding,
        demand.users,
        demand.w1,
        demand.w2,
    )
    hard = np.ones(demand.size, dtype=np.uint8)
    after = improve(rest, cover, rules._replace(hard=hard), passes)
    sent = messages_sent(demand, after)
    return after if sent[UNICAST] <= limit * (1 - SURE) * sent.sum() else cover


@compiled
def served_pairs(demand: Demand, cover: Cover) -> Bytes:
    """For each place in the audiences whether a channel serves it."""
    served = np.zeros(len(demand.audience), dtype=np.uint8)
    for row in range(len(demand.rate)):
        channels = cover.channels[cover.starts[row] : cover.starts[row + 1]]
        for place in range(demand.indptr[row], demand.indptr[row + 1]):
            served[place] = served_by(cover.members, demand.audience[place], channels) > 0
    return served


@compiled
def fits(state: Filling, fewer: float, more: float) -> bool:
    """Whether the limit holds with so much less multicast and so much more unicast."""
    unicast = state.sent[UNICAST] + more
    return more == 0.0 or unicast <= state.limit * (state.sent[MULTICAST] - fewer + unicast)


@compiled
def send(state: Filling, channel: int, fewer: float, more: float) -> None:
    """Book messages that leave a channel, and those that unicast sends instead."""
    state.traffic[channel] -= fewer
    state.sent[MULTICAST] -= fewer
    state.sent[UNICAST] += more


@compiled
def rows_leave(demand: Demand, hard: Bytes, state: Filling, least: float) -> None:
    """Rows leave channels where that saves enough; who is on no other gets them by unicast."""
    for row in range(len(state.on)):
        rate = demand.rate[row]
        for channel in range(len(state.costs)):
            # Whoever is left to unicast, no more than this can be saved for each message.
            enough = state.costs[channel] - demand.price[row] >= least
            if state.on[row, channel] and (enough or least == 0.0):
                alone = count_alone(demand, state, row, channel)
                more = rate * alone
                saved = rate * state.costs[channel] - demand.price[row] * more
                kept = (hard[row] and alone > 0) or saved <= 0.0 or saved < least * more
                if not kept and fits(state, rate, more):
                    state.on[row, channel] = 0
                    send(state, channel, rate, more)


@compiled
def count_alone(demand: Demand, state: Filling, row: int, channel: int) -> int:
    """How many of a row's audience only this channel serves."""
    count = 0
    others = np.flatnonzero(state.on[row])
    for user in row_audience(demand, row):
        if state.members[user, channel]:
            count += served_by(state.members, user, others) == 1
    return count


@compiled
def users_leave(demand: Demand, hard: Bytes, state: Filling, least: float) -> None:
    """Users leave channels where that saves enough; what only these bring comes by unicast."""
    for user in range(len(state.members)):
        own = state.members[user]
        for channel in range(len(own)):
            if own[channel]:
                more, price = only_through(demand, hard, state, user, channel)
                saved = demand.w1 * state.traffic[channel] - price
                if saved > 0.0 and saved >= least * more and fits(state, 0.0, more):
                    own[channel] = 0
                    state.costs[channel] -= demand.w1
                    send(state, channel, 0.0, more)


@compiled
def only_through(
    demand: Demand, hard: Bytes, state: Filling, user: int, channel: int
) -> tuple[float, float]:
    """The messages that reach a user through one channel alone, and their price by unicast."""
    messages, price = 0.0, 0.0
    for row in demand.user_rows[demand.user_indptr[user] : demand.user_indptr[user + 1]]:
        if not state.on[row, channel]:
            continue
        if served_by(state.members, user, np.flatnonzero(state.on[row])) == 1:
            messages += demand.rate[row]
            price += demand.rate[row] * demand.price[row]
            if hard[row]:
                return 0.0, np.inf
    return messages, price
