"""The search with one channel per row: seed, Lloyd, swaps, polish."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Bytes
from fanplan.core.stop import Stop
from fanplan.layers.channels.params import KmodesParams
from fanplan.layers.channels.search.free.column import CANDIDATES
from fanplan.layers.channels.search.free.lloyd import lloyd
from fanplan.layers.channels.search.free.polish import polish
from fanplan.layers.channels.search.free.seed import seed_members
from fanplan.layers.channels.search.free.swap import swap
from fanplan.layers.channels.search.model.assign import Choice, total_gain
from fanplan.layers.channels.search.model.demand import Demand, heaviest

LEAST_HEAVY = 30_000
"""Up to this many rows the whole demand is searched."""
ROUND = 64
"""Swaps between two polishes."""
SETTLED = 1e-4
"""Rounds end when one adds less than this part of the gain."""


def search(
    demand: Demand,
    channels: int,
    params: KmodesParams,
    random: np.random.Generator,
    stop: Stop,
    all_unicast: float,
    members: Bytes | None = None,
    candidates: int = CANDIDATES,
) -> tuple[Bytes, Choice]:
    """Members and the rows' channels, from given members or from a seed.

    Swaps see the heaviest rows only; all rows are then assigned and settled by Lloyd. ``stop``
    hears ``all_unicast`` less the gain: as if rows that are not seen went by unicast.
    """
    heavy = heaviest(demand, params.heavy, LEAST_HEAVY)
    if members is None:
        members = seed_members(heavy, channels, random, candidates, stop, all_unicast)
    members, choice = lloyd(heavy, members, params.passes, stop=stop, all_unicast=all_unicast)
    members, choice = swap_and_polish(heavy, members, choice, params, random, stop, all_unicast)
    if heavy is not demand:
        members, choice = lloyd(demand, members, params.passes, stop=stop, all_unicast=all_unicast)
    return members, choice


def swap_and_polish(
    demand: Demand,
    members: Bytes,
    choice: Choice,
    params: KmodesParams,
    random: np.random.Generator,
    stop: Stop,
    all_unicast: float,
) -> tuple[Bytes, Choice]:
    """Exact moves, then swaps and moves in turn until a round adds little; the gain never falls."""
    gain = total_gain(demand, choice)
    if stop(all_unicast - gain):
        return members, choice
    members, choice = polish(demand, members, choice)
    for begin in range(0, params.swaps, ROUND):
        if stop(all_unicast - gain):
            break
        trials = min(ROUND, params.swaps - begin)
        members, choice = swap(demand, members, choice, trials, random, stop, all_unicast)
        members, choice = polish(demand, members, choice)
        before, gain = gain, total_gain(demand, choice)
        if gain <= before * (1 + SETTLED):
            break
    return members, choice
