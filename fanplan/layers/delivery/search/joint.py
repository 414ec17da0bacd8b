"""One budget for all: channels, members and direct unicast at the prices of all layers.

It begins with the layers one after the other and takes only what costs less, so it never costs
more than they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Ints
from fanplan.core.stop import Stop, part_of
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import ChannelMap, map_pairs
from fanplan.layers.delivery.ledger import DeliveryLedger, delivery_ledger
from fanplan.layers.delivery.problem import DeliveryProblem
from fanplan.layers.delivery.record import Delivery
from fanplan.layers.delivery.search.in_turn import layer_by_layer, with_groups
from fanplan.layers.delivery.search.params import DeliveryParams
from fanplan.layers.delivery.search.refine import DeliverySearch, Shadow
from fanplan.layers.groups.search.choose import benefit, candidates_of

ROUNDS = 3
"""Most times that entries and groups are priced again."""


DEARER = (1.5, 2.0)
"""How much dearer unicast is made when channels are planned: whom they leave out needs brokers."""


FIRST = 0.5
"""Share of the time that is left for the channels of a start, if time is limited."""


PRICES = 16
"""Prices of unicast that are tried to keep its limit."""


@dataclass(frozen=True, eq=False)
class JudgedDelivery:
    """A delivery with its ledger and its cost."""

    delivery: Delivery
    ledger: DeliveryLedger
    cost: float


def joint_delivery(
    problem: DeliveryProblem, params: DeliveryParams, seed: int, stop: Stop
) -> tuple[JudgedDelivery, JudgedDelivery]:
    """The best delivery found, and the one that the layers one after the other come to."""
    begun = layer_by_layer(problem, params, seed, part_of(stop, FIRST))
    first = judge_delivery(problem, params, begun)
    best = improved_delivery(problem, params, first, stop)
    for dearer in DEARER if starts_again(problem, params) else ():
        if stop(best.cost):
            break
        begun = layer_by_layer(problem, params, seed, part_of(stop, FIRST), dearer)
        start = judge_delivery(problem, params, begun)
        best = better(best, improved_delivery(problem, params, start, stop), params)
    return best, first


def starts_again(problem: DeliveryProblem, params: DeliveryParams) -> bool:
    """Other starts are for channels that save brokers, where each does not take many searches."""
    return bool(params.channels and problem.homes and params.unicast_limit is None)


def delivery_on_channels(
    problem: DeliveryProblem, params: DeliveryParams, map: ChannelMap, domain: Ints, stop: Stop
) -> tuple[JudgedDelivery, JudgedDelivery]:
    """The best delivery found on these channels, and the one where nothing is sent directly."""
    nobody = np.zeros(problem.interest.size, bool)
    first = judge_delivery(problem, params, with_groups(problem, params, map, domain, nobody))
    # A class that is on no channel decides as if there were none.
    free = map.assigned.counts(problem.interest.size) == 0
    alone = DeliverySearch(problem, params, without_channels(problem, params))
    direct = alone.at(Shadow(shared=shared_groups(first.delivery)), stop).direct & free
    found = judge_delivery(problem, params, with_groups(problem, params, map, domain, direct))
    return better(first, found, params), first


def improved_delivery(
    problem: DeliveryProblem, params: DeliveryParams, start: JudgedDelivery, stop: Stop
) -> JudgedDelivery:
    """Refine a delivery; then again, with entries and groups at the prices that it has."""
    best = start
    # A price of unicast takes many searches, and further rounds gain next to nothing then.
    for _ in range(ROUNDS if params.unicast_limit is None else 1):
        if stop(best.cost):
            break
        shadow = Shadow(price_of_entry(best.delivery, params), 0.0, shared_groups(best.delivery))
        found = better(best, within_unicast_limit(problem, params, best, shadow, stop), params)
        if found is best:
            break
        best = found
    return best


def within_unicast_limit(
    problem: DeliveryProblem,
    params: DeliveryParams,
    start: JudgedDelivery,
    shadow: Shadow,
    stop: Stop,
) -> JudgedDelivery:
    """The best near the start that keeps the limit on unicast, by a price of unicast that does."""
    search, low, high = DeliverySearch(problem, params, start.delivery), 0.0, np.inf
    best = judge_delivery(problem, params, search.at(shadow, stop))
    for _ in range(0 if keeps(best, params) else PRICES):
        if stop(start.cost):
            break
        price = (low + high) / 2 if high < np.inf else 2 * low + params.prices.unicast
        found = judge_delivery(problem, params, search.at(shadow._replace(unicast=price), stop))
        low, high = (low, price) if keeps(found, params) else (price, high)
        best = better(best, found, params)
    return best


def judge_delivery(
    problem: DeliveryProblem, params: DeliveryParams, delivery: Delivery
) -> JudgedDelivery:
    ledger = delivery_ledger(problem, delivery)
    return JudgedDelivery(delivery, ledger, ledger.cost(params.prices))


def better(one: JudgedDelivery, other: JudgedDelivery, params: DeliveryParams) -> JudgedDelivery:
    """The other if it costs less, by more than rounding, or keeps a limit that this one breaks."""
    if keeps(one, params) != keeps(other, params):
        return one if keeps(one, params) else other
    return other if other.cost < one.cost * (1 - 1e-9) else one


def keeps(judged: JudgedDelivery, params: DeliveryParams) -> bool:
    """Whether the limit on unicast holds; those on channels and entries always do."""
    limit = params.unicast_limit
    return limit is None or judged.ledger.counted_fraction <= limit * (1 + 1e-12)


def without_channels(problem: DeliveryProblem, params: DeliveryParams) -> Delivery:
    """Brokers alone."""
    map = completed(problem.interest, 0, map_pairs([], []), map_pairs([], []))
    nobody = np.zeros(problem.interest.size, bool)
    return with_groups(problem, params, map, np.empty(0, np.int32), nobody)


def price_of_entry(delivery: Delivery, params: DeliveryParams) -> float:
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


def shared_groups(delivery: Delivery) -> float:
    """Groups for each parcel in one: parcels with the same ends share what setting up costs."""
    group = delivery.groups.group
    users = int(delivery.selected[group[group >= 0]].sum())
    return float(delivery.selected.sum()) / users if users else 1.0
