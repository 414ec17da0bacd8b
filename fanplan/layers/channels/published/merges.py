"""User-based merge: a channel for each subscriber's interest at first, then channels merge."""

from __future__ import annotations

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.channels_params import ChannelParams, require_enough_flows
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, pairs
from fanplan.layers.channels.published.merge import (
    Groups,
    bit_sets,
    groups_of,
    merged,
    sums_per_byte,
)


def user_merge(
    problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop
) -> ChannelMap:
    """Adler et al. (2001): each subscriber joins one channel, which carries all that its members
    want; merge the two channels that raise the cost least until K are left.

    A row is sent on several channels. Time O(subscribers² · rows / 8), memory one bit per
    subscriber and row.
    """
    require_enough_flows(problem, params.channels)
    wanting, who = np.unique(problem.audience, return_inverse=True)
    number = merged(user_groups(problem, params, who, len(wanting)), params.channels, stop)
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    assigned, members = pairs(row, number[who]), pairs(number, wanting)
    return ChannelMap(params.channels, assigned, members, NO_PAIRS)


def user_groups(
    problem: InterestProblem, params: ChannelParams, who: np.ndarray, users: int
) -> Groups:
    """Subscribers add up, each w1 and w2 once; sets of rows unite and measure their messages."""
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    sets = bit_sets(who, row, users, problem.size)
    weights = params.weights
    amounts = np.full(users, weights.w1)
    table = sums_per_byte(problem.messages)
    return groups_of(sets, amounts, offset=weights.w2, base=0.0, byte_weights=table)
