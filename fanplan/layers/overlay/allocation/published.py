"""Algorithms 3 and 4 of Tajuddin (2011): clients one by one to the most similar broker."""

from __future__ import annotations

import numpy as np

from fanplan.layers.overlay.allocation.allocation import Allocation, AllocationParams
from fanplan.layers.overlay.allocation.loads import clients_of, nobody_placed
from fanplan.layers.overlay.allocation.packing import (
    RANDOM,
    SIMILAR,
    fill,
    finished,
    largest_first,
    packing_of,
)
from fanplan.layers.overlay.allocation.ranking import Ranking, ranked
from fanplan.network.brokers import ClientProblem


def ranked_allocation(
    problem: ClientProblem, ranking: Ranking, params: AllocationParams, seed: int
) -> Allocation:
    """Allocate in the order of a ranking; a new broker, largest first, when none has room.

    The baseline takes clients and brokers at random and chooses any broker with room, so that
    similarity has no part in it. O(similar pairs + clients × brokers used).
    """
    clients = clients_of(problem)
    packing = packing_of(problem, params, clients)
    order = ranked(problem, clients, ranking, seed)
    stack, choose = largest_first(problem), SIMILAR
    if ranking == "baseline":
        stack, choose = np.random.default_rng((seed, 1)).permutation(len(stack)), RANDOM
    state = nobody_placed(clients, len(stack))
    draws = np.random.default_rng((seed, 2)).random(len(order))
    used = fill(clients, state, packing, order, stack, 0, choose, draws)
    return finished(problem, packing, state, stack[:used])
