"""Who must join a channel when nothing goes by unicast."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.bitmap import Bitmap, bitmap_pairs, empty_bitmap, set_bit
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, Pairs, pairs


def one_channel_per_row(problem: InterestProblem, channel: Ints, channels: int) -> ChannelMap:
    """Row ``i`` goes to ``channel[i]``; everyone who wants something on a channel joins it."""
    assigned = pairs(np.arange(problem.size), channel)
    return ChannelMap(channels, assigned, interested_members(problem, assigned, channels), NO_PAIRS)


def interested_members(problem: InterestProblem, assigned: Pairs, channels: int) -> Pairs:
    """(channel, subscriber) for all who want at least one row on the channel.

    Time is linear in the audiences times the channels per row; memory is one bit per channel and
    subscriber.
    """
    bits = empty_bitmap(channels, len(problem.subscribers))
    join(bits, problem.indptr, problem.audience, assigned.left, assigned.right)
    return pairs(*bitmap_pairs(bits))


@compiled
def join(bits: Bitmap, indptr: Longs, audience: Ints, rows: Ints, channels: Ints) -> None:
    for i in range(len(rows)):
        for subscriber in audience[indptr[rows[i]] : indptr[rows[i] + 1]]:
            set_bit(bits, channels[i], subscriber)
