"""The best link to replace a given one, under the rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fanplan.kernels import compiled
from fanplan.planners.overlay.halves import Halves, Linked, cut, length_of
from fanplan.planners.overlay.limits import NO_LIMIT, Rules
from fanplan.planners.overlay.traffic import Traffic
from fanplan.planners.overlay.tree import NONE, walk
from fanplan.problem.interest import Floats, Ints, Longs

Flags = NDArray[np.bool_]

MOST = 24
"""Brokers of each half that are tried as ends of a new link when hops are limited."""


class Prices(NamedTuple):
    """What a message on a link, a unit of delay and a unit of link cost add to the objective.

    ``breach`` is for each unit by which a rule is broken: more than any tree costs.
    """

    message: float
    delay: float
    cost: float
    breach: float


class Offers(NamedTuple):
    """Links that may be used, or none: then any two brokers, with delay 1 and no cost."""

    a: Longs
    b: Longs
    latency: Floats
    most: Floats
    """messages over the window"""
    cost: Floats


class Reach(NamedTuple):
    """How far brokers are from others of their half: what diameter and hops depend on.

    ``span`` is the most hops to any other and ``widest`` the largest span, both 0 if the diameter
    is not limited. For the pairs that the cut divides, ``away`` has hops to the pair's broker in
    the same half, and ``most`` the pair's limit.
    """

    span: Ints
    widest: int
    away: Ints
    most: Ints


class Swap(NamedTuple):
    """Replace the cut link by (x, y), which changes the objective by ``change``."""

    x: int
    y: int
    change: float


@compiled
def best_swap(
    linked: Linked, traffic: Traffic, rules: Rules, prices: Prices, offers: Offers, u: int, v: int
) -> Swap:
    """The best link in place of (u, v); x is NONE if there is none.

    Exact for degree and diameter limits; with hop limits the MOST cheapest ends are tried.
    """
    halves = cut(linked, traffic, u, v, prices.message, prices.delay)
    room = np.empty(len(halves.half), dtype=np.bool_)
    for i in range(len(room)):
        links = linked.starts[i + 1] - linked.starts[i] - (i in (u, v))
        room[i] = links < rules.degree[i]
    reach = reach_of(linked, rules, halves, u, v)
    relief = prices.breach * broken(linked, rules, reach, u, v)
    if len(offers.a):
        return best_offer(linked, rules, prices, offers, halves, room, reach, relief, u, v)
    best = Swap(NONE, NONE, 0.0)
    ones = ends_to_try(halves, 0, room, reach)
    others = ends_to_try(halves, 1, room, reach)
    for x in ones:
        for y in others:
            change = halves.extra[x] + halves.extra[y] - relief
            change += prices.breach * too_far(rules, reach, x, y)
            if best.x == NONE or change < best.change:
                best = Swap(x, y, change)
    return best


@compiled
def broken(linked: Linked, rules: Rules, reach: Reach, u: int, v: int) -> float:
    """Breaches that end when the link (u, v) goes: of degrees, of the diameter, and of hops."""
    total = too_far(rules, reach, u, v)
    for end in (u, v):
        total += linked.starts[end + 1] - linked.starts[end] > rules.degree[end]
    return total


@compiled
def too_far(rules: Rules, reach: Reach, x: int, y: int) -> float:
    """By how much diameter and hops are exceeded if (x, y) joins the halves."""
    span, away = reach.span, reach.away
    total = max(0, max(reach.widest, span[x] + 1 + span[y]) - rules.diameter)
    for k in range(len(reach.most)):
        total += max(0, away[k, x] + 1 + away[k, y] - reach.most[k])
    return float(total)


@compiled
def ends_to_try(halves: Halves, side: int, room: Flags, reach: Reach) -> Longs:
    """Brokers of a half that may end a new link: the cheapest for each span, ties by position.

    With hops limited also the next cheapest of all.
    """
    span, pairs = reach.span, len(reach.most)
    order = np.argsort(halves.extra, kind="mergesort")
    taken = np.zeros(span.max() + 1, dtype=np.bool_)
    found = np.empty(len(order), dtype=np.int64)
    count, others = 0, 0
    for i in order:
        if halves.half[i] != side or not room[i]:
            continue
        extra = pairs > 0 and others < MOST
        if extra or not taken[span[i]]:
            found[count] = i
            count += 1
            others += extra
        taken[span[i]] = True
    return found[:count]


@compiled
def spans(halves: Halves) -> tuple[Ints, int]:
    """Hops from each broker to the farthest in its half, and the most there are."""
    size = len(halves.half)
    below, second = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
    above, span = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
    for i in range(size - 1, -1, -1):
        here = halves.order[i]
        up = halves.parent[here]
        if up != NONE:
            reach = below[here] + 1
            second[up] = max(second[up], min(reach, below[up]))
            below[up] = max(below[up], reach)
    for here in halves.order:
        up = halves.parent[here]
        if up != NONE:
            beside = second[up] if below[up] == below[here] + 1 else below[up]
            above[here] = 1 + max(above[up], beside)
        span[here] = max(below[here], above[here])
    return span, int(span.max())


@compiled
def reach_of(linked: Linked, rules: Rules, halves: Halves, u: int, v: int) -> Reach:
    """What the limits on diameter and hops need to know of the halves. O(brokers × pairs)."""
    size = len(halves.half)
    span, widest = np.zeros(size, dtype=np.int32), 0
    if rules.diameter < NO_LIMIT:
        span, widest = spans(halves)
    divided = np.flatnonzero(halves.half[rules.near] != halves.half[rules.far])
    away = np.zeros((len(divided), size), dtype=np.int32)
    for k in range(len(divided)):
        for end in (rules.near[divided[k]], rules.far[divided[k]]):
            order, _, depth = walk(linked.starts, linked.near, end, u, v)
            for broker in order:
                away[k, broker] = depth[broker]
    return Reach(span, widest, away, rules.hops[divided])


@compiled
def best_offer(
    linked: Linked,
    rules: Rules,
    prices: Prices,
    offers: Offers,
    halves: Halves,
    room: Flags,
    reach: Reach,
    relief: float,
    u: int,
    v: int,
) -> Swap:
    """The best of the given links between the halves. O(links)."""
    best = Swap(NONE, NONE, 0.0)
    before = prices.delay * halves.arrivals * length_of(linked, u, v) + relief
    for k in range(len(offers.a)):
        x, y = offers.a[k], offers.b[k]
        if halves.half[x] == 1:
            x, y = y, x
        if halves.half[x] == halves.half[y]:
            continue
        if x == u and y == v:
            crowded = halves.messages > offers.most[k]
            before += prices.cost * offers.cost[k] + prices.breach * crowded
        elif room[x] and room[y]:
            change = halves.extra[x] + halves.extra[y] + prices.cost * offers.cost[k]
            change += prices.delay * halves.arrivals * offers.latency[k]
            change += prices.breach * too_far(rules, reach, x, y)
            change += prices.breach * (halves.messages > offers.most[k])
            if best.x == NONE or change < best.change:
                best = Swap(x, y, change)
    return Swap(best.x, best.y, best.change - before)
