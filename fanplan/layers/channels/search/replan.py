"""Replanning: a better map than the one to start from, with few changes to it.

The searches open a channel with all that it attracts, which is often more than the changes that are
allowed. So channels that nobody uses yet are opened in the end for single rows: with one row and
whoever gets that row by unicast, and then further rows one by one.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.layers.channels.lone import LEAST
from fanplan.layers.channels.search.model.cover import Cover, keep_rows, unserved_pairs, with_places
from fanplan.layers.channels.search.model.demand import Demand
from fanplan.layers.channels.search.model.rules import CoverRules, count_changes, improve_cover
from fanplan.layers.channels.search.ruled.exchange import exchange
from fanplan.layers.channels.search.ruled.obey import (
    explain_infeasible,
    obey_limits,
    serve_by_clusters,
    serve_by_packing,
    too_many_changes,
    too_much_unicast,
    worth_least,
)
from fanplan.layers.channels.search.ruled.together import all_together
from fanplan.layers.channels.search.solve import Solver, best_of
from fanplan.layers.channels.search.task import Task
from fanplan.layers.channels.search.unicast_limit import cheapest_within, raise_price

BISECTIONS = 6
FEW_SWAPS = 32
"""Exchanges at each price of a change that is tried."""


def replan(task: Task, solver: Solver) -> Cover:
    """The cheapest cover found, changes priced, with at most ``max_changes`` of them."""
    price, most = task.params.change_price, task.params.max_changes
    base = abide(task, task.rules)
    covers = at_change_price(task, solver, base, price)
    if most is not None and not few_enough(task, covers, most):
        covers = raise_change_price(task, solver, base, most, covers)
    covers = all_together(task, covers)
    kept = [cover for cover in covers if most is None or changed(task, cover) <= most]
    best = cheapest_within(task, kept)
    if best is not None:
        left = task.problem.nnz if most is None else most - changed(task, best)
        return use_unused(task, best, task.rules._replace(change=price), left)
    if cheapest_within(task, covers) is None:
        least = min(task.unicast_fraction(cover) for cover in covers)
        raise too_much_unicast(float(task.params.unicast_limit or 0), least)
    needed = min(
        changed(task, cover) for cover in covers if cheapest_within(task, [cover]) is not None
    )
    raise too_many_changes(int(most or 0), needed)


def changed(task: Task, cover: Cover) -> int:
    return count_changes(task.rules.start, cover)


def few_enough(task: Task, covers: list[Cover], most: int) -> bool:
    best = cheapest_within(task, covers)
    return best is not None and changed(task, best) <= most


def abide(task: Task, rules: CoverRules) -> Cover:
    """The start map with as little changed as keeps the limits on channels, users and rows."""
    demand = task.priced(rules.hard)
    cover = obey_limits(demand, keep_rows(rules.start, demand.price != 0), rules)
    if not rules.hard.any():
        return cover
    tries = [serve_by_packing(demand, cover, rules)]
    if rules.width > 1:
        shares = {1, max(1, task.params.channels // 4), task.params.channels}
        tries += [
            serve_by_clusters(demand, cover, rules, worth_least(demand, cover, groups))
            for groups in sorted(shares)
        ]
    served = best_of(demand, rules, (other for other in (cover, *tries) if other is not None))
    if served is None:
        raise explain_infeasible(task.problem, demand, rules, task.params.channels)
    return served


def at_change_price(task: Task, solver: Solver, base: Cover, price: float) -> list[Cover]:
    """Covers improved from the base with each change at that price, unicast dearer if need be."""
    rules, most = task.rules._replace(change=price), task.params.max_changes

    def allowed(cover: Cover) -> bool:
        return most is None or changed(task, cover) <= most

    def at_price(more: float, cover: Cover, swaps: bool) -> Cover:
        demand = task.priced(rules.hard, more)
        cover = improve_cover(demand, base, rules, task.params.passes)
        trials = solver.params.swaps if swaps else 0
        return exchange(demand, cover, rules, trials, solver.effort, allowed)

    return [base, *raise_price(task, at_price(0.0, base, True), at_price, solver.stop)]


def raise_change_price(
    task: Task, solver: Solver, base: Cover, most: int, covers: list[Cover]
) -> list[Cover]:
    """More covers, at prices of a change that rise until there are few enough, then bisected."""
    rate = task.demand.rate
    low, high = 0.0, task.params.weights.unicast * float(rate[rate > 0].min(initial=1.0))
    covers, quick = list(covers), solver.with_swaps(FEW_SWAPS)
    # Beyond this no change can pay: it would cost more than all unicast together.
    while high <= 2 * task.all_unicast:
        more = at_change_price(task, quick, base, high)
        covers += more
        if few_enough(task, more[1:], most):
            break
        low, high = high, 4 * high
    for _ in range(BISECTIONS):
        if solver.stop(task.cost(base)):
            break
        middle = (low + high) / 2
        more = at_change_price(task, quick, base, middle)
        covers += more
        low, high = (low, middle) if few_enough(task, more[1:], most) else (middle, high)
    return covers + at_change_price(task, solver, base, high)


def use_unused(task: Task, cover: Cover, rules: CoverRules, changes: int) -> Cover:
    """The cover with unused channels opened as long as that pays and changes are left.

    A channel that ``rules.start`` used stays closed: opening it again is not as cheap as it looks.
    """
    used = cover.members.any(axis=0) | rules.start.members.any(axis=0)
    for channel in np.flatnonzero(~used):
        opened = open_channel(task, cover, rules, int(channel), changes)
        if opened is None:
            break
        cover, spent = opened
        changes -= spent
    return cover


def open_channel(
    task: Task, cover: Cover, rules: CoverRules, channel: int, changes: int
) -> tuple[Cover, int] | None:
    """A channel for the row that gains most, and for others that its members want."""
    demand = task.demand
    rows, users = reachable(demand, cover, rules)
    count = np.bincount(rows, minlength=demand.size)
    gain = row_gains(demand, count, count) - rules.change * (count + 1)
    gain[(count + 1 > changes) | (demand.rate > rules.cap)] = -np.inf
    gain[(count < LEAST) & (not task.params.lone)] = -np.inf
    first = int(np.argmax(gain))
    if not gain[first] > 0:
        return None
    joining = users[rows == first]
    wanted = np.bincount(rows[np.isin(users, joining)], minlength=demand.size)
    more = row_gains(demand, wanted, np.full(demand.size, len(joining))) - rules.change
    more[first] = np.inf
    chosen = affordable(demand, more, rules.cap, changes - len(joining))
    members = cover.members.copy()
    members[joining, channel] = 1
    return with_places(cover, members, chosen, channel), len(joining) + len(chosen)


def reachable(demand: Demand, cover: Cover, rules: CoverRules) -> tuple[Ints, Ints]:
    """(row, user) pairs that go by unicast and could go by one channel more."""
    rows, users = unserved_pairs(demand, cover)
    room = cover.members.sum(axis=1, dtype=np.int64) < rules.limit
    wide = np.diff(cover.starts) < rules.width
    able = room[users] & wide[rows]
    return rows[able], users[able]


def row_gains(demand: Demand, served: Longs, members: Longs) -> Floats:
    """What rows save on a channel more, with so many members of whom so many lack them."""
    return demand.rate * (demand.price * served - demand.w2 - demand.w1 * members)


def affordable(demand: Demand, gain: Floats, cap: float, most: int) -> Longs:
    """The rows that gain most, at most so many and with no more messages than the cap."""
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 0][: max(most, 0)]
    return np.sort(order[np.cumsum(demand.rate[order]) <= cap])
