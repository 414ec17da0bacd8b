"""Algorithms 3 and 4 of Tajuddin (2011): clients one by one to the most similar broker."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.layers.overlay.allocation.allocation import Allocation, AllocationParams
from fanplan.layers.overlay.allocation.loads import Clients, clients_of, nobody_placed
from fanplan.layers.overlay.allocation.packing import (
    RANDOM,
    SIMILAR,
    fill,
    finished,
    largest_first,
    packing_of,
)
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


Ranking = Literal["gli", "gi", "gig", "baseline"]


def ranked(problem: ClientProblem, clients: Clients, ranking: Ranking, seed: int) -> Longs:
    """All clients once, first to be allocated first. Ties by position, publishers first."""
    if ranking == "gli":
        return np.argsort(-clients.impact, kind="stable")
    if ranking == "baseline":
        return np.random.default_rng((seed, 0)).permutation(len(clients.impact))
    pairs = problem.interest.tocoo()
    publisher, value = pairs.row.astype(np.int64), pairs.data
    subscriber = pairs.col.astype(np.int64) + clients.publishers
    greatest = np.zeros(clients.publishers)
    np.maximum.at(greatest, publisher, value)
    # GI ranks pairs by interest; GIg ranks groups by their greatest interest, then inside.
    groups = (publisher, -greatest[publisher]) if ranking == "gig" else ()
    order = np.lexsort((subscriber, publisher, -value, *groups))
    listed = np.stack((publisher[order], subscriber[order]), axis=1).ravel()
    # Clients that share nothing with anybody are in no pair; they come last.
    return first_times(np.concatenate((listed, np.arange(len(clients.impact)))))


def first_times(listed: Longs) -> Longs:
    """Each client where it appears first: a client is allocated once."""
    _, first = np.unique(listed, return_index=True)
    return listed[np.sort(first)]
