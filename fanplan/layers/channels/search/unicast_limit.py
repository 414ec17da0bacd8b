"""A limit on unicast: raise its price until little enough is left, then fill up what is allowed.

Under a price, a whole cover may fall apart at once: one row less on a channel makes the next one
leave too. So no price has a cover near the limit. To fill up, rows and users leave channels one by
one, those first that save most for each message they add to unicast, while the limit holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bytes, Floats
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.channels.search.model.assign import channel_costs
from fanplan.layers.channels.search.model.cover import (
    Cover,
    audience_pairs,
    cover_of_table,
    messages_sent,
    served_by,
    table_of_cover,
)
from fanplan.layers.channels.search.model.demand import Demand, row_audience, wanted_rows
from fanplan.layers.channels.search.model.rules import CoverRules, channel_traffic, improve_cover
from fanplan.layers.channels.search.ruled.exchange import exchange
from fanplan.layers.channels.search.solve import Solver
from fanplan.layers.channels.search.task import Task

DOUBLINGS = 40
"""Raising stops after this many: the price is then beyond any rate that matters."""
BISECTIONS = 6
FILLED = 2
"""The cheapest covers that are filled up with unicast to the limit."""

AtPrice = Callable[[float, Cover, bool], Cover]
"""The cover for unicast dearer by so much, from another cover, with swaps or without."""

STEPS = 10
FALL = 0.6
"""Steps of the least saving per message that is asked for, each a part of the one before."""
MOST_CELLS = 20_000_000
"""Rows × channels up to which covers are filled: a byte is kept for each."""
SURE = 1e-9
"""The part of the limit that is left free for rounding."""
MULTICAST, UNICAST = 0, 1


def keeps_limit(task: Task, cover: Cover) -> bool:
    """Whether a cover keeps the unicast limit."""
    limit = task.params.unicast_limit
    return limit is None or task.unicast_fraction(cover) <= limit


def cheapest_within(task: Task, covers: list[Cover]) -> Cover | None:
    """The cheapest of the covers that keep the unicast limit."""
    return min((cover for cover in covers if keeps_limit(task, cover)), key=task.cost, default=None)


def raise_price(task: Task, cover: Cover, at_price: AtPrice, stop: Stop) -> list[Cover]:
    """The cover, and if it has too much unicast, covers at doubled and then bisected prices.

    Prices are tried without swaps; with them at the lowest price that keeps the limit.
    """
    covers, low, high = [cover], 0.0, task.params.weights.unicast
    for _ in range(DOUBLINGS):
        if keeps_limit(task, covers[-1]):
            break
        covers.append(at_price(high, covers[-1], False))
        low, high = high, 2 * high
    if len(covers) == 1 or not keeps_limit(task, covers[-1]):
        return covers
    # The last price keeps the limit; the one before, half of it, does not.
    low, high = low / 2, low
    for _ in range(BISECTIONS):
        if stop(min(task.cost(other) for other in covers if keeps_limit(task, other))):
            break
        middle = (low + high) / 2
        covers.append(at_price(middle, covers[-1], False))
        low, high = (low, middle) if keeps_limit(task, covers[-1]) else (middle, high)
    return [*covers, at_price(high, covers[-1], True)]


def searched_at_price(task: Task, solver: Solver) -> AtPrice:
    """Covers by a search of their own."""
    rules = task.rules._replace(change=0.0)

    def at_price(more: float, cover: Cover, swaps: bool) -> Cover:
        priced = task.priced(rules.hard, more)
        soft = task.priced(np.zeros_like(rules.hard), more)
        chosen = solver if swaps else solver.with_swaps(0)
        return chosen.solve(priced, soft, rules, cover.members) or cover

    return at_price


def released(task: Task, solver: Solver) -> list[Cover]:
    """Covers from multicast alone, if that is found: at falling prices rows go back to unicast."""
    rules = task.rules._replace(change=0.0)
    hard = rules.hard | ((task.demand.price > 0) & task.counted).astype(np.uint8)
    alone = solver.solve(task.priced(hard), task.demand, rules._replace(hard=hard), deep=0)
    if alone is None:
        return []

    def at_price(more: float, cover: Cover, swaps: bool) -> Cover:
        demand = task.priced(rules.hard, more)
        cover = improve_cover(demand, alone, rules, task.params.passes)
        trials = solver.params.swaps if swaps else 0
        return exchange(demand, cover, rules, trials, solver.effort)

    return [alone, *raise_price(task, at_price(0.0, alone, False), at_price, solver.stop)]


def filled_up(task: Task, covers: list[Cover], stop: Stop) -> Iterator[Cover]:
    """The cheapest covers that keep the unicast limit, with what it still allows filled."""
    limit, rules = task.params.unicast_limit or 0.0, task.rules._replace(change=0.0)
    kept = sorted((cover for cover in covers if keeps_limit(task, cover)), key=task.cost)
    for cover in kept[:FILLED]:
        if stop(task.cost(kept[0])):
            break
        allowed = Allowed(limit * (1 - SURE), task.beside)
        yield fill_up(task.priced(rules.hard), cover, rules, allowed, task.params.passes)


class Allowed(NamedTuple):
    """The most unicast, as a share of what is sent, ``beside`` messages that do not count."""

    limit: float
    beside: float = 0.0


def fill_up(
    demand: Demand, cover: Cover, rules: CoverRules, allowed: Allowed, passes: int
) -> Cover:
    """The cover with as much more unicast as pays and is allowed, and the rest improved.

    The cost never rises at the demand's prices. O(audiences × channels per row × steps).
    """
    if demand.size * cover.members.shape[1] > MOST_CELLS:
        return cover
    cover = filled_by_savings(demand, cover, rules, allowed)
    return filled_by_savings(
        demand, improve_carried(demand, cover, rules, allowed, passes), rules, allowed
    )


class Filling(NamedTuple):
    """A cover as tables, changed in place."""

    members: Bytes
    """Users × channels."""
    on: Bytes
    """Rows × channels: whether the row goes there."""
    costs: Floats
    """What a message on each channel costs."""
    traffic: Floats
    sent: Floats
    """Messages sent by ``MULTICAST``, or beside, and by ``UNICAST``."""
    limit: float


def filled_by_savings(demand: Demand, cover: Cover, rules: CoverRules, allowed: Allowed) -> Cover:
    """Rows and users leave channels in the order of what that saves per unicast message."""
    state = filling(demand, cover, allowed)
    least = float(state.costs.max(initial=0.0))
    for _ in range(STEPS):
        rows_leave(demand, rules.hard, state, least)
        users_leave(demand, rules.hard, state, least)
        least *= FALL
    rows_leave(demand, rules.hard, state, 0.0)
    users_leave(demand, rules.hard, state, 0.0)
    return cover_of_table(state.members, state.on)


def filling(demand: Demand, cover: Cover, allowed: Allowed) -> Filling:
    return Filling(
        cover.members.copy(),
        table_of_cover(cover),
        channel_costs(demand, cover.members),
        channel_traffic(demand, cover),
        messages_sent(demand, cover) + np.array([allowed.beside, 0.0]),
        allowed.limit,
    )


def improve_carried(
    demand: Demand, cover: Cover, rules: CoverRules, allowed: Allowed, passes: int
) -> Cover:
    """Improve the cover as if all that channels carry had to stay there; kept if within the limit.

    The share may rise: rows that need fewer channels send less by multicast.
    """
    channels = cover.members.shape[1]
    forbidding = demand.price + channels * (demand.w2 + demand.w1 * demand.users)
    rest = demand.with_audiences(*audience_pairs(demand, cover, True)).with_price(forbidding)
    hard = np.ones(demand.size, dtype=np.uint8)
    after = improve_cover(rest, cover, rules._replace(hard=hard), passes)
    multicast, unicast = messages_sent(demand, after)
    sent = allowed.beside + multicast + unicast
    return after if unicast <= allowed.limit * sent else cover


@compiled
def keeps_share(state: Filling, fewer: float, more: float) -> bool:
    """Whether the limit holds with so much less multicast and so much more unicast."""
    unicast = state.sent[UNICAST] + more
    return more == 0.0 or unicast <= state.limit * (state.sent[MULTICAST] - fewer + unicast)


@compiled
def book_messages(state: Filling, channel: int, fewer: float, more: float) -> None:
    """Book messages that leave a channel, and those that unicast sends instead."""
    state.traffic[channel] -= fewer
    state.sent[MULTICAST] -= fewer
    state.sent[UNICAST] += more


@compiled
def rows_leave(demand: Demand, hard: Bytes, state: Filling, least: float) -> None:
    """Rows leave channels where that saves enough; who is on no other gets them by unicast."""
    for row in range(len(state.on)):
        rate = demand.rate[row]
        for channel in range(len(state.costs)):
            # Whoever is left to unicast, no more than this can be saved for each message.
            enough = state.costs[channel] - demand.price[row] >= least
            if state.on[row, channel] and (enough or least == 0.0):
                alone = count_only_here(demand, state, row, channel)
                more = rate * alone
                saved = rate * state.costs[channel] - demand.price[row] * more
                kept = (hard[row] and alone > 0) or saved <= 0.0 or saved < least * more
                if not kept and keeps_share(state, rate, more):
                    state.on[row, channel] = 0
                    book_messages(state, channel, rate, more)


@compiled
def count_only_here(demand: Demand, state: Filling, row: int, channel: int) -> int:
    """How many of a row's audience only this channel serves."""
    count = 0
    others = np.flatnonzero(state.on[row])
    for user in row_audience(demand, row):
        if state.members[user, channel]:
            count += served_by(state.members, user, others) == 1
    return count


@compiled
def users_leave(demand: Demand, hard: Bytes, state: Filling, least: float) -> None:
    """Users leave channels where that saves enough; what only these bring comes by unicast."""
    for user in range(len(state.members)):
        own = state.members[user]
        for channel in range(len(own)):
            if own[channel]:
                more, price = only_through(demand, hard, state, user, channel)
                saved = demand.w1 * state.traffic[channel] - price
                if saved > 0.0 and saved >= least * more and keeps_share(state, 0.0, more):
                    own[channel] = 0
                    state.costs[channel] -= demand.w1
                    book_messages(state, channel, 0.0, more)


@compiled
def only_through(
    demand: Demand, hard: Bytes, state: Filling, user: int, channel: int
) -> tuple[float, float]:
    """The messages that reach a user through one channel alone, and their price by unicast."""
    messages, price = 0.0, 0.0
    for row in wanted_rows(demand, user):
        if not state.on[row, channel]:
            continue
        if served_by(state.members, user, np.flatnonzero(state.on[row])) == 1:
            messages += demand.rate[row]
            price += demand.rate[row] * demand.price[row]
            if hard[row]:
                return 0.0, np.inf
    return messages, price
