"""How far brokers of a cut tree are from others: what limits on diameter and hops depend on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.search.halves import Halves
from fanplan.layers.overlay.search.limits import NO_LIMIT, Rules
from fanplan.layers.overlay.search.movable import Movable

MOST = 24
"""Brokers of each half that are tried as ends of a new link when hops are limited."""


class Reach(NamedTuple):
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
def reach_of(hung: Movable, rules: Rules, halves: Halves) -> Reach:
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
    return Reach(limited, span, widest, away, rules.hops[divided])


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
def too_far(rules: Rules, reach: Reach, x: int, y: int) -> float:
    """By how much diameter and hops are exceeded if (x, y) joins the halves."""
    if not reach.limited:
        return 0.0
    span, away = reach.span, reach.away
    total = max(0, max(reach.widest, span[x] + 1 + span[y]) - rules.diameter)
    for k in range(len(reach.most)):
        total += max(0, away[k, x] + 1 + away[k, y] - reach.most[k])
    return float(total)


@compiled
def ends_to_try(hung: Movable, halves: Halves, side: int, reach: Reach) -> Longs:
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
