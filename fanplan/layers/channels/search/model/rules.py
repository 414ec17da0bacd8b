"""What a cover must obey, and the two steps that improve it without breaking any of it.

Both steps start from a cover that obeys and never leave it: a step that would break a rule is not
taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats, Ints, Longs
from fanplan.core.kernels import bare, compiled
from fanplan.core.stop import Stop, never
from fanplan.layers.channels.search.effort import SETTLED
from fanplan.layers.channels.search.model.assign import (
    Offer,
    channel_costs,
    count_members,
    in_parts,
    offered,
    worth_threads,
)
from fanplan.layers.channels.search.model.cover import (
    Cover,
    copy_few,
    cover_gain,
    drop_useless,
    empty_cover,
    greedy_cover,
    pair_keys,
    row_channels,
    served_by,
    total_cover_gain,
)
from fanplan.layers.channels.search.model.demand import Demand, row_audience, transpose

CHUNK_CELLS = 4_000_000
"""Rows × channels that are worked on at a time: bounds the memory of their lists."""


class CoverRules(NamedTuple):
    """Limits, and what a change against an earlier cover costs."""

    hard: Bytes
    """Per row: nobody of its audience may be left to unicast."""
    limit: Longs
    """Per user: the most channels to join."""
    cap: float
    """The most messages on a channel over the window."""
    width: int
    """The most channels of a row."""
    change: float
    """The price of each (row, channel) and (channel, user) pair that differs from ``start``."""
    start: Cover
    """The cover that changes are counted against."""


def no_rules(demand: Demand, channels: int) -> CoverRules:
    return CoverRules(
        np.zeros(demand.size, dtype=np.uint8),
        np.full(demand.users, channels),
        np.inf,
        channels,
        0.0,
        empty_cover(demand.size, demand.users, channels),
    )


def bounded(rules: CoverRules, channels: int) -> bool:
    """Whether there is a limit on memberships or on the rate of a channel."""
    return bool(np.isfinite(rules.cap)) or bool((rules.limit < channels).any())


def objective(demand: Demand, cover: Cover, rules: CoverRules) -> float:
    """What is maximised: the gain less the price of the changes."""
    gain = total_cover_gain(demand, cover)
    return gain - rules.change * count_changes(rules.start, cover) if rules.change else gain


def count_changes(old: Cover, new: Cover) -> int:
    """How many (row, channel) and (channel, user) pairs are in one of two covers alone."""
    moved = len(np.setxor1d(pair_keys(old), pair_keys(new), assume_unique=True))
    return moved + int((old.members != new.members).sum())


def improve_cover(
    demand: Demand, cover: Cover, rules: CoverRules, passes: int, stop: Stop = never
) -> Cover:
    """Alternate both steps until settled, stopped or for a number of passes; it never gets worse.

    Settled: a pass adds little beside the cost of perfect multicast, a scale for whatever prices.

    ``stop`` hears nothing new: what a cover costs depends on who asks.
    """
    value = objective(demand, cover, rules)
    for _ in range(passes):
        if stop(math.inf):
            break
        cover = rejoin(demand, recover(demand, cover, rules), rules)
        before, value = value, objective(demand, cover, rules)
        if value - before <= SETTLED * demand.perfect:
            break
    return cover


def recover(demand: Demand, cover: Cover, rules: CoverRules) -> Cover:
    """X-step: better channels for every row where the greedy cover finds them.

    Parallel unless channels have a cap or rows are few. O(audiences × channels) byte additions.
    """
    costs = channel_costs(demand, cover.members)
    load = channel_traffic(demand, cover)
    chunk = max(1, CHUNK_CELLS // len(costs))
    counts, lists = [np.zeros(1, dtype=np.int64)], []
    for begin in range(0, demand.size, chunk):
        count, found = recover_chunk(
            demand, cover, rules, costs, load, begin, min(chunk, demand.size - begin)
        )
        counts.append(count)
        lists.append(found[np.arange(len(costs)) < count[:, None]])
    starts = np.cumsum(np.concatenate(counts))
    return Cover(cover.members, starts, np.concatenate(lists) if lists else cover.channels)


def recover_chunk(
    demand: Demand,
    cover: Cover,
    rules: CoverRules,
    costs: Floats,
    load: Floats,
    begin: int,
    size: int,
) -> tuple[Longs, Ints]:
    """So many rows from one on: how many channels each has, and which."""
    count, found = np.zeros(size, dtype=np.int64), np.empty((size, len(costs)), dtype=np.int32)
    # Without a cap loads do not matter, and rows decide on their own.
    alone = bool(np.isinf(rules.cap)) and worth_threads(demand, cover.members)

    def recover_part(first: int, end: int) -> None:
        own = load.copy() if alone else load
        part = count[first:end], found[first:end]
        recover_in_turn(demand, cover, rules, costs, own, begin + first, *part)

    in_parts(recover_part, size, alone)
    return count, found


def channel_traffic(demand: Demand, cover: Cover) -> Floats:
    """Messages on each channel over the window."""
    amounts = np.repeat(demand.rate, np.diff(cover.starts))
    return np.bincount(cover.channels, amounts, cover.members.shape[1]).astype(np.float64)


@compiled
def recover_in_turn(
    demand: Demand,
    cover: Cover,
    rules: CoverRules,
    costs: Floats,
    load: Floats,
    begin: int,
    count: Longs,
    found: Ints,
) -> None:
    """Rows decide one after another, and each takes its room before the next one looks."""
    offer = offered(demand, cover.members, np.empty(len(costs)))
    for place in range(len(count)):
        row = begin + place
        row_costs(demand, cover, rules, costs, load, row, offer.costs)
        size = recover_row(demand, cover, rules, row, offer, found[place])
        count[place] = size
        for channel in row_channels(cover, row):
            load[channel] -= demand.rate[row]
        for channel in found[place, :size]:
            load[channel] += demand.rate[row]


@bare
def row_costs(
    demand: Demand,
    cover: Cover,
    rules: CoverRules,
    costs: Floats,
    load: Floats,
    row: int,
    own: Floats,
) -> None:
    """What a message of the row costs on each channel: changes included, infinite without room."""
    rate = demand.rate[row]
    # Changes are paid once, messages as often as they come: hence the division.
    change = rules.change / rate if rules.change > 0.0 and rate > 0.0 else 0.0
    for channel in range(len(own)):
        own[channel] = costs[channel] + change
    if change > 0.0:
        for channel in row_channels(rules.start, row):
            own[channel] -= 2.0 * rules.change / rate
    if not np.isinf(rules.cap):
        now = row_channels(cover, row)
        for channel in range(len(own)):
            if load[channel] + rate > rules.cap and channel not in now:
                own[channel] = np.inf


@bare
def recover_row(
    demand: Demand, cover: Cover, rules: CoverRules, row: int, offer: Offer, found: Ints
) -> int:
    """Put a row's channels into ``found``, ascending; how many: the best of what is known.

    Known are what the row has, the greedy cover by gain, and for a hard row that by cost per
    user served; the first of equals is taken.
    """
    audience, now = row_audience(demand, row), row_channels(cover, row)
    members, costs, price = offer.members, offer.costs, demand.price[row]
    other = offer.chosen[: rules.width]
    size, gain = 0, -np.inf
    if len(now) <= rules.width:
        # Most rows stay where they are, and nobody need know what they gain there.
        size, gain = len(now), np.nan
        copy_few(now, found)
    for hard in range(1 + rules.hard[row]):
        count_members(demand, offer, row)
        count = greedy_cover(offer, audience, price, hard, other)
        if count > 1:
            count = drop_useless(offer, audience, price, rules.hard[row], other, count)
        if same_channels(found[:size], other[:count]):
            continue
        if np.isnan(gain):
            gain = cover_gain(audience, members, costs, price, found[:size])
        after = cover_gain(audience, members, costs, price, other[:count])
        if after > gain:
            size, gain = count, after
            copy_few(other[:size], found)
    sort_few(found, size)
    return size


@bare
def same_channels(one: Ints, other: Ints) -> bool:
    """Whether two lists have the same channels, in whatever order."""
    same = len(one) == len(other)
    for channel in other:
        same = same and channel in one
    return same


@bare
def sort_few(values: Ints, count: int) -> None:
    """Sort the first few values by insertion: compiled much faster than a general sort."""
    for i in range(1, count):
        value, place = values[i], i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


def rejoin(demand: Demand, cover: Cover, rules: CoverRules) -> Cover:
    """Y-step: better members, one channel after another, by the demand no other channel serves.

    O(audiences × channels per row + users × channels).
    """
    members = cover.members.copy()
    after = cover._replace(members=members)
    starts, rows = transpose(cover.starts, cover.channels, members.shape[1])
    rejoin_channels(demand, after, rules, starts, rows, members.sum(axis=1, dtype=np.int64))
    return after


@compiled
def rejoin_channels(
    demand: Demand, cover: Cover, rules: CoverRules, starts: Longs, rows: Ints, joined: Longs
) -> None:
    wanted = np.zeros(len(cover.members))
    needed = np.zeros(len(cover.members), dtype=np.uint8)
    for channel in range(cover.members.shape[1]):
        mine = rows[starts[channel] : starts[channel + 1]]
        traffic = add_residual(demand, cover, rules, channel, mine, wanted, needed)
        for user in range(len(wanted)):
            was = cover.members[user, channel]
            cost = demand.w1 * traffic + rules.change
            if rules.change > 0.0 and rules.start.members[user, channel]:
                cost -= 2.0 * rules.change
            # Who needs a hard row stays, whatever it costs: nobody may be left to unicast there.
            joins = wanted[user] > cost or needed[user] != 0
            if joins and not was and joined[user] >= rules.limit[user]:
                joins = False
            cover.members[user, channel] = joins
            joined[user] += np.int64(joins) - np.int64(was)
            wanted[user], needed[user] = 0.0, 0


@bare
def add_residual(
    demand: Demand,
    cover: Cover,
    rules: CoverRules,
    channel: int,
    rows: Ints,
    wanted: Floats,
    needed: Bytes,
) -> float:
    """Each user's priced demand for rows on the channel that reach the user in no other way."""
    traffic = 0.0
    for row in rows:
        rate = demand.rate[row]
        traffic += rate
        channels = row_channels(cover, row)
        for user in row_audience(demand, row):
            here = cover.members[user, channel]
            if served_by(cover.members, user, channels) == here:
                wanted[user] += rate * demand.price[row]
                needed[user] |= rules.hard[row]
    return traffic
