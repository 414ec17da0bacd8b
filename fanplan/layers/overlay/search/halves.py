"""What it costs to link the two halves of a cut tree elsewhere, for all brokers at once.

Let link (u, v) be cut. Only routes with ends in both halves crossed it. Linked by (x, y) instead,
such a route needs its subtree in each half, the way from there to x and y, and the new link. So the
change of the ledger is f(x) + f(y) + what the link itself adds, and f is one sweep over the halves.

Both halves hang from their end of the link. Brokers off the ways from the routes' ends to the link
are *outside*: there f only grows, by the same for each hop, so most of them need not be looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.search.movable import Movable, smaller_part
from fanplan.layers.overlay.search.traffic import Traffic


class Halves(NamedTuple):
    """A tree without the link (u, v): ``few`` are the brokers of the smaller half, marked in
    ``small``. ``extra`` is the f of above for the brokers in ``order``, which has parents first.

    ``messages`` and ``arrivals`` crossed the link: arrivals are messages times destinations beyond.
    ``crossed`` is above 0 for brokers that are not outside. ``hop`` is the price of a hop outside,
    and of a unit of delay there.
    """

    u: int
    v: int
    few: Longs
    small: NDArray[np.int8]
    extra: Floats
    order: Ints
    crossed: Floats
    messages: float
    arrivals: float
    hop: tuple[float, float]


@compiled
def cut(
    hung: Movable, traffic: Traffic, u: int, v: int, per_message: float, per_delay: float, all: bool
) -> Halves:
    """Sweep the halves that hang from u and v, with or without what is outside.

    O(smaller half + ways from the ends of the routes that crossed to the link), or of all brokers.
    """
    size = len(hung.parent)
    few = smaller_part(hung, u, v)
    small = np.zeros(size, dtype=np.int8)
    small[few] = 1
    crossed, load = np.zeros(size), np.zeros(size)
    crossing = routes_across(traffic, few)
    messages, arrivals = count_halves(hung, traffic, crossing, small, crossed, load)
    order = inside(hung, crossed, u, v, all)
    for i in range(len(order) - 1, -1, -1):
        above = hung.parent[order[i]]
        if above != NONE:
            load[above] += load[order[i]]
    extra = np.zeros(size)
    for here in order:
        above = hung.parent[here]
        if above != NONE:
            # One hop further for routes that stay behind, one less for those all beyond.
            more = per_message * (messages - crossed[here])
            apart = per_delay * (arrivals - 2 * load[here])
            extra[here] = extra[above] + more + hung.length[hung.link[here]] * apart
    hop = (per_message * messages, per_delay * arrivals)
    return Halves(u, v, few, small, extra, order, crossed, messages, arrivals, hop)


@compiled
def inside(hung: Movable, crossed: Floats, u: int, v: int, all: bool) -> Ints:
    """The brokers of both halves that are not outside, or all of them; parents first."""
    order = np.empty(len(crossed), dtype=np.int32)
    order[0], order[1] = u, v
    count, i = 2, 0
    while i < count:
        child = hung.first[order[i]]
        while child != NONE:
            if all or crossed[child] > 0:
                order[count] = child
                count += 1
            child = hung.after[child]
        i += 1
    return order[:count]


@compiled
def outside_hop(halves: Halves, hung: Movable, here: int) -> float:
    """What the link to a broker's parent adds to f, outside."""
    return halves.hop[0] + halves.hop[1] * hung.length[hung.link[here]]


@compiled
def extra_at(halves: Halves, hung: Movable, broker: int) -> float:
    """f of any broker. O(hops to the next that is not outside)."""
    total, here = 0.0, broker
    while halves.crossed[here] == 0.0 and hung.parent[here] != NONE:
        total += outside_hop(halves, hung, here)
        here = hung.parent[here]
    return total + halves.extra[here]


@compiled
def routes_across(traffic: Traffic, few: Longs) -> Ints:
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
    hung: Movable,
    traffic: Traffic,
    crossing: Ints,
    small: NDArray[np.int8],
    crossed: Floats,
    load: Floats,
) -> tuple[float, float]:
    """Fill in, per broker and looking away from the link: messages with an end there or beyond
    plus those with all ends of their half there or beyond (``crossed``), and arrivals that start
    or end there (``load``). Returns the messages and arrivals that cross.
    """
    parent = hung.parent
    seen = np.full(len(small), NONE, dtype=np.int32)
    # Where a broker stands on the way from the half's first end to the link, else NONE.
    step = np.full(len(small), NONE, dtype=np.int32)
    messages, arrivals = 0.0, 0.0
    for route in crossing:
        begin, end = traffic.starts[route], traffic.starts[route + 1]
        weight = traffic.messages[route]
        source = traffic.ends[begin]
        meet = np.full(2, NONE, dtype=np.int32)
        across = 0
        for k in range(begin, end):
            here = traffic.ends[k]
            side = small[here]
            if side != small[source]:
                across += 1
                load[here] += weight
            first, steps = meet[side] == NONE, 0
            if first:
                meet[side] = here
            while here != NONE and seen[here] != route:
                seen[here] = route
                step[here] = steps if first else NONE
                crossed[here] += weight
                here = parent[here]
                steps += 1
            if here != NONE and step[here] > step[meet[side]]:
                meet[side] = here
        load[source] += weight * across
        for here in meet:
            while here != NONE:
                crossed[here] += weight
                here = parent[here]
        messages += weight
        arrivals += weight * across
    return messages, arrivals
