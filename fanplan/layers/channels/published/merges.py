"""User-based merge: a channel for each subscriber's interest at first, then channels merge."""

from __future__ import annotations

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, pairs
from fanplan.layers.channels.params import ChannelParams, require_enough_flows
from fanplan.layers.channels.published.membership import one_channel_per_row
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


def flow_merge(
    problem: InterestProblem, params: ChannelParams, seed: int, stop: Stop
) -> ChannelMap:
    """Adler et al. (2001): merge the two channels that raise the cost least until K are left.

    Flows with equal audiences merge at no cost, so the start is one channel per audience class.
    Time O(classes² · subscribers / 64): practical for tens of thousands of classes.
    """
    require_enough_flows(problem, params.channels)
    _, first, group = np.unique(problem.classes, return_index=True, return_inverse=True)
    number = merged(class_groups(problem, params, first, group), params.channels, stop)
    return one_channel_per_row(problem, number[group].astype(np.int32), params.channels)


def class_groups(
    problem: InterestProblem, params: ChannelParams, first: np.ndarray, group: np.ndarray
) -> Groups:
    """Messages add up; sets of subscribers unite and measure w2 + w1 for each."""
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    shown = np.isin(row, first)
    members, elements = group[row[shown]], problem.audience[shown].astype(np.int64)
    sets = bit_sets(members, elements, len(first), len(problem.subscribers))
    messages = np.bincount(group, problem.messages, len(first)).astype(np.float64)
    weights = params.weights
    return groups_of(sets, messages, offset=0.0, base=weights.w2, weight=weights.w1)
