"""The heavy coreset: a search of the heaviest rows alone gives the members for all rows.

For problems whose rows do not fit into memory. What is searched here is what ``search`` itself
looks at before it assigns all rows, so both ways give the same members.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from fanplan.core.arrays import Bytes
from fanplan.core.errors import InputError, Problem
from fanplan.core.stop import Stop
from fanplan.layers.channels.params import KmodesParams
from fanplan.layers.channels.search.free.search import LEAST_HEAVY, search
from fanplan.layers.channels.search.model.demand import Demand

MOST_ROWS = 250_000
"""Rows of a coreset unless said otherwise: with audiences of 100 a few hundred megabytes."""

WITHIN = {"channels", "weights", "passes", "swaps", "heavy", "multiple"}
"""Parameters that mean the same when only a coreset is in memory."""


def coreset_size(rows: int, params: KmodesParams, most: int) -> int:
    """How many of the rows are searched: those that swaps look at, if that is not too many."""
    return min(rows, most, max(int(params.heavy * rows), LEAST_HEAVY))


def search_coreset(
    demand: Demand, params: KmodesParams, seed: int, stop: Stop, all_unicast: float
) -> Bytes:
    """Members found for the coreset, users × channels; ``all_unicast`` is the cost of all rows."""
    random = np.random.default_rng([seed, 0])
    whole = replace(params, heavy=1.0)
    members, _ = search(demand, params.channels, whole, random, stop, all_unicast)
    return members


def require_within(params: KmodesParams) -> None:
    """Limits need all rows in memory; whoever sets one is told so."""
    problems = [
        Problem(item.name, "is not supported when planning on Spark", "Leave it out, or plan here")
        for item in fields(params)
        if item.name not in WITHIN and getattr(params, item.name) != item.default
    ]
    if problems:
        raise InputError(problems)
