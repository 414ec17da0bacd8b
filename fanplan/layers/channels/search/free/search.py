"""The search with one channel per row: seed, Lloyd, swaps, polish; of all rows or of a coreset.

The heavy coreset is for problems whose rows do not fit into memory: a search of the heaviest rows
alone gives the members for all. ``search_free`` itself looks at them before it assigns all rows, so
both ways give the same members.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from fanplan.core.arrays import Bytes
from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Stop
from fanplan.layers.channels.method_params import KmodesParams
from fanplan.layers.channels.search.effort import SETTLED, Effort
from fanplan.layers.channels.search.free.lloyd import lloyd, polish
from fanplan.layers.channels.search.free.seed import seed_members
from fanplan.layers.channels.search.free.swap import swap
from fanplan.layers.channels.search.model.assign import Choice, total_gain
from fanplan.layers.channels.search.model.demand import Demand, heaviest_demand

LEAST_HEAVY = 30_000
"""Up to this many rows the whole demand is searched."""
ROUND = 64
"""Swaps between two polishes."""
MOST_ROWS = 250_000
"""Rows of a coreset unless said otherwise: with audiences of 100 a few hundred megabytes."""
WITHIN = {"channels", "weights", "passes", "swaps", "heavy", "multiple"}
"""Parameters that mean the same when only a coreset is in memory."""


def search_free(
    demand: Demand, channels: int, effort: Effort, members: Bytes | None = None
) -> tuple[Bytes, Choice]:
    """Members and the rows' channels, from given members or from a seed.

    Swaps see the heaviest rows only; all rows are then assigned and settled by Lloyd. Until then
    gains are told as if rows that are not seen went by unicast.
    """
    heavy = heaviest_demand(demand, effort.params.heavy, LEAST_HEAVY)
    if members is None:
        members = seed_members(heavy, channels, effort)
    members, choice = lloyd(heavy, members, effort.params.passes, effort.enough)
    members, choice = swap_and_polish(heavy, members, choice, effort)
    if heavy is not demand:
        members, choice = lloyd(demand, members, effort.params.passes, effort.enough)
    return members, choice


def swap_and_polish(
    demand: Demand, members: Bytes, choice: Choice, effort: Effort
) -> tuple[Bytes, Choice]:
    """Exact moves, then swaps and moves in turn until a round adds little; the gain never falls."""
    gain, swaps = total_gain(demand, choice), effort.params.swaps
    if effort.enough(gain):
        return members, choice
    members, choice = polish(demand, members, choice)
    for begin in range(0, swaps, ROUND):
        if effort.enough(gain):
            break
        trials = min(ROUND, swaps - begin)
        members, choice = swap(demand, members, choice, trials, effort)
        members, choice = polish(demand, members, choice)
        before, gain = gain, total_gain(demand, choice)
        if gain <= before * (1 + SETTLED):
            break
    return members, choice


def coreset_size(rows: int, params: KmodesParams, most: int) -> int:
    """How many of the rows are searched: those that swaps look at, if that is not too many."""
    return min(rows, most, max(int(params.heavy * rows), LEAST_HEAVY))


def search_coreset(
    demand: Demand, params: KmodesParams, seed: int, stop: Stop, all_unicast: float
) -> Bytes:
    """Members found for the coreset, users × channels; ``all_unicast`` is the cost of all rows."""
    random = np.random.default_rng([seed, 0])
    # The coreset is the heaviest part already: it is searched as a whole.
    effort = Effort(replace(params, heavy=1.0), random, stop, all_unicast)
    return search_free(demand, params.channels, effort)[0]


def require_within(params: KmodesParams) -> None:
    """Limits need all rows in memory; whoever sets one is told so."""
    problems = [
        Problem(item.name, "is not supported when planning on Spark", "Leave it out, or plan here")
        for item in fields(params)
        if item.name not in WITHIN and getattr(params, item.name) != item.default
    ]
    if problems:
        raise InputError(problems)
