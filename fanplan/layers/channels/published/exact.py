"""Exact: the optimum of tiny instances, by looking at every choice of members.

Given the members of all channels, each row's best channels are found by trying all subsets, so
only members need enumeration. Subscribers with equal interests have an optimal plan in which they
join the same channels (given the rows' channels, each subscriber's best choice depends on its
interests alone), so they are counted as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.method_params import MethodParams

MOST_STEPS = 3e9
"""Inner steps that are still tried: some seconds."""


@dataclass(frozen=True)
class ExactParams(MethodParams):
    """Which plans are allowed."""

    multicast_only: bool = False
    """Whether unicast is out of the question."""
    multiple: bool = True
    """Whether a row may go to several channels, as in Eq. 1."""


def exact(problem: InterestProblem, params: ExactParams, _seed: int, _stop: Stop) -> ChannelMap:
    """The cheapest map of all; the search is short and does not ask ``stop``."""
    interests, group = different_subscribers(problem)
    used = min(params.channels, problem.size)
    require_tiny(problem, len(interests), used)
    audiences = (interests.T.astype(np.int64) << np.arange(len(interests))).sum(axis=1)
    weight = np.bincount(group[group >= 0], minlength=len(interests)).astype(np.int64)
    counts = subset_counts(weight)
    w = params.weights
    unicast = math.inf if params.multicast_only else w.unicast
    prices = np.array([w.w1, w.w2, unicast])
    best = np.zeros(used, dtype=np.int64)
    enumerate_members(audiences, problem.messages, counts, prices, params.multiple, best)
    return exact_map(problem, params, best, audiences, counts, prices, group)


def different_subscribers(problem: InterestProblem) -> tuple[np.ndarray, Longs]:
    """The different interests, one row each, and each subscriber's; −1 for who wants nothing."""
    matrix = np.zeros((len(problem.subscribers), problem.size), dtype=np.uint8)
    rows = np.repeat(np.arange(problem.size), problem.audience_sizes)
    matrix[problem.audience, rows] = 1
    wants = matrix.any(axis=1)
    group = np.full(len(matrix), -1)
    interests, group[wants] = np.unique(matrix[wants], axis=0, return_inverse=True)
    return interests, group


def require_tiny(problem: InterestProblem, subscribers: int, channels: int) -> None:
    """The number of ways to choose members must be small enough."""
    ways = math.comb(2**subscribers - 1, channels) if subscribers < 40 else math.inf
    if ways * 2 ** (channels - 1) * problem.size <= MOST_STEPS:
        return
    what = f"{subscribers} different subscribers on {channels} channels are too many to enumerate"
    raise InputError(Problem("exact", what, "Use the method kmodes, or a smaller instance"))


def subset_counts(weight: Longs) -> Longs:
    """How many subscribers each set of different ones stands for."""
    sets = np.arange(1 << len(weight))
    inside = sets[:, None] >> np.arange(len(weight)) & 1
    result: Longs = (inside * weight).sum(axis=1).astype(np.int64)
    return result


@compiled
def enumerate_members(
    audiences: Longs, rates: Floats, counts: Longs, prices: Floats, multiple: bool, best: Longs
) -> float:
    """Put the best members of all channels into ``best``; what they cost.

    Channels are walked in ascending order of their members as a number; ``row_cost[d]`` is what
    each row costs with the first d channels.
    """
    channels, rows = len(best), len(audiences)
    chosen = np.zeros(channels + 1, dtype=np.int64)
    union = np.zeros(1 << channels, dtype=np.int64)
    price = np.zeros(1 << channels)
    row_cost = np.empty((channels + 1, rows))
    for row in range(rows):
        row_cost[0, row] = subset_cost(audiences[row], 0, 0.0, counts, prices)
    least = weighted(rates, row_cost[0])
    depth = 1
    while depth > 0:
        chosen[depth] += 1
        if chosen[depth] >= len(counts):
            depth -= 1
            continue
        add_channel(depth, chosen[depth], counts, prices, multiple, union, price)
        for row in range(rows):
            cheapest = row_cost[depth - 1, row]
            for s in range(1 << (depth - 1), 1 << depth):
                here = subset_cost(audiences[row], union[s], price[s], counts, prices)
                cheapest = min(cheapest, here)
            row_cost[depth, row] = cheapest
        total = weighted(rates, row_cost[depth])
        if total < least:
            least = total
            best[:] = 0
            best[:depth] = chosen[1 : depth + 1]
        if depth < channels:
            chosen[depth + 1] = chosen[depth]
            depth += 1
    return least


@compiled
def add_channel(
    depth: int,
    members: int,
    counts: Longs,
    prices: Floats,
    multiple: bool,
    union: Longs,
    price: Floats,
) -> None:
    """Extend the subsets of the first channels by those that have the new one."""
    half = 1 << (depth - 1)
    for s in range(half):
        union[half + s] = union[s] | members
        price[half + s] = price[s] + prices[1] + prices[0] * counts[members]
        if s > 0 and not multiple:
            price[half + s] = np.inf


@compiled
def subset_cost(audience: int, union: int, price: float, counts: Longs, prices: Floats) -> float:
    """What a message costs on channels with this union of members and this price."""
    missing = counts[audience & ~union]
    return price + prices[2] * missing if missing else price


@compiled
def weighted(rates: Floats, costs: Floats) -> float:
    total = 0.0
    for row in range(len(rates)):
        if rates[row] > 0.0 or np.isinf(costs[row]):
            total += rates[row] * costs[row] if rates[row] > 0.0 else np.inf
    return total


def exact_map(
    problem: InterestProblem,
    params: ExactParams,
    best: Longs,
    audiences: Longs,
    counts: Longs,
    prices: Floats,
    group: Longs,
) -> ChannelMap:
    """The map with these members: for each row the cheapest subset of the channels."""
    joins = (best[:, None] >> np.maximum(group, 0) & 1) * (group >= 0)
    needed = np.zeros_like(joins)
    assigned, unicast = [], []
    for row in range(problem.size):
        subset = cheapest_subset(int(audiences[row]), best, counts, prices, params.multiple)
        assigned += [(row, channel) for channel in subset]
        served = np.asarray(joins[list(subset)].any(axis=0))
        audience = problem.audience[problem.indptr[row] : problem.indptr[row + 1]]
        unicast += [(row, user) for user in audience if not served[user]]
        for channel in subset:
            needed[channel, audience] = 1
    return ChannelMap(
        params.channels,
        map_pairs(*zip(*assigned, strict=True)) if assigned else map_pairs([], []),
        # Where rows have no traffic, members that get nothing they want cost nothing either.
        map_pairs(*np.nonzero(joins * needed)),
        map_pairs(*zip(*unicast, strict=True)) if unicast else map_pairs([], []),
    )


def cheapest_subset(
    audience: int, members: Longs, counts: Longs, prices: Floats, multiple: bool
) -> tuple[int, ...]:
    """The channels on which a row costs least; the fewest among equals."""
    best: tuple[int, ...] = ()
    least = subset_cost(audience, 0, 0.0, counts, prices)
    for s in range(1, 1 << len(members)):
        subset = tuple(j for j in range(len(members)) if s >> j & 1)
        union = int(np.bitwise_or.reduce(members[list(subset)]))
        price = sum(prices[1] + prices[0] * counts[members[j]] for j in subset)
        here = subset_cost(audience, union, price, counts, prices)
        if here < least and (multiple or len(subset) == 1):
            best, least = subset, here
    return best
