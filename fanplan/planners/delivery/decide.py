"""Each class decides for itself: an option in each domain, or unicast past the brokers.

What brokers have to carry depends on the options in all domains together, so they are tried one
domain at a time until none helps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.kernels import compiled
from fanplan.planners.delivery.options import ALONE, TODAY, WHOLE, Options
from fanplan.planners.delivery.params import DeliveryParams
from fanplan.problem.delivery import DeliveryProblem
from fanplan.problem.group_trees import Room, collect, kept, room_for
from fanplan.problem.groups import Bools
from fanplan.problem.interest import Floats, Ints, Longs


class Shadow(NamedTuple):
    """What limits make dearer: an entry of a table, and a message to one subscriber alone."""

    entry: float = 0.0
    unicast: float = 0.0


class Rates(NamedTuple):
    """Prices on the way through brokers. ``group`` is 0 where there are no groups."""

    forwarded: float
    matched: float
    entry: float
    control: float
    group: int


class Network(NamedTuple):
    """Trees, domains and gateways as the kernel takes them."""

    root: Ints
    parent: Ints
    inner: Bools
    domain: Ints
    gateways: Ints


class Decided(NamedTuple):
    """The option of each segment, and the classes that go past the brokers."""

    option: Ints
    direct: Bools


def decide(
    problem: DeliveryProblem, options: Options, params: DeliveryParams, shadow: Shadow
) -> Decided:
    """The cheapest for each class at these prices. O(subtrees × options of each class)."""
    prices, trees = params.prices, problem.trees
    order = np.argsort(problem.row, kind="stable")
    starts = np.searchsorted(problem.row[order], np.arange(problem.interest.size + 1))
    direct = prices.direct * prices.unicast + shadow.unicast if params.direct else np.inf
    lone = np.stack([options.lone, np.diff(problem.segments.bounds), 0 * options.lone], axis=1)
    option, past = choose(
        problem.segments.starts, problem.segments.domain,
        options.cost + shadow.unicast * lone, options.starts, options.left, options.home_starts,
        options.homes, problem.interest.audience_sizes * direct, starts, problem.tree[order],
        problem.messages[order],
        Network(trees.root, trees.parent, trees.inner, problem.domain, problem.gateways),
        Rates(prices.forwarded, prices.matched, prices.entry + shadow.entry, prices.control,
              int(params.entries != 0)),
    )  # fmt: skip
    return Decided(option, past)


@compiled
def choose(
    segment_starts: Longs,
    segment_domain: Ints,
    cost: Floats,
    left_starts: Longs,
    left: Ints,
    home_starts: Longs,
    homes: Ints,
    direct: Floats,
    parcel_starts: Longs,
    tree: Ints,
    messages: Floats,
    network: Network,
    rates: Rates,
) -> tuple[Ints, Bools]:
    option = np.full(len(segment_domain), TODAY, np.int32)
    past = np.zeros(len(segment_starts) - 1, np.bool_)
    room, ends, number = room_for(len(network.domain)), np.empty(len(network.domain), np.int32), 0
    for c in range(len(past)):
        mine = slice(segment_starts[c], segment_starts[c + 1])
        parcels = slice(parcel_starts[c], parcel_starts[c + 1])
        total = messages[parcels].sum()
        best, better = np.inf, True
        while better:
            better = False
            for k in range(mine.start, mine.stop):
                before = option[k]
                for other in (TODAY, ALONE, WHOLE):
                    if other == before and best < np.inf:
                        continue
                    option[k] = other
                    price = 0.0
                    for s in range(mine.start, mine.stop):
                        price += total * cost[s, option[s]]
                    # What is dear already without brokers need not be followed through them.
                    for i in range(parcels.start, parcels.stop):
                        if price >= best:
                            break
                        t, size = tree[i], 0
                        for s in range(mine.start, mine.stop):
                            size = gather(ends, size, s, option[s], segment_domain[s], left_starts,
                                          left, home_starts, homes, t, network)  # fmt: skip
                        price += carried(room, number, t, ends[:size], messages[i], network, rates)
                        number += 1
                    if price < best:
                        best, before, better = price, other, True
                option[k] = before
        past[c] = total * direct[c] < best
    return option, past


@compiled
def gather(
    ends: Ints,
    size: int,
    segment: int,
    option: int,
    domain: int,
    left_starts: Longs,
    left: Ints,
    home_starts: Longs,
    homes: Ints,
    tree: int,
    network: Network,
) -> int:
    """Append the brokers that a segment needs."""
    if option == ALONE:
        needed = homes[home_starts[segment] : home_starts[segment + 1]]
    elif option == TODAY:
        needed = left[left_starts[segment] : left_starts[segment + 1]]
    else:
        needed = left[:0]
    for broker in needed:
        ends[size] = broker
        size += 1
    if not len(needed) and network.domain[network.root[tree]] != domain:
        ends[size] = network.gateways[tree, domain]
        size += 1
    return size


@compiled
def carried(
    room: Room, number: int, tree: int, ends: Ints, messages: float, network: Network, rates: Rates
) -> float:
    """What brokers cost for a parcel with these ends: by default routing, or in a group."""
    links = collect(room, number, network.root[tree], network.parent[tree], ends)
    matches = hops = 0
    for node in room.nodes[:links]:
        matches += network.inner[tree, node]
        hops += kept(room, number, node)
    default = messages * (rates.forwarded * links + rates.matched * matches)
    if not rates.group:
        return default
    # Replies are those of shortcuts: at most one for each hop.
    control = len(ends) + 2 * links + min(hops, links - hops)
    group = messages * rates.forwarded * hops + rates.entry * hops + rates.control * control
    return min(default, group)
