"""The best link to replace a given one, under the rules.

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
from fanplan.layers.overlay.search.judge import NO_LIMIT, Offers, SwapTerms, TreeRules, TreeTraffic
from fanplan.layers.overlay.search.movable import Movable, attach, detach, smaller_part

MOST = 24
"""Brokers of each half that are tried as ends of a new link when hops are limited."""


class Swap(NamedTuple):
    """Replace a link by (x, y), one of the offers or NONE of them: changes the objective so."""

    link: int
    x: int
    y: int
    offer: int
    change: float


@compiled
def next_swap(
    hung: Movable, terms: SwapTerms, queue: Longs, spare: int, least: float
) -> tuple[int, Swap]:
    """Visit links in turn until a swap lowers the objective by more than ``least``.

    Returns how many were visited, and the swap; its x is NONE if there is none.
    """
    for i in range(len(queue)):
        swap = best_swap(hung, terms, queue[i], spare)
        if swap.x != NONE and swap.change < -least:
            return i + 1, swap
    return len(queue), Swap(NONE, NONE, NONE, NONE, 0.0)


@compiled
def promise(hung: Movable, terms: SwapTerms, queue: Longs) -> Floats:
    """What the best swap of each link would change the objective by; 0 if there is none."""
    gain = np.zeros(len(queue))
    for i in range(len(queue)):
        swap = best_swap(hung, terms, queue[i], terms.rules.changes)
        gain[i] = 0.0 if swap.x == NONE else swap.change
    return gain


@compiled
def make_swap(hung: Movable, offers: Offers, swap: Swap) -> None:
    detach(hung, offers, swap.link)
    attach(hung, offers, swap.link, swap.x, swap.y, swap.offer)


@compiled
def best_swap(hung: Movable, terms: SwapTerms, link: int, spare: int) -> Swap:
    """The best link in place of one; x is NONE if there is none.

    ``spare`` new links may be added beside what this one leaves. Exact for limits on degree and
    diameter; with hop limits the cheapest ends are tried.
    """
    rules, offers = terms.rules, terms.offers
    # Before the cut, which gives both ends a place back: a link too many is a breach that goes.
    tight = hung.room[hung.a[link]] < 0, hung.room[hung.b[link]] < 0
    offer, length = hung.offer[link], hung.length[link]
    u, v = detach(hung, offers, link)
    far = rules.diameter < NO_LIMIT or len(rules.hops) > 0
    halves = cut_halves(hung, terms, u, v, far)
    reach = reach_of(hung, rules, halves)
    new = offers.tracked if offer == NONE else offers.new[offer]
    may_add = spare + new > 0
    found = best_offer(hung, terms, halves, reach, link, may_add)
    if offers.open and (may_add or not offers.tracked):
        found = best_pair(hung, terms, halves, reach, found)
    before = terms.breach * (too_far(rules, reach, u, v) + tight[0] + tight[1])
    before += terms.delay * halves.arrivals * length
    if offer == NONE:
        before += offers.fresh
    else:
        before += offers.price[offer] + terms.breach * (halves.messages > offers.most[offer])
    # The cut was only to look: the tree is as it was.
    attach(hung, offers, link, u, v, offer)
    return Swap(link, found.x, found.y, found.offer, found.change - before)


@compiled
def best_offer(
    hung: Movable, terms: SwapTerms, halves: Halves, reach: HopReach, link: int, may_add: bool
) -> Swap:
    """The best of the offers between the halves. O(offers at the smaller half × hops outside)."""
    rules, offers = terms.rules, terms.offers
    best = Swap(link, NONE, NONE, NONE, 0.0)
    for x in halves.few:
        for i in range(offers.at[x], offers.at[x + 1]):
            k = offers.near[i]
            y = offers.a[k] + offers.b[k] - x
            room = offers.shared[k] or (hung.room[x] > 0 and hung.room[y] > 0)
            if halves.small[y] or not room or (offers.new[k] and not may_add):
                continue
            change = extra_at(halves, hung, x) + extra_at(halves, hung, y) + offers.price[k]
            change += terms.delay * halves.arrivals * offers.latency[k]
            change += terms.breach * too_far(rules, reach, x, y)
            change += terms.breach * (halves.messages > offers.most[k])
            if best.x == NONE or change < best.change:
                best = Swap(link, x, y, k, change)
    return best


@compiled
def best_pair(hung: Movable, terms: SwapTerms, halves: Halves, reach: HopReach, best: Swap) -> Swap:
    """The best of all pairs between the halves, if it is better than the best offer."""
    rules, offers = terms.rules, terms.offers
    own = terms.delay * halves.arrivals + offers.fresh
    if reach.limited:
        ones, others = ends_to_try(hung, halves, 0, reach), ends_to_try(hung, halves, 1, reach)
    else:
        ones, others = cheapest_end(hung, halves, halves.u), cheapest_end(hung, halves, halves.v)
    for x in ones:
        for y in others:
            change = halves.extra[x] + halves.extra[y] + own
            change += terms.breach * too_far(rules, reach, x, y)
            if best.x == NONE or change < best.change:
                best = Swap(best.link, x, y, NONE, change)
    return best


@compiled
def cheapest_end(hung: Movable, halves: Halves, root: int) -> Longs:
    """The broker with room and the least f in the half below a root, or none if all are full.

    Outside f only grows, so a way outwards ends where nothing better can follow.
    """
    order, extra = np.empty(len(halves.extra), dtype=np.int32), halves.extra
    order[0] = root
    count, i, best = 1, 0, NONE
    while i < count:
        here = order[i]
        if hung.room[here] > 0 and (best == NONE or extra[here] < extra[best]):
            best = here
        child = hung.first[here]
        while child != NONE:
            if halves.crossed[child] == 0.0:
                extra[child] = extra[here] + outside_hop(halves, hung, child)
            if halves.crossed[child] > 0.0 or best == NONE or extra[child] < extra[best]:
                order[count] = child
                count += 1
            child = hung.after[child]
        i += 1
    return np.full(int(best != NONE), best, dtype=np.int64)


# ---- the halves of a cut tree


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
def cut_halves(hung: Movable, terms: SwapTerms, u: int, v: int, all: bool) -> Halves:
    """Sweep the halves that hang from u and v, with or without what is outside.

    O(smaller half + ways from the ends of the routes that crossed to the link), or of all brokers.
    """
    size = len(hung.parent)
    few = smaller_part(hung, u, v)
    small = np.zeros(size, dtype=np.int8)
    small[few] = 1
    crossed, load = np.zeros(size), np.zeros(size)
    crossing = routes_across(terms.traffic, few)
    messages, arrivals = count_halves(hung, terms.traffic, crossing, small, crossed, load)
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
            more = terms.message * (messages - crossed[here])
            apart = terms.delay * (arrivals - 2 * load[here])
            extra[here] = extra[above] + more + hung.length[hung.link[here]] * apart
    hop = (terms.message * messages, terms.delay * arrivals)
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
        # Fewer ends on this side than it has: the others are beyond.
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
            # Further ends join the way of the first: the join nearest to the link has met all.
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
            # The longest way down from the parent may be through this very child.
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
