"""Second steps that take a map as it is: the greedy ones, and those in an order of weight.

Greedy: again and again the item whose move lowers the cost most. In order: the lightest or the
heaviest items first, whatever that does to the cost; weight is the bandwidth that the whole item
needs by unicast (section 4.2).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.channels.published.second_step.moving_pairs import (
    BY_UNICAST,
    COST,
    FLOW,
    USER,
    Items,
    Served,
    fits_limit,
    send_by_unicast,
    served_by_map,
    served_map,
)

ROUNDS = 10
"""How often ``stop`` is asked while all items move; the heap is built anew each time."""
NEGLIGIBLE = 1e-12
"""A gain below this share of the cost is a rounding error."""
Heap = list[tuple[float, int]]

DONE = -np.inf
"""Stored for an item that has moved, been passed over or was never carried."""


def greedy(
    items: Callable[[InterestProblem], Items],
    problem: InterestProblem,
    map: ChannelMap,
    params: HybridParams,
    stop: Stop,
) -> ChannelMap:
    """Section 4.2: move items while the cost falls and the limit of unicast allows it.

    An item that no longer fits under the limit is passed over. Each move takes time in its pairs
    and a few steps on a heap.
    """
    state = served_by_map(problem, map, params.weights)
    for _ in greedy_path(state, items(problem), params, stop):
        pass
    return served_map(problem, state)


def greedy_path(state: Served, items: Items, params: HybridParams, stop: Stop) -> Iterator[Floats]:
    """Make the moves; yields the totals (cost, multicast, unicast) after each, in parts."""
    least_gain = -np.inf if params.forced else NEGLIGIBLE * state.totals[COST]
    path = np.empty((len(items.weight) // ROUNDS + 1, len(state.totals)))
    moved = len(path)
    while moved == len(path) and not stop(float(state.totals[COST])):
        moved = move_best(state, items, params.unicast_limit, least_gain, path)
        yield path[:moved].copy()


@compiled
def move_best(state: Served, items: Items, limit: float, least_gain: float, path: Floats) -> int:
    """As many greedy moves as ``path`` has room for the totals after each; the number made.

    A stored change is never above the true one: channels only lose members and load, which makes
    a move worth less, and the one thing that makes it worth more (something that is left alone)
    stores the change anew. So the top of the heap, once confirmed, is the best of all.
    """
    stored = np.full(len(items.weight), DONE)
    heap = [(0.0, 0)]
    heap.pop()
    for item in range(len(items.weight)):
        if is_carried(state, items, item):
            store(heap, stored, item, item_change(state, items.kind, item))
    moved = 0
    while len(heap) > 0 and moved < len(path):
        was, item = heapq.heappop(heap)
        if was != stored[item]:
            continue
        change = item_change(state, items.kind, item)
        if change > was:
            store(heap, stored, item, change)
        elif -change <= least_gain:
            break
        else:
            stored[item] = DONE
            pairs = items.pairs[items.starts[item] : items.starts[item + 1]]
            if fits_limit(state, pairs, limit):
                move_item(state, items.kind, pairs, heap, stored)
                path[moved] = state.totals
                moved += 1
    return moved


@compiled
def item_change(state: Served, kind: int, item: int) -> float:
    """What moving an item adds to the cost."""
    if kind == FLOW:
        return flow_change(state, item)
    if kind == USER:
        return user_change(state, item)
    return pair_change(state, item)


@compiled
def pair_change(state: Served, pair: int) -> float:
    """What moving a pair to unicast adds to the cost (Eq. 1), less than 0 if it pays. O(1).

    It can pay only if the subscriber then leaves the channel or the row does.
    """
    e = state.entry[pair]
    if e == BY_UNICAST:
        return 0.0
    j, rate = state.channel[e], state.rate[state.row[pair]]
    change: float = state.unicast * rate
    members = state.sizes[j]
    if state.needs[state.subscriber[pair], j] == 1:
        change -= state.received * state.loads[j]
        members -= 1
    if state.receivers[e] == 1:
        change -= rate * (state.sent + state.received * members)
    return change


@compiled
def flow_change(state: Served, row: int) -> float:
    """What moving a row to unicast adds to the cost (Eq. 1), less than 0 if it pays.

    The members of its channels no longer receive it, and those who needed nothing else leave.
    O(channels of the row).
    """
    rate = state.rate[row]
    change = 0.0
    for e in range(state.entries[row], state.entries[row + 1]):
        if state.receivers[e] > 0:
            j = state.channel[e]
            change += state.unicast * rate * state.receivers[e]
            change -= rate * (state.sent + state.received * state.sizes[j])
            change -= state.received * state.lone[e] * (state.loads[j] - rate)
    return change


@compiled
def user_change(state: Served, subscriber: int) -> float:
    """What moving a subscriber to unicast adds to the cost (Eq. 1), less than 0 if it pays.

    The subscriber leaves all channels, and rows that nobody else gets there leave them too.
    O(channels).
    """
    change: float = state.unicast * state.carried[subscriber]
    for j in range(len(state.sizes)):
        if state.needs[subscriber, j] > 0:
            others = state.sizes[j] - 1
            change -= state.received * state.loads[j]
            change -= state.sole[subscriber, j] * (state.sent + state.received * others)
    return change


@compiled
def is_carried(state: Served, items: Items, item: int) -> bool:
    """Whether a channel carries any of the item's pairs."""
    for p in items.pairs[items.starts[item] : items.starts[item + 1]]:
        if state.entry[p] != BY_UNICAST:
            return True
    return False


@compiled
def store(heap: Heap, stored: Floats, item: int, change: float) -> None:
    stored[item] = change
    heapq.heappush(heap, (change, item))


@compiled
def move_item(state: Served, kind: int, pairs: np.ndarray, heap: Heap, stored: Floats) -> None:
    """Move an item's pairs; whatever is left alone by that is now worth more."""
    for p in pairs:
        e = state.entry[p]
        if e == BY_UNICAST:
            continue
        h, j = state.subscriber[p], state.channel[e]
        send_by_unicast(state, p)
        if kind != USER and state.needs[h, j] == 1:
            revalue(heap, stored, state, kind, state.need_sum[h, j])
        if kind != FLOW and state.receivers[e] == 1:
            revalue(heap, stored, state, kind, state.receiver_sum[e])


@compiled
def revalue(heap: Heap, stored: Floats, state: Served, kind: int, pair: int) -> None:
    """Store the change of the pair's item anew if it is lower than is known."""
    item = pair
    if kind == FLOW:
        item = state.row[pair]
    elif kind == USER:
        item = state.subscriber[pair]
    if stored[item] != DONE:
        change = item_change(state, kind, item)
        if change < stored[item]:
            store(heap, stored, item, change)


def move_by_weight(
    items: Callable[[InterestProblem], Items],
    ranking: Callable[[Items], Longs],
    problem: InterestProblem,
    map: ChannelMap,
    params: HybridParams,
    _stop: Stop,
) -> ChannelMap:
    """Section 4.2, "non-iterative": move items in order up to the limit of unicast.

    The map is the cheapest met on the way, or the last one if ``forced``. An item that does not
    fit under the limit is passed over. O(pairs).
    """
    movable = items(problem)
    order = ranking(movable)
    state = served_by_map(problem, map, params.weights)
    before = state.totals[COST]
    path = order_path(state, movable, order, params.unicast_limit)
    if not params.forced:
        best = int(np.argmin(np.append(before, path[:, COST])))
        state = served_by_map(problem, map, params.weights)
        order_path(state, movable, order, params.unicast_limit, best)
    return served_map(problem, state)


def lightest_first(items: Items) -> Longs:
    return np.argsort(items.weight, kind="stable")


def heaviest_first(items: Items) -> Longs:
    return np.argsort(-items.weight, kind="stable")


def order_path(
    state: Served, items: Items, order: Longs, limit: float, moves: int | None = None
) -> Floats:
    """Make all moves in order, or the first few; the totals after each, as ``greedy_path``."""
    path = np.empty((len(order) if moves is None else moves, len(state.totals)))
    return path[: move_in_order(state, items, order, limit, path)]


@compiled
def move_in_order(state: Served, items: Items, order: Longs, limit: float, path: Floats) -> int:
    """As many moves as fit under the limit and ``path`` has room for; the number made."""
    moved = 0
    for item in order:
        if moved == len(path):
            break
        pairs = items.pairs[items.starts[item] : items.starts[item + 1]]
        if fits_limit(state, pairs, limit):
            for p in pairs:
                if state.entry[p] != BY_UNICAST:
                    send_by_unicast(state, p)
            path[moved] = state.totals
            moved += 1
    return moved
