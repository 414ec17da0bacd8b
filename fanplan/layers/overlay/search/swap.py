"""The best link to replace a given one, under the rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.search.halves import (
    Halves,
    HopReach,
    cut_halves,
    ends_to_try,
    extra_at,
    outside_hop,
    reach_of,
    too_far,
)
from fanplan.layers.overlay.search.judge import NO_LIMIT, SwapTerms
from fanplan.layers.overlay.search.movable import Movable, attach, detach
from fanplan.layers.overlay.search.offers import Offers


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
    _, rules, prices, offers = terms
    tight = hung.room[hung.a[link]] < 0, hung.room[hung.b[link]] < 0
    offer, length = hung.offer[link], hung.length[link]
    u, v = detach(hung, offers, link)
    far = rules.diameter < NO_LIMIT or len(rules.hops) > 0
    halves = cut_halves(hung, terms.traffic, u, v, prices.message, prices.delay, far)
    reach = reach_of(hung, rules, halves)
    new = offers.tracked if offer == NONE else offers.new[offer]
    may_add = spare + new > 0
    found = best_offer(hung, terms, halves, reach, link, may_add)
    if offers.open and (may_add or not offers.tracked):
        found = best_pair(hung, terms, halves, reach, found)
    before = prices.breach * (too_far(rules, reach, u, v) + tight[0] + tight[1])
    before += prices.delay * halves.arrivals * length
    if offer == NONE:
        before += offers.fresh
    else:
        before += offers.price[offer] + prices.breach * (halves.messages > offers.most[offer])
    attach(hung, offers, link, u, v, offer)
    return Swap(link, found.x, found.y, found.offer, found.change - before)


@compiled
def best_offer(
    hung: Movable, terms: SwapTerms, halves: Halves, reach: HopReach, link: int, may_add: bool
) -> Swap:
    """The best of the offers between the halves. O(offers at the smaller half × hops outside)."""
    _, rules, prices, offers = terms
    best = Swap(link, NONE, NONE, NONE, 0.0)
    for x in halves.few:
        for i in range(offers.at[x], offers.at[x + 1]):
            k = offers.near[i]
            y = offers.a[k] + offers.b[k] - x
            room = offers.shared[k] or (hung.room[x] > 0 and hung.room[y] > 0)
            if halves.small[y] or not room or (offers.new[k] and not may_add):
                continue
            change = extra_at(halves, hung, x) + extra_at(halves, hung, y) + offers.price[k]
            change += prices.delay * halves.arrivals * offers.latency[k]
            change += prices.breach * too_far(rules, reach, x, y)
            change += prices.breach * (halves.messages > offers.most[k])
            if best.x == NONE or change < best.change:
                best = Swap(link, x, y, k, change)
    return best


@compiled
def best_pair(hung: Movable, terms: SwapTerms, halves: Halves, reach: HopReach, best: Swap) -> Swap:
    """The best of all pairs between the halves, if it is better than the best offer."""
    _, rules, prices, offers = terms
    own = prices.delay * halves.arrivals + offers.fresh
    if reach.limited:
        ones, others = ends_to_try(hung, halves, 0, reach), ends_to_try(hung, halves, 1, reach)
    else:
        ones, others = cheapest_end(hung, halves, halves.u), cheapest_end(hung, halves, halves.v)
    for x in ones:
        for y in others:
            change = halves.extra[x] + halves.extra[y] + own
            change += prices.breach * too_far(rules, reach, x, y)
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
