"""Lines: each row on one channel, nobody by unicast, no channel above a rate, very many rows.

That is how feeds are sent. Rows move one by one to the channel where they cost least, as in Tock's
K-means (Bickson et al., 2010, section 4.1), but only where there is room. It begins from the
channels of the free search, which leaves to unicast what fits nowhere, or from an older plan: then
a row stays where it was unless a move pays for the changes that it makes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Bytes, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.prices import Weights
from fanplan.core.stop import Stop
from fanplan.data.interest import InterestProblem
from fanplan.layers.channels.map import count_overlaps
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.published.tock import (
    Assignment,
    assignment_cost,
    nothing_assigned,
    put_row,
    take_row,
)
from fanplan.layers.channels.search.effort import SETTLED, Effort
from fanplan.layers.channels.search.free.search import search_free
from fanplan.layers.channels.search.model.demand import make_demand, transpose

PASSES = 12
PRICES, FALL = 6, 0.05
"""Prices of a move that are tried, and what each is of the one before."""
ROUNDS, TRIALS = 3, 40_000
"""Rounds of letting users go from channels and moving rows, and users that are tried in each."""
SOME, FEW = 8, 64
"""Members of whom the one with the fewest rows is let go, and the most rows that may be."""
FINE = 20
"""A row has at most this part of what a channel may carry, so that channels can be filled."""


class Kept(NamedTuple):
    """Where rows were: the channel of each, NONE if it is new; what a move costs, how many flows
    it moves, and how many more may be moved."""

    line: Ints
    price: Floats
    flows: Longs
    left: Floats


def plan_lines(problem: InterestProblem, channels: int, cap: float, seed: int, stop: Stop) -> Ints:
    """The channel of each row; the better of a start from the free search and one from nothing."""
    order = heaviest_first(problem)
    line, free = np.full(problem.size, NONE, np.int32), np.zeros(problem.size)
    new = Kept(line, free, problem.flows, np.full(1, np.inf))
    starts = [new.line, free_lines(problem, channels, seed, stop)]
    found = [moved(problem, channels, cap, line, new, order, stop) for line in starts]
    best = min(found, key=lambda state: overfull(state, cap) or lines_cost(state))
    of_users = transpose(problem.indptr, problem.audience, len(problem.subscribers))
    for turn in range(ROUNDS):
        if stop(math.inf):
            break
        let_go(best, of_users, cap, np.random.default_rng([seed, turn]), TRIALS)
        settle(best, cap, new, order, stop)
    return best.channel


def replan_lines(
    problem: InterestProblem, channels: int, cap: float, older: Ints, most: float, stop: Stop
) -> Ints:
    """The same from an older plan, with at most so many flows that move; new ones are free.

    Prices of a move fall until few moves do not pay, and the cheapest plan is kept: dear moves
    leave room for those that gain most. Rows move off channels that are too full in any case.
    """
    order = heaviest_first(problem)
    high = float((problem.messages / problem.flows).max() * len(problem.subscribers))
    best, least = older, math.inf
    for price in high * np.append(1e3, FALL ** np.arange(1, PRICES if most > 0 else 1)):
        kept = Kept(older, price * problem.flows, problem.flows, np.full(1, float(most)))
        state = moved(problem, channels, cap, older, kept, order, stop)
        cost = overfull(state, cap) or lines_cost(state)
        if cost < least or not math.isfinite(least):
            best, least = state.channel, cost
    return best


def heaviest_first(problem: InterestProblem) -> Longs:
    return np.argsort(-problem.messages * problem.audience_sizes, kind="stable")


def free_lines(problem: InterestProblem, channels: int, seed: int, stop: Stop) -> Ints:
    """Channels of the search that may leave rows to unicast; NONE for these."""
    params, weights = KmodesParams(channels), Weights()
    demand = make_demand(problem, weights, np.full(problem.size, weights.unicast))
    effort = Effort(params, np.random.default_rng([seed, 0]), stop)
    return search_free(demand, channels, effort)[1].best.astype(np.int32)


def lines_cost(state: Assignment) -> float:
    return assignment_cost(state, Weights())


def overfull(state: Assignment, cap: float) -> float:
    """Infinity for a plan that breaks the limit, else 0."""
    return math.inf if bool((state.loads > cap * (1 + 1e-9)).any()) else 0.0


def moved(
    problem: InterestProblem,
    channels: int,
    cap: float,
    line: Ints,
    kept: Kept,
    order: Longs,
    stop: Stop,
) -> Assignment:
    """Rows placed on their lines, then moved until little is gained."""
    state = nothing_assigned(
        problem.indptr, problem.audience, problem.messages, len(problem.subscribers), channels
    )
    put_all(state, line)
    settle(state, cap, kept, order, stop)
    return state


def settle(state: Assignment, cap: float, kept: Kept, order: Longs, stop: Stop) -> None:
    """Move rows, pass by pass."""
    cost = math.inf
    for _ in range(PASSES):
        move_rows(state, order, cap, kept)
        before, cost = cost, lines_cost(state)
        if before - cost <= SETTLED * cost or stop(math.inf):
            break


@compiled
def put_all(state: Assignment, line: Ints) -> None:
    for row in range(len(line)):
        if line[row] >= 0:
            put_row(state, row, line[row])


@compiled
def move_rows(state: Assignment, order: Longs, cap: float, kept: Kept) -> None:
    """One pass: each row to where it raises the cost least among channels with room.

    Where none has room, to the one that is least full.
    """
    members = np.empty(len(state.sizes), dtype=np.int32)
    partial = np.empty(len(state.sizes), dtype=np.uint8)
    for row in order:
        before = state.channel[row]
        if before >= 0:
            take_row(state, row)
        audience = state.audience[state.indptr[row] : state.indptr[row + 1]]
        count_overlaps(audience, state.joined, partial, members)
        best, least, rate, home = -1, np.inf, state.rate[row], kept.line[row]
        bound = home >= 0 and before == home and kept.left[0] < kept.flows[row]
        for j in range(len(state.sizes)):
            if state.loads[j] + rate > cap or (bound and j != home):
                continue
            missing = len(audience) - members[j]
            cost = rate * (state.sizes[j] + missing) + state.loads[j] * missing
            if home >= 0 and home != j:
                cost += kept.price[row]
            if cost < least or (best < 0) or (cost == least and j == before):
                best, least = j, cost
        if best < 0:
            best = int(np.argmin(state.loads))
        if home >= 0 and before >= 0:
            kept.left[0] += kept.flows[row] * (int(best == home) - int(before == home))
        put_row(state, row, best)


@compiled
def let_go(
    state: Assignment,
    of_users: tuple[Longs, Ints],
    cap: float,
    random: np.random.Generator,
    trials: int,
) -> None:
    """Take all that a user wants off a channel, if that pays: no single row's move shows it."""
    members = np.empty(len(state.sizes), dtype=np.int32)
    partial = np.empty(len(state.sizes), dtype=np.uint8)
    rows = np.empty(FEW, np.int32)
    for _ in range(trials):
        line = int(random.random() * len(state.sizes))
        count = few_rows(state, of_users, line, random, rows)
        if count == 0:
            continue
        before = (state.loads * state.sizes).sum()
        for row in rows[:count]:
            take_row(state, row)
        placed = 0
        for row in rows[:count]:
            other = elsewhere(state, row, line, cap, members, partial)
            if other < 0:
                break
            put_row(state, row, other)
            placed += 1
        if placed < count or (state.loads * state.sizes).sum() >= before * (1 - 1e-12):
            for row in rows[:placed]:
                take_row(state, row)
            for row in rows[:count]:
                put_row(state, row, line)


@compiled
def few_rows(
    state: Assignment,
    of_users: tuple[Longs, Ints],
    line: int,
    random: np.random.Generator,
    rows: Ints,
) -> int:
    """The rows on a channel that one of its members wants: of some members, who wants fewest."""
    best, fewest = -1, FEW + 1
    for _ in range(SOME):
        user = int(random.random() * len(state.joined))
        if state.joined[user, line] and state.needs[user, line] < fewest:
            best, fewest = user, state.needs[user, line]
    count = 0
    if best >= 0:
        for row in of_users[1][of_users[0][best] : of_users[0][best + 1]]:
            if state.channel[row] == line:
                rows[count] = row
                count += 1
    return count


@compiled
def elsewhere(
    state: Assignment, row: int, line: int, cap: float, members: Ints, partial: Bytes
) -> int:
    """The channel with room, but for one, on which a row costs least; -1 if there is none."""
    audience = state.audience[state.indptr[row] : state.indptr[row + 1]]
    count_overlaps(audience, state.joined, partial, members)
    best, least, rate = -1, np.inf, state.rate[row]
    for j in range(len(state.sizes)):
        if j != line and state.loads[j] + rate <= cap:
            missing = len(audience) - members[j]
            cost = rate * (state.sizes[j] + missing) + state.loads[j] * missing
            if cost < least:
                best, least = j, cost
    return best
