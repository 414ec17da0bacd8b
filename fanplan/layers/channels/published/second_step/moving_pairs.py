"""Who gets what through which channel, while pairs move to unicast one by one.

Every second step is a choice of pairs and nothing else: when a (row, subscriber) pair moves, the
subscriber leaves the channel if nothing else is needed there (Y shrinks), and the row leaves it if
nobody is left who gets it there (X shrinks). Both follow from counts that ``send_by_unicast``
keeps, in constant time per pair. An item is what moves as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs, Words, starts_of
from fanplan.core.bits import has_bit
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, map_pairs, pair_numbers

BY_UNICAST = -1
COST, MULTICAST, UNICAST = 0, 1, 2
FLOW, USER, PAIR = 0, 1, 2


class Served(NamedTuple):
    """The state of a second step; changed in place by ``send_by_unicast``.

    A *pair* is a position in the problem's audiences; an *entry* is a (row, channel) of the map.
    Of several channels that bring a subscriber the same row, the first carries the pair. A sum of
    pairs tells which pair is left when their number is 1. Memory: 21 bytes per pair and 20 per
    subscriber and channel.
    """

    received: float
    """w1"""
    sent: float
    """w2"""
    unicast: float
    """w3 (w1 + w2)"""
    rate: Floats
    """Messages of each row."""
    subscriber: Ints
    """Of each pair."""
    row: Ints
    """Of each pair."""
    entry: Ints
    """The entry that carries each pair, or ``BY_UNICAST``."""
    entries: Longs
    """Where the entries of each row start, with the end appended."""
    channel: Ints
    """Of each entry."""
    receivers: Ints
    """Number of pairs each entry carries."""
    receiver_sum: Longs
    """Sum of those pairs."""
    lone: Ints
    """Number of each entry's receivers that need nothing else on its channel."""
    needs: Ints
    """Subscriber × channel: number of pairs carried."""
    need_sum: Longs
    """Sum of those pairs."""
    sole: Floats
    """Subscriber × channel: messages of the rows that only this subscriber receives there."""
    carried: Floats
    """Messages that each subscriber gets through channels and wants."""
    sizes: Longs
    """Members of each channel."""
    loads: Floats
    """Messages of the rows on each channel."""
    totals: Floats
    """``COST`` of Eq. 1, messages sent by ``MULTICAST`` and by ``UNICAST``."""


class Items(NamedTuple):
    """Item ``i`` consists of the pairs ``pairs[starts[i]:starts[i + 1]]``."""

    kind: int
    starts: Longs
    pairs: Longs
    weight: Floats
    """Messages needed to send the whole item by unicast (section 4.2)."""


def flow_items(problem: InterestProblem) -> Items:
    """One item per row of the problem: a flow, or all flows of an audience class."""
    weight = problem.messages * problem.audience_sizes
    return Items(FLOW, problem.indptr, np.arange(problem.nnz), weight)


def user_items(problem: InterestProblem) -> Items:
    """One item per subscriber."""
    users = len(problem.subscribers)
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    weight = np.bincount(problem.audience, problem.messages[row], users).astype(np.float64)
    counts = np.bincount(problem.audience, minlength=users)
    return Items(USER, starts_of(counts), np.argsort(problem.audience, kind="stable"), weight)


def pair_items(problem: InterestProblem) -> Items:
    """One item per (row, interested subscriber)."""
    weight = np.repeat(problem.messages, problem.audience_sizes)
    return Items(PAIR, np.arange(problem.nnz + 1), np.arange(problem.nnz), weight)


def served_by_map(problem: InterestProblem, map: ChannelMap, weights: Weights) -> Served:
    """The state of a map. What it already sends by unicast stays there."""
    entries = map.assigned.starts(problem.size)
    row = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    bits = map.member_bits(len(problem.subscribers))
    entry = carrying_entries(row, problem.audience, entries, map.assigned.right, bits)
    require_all_served(problem, map, row, entry)
    shape = (len(problem.subscribers), map.channels)
    state = Served(
        received=weights.w1,
        sent=weights.w2,
        unicast=weights.unicast,
        rate=problem.messages,
        subscriber=problem.audience,
        row=row,
        entry=entry,
        entries=entries,
        channel=map.assigned.right,
        receivers=np.zeros(len(map.assigned), dtype=np.int32),
        receiver_sum=np.zeros(len(map.assigned), dtype=np.int64),
        lone=np.zeros(len(map.assigned), dtype=np.int32),
        needs=np.zeros(shape, dtype=np.int32),
        need_sum=np.zeros(shape, dtype=np.int64),
        sole=np.zeros(shape, dtype=np.float64),
        carried=np.zeros(len(problem.subscribers), dtype=np.float64),
        sizes=np.zeros(map.channels, dtype=np.int64),
        loads=np.zeros(map.channels, dtype=np.float64),
        totals=np.zeros(3, dtype=np.float64),
    )
    count_pairs(state)
    return state


def require_all_served(problem: InterestProblem, map: ChannelMap, row: Ints, entry: Ints) -> None:
    """XY + T ≥ W must hold to start with: pairs that no channel carries go by unicast."""
    by_unicast = pair_numbers(map.unicast.left, map.unicast.right)
    left_out = np.flatnonzero(entry == BY_UNICAST)
    pairs = pair_numbers(row[left_out], problem.audience[left_out])
    missed = left_out[~np.isin(pairs, by_unicast)]
    if len(missed):
        who = problem.subscribers[int(problem.audience[missed[0]])]
        what = f"subscriber {who} does not get row {row[missed[0]]}"
        raise InputError(Problem("first step", what, "Start from a map that serves everybody"))


def served_map(problem: InterestProblem, state: Served) -> ChannelMap:
    """The map as it now is: X, Y and T."""
    used = np.flatnonzero(state.receivers)
    entry_row = np.repeat(np.arange(problem.size), np.diff(state.entries))
    members, joined = np.nonzero(state.needs)
    alone = state.entry == BY_UNICAST
    return ChannelMap(
        len(state.sizes),
        map_pairs(entry_row[used], state.channel[used]),
        map_pairs(joined, members),
        map_pairs(state.row[alone], state.subscriber[alone]),
    )


@compiled
def carrying_entries(
    row: Ints, audience: Ints, entries: Longs, channel: Ints, members: Words
) -> Ints:
    """For each pair the first entry of its row on a channel that the subscriber has joined."""
    result = np.full(len(row), BY_UNICAST, dtype=np.int32)
    for p in range(len(row)):
        for e in range(entries[row[p]], entries[row[p] + 1]):
            if has_bit(members[channel[e]], audience[p]):
                result[p] = e
                break
    return result


@compiled
def count_pairs(state: Served) -> None:
    """Fill in all counts and totals from the entry of each pair."""
    for p in range(len(state.entry)):
        rate, e = state.rate[state.row[p]], state.entry[p]
        if e == BY_UNICAST:
            state.totals[UNICAST] += rate
            continue
        h, j = state.subscriber[p], state.channel[e]
        state.carried[h] += rate
        if state.needs[h, j] == 0:
            state.sizes[j] += 1
        state.needs[h, j] += 1
        state.need_sum[h, j] += p
        if state.receivers[e] == 0:
            state.loads[j] += rate
            state.totals[MULTICAST] += rate
        state.receivers[e] += 1
        state.receiver_sum[e] += p
    count_lone(state)
    state.totals[COST] = state.unicast * state.totals[UNICAST]
    for j in range(len(state.sizes)):
        state.totals[COST] += state.loads[j] * (state.sent + state.received * state.sizes[j])


@compiled
def count_lone(state: Served) -> None:
    """Fill in ``lone`` and ``sole``."""
    for p in range(len(state.entry)):
        e = state.entry[p]
        if e == BY_UNICAST:
            continue
        h, j = state.subscriber[p], state.channel[e]
        if state.needs[h, j] == 1:
            state.lone[e] += 1
        if state.receivers[e] == 1:
            state.sole[h, j] += state.rate[state.row[p]]


@compiled
def send_by_unicast(state: Served, pair: int) -> None:
    """Move a pair that a channel carries. O(1)."""
    e, h, rate = state.entry[pair], state.subscriber[pair], state.rate[state.row[pair]]
    j = state.channel[e]
    state.entry[pair] = BY_UNICAST
    state.carried[h] -= rate
    state.totals[UNICAST] += rate
    state.totals[COST] += state.unicast * rate
    need_less(state, pair, e, h, j)
    receive_less(state, pair, e, h, j, rate)


@compiled
def need_less(state: Served, pair: int, e: int, h: int, j: int) -> None:
    """One need less of subscriber h on channel j; with none left, h leaves."""
    state.needs[h, j] -= 1
    state.need_sum[h, j] -= pair
    if state.needs[h, j] == 0:
        state.lone[e] -= 1
        state.sizes[j] -= 1
        state.totals[COST] -= state.received * state.loads[j]
    elif state.needs[h, j] == 1:
        state.lone[state.entry[state.need_sum[h, j]]] += 1


@compiled
def receive_less(state: Served, pair: int, e: int, h: int, j: int, rate: float) -> None:
    """One receiver less of entry e; with none left, its row leaves channel j."""
    state.receivers[e] -= 1
    state.receiver_sum[e] -= pair
    if state.receivers[e] == 0:
        state.sole[h, j] -= rate
        state.loads[j] -= rate
        state.totals[MULTICAST] -= rate
        state.totals[COST] -= rate * (state.sent + state.received * state.sizes[j])
    elif state.receivers[e] == 1:
        state.sole[state.subscriber[state.receiver_sum[e]], j] += rate


@compiled
def fits_limit(state: Served, moving: Longs, limit: float) -> bool:
    """Whether the unicast share stays within the limit if these pairs move.

    A little is left free, so that a sum in another order does not exceed the limit either.
    """
    return limit >= 1 or share_after(state, moving) <= limit * (1 - 1e-12)


@compiled
def share_after(state: Served, moving: Longs) -> float:
    """The unicast share of the messages sent if these pairs moved; the state stays as it is."""
    multicast, unicast = state.totals[MULTICAST], state.totals[UNICAST]
    for p in moving:
        e = state.entry[p]
        if e != BY_UNICAST:
            rate = state.rate[state.row[p]]
            unicast += rate
            state.receivers[e] -= 1
            if state.receivers[e] == 0:
                multicast -= rate
    # Put back what was counted down to find rows that nobody would get by multicast any more.
    for p in moving:
        if state.entry[p] != BY_UNICAST:
            state.receivers[state.entry[p]] += 1
    return unicast / (multicast + unicast) if unicast > 0 else 0.0
