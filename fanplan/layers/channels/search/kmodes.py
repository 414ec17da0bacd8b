"""kmodes: the default planner. Multicast and unicast are decided together.

Hybrid channelization (Bickson et al., 2010, section 3.2) with one channel per row is weighted
k-modes on the audiences with unicast as one more, free centre; see docs/decisions/0010-kmodes.md.
"""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import ChannelMap
from fanplan.layers.channels.params import KmodesParams
from fanplan.layers.channels.search.free.column import CANDIDATES
from fanplan.layers.channels.search.model.cover import Cover, to_map
from fanplan.layers.channels.search.published_starts import Papers
from fanplan.layers.channels.search.replan import replan
from fanplan.layers.channels.search.ruled.infeasible import explain, too_much_unicast
from fanplan.layers.channels.search.solve import Solver, unknown
from fanplan.layers.channels.search.task import Task, make_task
from fanplan.layers.channels.search.unicast_limit import (
    filled_up,
    limited,
    raise_price,
    released,
    searched_at_price,
)


def kmodes(problem: InterestProblem, params: KmodesParams, seed: int, stop: Stop) -> ChannelMap:
    """The best map found in ``starts`` searches that keeps all limits, or InfeasibleError."""
    task, stop = make_task(problem, params), Lowest(stop)
    papers = Papers(task, seed, stop) if limits_unicast(params) else None
    best = plan_once(task, np.random.default_rng([seed, 0]), stop, CANDIDATES, papers)
    for start in range(1, params.starts):
        if stop(task.cost(best)):
            break
        other = plan_once(task, np.random.default_rng([seed, start]), stop, 1, papers)
        if task.cost(other) < task.cost(best):
            best = other
    return to_map(task.demand, best)


def limits_unicast(params: KmodesParams) -> bool:
    """Whether a plan afresh must keep some traffic off unicast."""
    replanned = params.change_price > 0 or params.max_changes is not None
    return not replanned and (params.unicast_limit is not None or bool(params.pinned))


class Lowest:
    """Tells ``stop`` the lowest cost so far, whichever search asks."""

    def __init__(self, stop: Stop) -> None:
        self.stop, self.cost = stop, math.inf

    def __call__(self, best_cost: float) -> bool:
        self.cost = min(self.cost, best_cost)
        return self.stop(self.cost)


def plan_once(
    task: Task, random: np.random.Generator, stop: Stop, candidates: int, papers: Papers | None
) -> Cover:
    """One search under all limits; seeds are the best of so many candidates."""
    reported = task.all_unicast if task.free else math.inf
    # A cover keeps a limit on unicast, or on changes, only if it is chosen for that later.
    later = task.params.unicast_limit or task.params.max_changes is not None
    cost = unknown if later else task.cost
    known = () if papers is None else papers.multicast()
    solver = Solver(task.params, random, stop, reported, candidates, cost, known)
    if task.params.change_price or task.params.max_changes is not None:
        return replan(task, solver)
    covers = raise_price(
        task, plan_afresh(task, solver), searched_at_price(task, solver), solver.stop
    )
    if len(covers) > 1:
        covers += released(task, solver)
    if papers is not None and task.params.unicast_limit:
        covers += papers.hybrids()
        covers += filled_up(task, covers, solver.stop)
    best = limited(task, covers)
    if best is None:
        least = min(task.unicast_fraction(cover) for cover in covers)
        raise too_much_unicast(float(task.params.unicast_limit or 0), least)
    return best


def plan_afresh(task: Task, solver: Solver) -> Cover:
    """A cover without regard to a unicast limit above 0."""
    members = None if task.params.start is None else task.rules.start.members
    rules = task.rules._replace(change=0.0)
    demand = task.priced(rules.hard)
    cover = solver.solve(demand, task.demand, rules, members)
    if cover is None:
        raise explain(task.problem, demand, rules, task.params.channels)
    return cover
