"""In which order clients are allocated (Tajuddin 2011, section 6.3.1)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.layers.overlay.allocation.loads import Clients
from fanplan.network.brokers import ClientProblem

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
