"""Binary matrix decomposition: W is approached by the product of two binary matrices."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bytes, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.params import require_enough_flows
from fanplan.layers.channels.published.assignment import map_cost, overlaps
from fanplan.layers.channels.published.membership import one_channel_per_row
from fanplan.layers.channels.published.params import FirstStepParams


def bmd(problem: InterestProblem, params: FirstStepParams, seed: int, stop: Stop) -> ChannelMap:
    """Li (2005) as in Bickson et al. (2010), section 4.1: least ‖XY − W‖², X and Y in turn.

    Starts from a random X with one channel per flow; rates play no part. The product may miss
    interested subscribers, so in the end everyone joins the channels of what they want.
    Time O(t · pairs · channels).
    """
    require_enough_flows(problem, params.channels)
    generator = np.random.default_rng(seed)
    channel = generator.integers(params.channels, size=problem.size, dtype=np.int32)
    for _ in range(params.iterations):
        joined = best_members(problem, channel, params.channels)
        moved = move_nearest(problem.indptr, problem.audience, joined, channel)
        map = one_channel_per_row(problem, channel, params.channels)
        if moved == 0 or stop(map_cost(problem, map, params.weights)):
            break
    return map


def best_members(problem: InterestProblem, channel: Ints, channels: int) -> Bytes:
    """The Y that is best for X, subscriber × channel: who wants more than half of the flows."""
    sums = wanted_flows(
        problem.indptr, problem.audience, problem.flows, channel, len(problem.subscribers), channels
    )
    carried = np.bincount(channel, problem.flows, channels)
    return (2 * sums > carried).astype(np.uint8)


@compiled
def wanted_flows(
    indptr: Longs, audience: Ints, flows: Longs, channel: Ints, subscribers: int, channels: int
) -> Longs:
    """How many flows on each channel each subscriber wants, subscriber × channel."""
    sums = np.zeros((subscribers, channels), dtype=np.int64)
    for row in range(len(channel)):
        for h in audience[indptr[row] : indptr[row + 1]]:
            sums[h, channel[row]] += flows[row]
    return sums


@compiled
def move_nearest(indptr: Longs, audience: Ints, joined: Bytes, channel: Ints) -> int:
    """The X that is best for Y: each row where fewest subscribers differ; the number moved."""
    members = np.empty(joined.shape[1], dtype=np.int32)
    partial = np.empty(joined.shape[1], dtype=np.uint8)
    sizes = np.zeros(joined.shape[1], dtype=np.int64)
    for h in range(joined.shape[0]):
        sizes += joined[h]
    moved = 0
    for row in range(len(channel)):
        overlaps(joined, audience[indptr[row] : indptr[row + 1]], partial, members)
        best = channel[row]
        for j in range(len(sizes)):
            if sizes[j] - 2 * members[j] < sizes[best] - 2 * members[best]:
                best = j
        moved += best != channel[row]
        channel[row] = best
    return moved
