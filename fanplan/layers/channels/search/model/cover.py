"""Several channels per row: what such a cover costs, and the greedy cover of one audience.

A row on channels J costs, per message, the sum of their costs and the price for each of its
audience that none of them has.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Bytes, Floats, Ints, Longs, starts_of
from fanplan.core.kernels import bare, compiled, inlined
from fanplan.layers.channels.map import ChannelMap, count_overlaps
from fanplan.layers.channels.search.model.assign import (
    Offer,
    channel_costs,
    in_parts,
    weighted_sum,
    worth_threads,
)
from fanplan.layers.channels.search.model.demand import Demand, row_audience

FEW = 8
"""Channels up to which members are counted one by one."""


class Cover(NamedTuple):
    """Members, users × channels, and the channels of each row, ascending.

    Row ``i`` is on ``channels[starts[i]:starts[i + 1]]``.
    """

    members: Bytes
    starts: Longs
    channels: Ints


def one_channel(members: Bytes, best: Ints) -> Cover:
    """The cover that gives each row its best channel alone."""
    return Cover(members, starts_of(best >= 0), best[best >= 0])


def cover_of_table(members: Bytes, on: Bytes) -> Cover:
    """The cover of a table, rows × channels, that has 1 where a row goes to a channel."""
    rows, channels = np.nonzero(on)
    starts = starts_of(np.bincount(rows, minlength=len(on)))
    return Cover(members, starts, channels.astype(np.int32))


def table_of_cover(cover: Cover, spare: int = 0) -> Bytes:
    """The same table from a cover, with room for so many channels more."""
    rows = len(cover.starts) - 1
    on = np.zeros((rows, cover.members.shape[1] + spare), dtype=np.uint8)
    on[np.repeat(np.arange(rows), np.diff(cover.starts)), cover.channels] = 1
    return on


def pair_keys(cover: Cover) -> Longs:
    """A number for each (row, channel) pair, ascending."""
    rows = np.repeat(np.arange(len(cover.starts) - 1), np.diff(cover.starts))
    result: Longs = rows * cover.members.shape[1] + cover.channels
    return result


def with_places(cover: Cover, members: Bytes, rows: Longs, channels: Ints | Longs | int) -> Cover:
    """The cover with these members, and with rows on further channels."""
    size, width = len(cover.starts) - 1, members.shape[1]
    keys = np.unique(np.concatenate((pair_keys(cover), rows * width + channels)))
    starts = starts_of(np.bincount(keys // width, minlength=size))
    return Cover(members, starts, (keys % width).astype(np.int32))


def keep_places(cover: Cover, keep: Bools) -> Cover:
    """The cover with some of its (row, channel) places and all of its members."""
    return Cover(cover.members, starts_of(keep)[cover.starts], cover.channels[keep])


def keep_rows(cover: Cover, keep: Bools) -> Cover:
    """The cover with only some rows on channels."""
    return keep_places(cover, np.repeat(keep, np.diff(cover.starts)))


def empty_cover(rows: int, users: int, channels: int) -> Cover:
    """No members, and no row on any channel."""
    members = np.zeros((users, channels), dtype=np.uint8)
    return Cover(members, np.zeros(rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32))


def from_map(map: ChannelMap, rows: int, users: int, channels: int) -> Cover:
    """The cover of a map with at most that many channels; its unicast pairs follow from it."""
    members = np.zeros((users, channels), dtype=np.uint8)
    members[map.members.right, map.members.left] = 1
    return Cover(members, map.assigned.starts(rows), map.assigned.right.copy())


@inlined
def row_channels(cover: Cover, row: int) -> Ints:
    return cover.channels[cover.starts[row] : cover.starts[row + 1]]


@bare
def served_by(members: Bytes, user: int, channels: Ints | Longs) -> int:
    """How many of the channels a user has joined."""
    count = 0
    for channel in channels:
        count += members[user, channel]
    return count


@bare
def cover_gain(
    audience: Ints, members: Bytes, costs: Floats, price: float, channels: Ints
) -> float:
    """What a row's channels save per message against unicast."""
    gain = 0.0
    for channel in channels:
        gain -= costs[channel]
    for user in audience:
        if served_by(members, user, channels) > 0:
            gain += price
    return gain


def total_cover_gain(demand: Demand, cover: Cover) -> float:
    """What the cover saves against all unicast, over the window."""
    gains = cover_gains(demand, cover, channel_costs(demand, cover.members))
    return weighted_sum(demand.rate, gains)


def cover_gains(demand: Demand, cover: Cover, costs: Floats) -> Floats:
    """Each row's gain per message. Parallel unless rows are few."""
    gains = np.empty(demand.size)
    threads = worth_threads(demand, cover.members)
    in_parts(partial(gains_of_range, demand, cover, costs, gains), demand.size, threads)
    return gains


@compiled
def gains_of_range(
    demand: Demand, cover: Cover, costs: Floats, gains: Floats, begin: int, end: int
) -> None:
    for row in range(begin, end):
        audience, channels = row_audience(demand, row), row_channels(cover, row)
        gains[row] = cover_gain(audience, cover.members, costs, demand.price[row], channels)


def messages_sent(demand: Demand, cover: Cover) -> tuple[float, float]:
    """By multicast and by unicast."""
    rows, _ = unserved_pairs(demand, cover)
    by_multicast = float(np.dot(demand.rate, np.diff(cover.starts)))
    return by_multicast, float(demand.rate[rows].sum())


def unserved_pairs(demand: Demand, cover: Cover) -> tuple[Ints, Ints]:
    """(row, user) for all who want a row and are on none of its channels, ascending."""
    return audience_pairs(demand, cover, False)


@compiled
def audience_pairs(demand: Demand, cover: Cover, served: bool) -> tuple[Ints, Ints]:
    """(row, user) for all who want a row and get it by a channel, or do not; ascending."""
    rows = np.empty(len(demand.audience), dtype=np.int32)
    users = np.empty(len(demand.audience), dtype=np.int32)
    count = 0
    for row in range(len(demand.rate)):
        channels = row_channels(cover, row)
        for user in row_audience(demand, row):
            if (served_by(cover.members, user, channels) > 0) == served:
                rows[count], users[count] = row, user
                count += 1
    return rows[:count].copy(), users[:count].copy()


def unserved_demand(demand: Demand, cover: Cover, among: Bytes) -> Demand:
    """The demand that the cover leaves, of the rows marked in ``among``."""
    rows, users = unserved_pairs(demand, cover)
    keep = among[rows] != 0
    return demand.with_audiences(rows[keep], users[keep])


@compiled
def channel_losses(demand: Demand, cover: Cover, costs: Floats) -> Floats:
    """What would be lost if a channel were closed and its rows went by unicast for it alone."""
    loss = np.zeros(len(costs))
    for row in range(len(demand.rate)):
        channels = row_channels(cover, row)
        for channel in channels:
            loss[channel] -= demand.rate[row] * costs[channel]
        for user in row_audience(demand, row):
            if served_by(cover.members, user, channels) == 1:
                for channel in channels:
                    if cover.members[user, channel]:
                        loss[channel] += demand.rate[row] * demand.price[row]
    return loss


def close_channels(cover: Cover, closed: Ints | Longs) -> Cover:
    """The cover without the members and the rows of some channels, which stay as empty ones."""
    members = cover.members.copy()
    members[:, closed] = 0
    return keep_places(cover._replace(members=members), ~np.isin(cover.channels, closed))


@bare
def greedy_cover(offer: Offer, audience: Ints, price: float, hard: int, found: Ints) -> int:
    """Add channels while that pays (or, for a hard row, while anybody new is served); how many.

    ``overlap`` counts the audience at first. What does not pay then never will.
    """
    left, count, size = offer.left, len(audience), 0
    copy_few(audience, left)
    able = offer.able[: list_able(offer, price, hard)]
    while size < len(found):
        channel = next_cheapest(offer, able) if hard else next_best(offer, able, price)
        if channel < 0 or channel in found[:size]:
            break
        found[size] = channel
        size += 1
        if len(able) == 1:
            break
        count = drop_members(left, count, offer.members, channel)
        recount(offer, left[:count], able)
    return size


@bare
def copy_few(values: Ints, target: Ints) -> None:
    """Write values to the begin of an array."""
    for k in range(len(values)):
        target[k] = values[k]


@bare
def recount(offer: Offer, users: Ints, able: Ints) -> None:
    """Count the users on some channels anew; if these are many, on all."""
    if len(able) > FEW:
        count_overlaps(users, offer.members, offer.partial, offer.overlap)
        return
    for channel in able:
        count = 0
        for user in users:
            count += offer.members[user, channel]
        offer.overlap[channel] = count


@bare
def list_able(offer: Offer, price: float, hard: int) -> int:
    """List the channels that pay, or for a hard row those that serve anybody; how many."""
    count = 0
    for channel in range(len(offer.costs)):
        overlap = offer.overlap[channel]
        # Written always and counted only if it may do: no branch for the processor to guess.
        offer.able[count] = channel
        count += overlap > 0 if hard else price * overlap > offer.costs[channel]
    return count


@bare
def drop_members(users: Ints, count: int, members: Bytes, channel: int) -> int:
    """Drop those that are on the channel from the first few users; how many are left."""
    size = 0
    for user in users[:count]:
        users[size] = user
        size += members[user, channel] == 0
    return size


@bare
def next_best(offer: Offer, able: Ints, price: float) -> int:
    """The channel with the largest positive gain, or −1."""
    best, gain = -1, 0.0
    for channel in able:
        here = price * offer.overlap[channel] - offer.costs[channel]
        if here > gain:
            best, gain = channel, here
    return best


@bare
def next_cheapest(offer: Offer, able: Ints) -> int:
    """The channel with the least cost per newly served user, or −1 if none serves any.

    The greedy rule for weighted set cover (Chvátal, 1979).
    """
    best, ratio = -1, np.inf
    for channel in able:
        overlap, cost = offer.overlap[channel], offer.costs[channel]
        if overlap > 0 and cost < ratio * overlap:
            best, ratio = channel, cost / overlap
    return best


@bare
def drop_useless(
    offer: Offer, audience: Ints, price: float, hard: int, found: Ints, size: int
) -> int:
    """Drop channels that later ones made redundant, first chosen first; the new number."""
    members, place = offer.members, 0
    while place < size:
        alone = 0
        for user in audience:
            if members[user, found[place]] and served_by(members, user, found[:size]) == 1:
                alone += 1
        pays = price * alone > offer.costs[found[place]]
        if pays or (hard and alone > 0):
            place += 1
        else:
            for k in range(place, size - 1):
                found[k] = found[k + 1]
            size -= 1
    return size
