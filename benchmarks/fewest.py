"""How few brokers clients can need at all: a bound by prices, for the markets of overlay.py.

    python benchmarks/fewest.py [--clients 800] [--followed 3] [--seeds 0 22] [--within 0.005]

Give each client a price, so that no set of clients that fits a broker is worth more than 1. Then
there are at least as many brokers as all prices together (duality). Prices come from a linear
program over sets that fit (column generation). Sets are found by a search of all of them but those
that cannot be worth enough: at first with few steps from each client, at last with as many as it
takes. With the worth of the best set there is, prices are a proof wherever they come from.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
import scipy.sparse
from overlay import market_problem
from scipy.optimize import linprog

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.allocation.allocation import (
    AllocationParams,
    fillable,
    placing_of,
)
from fanplan.network.brokers import ClientProblem

SIZES = np.array([2, 4, 7, 10**6])
"""Sizes of a set for which a bound is computed, each for those above the one before."""
LISTED = 7
"""The largest but the last: of so many the largest are listed."""
DEEP = 100
"""Clients at a broker that each add something, at most."""
DEAR = 1.2
"""Price of all room of a broker where what a set may add is bounded: any is valid."""
STEPS, MORE, FEW = 300, 6, 20
"""Steps of a search from each client at first, and how many times more when it finds few sets."""
COLUMNS = 8000
"""Sets that a linear program may have before those far from the optimum are dropped."""
SLACK = 1 - 1e-9
"""What rounding may take from a bound."""


class Items(NamedTuple):
    """Subscribers that fit a broker, the largest first, and the rate of what none of them wants.

    A publisher that one of them listens to may be beside it, so it is left out: that can only lower
    the bound. ``lone`` counts subscribers that are too big for any broker.
    """

    at: Longs
    routes: Ints
    rate: Floats
    load: Floats
    unheard: float
    room: float
    lone: int


def items_of(problem: ClientProblem) -> Items:
    """Clients by exact load, at brokers of one size, with the room that loads can fill."""
    p = fillable(problem, placing_of(problem, AllocationParams(load="exact")))
    c, room = p.clients, float(p.room.max())
    load = p.impact[c.publishers :]
    order = np.argsort(-load, kind="stable")
    order = order[(load[order] <= room) & (load[order] > 0)]
    sets = [c.routes[c.at[i] : c.at[i + 1]] for i in order + c.publishers]
    routes = np.concatenate(sets)
    heard = np.bincount(c.source[routes], minlength=c.publishers) > 0
    publishers = p.impact[: c.publishers][~heard]
    unheard = float(publishers[publishers <= room].sum())
    at = np.append(0, np.cumsum([len(each) for each in sets]))
    return Items(at, routes, c.rate, load[order], unheard, room, int((load > room).sum()))


# ---- sets that fit, by price


class Search(NamedTuple):
    """Where a search is. By depth: who may still join, what each adds, and what those from there on
    may be worth at most; how many they are, and who is next; room, worth, and who joined last.

    By route: subscribers of the set that want it, those who may join and do, its rate if it is new,
    and what each of them bears. ``dear`` is a price of room.
    """

    who: Ints
    adds: Floats
    most: Floats
    number: Longs
    next: Longs
    room: Floats
    worth: Floats
    joined: Ints
    held: Longs
    wanted: Longs
    fresh: Floats
    share: Floats
    dear: float


@compiled
def best_sets(
    items: Items, price: Floats, spare: float, least: float, steps: int, sizes: Longs
) -> tuple[Ints, Floats, bool]:
    """For each client the set of it and smaller ones that is worth most, if more than ``least``.

    With it are its members, but for those that add nothing to others; and whether no search ended
    by ``steps``, so that no set is worth more. Room left is worth ``spare``.
    """
    count, routes = len(items.load), len(items.rate)
    k = Search(
        np.zeros((DEEP, count), np.int32), np.zeros((DEEP, count)), np.zeros((DEEP, count + 1)),
        np.zeros(DEEP, np.int64), np.zeros(DEEP, np.int64), np.zeros(DEEP), np.zeros(DEEP),
        np.zeros(DEEP, np.int32), np.zeros(routes, np.int64), np.zeros(routes, np.int64),
        np.zeros(routes), np.zeros((routes, len(sizes))), max(DEAR / items.room, spare),
    )  # fmt: skip
    found, value, whole = np.full((count, DEEP), NONE, np.int32), np.full(count, least), True
    for first in range(count):
        if price[first] <= 0:
            continue
        later = np.flatnonzero(price[first:] > 0) + first
        k.who[0, : len(later)], k.adds[0, : len(later)] = later, items.load[later]
        k.number[0], k.next[0], k.room[0], k.worth[0] = len(later), 0, items.room, 0.0
        k.most[0, :] = 0.0
        k.most[0, 0] = np.inf
        depth, taken = 0, 0
        while depth >= 0:
            here = k.next[depth]
            done = here == k.number[depth] or taken == steps
            if done or k.worth[depth] + k.most[depth, here] <= value[first]:
                depth -= 1
                if depth >= 0:
                    hold(items, k, k.joined[depth], -1)
                continue
            taken += 1
            k.next[depth] += 1
            join(items, price, k, depth, here)
            worth = k.worth[depth + 1] + spare * k.room[depth + 1]
            if worth > value[first]:
                value[first] = worth
                found[first, : depth + 1], found[first, depth + 1 :] = k.joined[: depth + 1], NONE
            hold(items, k, k.joined[depth], 1)
            depth += 1
            bound_rest(items, price, k, depth, sizes)
        whole = whole and taken < steps
    return found, value, whole


@compiled
def hold(items: Items, k: Search, client: int, change: int) -> None:
    for i in range(items.at[client], items.at[client + 1]):
        k.held[items.routes[i]] += change


@compiled
def join(items: Items, price: Floats, k: Search, depth: int, here: int) -> None:
    """A client joins, with all after it that then add nothing; who of the others still fits."""
    client, room = k.who[depth, here], k.room[depth] - k.adds[depth, here]
    worth, count = k.worth[depth] + price[client], 0
    for i in range(items.at[client], items.at[client + 1]):
        route = items.routes[i]
        k.fresh[route] = items.rate[route] if k.held[route] == 0 else 0.0
    for other in range(here + 1, k.number[depth]):
        one, adds = k.who[depth, other], k.adds[depth, other]
        for i in range(items.at[one], items.at[one + 1]):
            adds -= k.fresh[items.routes[i]]
        if adds <= 1e-9:
            worth += price[one]
        elif adds <= room + 1e-9:
            k.who[depth + 1, count], k.adds[depth + 1, count] = one, adds
            count += 1
    for i in range(items.at[client], items.at[client + 1]):
        k.fresh[items.routes[i]] = 0.0
    k.joined[depth] = client
    k.number[depth + 1], k.next[depth + 1] = count, 0
    k.room[depth + 1], k.worth[depth + 1] = room, worth


@compiled
def bound_rest(items: Items, price: Floats, k: Search, depth: int, sizes: Longs) -> None:
    """Sort who may still join, and bound what those from each on can be worth together.

    Let s of them join at most. If each bears an equal share of a route's rate, as if s wanted it or
    all who may, shares are no more than what they add. So with any price of room that is no less
    than what room left is worth, they and what they leave are worth at most all room, and the s
    largest sums of price less shares.
    """
    count, who = k.number[depth], k.who[depth]
    share_routes(items, k, who[:count], sizes)
    gain = np.zeros((count, len(sizes)))
    for p in range(count):
        gain[p] = price[who[p]]
        for i in range(items.at[who[p]], items.at[who[p] + 1]):
            for s in range(len(sizes)):
                gain[p, s] -= k.share[items.routes[i], s]
    order = np.argsort(-gain[:, -1])
    k.who[depth, :count], k.adds[depth, :count] = who[:count][order], k.adds[depth, :count][order]
    largest, total = np.zeros((len(sizes), LISTED)), np.zeros(len(sizes))
    k.most[depth, count] = 0.0
    for p in range(count - 1, -1, -1):
        for s in range(len(sizes)):
            total[s] += more_of(largest[s], gain[order[p], s], sizes[s])
        k.most[depth, p] = k.dear * k.room[depth] + total.max()


@compiled
def share_routes(items: Items, k: Search, who: Ints, sizes: Longs) -> None:
    """What each of these clients bears of a route, by the size of a set; 0 if the set has it."""
    for c in who:
        for i in range(items.at[c], items.at[c + 1]):
            k.wanted[items.routes[i]] += 1
    for c in who:
        for i in range(items.at[c], items.at[c + 1]):
            route = items.routes[i]
            if k.wanted[route] > 0:
                worth = k.dear * items.rate[route] if k.held[route] == 0 else 0.0
                for s in range(len(sizes)):
                    k.share[route, s] = worth / min(k.wanted[route], sizes[s])
                k.wanted[route] = 0


@compiled
def more_of(largest: Floats, gain: float, size: int) -> float:
    """What the sum of so many largest gains above 0 grows by, one gain more."""
    if size > len(largest):
        return max(gain, 0.0)
    place = size - 1
    if gain <= largest[place]:
        return 0.0
    more: float = gain - largest[place]
    while place > 0 and largest[place - 1] < gain:
        largest[place] = largest[place - 1]
        place -= 1
    largest[place] = gain
    return more


# ---- prices


class Program(NamedTuple):
    """Its value, the price of each client, that of room left, and the slack of each column."""

    value: float
    price: Floats
    spare: float
    slack: Floats


def solved(items: Items, columns: scipy.sparse.csc_array) -> Program:
    """Fewest columns, in fractions, that hold each client, and in room left what nobody wants."""
    demand = np.append(np.ones(len(items.load)), items.unheard)
    cost = np.ones(columns.shape[1])
    made = linprog(cost, A_ub=-columns, b_ub=-demand, method="highs")
    prices = np.maximum(-made.ineqlin.marginals, 0.0)
    return Program(float(made.fun), prices[:-1], float(prices[-1]), cost - columns.T @ prices)


def columns_of(items: Items, sets: Ints) -> scipy.sparse.csc_array:
    """A column per set: ones for all clients that it has the routes of, and the room left."""
    count = len(items.load)
    pairs = np.repeat(np.arange(count), np.diff(items.at)), items.routes
    wants = scipy.sparse.csr_array((np.ones(len(items.routes)), pairs), (count, len(items.rate)))
    row, place = np.nonzero(sets != NONE)
    shape = (len(sets), count)
    members = scipy.sparse.csr_array((np.ones(len(row)), (row, sets[row, place])), shape)
    has = ((members @ wants).toarray() > 0) * items.rate
    within = has @ wants.T.toarray() > items.load - 1e-9
    return scipy.sparse.csc_array(np.column_stack((within, items.room - has.sum(axis=1))).T)


class Bound(NamedTuple):
    """Of brokers: the value of the program with the sets found, and what is proved; and rounds."""

    value: float
    proved: float
    rounds: int


def bound(items: Items, within: float) -> Bound:
    """Sets and prices in turn, until what is proved is near the program or rounds up to the same.

    The search has the mean of the prices so far, recent ones more: prices of a program jump. If the
    best of all sets is worth w, prices divided by w are such that no set is worth more than 1.
    """
    columns = columns_of(items, np.arange(len(items.load), dtype=np.int32)[:, None])
    singles, steps, proved, rounds = columns.shape[1], STEPS, 0.0, 0
    program = mean = solved(items, columns)
    while proved < program.value / (1 + 2 * within) and np.ceil(proved) < np.ceil(program.value):
        rounds += 1
        sets, worth, whole = best_sets(items, mean.price, mean.spare, 1 + within, steps, SIZES)
        if whole:
            total = float(mean.price.sum() + mean.spare * items.unheard)
            proved = max(proved, total / worth.max() * SLACK)
        found = columns_of(items, sets[sets[:, 0] != NONE])
        new = found[:, found.T @ np.append(program.price, program.spare) > 1 + 1e-6]
        if columns.shape[1] > COLUMNS:
            near = np.argsort(program.slack)[: COLUMNS // 2]
            columns = columns[:, np.union1d(near, np.arange(singles))]
        columns = scipy.sparse.hstack((columns, new)).tocsc()
        program = solved(items, columns)
        steps *= MORE if new.shape[1] < FEW and not whole else 1
        price, spare = (mean.price + program.price) / 2, (mean.spare + program.spare) / 2
        mean = program._replace(price=price, spare=spare)
    return Bound(program.value + items.lone, proved + items.lone, rounds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=800)
    parser.add_argument("--followed", type=int, nargs="+", default=[3], help="markets")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--within", type=float, default=0.005, help="of the linear program")
    parser.add_argument("--quick", action="store_true", help="few clients, one seed")
    options = parser.parse_args()
    if options.quick:
        options.clients, options.seeds = 200, [0]
    print("| workload | seed | linear program | proved | brokers at least | rounds | s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for followed in options.followed:
        for seed in options.seeds:
            start = time.process_time()
            items = items_of(market_problem(options.clients, seed, followed))
            found = bound(items, options.within)
            name = f"market {followed} of {options.clients:,}"
            least = int(np.ceil(found.proved))
            row = f"{found.value:.2f} | {found.proved:.2f} | {least} | {found.rounds}"
            print(f"| {name} | {seed} | {row} | {time.process_time() - start:.0f} |", flush=True)


if __name__ == "__main__":
    main()
