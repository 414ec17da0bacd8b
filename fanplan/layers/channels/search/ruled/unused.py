"""Channels that nobody uses yet, opened for single rows with few changes.

Replanning with more channels than before, the searches open a channel with all that it attracts,
which is often more than the changes that are allowed. Here a channel starts with one row and
whoever gets that row by unicast, and takes further rows one by one.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.layers.channels.search.model.cover import Cover, unserved_pairs
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.search.model.rules import Rules


def use_unused(demand: Demand, cover: Cover, rules: Rules, changes: int) -> Cover:
    """The cover with unused channels opened as long as that pays and changes are left.

    A channel that ``rules.start`` used stays closed: opening it again is not as cheap as it looks.
    """
    used = cover.members.any(axis=0) | rules.start.members.any(axis=0)
    for channel in np.flatnonzero(~used):
        opened = open_channel(demand, cover, rules, int(channel), changes)
        if opened is None:
            break
        cover, spent = opened
        changes -= spent
    return cover


def open_channel(
    demand: Demand, cover: Cover, rules: Rules, channel: int, changes: int
) -> tuple[Cover, int] | None:
    """A channel for the row that gains most, and for others that its members want."""
    rows, users = reachable(demand, cover, rules)
    count = np.bincount(rows, minlength=demand.size)
    gain = row_gains(demand, count, count) - rules.change * (count + 1)
    gain[(count + 1 > changes) | (demand.rate > rules.cap)] = -np.inf
    first = int(np.argmax(gain))
    if not gain[first] > 0:
        return None
    joining = users[rows == first]
    wanted = np.bincount(rows[np.isin(users, joining)], minlength=demand.size)
    more = row_gains(demand, wanted, np.full(demand.size, len(joining))) - rules.change
    more[first] = np.inf
    chosen = affordable(demand, more, rules.cap, changes - len(joining))
    return with_channel(cover, channel, joining, chosen), len(joining) + len(chosen)


def reachable(demand: Demand, cover: Cover, rules: Rules) -> tuple[Ints, Ints]:
    """(row, user) pairs that go by unicast and could go by one channel more."""
    rows, users = unserved_pairs(demand, cover)
    room = cover.members.sum(axis=1, dtype=np.int64) < rules.limit
    wide = np.diff(cover.starts) < rules.width
    able = room[users] & wide[rows]
    return rows[able], users[able]


def row_gains(demand: Demand, served: Longs, members: Longs) -> Floats:
    """What rows save on a channel more, with so many members of whom so many lack them."""
    return demand.rate * (demand.price * served - demand.w2 - demand.w1 * members)


def affordable(demand: Demand, gain: Floats, cap: float, most: int) -> Longs:
    """The rows that gain most, at most so many and with no more messages than the cap."""
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 0][: max(most, 0)]
    return np.sort(order[np.cumsum(demand.rate[order]) <= cap])


def with_channel(cover: Cover, channel: int, users: Ints, rows: Longs) -> Cover:
    """The cover with these members and rows on one channel more."""
    members = cover.members.copy()
    members[users, channel] = 1
    size = len(cover.starts) - 1
    row = np.concatenate((np.repeat(np.arange(size), np.diff(cover.starts)), rows))
    channels = np.concatenate((cover.channels, np.full(len(rows), channel, dtype=np.int32)))
    order = np.lexsort((channels, row))
    starts = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=size)))).astype(np.int64)
    return Cover(members, starts, channels[order])
