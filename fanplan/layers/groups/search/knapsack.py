"""The most value within a budget: exact where a table of it fits, else greedy with a bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fanplan.core.arrays import Bools, Floats, Longs, starts_of
from fanplan.core.kernels import compiled

TABLE = 100_000_000
"""Most cells of the table, a byte each."""

MARGIN = 1e-9
"""Bounds are sums in another order: what they rule out, they rule out by more than rounding."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Which items are taken, their value, and a value that no choice within the budget exceeds."""

    taken: Bools
    value: float
    bound: float


def pack(value: Floats, weight: Longs, budget: int, table: int = TABLE) -> Packed:
    """Items of the most value whose weights stay within a budget.

    Items in order of value per weight are taken while they fit; cutting the first that does not
    gives a bound (Dantzig 1957). Items around that one, of which the order says least, are then
    chosen anew, the core of Balas & Zemel (1980). What bound and core leave open is solved exactly
    if the table of that has at most ``table`` cells. O(n log n + table).
    """
    value, weight = np.asarray(value, np.float64), np.asarray(weight, np.int64)
    useful = np.flatnonzero((value > 0) & (weight <= budget))
    with np.errstate(divide="ignore"):
        ratio = value[useful] / weight[useful]
    order = useful[np.lexsort((useful, -ratio))]
    found, bound = packed_in_order(value[order], weight[order], budget, table)
    taken = np.zeros(len(value), bool)
    taken[order[found]] = True
    return Packed(taken, float(value[order[found]].sum()), bound)


def packed_in_order(value: Floats, weight: Longs, budget: int, table: int) -> tuple[Bools, float]:
    """The same of items in order, all of which fit and have value: those taken, and the bound.

    Anything better must have the items without which the bound is below what is found already, and
    lack those with which it is (Ingargiola & Korsh 1973). If that is impossible, or no item is
    left open, there is nothing better.
    """
    values, weights = sums(value, weight)
    tried = (
        filled_in_order(value, weight, budget),
        around(value, weight, weights, budget, table // 10),
    )
    found = max(tried, key=lambda taken: float(value[taken].sum()))
    best = float(value[found].sum())
    everything, without, within = relaxed(value, weight, values, weights, budget)
    must, cannot = (bounds < best * (1 - MARGIN) for bounds in (without, within))
    left = budget - int(weight[must].sum())
    if left < 0 or (must & cannot).any():
        return found, best
    free = np.flatnonzero(~must & ~cannot & (weight <= left))
    if len(free) * (left + 1) > table:
        return found, max(best, everything)
    refined = must.copy()
    refined[free[solved(value[free], weight[free], left)]] = True
    better = float(value[refined].sum())
    return (refined, better) if better > best else (found, best)


def around(value: Floats, weight: Longs, weights: Longs, budget: int, table: int) -> Bools:
    """Take all before the core and the best of the core; as wide as a table of it may be."""
    middle = int(np.searchsorted(weights, budget, side="right")) - 1
    first = last = middle
    half = 1
    while half <= 2 * len(value):
        start, end = max(0, middle - half), min(len(value), middle + half)
        if (end - start) * (budget - weights[start] + 1) > table:
            break
        first, last, half = start, end, 2 * half
    taken = np.arange(len(value)) < first
    taken[first:last] = solved(value[first:last], weight[first:last], budget - weights[first])
    return taken


def sums(value: Floats, weight: Longs) -> tuple[Floats, Longs]:
    """Value and weight of the first 0, 1, 2, … items."""
    values = np.concatenate(([0.0], np.cumsum(value)))
    return values, starts_of(weight)


@compiled
def filled_in_order(value: Floats, weight: Longs, budget: int) -> Bools:
    """Take items in order while they fit, or the most valuable one alone if that is better."""
    taken = np.zeros(len(value), np.bool_)
    left, total, top = budget, 0.0, 0
    for i in range(len(value)):
        if weight[i] <= left:
            taken[i] = True
            left -= weight[i]
            total += value[i]
        if value[i] > value[top]:
            top = i
    if len(value) and value[top] > total:
        taken[:] = False
        taken[top] = True
    return taken


@compiled
def filled_in_part(
    value: Floats, weight: Longs, values: Floats, weights: Longs, budget: int
) -> float:
    """The relaxed optimum of items in order of value per weight."""
    whole = np.searchsorted(weights, budget, side="right") - 1
    result: float = values[-1]
    if whole < len(value):
        result = values[whole] + value[whole] * (budget - weights[whole]) / weight[whole]
    return result


@compiled
def relaxed(
    value: Floats, weight: Longs, values: Floats, weights: Longs, budget: int
) -> tuple[float, Floats, Floats]:
    """The relaxed optimum, in which one item may be cut; and without each item, and with it.

    Leaving out an item before the break gives its room to the items after it; putting in one after
    the break takes room from those before it. Elsewhere the relaxed optimum stays.
    """
    everything = filled_in_part(value, weight, values, weights, budget)
    whole = np.searchsorted(weights, budget, side="right") - 1
    without, within = np.full(len(value), everything), np.full(len(value), everything)
    for i in range(len(value)):
        if i <= whole:
            roomier = filled_in_part(value, weight, values, weights, budget + weight[i])
            without[i] = min(everything, roomier - value[i])
        if i >= whole:
            smaller = filled_in_part(value, weight, values, weights, budget - weight[i])
            within[i] = min(everything, smaller + value[i])
    return everything, without, within


@compiled
def solved(value: Floats, weight: Longs, budget: int) -> Bools:
    """The best choice by dynamic programming over budgets. O(items × budget)."""
    best = np.zeros(budget + 1)
    better = np.zeros((len(value), budget + 1), np.bool_)
    for i in range(len(value)):
        # From the largest budget down, so that no item is taken twice.
        for room in range(budget, weight[i] - 1, -1):
            with_it = best[room - weight[i]] + value[i]
            if with_it > best[room]:
                best[room], better[i, room] = with_it, True
    taken = np.zeros(len(value), np.bool_)
    room = budget
    for i in range(len(value) - 1, -1, -1):
        if better[i, room]:
            taken[i] = True
            room -= weight[i]
    return taken
