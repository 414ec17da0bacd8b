"""First steps that look at who wants what and not at rates, Bickson et al. (2010), section 4.1.

Two-phase K-means on interest vectors, whole passes first, then single moves; and binary matrix
decomposition, which approaches W by the product of two binary matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import map_cost
from fanplan.layers.channels.map import ChannelMap, count_overlaps, one_channel_per_row
from fanplan.layers.channels.method_params import require_enough_flows
from fanplan.layers.channels.published.params import BmdParams, FirstStepParams
from fanplan.layers.channels.published.tock import NOWHERE


class Clusters(NamedTuple):
    """Rows in clusters, without their rates; changed in place. All sums are whole numbers."""

    indptr: Longs
    audience: Ints
    flows: Longs
    """Weight of each row: equal flows count one by one, in whatever rows they are."""
    channel: Ints
    """Of each row, or ``NOWHERE``."""
    sums: Longs
    """Subscriber × channel: how many flows on the channel the subscriber wants."""
    counts: Longs
    """Flows on each channel."""
    squares: Longs
    """Per channel, the squares of its sums added up."""


def two_phase_means(
    problem: InterestProblem, params: FirstStepParams, seed: int, stop: Stop
) -> ChannelMap:
    """The K-means of Seber (1984) and Spath (1985), Bickson et al. (2010), section 4.1.

    Starts from rows drawn as centroids; rates play no part. At most ``iterations`` passes in each
    phase. Time O(t · pairs · channels), memory 8 bytes per subscriber and channel.
    """
    require_enough_flows(problem, params.channels)
    state = drawn_centroids(problem, params.channels, seed)
    for reassign in (batch_pass, online_pass):
        for _ in range(params.iterations):
            moved = reassign(state)
            map = one_channel_per_row(problem, state.channel, params.channels)
            if stop(map_cost(problem, map, params.weights)):
                return map
            if moved == 0:
                break
    return map


def drawn_centroids(problem: InterestProblem, channels: int, seed: int) -> Clusters:
    """As many different rows as there are channels, each alone; all others are nowhere yet."""
    state = Clusters(
        problem.indptr,
        problem.audience,
        problem.flows,
        np.full(problem.size, NOWHERE, dtype=np.int32),
        np.zeros((len(problem.subscribers), channels), dtype=np.int64),
        np.zeros(channels, dtype=np.int64),
        np.zeros(channels, dtype=np.int64),
    )
    drawn = np.random.default_rng(seed).permutation(problem.size)[:channels]
    for channel, row in enumerate(drawn):
        enter_cluster(state, row, channel)
    return state


@compiled
def enter_cluster(state: Clusters, row: int, channel: int) -> None:
    """Add a row that is nowhere to a cluster. O(audience)."""
    state.channel[row] = channel
    weight = state.flows[row]
    state.counts[channel] += weight
    for h in state.audience[state.indptr[row] : state.indptr[row + 1]]:
        state.squares[channel] += weight * (2 * state.sums[h, channel] + weight)
        state.sums[h, channel] += weight


@compiled
def leave_cluster(state: Clusters, row: int) -> None:
    """Take a row out of its cluster. O(audience)."""
    channel, weight = state.channel[row], state.flows[row]
    state.channel[row] = NOWHERE
    state.counts[channel] -= weight
    for h in state.audience[state.indptr[row] : state.indptr[row + 1]]:
        state.sums[h, channel] -= weight
        state.squares[channel] -= weight * (2 * state.sums[h, channel] + weight)


@compiled
def centroid_distances(state: Clusters, row: int, result: Floats) -> None:
    """Squared distance of a row to each centroid; infinite to an empty cluster."""
    audience = state.audience[state.indptr[row] : state.indptr[row + 1]]
    result[:] = 0.0
    for h in audience:
        for j in range(len(result)):
            result[j] += state.sums[h, j]
    for j in range(len(result)):
        n = state.counts[j]
        if n == 0:
            result[j] = np.inf
        else:
            result[j] = len(audience) - 2.0 * result[j] / n + state.squares[j] / n / n


@compiled
def batch_pass(state: Clusters) -> int:
    """First phase: all rows to their nearest centroid at once; the number of rows moved."""
    distance = np.empty(len(state.counts))
    nearest = np.empty(len(state.channel), dtype=np.int32)
    spread = np.empty(len(state.channel))
    for row in range(len(nearest)):
        centroid_distances(state, row, distance)
        nearest[row] = np.argmin(distance)
        spread[row] = distance[nearest[row]]
    fill_empty(nearest, spread, len(state.counts))
    moved = 0
    for row in range(len(nearest)):
        if nearest[row] != state.channel[row]:
            if state.channel[row] != NOWHERE:
                leave_cluster(state, row)
            enter_cluster(state, row, nearest[row])
            moved += 1
    return moved


@compiled
def fill_empty(nearest: Ints, spread: Floats, channels: int) -> None:
    """An empty cluster gets the row farthest from its centroid that is not alone there."""
    rows = np.zeros(channels, dtype=np.int64)
    for channel in nearest:
        rows[channel] += 1
    for channel in range(channels):
        while rows[channel] == 0 and spread.max() > 0:
            row = np.argmax(spread)
            spread[row] = 0.0
            if rows[nearest[row]] > 1:
                rows[nearest[row]] -= 1
                nearest[row] = channel
                rows[channel] = 1


@compiled
def online_pass(state: Clusters) -> int:
    """Second phase: single moves that lower the sum of squared distances; their number.

    Without the row a centroid of n flows moves away from it, with it n + 1 flows draw near: a
    row of weight c at distance d from the others' centroid adds d · n c / (n + c).
    """
    distance = np.empty(len(state.counts))
    moved = 0
    for row in range(len(state.channel)):
        before, weight = state.channel[row], state.flows[row]
        leave_cluster(state, row)
        centroid_distances(state, row, distance)
        best, least = before, added_squares(distance[before], state.counts[before], weight)
        for j in range(len(distance)):
            increase = added_squares(distance[j], state.counts[j], weight)
            if increase < least:
                best, least = j, increase
        enter_cluster(state, row, best)
        moved += best != before
    return moved


@compiled
def added_squares(distance: float, count: int, weight: int) -> float:
    """What a row of that weight adds to a cluster's sum of squares; nothing to an empty one."""
    return distance * count * weight / (count + weight) if count > 0 else 0.0


def bmd(problem: InterestProblem, params: FirstStepParams, seed: int, stop: Stop) -> ChannelMap:
    """Li (2005) as in Bickson et al. (2010), section 4.1: least ‖XY − W‖², X and Y in turn.

    Starts from random rows as Y, or from a random X with one channel per flow (``first``); rates
    play no part. The product may miss interested subscribers, so in the end everyone joins the
    channels of what they want. Time O(t · pairs · channels).
    """
    require_enough_flows(problem, params.channels)
    random, channels = np.random.default_rng(seed), params.channels
    by_rows = not isinstance(params, BmdParams) or params.first == "rows"
    channel = random.integers(channels, size=problem.size, dtype=np.int32)
    joined = drawn_rows(problem, channels, random) if by_rows else None
    for _ in range(params.iterations):
        joined = best_members(problem, channel, channels) if joined is None else joined
        moved = move_nearest(problem.indptr, problem.audience, joined, channel)
        map = one_channel_per_row(problem, channel, channels)
        if moved == 0 or stop(map_cost(problem, map, params.weights)):
            break
        joined = None
    return map


def drawn_rows(problem: InterestProblem, channels: int, random: np.random.Generator) -> Bytes:
    """Audiences of different rows as members, subscriber × channel; none if rows are too few."""
    joined = np.zeros((len(problem.subscribers), channels), dtype=np.uint8)
    for channel, row in enumerate(random.permutation(problem.size)[:channels]):
        joined[problem.audience[problem.indptr[row] : problem.indptr[row + 1]], channel] = 1
    return joined


def best_members(problem: InterestProblem, channel: Ints, channels: int) -> Bytes:
    """The Y that is best for X, subscriber × channel: who wants more than half of the flows."""
    shape = (len(problem.subscribers), channels)
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    pairs = problem.audience.astype(np.int64) * channels + channel[row]
    sums = np.bincount(pairs, problem.flows[row], shape[0] * shape[1]).reshape(shape)
    carried = np.bincount(channel, problem.flows, channels)
    return (2 * sums > carried).astype(np.uint8)


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
        count_overlaps(audience[indptr[row] : indptr[row + 1]], joined, partial, members)
        best = channel[row]
        for j in range(len(sizes)):
            if sizes[j] - 2 * members[j] < sizes[best] - 2 * members[best]:
                best = j
        moved += best != channel[row]
        channel[row] = best
    return moved
