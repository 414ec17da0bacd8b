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
from fanplan.layers.overlay.search.judge import NO_LIMIT, TreeRules
from fanplan.layers.overlay.search.movable import Movable, smaller_part
from fanplan.layers.overlay.search.offers import TreeTraffic

MOST = 24
"""Brokers of each half that are tried as ends of a new link when hops are limited."""


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


class HopReach(NamedTuple):
    """``span`` is the most hops to any other broker of the same half and ``widest`` the largest
    span, both 0 if the diameter is not limited. For the pairs that the cut divides, ``away`` has
    hops to the pair's broker in the same half, and ``most`` the pair's limit.
    """

    limited: bool
    span: Ints
    widest: int
    away: Ints
    most: Ints


@compiled
def cut_halves(
    hung: Movable,
    traffic: TreeTraffic,
    u: int,
    v: int,
    per_message: float,
    per_delay: float,
    all: bool,
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
    result: float = halves.hop[0] + halves.hop[1] * hung.length[hung.link[here]]
    return result


@compiled
def extra_at(halves: Halves, hung: Movable, broker: int) -> float:
    """f of any broker. O(hops to the next that is not outside)."""
    total, here = 0.0, broker
    while halves.crossed[here] == 0.0 and hung.parent[here] != NONE:
        total += outside_hop(halves, hung, here)
        here = hung.parent[here]
    result: float = total + halves.extra[here]
    return result


@compiled
def routes_across(traffic: TreeTraffic, few: Longs) -> Ints:
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
    traffic: TreeTraffic,
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


@compiled
def reach_of(hung: Movable, rules: TreeRules, halves: Halves) -> HopReach:
    """What the limits need to know of the halves. O(brokers × pairs), or O(1) without limits."""
    limited = rules.diameter < NO_LIMIT or len(rules.hops) > 0
    size = len(hung.parent) if limited else 0
    span, widest = np.zeros(size, dtype=np.int32), 0
    if rules.diameter < NO_LIMIT:
        span, widest = spans(hung, halves)
    divided = np.flatnonzero(halves.small[rules.near] != halves.small[rules.far])
    away = np.zeros((len(divided), size), dtype=np.int32)
    for k in range(len(divided)):
        for end in (rules.near[divided[k]], rules.far[divided[k]]):
            hops_from(hung, end, away[k])
    return HopReach(limited, span, widest, away, rules.hops[divided])


@compiled
def hops_from(hung: Movable, broker: int, away: Ints) -> None:
    """Fill in the hops from a broker to all others of its half."""
    order = np.empty(len(hung.parent), dtype=np.int32)
    came = np.full(len(hung.parent), NONE, dtype=np.int32)
    order[0], away[broker] = broker, 0
    count, i = 1, 0
    while i < count:
        here = order[i]
        there = hung.parent[here]
        down = hung.first[here]
        while there != NONE or down != NONE:
            if there == NONE:
                there, down = down, hung.after[down]
            if there != came[here]:
                came[there], away[there] = here, away[here] + 1
                order[count] = there
                count += 1
            there = NONE
        i += 1


@compiled
def spans(hung: Movable, halves: Halves) -> tuple[Ints, int]:
    """Hops from each broker to the farthest in its half, and the most there are."""
    size = len(hung.parent)
    below, second = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
    above, span = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
    for i in range(size - 1, -1, -1):
        here = halves.order[i]
        up = hung.parent[here]
        if up != NONE:
            reach = below[here] + 1
            second[up] = max(second[up], min(reach, below[up]))
            below[up] = max(below[up], reach)
    for here in halves.order:
        up = hung.parent[here]
        if up != NONE:
            beside = second[up] if below[up] == below[here] + 1 else below[up]
            above[here] = 1 + max(above[up], beside)
        span[here] = max(below[here], above[here])
    return span, int(span.max())


@compiled
def too_far(rules: TreeRules, reach: HopReach, x: int, y: int) -> float:
    """By how much diameter and hops are exceeded if (x, y) joins the halves."""
    if not reach.limited:
        return 0.0
    span, away = reach.span, reach.away
    total = max(0, max(reach.widest, span[x] + 1 + span[y]) - rules.diameter)
    for k in range(len(reach.most)):
        total += max(0, away[k, x] + 1 + away[k, y] - reach.most[k])
    return float(total)


@compiled
def ends_to_try(hung: Movable, halves: Halves, side: int, reach: HopReach) -> Longs:
    """Brokers of a half that may end a new link: the cheapest for each span, ties by position.

    With hops limited also the next cheapest of all.
    """
    span, pairs = reach.span, len(reach.most)
    order = np.argsort(halves.extra, kind="mergesort")
    taken = np.zeros(span.max() + 1, dtype=np.bool_)
    found = np.empty(len(order), dtype=np.int64)
    count, others = 0, 0
    for i in order:
        if halves.small[i] != side or hung.room[i] <= 0:
            continue
        extra = pairs > 0 and others < MOST
        if extra or not taken[span[i]]:
            found[count] = i
            count += 1
            others += extra
        taken[span[i]] = True
    return found[:count]
