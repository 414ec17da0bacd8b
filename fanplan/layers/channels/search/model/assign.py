"""X-step: the best and the second-best channel of every row, memberships given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numba
import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Words
from fanplan.core.bits import common, put_bit
from fanplan.core.kernels import bare, compiled
from fanplan.layers.channels.map import count_overlaps
from fanplan.layers.channels.search.model.demand import Demand, row_audience

UNICAST = -1
PARTS = 8
"""Parts of a loop for each core: some take longer than others."""
WORD = 4
"""Users that bytes are added of while bits are counted in one word."""
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


class Offer(NamedTuple):
    """What channels offer to a row: members, users × channels, and the cost of a message on each.

    ``bits`` has the members of each channel again, or no rows if counts are quicker without.
    ``partial`` and ``overlap`` are room for a count per channel, ``able`` and ``chosen`` for lists
    of channels, ``left`` for one of users.
    """

    members: Bytes
    costs: Floats
    bits: Words
    partial: Bytes
    overlap: Ints
    able: Ints
    chosen: Ints
    left: Ints


@compiled
def offered(demand: Demand, members: Bytes, costs: Floats) -> Offer:
    channels, words = len(costs), demand.bits.shape[1]
    # A word of a channel takes as long as the bytes of some channels for one user.
    quicker = 0 < WORD * demand.bits.size <= len(demand.audience)
    bits = np.zeros((channels if quicker else 0, words), np.uint64)
    for user in range(len(members)):
        for channel in range(len(bits)):
            put_bit(bits[channel], user, members[user, channel])
    partial, left = np.empty(channels, np.uint8), np.empty(len(members), np.int32)
    lists = np.empty((3, channels), np.int32)
    return Offer(members, costs, bits, partial, lists[0], lists[1], lists[2], left)


@bare
def count_members(demand: Demand, offer: Offer, row: int) -> None:
    """Count how many of a row's audience each channel has, into ``overlap``."""
    if len(offer.bits) == 0:
        audience = row_audience(demand, row)
        count_overlaps(audience, offer.members, offer.partial, offer.overlap)
    for channel in range(len(offer.bits)):
        offer.overlap[channel] = common(demand.bits[row], offer.bits[channel])


def assign_rows(demand: Demand, members: Bytes) -> Choice:
    """The best two channels of all rows; ``members`` is users × channels of 0 and 1.

    Parallel; O(audiences × channels) byte additions.
    """
    best, second = np.full((2, demand.size), UNICAST, dtype=np.int32)
    gain, second_gain = np.zeros((2, demand.size))
    choice = Choice(best, gain, second, second_gain)
    costs = channel_costs(demand, members)
    in_parts(
        partial(assign_range, demand, members, costs, choice),
        demand.size,
        worth_threads(demand, members),
    )
    return choice


def in_parts(work: Callable[[int, int], None], size: int, threads: bool) -> None:
    """Let a kernel do all items from 0 to ``size``: at once, or in parts on all cores.

    Kernels hold no lock of Python, so threads run them side by side. Parts must not depend on
    each other.
    """
    cores = numba.get_num_threads() if threads else 1
    if cores == 1:
        work(0, size)
        return
    part = -(-size // (PARTS * cores))
    with ThreadPoolExecutor(cores) as pool:
        begins = range(0, size, part)
        # All results are asked for, so that an error in a part is raised here.
        list(pool.map(work, begins, (min(begin + part, size) for begin in begins)))


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
    offer = offered(demand, members, costs)
    for row in range(begin, end):
        choose(demand, offer, choice, row)


@bare
def choose(demand: Demand, offer: Offer, choice: Choice, row: int) -> None:
    """Find a row's best two channels anew. Ties go to the lower channel."""
    count_members(demand, offer, row)
    price = demand.price[row]
    best, second = UNICAST, UNICAST
    gain, second_gain = 0.0, 0.0
    for channel in range(len(offer.costs)):
        here = price * offer.overlap[channel] - offer.costs[channel]
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
