"""The two-step framework: channels for everything, then some of it moves to unicast.

A second step takes the channels as they are, or solves the first step again for what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fanplan.core.arrays import Bools, Longs, starts_of
from fanplan.core.errors import InputError, Problem
from fanplan.core.ledger import cost, unicast_fraction
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.ledger import analytic_ledger, map_cost
from fanplan.layers.channels.map import NO_PAIRS, ChannelMap, map_pairs, pair_numbers
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.channels.published.second_step.moves import (
    greedy,
    heaviest_first,
    lightest_first,
    move_by_weight,
)
from fanplan.layers.channels.published.second_step.moving_pairs import (
    Items,
    flow_items,
    pair_items,
    user_items,
)

Planner = Callable[[InterestProblem, HybridParams, int, Stop], ChannelMap]
"""A channel planner, which a second step may follow."""
Move = Callable[[InterestProblem, ChannelMap, HybridParams, Stop], ChannelMap]
"""A second step that takes the map as it is."""


@dataclass(frozen=True)
class FirstStep:
    """A channel planner with all that it is told but the problem, which gets smaller."""

    planner: Planner
    params: HybridParams
    seed: int
    stop: Stop

    def solve(self, problem: InterestProblem) -> ChannelMap:
        return self.planner(problem, self.params, self.seed, self.stop)


Solve = Callable[[InterestProblem, FirstStep], ChannelMap]
"""Runs a first step, once or more often, and moves a part of its traffic to unicast."""


@dataclass(frozen=True)
class SecondStep:
    """One heuristic of Bickson et al. (2010), section 4.2."""

    name: str
    solve: Solve
    meaning: str


def hybrid(first: Planner, second: str) -> Planner:
    """Section 4: channels by ``first``, then the second step of that name moves some to unicast."""
    solve = find_second_step(second).solve

    def planner(
        problem: InterestProblem, params: HybridParams, seed: int, stop: Stop
    ) -> ChannelMap:
        return solve(problem, FirstStep(first, params, seed, stop))

    return planner


def find_second_step(name: str) -> SecondStep:
    """The second step of that name."""
    if name not in SECOND_STEPS:
        known = ", ".join(SECOND_STEPS)
        raise InputError(Problem("unicast", f"{name!r} is not known", f"Use one of: {known}"))
    return SECOND_STEPS[name]


def solved_once(move: Move, problem: InterestProblem, first: FirstStep) -> ChannelMap:
    """Solve the first step once, then move."""
    return move(problem, first.solve(problem), first.params, first.stop)


def iterative(
    items: Callable[[InterestProblem], Items],
    ranking: Callable[[Items], Longs],
    problem: InterestProblem,
    first: FirstStep,
) -> ChannelMap:
    """Section 4.2, "iterative": solve, remove ``batch`` items from W, solve again, and so on.

    Ends at the limit of unicast, when everything is removed, or, unless ``forced``, after
    ``patience`` solutions that are no cheaper than the best. Time: one first step per solution.
    """
    movable, params = items(problem), first.params
    order = ranking(movable)
    best = first.solve(problem)
    least = map_cost(problem, best, params.weights)
    failures, removed = 0, 0
    size = params.batch or max(1, len(order) // 100)
    carried = np.ones(problem.nnz, dtype=np.bool_)
    while removed < len(order) and failures < params.patience and not first.stop(least):
        batch = order[removed : removed + size]
        removed += len(batch)
        for item in batch:
            carried[movable.pairs[movable.starts[item] : movable.starts[item + 1]]] = False
        map = solve_rest(problem, carried, first)
        ledger = analytic_ledger(problem, map)
        if unicast_fraction(ledger) > params.unicast_limit:
            break
        # A cost that rises may fall again further on (Figure 9), so a failure ends nothing yet.
        if params.forced or cost(ledger, params.weights) < least:
            best, least, failures = map, cost(ledger, params.weights), 0
        else:
            failures += 1
    return best


def solve_repeatedly(move: Move, problem: InterestProblem, first: FirstStep) -> ChannelMap:
    """Section 4, "this process can be repeated": solve, move, solve for the rest, move again.

    Ends after ``patience`` rounds that are no cheaper than the best. What has moved stays moved.
    """
    params = first.params
    best = map = solved_once(move, problem, first)
    least = map_cost(problem, best, params.weights)
    failures = 0
    while failures < params.patience and not first.stop(least):
        map = solve_rest(problem, carried_pairs(problem, map), first)
        map = move(problem, map, params, first.stop)
        ledger = analytic_ledger(problem, map)
        within = unicast_fraction(ledger) <= params.unicast_limit
        if within and cost(ledger, params.weights) < least:
            best, least, failures = map, cost(ledger, params.weights), 0
        else:
            failures += 1
    return best


def carried_pairs(problem: InterestProblem, map: ChannelMap) -> Bools:
    """The pairs that a map does not send by unicast."""
    row = np.repeat(np.arange(problem.size, dtype=np.int32), problem.audience_sizes)
    unicast = pair_numbers(map.unicast.left, map.unicast.right)
    return ~np.isin(pair_numbers(row, problem.audience), unicast, assume_unique=True)


def solve_rest(problem: InterestProblem, carried: Bools, first: FirstStep) -> ChannelMap:
    """The first step for the pairs that are carried; all others go by unicast."""
    row = np.repeat(np.arange(problem.size), problem.audience_sizes)
    unicast = map_pairs(row[~carried], problem.audience[~carried])
    rest, rows = restricted_problem(problem, carried, row)
    if rest.size == 0:
        return ChannelMap(first.params.channels, NO_PAIRS, NO_PAIRS, unicast)
    # What is left may have fewer flows than channels.
    params = replace(first.params, channels=min(first.params.channels, rest.flow_count))
    map = replace(first, params=params).solve(rest)
    assigned = map_pairs(rows[map.assigned.left], map.assigned.right)
    return ChannelMap(first.params.channels, assigned, map.members, unicast)


def restricted_problem(
    problem: InterestProblem, carried: Bools, row: Longs
) -> tuple[InterestProblem, Longs]:
    """W without the pairs that are not carried, and the rows that are left."""
    sizes = np.bincount(row[carried], minlength=problem.size)
    rows = np.flatnonzero(sizes)
    rest = replace(
        problem,
        indptr=starts_of(sizes[rows]),
        audience=problem.audience[carried],
        messages=problem.messages[rows],
        bytes=problem.bytes[rows],
        flows=problem.flows[rows],
        classes=problem.classes[rows],
    )
    return rest, rows


ORDERS = {
    "lightest-flow": (flow_items, lightest_first),
    "heaviest-flow": (flow_items, heaviest_first),
    "lightest-user": (user_items, lightest_first),
    "heaviest-user": (user_items, heaviest_first),
}
GREEDY = {"greedy-flow": flow_items, "greedy-user": user_items, "greedy-pair": pair_items}
MOVES: dict[str, Move] = {
    **{name: partial(move_by_weight, *order) for name, order in ORDERS.items()},
    **{name: partial(greedy, items) for name, items in GREEDY.items()},
}
"""The second steps that take a map as it is."""


def every_second_step() -> Iterator[SecondStep]:
    """Each heuristic twice: for the first step's channels as they are, and with new ones."""
    for name, order in ORDERS.items():
        meaning = f"{name.replace('-', ' ')} first"
        yield SecondStep(name, partial(solved_once, MOVES[name]), meaning)
        again = f"{meaning}, channels planned anew after each batch"
        yield SecondStep(f"{name}-iterative", partial(iterative, *order), again)
    for name in GREEDY:
        meaning = f"the {name.removeprefix('greedy-')} that lowers the cost most, while one does"
        yield SecondStep(name, partial(solved_once, MOVES[name]), meaning)
        again = f"{meaning}, repeated with channels planned anew"
        yield SecondStep(f"{name}-iterative", partial(solve_repeatedly, MOVES[name]), again)


SECOND_STEPS: dict[str, SecondStep] = {step.name: step for step in every_second_step()}
