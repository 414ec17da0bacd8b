"""What it costs to link the two halves of a cut tree elsewhere, for all brokers at once.

Let link (u, v) be cut. Only routes with ends in both halves crossed it. Linked by (x, y) instead,
such a route needs its subtree in each half, the way from there to x and y, and the new link. So the
change of the ledger is f(x) + f(y) + what the link itself adds, and f is one sweep over the halves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.kernels import compiled
from fanplan.planners.overlay.traffic import Traffic
from fanplan.planners.overlay.tree import NONE, walk
from fanplan.problem.interest import Floats, Ints, Longs


class Linked(NamedTuple):
    """A tree as lists of neighbours, with the delay of each link."""

    starts: Longs
    near: Ints
    length: Floats


class Halves(NamedTuple):
    """A tree without a link: ``half`` is 0 with u and 1 with v, ``extra`` the f of above.

    ``messages`` and ``arrivals`` crossed the link: arrivals are messages times destinations beyond.
    """

    half: Ints
    extra: Floats
    order: Ints
    parent: Ints
    messages: float
    arrivals: float


@compiled
def cut(
    linked: Linked, traffic: Traffic, u: int, v: int, per_message: float, per_delay: float
) -> Halves:
    """Cut a link. O(brokers + ways from the ends of the routes that crossed it to the link)."""
    first, parent, depth = walk(linked.starts, linked.near, u, u, v)
    second, parent_v, depth_v = walk(linked.starts, linked.near, v, u, v)
    half = np.zeros(len(parent), dtype=np.int32)
    for broker in second:
        half[broker], parent[broker], depth[broker] = 1, parent_v[broker], depth_v[broker]
    crossing = routes_across(traffic, half, first if len(first) < len(second) else second)
    order = np.concatenate((first, second))
    used, within, load = np.zeros(len(half)), np.zeros(len(half)), np.zeros(len(half))
    messages, arrivals = count_halves(traffic, crossing, half, parent, depth, used, within, load)
    for i in range(len(order) - 1, -1, -1):
        here = order[i]
        if parent[here] != NONE:
            within[parent[here]] += within[here]
            load[parent[here]] += load[here]
    extra = np.zeros(len(half))
    for here in order:
        above = parent[here]
        if above != NONE:
            # One hop further for routes that stay behind, one less for those all beyond.
            more = messages - used[here] - within[here]
            apart = arrivals - 2 * load[here]
            delay = length_of(linked, here, above)
            extra[here] = extra[above] + per_message * more + per_delay * delay * apart
    return Halves(half, extra, order, parent, messages, arrivals)


@compiled
def length_of(linked: Linked, one: int, other: int) -> float:
    """The delay of a link of the tree."""
    if (
        linked.starts[one + 1] - linked.starts[one]
        > linked.starts[other + 1] - linked.starts[other]
    ):
        one, other = other, one
    for k in range(linked.starts[one], linked.starts[one + 1]):
        if linked.near[k] == other:
            return linked.length[k]
    return 0.0


@compiled
def routes_across(traffic: Traffic, half: Ints, few: Ints) -> Ints:
    """Routes with ends in both halves, found from the brokers of the smaller half."""
    most = 0
    for broker in few:
        most += traffic.at[broker + 1] - traffic.at[broker]
    met = np.empty(most, dtype=np.int32)
    count = 0
    for broker in few:
        for k in range(traffic.at[broker], traffic.at[broker + 1]):
            met[count] = traffic.routes[k]
            count += 1
    met.sort()
    kept = 0
    i = 0
    while i < count:
        route, j = met[i], i
        while j < count and met[j] == route:
            j += 1
        if j - i < traffic.starts[route + 1] - traffic.starts[route]:
            met[kept] = route
            kept += 1
        i = j
    return met[:kept]


@compiled
def count_halves(
    traffic: Traffic,
    crossing: Ints,
    half: Ints,
    parent: Ints,
    depth: Ints,
    used: Floats,
    within: Floats,
    load: Floats,
) -> tuple[float, float]:
    """Fill in, per broker and looking away from the link: messages with an end there or beyond
    (``used``), those whose ends in this half meet there (``within``), and arrivals that start or
    end there (``load``). Returns the messages and arrivals that cross.
    """
    seen = np.full(len(half), NONE, dtype=np.int32)
    messages, arrivals = 0.0, 0.0
    for route in crossing:
        begin, end = traffic.starts[route], traffic.starts[route + 1]
        weight = traffic.messages[route]
        source = traffic.ends[begin]
        top = np.full(2, NONE, dtype=np.int32)
        across = 0
        for k in range(begin, end):
            here = traffic.ends[k]
            side = half[here]
            if side != half[source]:
                across += 1
                load[here] += weight
            while here != NONE and seen[here] != route:
                seen[here] = route
                used[here] += weight
                here = parent[here]
            if top[side] == NONE:
                top[side] = traffic.ends[k]
            elif here != NONE and depth[here] < depth[top[side]]:
                top[side] = here
        load[source] += weight * across
        within[top[0]] += weight
        within[top[1]] += weight
        messages += weight
        arrivals += weight * across
    return messages, arrivals
