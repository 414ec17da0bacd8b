"""Who joins a channel: subscribers of one broker at a time, as it is a broker that is saved.

If all subscribers of a broker whom a class leaves to the last hop join, the broker need not get the
class any more. So subscribers are taken in the order of what they gain by themselves, and as many
of them change as pay best together with the brokers saved.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.delivery.search.carry import (
    Desk,
    Network,
    Rates,
    State,
    Wishes,
    all_but,
    class_price,
    covered,
    through,
)


@compiled
def regroup(
    wishes: Wishes,
    network: Network,
    rates: Rates,
    state: State,
    sizes: Longs,
    desk: Desk,
    home_starts: Longs,
    at_home: Ints,
    row: Longs,
) -> None:
    """Let subscribers join and leave channels where that pays, with prices of classes."""
    starts, on = users_of(state, row, len(sizes))
    want, rank = np.zeros(len(at_home)), np.zeros(len(at_home), np.int64)
    for j in range(len(sizes)):
        segments = on[starts[j] : starts[j + 1]]
        runs, rate = runs_on(wishes, segments, row, len(network.domain))
        first = 0
        changed = False
        while first < len(runs):
            broker, last = wishes.broker[runs[first, 0]], first
            while last < len(runs) and wishes.broker[runs[last, 0]] == broker:
                last += 1
            people = at_home[home_starts[broker] : home_starts[broker + 1]]
            for joining in (True, False):
                changed |= flip(wishes, network, rates, state, sizes, desk, row, j, rate, joining,
                                runs[first:last], people, want, rank)  # fmt: skip
            first = last
        if changed:
            for k in segments:
                state.price[row[k]] = class_price(
                    wishes, network, rates, state, sizes, desk, row[k]
                )


@compiled
def users_of(state: State, row: Longs, channels: int) -> tuple[Longs, Longs]:
    """The segments on each channel, of classes that are not past the brokers."""
    starts = np.zeros(channels + 1, np.int64)
    for k in range(len(row)):
        if not state.past[row[k]]:
            for j in state.sets[k]:
                if j != NONE:
                    starts[j + 1] += 1
    starts = np.cumsum(starts)
    on, at = np.empty(starts[-1], np.int64), starts.copy()
    for k in range(len(row)):
        if not state.past[row[k]]:
            for j in state.sets[k]:
                if j != NONE:
                    on[at[j]] = k
                    at[j] += 1
    return starts, on


@compiled
def runs_on(wishes: Wishes, segments: Longs, row: Longs, brokers: int) -> tuple[Longs, float]:
    """Runs of the segments with their segments, broker by broker; and messages of all."""
    rate, starts = 0.0, np.zeros(brokers + 1, np.int64)
    for k in segments:
        rate += wishes.total[row[k]]
        for r in range(wishes.runs[k], wishes.runs[k + 1]):
            starts[wishes.broker[r] + 1] += 1
    starts = np.cumsum(starts)
    found = np.empty((starts[-1], 2), np.int64)
    for k in segments:
        for r in range(wishes.runs[k], wishes.runs[k + 1]):
            at = starts[wishes.broker[r]]
            found[at, 0], found[at, 1] = r, k
            starts[wishes.broker[r]] += 1
    return found, rate


@compiled
def flip(
    wishes: Wishes,
    network: Network,
    rates: Rates,
    state: State,
    sizes: Longs,
    desk: Desk,
    row: Longs,
    channel: int,
    rate: float,
    joining: bool,
    runs: Longs,
    people: Ints,
    want: Floats,
    rank: Longs,
) -> bool:
    """Have some subscribers of a broker join a channel, or leave it; whether any did."""
    members = state.members
    own = people[members[channel][people] != joining]
    if not len(own):
        return False
    want[own] = 0.0
    for r, k in runs:
        for h in wishes.people[wishes.bounds[r] : wishes.bounds[r + 1]]:
            if members[channel, h] != joining and depends(members, state.sets[k], channel, h):
                want[h] += wishes.total[row[k]]
    sign = 1.0 if joining else -1.0
    turns = np.empty(len(runs), np.int64)
    order = own[np.argsort(-sign * want[own], kind="mergesort")]
    rank[order] = np.arange(len(order))
    gain = sign * (rates.unicast * want[order] - rates.received * rate)
    hoped = gain.copy()
    for i in range(len(runs)):
        r, k = runs[i]
        turns[i] = turning(wishes, state, r, k, channel, joining, rank)
        if joining and turns[i] != NONE:
            hoped[turns[i]] += most_saved(wishes, network, rates, row[k], wishes.broker[r])
    if np.cumsum(hoped).max() <= 1e-9 * rate:
        return False
    for i in range(len(runs)):
        r, k = runs[i]
        if turns[i] != NONE:
            saved = saving(wishes, network, rates, state, sizes, desk, row[k], k, wishes.broker[r])
            gain[turns[i]] += sign * saved
    total = np.cumsum(gain)
    best = np.argmax(total)
    if total[best] <= 1e-9 * rate:
        return False
    for h in order[: best + 1]:
        members[channel, h] = joining
    sizes[channel] += (best + 1) if joining else -(best + 1)
    return True


@compiled
def depends(members: Bools, channels: Ints, channel: int, subscriber: int) -> bool:
    """Whether no other channel has the subscriber."""
    for j in channels:
        if j == NONE:
            break
        if j != channel and members[j, subscriber]:
            return False
    return True


@compiled
def turning(
    wishes: Wishes, state: State, run: int, segment: int, channel: int, joining: bool, rank: Longs
) -> int:
    """Who makes the difference whether a run needs its broker, by rank; NONE: nobody does.

    Of those who join it is the last that still needs the last hop, of those who leave the first.
    """
    found, members, channels = NONE, state.members, state.sets[segment]
    for h in wishes.people[wishes.bounds[run] : wishes.bounds[run + 1]]:
        if not covered(members, channels, h):
            if not joining:
                return NONE
            found = max(found, rank[h])
        elif not joining and members[channel, h] and depends(members, channels, channel, h):
            found = rank[h] if found == NONE else min(found, rank[h])
    return found


@compiled
def saving(
    wishes: Wishes,
    network: Network,
    rates: Rates,
    state: State,
    sizes: Longs,
    desk: Desk,
    c: int,
    segment: int,
    broker: int,
) -> float:
    """What a class costs more at brokers if a segment needs one of its home brokers than if not."""
    _, first, closed = all_but(wishes, rates, state, sizes, desk, c, segment)
    size = first
    for r in range(wishes.runs[segment], wishes.runs[segment + 1]):
        if wishes.broker[r] != broker and leaves_out(wishes, state, r, segment):
            desk.ends[size] = wishes.broker[r]
            size += 1
    desk.closed[closed] = wishes.domain[segment]
    without = through(wishes, network, rates, desk, c, size, closed + (size == first))
    desk.ends[size] = broker
    return through(wishes, network, rates, desk, c, size + 1, closed) - without


@compiled
def most_saved(wishes: Wishes, network: Network, rates: Rates, c: int, broker: int) -> float:
    """No less than a class saves if it needs a broker no more: all links from the root to it."""
    price = 0.0
    for i in range(wishes.parcels[c], wishes.parcels[c + 1]):
        links = network.depth[wishes.tree[i], broker]
        price += wishes.messages[i] * links * (rates.forwarded + rates.matched)
        price += rates.group * (links * (rates.entry + 3 * rates.control) + rates.control)
    return price


@compiled
def leaves_out(wishes: Wishes, state: State, run: int, segment: int) -> bool:
    """Whether channels leave somebody of a run to the last hop."""
    for h in wishes.people[wishes.bounds[run] : wishes.bounds[run + 1]]:
        if not covered(state.members, state.sets[segment], h):
            return True
    return False
