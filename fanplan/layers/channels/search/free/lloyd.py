"""Lloyd's alternation and its polish.

Lloyd: best channels for the rows, then best members for the channels. It judges a move by the
members as they are. Polish moves single rows by the exact change, with both channels' members
chosen anew, as in Hartigan's method for k-means (1975), which leaves fewer local optima.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs, starts_of
from fanplan.core.bits import put_bit
from fanplan.core.kernels import bare, compiled
from fanplan.core.stop import never
from fanplan.layers.channels.search.effort import NOISE, SETTLED
from fanplan.layers.channels.search.model.assign import (
    Choice,
    Offer,
    assign_rows,
    count_members,
    in_parts,
    offered,
    total_gain,
    worth_threads,
)
from fanplan.layers.channels.search.model.demand import Demand, row_audience, transpose

# All channels take ten times as long, for at most 0.13 percentage points (decision 10).
LOOK = 3
"""Channels whose exact change is computed for a row: those with the best members as they are."""
OPERATIONS = 1e9
"""Most steps of the inner loop in one polish: under a second. Rows that lack most come first."""


class Channels(NamedTuple):
    """What is on each channel and what follows from it, kept right while rows move."""

    wanted: Floats
    """Channels × users: the priced demand."""
    traffic: Floats
    value: Floats
    """What a channel saves with its best members."""
    offer: Offer
    """The best members, and what a message costs on a channel with these."""
    near: Ints
    gains: Floats
    """Room for the most promising channels of a row, as many as are looked at."""


def lloyd(
    demand: Demand, members: Bytes, passes: int, enough: Callable[[float], bool] = never
) -> tuple[Bytes, Choice]:
    """Alternate until settled, stopped or for a number of passes; the gain never falls.

    ``enough`` hears the gain.
    """
    choice = assign_rows(demand, members)
    gain = total_gain(demand, choice)
    for _ in range(passes):
        if enough(gain):
            break
        members = majority(demand, choice.best, members.shape[1])
        choice = assign_rows(demand, members)
        before, gain = gain, total_gain(demand, choice)
        if gain <= before * (1 + SETTLED):
            break
    return members, choice


def majority(demand: Demand, channel: Ints, channels: int) -> Bytes:
    """Y-step: user h joins j iff the priced demand of h on j exceeds w1 times j's traffic.

    Exact for the given rows, in O(audiences + users × channels). Parallel over channels; each
    adds its rows in their order, so the sums do not depend on the threads.
    """
    members = np.zeros((demand.users, channels), dtype=np.uint8)
    carried = channel >= 0
    starts, rows = transpose(starts_of(carried), channel[carried], channels)
    threads = worth_threads(demand, members)
    in_parts(partial(join_channels, demand, starts, rows, members), channels, threads)
    return members


@compiled
def join_channels(
    demand: Demand, starts: Longs, rows: Ints, members: Bytes, begin: int, end: int
) -> None:
    """Set the members of some channels."""
    users = len(members)
    wanted = np.zeros(users)
    for channel in range(begin, end):
        traffic = add_demand(demand, rows[starts[channel] : starts[channel + 1]], wanted)
        for user in range(users):
            members[user, channel] = wanted[user] > demand.w1 * traffic
            wanted[user] = 0.0


@bare
def add_demand(demand: Demand, rows: Ints, wanted: Floats) -> float:
    """Add the rows' priced demand to each user's entry; the rows' traffic."""
    traffic = 0.0
    for row in rows:
        rate = demand.rate[row]
        traffic += rate
        for user in row_audience(demand, row):
            wanted[user] += rate * demand.price[row]
    return traffic


def polish(demand: Demand, members: Bytes, choice: Choice) -> tuple[Bytes, Choice]:
    """One pass of moves over the rows, those that lack most first; the gain never falls."""
    channels = members.shape[1]
    lack = demand.rate * (demand.ideal_gain - choice.gain)
    order = np.argsort(-lack, kind="stable")
    count = int(OPERATIONS / ((LOOK + 1) * demand.users + channels))
    channel = choice.best.copy()
    move_rows(demand, channel, channels, order[lack[order] > 0][:count])
    members = majority(demand, channel, channels)
    return members, assign_rows(demand, members)


@compiled
def move_rows(demand: Demand, channel: Ints, channels: int, order: Longs) -> int:
    """Move each row in turn to where it adds most, in place; how many moved."""
    users = len(demand.user_indptr) - 1
    state = Channels(
        np.zeros((channels, users)),
        np.zeros(channels),
        np.empty(channels),
        offered(demand, np.zeros((users, channels), dtype=np.uint8), np.empty(channels)),
        np.empty(LOOK, dtype=np.int32),
        np.empty(LOOK),
    )
    for row in range(len(channel)):
        if channel[row] >= 0:
            add_row(demand, row, 1.0, state, channel[row])
    for j in range(channels):
        state.value[j] = channel_value(state.wanted[j], state.traffic[j], demand.w1, demand.w2)
        join_best(demand, state, j)
    moved = 0
    for row in order:
        moved += move_row(demand, row, channel, state)
    return moved


@bare
def join_best(demand: Demand, state: Channels, channel: int) -> None:
    """Give a channel its best members."""
    size = 0
    threshold = demand.w1 * state.traffic[channel]
    members, bits = state.offer.members, state.offer.bits
    bits[channel : channel + 1] = 0
    for user in range(len(members)):
        joins = state.wanted[channel, user] > threshold
        members[user, channel] = joins
        size += joins
        if len(bits):
            put_bit(bits[channel], user, joins)
    state.offer.costs[channel] = demand.w2 + demand.w1 * size


@bare
def move_row(demand: Demand, row: int, channel: Ints, state: Channels) -> bool:
    """Take the row off its channel and put it where the channels' values rise most."""
    home = channel[row]
    base, without = 0.0, 0.0
    if home >= 0:
        # Off first: what home loses by that is what another channel must beat.
        add_row(demand, row, -1.0, state, home)
        without = channel_value(state.wanted[home], state.traffic[home], demand.w1, demand.w2)
        base = state.value[home] - without
    # To stay is worth what home has from the row, at least 0: unicast is always there.
    base = max(base, 0.0) + NOISE * demand.rate[row] * demand.price[row]
    best, gain = home, base
    count_members(demand, state.offer, row)
    for j in state.near[: most_promising(demand.price[row], state, home)]:
        here = value_with(demand, row, state.wanted[j], state.traffic[j]) - state.value[j]
        if here > gain:
            best, gain = j, here
    if best >= 0:
        add_row(demand, row, 1.0, state, best)
    # Back where it was: values and members need no change.
    if best == home:
        return False
    channel[row] = best
    state.value[best] += gain
    join_best(demand, state, best)
    if home >= 0:
        state.value[home] = without
        join_best(demand, state, home)
    return True


@bare
def most_promising(price: float, state: Channels, home: int) -> int:
    """Put the channels other than home with the largest gains into ``near``; how many."""
    offer, found, gains = state.offer, state.near, state.gains
    gains[:] = -np.inf
    size = 0
    for channel in range(len(offer.costs)):
        gain = price * offer.overlap[channel] - offer.costs[channel]
        if channel == home or gain <= gains[LOOK - 1]:
            continue
        size = min(size + 1, LOOK)
        place = size - 1
        while place > 0 and gains[place - 1] < gain:
            found[place], gains[place] = found[place - 1], gains[place - 1]
            place -= 1
        found[place], gains[place] = channel, gain
    return size


@bare
def add_row(demand: Demand, row: int, sign: float, state: Channels, channel: int) -> None:
    """Add a row's traffic and priced demand to a channel, or with sign −1 take it away."""
    rate = sign * demand.rate[row]
    state.traffic[channel] += rate
    for user in row_audience(demand, row):
        state.wanted[channel, user] += rate * demand.price[row]


@bare
def value_with(demand: Demand, row: int, wanted: Floats, traffic: float) -> float:
    """The value of a channel if the row were on it."""
    rate = demand.rate[row]
    more = traffic + rate
    value = channel_value(wanted, more, demand.w1, demand.w2)
    for user in row_audience(demand, row):
        before = wanted[user] - demand.w1 * more
        value += max(0.0, before + rate * demand.price[row]) - max(0.0, before)
    return value


@bare
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
