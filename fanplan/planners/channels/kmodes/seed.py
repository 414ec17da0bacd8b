"""First members: channels opened one after another where rows lack most."""

from __future__ import annotations

import numpy as np

from fanplan.kernels import compiled
from fanplan.planners.channels.kmodes.column import (
    CANDIDATES,
    Scratch,
    best_column,
    count_rows,
    make_scratch,
)
from fanplan.planners.channels.kmodes.demand import Bytes, Demand
from fanplan.problem.interest import Floats, Ints


def seed_members(
    demand: Demand, channels: int, random: np.random.Generator, candidates: int = CANDIDATES
) -> Bytes:
    """Members of all channels, users × channels; O(channels × (rows + audiences met)).

    Fewer candidates give more different members for different draws.
    """
    members = np.zeros((demand.users, channels), dtype=np.uint8)
    draws = random.random((channels, candidates))
    open_channels(demand, demand.ideal_gain, draws, members, make_scratch(demand))
    return members


@compiled
def open_channels(
    demand: Demand, ideal: Floats, draws: Floats, members: Bytes, scratch: Scratch
) -> None:
    gain = np.zeros(len(demand.rate))
    for channel in range(members.shape[1]):
        column = best_column(demand, gain, ideal, draws[channel], scratch)
        for user in column:
            members[user, channel] = 1
        take_gains(demand, column, gain, scratch)


@compiled
def take_gains(demand: Demand, column: Ints, gain: Floats, scratch: Scratch) -> None:
    """Let every row have the new channel if that is better for it."""
    found = count_rows(demand, column, scratch)
    cost = demand.w2 + demand.w1 * len(column)
    for row in scratch.seen[:found]:
        gain[row] = max(gain[row], demand.price[row] * scratch.overlap[row] - cost)
        scratch.overlap[row] = 0
