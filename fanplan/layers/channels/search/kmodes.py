"""kmodes: the default planner. Multicast and unicast are decided together.

Hybrid channelization (Bickson et al., 2010, section 3.2) with one channel per row is weighted
k-modes on the audiences with unicast as one more, free centre; see docs/decisions/0010-kmodes.md.
A problem so small that all plans can be looked at is solved that way, see ``tiny``.
The maps of that paper under the same limits are starts too, so that no limit leads to a worse plan
than theirs for the same rows and seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fanplan.core.arrays import starts_of
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem, take_audiences
from fanplan.layers.channels.ledger import completed
from fanplan.layers.channels.map import ChannelMap, interested_members, map_pairs
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.published.params import HybridParams
from fanplan.layers.channels.published.second_step.moves import greedy
from fanplan.layers.channels.published.second_step.moving_pairs import flow_items, user_items
from fanplan.layers.channels.published.tock import tock
from fanplan.layers.channels.search.effort import CANDIDATES, Effort, Lowest
from fanplan.layers.channels.search.lines import plan_lines
from fanplan.layers.channels.search.model.cover import Cover, from_map, keep_rows
from fanplan.layers.channels.search.model.rules import channel_traffic
from fanplan.layers.channels.search.replan import replan
from fanplan.layers.channels.search.ruled.exchange import exchange
from fanplan.layers.channels.search.ruled.obey import (
    explain_infeasible,
    is_served,
    too_much_unicast,
)
from fanplan.layers.channels.search.ruled.together import all_together, lone_channels
from fanplan.layers.channels.search.solve import Solver, unknown_cost
from fanplan.layers.channels.search.task import Task, make_task
from fanplan.layers.channels.search.tiny import look_at_all
from fanplan.layers.channels.search.unicast_limit import (
    cheapest_within,
    filled_up,
    keeps_limit,
    raise_price,
    released,
    searched_at_price,
)

ORDERS = 16
"""Most orders in which Tock's K-means places the rows; the first is that of the seed."""
WORK = 2e8
"""Audiences × channels × orders that may be spent: some tenths of a second."""
MANY = 2_000_000
"""Pairs of a row and a subscriber from which rows on one channel each are planned as lines."""
KEPT = 3
"""The cheapest of its maps that are searched on."""


def kmodes(problem: InterestProblem, params: KmodesParams, seed: int, stop: Stop) -> ChannelMap:
    """The best map found in ``starts`` searches that keeps all limits, or InfeasibleError."""
    task, stop = make_task(problem, params), Lowest(stop)
    optimum = look_at_all(task) if params.exact else None
    if optimum is not None:
        stop(task.cost(optimum))
        return task.map(optimum)
    if fits_lines(task):
        return on_lines(task, seed, stop)
    papers = Papers(task, seed, stop) if limits_unicast(params) else None
    best = plan_once(task, np.random.default_rng([seed, 0]), stop, CANDIDATES, papers)
    for start in range(1, params.starts):
        if stop(task.cost(best)):
            break
        other = plan_once(task, np.random.default_rng([seed, start]), stop, 1, papers)
        if task.cost(other) < task.cost(best):
            best = other
    return task.map(best)


def fits_lines(task: Task) -> bool:
    """Whether every row must be on one channel and nothing but its rate is limited: lines, for
    more pairs than the searches under other limits can look at."""
    p, rules = task.params, task.rules
    other = p.pinned or p.off_multicast or p.start or bool((rules.limit < p.channels).any())
    return p.multicast_only and not p.multiple and not other and task.problem.nnz > MANY


def on_lines(task: Task, seed: int, stop: Stop) -> ChannelMap:
    """The map of lines; rows that do not count, as one wants them, go by unicast."""
    problem, channels = task.problem, task.params.channels
    rows = np.flatnonzero(task.counted)
    some = replace(
        problem,
        indptr=starts_of(problem.audience_sizes[rows]),
        audience=take_audiences(problem.indptr, problem.audience, rows),
        messages=problem.messages[rows],
        bytes=problem.bytes[rows],
        flows=problem.flows[rows],
        classes=problem.classes[rows],
        wanted=None,
    )
    line = plan_lines(some, channels, task.rules.cap, seed, stop)
    if bool((np.bincount(line, some.messages) > task.rules.cap * (1 + 1e-9)).any()):
        hard = task.priced(task.rules.hard)
        raise explain_infeasible(problem, hard, task.rules, channels)
    assigned = map_pairs(rows, line)
    members = interested_members(problem, assigned, channels)
    return completed(problem, channels, assigned, members)


def limits_unicast(params: KmodesParams) -> bool:
    """Whether a plan afresh must keep some traffic off unicast."""
    replanned = params.change_price > 0 or params.max_changes is not None
    return not replanned and (params.unicast_limit is not None or bool(params.pinned))


def plan_once(
    task: Task, random: np.random.Generator, stop: Stop, candidates: int, papers: Papers | None
) -> Cover:
    """One search under all limits; seeds are the best of so many candidates."""
    reported = task.all_unicast if task.free else math.inf
    # A cover keeps a limit on unicast, or on changes, only if it is chosen for that later; and
    # that no channel is lone, which costs something if unicast is dear, only after the search.
    later = task.params.unicast_limit or task.params.max_changes is not None or task.dear
    cost = unknown_cost if later else task.cost
    known = () if papers is None else papers.multicast()
    solver = Solver(Effort(task.params, random, stop, reported, candidates), cost, known)
    if task.params.change_price or task.params.max_changes is not None:
        return replan(task, solver)
    covers = raise_price(
        task, plan_afresh(task, solver), searched_at_price(task, solver), solver.stop
    )
    if len(covers) > 1:
        covers += released(task, solver)
    covers += known
    if papers is not None and task.params.unicast_limit:
        covers += papers.hybrids()
        covers += filled_up(task, covers, solver.stop)
    best = cheapest_within(task, all_together(task, covers))
    if best is None:
        least = min(task.unicast_fraction(cover) for cover in covers)
        raise too_much_unicast(float(task.params.unicast_limit or 0), least)
    return exchanged_together(task, best, solver.effort) if task.dear else best


def exchanged_together(task: Task, cover: Cover, effort: Effort) -> Cover:
    """Other channels for those that a dear unicast had opened for one member, now closed."""
    rules = task.rules._replace(change=0.0)

    def allowed(other: Cover) -> bool:
        return keeps_limit(task, other) and not len(lone_channels(task, other))

    return exchange(task.priced(rules.hard), cover, rules, task.params.swaps, effort, allowed)


def plan_afresh(task: Task, solver: Solver) -> Cover:
    """A cover without regard to a unicast limit above 0."""
    members = None if task.params.start is None else task.rules.start.members
    rules = task.rules._replace(change=0.0)
    demand = task.priced(rules.hard)
    cover = solver.solve(demand, task.demand, rules, members)
    if cover is None:
        raise explain_infeasible(task.problem, demand, rules, task.params.channels)
    return cover


class Papers:
    """Maps of Tock et al. (2005), and what the greedy second steps make of the first."""

    def __init__(self, task: Task, seed: int, stop: Stop) -> None:
        params, problem = task.params, task.problem
        channels = max(1, min(params.channels, problem.flow_count))
        limit = 1.0 if params.unicast_limit is None else params.unicast_limit
        self.task, self.seed = task, seed
        self.params = HybridParams(channels, params.weights, unicast_limit=limit)
        # These maps may break a limit, so no cost of theirs is told.
        self.stop: Stop = lambda _best_cost: stop(math.inf)
        self.map = tock(problem, self.params, seed, self.stop)

    def multicast(self) -> tuple[Cover, ...]:
        """The cheapest maps with one channel for everything that may go by multicast."""
        covers = [cover for cover in map(self.cover, self.maps()) if self.keeps(cover)]
        return tuple(sorted(covers, key=self.task.cost)[:KEPT])

    def maps(self) -> Iterator[ChannelMap]:
        yield self.map
        work = self.task.problem.nnz * self.params.channels + 1
        orders = min(ORDERS, int(WORK / work)) - 1
        for seed in np.random.default_rng([self.seed, 1]).integers(1 << 32, size=max(0, orders)):
            if self.stop(math.inf):
                break
            yield tock(self.task.problem, self.params, int(seed), self.stop)

    def hybrids(self) -> Iterator[Cover]:
        """Greedy flow and greedy user under the unicast limit, as far as they keep the others."""
        for items in (flow_items, user_items):
            moved = greedy(items, self.task.problem, self.map, self.params, self.stop)
            cover = self.cover(moved)
            if self.keeps(cover):
                yield cover

    def cover(self, map: ChannelMap) -> Cover:
        """The cover of a map, without the rows that must not go by multicast."""
        demand = self.task.demand
        cover = from_map(map, demand.size, demand.users, self.task.params.channels)
        return keep_rows(cover, (demand.price > 0) & ~self.task.apart)

    def keeps(self, cover: Cover) -> bool:
        """Whether a cover keeps the limits on users, channels and rows."""
        demand, rules = self.task.demand, self.task.rules
        joined = cover.members.sum(axis=1, dtype=np.int64)
        load = channel_traffic(demand, cover)
        obeys = np.all(joined <= rules.limit) and np.all(load <= rules.cap)
        return bool(obeys) and is_served(demand, cover, rules.hard)
