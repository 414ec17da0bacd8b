"""The ledger of a channel map, computed from the interest problem alone."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs, Words
from fanplan.core.bits import bits_of_pairs, has_bit
from fanplan.core.kernels import compiled
from fanplan.core.ledger import Ledger, cost
from fanplan.core.prices import Weights
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap, MapPairs, map_pairs


def analytic_ledger(problem: InterestProblem, map: ChannelMap) -> Ledger:
    """What the map costs over the window; exact when totals are whole numbers.

    Time is linear in the audiences times the channels per row, plus the map; memory is the map
    and one bit per channel and subscriber.
    """
    channels = map.assigned.counts(problem.size)
    unicast = map.unicast.counts(problem.size)
    received = received_copies(problem, map) + unicast
    reached = reached_subscribers(problem, map)
    whole = reached == problem.audience_sizes
    wanted = float(np.where(whole, problem.deliveries, problem.messages * reached).sum())
    return Ledger(
        sent_multicast=total_messages(problem.messages, channels),
        sent_unicast=total_messages(problem.messages, unicast),
        received_wanted=wanted,
        received_unwanted=total_messages(problem.messages, received) - wanted,
        missed=total_messages(problem.messages, problem.audience_sizes - reached),
        sent_bytes=total_messages(problem.bytes, channels + unicast),
        received_bytes=total_messages(problem.bytes, received),
    )


def map_cost(problem: InterestProblem, map: ChannelMap, weights: Weights) -> float:
    """C′ of Eq. 1, counted from scratch."""
    return cost(analytic_ledger(problem, map), weights)


def perfect(problem: InterestProblem, weights: Weights) -> float:
    """Cost of perfect multicast: each message sent once and received by those who want it."""
    receptions = float(problem.deliveries.sum())
    return weights.w1 * receptions + weights.w2 * float(problem.messages.sum())


def total_messages(amount: Floats, times: Longs) -> float:
    return float(np.dot(amount, times.astype(np.float64)))


def received_copies(problem: InterestProblem, map: ChannelMap) -> Longs:
    """How many subscribers each row reaches through channels, counting each copy."""
    sizes = map.members.counts(map.channels)
    copies = np.zeros(problem.size, dtype=np.int64)
    np.add.at(copies, map.assigned.left, sizes[map.assigned.right])
    return copies


def reached_subscribers(problem: InterestProblem, map: ChannelMap) -> Longs:
    """How many of each row's audience get it at least once."""
    return count_reached(
        problem.indptr,
        problem.audience,
        map.assigned.starts(problem.size),
        map.assigned.right,
        map.member_bits(len(problem.subscribers)),
        map.unicast.starts(problem.size),
        map.unicast.right,
    )


@compiled
def count_reached(
    indptr: Longs,
    audience: Ints,
    channel_starts: Longs,
    channels: Ints,
    members: Words,
    unicast_starts: Longs,
    unicast: Ints,
) -> Longs:
    """Per row, walk its audience and its unicast list together; both ascend."""
    reached = np.zeros(len(indptr) - 1, dtype=np.int64)
    for row in range(len(indptr) - 1):
        u, end = unicast_starts[row], unicast_starts[row + 1]
        row_channels = channels[channel_starts[row] : channel_starts[row + 1]]
        for subscriber in audience[indptr[row] : indptr[row + 1]]:
            while u < end and unicast[u] < subscriber:
                u += 1
            by_unicast = u < end and unicast[u] == subscriber
            if by_unicast or joined_any(members, row_channels, subscriber):
                reached[row] += 1
    return reached


def completed(
    problem: InterestProblem, channels: int, assigned: MapPairs, members: MapPairs
) -> ChannelMap:
    """The map in which all who are not reached by a channel get unicast."""
    bits = bits_of_pairs(members.left, members.right, channels, len(problem.subscribers))
    rest = reached_by_none(
        problem.indptr, problem.audience, assigned.starts(problem.size), assigned.right, bits
    )
    row = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    return ChannelMap(channels, assigned, members, map_pairs(row[rest], problem.audience[rest]))


@compiled
def reached_by_none(
    indptr: Longs, audience: Ints, starts: Longs, channels: Ints, members: Words
) -> Bools:
    """For each (row, interested subscriber) whether no channel of the row has the subscriber."""
    rest = np.zeros(len(audience), np.bool_)
    for row in range(len(indptr) - 1):
        own = channels[starts[row] : starts[row + 1]]
        for k in range(indptr[row], indptr[row + 1]):
            rest[k] = not joined_any(members, own, audience[k])
    return rest


@compiled
def joined_any(members: Words, channels: Ints, subscriber: int) -> bool:
    """Whether the subscriber is a member of any of the channels."""
    for channel in channels:  # noqa: SIM110 - numba compiles no generator expressions
        if has_bit(members[channel], subscriber):
            return True
    return False
