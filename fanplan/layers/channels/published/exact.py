"""Exact: the optimum of tiny instances, by looking at every choice of members.

Given the members of all channels, each row's best channels are found by trying all subsets, so
only members need enumeration. Subscribers with equal interests have an optimal plan in which they
join the same channels (given the rows' channels, each subscriber's best choice depends on its
interests alone), so they are counted as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.channels.method_params import MethodParams

MOST_STEPS = 3e9
"""Inner steps that are still tried: some seconds."""
MOST_SUBSCRIBERS = 20
"""Different subscribers from which even the sets of them are too many."""


@dataclass(frozen=True)
class ExactParams(MethodParams):
    """Which plans are allowed."""

    multicast_only: bool = False
    """Whether unicast is out of the question."""
    multiple: bool = True
    """Whether a row may go to several channels, as in Eq. 1."""


class Choice(NamedTuple):
    """What members are chosen for: rows by the bits of their audiences, and what is allowed."""

    audiences: Longs
    rates: Floats
    unicast: Floats
    """Per row what a message costs for each of its audience that no channel serves."""
    counts: Longs
    """How many subscribers each set of different ones stands for."""
    limits: Longs
    """Per different subscriber the most channels to join."""
    least: int
    """The fewest members of a channel."""
    w1: float
    w2: float
    multiple: bool


def exact(problem: InterestProblem, params: ExactParams, _seed: int, _stop: Stop) -> ChannelMap:
    """The cheapest map of all; the search is short and does not ask ``stop``."""
    interests, group = different_subscribers(problem)
    require_tiny(problem, len(interests), params.channels)
    w, used = params.weights, used_channels(problem.size, len(interests), params.channels)
    choice = Choice(
        audience_bits(interests),
        problem.messages,
        np.full(problem.size, math.inf if params.multicast_only else w.unicast),
        subset_counts(group, len(interests)),
        np.full(len(interests), used),
        1,
        w.w1,
        w.w2,
        params.multiple,
    )
    best = np.zeros(used, dtype=np.int64)
    enumerate_members(choice, best)
    return exact_map(problem, params.channels, choice, best, group)


def interest_matrix(problem: InterestProblem) -> Bytes:
    """Subscribers × rows: who wants what."""
    matrix = np.zeros((len(problem.subscribers), problem.size), dtype=np.uint8)
    rows = np.repeat(np.arange(problem.size), problem.audience_sizes)
    matrix[problem.audience, rows] = 1
    return matrix


def different_subscribers(
    problem: InterestProblem, limits: Longs | None = None
) -> tuple[Bytes, Longs]:
    """The different interests, one row each, and each subscriber's; −1 for who wants nothing.

    Subscribers with different limits differ too.
    """
    matrix = interest_matrix(problem)
    wants = matrix.any(axis=1)
    group = np.full(len(matrix), -1)
    told = np.zeros(len(matrix), dtype=np.int64) if limits is None else limits
    keys = np.column_stack((matrix, told))[wants]
    _, first, group[wants] = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return matrix[wants][first], group


def require_tiny(problem: InterestProblem, subscribers: int, channels: int) -> None:
    """The number of ways to choose members must be small enough."""
    if steps(problem.size, subscribers, channels) <= MOST_STEPS:
        return
    what = f"{subscribers} different subscribers on {channels} channels are too many to enumerate"
    raise InputError(Problem("exact", what, "Use the method kmodes, or a smaller instance"))


def used_channels(rows: int, subscribers: int, channels: int) -> int:
    """Channels that may be of use: one for each row, and each set of members once."""
    return int(min(channels, rows, 2**subscribers - 1))


def steps(rows: int, subscribers: int, channels: int) -> float:
    """Inner steps of the enumeration."""
    if subscribers >= MOST_SUBSCRIBERS:
        return math.inf
    used = used_channels(rows, subscribers, channels)
    ways = sum(math.comb(2**subscribers - 1, depth) << depth for depth in range(1, used + 1))
    return ways * rows / 2


def audience_bits(interests: Bytes) -> Longs:
    """Who of the different subscribers wants each row, as a number."""
    bits: Longs = (interests.T.astype(np.int64) << np.arange(len(interests))).sum(axis=1)
    return bits


def subset_counts(group: Longs, groups: int) -> Longs:
    """How many subscribers each set of different ones stands for."""
    weight = np.bincount(group[group >= 0], minlength=groups)
    inside = np.arange(1 << groups)[:, None] >> np.arange(groups) & 1
    result: Longs = (inside * weight).sum(axis=1).astype(np.int64)
    return result


@compiled
def enumerate_members(choice: Choice, best: Longs) -> float:
    """Put the best members of all channels into ``best``; what they cost, infinite if none do.

    Channels are walked in ascending order of their members as a number; ``row_cost[d]`` is what
    each row costs with the first d channels.
    """
    channels, rows = len(best), len(choice.audiences)
    chosen = np.zeros(channels + 1, dtype=np.int64)
    union = np.zeros(1 << channels, dtype=np.int64)
    price = np.zeros(1 << channels)
    row_cost = np.empty((channels + 1, rows))
    for row in range(rows):
        row_cost[0, row] = subset_cost(choice, row, 0, 0.0)
    least = weighted(choice.rates, row_cost[0])
    depth = 1
    while depth > 0:
        chosen[depth] += 1
        members = chosen[depth]
        if members >= len(choice.counts):
            depth -= 1
            continue
        if choice.counts[members] < choice.least or not may_join(choice, chosen[: depth + 1]):
            continue
        add_channel(choice, depth, members, union, price)
        for row in range(rows):
            cheapest = row_cost[depth - 1, row]
            for s in range(1 << (depth - 1), 1 << depth):
                cheapest = min(cheapest, subset_cost(choice, row, union[s], price[s]))
            row_cost[depth, row] = cheapest
        total = weighted(choice.rates, row_cost[depth])
        if total < least:
            least = total
            best[:] = 0
            best[:depth] = chosen[1 : depth + 1]
        if depth < channels:
            chosen[depth + 1] = chosen[depth]
            depth += 1
    return least


@compiled
def may_join(choice: Choice, chosen: Longs) -> bool:
    """Whether everybody may be on so many channels as the chosen ones have them on."""
    for subscriber in range(len(choice.limits)):
        joined = 0
        for members in chosen:
            joined += members >> subscriber & 1
        if joined > choice.limits[subscriber]:
            return False
    return True


@compiled
def add_channel(choice: Choice, depth: int, members: int, union: Longs, price: Floats) -> None:
    """Extend the subsets of the first channels by those that have the new one."""
    half = 1 << (depth - 1)
    for s in range(half):
        union[half + s] = union[s] | members
        price[half + s] = price[s] + choice.w2 + choice.w1 * choice.counts[members]
        if s > 0 and not choice.multiple:
            price[half + s] = np.inf


@compiled
def subset_cost(choice: Choice, row: int, union: int, price: float) -> float:
    """What a message costs on channels with this union of members and this price."""
    missing = choice.counts[choice.audiences[row] & ~union]
    return price + choice.unicast[row] * missing if missing else price


@compiled
def weighted(rates: Floats, costs: Floats) -> float:
    total = 0.0
    for row in range(len(rates)):
        if rates[row] > 0.0 or np.isinf(costs[row]):
            total += rates[row] * costs[row] if rates[row] > 0.0 else np.inf
    return total


def exact_map(
    problem: InterestProblem, channels: int, choice: Choice, best: Longs, group: Longs
) -> ChannelMap:
    """The map with these members: for each row the cheapest subset of the channels."""
    joins, on = joined_by(best, group), cheapest_subsets(choice, best)
    # Where rows have no traffic, members that get nothing they want cost nothing either.
    needed = (on.T.astype(np.int64) @ interest_matrix(problem).T) > 0
    members = map_pairs(*np.nonzero(joins.T * needed))
    return completed(problem, channels, map_pairs(*np.nonzero(on)), members)


def joined_by(best: Longs, group: Longs) -> Bytes:
    """Subscribers × channels: who has joined, from the members as numbers."""
    joins = (best >> np.maximum(group, 0)[:, None] & 1) * (group >= 0)[:, None]
    return joins.astype(np.uint8)


@compiled
def cheapest_subsets(choice: Choice, best: Longs) -> Bytes:
    """Rows × channels: the channels on which each row costs least; unicast among equals."""
    union = np.zeros(1 << len(best), dtype=np.int64)
    price = np.zeros(1 << len(best))
    for j in range(len(best)):
        add_channel(choice, j + 1, best[j], union, price)
    on = np.zeros((len(choice.audiences), len(best)), dtype=np.uint8)
    for row in range(len(on)):
        subset, least = 0, subset_cost(choice, row, 0, 0.0)
        for s in range(1, len(union)):
            here = subset_cost(choice, row, union[s], price[s])
            if here < least:
                subset, least = s, here
        for j in range(len(best)):
            on[row, j] = subset >> j & 1
    return on
