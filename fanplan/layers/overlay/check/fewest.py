"""The check's own count of how many brokers any allocation needs.

The arguments are those of `allocation/bound`; subscribers are gone through one by one here.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from fanplan.core.arrays import Floats, Longs
from fanplan.network.brokers import ClientProblem
from fanplan.plan.findings import TOLERANCE

HEAVIEST = 400
"""Subscribers that are compared pair by pair."""
STEPS = 40
"""Kinds of brokers by the rates of their publishers."""
PRICES = np.append(0.0, np.geomspace(0.01, 100, 30))
"""Prices of a publisher's rate, in brokers for the largest room."""


def fewest_brokers_proved(problem: ClientProblem, exact: bool, room: Floats) -> int:
    """Brokers of the clients that fit nowhere, and of the others: for all they process, for those
    no two of whom fit together, or by what room costs where publishers take some of it."""
    room = np.sort(room)[::-1]
    sent = np.bincount(problem.routes.source, per_second(problem), len(problem.rates))
    publishing: Floats = np.maximum(problem.rates, sent)
    wants, most = wanted(problem, exact)
    least = np.asarray(np.minimum(wants.data, most[wants.indices])) if wants.nnz else np.empty(0)
    rows = np.repeat(np.arange(wants.shape[0]), np.diff(wants.indptr))
    least = np.bincount(rows, least, wants.shape[0]).astype(np.float64)
    big = [found > room[0] * (1 + TOLERANCE) for found in (publishing, least)]
    alone = int(big[0].sum() + big[1].sum())
    if big[0].all() and big[1].all():
        return alone
    apart = none_together(wants, most, np.where(big[1], 0.0, least), room[0])
    rates = float(publishing[~big[0]].sum())
    if exact:
        return alone + max(1, apart, enough(rates, room))
    left = left_over(wants[~big[1]][:, ~big[0]], problem.rates[~big[0]], least[~big[1]], room[0])
    full = np.asarray(wants[~big[1]].sum(axis=1)).ravel()
    left = np.maximum(full - left, 0.0)
    priced = dearest(left, rates, room[0])
    return alone + max(1, apart, enough(float(left[-1].sum()) + rates, room), priced)


def per_second(problem: ClientProblem) -> Floats:
    return problem.routes.messages / problem.seconds


def wanted(problem: ClientProblem, exact: bool) -> tuple[scipy.sparse.csr_array, Floats]:
    """Subscribers × routes, or publishers by the estimate: messages/s wanted, and all there are."""
    if not exact:
        wants = problem.interest.T.tocsr() @ scipy.sparse.diags_array(problem.rates)
        return scipy.sparse.csr_array(wants), problem.rates
    routes, rate = problem.routes, per_second(problem)
    row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    shape = (len(problem.subscribers), len(routes))
    pairs = (rate[row], (routes.brokers, row))
    return scipy.sparse.coo_array(pairs, shape=shape).tocsr(), rate


def enough(load: float, room: Floats) -> int:
    """Brokers, the largest first, whose rooms add up to a load."""
    return int((np.cumsum(room) < load * (1 - TOLERANCE)).sum()) + 1


def none_together(wants: scipy.sparse.csr_array, most: Floats, least: Floats, room: float) -> int:
    """How many of the heaviest subscribers, each after those before it, fit with none of them."""
    heavy: Longs = np.argsort(-least, kind="stable")[:HEAVIEST]
    kept = np.zeros((0, len(most)))
    for row in wants[heavy[least[heavy] > 0]].toarray():
        both = np.minimum(kept + row, most).sum(axis=1)
        if (both > room * (1 + TOLERANCE)).all():
            kept = np.vstack((kept, row))
    return len(kept)


def left_over(wants: scipy.sparse.csr_array, rates: Floats, least: Floats, room: float) -> Floats:
    """Steps × subscribers: the most that publishers beside a subscriber can spare its broker.

    They are taken by the share that it wants of them, the last in part, up to the step's rates,
    and up to the room that the subscriber leaves for what it does not want.
    """
    limits = room * np.arange(1, STEPS + 1) / STEPS
    spared = np.zeros((STEPS, wants.shape[0]))
    for subscriber in range(wants.shape[0]):
        own = slice(wants.indptr[subscriber], wants.indptr[subscriber + 1])
        value, rate = wants.data[own], rates[wants.indices[own]]
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.nan_to_num(value / rate), kind="stable")
        value, rate = value[order], rate[order]
        free = max(room - least[subscriber], 0.0)
        fitting = most_value(value, np.maximum(rate - value, 0.0), np.array([free]))
        spared[:, subscriber] = np.minimum(most_value(value, rate, limits), fitting)
    return spared


def most_value(value: Floats, weight: Floats, limits: Floats) -> Floats:
    """The value of what fits within limits, in this order, the last in part."""
    some = weight > 0
    ends = np.append(0.0, np.cumsum(weight[some]))
    found: Floats = np.interp(limits, ends, np.append(0.0, np.cumsum(value[some])))
    found += value[~some].sum()
    return found


def dearest(left: Floats, rates: float, room: float) -> int:
    """The number of brokers by linear duality, for the best of some prices of rate."""
    start = room * np.arange(len(left)) / len(left)
    best = 0.0
    for price in PRICES / room:
        unit = (1 + price * start) / (room - start)
        best = max(best, float((left * unit[:, None]).min(axis=0).sum()) - price * rates)
    return int(np.ceil(best * (1 - TOLERANCE) - TOLERANCE))
