"""What a class costs: its channels, the last hop, and brokers on the way, at given prices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.channels.lone import LEAST
from fanplan.layers.groups.problem.subtrees import SubtreeRoom, collect_ways, does_more

LONELY = 1e6
"""A message to a channel with fewer than two members costs so many times one to a subscriber alone:
no class chooses it, and sums stay finite."""


class Tariff(NamedTuple):
    """Prices. ``direct`` is infinite where it is not allowed, ``group`` 0 where there are none.

    ``limited`` is what a message by unicast costs more that a channel could carry.
    """

    received: float
    sent: float
    unicast: float
    limited: float
    direct: float
    forwarded: float
    matched: float
    entry: float
    control: float
    group: int


class DeliveryNetwork(NamedTuple):
    """Trees, domains and gateways; ``depth`` counts links from the root of a tree to a broker.

    The channels of domain z are ``first[z]:first[z + 1]``. With ``homes`` whom channels leave out
    needs its home broker; without, any broker of its domain will do.
    """

    root: Ints
    parent: Ints
    inner: Bools
    domain: Ints
    gateways: Ints
    depth: Ints
    first: Longs
    homes: bool


class Wishes(NamedTuple):
    """Classes, their segments and their parcels.

    Class c has the segments ``starts[c]:starts[c + 1]`` and the parcels
    ``parcels[c]:parcels[c + 1]``, in all ``total[c]`` messages. Segment k has the runs
    ``runs[k]:runs[k + 1]``, and is ``shared`` if a channel could serve it. Run r is of subscribers
    at ``broker[r]``, ``people`` from ``bounds[r]`` to ``bounds[r + 1]``. Directly ``beyond[c]``
    messages of a class would go to other domains.
    """

    starts: Longs
    domain: Ints
    shared: Bools
    runs: Longs
    broker: Ints
    bounds: Longs
    people: Ints
    parcels: Longs
    tree: Ints
    messages: Floats
    total: Floats
    beyond: Floats


class Carriage(NamedTuple):
    """A choice, changed in place.

    Segment k is on the channels ``sets[k]``, filled up with NONE. ``members`` are channels ×
    subscribers. Classes that are ``past`` the brokers use neither. ``price`` is of each class.
    """

    sets: Ints
    members: Bools
    past: Bools
    price: Floats


class Desk(NamedTuple):
    """Room for one class at a time.

    ``number[0]`` is that of the last subtree, ``ends`` are brokers that are needed, and ``closed``
    domains that channels serve wholly.
    """

    room: SubtreeRoom
    number: Longs
    ends: Ints
    closed: Ints


class Pricing(NamedTuple):
    """All that the price of a class depends on; ``sizes`` are the members of each channel."""

    wishes: Wishes
    network: DeliveryNetwork
    rates: Tariff
    state: Carriage
    sizes: Longs
    desk: Desk


@compiled
def parcel_price(p: Pricing, tree: int, ends: Ints, messages: float) -> float:
    """What brokers cost for a parcel with these ends: by default routing, or in a group."""
    network, rates = p.network, p.rates
    p.desk.number[0] += 1
    room, number = p.desk.room, p.desk.number[0]
    links = collect_ways(room, number, network.root[tree], network.parent[tree], ends)
    matches = hops = 0
    for node in room.nodes[:links]:
        matches += network.inner[tree, node]
        hops += does_more(room, number, node)
    default = messages * (rates.forwarded * links + rates.matched * matches)
    if not rates.group:
        return default
    # Replies are those of shortcuts: at most one for each hop.
    control = len(ends) + 2 * links + min(hops, links - hops)
    group = messages * rates.forwarded * hops + rates.entry * hops + rates.control * control
    return min(default, group)


@compiled
def class_price(p: Pricing, c: int) -> float:
    """What a class costs as it is."""
    return direct_price(p, c) if p.state.past[c] else routed_price(p, c)


@compiled
def direct_price(p: Pricing, c: int) -> float:
    """What a class costs past the brokers."""
    wishes, rates = p.wishes, p.rates
    if np.isinf(rates.direct):
        return np.inf
    price = 0.0
    for k in range(wishes.starts[c], wishes.starts[c + 1]):
        people = wishes.bounds[wishes.runs[k + 1]] - wishes.bounds[wishes.runs[k]]
        price += lone_price(p, k) * people
    result: float = price * wishes.total[c] + (rates.direct - rates.unicast) * wishes.beyond[c]
    return result


@compiled
def lone_price(p: Pricing, segment: int) -> float:
    """What a message to one subscriber of a segment costs."""
    result: float = p.rates.unicast + p.rates.limited * p.wishes.shared[segment]
    return result


@compiled
def routed_price(p: Pricing, c: int) -> float:
    """What a class costs with its channels and the brokers that it needs."""
    price, size, closed = all_but(p, c, NONE)
    return price + through(p, c, size, closed)


@compiled
def all_but(p: Pricing, c: int, segment: int) -> tuple[float, int, int]:
    """What all segments but one cost in their domains; and how many ends and closed domains."""
    wishes, state, desk = p.wishes, p.state, p.desk
    price, size, closed = 0.0, 0, 0
    for k in range(wishes.starts[c], wishes.starts[c + 1]):
        if k == segment:
            continue
        before = size
        size, alone = gather_ends(p, k, state.sets[k], size)
        price += near(p, k, state.sets[k], alone)
        if size == before:
            desk.closed[closed] = wishes.domain[k]
            closed += 1
    return wishes.total[c] * price, size, closed


@compiled
def through(p: Pricing, c: int, size: int, closed: int) -> float:
    """What brokers cost for all parcels of a class.

    A domain that channels serve wholly needs the broker through which it is entered.
    """
    wishes, network, desk = p.wishes, p.network, p.desk
    price = 0.0
    for i in range(wishes.parcels[c], wishes.parcels[c + 1]):
        t, all_ends = wishes.tree[i], size
        for z in desk.closed[:closed]:
            if network.domain[network.root[t]] != z:
                desk.ends[all_ends] = network.gateways[t, z]
                all_ends += 1
        price += parcel_price(p, t, desk.ends[:all_ends], wishes.messages[i])
    return price


@compiled
def near(p: Pricing, segment: int, channels: Ints, alone: int) -> float:
    """What a message costs in one domain: its channels, and the last hop for the others."""
    price = lone_price(p, segment) * alone
    for j in channels:
        if j == NONE:
            break
        price += p.rates.sent + p.rates.received * p.sizes[j]
        if p.sizes[j] < LEAST:
            price += LONELY * p.rates.unicast
    return price


@compiled
def gather_ends(p: Pricing, segment: int, channels: Ints, size: int) -> tuple[int, int]:
    """Append the home brokers that whom channels do not reach need; and how many these are."""
    wishes, alone = p.wishes, 0
    needed = p.network.homes or wishes.domain[segment] < 0
    for r in range(wishes.runs[segment], wishes.runs[segment + 1]):
        before = alone
        for at in range(wishes.bounds[r], wishes.bounds[r + 1]):
            alone += not on_a_channel(p.state.members, channels, wishes.people[at])
        if needed and alone > before:
            p.desk.ends[size] = wishes.broker[r]
            size += 1
    return size, alone


@compiled
def on_a_channel(members: Bools, channels: Ints, subscriber: int) -> bool:
    """Whether some of the channels has the subscriber."""
    for j in channels:
        if j == NONE:
            return False
        if members[j, subscriber]:
            return True
    return False
