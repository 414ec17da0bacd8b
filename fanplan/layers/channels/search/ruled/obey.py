"""From any cover to one that obeys the rules, giving up as little as can be seen at once."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bools, Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.search.model.assign import channel_costs
from fanplan.layers.channels.search.model.cover import (
    Cover,
    channel_losses,
    close_channels,
    row_audience,
    row_channels,
    served_by,
    unserved_demand,
    unserved_pairs,
)
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.search.model.rules import (
    Rules,
    add_residual,
    channel_traffic,
    rows_on_channels,
)
from fanplan.layers.channels.search.ruled.clusters import cluster_users


def obey_limits(demand: Demand, cover: Cover, rules: Rules) -> Cover:
    """Users leave the channels worth least to them, rows those that are too full."""
    cover = leave_beyond(demand, cover, rules, rules.limit)
    if np.isinf(rules.cap):
        return cover
    keep = rows_that_fit(demand, cover, rules.cap, channel_costs(demand, cover.members))
    kept = np.concatenate(([0], np.cumsum(keep))).astype(np.int64)
    return Cover(cover.members, kept[cover.starts], cover.channels[keep])


def leave_beyond(demand: Demand, cover: Cover, rules: Rules, limit: Longs) -> Cover:
    """Each user stays on at most ``limit`` channels: those of most value to it as things are."""
    joined = cover.members.sum(axis=1, dtype=np.int64)
    if np.all(joined <= limit):
        return cover
    starts, rows = rows_on_channels(cover, cover.members.shape[1])
    value = member_values(demand, cover, rules, starts, rows)
    members = cover.members.copy()
    for user in np.flatnonzero(joined > limit):
        mine = np.flatnonzero(members[user])
        best_first = mine[np.argsort(-value[user, mine], kind="stable")]
        members[user, best_first[limit[user] :]] = 0
    return cover._replace(members=members)


@compiled
def member_values(demand: Demand, cover: Cover, rules: Rules, starts: Longs, rows: Longs) -> Floats:
    """Users × channels: what a user's membership saves, if it is the only one to change."""
    users, channels = cover.members.shape
    value = np.zeros((users, channels))
    wanted, needed = np.zeros(users), np.zeros(users, dtype=np.uint8)
    for channel in range(channels):
        mine = rows[starts[channel] : starts[channel + 1]]
        traffic = add_residual(demand, cover, rules, channel, mine, wanted, needed)
        value[:, channel] = wanted - demand.w1 * traffic
        wanted[:] = 0.0
    return value


@compiled
def rows_that_fit(demand: Demand, cover: Cover, cap: float, costs: Floats) -> Bools:
    """Which (row, channel) pairs stay when channels above the cap shed the rows that gain least."""
    rows = len(demand.rate)
    gain = np.empty(len(cover.channels))
    row_of = np.empty(len(cover.channels), dtype=np.int64)
    for row in range(rows):
        channels = row_channels(cover, row)
        for k in range(len(channels)):
            alone = 0
            for user in row_audience(demand, row):
                if cover.members[user, channels[k]]:
                    alone += served_by(cover.members, user, channels) == 1
            place = cover.starts[row] + k
            gain[place] = demand.price[row] * alone - costs[channels[k]]
            row_of[place] = row
    keep = np.zeros(len(gain), dtype=np.bool_)
    load = np.zeros(len(costs))
    for place in np.argsort(-gain, kind="mergesort"):
        channel, rate = cover.channels[place], demand.rate[row_of[place]]
        if load[channel] + rate <= cap:
            load[channel] += rate
            keep[place] = True
    return keep


def is_served(demand: Demand, cover: Cover, hard: Bytes) -> bool:
    """Whether no hard row leaves anybody out."""
    rows, _ = unserved_pairs(demand, cover)
    return not hard[rows].any()


def serve_by_packing(demand: Demand, cover: Cover, rules: Rules) -> Cover | None:
    """Serve hard rows by one channel each that all their audience joins; None if they do not fit.

    Rows with most traffic choose first: their channel if they have one, else the one on which
    they add least, among those with room for the row and for which every new member has room.
    """
    members = cover.members.copy()
    own = np.where(np.diff(cover.starts) > 0, first_channels(cover), -1).astype(np.int32)
    own[rules.hard == 0] = -1
    traffic = channel_traffic(demand, hard_dropped(cover, rules.hard), members.shape[1])
    order = np.argsort(-demand.rate, kind="stable")
    order = order[(rules.hard[order] != 0) & (demand.audience_sizes[order] > 0)]
    home = np.full(demand.size, -1, dtype=np.int32)
    if not pack_rows(demand, rules, order, own, members, traffic, home):
        return None
    rest = hard_dropped(cover, rules.hard)
    return merge_covers(members, rest, home)


def first_channels(cover: Cover) -> Ints:
    """The first channel of each row; arbitrary for a row without one."""
    places = np.minimum(cover.starts[:-1], max(len(cover.channels) - 1, 0))
    return cover.channels[places] if len(cover.channels) else np.zeros(len(places), np.int32)


def hard_dropped(cover: Cover, hard: Bytes) -> Cover:
    """The cover without the channels of hard rows."""
    keep = np.repeat(hard == 0, np.diff(cover.starts))
    kept = np.concatenate(([0], np.cumsum(keep))).astype(np.int64)
    return Cover(cover.members, kept[cover.starts], cover.channels[keep])


def merge_covers(members: Bytes, cover: Cover, home: Ints) -> Cover:
    """The cover with one channel more for each row that has a home; such rows had none."""
    added = np.diff(cover.starts) + (home >= 0)
    channels = np.repeat(home, added)
    channels[channels < 0] = cover.channels
    return Cover(members, np.concatenate(([0], np.cumsum(added))).astype(np.int64), channels)


@compiled
def pack_rows(
    demand: Demand,
    rules: Rules,
    order: Longs,
    own: Ints,
    members: Bytes,
    traffic: Floats,
    home: Ints,
) -> bool:
    """Give each row of ``order`` a channel, in place; false at the first that fits nowhere."""
    joined = np.zeros(len(members), dtype=np.int64)
    size = np.zeros(len(traffic), dtype=np.int64)
    for user in range(len(members)):
        for channel in range(len(traffic)):
            joined[user] += members[user, channel]
            size[channel] += members[user, channel]
    for row in order:
        audience = row_audience(demand, row)
        best, least = -1, np.inf
        for channel in range(len(traffic)):
            if traffic[channel] + demand.rate[row] <= rules.cap:
                cost = joining_cost(demand, rules, row, channel, members, traffic, joined, size)
                if cost < least or (channel == own[row] and cost < np.inf):
                    best, least = channel, -np.inf if channel == own[row] else cost
        if best < 0:
            return False
        home[row] = best
        traffic[best] += demand.rate[row]
        for user in audience:
            joined[user] += 1 - members[user, best]
            size[best] += 1 - members[user, best]
            members[user, best] = 1
    return True


@compiled
def joining_cost(
    demand: Demand,
    rules: Rules,
    row: int,
    channel: int,
    members: Bytes,
    traffic: Floats,
    joined: Longs,
    size: Longs,
) -> float:
    """What a row and its audience add to a channel's receptions; infinite if a user is full."""
    new = 0
    for user in row_audience(demand, row):
        if not members[user, channel]:
            if joined[user] >= rules.limit[user]:
                return np.inf
            new += 1
    return float(new * traffic[channel] + demand.rate[row] * (size[channel] + new))


def worth_least(demand: Demand, cover: Cover, count: int) -> Longs:
    """The channels that would be missed least, ascending."""
    losses = channel_losses(demand, cover, channel_costs(demand, cover.members))
    return np.sort(np.argsort(losses, kind="stable")[:count])


def serve_by_clusters(demand: Demand, cover: Cover, rules: Rules, freed: Longs) -> Cover | None:
    """Serve hard rows by user clusters on the freed channels; None if they do not fit.

    A user with unserved demand joins one cluster, so it keeps one channel less than its limit.
    """
    cover = obey_limits(demand, close_channels(cover, freed), rules)
    rest = unserved_demand(demand, cover, rules.hard)
    needs = np.diff(rest.user_indptr) > 0
    if np.any(rules.limit[needs] < 1):
        return None
    cover = leave_beyond(demand, cover, rules, np.where(needs, rules.limit - 1, rules.limit))
    rest = unserved_demand(demand, cover, rules.hard)
    group = cluster_users(rest, len(freed), rules.cap)
    if np.any(group[needs] < 0):
        return None
    return add_clusters(cover, rest, freed, group)


def add_clusters(cover: Cover, rest: Demand, freed: Longs, group: Ints) -> Cover:
    """Each group joins its freed channel, which carries all that one of the group still needs."""
    members = cover.members.copy()
    grouped = np.flatnonzero(group >= 0)
    members[grouped, freed[group[grouped]]] = 1
    rows = np.repeat(np.arange(rest.size), np.diff(rest.indptr))
    old_rows = np.repeat(np.arange(rest.size), np.diff(cover.starts))
    width = members.shape[1]
    keys = np.unique(
        np.concatenate(
            (rows * width + freed[group[rest.audience]], old_rows * width + cover.channels)
        )
    )
    counts = np.bincount(keys // width, minlength=rest.size)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Cover(members, starts, (keys % width).astype(np.int32))
