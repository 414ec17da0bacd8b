"""K-means on the true cost: each row moves to the channel where it raises the cost least."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.params import require_enough_flows
from fanplan.layers.channels.published.assignment import (
    NOWHERE,
    Assignment,
    assignment_cost,
    cheapest,
    nothing_assigned,
    overlaps,
    put,
    take,
)
from fanplan.layers.channels.published.membership import one_channel_per_row
from fanplan.layers.channels.published.params import FirstStepParams


def tock(problem: InterestProblem, params: FirstStepParams, seed: int, stop: Stop) -> ChannelMap:
    """Tock et al. (2005) with a sequential start: the first pass places the rows one by one.

    The pass follows an order drawn from the seed. Time O(t · audiences · channels).
    """
    require_enough_flows(problem, params.channels)
    state = nothing_assigned(problem, params.channels)
    return improved(problem, state, params, seed, stop)


def tock_from_random(
    problem: InterestProblem, params: FirstStepParams, seed: int, stop: Stop
) -> ChannelMap:
    """Tock et al. (2005) from a random map.

    It stalls where a random map makes nearly everyone a member of every channel (the WebSphere
    cell): all moves then cost the same.
    """
    require_enough_flows(problem, params.channels)
    state = nothing_assigned(problem, params.channels)
    draws = np.random.default_rng((seed, 1)).integers(params.channels, size=problem.size)
    put_all(state, draws)
    return improved(problem, state, params, seed, stop)


def improved(
    problem: InterestProblem, state: Assignment, params: FirstStepParams, seed: int, stop: Stop
) -> ChannelMap:
    """Passes over all rows until none moves, ``iterations`` are done or ``stop`` says so."""
    order = np.random.default_rng(seed).permutation(problem.size)
    for _ in range(params.iterations):
        moved = reassign(state, order)
        if moved == 0 or stop(assignment_cost(state, params.weights)):
            break
    return one_channel_per_row(problem, state.channel, params.channels)


@compiled
def put_all(state: Assignment, channels: Longs) -> None:
    for row in range(len(channels)):
        put(state, row, channels[row])


@compiled
def reassign(state: Assignment, order: Longs) -> int:
    """Bickson et al. (2010), section 4.1: one pass of greedy moves; the number of rows moved."""
    members = np.empty(len(state.sizes), dtype=np.int32)
    partial = np.empty(len(state.sizes), dtype=np.uint8)
    moved = 0
    for row in order:
        before = state.channel[row]
        if before != NOWHERE:
            take(state, row)
        audience = state.audience[state.indptr[row] : state.indptr[row + 1]]
        overlaps(state.joined, audience, partial, members)
        after = cheapest(state, row, members, before)
        put(state, row, after)
        moved += after != before
    return moved
