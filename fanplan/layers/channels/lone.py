"""A channel has at least two members: what fewer would get from it is unicast, whatever its name.

So a message that one subscriber alone wants has no other way than unicast, and no limit on unicast
counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Longs
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import completed, total_messages
from fanplan.layers.channels.map import (
    ChannelMap,
    MapPairs,
    interested_members,
    map_pairs,
)
from fanplan.layers.channels.method_params import MethodParams

LEAST = 2
"""Members of a channel, and subscribers who must want a row for unicast of it to count."""


class Kept(NamedTuple):
    """What must stay as it is in a map that is tidied.

    Channels of ``pinned`` rows are the user's own wish. ``limit`` is the most unicast. ``numbers``
    of channels stay if changes are counted, and equal channels apart if each has a full load.
    ``lone`` channels are as good as others.
    """

    pinned: Sequence[int] = ()
    limit: float | None = None
    numbers: bool = False
    apart: bool = False
    lone: bool = False


def kept_by(params: MethodParams) -> Kept:
    """What parameters of a method say about it; most methods have none of these."""
    limit = 0.0 if getattr(params, "multicast_only", False) else None
    return Kept(
        getattr(params, "pinned", ()),
        getattr(params, "unicast_limit", limit),
        getattr(params, "start", None) is not None,
        getattr(params, "max_channel_rate", None) is not None,
        getattr(params, "lone", False),
    )


def counted_fraction(problem: InterestProblem, map: ChannelMap) -> float:
    """Share of the messages sent that go by unicast although several subscribers want them."""
    unicast = map.unicast.counts(problem.size)
    sent = total_messages(problem.messages, unicast + map.assigned.counts(problem.size))
    counted = total_messages(problem.messages, unicast * (problem.audience_sizes >= LEAST))
    return counted / sent if sent > 0 else 0.0


def tidied(problem: InterestProblem, map: ChannelMap, kept: Kept) -> ChannelMap:
    """The map with channels that two or more share, each set of members once, and no empty ones."""
    if not (kept.apart or kept.numbers):
        map = with_members_once(problem, map)
    map = map if kept.lone else without_lone(problem, map, kept)
    return map if kept.numbers else renumbered(map)


def with_members_once(problem: InterestProblem, map: ChannelMap) -> ChannelMap:
    """Channels with the same members become one, the first of them."""
    starts = map.members.starts(map.channels)
    lists = [map.members.right[first:end].tobytes() for first, end in pairwise(starts)]
    number: dict[bytes, int] = {}
    one = np.array([number.setdefault(own, j) for j, own in enumerate(lists)], np.int32)
    if len(number) == map.channels:
        return map
    assigned = map_pairs(map.assigned.left, one[map.assigned.right])
    return completed(problem, map.channels, assigned, map.members)


def without_lone(problem: InterestProblem, map: ChannelMap, kept: Kept) -> ChannelMap:
    """The map in which nobody is alone on a channel.

    What such a channel carried goes by unicast. If that were more than is allowed, all who want
    something on it join again, as in the first step of Bickson et al. (2010).
    """
    lone = lone_channels(map, kept.pinned)
    if not lone.any():
        return map
    closed = without_channels(problem, map, lone)
    if kept.limit is None or counted_fraction(problem, closed) <= kept.limit:
        return closed
    wide = joined_again(problem, map, lone)
    return without_channels(problem, wide, lone_channels(wide, kept.pinned))


def lone_channels(map: ChannelMap, pinned: Sequence[int]) -> Bools:
    """Channels with fewer than two members, but for those that carry a pinned row."""
    lone: Bools = map.members.counts(map.channels) < LEAST
    asked = map.assigned.right[np.isin(map.assigned.left, pinned)]
    lone[asked] = False
    return lone


def without_channels(problem: InterestProblem, map: ChannelMap, gone: Bools) -> ChannelMap:
    """The map without rows and members of some channels, whose numbers stay unused."""
    assigned = some(map.assigned, ~gone[map.assigned.right])
    members = some(map.members, ~gone[map.members.left])
    return completed(problem, map.channels, assigned, members)


def some(pairs: MapPairs, there: Bools) -> MapPairs:
    return MapPairs(pairs.left[there], pairs.right[there])


def joined_again(problem: InterestProblem, map: ChannelMap, lone: Bools) -> ChannelMap:
    """The map with everybody who wants something on some channels on them."""
    wanting = interested_members(
        problem, some(map.assigned, lone[map.assigned.right]), map.channels
    )
    channel = np.append(map.members.left, wanting.left)
    joined = map_pairs(channel, np.append(map.members.right, wanting.right))
    return completed(problem, map.channels, map.assigned, joined)


def renumbered(map: ChannelMap) -> ChannelMap:
    """The map without channels that carry nothing; the others are numbered from 0."""
    used = np.unique(map.assigned.right)
    if len(used) == map.channels:
        return map
    number: Longs = np.full(map.channels, -1)
    number[used] = np.arange(len(used))
    members = some(map.members, number[map.members.left] >= 0)
    return ChannelMap(
        len(used),
        map_pairs(map.assigned.left, number[map.assigned.right]),
        map_pairs(number[members.left], members.right),
        map.unicast,
    )
