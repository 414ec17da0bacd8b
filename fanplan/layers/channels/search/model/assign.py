"""X-step: the best and the second-best channel of every row, memberships given."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.map import count_overlaps
from fanplan.layers.channels.search.model.demand import Demand

UNICAST = -1
BLOCK = 512
"""Rows per task of a parallel loop; every row is decided on its own, so any number would do."""
PARALLEL = 1e8
"""Audiences × channels from which a loop is worth its threads: some ten milliseconds of work."""


class Choice(NamedTuple):
    """Each row's best and second-best channel with their gains per message.

    UNICAST, with gain 0, stands for no channel; so gains are never negative.
    """

    best: Ints
    gain: Floats
    second: Ints
    second_gain: Floats

    def copy(self) -> Choice:
        return Choice(
            self.best.copy(), self.gain.copy(), self.second.copy(), self.second_gain.copy()
        )


def empty_choice(rows: int) -> Choice:
    return Choice(
        np.full(rows, UNICAST, dtype=np.int32),
        np.zeros(rows),
        np.full(rows, UNICAST, dtype=np.int32),
        np.zeros(rows),
    )


def assign_rows(demand: Demand, members: Bytes) -> Choice:
    """The best two channels of all rows; ``members`` is users × channels of 0 and 1.

    Parallel; O(audiences × channels) byte additions.
    """
    choice = empty_choice(demand.size)
    step = assign_blocks if worth_threads(demand, members) else assign_range
    step(demand, members, channel_costs(demand, members), choice, 0, demand.size)
    return choice


def worth_threads(demand: Demand, members: Bytes) -> bool:
    """Whether a pass over all rows takes long enough; waking threads on a busy machine does too."""
    result: bool = len(demand.audience) * members.shape[1] > PARALLEL
    return result


def channel_costs(demand: Demand, members: Bytes) -> Floats:
    """What a message on each channel costs: sent once, received by every member."""
    result: Floats = demand.w2 + demand.w1 * members.sum(axis=0, dtype=np.int64)
    return result


@compiled
def assign_range(
    demand: Demand, members: Bytes, costs: Floats, choice: Choice, begin: int, end: int
) -> None:
    partial = np.empty(members.shape[1], dtype=np.uint8)
    overlap = np.empty(members.shape[1], dtype=np.int32)
    for row in range(begin, end):
        choose(demand, members, costs, choice, row, partial, overlap)


@compiled(parallel=True)
def assign_blocks(
    demand: Demand, members: Bytes, costs: Floats, choice: Choice, begin: int, end: int
) -> None:
    for block in numba.prange((end - begin + BLOCK - 1) // BLOCK):
        first = begin + block * BLOCK
        assign_range(demand, members, costs, choice, first, min(end, first + BLOCK))


@compiled
def choose(
    demand: Demand,
    members: Bytes,
    costs: Floats,
    choice: Choice,
    row: int,
    partial: Bytes,
    overlap: Ints,
) -> None:
    """Find a row's best two channels anew. Ties go to the lower channel."""
    audience = demand.audience[demand.indptr[row] : demand.indptr[row + 1]]
    count_overlaps(audience, members, partial, overlap)
    price = demand.price[row]
    best, second = UNICAST, UNICAST
    gain, second_gain = 0.0, 0.0
    for channel in range(len(costs)):
        here = price * overlap[channel] - costs[channel]
        if here > second_gain:
            if here > gain:
                second, second_gain = best, gain
                best, gain = channel, here
            else:
                second, second_gain = channel, here
    choice.best[row], choice.gain[row] = best, gain
    choice.second[row], choice.second_gain[row] = second, second_gain


def total_gain(demand: Demand, choice: Choice) -> float:
    """What the channels save against all unicast, over the window."""
    return weighted_sum(demand.rate, choice.gain)


@compiled
def weighted_sum(weights: Floats, values: Floats) -> float:
    """A sum in the order of the rows, so that it does not depend on the number of threads."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * values[i]
    return total


@compiled
def rows_by_channel(channel: Ints, channels: int) -> tuple[Longs, Ints]:
    """The rows on each channel, ascending, as starts and rows; unicast rows are left out."""
    starts = np.zeros(channels + 1, dtype=np.int64)
    for j in channel:
        if j >= 0:
            starts[j + 1] += 1
    starts = np.cumsum(starts)
    place = starts[:-1].copy()
    rows = np.empty(starts[-1], dtype=np.int32)
    for row in range(len(channel)):
        if channel[row] >= 0:
            rows[place[channel[row]]] = row
            place[channel[row]] += 1
    return starts, rows
