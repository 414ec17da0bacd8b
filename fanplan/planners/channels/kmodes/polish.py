"""Polish: move single rows by the exact change, with both channels' members chosen anew.

Lloyd judges a move by the members as they are; here the members follow the row, as in Hartigan's
method for k-means (1975), which leaves fewer local optima.
"""

from __future__ import annotations

import numpy as np

from fanplan.kernels import compiled
from fanplan.planners.channels.kmodes.assign import Choice, assign
from fanplan.planners.channels.kmodes.demand import Bytes, Demand
from fanplan.planners.channels.kmodes.lloyd import majority
from fanplan.problem.interest import Floats, Ints, Longs

OPERATIONS = 2e9
"""Most steps of the inner loop in one polish: about a second. Rows that cost most come first."""
NOISE = 1e-12
"""A move must gain more than this part of the row's traffic at its price: less may be rounding."""


def polish(demand: Demand, members: Bytes, choice: Choice) -> tuple[Bytes, Choice]:
    """One pass of moves over the rows, those that lack most first; the gain never falls."""
    channels = members.shape[1]
    lack = demand.rate * (demand.ideal_gain - choice.gain)
    order = np.argsort(-lack, kind="stable")
    count = int(OPERATIONS / (channels * demand.users + 1))
    channel = choice.best.copy()
    move_rows(demand, channel, channels, order[lack[order] > 0][:count])
    members = majority(demand, channel, channels)
    return members, assign(demand, members)


@compiled
def move_rows(demand: Demand, channel: Ints, channels: int, order: Longs) -> int:
    """Move each row in turn to where it adds most, in place; how many moved."""
    wanted = np.zeros((channels, len(demand.user_indptr) - 1))
    traffic = np.zeros(channels)
    for row in range(len(channel)):
        if channel[row] >= 0:
            add_row(demand, row, 1.0, wanted[channel[row]], traffic, channel[row])
    value = np.empty(channels)
    for j in range(channels):
        value[j] = channel_value(wanted[j], traffic[j], demand.w1, demand.w2)
    moved = 0
    for row in order:
        moved += move_row(demand, row, channel, wanted, traffic, value)
    return moved


@compiled
def move_row(
    demand: Demand, row: int, channel: Ints, wanted: Floats, traffic: Floats, value: Floats
) -> bool:
    """Take the row off its channel and put it where the channels' values rise most."""
    home = channel[row]
    base = 0.0
    if home >= 0:
        add_row(demand, row, -1.0, wanted[home], traffic, home)
        without = channel_value(wanted[home], traffic[home], demand.w1, demand.w2)
        base = value[home] - without
        value[home] = without
    base = max(base, 0.0) + NOISE * demand.rate[row] * demand.price[row]
    best, gain = home, base
    for j in range(len(value)):
        if j != home:
            here = value_with(demand, row, wanted[j], traffic[j]) - value[j]
            if here > gain:
                best, gain = j, here
    channel[row] = best
    if best >= 0:
        add_row(demand, row, 1.0, wanted[best], traffic, best)
        value[best] = channel_value(wanted[best], traffic[best], demand.w1, demand.w2)
    return best != home


@compiled
def add_row(
    demand: Demand, row: int, sign: float, wanted: Floats, traffic: Floats, channel: int
) -> None:
    """Add a row's traffic and priced demand to a channel, or with sign −1 take it away."""
    rate = sign * demand.rate[row]
    traffic[channel] += rate
    for user in demand.audience[demand.indptr[row] : demand.indptr[row + 1]]:
        wanted[user] += rate * demand.price[row]


@compiled
def value_with(demand: Demand, row: int, wanted: Floats, traffic: float) -> float:
    """The value of a channel if the row were on it."""
    rate = demand.rate[row]
    more = traffic + rate
    value = channel_value(wanted, more, demand.w1, demand.w2)
    for user in demand.audience[demand.indptr[row] : demand.indptr[row + 1]]:
        before = wanted[user] - demand.w1 * more
        value += max(0.0, before + rate * demand.price[row]) - max(0.0, before)
    return value


@compiled
def channel_value(wanted: Floats, traffic: float, w1: float, w2: float) -> float:
    """What a channel saves with its best members: the gain of each user that joins, less sending.

    Four sums side by side keep the machine busy, in an order that is the same on every machine.
    """
    threshold = w1 * traffic
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = len(wanted) - len(wanted) % 4
    for user in range(0, whole, 4):
        a += max(0.0, wanted[user] - threshold)
        b += max(0.0, wanted[user + 1] - threshold)
        c += max(0.0, wanted[user + 2] - threshold)
        d += max(0.0, wanted[user + 3] - threshold)
    for user in range(whole, len(wanted)):
        a += max(0.0, wanted[user] - threshold)
    return a + b + c + d - w2 * traffic
