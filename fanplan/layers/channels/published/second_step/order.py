"""Second steps that move the lightest or the heaviest items first, whatever that does to the cost.

Weight is the bandwidth that the whole item needs by unicast (section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.second_step.items import Items
from fanplan.layers.channels.published.second_step.served import (
    BY_UNICAST,
    COST,
    Delivery,
    channel_map,
    deliver,
    fits,
    send_by_unicast,
)

if TYPE_CHECKING:
    from fanplan.core.stop import Stop
    from fanplan.layers.channels.published.params import HybridParams


def lightest_first(items: Items) -> Longs:
    return np.argsort(items.weight, kind="stable")


def heaviest_first(items: Items) -> Longs:
    return np.argsort(-items.weight, kind="stable")


def in_order(
    items: Callable[[InterestProblem], Items],
    ranking: Callable[[Items], Longs],
    problem: InterestProblem,
    map: ChannelMap,
    params: HybridParams,
    stop: Stop,
) -> ChannelMap:
    """Section 4.2, "non-iterative": move items in order up to the limit of unicast.

    The map is the cheapest met on the way, or the last one if ``forced``. An item that does not
    fit under the limit is passed over. O(pairs).
    """
    movable = items(problem)
    order = ranking(movable)
    state = deliver(problem, map, params.weights)
    before = state.totals[COST]
    path = order_path(state, movable, order, params.unicast_limit)
    if not params.forced:
        best = int(np.argmin(np.append(before, path[:, COST])))
        state = deliver(problem, map, params.weights)
        order_path(state, movable, order, params.unicast_limit, best)
    return channel_map(problem, state)


def order_path(
    state: Delivery, items: Items, order: Longs, limit: float, moves: int | None = None
) -> Floats:
    """Make all moves in order, or the first few; the totals after each, as ``greedy_path``."""
    path = np.empty((len(order) if moves is None else moves, len(state.totals)))
    return path[: move_in_order(state, items, order, limit, path)]


@compiled
def move_in_order(state: Delivery, items: Items, order: Longs, limit: float, path: Floats) -> int:
    """As many moves as fit under the limit and ``path`` has room for; the number made."""
    moved = 0
    for item in order:
        if moved == len(path):
            break
        pairs = items.pairs[items.starts[item] : items.starts[item + 1]]
        if fits(state, pairs, limit):
            for p in pairs:
                if state.entry[p] != BY_UNICAST:
                    send_by_unicast(state, p)
            path[moved] = state.totals
            moved += 1
    return moved
