"""Channels that merge pair by pair (Adler et al., 2001), always the pair that costs least.

A group of flows and users costs (messages of its flows) · (w2 + w1 · its users). When flows merge,
messages add up and sets of users unite; when users merge, users add up and sets of flows unite.
Both are groups with an amount that adds up and a set whose measure is that of the union.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs, Position, Words
from fanplan.core.bits import bits_of_pairs, popcount
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, map_pairs, one_channel_per_row
from fanplan.layers.channels.method_params import MethodParams, require_enough_flows

NOBODY = -1
ROUNDS = 20
"""How often ``stop`` is asked on the way."""


class MergeGroups(NamedTuple):
    """Groups that merge; changed in place. The cost of one is amount · measure.

    Memory: one bit per group and element.
    """

    sets: Words
    """Group × 64 elements: bits."""
    amount: Floats
    """Adds up when groups merge, plus ``offset`` once."""
    offset: float
    measure: Floats
    """Of the set: the weights of its elements, plus ``base``."""
    base: float
    weight: float
    """Of every element, if ``byte_weights`` is empty."""
    byte_weights: Floats
    """Byte of a set × its value: the weights of its elements added up."""
    into: Ints
    """The group that each was merged into, or itself."""
    near: Ints
    """The later group that is cheapest to merge with, as far as is known, or ``NOBODY``."""
    change: Floats
    """What that merge adds to the cost, or less; infinite for a group that is gone."""


def user_merge(
    problem: InterestProblem, params: MethodParams, _seed: int, stop: Stop
) -> ChannelMap:
    """Adler et al. (2001): each subscriber joins one channel, which carries all that its members
    want; merge the two channels that raise the cost least until K are left.

    A row is sent on several channels. Time O(subscribers² · rows / 8), memory one bit per
    subscriber and row.
    """
    require_enough_flows(problem, params.channels)
    wanting, who = np.unique(problem.audience, return_inverse=True)
    number = merge_until(user_groups(problem, params, who, len(wanting)), params.channels, stop)
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    assigned, members = map_pairs(row, number[who]), map_pairs(number, wanting)
    return ChannelMap(params.channels, assigned, members, NO_PAIRS)


def user_groups(
    problem: InterestProblem, params: MethodParams, who: np.ndarray, users: int
) -> MergeGroups:
    """Subscribers add up, each w1 and w2 once; sets of rows unite and measure their messages."""
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    sets = bits_of_pairs(who, row, users, problem.size)
    weights = params.weights
    amounts = np.full(users, weights.w1)
    table = sums_per_byte(problem.messages)
    return unmerged(sets, amounts, offset=weights.w2, base=0.0, byte_weights=table)


def flow_merge(
    problem: InterestProblem, params: MethodParams, _seed: int, stop: Stop
) -> ChannelMap:
    """Adler et al. (2001): merge the two channels that raise the cost least until K are left.

    Flows with equal audiences merge at no cost, so the start is one channel per audience class.
    Time O(classes² · subscribers / 64): practical for tens of thousands of classes.
    """
    require_enough_flows(problem, params.channels)
    _, first, group = np.unique(problem.classes, return_index=True, return_inverse=True)
    number = merge_until(class_groups(problem, params, first, group), params.channels, stop)
    return one_channel_per_row(problem, number[group].astype(np.int32), params.channels)


def class_groups(
    problem: InterestProblem, params: MethodParams, first: np.ndarray, group: np.ndarray
) -> MergeGroups:
    """Messages add up; sets of subscribers unite and measure w2 + w1 for each."""
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    shown = np.isin(row, first)
    members, elements = group[row[shown]], problem.audience[shown].astype(np.int64)
    sets = bits_of_pairs(members, elements, len(first), len(problem.subscribers))
    messages = np.bincount(group, problem.messages, len(first)).astype(np.float64)
    weights = params.weights
    return unmerged(sets, messages, offset=0.0, base=weights.w2, weight=weights.w1)


def sums_per_byte(weights: Floats) -> Floats:
    """For each 8 elements, the weight of each of the 256 sets of them."""
    padded = np.zeros((len(weights) + 63) // 64 * 64)
    padded[: len(weights)] = weights
    chosen = (np.arange(256)[:, None] >> np.arange(8)) & 1
    return padded.reshape(-1, 8) @ chosen.T.astype(np.float64)


def unmerged(
    sets: Words,
    amount: Floats,
    offset: float,
    base: float,
    weight: float = 0.0,
    byte_weights: Floats | None = None,
) -> MergeGroups:
    """Groups before any merge."""
    state = MergeGroups(
        sets,
        amount,
        offset,
        np.empty(len(sets)),
        base,
        weight,
        np.empty((0, 256)) if byte_weights is None else byte_weights,
        np.arange(len(sets), dtype=np.int32),
        np.full(len(sets), NOBODY, dtype=np.int32),
        np.full(len(sets), np.inf),
    )
    measure_all(state)
    return state


def merge_until(state: MergeGroups, groups: int, stop: Stop) -> Longs:
    """Merge until at most that many groups are left; the number of each one's group, from 0.

    Adler et al. (2001), with one more reason to go on: a merge that lowers the cost. If ``stop``
    asks to end before, the groups with the least cost go together. Time O(groups² · words).
    """
    find_all_nearest(state)
    left = len(state.amount)
    while left > 1 and not stop(groups_cost(state)):
        after = merge_cheapest(state, left, max(groups, left - left // ROUNDS - 1), groups)
        if after == left:
            break
        left = after
    return number_groups(state, groups)


def groups_cost(state: MergeGroups) -> float:
    """The cost of all groups that are left."""
    left = state.into == np.arange(len(state.into))
    return float(np.dot(state.amount[left] + state.offset, state.measure[left]))


def number_groups(state: MergeGroups, groups: int) -> Longs:
    """Groups numbered by falling cost; those beyond the last number share it."""
    roots = follow(state.into)
    left = np.unique(roots)
    costs = (state.amount[left] + state.offset) * state.measure[left]
    order = np.argsort(-costs, kind="stable")
    number = np.empty(len(state.into), dtype=np.int64)
    number[left[order]] = np.minimum(np.arange(len(left)), groups - 1)
    return number[roots]


@compiled
def follow(into: Ints) -> Ints:
    """The group in which each one ended; a group always merges into a later one."""
    roots = into.copy()
    for x in range(len(into) - 1, -1, -1):
        roots[x] = roots[into[x]] if into[x] != x else x
    return roots


@compiled
def union_measure(state: MergeGroups, a: Position, b: int) -> float:
    """The measure of two groups' sets united."""
    if len(state.byte_weights) == 0:
        count = np.uint64(0)
        for w in range(state.sets.shape[1]):
            count += popcount(state.sets[a, w] | state.sets[b, w])
        return state.base + state.weight * count
    measure = state.base
    for w in range(state.sets.shape[1]):
        word = state.sets[a, w] | state.sets[b, w]
        for byte in range(8):
            value = (word >> np.uint64(8 * byte)) & np.uint64(255)
            measure += state.byte_weights[8 * w + byte, value]
    return measure


@compiled
def measure_all(state: MergeGroups) -> None:
    for x in range(len(state.measure)):
        state.measure[x] = union_measure(state, x, x)


@compiled
def merge_change(state: MergeGroups, a: Position, b: int) -> float:
    """What merging two groups adds to the cost."""
    union = union_measure(state, a, b)
    together = (state.amount[a] + state.amount[b] + state.offset) * union
    result: float = (
        together
        - (state.amount[a] + state.offset) * state.measure[a]
        - (state.amount[b] + state.offset) * state.measure[b]
    )
    return result


@compiled
def find_nearest(state: MergeGroups, x: Position) -> None:
    """Find the later group that is cheapest to merge x with; ties go to the first."""
    state.near[x], state.change[x] = NOBODY, np.inf
    for y in range(x + 1, len(state.into)):
        if state.into[y] == y:
            change = merge_change(state, x, y)
            if change < state.change[x]:
                state.near[x], state.change[x] = y, change


@compiled
def find_all_nearest(state: MergeGroups) -> None:
    for x in range(len(state.into)):
        find_nearest(state, x)


@compiled
def merge_cheapest(state: MergeGroups, left: int, until: int, groups: int) -> int:
    """Merge down to ``until`` groups, beyond ``groups`` only if the cost falls; the number left.

    A group whose nearest one is gone keeps its old change as a lower bound and searches anew only
    when it comes up as the least (Müllner 2011, "generic" algorithm).
    """
    while left > until or left <= groups:
        # Stored changes are lower bounds, so the least one that is confirmed is the least of all.
        a = np.argmin(state.change)
        b = state.near[a]
        if b == NOBODY or (left <= groups and state.change[a] >= 0):
            break
        if state.into[b] != b or merge_change(state, a, b) > state.change[a]:
            find_nearest(state, a)
            continue
        merge_into(state, a, b)
        left -= 1
    return left


@compiled
def merge_into(state: MergeGroups, a: Position, b: int) -> None:
    """Merge group a into the later group b; tell the earlier ones if b is now their nearest."""
    state.measure[b] = union_measure(state, a, b)
    state.amount[b] += state.amount[a]
    for w in range(state.sets.shape[1]):
        state.sets[b, w] |= state.sets[a, w]
    state.into[a] = b
    state.change[a] = np.inf
    for x in range(b):
        if state.into[x] == x:
            change = merge_change(state, x, b)
            if change < state.change[x]:
                state.near[x], state.change[x] = b, change
    find_nearest(state, b)
