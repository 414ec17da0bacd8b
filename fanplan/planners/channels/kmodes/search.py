"""The search with one channel per row: seed, Lloyd, swaps, polish."""

from __future__ import annotations

import numpy as np

from fanplan.planners.channels.kmodes.assign import Choice, total_gain
from fanplan.planners.channels.kmodes.column import CANDIDATES
from fanplan.planners.channels.kmodes.demand import Bytes, Demand, heaviest
from fanplan.planners.channels.kmodes.lloyd import lloyd
from fanplan.planners.channels.kmodes.params import KmodesParams
from fanplan.planners.channels.kmodes.polish import polish
from fanplan.planners.channels.kmodes.seed import seed_members
from fanplan.planners.channels.kmodes.swap import swap
from fanplan.planners.stop import Stop

LEAST_HEAVY = 30_000
"""Up to this many rows the whole demand is searched."""
CYCLES = 3
"""Most alternations of swaps and polish."""
SETTLED = 1e-3
"""They end when one adds less than this part of the gain."""


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
        members = seed_members(heavy, channels, random, candidates)
    members, choice = lloyd(heavy, members, params.passes)
    members, choice = swap_and_polish(heavy, members, choice, params, random, stop, all_unicast)
    if heavy is not demand:
        members, choice = lloyd(demand, members, params.passes)
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
    """Swaps, exact moves and Lloyd in turn until one round adds little; the gain never falls."""
    gain = total_gain(demand, choice)
    for _ in range(CYCLES):
        if stop(all_unicast - gain):
            break
        members, choice = swap(demand, members, choice, params.swaps, random, stop, all_unicast)
        members, choice = polish(demand, members, choice)
        members, choice = lloyd(demand, members, params.passes)
        before, gain = gain, total_gain(demand, choice)
        if gain <= before * (1 + SETTLED):
            break
    return members, choice
