"""Lloyd's alternation: best channels for the rows, then best members for the channels."""

from __future__ import annotations

import math

import numba
import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop, never
from fanplan.layers.channels.search.model.assign import (
    Choice,
    assign,
    rows_by_channel,
    total_gain,
    worth_threads,
)
from fanplan.layers.channels.search.model.demand import Demand

TASKS = 64
"""Tasks of the parallel Y-step."""
SETTLED = 1e-4
"""Lloyd ends when a pass adds less than this part of the gain: swaps find more in the time."""


def lloyd(
    demand: Demand,
    members: Bytes,
    passes: int,
    settled: float = SETTLED,
    stop: Stop = never,
    all_unicast: float = math.inf,
) -> tuple[Bytes, Choice]:
    """Alternate until settled, stopped or for a number of passes; the gain never falls.

    ``stop`` hears ``all_unicast`` less the gain.
    """
    choice = assign(demand, members)
    gain = total_gain(demand, choice)
    for _ in range(passes):
        if stop(all_unicast - gain):
            break
        members = majority(demand, choice.best, members.shape[1])
        choice = assign(demand, members)
        before, gain = gain, total_gain(demand, choice)
        if gain <= before * (1 + settled):
            break
    return members, choice


def majority(demand: Demand, channel: Ints, channels: int) -> Bytes:
    """Y-step: user h joins j iff the priced demand of h on j exceeds w1 times j's traffic.

    Exact for the given rows, in O(audiences + users × channels). Parallel over channels; each
    adds its rows in their order, so the sums do not depend on the threads.
    """
    members = np.zeros((demand.users, channels), dtype=np.uint8)
    starts, rows = rows_by_channel(channel, channels)
    step = join_in_parallel if worth_threads(demand, members) else join_channels
    step(demand, starts, rows, members, 0, 1)
    return members


@compiled
def join_channels(
    demand: Demand, starts: Longs, rows: Ints, members: Bytes, first: int, stride: int
) -> None:
    """Set the members of every ``stride``-th channel."""
    users, channels = members.shape
    wanted = np.zeros(users)
    for channel in range(first, channels, stride):
        traffic = add_demand(demand, rows[starts[channel] : starts[channel + 1]], wanted)
        for user in range(users):
            members[user, channel] = wanted[user] > demand.w1 * traffic
            wanted[user] = 0.0


@compiled(parallel=True)
def join_in_parallel(
    demand: Demand, starts: Longs, rows: Ints, members: Bytes, first: int, stride: int
) -> None:
    tasks = min(members.shape[1], TASKS)
    for task in numba.prange(tasks):
        join_channels(demand, starts, rows, members, first + task * stride, tasks * stride)


@compiled
def add_demand(demand: Demand, rows: Ints, wanted: Floats) -> float:
    """Add the rows' priced demand to each user's entry; the rows' traffic."""
    traffic = 0.0
    for row in rows:
        rate = demand.rate[row]
        traffic += rate
        for user in demand.audience[demand.indptr[row] : demand.indptr[row + 1]]:
            wanted[user] += rate * demand.price[row]
    return traffic
