"""Flips: single users join or leave a channel where nobody may be left to unicast.

The usual rule for members looks at demand that no channel serves; here there is none. What a flip
changes is which channels the rows need: with a user on a further channel a row may do without
another one, and a row whose user leaves takes the user's cheapest channel instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.search.model.assign import channel_costs
from fanplan.layers.channels.search.model.cover import Cover, cover_of_table, row_channels
from fanplan.layers.channels.search.model.demand import Demand, row_audience, wanted_rows
from fanplan.layers.channels.search.model.rules import CoverRules

MOST_CELLS = 20_000_000
"""Rows × channels up to which flips are tried: they keep 5 bytes for each."""
NOISE = 1e-9
"""A flip must save more than this part of the channel's receptions: less may be rounding."""


class Flips(NamedTuple):
    """A cover as tables, changed in place."""

    members: Bytes
    """Users × channels."""
    joined: Longs
    """Channels of each user."""
    on: Bytes
    """Rows × channels: whether the row goes there."""
    alone: Ints
    """Rows × channels: how many of the row's audience only this channel serves."""
    costs: Floats
    """What a message on each channel costs."""
    traffic: Floats


def can_flip(demand: Demand, cover: Cover, rules: CoverRules) -> bool:
    """Whether every row must be served by channels, any number of them with any traffic."""
    must = rules.hard[demand.audience_sizes > 0].all()
    cells = (len(cover.starts) - 1) * cover.members.shape[1]
    free = np.isinf(rules.cap) and rules.change == 0 and rules.width > 1
    return bool(free and must and cells <= MOST_CELLS)


def flip_members(demand: Demand, cover: Cover, rules: CoverRules) -> Cover:
    """One pass of flips over the users of a cover that serves everybody; the cost never rises.

    O(audiences × channels), and as much again for the rows of each flip.
    """
    shape = (demand.size, cover.members.shape[1])
    state = Flips(
        cover.members.copy(),
        cover.members.sum(axis=1, dtype=np.int64),
        np.zeros(shape, dtype=np.uint8),
        np.zeros(shape, dtype=np.int32),
        channel_costs(demand, cover.members),
        np.zeros(shape[1]),
    )
    place_rows(demand, cover, state)
    flip_users(demand, rules.limit, state)
    return cover_of_table(state.members, state.on)


@compiled
def place_rows(demand: Demand, cover: Cover, state: Flips) -> None:
    for row in range(len(demand.rate)):
        for channel in row_channels(cover, row):
            state.on[row, channel] = 1
            state.traffic[channel] += demand.rate[row]
        refresh(demand, row, state)


@compiled
def refresh(demand: Demand, row: int, state: Flips) -> None:
    """Count a row's ``alone`` anew, and take it off channels that serve nobody alone."""
    on, alone = state.on[row], state.alone[row]
    while True:
        alone[:] = 0
        for user in row_audience(demand, row):
            served, last = serving(on, state.members[user])
            if served == 1:
                alone[last] += 1
        useless, most = -1, 0.0
        for channel in range(len(on)):
            if on[channel] and alone[channel] == 0 and state.costs[channel] > most:
                useless, most = channel, state.costs[channel]
        if useless < 0:
            break
        on[useless] = 0
        state.traffic[useless] -= demand.rate[row]


@compiled
def serving(on: Bytes, own: Bytes) -> tuple[int, int]:
    """How many of a row's channels a user is on, and the last of them."""
    served, last = 0, -1
    for channel in range(len(on)):
        if on[channel] & own[channel]:
            served += 1
            last = channel
    return served, last


@compiled
def flip_users(demand: Demand, limit: Longs, state: Flips) -> None:
    """Each user in turn flips its best channel, again while that lowers the cost."""
    for user in range(len(state.members)):
        for _ in range(len(state.costs)):
            channel = best_flip(demand, user, state, state.joined[user] < limit[user])
            if channel < 0:
                break
            flip_member(demand, user, channel, state)


@compiled
def best_flip(demand: Demand, user: int, state: Flips, room: bool) -> int:
    """The channel that the user should join or leave first, or −1."""
    own, costs = state.members[user], state.costs
    # To join costs what the channel carries, to leave saves it; rows follow below.
    change = demand.w1 * state.traffic * (1.0 - 2.0 * own)
    for row in wanted_rows(demand, user):
        on, rate = state.on[row], demand.rate[row]
        served, last = serving(on, own)
        if served != 1:
            continue
        instead = cheapest_other(own, costs, last)
        change[last] += rate * costs[instead] if instead >= 0 else np.inf
        # Only this user keeps the row there: on another of its channels it would let the row go.
        if state.alone[row, last] == 1:
            change[last] -= rate * (costs[last] - demand.w1)
            for channel in range(len(on)):
                if on[channel] and channel != last:
                    change[channel] -= rate * costs[last]
    best, least = -1, 0.0
    for channel in range(len(change)):
        noise = NOISE * demand.w1 * state.traffic[channel]
        if change[channel] < least - noise and (room or own[channel]):
            best, least = channel, change[channel]
    return best


@compiled
def cheapest_other(own: Bytes, costs: Floats, without: int) -> int:
    """The cheapest channel of a user apart from one, or −1."""
    best, least = -1, np.inf
    for channel in range(len(own)):
        if own[channel] and channel != without and costs[channel] < least:
            best, least = channel, costs[channel]
    return best


@compiled
def flip_member(demand: Demand, user: int, channel: int, state: Flips) -> None:
    """Let a user join or leave a channel; its rows there take and drop channels accordingly."""
    own = state.members[user]
    more = 1 - 2 * np.int64(own[channel])
    own[channel] = 1 - own[channel]
    state.joined[user] += more
    instead = cheapest_other(own, state.costs, channel)
    state.costs[channel] += more * demand.w1
    for row in wanted_rows(demand, user):
        if state.on[row, channel]:
            served, _ = serving(state.on[row], own)
            if served == 0:
                state.on[row, instead] = 1
                state.traffic[instead] += demand.rate[row]
            refresh(demand, row, state)
