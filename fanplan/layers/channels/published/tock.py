"""K-means on the true cost: each row moves to the channel where it raises the cost least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.kernels import bare, compiled
from fanplan.core.prices import Weights
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, count_overlaps, one_channel_per_row
from fanplan.layers.channels.method_params import require_enough_flows
from fanplan.layers.channels.published.params import FirstStepParams

NOWHERE = -1


class Assignment(NamedTuple):
    """Rows on channels, and what follows from it; changed in place by ``put_row`` and ``take_row``.

    Matrices are subscriber × channel: the channels of one subscriber lie together, so that one
    row can be compared with all channels at once. Memory: 5 bytes per subscriber and channel.
    """

    indptr: Longs
    audience: Ints
    rate: Floats
    channel: Ints
    """The channel of each row, or ``NOWHERE``."""
    needs: Ints
    """How many rows on the channel the subscriber wants."""
    joined: Bytes
    """1 where ``needs`` is not 0."""
    sizes: Longs
    """Members of each channel."""
    loads: Floats
    """Messages of the rows on each channel."""


def tock(problem: InterestProblem, params: FirstStepParams, seed: int, stop: Stop) -> ChannelMap:
    """Tock et al. (2005) with a sequential start: the first pass places the rows one by one.

    The pass follows an order drawn from the seed. Time O(t · audiences · channels).
    """
    require_enough_flows(problem, params.channels)
    # From a random map it stalls where nearly everyone is then a member of every channel (the
    # WebSphere cell): all moves cost the same.
    wanted = problem.indptr, problem.audience, problem.messages
    state = nothing_assigned(*wanted, len(problem.subscribers), params.channels)
    order = np.random.default_rng(seed).permutation(problem.size)
    for _ in range(params.iterations):
        moved = reassign(state, order)
        if moved == 0 or stop(assignment_cost(state, params.weights)):
            break
    return one_channel_per_row(problem, state.channel, params.channels)


@compiled
def reassign(state: Assignment, order: Longs) -> int:
    """Bickson et al. (2010), section 4.1: one pass of greedy moves; the number of rows moved."""
    members = np.empty(len(state.sizes), dtype=np.int32)
    partial = np.empty(len(state.sizes), dtype=np.uint8)
    moved = 0
    for row in order:
        before = state.channel[row]
        if before != NOWHERE:
            take_row(state, row)
        audience = state.audience[state.indptr[row] : state.indptr[row + 1]]
        count_overlaps(audience, state.joined, partial, members)
        after = cheapest_channel(state, row, members, before)
        put_row(state, row, after)
        moved += after != before
    return moved


@compiled
def nothing_assigned(
    indptr: Longs, audience: Ints, rate: Floats, subscribers: int, channels: int
) -> Assignment:
    """Empty channels."""
    return Assignment(
        indptr,
        audience,
        rate,
        np.full(len(rate), NOWHERE, dtype=np.int32),
        np.zeros((subscribers, channels), dtype=np.int32),
        np.zeros((subscribers, channels), dtype=np.uint8),
        np.zeros(channels, dtype=np.int64),
        np.zeros(channels, dtype=np.float64),
    )


def assignment_cost(state: Assignment, weights: Weights) -> float:
    """C of Bickson et al. (2010), section 3.1, for the rows that are placed."""
    return float(np.dot(state.loads, weights.w2 + weights.w1 * state.sizes))


@bare
def put_row(state: Assignment, row: int, channel: int) -> None:
    """Place a row that is nowhere; whoever wants it joins the channel. O(audience)."""
    state.channel[row] = channel
    state.loads[channel] += state.rate[row]
    for subscriber in state.audience[state.indptr[row] : state.indptr[row + 1]]:
        state.needs[subscriber, channel] += 1
        if state.needs[subscriber, channel] == 1:
            state.joined[subscriber, channel] = 1
            state.sizes[channel] += 1


@bare
def take_row(state: Assignment, row: int) -> None:
    """Take a row off its channel; who wants nothing else there leaves. O(audience)."""
    channel = state.channel[row]
    state.channel[row] = NOWHERE
    state.loads[channel] -= state.rate[row]
    for subscriber in state.audience[state.indptr[row] : state.indptr[row + 1]]:
        state.needs[subscriber, channel] -= 1
        if state.needs[subscriber, channel] == 0:
            state.joined[subscriber, channel] = 0
            state.sizes[channel] -= 1


@bare
def cheapest_channel(state: Assignment, row: int, members: Ints, preferred: int) -> int:
    """The channel on which a row that is nowhere raises the cost least. O(channels).

    The audience that is not yet among the ``members`` must receive the whole channel, and all of
    the channel must receive the row. The weights w1 and w2 do not matter: every channel adds w2
    for the row, and everything else is in units of w1. Ties go to ``preferred``, then to the first.
    """
    size = state.indptr[row + 1] - state.indptr[row]
    rate = state.rate[row]
    best, least = preferred, np.inf
    # Staying wins a tie: otherwise rows could move to and fro for ever.
    if preferred != NOWHERE:
        missing = size - members[preferred]
        least = rate * (state.sizes[preferred] + missing) + state.loads[preferred] * missing
    for j in range(len(state.sizes)):
        missing = size - members[j]
        increase = rate * (state.sizes[j] + missing) + state.loads[j] * missing
        if increase < least:
            best, least = j, increase
    return best
