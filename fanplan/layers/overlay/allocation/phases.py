"""Allocation and tree in turn until stable (Tajuddin 2011, section 6.3), instead of a fixed LCF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy.sparse

from fanplan.core.arrays import Floats, Ints, Longs, starts_of
from fanplan.layers.overlay.allocation.allocation import Allocation, AllocationParams
from fanplan.network.brokers import ClientProblem, OverlayProblem, Routes, Similarity
from fanplan.network.carried import OverlayLedger, trees_ledger
from fanplan.network.trees import Tree, Trees, one_tree

Made = TypeVar("Made", bound="Deployed")


def deployed_overlay(problem: ClientProblem, allocation: Allocation) -> OverlayProblem:
    """The overlay problem of the brokers used, ascending: what is left to decide is the tree.

    Similarity of brokers is the sum over their clients (Eq. 4.2 and 4.7). Cover is not known from
    clients and is empty.
    """
    used = np.sort(allocation.used)
    number = np.full(len(problem.brokers), -1, dtype=np.int32)
    number[used] = np.arange(len(used))
    publishers = len(problem.publishers)
    home = number[allocation.broker]
    sending, wanting = (
        membership(part, len(used)) for part in (home[:publishers], home[publishers:])
    )
    overlap = off_diagonal(wanting @ problem.common @ wanting.T)
    interest = off_diagonal(sending @ problem.interest @ wanting.T)
    return OverlayProblem(
        brokers=problem.brokers.take(used),
        capacity=problem.capacity[used],
        cost=problem.cost[used],
        routes=routes_between(problem.routes, home[:publishers], home[publishers:]),
        similarity=Similarity(overlap, scipy.sparse.csr_array(overlap.shape), interest),
        links=None,
        seconds=problem.seconds,
        source=problem.source,
    )


def membership(home: Ints, brokers: int) -> scipy.sparse.csr_array:
    """Brokers × clients: 1 where a client is."""
    where = (home, np.arange(len(home)))
    return scipy.sparse.coo_array((np.ones(len(home)), where), (brokers, len(home))).tocsr()


def off_diagonal(square: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Without the diagonal."""
    pairs = square.tocoo()
    off = pairs.row != pairs.col
    kept = (pairs.data[off], (pairs.row[off], pairs.col[off]))
    return scipy.sparse.coo_array(kept, square.shape).tocsr()


def local_matches(problem: ClientProblem, allocation: Allocation) -> Longs:
    """How many subscribers want it at each destination of the routes between brokers."""
    home = np.searchsorted(np.sort(allocation.used), allocation.broker)
    return ends_of(problem.routes, home[len(problem.publishers) :])[1]


def ends_of(routes: Routes, wanting: Longs) -> tuple[Longs, Longs]:
    """Route × brokers + broker of each destination, ascending, and how many subscribers it has."""
    row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    size = int(wanting.max(initial=0)) + 1
    return np.unique(row.astype(np.int64) * size + wanting[routes.brokers], return_counts=True)


def routes_between(routes: Routes, sending: Ints, wanting: Ints) -> Routes:
    """Routes between clients as routes between brokers; not merged, each destination once."""
    size = int(wanting.max(initial=0)) + 1
    pairs, _ = ends_of(routes, wanting.astype(np.int64))
    counts = np.bincount(pairs // size, minlength=len(routes))
    return Routes(
        sending[routes.source],
        starts_of(counts),
        (pairs % size).astype(np.int32),
        routes.messages,
        routes.deliveries,
    )


@dataclass(frozen=True, eq=False)
class Deployed:
    """An allocation, and the overlay problem and the trees of its brokers."""

    allocation: Allocation
    overlay: OverlayProblem
    trees: Trees

    @cached_property
    def ledger(self) -> OverlayLedger:
        return trees_ledger(self.overlay, self.trees)

    @property
    def processing(self) -> Floats:
        """Messages per second through each broker, forwarded ones included."""
        return self.ledger.processed / self.overlay.seconds

    @property
    def overloaded(self) -> Longs:
        """Brokers that process more than their capacity, as positions of the client problem."""
        over = self.processing > self.overlay.capacity * (1 + 1e-9)
        return np.sort(self.allocation.used)[over]


def deployed(
    problem: ClientProblem, allocation: Allocation, make_tree: Callable[[OverlayProblem], Tree]
) -> Deployed:
    """Link the brokers of an allocation."""
    overlay = deployed_overlay(problem, allocation)
    return Deployed(allocation, overlay, one_tree(make_tree(overlay)))


def stable(
    problem: ClientProblem,
    make: Callable[[AllocationParams], Made],
    params: AllocationParams,
    rounds: int = 10,
) -> Made:
    """Repeat: allocate, link, reserve what brokers only forward, until none is overloaded.

    ``make`` is called with a higher ``reserved`` each round. What is reserved never shrinks, so
    the rounds cannot go in circles; after ``rounds`` of them the one with fewest overloaded brokers
    is returned, which names them.
    """
    reserved, made = np.zeros(len(problem.brokers)), []
    for _ in range(rounds):
        made.append(make(replace(params, reserved=reserved)))
        if len(made[-1].overloaded) == 0:
            break
        reserved = np.maximum(reserved, forwarded(problem, made[-1]))
    return min(made, key=lambda one: len(one.overloaded))


def forwarded(problem: ClientProblem, made: Deployed) -> Floats:
    """Messages per second that overloaded brokers process beyond those of their own clients."""
    more = np.zeros(len(problem.brokers))
    more[np.sort(made.allocation.used)] = made.processing
    kept = np.zeros(len(problem.brokers))
    over = made.overloaded
    kept[over] = np.maximum(more[over] - made.allocation.exact[over], 0.0)
    return kept
