"""X-step with several channels per row: a greedy cover of the audience, where it pays.

A row on channels J costs, per message, the sum of their costs and the price for each of its
audience that none of them has. A *hard* row must have all its audience served.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from fanplan.kernels import compiled
from fanplan.planners.channels.kmodes.assign import channel_costs, count_overlaps
from fanplan.planners.channels.kmodes.demand import Bytes, Demand
from fanplan.problem.interest import Floats, Ints, Longs

CHUNK_CELLS = 4_000_000
"""Rows × channels that are worked on at a time: bounds the memory of their lists."""


class Cover(NamedTuple):
    """Members, and the channels of each row: ``channels[starts[i]:starts[i + 1]]``."""

    members: Bytes
    starts: Longs
    channels: Ints


def one_channel(members: Bytes, best: Ints) -> Cover:
    """The cover that gives each row its best channel alone."""
    starts = np.concatenate(([0], np.cumsum(best >= 0))).astype(np.int64)
    return Cover(members, starts, best[best >= 0])


def cover_rows(demand: Demand, cover: Cover, hard: Bytes) -> Cover:
    """Better channels for every row where the greedy cover finds them; no row gets worse.

    Parallel; each row is decided on its own. O(audiences × channels) byte additions.
    """
    costs = channel_costs(demand, cover.members)
    channels = len(costs)
    chunk = max(256, CHUNK_CELLS // max(channels, 1))
    counts, lists = [], []
    for begin in range(0, demand.size, chunk):
        size = min(chunk, demand.size - begin)
        count = np.zeros(size, dtype=np.int64)
        found = np.empty((size, channels), dtype=np.int32)
        cover_chunk(demand, cover, costs, hard, begin, count, found)
        counts.append(count)
        lists.append(found[np.arange(channels) < count[:, None]])
    starts = np.concatenate(([0], np.cumsum(np.concatenate(counts)))).astype(np.int64)
    return Cover(cover.members, starts, np.concatenate(lists))


@compiled(parallel=True)
def cover_chunk(
    demand: Demand,
    cover: Cover,
    costs: Floats,
    hard: Bytes,
    begin: int,
    count: Longs,
    found: Ints,
) -> None:
    for task in numba.prange((len(count) + 255) // 256):
        partial = np.empty(len(costs), dtype=np.uint8)
        overlap = np.empty(len(costs), dtype=np.int32)
        for place in range(task * 256, min(len(count), (task + 1) * 256)):
            count[place] = cover_row(
                demand, cover, costs, hard, begin + place, partial, overlap, found[place]
            )


@compiled
def cover_row(
    demand: Demand,
    cover: Cover,
    costs: Floats,
    hard: Bytes,
    row: int,
    partial: Bytes,
    overlap: Ints,
    found: Ints,
) -> int:
    """Put a row's channels into ``found``, ascending; how many: the greedy cover or what it has."""
    audience = demand.audience[demand.indptr[row] : demand.indptr[row + 1]]
    members, price = cover.members, demand.price[row]
    count_overlaps(audience, members, partial, overlap)
    size = greedy_cover(audience, members, costs, price, hard[row], overlap, found)
    size = drop_useless(audience, members, costs, price, hard[row], found, size)
    now = cover.channels[cover.starts[row] : cover.starts[row + 1]]
    after = cover_gain(audience, members, costs, price, found[:size])
    if cover_gain(audience, members, costs, price, now) >= after:
        size = len(now)
        found[:size] = now
    found[:size].sort()
    return size


@compiled
def greedy_cover(
    audience: Ints,
    members: Bytes,
    costs: Floats,
    price: float,
    hard: int,
    overlap: Ints,
    found: Ints,
) -> int:
    """Add channels while that pays (or, for a hard row, while anybody new is served).

    ``overlap`` is the number of the audience on each channel, and is used up.
    """
    served = np.zeros(len(audience), dtype=np.uint8)
    size = 0
    while size < len(costs):
        channel = next_cheapest(costs, overlap) if hard else next_best(costs, overlap, price)
        if channel < 0:
            break
        found[size] = channel
        size += 1
        for k in range(len(audience)):
            if not served[k] and members[audience[k], channel]:
                served[k] = 1
                own = members[audience[k]]
                for other in range(len(costs)):
                    overlap[other] -= own[other]
    return size


@compiled
def next_best(costs: Floats, overlap: Ints, price: float) -> int:
    """The channel with the largest positive gain, or −1."""
    best, gain = -1, 0.0
    for channel in range(len(costs)):
        here = price * overlap[channel] - costs[channel]
        if here > gain:
            best, gain = channel, here
    return best


@compiled
def next_cheapest(costs: Floats, overlap: Ints) -> int:
    """The channel with the least cost per newly served user, or −1 if none serves any.

    The greedy rule for weighted set cover (Chvátal, 1979).
    """
    best, ratio = -1, np.inf
    for channel in range(len(costs)):
        if overlap[channel] > 0 and costs[channel] < ratio * overlap[channel]:
            best, ratio = channel, costs[channel] / overlap[channel]
    return best


@compiled
def drop_useless(
    audience: Ints,
    members: Bytes,
    costs: Floats,
    price: float,
    hard: int,
    found: Ints,
    size: int,
) -> int:
    """Drop channels that later ones made redundant, first chosen first; the new number."""
    place = 0
    while place < size:
        alone = 0
        for user in audience:
            if members[user, found[place]] and served_by(members, user, found[:size]) == 1:
                alone += 1
        if alone == 0 or (not hard and price * alone <= costs[found[place]]):
            for k in range(place, size - 1):
                found[k] = found[k + 1]
            size -= 1
        else:
            place += 1
    return size


@compiled
def served_by(members: Bytes, user: int, channels: Ints) -> int:
    """How many of the channels a user has joined."""
    count = 0
    for channel in channels:
        count += members[user, channel]
    return count


@compiled
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
    return sum_cover_gains(demand, cover, channel_costs(demand, cover.members))


@compiled
def sum_cover_gains(demand: Demand, cover: Cover, costs: Floats) -> float:
    total = 0.0
    for row in range(len(demand.rate)):
        audience = demand.audience[demand.indptr[row] : demand.indptr[row + 1]]
        now = cover.channels[cover.starts[row] : cover.starts[row + 1]]
        total += demand.rate[row] * cover_gain(
            audience, cover.members, costs, demand.price[row], now
        )
    return total
