"""From any cover to one that obeys the rules, giving up as little as can be seen at once.

If limits cannot be met: which one binds, and what would do instead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fanplan.core.arrays import Bools, Bytes, Floats, Ints, Longs
from fanplan.core.errors import InfeasibleError, Problem
from fanplan.core.kernels import compiled
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.search.model.assign import channel_costs
from fanplan.layers.channels.search.model.cover import (
    Cover,
    channel_losses,
    close_channels,
    empty_cover,
    keep_places,
    keep_rows,
    row_channels,
    served_by,
    unserved_demand,
    unserved_pairs,
    with_places,
)
from fanplan.layers.channels.search.model.demand import Demand, row_audience, transpose
from fanplan.layers.channels.search.model.rules import CoverRules, add_residual, channel_traffic
from fanplan.layers.channels.search.ruled.clusters import cluster_users

BISECTIONS = 40
CLOSE = 1e-6
"""A relaxed rate is found to this relative width."""


def obey_limits(demand: Demand, cover: Cover, rules: CoverRules) -> Cover:
    """Users leave the channels worth least to them, rows those that are too full."""
    cover = leave_beyond(demand, cover, rules, rules.limit)
    if np.isinf(rules.cap):
        return cover
    keep = rows_that_fit(demand, cover, rules.cap, channel_costs(demand, cover.members))
    return keep_places(cover, keep)


def leave_beyond(demand: Demand, cover: Cover, rules: CoverRules, limit: Longs) -> Cover:
    """Each user stays on at most ``limit`` channels: those of most value to it as things are."""
    joined = cover.members.sum(axis=1, dtype=np.int64)
    if np.all(joined <= limit):
        return cover
    starts, rows = transpose(cover.starts, cover.channels, cover.members.shape[1])
    value = member_values(demand, cover, rules, starts, rows)
    members = cover.members.copy()
    for user in np.flatnonzero(joined > limit):
        mine = np.flatnonzero(members[user])
        best_first = mine[np.argsort(-value[user, mine], kind="stable")]
        members[user, best_first[limit[user] :]] = 0
    return cover._replace(members=members)


@compiled
def member_values(
    demand: Demand, cover: Cover, rules: CoverRules, starts: Longs, rows: Ints
) -> Floats:
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
    # A stable sort: of rows that gain alike the first ones stay, on every machine.
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


def serve_by_packing(demand: Demand, cover: Cover, rules: CoverRules) -> Cover | None:
    """Serve hard rows by one channel each that all their audience joins; None if they do not fit.

    Rows with most traffic choose first: their channel if they have one, else the one on which
    they add least, among those with room for the row and for which every new member has room.
    """
    members = cover.members.copy()
    own = np.where(np.diff(cover.starts) > 0, first_channels(cover), -1).astype(np.int32)
    own[rules.hard == 0] = -1
    rest = keep_rows(cover, rules.hard == 0)
    traffic = channel_traffic(demand, rest)
    order = np.argsort(-demand.rate, kind="stable")
    order = order[(rules.hard[order] != 0) & (demand.audience_sizes[order] > 0)]
    home = np.full(demand.size, -1, dtype=np.int32)
    if not pack_rows(demand, rules, order, own, members, traffic, home):
        return None
    placed = np.flatnonzero(home >= 0)
    return with_places(rest, members, placed, home[placed])


def first_channels(cover: Cover) -> Ints:
    """The first channel of each row; arbitrary for a row without one."""
    places = np.minimum(cover.starts[:-1], max(len(cover.channels) - 1, 0))
    return cover.channels[places] if len(cover.channels) else np.zeros(len(places), np.int32)


@compiled
def pack_rows(
    demand: Demand,
    rules: CoverRules,
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
    rules: CoverRules,
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


def serve_by_clusters(
    demand: Demand, cover: Cover, rules: CoverRules, freed: Longs
) -> Cover | None:
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
    return with_places(cover, members, rows, freed[group[rest.audience]])


def explain_infeasible(
    problem: InterestProblem, demand: Demand, rules: CoverRules, channels: int
) -> InfeasibleError:
    """Why hard rows could not all be served, with the smallest relaxation that was found to do."""
    excluded = np.flatnonzero((rules.limit < 1) & needs_multicast(demand, rules))
    if len(excluded):
        return excluded_subscriber(problem, int(excluded[0]))
    if not np.isinf(rules.cap) and serves(demand, rules._replace(cap=np.inf), channels):
        return crowded_channels(problem, demand, rules, channels)
    return too_few_channels_each(demand, rules, channels)


def needs_multicast(demand: Demand, rules: CoverRules) -> np.ndarray:
    """Which users want a hard row."""
    wants = np.zeros(demand.users, dtype=bool)
    wants[demand.audience[np.repeat(rules.hard != 0, demand.audience_sizes)]] = True
    return wants


def excluded_subscriber(problem: InterestProblem, user: int) -> InfeasibleError:
    name = problem.subscribers[user].as_py()
    what = f"subscriber {name!r} may join no channel but wants a row that must go by multicast"
    remedy = "Allow 1 channel for it, or allow unicast for its rows"
    limit = "max_channels_per_subscriber"
    return InfeasibleError(limit, 1, Problem(limit, what, remedy))


def crowded_channels(
    problem: InterestProblem, demand: Demand, rules: CoverRules, channels: int
) -> InfeasibleError:
    """The rate per channel binds: find the smallest that does, from what is needed at least."""
    least = least_cap(demand, rules, channels)
    enough = smallest(
        least,
        float(demand.rate.sum()) * (1 + CLOSE),
        lambda cap: serves(demand, rules._replace(cap=cap), channels),
    )
    proven = "no plan can do with less than" if rules.cap < least else "at least needed:"
    given, low, high = (rate / problem.seconds for rate in (rules.cap, least, enough))
    what = (
        f"{given:g} messages/s on each of {channels} channels do not carry the rows that must "
        f"go by multicast ({proven} {low:g})"
    )
    remedy = f"Allow {high:g}, or more channels, or unicast for some rows"
    return InfeasibleError("max_channel_rate", enough, Problem("max_channel_rate", what, remedy))


def least_cap(demand: Demand, rules: CoverRules, channels: int) -> float:
    """A rate per channel that no plan can undercut: by a row, all rows, or a user's rows."""
    hard = rules.hard != 0
    rates = demand.rate[hard & (demand.audience_sizes > 0)]
    wanted = np.bincount(
        demand.audience, np.repeat(demand.rate * hard, demand.audience_sizes), demand.users
    )
    per_user = wanted / np.maximum(np.minimum(rules.limit, channels), 1)
    return float(max(rates.max(initial=0), rates.sum() / channels, per_user.max(initial=0)))


def smallest(low: float, high: float, works: Callable[[float], bool]) -> float:
    """The smallest number from low to high that works, by bisection; high is known to work."""
    if works(low):
        return low
    for _ in range(BISECTIONS):
        if high - low <= CLOSE * high:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def too_few_channels_each(demand: Demand, rules: CoverRules, channels: int) -> InfeasibleError:
    """The number of channels a user may join binds: raise it for all by as few as will do."""
    limit = "max_channels_per_subscriber"
    for more in range(1, channels + 1):
        raised = np.minimum(rules.limit + more, channels)
        if serves(demand, rules._replace(limit=raised), channels):
            what = "the rows that must go by multicast need more channels per subscriber"
            remedy = f"Allow {more} more for each subscriber, or unicast for some rows"
            return InfeasibleError(limit, more, Problem(limit, what, remedy))
    what = f"{channels} channels of at most {rules.cap:g} messages do not carry the pinned rows"
    return InfeasibleError(
        "channels", channels, Problem("channels", what, "Allow more channels, or pin fewer rows")
    )


def serves(demand: Demand, rules: CoverRules, channels: int) -> bool:
    """Whether one of the two constructions serves all hard rows under the rules."""
    nothing = empty_cover(demand.size, demand.users, channels)
    if serve_by_packing(demand, nothing, rules) is not None:
        return True
    every = np.arange(channels)
    return rules.width > 1 and serve_by_clusters(demand, nothing, rules, every) is not None


def too_much_unicast(limit: float, least: float) -> InfeasibleError:
    """The unicast limit cannot be met beside the other limits."""
    what = (
        f"at most {limit:g} of the messages sent may go by unicast, but under the other limits no "
        f"plan was found with less than {least:g}"
    )
    remedy = f"Allow {least:g}, or relax limits on channels, subscribers or rows"
    return InfeasibleError("unicast_limit", least, Problem("unicast_limit", what, remedy))


def too_many_changes(allowed: int, needed: int) -> InfeasibleError:
    """The other limits force more changes than allowed."""
    what = (
        f"{allowed} changes are allowed, but no plan under the other limits was found with fewer "
        f"than {needed}"
    )
    remedy = f"Allow {needed}, or relax the other limits"
    return InfeasibleError("max_changes", needed, Problem("max_changes", what, remedy))
