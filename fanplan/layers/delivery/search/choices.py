"""Classes choose channels, and subscribers join or leave them: one pass of the search is both.

What brokers have to carry depends on all domains together, so one domain changes at a time, until
no change helps.

Subscribers are taken one broker at a time, as it is a broker that is saved. If all of them whom a
class leaves to the last hop join, the broker need not get the class any more. So they are taken in
the order of what they gain by themselves, and as many of them change as pay best together with the
brokers saved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.lone import LEAST
from fanplan.layers.delivery.search.carry import (
    Carriage,
    Pricing,
    Wishes,
    all_but,
    class_price,
    direct_price,
    gather_ends,
    lone_price,
    near,
    on_a_channel,
    routed_price,
    through,
)

LESS = 1.0 - 1e-12
"""What is cheaper by more than rounding."""


class Homes(NamedTuple):
    """Subscribers by home broker: those of broker b are ``people[starts[b]:starts[b + 1]]``.

    ``row`` is the class of each segment. ``want`` and ``rank`` are room, a place per subscriber.
    """

    starts: Longs
    people: Ints
    row: Longs
    want: Floats
    rank: Longs


# ---- classes choose channels


@compiled
def assign_classes(p: Pricing, begin: int, end: int) -> None:
    """Let some classes choose among no channel, each single one, and one more or less than now."""
    wishes, state = p.wishes, p.state
    for c in range(begin, end):
        best, better = routed_price(p, c), True
        while better:
            better = False
            for k in range(wishes.starts[c], wishes.starts[c + 1]):
                if wishes.domain[k] >= 0:
                    price = choose_option(p, c, k, best)
                    better |= price < best
                    best = price
        past = direct_price(p, c)
        state.past[c] = past < best * LESS
        state.price[c] = min(past, best)


@compiled
def choose_option(p: Pricing, c: int, segment: int, best: float) -> float:
    """Give a segment the cheapest of its options; the price of its class then.

    What cannot be cheaper, whatever brokers it needs beside those of other segments, is not
    followed through them.
    """
    wishes, state, total = p.wishes, p.state, p.wishes.total[c]
    few, many = p.network.first[wishes.domain[segment] : wishes.domain[segment] + 2]
    today = state.sets[segment].copy()
    option = np.empty_like(today)
    rest, size, closed = all_but(p, c, segment)
    least = rest + through(p, c, size, closed)
    _, lone = gather_ends(p, segment, today, size)
    people, hits = segment_hits(wishes, state.members, segment, few, many)
    for j in range(few - 1, many):
        for kind in range(3 if j >= few else 1):
            if not propose(today, option, kind, j if j >= few else NONE):
                continue
            alone = people - hits[j - few + 1]
            if kind == 1:
                alone = max(lone - hits[j - few + 1], 0)
            elif kind == 2:
                alone = lone
            if least + total * near(p, segment, option, alone) >= best * LESS:
                continue
            ends, alone = gather_ends(p, segment, option, size)
            p.desk.closed[closed] = wishes.domain[segment]
            price = rest + total * near(p, segment, option, alone)
            price += through(p, c, ends, closed + (ends == size))
            if price < best * LESS:
                best = price
                state.sets[segment] = option
    return best


@compiled
def segment_hits(
    wishes: Wishes, members: Bools, segment: int, few: int, many: int
) -> tuple[int, Longs]:
    """How many subscribers a segment has, and how many each channel has; first that of none."""
    first, last = wishes.bounds[wishes.runs[segment]], wishes.bounds[wishes.runs[segment + 1]]
    hits = np.zeros(many - few + 1, np.int64)
    for j in range(few, many):
        own = members[j]
        for h in wishes.people[first:last]:
            hits[j - few + 1] += own[h]
    return last - first, hits


@compiled
def propose(today: Ints, option: Ints, kind: int, channel: int) -> bool:
    """Write an option: the channel alone, or today's with it, or without it; False: there is none.

    NONE alone is no channel at all.
    """
    option[:] = NONE
    if kind == 0:
        option[0] = channel
        return True
    size, there = 0, False
    for j in today:
        if j == channel:
            there = True
        elif j != NONE:
            option[size] = j
            size += 1
    if kind == 1 and not there and 0 < size < len(option):
        option[size] = channel
        return True
    return kind == 2 and there and size > 0


# ---- subscribers join and leave


@compiled
def regroup(p: Pricing, homes: Homes, starts: Longs, on: Longs, begin: int, end: int) -> None:
    """Let subscribers join and leave some channels where that pays, with prices of classes.

    ``starts`` and ``on`` are the segments on channels.
    """
    wishes, row = p.wishes, homes.row
    for j in range(begin, end):
        segments = on[starts[j] : starts[j + 1]]
        runs, rate = runs_on(wishes, segments, row, len(p.network.domain))
        first = 0
        changed = idle_leave(p, homes, j, runs)
        while first < len(runs):
            broker, last = wishes.broker[runs[first, 0]], first
            while last < len(runs) and wishes.broker[runs[last, 0]] == broker:
                last += 1
            people = homes.people[homes.starts[broker] : homes.starts[broker + 1]]
            for joining in (True, False):
                changed |= join_or_leave(p, homes, j, rate, joining, runs[first:last], people)
            first = last
        if changed:
            for k in segments:
                p.state.price[row[k]] = class_price(p, row[k])


@compiled
def idle_leave(p: Pricing, homes: Homes, channel: int, runs: Longs) -> bool:
    """Have those leave who want nothing that is on a channel; whether any did."""
    members, want, left = p.state.members[channel], homes.want, False
    want[:] = 0.0
    for r, _ in runs:
        for h in p.wishes.people[p.wishes.bounds[r] : p.wishes.bounds[r + 1]]:
            want[h] = 1.0
    for h in range(len(members)):
        if members[h] and want[h] == 0.0 and p.sizes[channel] > LEAST:
            members[h], left = False, True
            p.sizes[channel] -= 1
    return left


@compiled
def segments_on_channels(state: Carriage, row: Longs, channels: int) -> tuple[Longs, Longs]:
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
def join_or_leave(
    p: Pricing, homes: Homes, channel: int, rate: float, joining: bool, runs: Longs, people: Ints
) -> bool:
    """Have some subscribers of a broker join a channel, or leave it; whether any did.

    ``runs`` are those of the broker on the channel, which carries ``rate`` messages.
    """
    wishes, members = p.wishes, p.state.members
    row, want, rank = homes.row, homes.want, homes.rank
    own = people[members[channel][people] != joining]
    if not len(own):
        return False
    want[own] = 0.0
    add_wants(p, homes, channel, joining, runs)
    sign = 1.0 if joining else -1.0
    turns = np.empty(len(runs), np.int64)
    order = own[np.argsort(-sign * want[own], kind="mergesort")]
    rank[order] = np.arange(len(order))
    gain = sign * (want[order] - p.rates.received * rate)
    # First what brokers could save at most, which is quickly told; most attempts end here.
    hoped = gain.copy()
    for i in range(len(runs)):
        r, k = runs[i]
        turns[i] = turning(p, r, k, channel, joining, rank)
        if joining and turns[i] != NONE:
            hoped[turns[i]] += most_broker_saving(p, row[k], wishes.broker[r])
    if np.cumsum(hoped).max() <= 1e-9 * rate:
        return False
    for i in range(len(runs)):
        r, k = runs[i]
        if turns[i] != NONE:
            gain[turns[i]] += sign * saving(p, row[k], k, wishes.broker[r])
    total = np.cumsum(gain)
    # Two stay, or classes leave the channel altogether.
    most = len(total) if joining else max(min(len(total), p.sizes[channel] - LEAST), 0)
    if most == 0:
        return False
    best = np.argmax(total[:most])
    if total[best] <= 1e-9 * rate:
        return False
    for h in order[: best + 1]:
        members[channel, h] = joining
    p.sizes[channel] += (best + 1) if joining else -(best + 1)
    return True


@compiled
def add_wants(p: Pricing, homes: Homes, channel: int, joining: bool, runs: Longs) -> None:
    """Add what unicast of what each who may join or leave gets by no other channel costs."""
    wishes, members = p.wishes, p.state.members
    for r, k in runs:
        for h in wishes.people[wishes.bounds[r] : wishes.bounds[r + 1]]:
            if members[channel, h] != joining and depends(members, p.state.sets[k], channel, h):
                homes.want[h] += lone_price(p, k) * wishes.total[homes.row[k]]


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
def turning(p: Pricing, run: int, segment: int, channel: int, joining: bool, rank: Longs) -> int:
    """Who makes the difference whether a run needs its broker, by rank; NONE: nobody does.

    Of those who join it is the last that still needs the last hop, of those who leave the first.
    """
    if not p.network.homes:
        return NONE
    wishes, found = p.wishes, NONE
    members, channels = p.state.members, p.state.sets[segment]
    for h in wishes.people[wishes.bounds[run] : wishes.bounds[run + 1]]:
        if not on_a_channel(members, channels, h):
            if not joining:
                return NONE
            found = max(found, rank[h])
        elif not joining and members[channel, h] and depends(members, channels, channel, h):
            found = rank[h] if found == NONE else min(found, rank[h])
    return found


@compiled
def saving(p: Pricing, c: int, segment: int, broker: int) -> float:
    """What a class costs more at brokers if a segment needs one of its home brokers than if not."""
    wishes, ends = p.wishes, p.desk.ends
    _, first, closed = all_but(p, c, segment)
    size = first
    for r in range(wishes.runs[segment], wishes.runs[segment + 1]):
        if wishes.broker[r] != broker and leaves_out(wishes, p.state, r, segment):
            ends[size] = wishes.broker[r]
            size += 1
    p.desk.closed[closed] = wishes.domain[segment]
    without = through(p, c, size, closed + (size == first))
    ends[size] = broker
    return through(p, c, size + 1, closed) - without


@compiled
def most_broker_saving(p: Pricing, c: int, broker: int) -> float:
    """No less than a class saves if it needs a broker no more: all links from the root to it."""
    wishes, rates = p.wishes, p.rates
    price = 0.0
    for i in range(wishes.parcels[c], wishes.parcels[c + 1]):
        links = p.network.depth[wishes.tree[i], broker]
        price += wishes.messages[i] * links * (rates.forwarded + rates.matched)
        price += rates.group * (links * (rates.entry + 3 * rates.control) + rates.control)
    return price


@compiled
def leaves_out(wishes: Wishes, state: Carriage, run: int, segment: int) -> bool:
    """Whether channels leave somebody of a run to the last hop."""
    for h in wishes.people[wishes.bounds[run] : wishes.bounds[run + 1]]:
        if not on_a_channel(state.members, state.sets[segment], h):
            return True
    return False
