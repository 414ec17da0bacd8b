"""A limit on unicast: raise its price until little enough of it is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fanplan.core.stop import Stop
from fanplan.layers.channels.search.model.cover import Cover
from fanplan.layers.channels.search.model.rules import improve
from fanplan.layers.channels.search.ruled.exchange import exchange
from fanplan.layers.channels.search.ruled.fill import fill
from fanplan.layers.channels.search.solve import Solver
from fanplan.layers.channels.search.task import Task

DOUBLINGS = 40
"""Raising stops after this many: the price is then beyond any rate that matters."""
BISECTIONS = 6
FILLED = 2
"""The cheapest covers that are filled up with unicast to the limit."""

AtPrice = Callable[[float, Cover, bool], Cover]
"""The cover for unicast dearer by so much, from another cover, with swaps or without."""


def within(task: Task, cover: Cover) -> bool:
    """Whether a cover keeps the unicast limit."""
    limit = task.params.unicast_limit
    return limit is None or task.unicast_fraction(cover) <= limit


def limited(task: Task, covers: list[Cover]) -> Cover | None:
    """The cheapest of the covers that keep the unicast limit."""
    return min((cover for cover in covers if within(task, cover)), key=task.cost, default=None)


def filled_up(task: Task, covers: list[Cover], stop: Stop) -> Iterator[Cover]:
    """The cheapest covers that keep the unicast limit, with what it still allows filled."""
    limit, rules = task.params.unicast_limit or 0.0, task.rules._replace(change=0.0)
    kept = sorted((cover for cover in covers if within(task, cover)), key=task.cost)
    for cover in kept[:FILLED]:
        if stop(task.cost(kept[0])):
            break
        yield fill(task.priced(rules.hard), cover, rules, limit, task.params.passes)


def raise_price(task: Task, cover: Cover, at_price: AtPrice, stop: Stop) -> list[Cover]:
    """The cover, and if it has too much unicast, covers at doubled and then bisected prices.

    Prices are tried without swaps; with them at the lowest price that keeps the limit.
    """
    covers, low, high = [cover], 0.0, task.params.weights.unicast
    for _ in range(DOUBLINGS):
        if within(task, covers[-1]):
            break
        covers.append(at_price(high, covers[-1], False))
        low, high = high, 2 * high
    if len(covers) == 1 or not within(task, covers[-1]):
        return covers
    low, high = low / 2, low
    for _ in range(BISECTIONS):
        if stop(min(task.cost(other) for other in covers if within(task, other))):
            break
        middle = (low + high) / 2
        covers.append(at_price(middle, covers[-1], False))
        low, high = (low, middle) if within(task, covers[-1]) else (middle, high)
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
    hard = np.where(task.demand.price > 0, 1, 0).astype(np.uint8)
    rules = task.rules._replace(change=0.0)
    alone = solver.solve(task.priced(hard), task.demand, rules._replace(hard=hard), deep=0)
    if alone is None:
        return []

    def at_price(more: float, cover: Cover, swaps: bool) -> Cover:
        demand = task.priced(rules.hard, more)
        cover = improve(demand, alone, rules, task.params.passes)
        trials = solver.params.swaps if swaps else 0
        return exchange(
            demand, cover, rules, trials, solver.random, solver.stop, solver.all_unicast
        )

    return [alone, *raise_price(task, at_price(0.0, alone, False), at_price, solver.stop)]
