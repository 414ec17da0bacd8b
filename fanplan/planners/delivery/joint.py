"""One budget for all: layers are planned in turn, each knowing what the others cost.

It begins with the layers one after the other and takes only what costs less, so it never costs
more than they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.plan.channels.types import ChannelMap, pairs
from fanplan.plan.delivery.ledger import DeliveryLedger, delivery_ledger
from fanplan.plan.delivery.types import Delivery
from fanplan.planners.delivery.decide import Decided, Shadow, decide
from fanplan.planners.delivery.layers import (
    completed,
    layer_by_layer,
    plan_domains,
    spread,
    with_groups,
)
from fanplan.planners.delivery.options import TODAY, WHOLE, Options, options_of
from fanplan.planners.delivery.params import DeliveryParams
from fanplan.planners.groups.benefit import benefit, candidates_of
from fanplan.planners.stop import Stop
from fanplan.problem.delivery import DeliveryProblem
from fanplan.problem.interest import Ints

ROUNDS = 8
"""Most times that all layers are planned again."""

DEARER = (1.0, 2.0, 4.0)
"""What unicast is taken to cost when channels are planned, as whom they leave out needs brokers."""

MOST = 1000.0
"""The price of unicast at which the search for one that keeps its limit gives up."""

HALVINGS = 8
"""Steps in the search for a price of unicast that keeps its limit."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A delivery with its ledger and its cost."""

    delivery: Delivery
    ledger: DeliveryLedger
    cost: float


def judge(problem: DeliveryProblem, params: DeliveryParams, delivery: Delivery) -> Judged:
    ledger = delivery_ledger(problem, delivery)
    return Judged(delivery, ledger, ledger.cost(params.prices))


def joint_delivery(
    problem: DeliveryProblem, params: DeliveryParams, seed: int, stop: Stop
) -> tuple[Judged, Judged]:
    """The best delivery found, and the one that the layers one after the other come to."""
    first = judge(problem, params, layer_by_layer(problem, params, seed, stop))
    best = improve(problem, params, first, 1.0, seed, stop)
    for dearer in DEARER if params.channels and problem.domains else ():
        start = judge(problem, params, layer_by_layer(problem, params, seed, stop, dearer))
        found = improve(problem, params, start, dearer, seed, stop)
        best = found if improves(found, best, params) else best
    found = improve(
        problem, params, judge(problem, params, without_channels(problem, params)), 1.0, seed, stop
    )
    return found if improves(found, best, params) else best, first


def without_channels(problem: DeliveryProblem, params: DeliveryParams) -> Delivery:
    """Brokers alone."""
    map = completed(problem.interest, 0, pairs([], []), pairs([], []))
    nobody = np.zeros(problem.interest.size, bool)
    return with_groups(problem, params, map, np.empty(0, np.int32), nobody)


def keeps(judged: Judged, params: DeliveryParams) -> bool:
    """Whether the limit on unicast holds; those on channels and entries always do."""
    limit = params.unicast_limit
    return limit is None or judged.ledger.unicast_fraction <= limit * (1 + 1e-12)


def improve(
    problem: DeliveryProblem,
    params: DeliveryParams,
    start: Judged,
    dearer: float,
    seed: int,
    stop: Stop,
) -> Judged:
    """Decide by class, then plan the channels anew for what stays on them, until nothing helps."""
    best = start
    for _ in range(ROUNDS):
        if stop(best.cost):
            break
        decided = judge(problem, params, decide_again(problem, params, best.delivery))
        tried = [
            decided,
            judge(problem, params, channels_again(problem, params, decided, dearer, seed, stop)),
        ]
        better = [found for found in tried if improves(found, best, params)]
        if not better:
            break
        best = min(better, key=lambda found: found.cost)
    return best


def improves(found: Judged, best: Judged, params: DeliveryParams) -> bool:
    """Whether it costs less, by more than rounding, or keeps a limit that the other breaks."""
    if keeps(found, params) != keeps(best, params):
        return keeps(found, params)
    return found.cost < best.cost * (1 - 1e-9)


def decide_again(problem: DeliveryProblem, params: DeliveryParams, delivery: Delivery) -> Delivery:
    """All classes decide, at the price of unicast that keeps its limit."""
    options = options_of(problem, delivery.map, delivery.domain, params.prices)
    entry = entry_price(delivery, params)

    def at(unicast: float) -> Delivery:
        decided = decide(problem, options, params, Shadow(entry, unicast))
        return carried_out(problem, params, delivery, options, decided)

    low, high, found = 0.0, 0.0, at(0.0)
    while not keeps(judge(problem, params, found), params) and high < MOST:
        low, high = high, 2 * high + params.prices.unicast
        found = at(high)
    for _ in range(HALVINGS if high else 0):
        middle = (low + high) / 2
        tried = at(middle)
        if keeps(judge(problem, params, tried), params):
            found, high = tried, middle
        else:
            low = middle
    return found


def entry_price(delivery: Delivery, params: DeliveryParams) -> float:
    """What the least of the chosen groups gains for an entry; 0 unless entries have run out."""
    if not params.entries:
        return 0.0
    weighed = candidates_of(delivery.groups)
    worth = benefit(weighed, "saving", params.groups.prices)
    paying = (worth > 0) & (weighed.entries > 0)
    if not (paying & ~delivery.selected).any() or not (paying & delivery.selected).any():
        return 0.0
    each = worth[paying & delivery.selected] / weighed.entries[paying & delivery.selected]
    return float(each.min())


def carried_out(
    problem: DeliveryProblem,
    params: DeliveryParams,
    delivery: Delivery,
    options: Options,
    decided: Decided,
) -> Delivery:
    """The delivery in which all classes do as decided."""
    map, segments = delivery.map, problem.segments
    row = segments.row
    routed = ~decided.direct[row]
    whole = routed & (decided.option == WHOLE)
    today = np.flatnonzero(routed & (decided.option == TODAY))
    position, channel = spread(map.assigned.starts(problem.interest.size), map.assigned.right,
                               row[today])  # fmt: skip
    here = delivery.domain[channel] == segments.domain[today[position]]
    assigned = pairs(
        np.concatenate((row[whole], row[today[position[here]]])),
        np.concatenate((options.whole[whole], channel[here])),
    )
    new = completed(problem.interest, map.channels, assigned, map.members)
    return with_groups(problem, params, new, delivery.domain, decided.direct)


def channels_again(
    problem: DeliveryProblem,
    params: DeliveryParams,
    judged: Judged,
    dearer: float,
    seed: int,
    stop: Stop,
) -> Delivery:
    """Channels planned anew for the segments that use any; others keep off them."""
    delivery = judged.delivery
    using = uses_channels(problem, delivery.map, delivery.domain)
    messages = np.where(using, problem.interest.messages[problem.segments.row], 0.0)
    map, domain = plan_domains(problem, params, messages, dearer, seed, stop)
    return with_groups(problem, params, map, domain, delivery.direct)


def uses_channels(problem: DeliveryProblem, map: ChannelMap, domain: Ints) -> np.ndarray:
    """Which segments have a channel."""
    segments = problem.segments
    key = np.unique(map.assigned.left.astype(np.int64) * (problem.domains + 1)
                    + domain[map.assigned.right])  # fmt: skip
    return np.isin(segments.row * (problem.domains + 1) + segments.domain, key)
