"""What a class can do in each multicast domain, and what it costs there.

A segment, the part of an audience in one domain, has three options: its channels of today with
unicast for the rest, unicast alone, and the smallest single channel that has all of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.evaluation.prices import LedgerPrices
from fanplan.kernels import compiled
from fanplan.plan.channels.analytic import joined_any
from fanplan.plan.channels.bitmap import Bitmap, has_bit
from fanplan.plan.channels.types import ChannelMap
from fanplan.problem.delivery import DeliveryProblem
from fanplan.problem.interest import Floats, Ints, Longs

TODAY, ALONE, WHOLE = 0, 1, 2
"""The options, in the order in which ties are settled."""

NONE = -1


class Options(NamedTuple):
    """``cost[k, o]`` of segment k for each message, infinite if there is no such option.

    ``lone[k]`` is how many of its messages go to one subscriber alone today. ``whole[k]`` is the
    channel that has all of it. ``left[starts[k]:starts[k + 1]]`` are home brokers of those whom
    today's channels do not reach, ``homes`` with ``home_starts`` those of all.
    """

    cost: Floats
    lone: Longs
    whole: Ints
    starts: Longs
    left: Ints
    home_starts: Longs
    homes: Ints


def options_of(
    problem: DeliveryProblem, map: ChannelMap, domain: Ints, prices: LedgerPrices
) -> Options:
    """O(audiences × channels of a domain)."""
    segments, interest = problem.segments, problem.interest
    bits = map.member_bits(len(interest.subscribers))
    sizes = map.members.counts(map.channels)
    order = np.lexsort((np.arange(len(domain)), sizes, domain)).astype(np.int32)
    found = np.searchsorted(domain[order], np.arange(problem.domains + 1))
    return Options(*weigh(
        segments.row, segments.domain, segments.bounds, segments.people, problem.home,
        len(problem.brokers), map.assigned.starts(interest.size), map.assigned.right, domain,
        bits, sizes, order, found, prices.received, prices.sent, prices.unicast,
    ))  # fmt: skip


@compiled
def weigh(
    row: Longs,
    segment_domain: Ints,
    bounds: Longs,
    people: Ints,
    home: Ints,
    brokers: int,
    channel_starts: Longs,
    channels: Ints,
    channel_domain: Ints,
    members: Bitmap,
    sizes: Longs,
    order: Ints,
    first: Longs,
    received: float,
    sent: float,
    unicast: float,
) -> tuple[Floats, Longs, Ints, Longs, Ints, Longs, Ints]:
    count = len(row)
    cost = np.full((count, 3), np.inf)
    lone, whole = np.zeros(count, np.int64), np.full(count, NONE, np.int32)
    starts, home_starts = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    left, homes = np.empty(len(people), np.int32), np.empty(len(people), np.int32)
    seen_left, seen = np.full(brokers, -1), np.full(brokers, -1)
    lefts = all_homes = 0
    for k in range(count):
        z, who = segment_domain[k], people[bounds[k] : bounds[k + 1]]
        own = channels[channel_starts[row[k]] : channel_starts[row[k] + 1]]
        today = 0.0
        for j in own:
            if channel_domain[j] == z:
                today += sent + received * sizes[j]
        for subscriber in who:
            broker = home[subscriber]
            if seen[broker] != k:
                seen[broker], homes[all_homes] = k, broker
                all_homes += 1
            if not joined_any(members, own, subscriber):
                lone[k] += 1
                if seen_left[broker] != k:
                    seen_left[broker], left[lefts] = k, broker
                    lefts += 1
        cost[k, TODAY] = today + unicast * lone[k]
        cost[k, ALONE] = unicast * len(who)
        if z >= 0:
            for at in range(first[z], first[z + 1]):
                if sizes[order[at]] >= len(who) and has_all(members, order[at], who):
                    whole[k] = order[at]
                    cost[k, WHOLE] = sent + received * sizes[order[at]]
                    break
        starts[k + 1], home_starts[k + 1] = lefts, all_homes
    return cost, lone, whole, starts, left[:lefts], home_starts, homes[:all_homes]


@compiled
def has_all(members: Bitmap, channel: int, who: Ints) -> bool:
    """Whether all are members of the channel."""
    for subscriber in who:  # noqa: SIM110 - numba compiles no generator expressions
        if not has_bit(members, channel, subscriber):
            return False
    return True
