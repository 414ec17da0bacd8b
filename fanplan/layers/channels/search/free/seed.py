"""First members: channels opened one after another where rows lack most."""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop, never
from fanplan.layers.channels.search.free.column import (
    CANDIDATES,
    Scratch,
    best_column,
    count_rows,
    make_scratch,
)
from fanplan.layers.channels.search.model.assign import weighted_sum
from fanplan.layers.channels.search.model.demand import Demand

ROWS_AT_A_TIME = 3_000_000
"""Rows × channels opened between two questions whether to stop: some tenths of a second."""


def seed_members(
    demand: Demand,
    channels: int,
    random: np.random.Generator,
    candidates: int = CANDIDATES,
    stop: Stop = never,
    all_unicast: float = math.inf,
) -> Bytes:
    """Members of all channels, users × channels; O(channels × (rows + audiences met)).

    Fewer candidates give more different members for different draws. After ``stop``, which hears
    ``all_unicast`` less the gain, the remaining channels stay empty.
    """
    members = np.zeros((demand.users, channels), dtype=np.uint8)
    draws = random.random((channels, candidates))
    gain, ideal, scratch = np.zeros(demand.size), demand.ideal_gain, make_scratch(demand)
    step = 1 + ROWS_AT_A_TIME // (demand.size + 1)
    for begin in range(0, channels, step):
        end = min(channels, begin + step)
        open_channels(demand, ideal, draws, members, gain, begin, end, scratch)
        if stop(all_unicast - weighted_sum(demand.rate, gain)):
            break
    return members


@compiled
def open_channels(
    demand: Demand,
    ideal: Floats,
    draws: Floats,
    members: Bytes,
    gain: Floats,
    begin: int,
    end: int,
    scratch: Scratch,
) -> None:
    """Open some of the channels; ``gain`` is what rows have from those before, and is raised."""
    for channel in range(begin, end):
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
