"""How many brokers any allocation needs."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from fanplan.planners.allocation.allocation import AllocationParams
from fanplan.planners.allocation.loads import Clients, clients_of, exact_impact
from fanplan.problem.interest import Floats, Longs
from fanplan.problem.overlay import ClientProblem

HEAVIEST = 400
"""Subscribers that are compared pair by pair."""


def fewest_brokers(problem: ClientProblem, params: AllocationParams) -> int:
    """A number of brokers that no allocation can undercut.

    Clients too big for any broker need one each, and share it with nobody. For the others it is the
    larger of two bounds: brokers that hold the load that is left in the best case, and subscribers
    no two of which fit on one broker.
    """
    clients = clients_of(problem)
    impact = exact_impact(clients) if params.load == "exact" else clients.impact
    room = np.sort(params.room(problem))[::-1]
    lone = impact > room[0] * (1 + 1e-9)
    if lone.all():
        return len(lone)
    work = least_work(problem, params, clients, lone, room[0])
    by_work = int(np.searchsorted(np.cumsum(room), work * (1 - 1e-9))) + 1
    apart = len(apart_from_each_other(problem, params, clients, impact, lone, room[0]))
    return int(lone.sum()) + max(1, by_work, apart)


def least_work(
    problem: ClientProblem, params: AllocationParams, clients: Clients, lone: Longs, room: float
) -> float:
    """Messages per second that all brokers together must process at least.

    Exact: every publication is processed by its publisher's broker, so it is the sum of rates.
    Estimate: subscriber s adds l_s less what publishers at its broker send it (Eq. 6.2). No term is
    negative, so these publishers have rates of ``room`` together at most. The most that s can save
    is then a knapsack of publishers: fractional, by descending interest.
    """
    publishers = clients.publishers
    rates = clients.impact[:publishers][~lone[:publishers]]
    if params.load == "exact":
        return float(rates.sum())
    interest = problem.interest.tocsr()[~lone[:publishers]]
    own = problem.rates[~lone[:publishers]]
    here = ~lone[publishers:]
    left = clients.impact[publishers:] - most_saved(interest, own, room)
    return float(rates.sum() + np.maximum(left, 0.0)[here].sum())


def most_saved(interest: scipy.sparse.csr_array, rates: Floats, room: float) -> Floats:
    """For each subscriber the most it can get from publishers with rates of ``room`` together."""
    pairs = interest.tocoo()
    order = np.lexsort((-pairs.data, pairs.col))
    subscriber, share, rate = pairs.col[order], pairs.data[order], rates[pairs.row[order]]
    total = np.cumsum(rate)
    first = np.searchsorted(subscriber, subscriber)
    before = total - rate - (total - rate)[first]
    taken = np.clip(room - before, 0.0, rate)
    return np.bincount(subscriber, share * taken, interest.shape[1]).astype(np.float64)


def apart_from_each_other(
    problem: ClientProblem,
    params: AllocationParams,
    clients: Clients,
    impact: Floats,
    lone: Longs,
    room: float,
) -> Longs:
    """Subscribers no two of which fit on one broker: each needs another one. Greedy, by impact.

    A broker with s and t processes at least what either wants: each message once if exact; by the
    estimate r·min(1, i_s + i_t) of each publisher, whether it is at this broker or not.
    """
    publishers = clients.publishers
    weight = np.where(lone[publishers:], 0.0, impact[publishers:])
    heavy = np.argsort(-weight, kind="stable")[:HEAVIEST]
    heavy = heavy[weight[heavy] > 0]
    wants, most = wanted_by(problem, params, clients, heavy)
    kept: list[int] = []
    for i in range(len(heavy)):
        together = np.minimum(wants[kept] + wants[[i]], most)
        if (together.sum(axis=1) > room * (1 + 1e-9)).all():
            kept.append(i)
    return heavy[kept]


def wanted_by(
    problem: ClientProblem, params: AllocationParams, clients: Clients, heavy: Longs
) -> tuple[Floats, Floats]:
    """Messages per second that subscribers want of each route or publisher, and all it sends."""
    if params.load == "estimate":
        shares = problem.interest.T.tocsr()[heavy].toarray()
        return shares * problem.rates, problem.rates
    row = np.repeat(np.arange(len(clients.rate)), np.diff(clients.starts))
    shape = (len(problem.subscribers), len(clients.rate))
    wants = scipy.sparse.coo_array((clients.rate[row], (clients.subscribers, row)), shape=shape)
    return wants.tocsr()[heavy].toarray(), clients.rate
