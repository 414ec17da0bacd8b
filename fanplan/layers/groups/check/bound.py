"""No choice by the same rule is worth more than what plan.json states: proved from all groups."""

from __future__ import annotations

import math

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.layers.groups.params import EntryBudget, Threshold, Top, rule_of
from fanplan.layers.groups.record import GroupsRecord
from fanplan.plan.findings import TOLERANCE, Findings, require_close

TABLE = 200_000_000
"""Most cells of the table by which a budget is proved."""


def check_choice(
    record: GroupsRecord,
    worth: Floats,
    entries: Longs,
    control: Longs,
    alone: bool,
    findings: Findings,
) -> None:
    """The bound; and, unless another layer chose them, that just the groups of the rule are set up.

    Groups that a layer binds may be fewer than those that the rule would take.
    """
    scale = float(np.abs(worth).sum())
    match rule_of(record.params.select):
        case Top(share):
            many = math.ceil(round(share * len(worth), 9))
            best = float(np.sort(worth)[len(worth) - many :].sum())
        case Threshold(least):
            prices, net = record.params.prices, worth
            if record.params.rank != "saving":
                net = net - prices.entry * entries - prices.control * control
            # Sums in another order may put a group just above the threshold, or just below.
            sure = net > least + TOLERANCE * max(abs(least), 1.0)
            some = (net > least - TOLERANCE * max(abs(least), 1.0)) & ~sure
            best = float(worth[sure].sum())
            scale = scale + float(np.abs(worth[some]).sum()) / 1e-12
        case EntryBudget(budget):
            most = relaxed_optimum(worth, entries, budget)
            if record.bound > most + TOLERANCE * abs(most):
                what = f"{record.bound} is above the {most} that is certain"
                findings.violate("plan.json: groups.bound", 1, [what])
            if not packs_no_more(worth, entries, budget, record.bound):
                what = f"a choice of more than {record.bound} is not ruled out"
                findings.violate("plan.json: groups.bound", 1, [what])
            return
    require_close("plan.json: groups.bound", record.bound, best, scale, findings)
    if alone:
        require_close("plan.json: groups.value, of the rule", record.value, best, scale, findings)


def packs_no_more(worth: Floats, entries: Longs, budget: int, most: float) -> bool:
    """Whether no groups within a budget of entries are worth more than ``most``.

    What the relaxed optimum (Dantzig 1957) leaves open is tried out: groups without which, or with
    which, it falls to ``most`` are in every better choice, or in none.
    """
    most += TOLERANCE * abs(most)
    if relaxed_optimum(worth, entries, budget) <= most:
        return True
    value, weight = useful(worth, entries, budget)
    # At most what it is with all groups in the room that is left, and this one taken for it.
    within = relaxed_optima(value, weight, budget - weight) + value
    without = relaxed_optima(value, weight, budget + weight) - value
    must, never = without <= most, within <= most
    room = budget - int(weight[must].sum())
    if room < 0 or (must & never).any():
        return True
    free = np.flatnonzero(~must & ~never & (weight <= room))
    if len(free) * (room + 1) > TABLE:
        return False
    best = np.zeros(room + 1)
    for item in free:
        wide = int(weight[item])
        best[wide:] = np.maximum(best[wide:], best[: room + 1 - wide] + value[item])
    return bool(float(value[must].sum()) + best[-1] <= most)


def useful(worth: Floats, entries: Longs, budget: int) -> tuple[Floats, Longs]:
    """Worth and entries of groups that could be chosen, by worth per entry."""
    some = np.flatnonzero((worth > 0) & (entries <= budget))
    with np.errstate(divide="ignore"):
        some = some[np.argsort(-(worth[some] / entries[some]), kind="stable")]
    return worth[some], entries[some]


def relaxed_optimum(worth: Floats, entries: Longs, budget: int) -> float:
    return float(relaxed_optima(*useful(worth, entries, budget), np.array([budget]))[0])


def relaxed_optima(value: Floats, weight: Longs, rooms: Longs) -> Floats:
    """The most value in each of the rooms, the last item cut; items by value per weight."""
    values, weights = np.append(0.0, np.cumsum(value)), np.append(0, np.cumsum(weight))
    whole = np.searchsorted(weights, rooms, side="right") - 1
    # After the last item comes one that is worth nothing.
    value, weight = np.append(value, 0.0), np.append(weight, 1)
    cut = value[whole] * (rooms - weights[whole]) / np.maximum(weight[whole], 1)
    found: Floats = values[whole] + cut
    return found
