"""Lines: each row on one channel, nobody by unicast, no channel above a rate, very many rows.

That is how feeds are sent. Rows move one by one to the channel where they cost least, as in Tock's
K-means (Bickson et al., 2010, section 4.1), but only where there is room. It begins from the
channels of the free search, which leaves to unicast what fits nowhere, or from an older plan: then
a row stays where it was unless a move pays for the changes that it makes. Single rows seldom free a
subscriber from a channel, so all that one wants there is taken off at once where that pays. Full
channels leave few moves, so rows are also heated: they move against the cost at times, less and
less (Kirkpatrick et al., 1983).
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
HEAT, WARMTH = (0.15, 0.01, 60), (0.15, 0.005, 20)
"""How much a move may cost at first and in the end, in mean costs of a row, and passes of that;
and from an older plan, for each price of a move."""
PRICES = 7
"""Prices of a move that are tried."""
ROUNDS, TRIALS = 3, 40_000
"""Rounds of letting users go from channels and moving rows (from an older plan one, for each price
of a move), and users that are tried in each."""
SOME, FEW = 8, 64
"""Members of whom the one with the fewest rows is let go, and the most rows that may be."""
NEVER = 16
"""Times the heat: what costs so much more is not looked at."""
USED = 0.98
"""A part of the moves that counts as all."""
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
    release(best, of_users, cap, new, order, ROUNDS, seed, stop)
    heat(best, cap, new, order, HEAT, seed, stop)
    release(best, of_users, cap, new, order, ROUNDS, seed + 1, stop)
    return best.channel


def replan_lines(
    problem: InterestProblem, channels: int, cap: float, older: Ints, most: float, stop: Stop
) -> Ints:
    """The same from an older plan, with at most so many flows that move; new ones are free.

    The price of a move is the highest at which all of them are made, found by halving: so they are
    those that gain most. Rows move off channels that are too full in any case.
    """
    order, known = heaviest_first(problem), older >= 0
    high = float(np.max(problem.messages * problem.audience_sizes / problem.flows, initial=0.0))
    low, best, least = high * 1e-6, older, math.inf
    of_users = transpose(problem.indptr, problem.audience, len(problem.subscribers))
    for turn in range(PRICES):
        price = 1e3 * high if turn == 0 else math.sqrt(low * high)
        kept = Kept(
            older,
            (price * problem.flows).astype(np.float64),
            problem.flows,
            np.full(1, float(most)),
        )
        state = moved(problem, channels, cap, older, kept, order, stop)
        if turn:
            release(state, of_users, cap, kept, order, 1, turn, stop)
            heat(state, cap, kept, order, WARMTH, turn, stop)
        cost = overfull(state, cap) or lines_cost(state)
        if cost < least or not math.isfinite(least):
            best, least = state.channel.copy(), cost
        spent = problem.flows[known & (state.channel != older)].sum() >= USED * most
        if turn and spent:
            low = price
        elif turn:
            high = price
        if stop(math.inf) or most <= 0:
            break
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
        move_rows(state, order, cap, kept, 0.0, np.random.default_rng(0))
        before, cost = cost, lines_cost(state)
        if before - cost <= SETTLED * cost or stop(math.inf):
            break


def release(
    state: Assignment,
    of_users: tuple[Longs, Ints],
    cap: float,
    kept: Kept,
    order: Longs,
    rounds: int,
    seed: int,
    stop: Stop,
) -> None:
    """Let users go from channels and move rows, in turn; costs only fall."""
    for turn in range(rounds):
        if stop(math.inf):
            break
        let_go(state, of_users, cap, kept, np.random.default_rng([seed, turn]), TRIALS)
        settle(state, cap, kept, order, stop)


def heat(
    state: Assignment,
    cap: float,
    kept: Kept,
    order: Longs,
    course: tuple[float, float, int],
    seed: int,
    stop: Stop,
) -> None:
    """Move rows with chance, at falling heat, then without; what was better before is kept."""
    before, total = state.channel.copy(), overfull(state, cap) or priced(state, kept)
    random = np.random.default_rng(seed)
    mean = lines_cost(state) / max(len(before), 1)
    for share in np.geomspace(*course):
        if stop(math.inf):
            break
        move_rows(state, random.permutation(len(before)), cap, kept, share * mean, random)
    settle(state, cap, kept, order, stop)
    if (overfull(state, cap) or priced(state, kept)) > total:
        put_all(state, before)


def priced(state: Assignment, kept: Kept) -> float:
    """The cost, with that of moves."""
    gone = (kept.line >= 0) & (state.channel != kept.line)
    return lines_cost(state) + float(kept.price[gone].sum())


@compiled
def put_all(state: Assignment, line: Ints) -> None:
    for row in range(len(line)):
        if state.channel[row] >= 0:
            take_row(state, row)
        if line[row] >= 0:
            put_row(state, row, line[row])


class Desk(NamedTuple):
    """Room to work in: what a row costs on each channel, and how many of its audience are there."""

    costs: Floats
    members: Ints
    partial: Bytes


@compiled
def make_desk(channels: int) -> Desk:
    return Desk(np.empty(channels), np.empty(channels, np.int32), np.empty(channels, np.uint8))


@compiled
def price_lines(state: Assignment, row: int, cap: float, kept: Kept, desk: Desk) -> None:
    """What a row that is nowhere costs on each channel; infinity where there is no room."""
    audience = state.audience[state.indptr[row] : state.indptr[row + 1]]
    count_overlaps(audience, state.joined, desk.partial, desk.members)
    rate, home = state.rate[row], kept.line[row]
    for j in range(len(desk.costs)):
        missing = len(audience) - desk.members[j]
        desk.costs[j] = rate * (state.sizes[j] + missing) + state.loads[j] * missing
        if home >= 0 and home != j:
            desk.costs[j] += kept.price[row]
        if state.loads[j] + rate > cap:
            desk.costs[j] = np.inf


@compiled
def keep_only(costs: Floats, home: int) -> None:
    own = costs[home]
    costs[:] = np.inf
    costs[home] = own


@compiled
def moves(state: Assignment, kept: Kept, rows: Ints) -> tuple[float, int]:
    """What rows that are not where they were cost for that, and the flows of them."""
    price, flows = 0.0, 0
    for row in rows:
        if kept.line[row] >= 0 and state.channel[row] != kept.line[row]:
            price += kept.price[row]
            flows += kept.flows[row]
    return price, flows


@compiled
def move_rows(
    state: Assignment,
    order: Longs,
    cap: float,
    kept: Kept,
    hot: float,
    random: np.random.Generator,
) -> None:
    """One pass: each row to where it raises the cost least among channels with room.

    Where none has room, to the one that is least full. With heat it goes elsewhere at times: to a
    channel that costs d more with e^(-d/hot) of the chance.
    """
    desk = make_desk(len(state.sizes))
    for row in order:
        before = state.channel[row]
        if before >= 0:
            take_row(state, row)
        price_lines(state, row, cap, kept, desk)
        home = kept.line[row]
        if home >= 0 and before == home and kept.left[0] < kept.flows[row]:
            keep_only(desk.costs, home)
        best = chosen(desk.costs, before, hot, random)
        if best < 0:
            best = int(np.argmin(state.loads))
        if home >= 0 and before >= 0:
            kept.left[0] += kept.flows[row] * (int(best == home) - int(before == home))
        put_row(state, row, best)


@compiled
def chosen(costs: Floats, before: int, hot: float, random: np.random.Generator) -> int:
    """The channel of least cost, the one before at a tie; with Gumbel's noise if it is hot."""
    best, least = -1, np.inf
    low = costs.min()
    for j in range(len(costs)):
        if costs[j] - low > NEVER * hot or costs[j] == np.inf:
            continue
        cost = costs[j]
        if hot > 0:
            cost += hot * np.log(-np.log(1.0 - random.random()))
        if cost < least or (cost == least and j == before):
            best, least = j, cost
    return best


@compiled
def let_go(
    state: Assignment,
    of_users: tuple[Longs, Ints],
    cap: float,
    kept: Kept,
    random: np.random.Generator,
    trials: int,
) -> None:
    """Take all that a user wants off a channel, if that pays: no single row's move shows it."""
    desk, found = make_desk(len(state.sizes)), np.empty(FEW, np.int32)
    for _ in range(trials):
        line = int(random.random() * len(state.sizes))
        rows = found[: few_rows(state, of_users, line, random, found)]
        price, away = moves(state, kept, rows)
        before = (state.loads * state.sizes).sum() * (1 - 1e-12) + price
        for row in rows:
            take_row(state, row)
        placed = 0
        for row in rows:
            price_lines(state, row, cap, kept, desk)
            desk.costs[line] = np.inf
            other = chosen(desk.costs, line, 0.0, random)
            if other < 0:
                break
            put_row(state, row, other)
            placed += 1
        price, flows = moves(state, kept, rows)
        after, more = (state.loads * state.sizes).sum() + price, flows - away
        if placed < len(rows) or after >= before or more > kept.left[0]:
            for row in rows[:placed]:
                take_row(state, row)
            for row in rows:
                put_row(state, row, line)
        else:
            kept.left[0] -= more


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
