"""How many brokers any allocation needs."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from fanplan.core.arrays import Floats, Longs
from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.layers.overlay.allocation.allocation import Allocation, AllocationParams
from fanplan.layers.overlay.allocation.loads import Clients, clients_of, exact_impact
from fanplan.network.brokers import ClientProblem

HEAVIEST = 400
"""Subscribers that are compared pair by pair."""
STEPS = 40
"""Kinds of brokers by the rates of their publishers."""
PRICES = 30
"""Prices of a publisher's rate that are tried."""
SLACK = 1 - 1e-9
"""What rounding may take from a bound."""


def fewest_brokers(problem: ClientProblem, params: AllocationParams) -> int:
    """A number of brokers that no allocation can undercut.

    Clients too big for any broker need one each, and share it with nobody. For the others it is the
    largest of three bounds: brokers that hold the least load of all together, subscribers no two of
    which fit on one broker, and by the estimate a bound that prices publishers.
    """
    clients = clients_of(problem)
    impact = least_impact(problem, params, clients)
    room = np.sort(params.room(problem))[::-1]
    lone = impact > room[0] / SLACK
    if lone.all():
        return len(lone)
    apart = len(apart_from_each_other(problem, params, clients, impact, lone, room[0]))
    if params.load == "exact":
        # Every publication is processed by its publisher's broker.
        rates = clients.impact[: clients.publishers][~lone[: clients.publishers]]
        return int(lone.sum()) + max(1, apart, brokers_for(float(rates.sum()), room))
    left, rates = least_left(problem, clients, impact, lone, room[0])
    together = brokers_for(float(left[-1].sum() + rates), room)
    return int(lone.sum()) + max(1, apart, together, brokers_by_prices(left, rates, room[0]))


def least_impact(problem: ClientProblem, params: AllocationParams, clients: Clients) -> Floats:
    """The least load of any broker that a client is at.

    By the estimate a subscriber with several regions may want more than all of a publisher. With
    the publisher beside it, it costs no more than the rate.
    """
    if params.load == "exact":
        return exact_impact(clients)
    wanted = problem.interest.minimum(1.0).T @ problem.rates
    return np.concatenate((clients.impact[: clients.publishers], wanted))


def brokers_for(load: float, room: Floats) -> int:
    """The fewest brokers, rooms descending, whose rooms add up to a load."""
    return int(np.searchsorted(np.cumsum(room), load * SLACK)) + 1


def least_left(
    problem: ClientProblem, clients: Clients, least: Floats, lone: Longs, room: float
) -> tuple[Floats, float]:
    """What subscribers cost at least at brokers by the rates published there, and all rates.

    Row k is about brokers whose publishers' rates are up to (k + 1) / STEPS of the room. Subscriber
    s adds l_s less what these publishers send it (Eq. 6.2). The most that can be is a knapsack,
    taken fractionally: by their rates; and, as s and they fit together, by what s does not want of
    them, which is at most the room that s leaves.
    """
    publishers = clients.publishers
    pairs = problem.interest.tocsr()[~lone[:publishers]][:, ~lone[publishers:]].tocoo()
    rate = problem.rates[~lone[:publishers]][pairs.row]
    impact, least = (kind[publishers:][~lone[publishers:]] for kind in (clients.impact, least))
    sent = pairs.data * rate
    by_share = np.lexsort((-pairs.data, pairs.col))
    owner, sent, rate = pairs.col[by_share], sent[by_share], rate[by_share]
    unwanted = np.maximum(rate - sent, 0.0)
    fitting = knapsack_value(owner, sent, unwanted, np.maximum(room - least, 0.0))
    saved = [
        np.minimum(
            knapsack_value(owner, sent, rate, np.full(len(impact), room * k / STEPS)), fitting
        )
        for k in range(1, STEPS + 1)
    ]
    rates = float(clients.impact[:publishers][~lone[:publishers]].sum())
    return np.maximum(impact - np.array(saved), 0.0), rates


def knapsack_value(owner: Longs, value: Floats, weight: Floats, limit: Floats) -> Floats:
    """For each owner the most value of weights up to its limit, fractionally.

    Items come by owner, and inside by descending value per weight.
    """
    total = np.cumsum(weight)
    before = total - weight - (total - weight)[np.searchsorted(owner, owner)]
    share = np.clip(limit[owner] - before, 0.0, weight) / np.where(weight > 0, weight, 1.0)
    return np.bincount(owner, np.where(weight > 0, share, 1.0) * value, len(limit)).astype(float)


def brokers_by_prices(left: Floats, rates: float, room: float) -> int:
    """Brokers needed when every publisher is at one of them only, by linear duality.

    A broker with publishers' rates of x has room - x for what its subscribers cost. Let all brokers
    with x in the step from a to b cost 1 each, and a unit of rate cost c more. Then a unit of their
    room for subscribers costs at least (1 + c·a) / (room - a), and all brokers together at most
    their number + c · all rates. So for any c ≥ 0 the number is at least the sum over subscribers
    of the cheapest of all steps, less c · all rates.
    """
    start = room * np.arange(len(left)) / len(left)
    best = 0.0
    for price in np.append(0.0, np.geomspace(0.01, 100, PRICES)) / room:
        unit = (1 + price * start) / (room - start)
        best = max(best, float((left * unit[:, None]).min(axis=0).sum() - price * rates))
    return int(np.ceil(best * SLACK - 1e-9))


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


def require_fitting(
    problem: ClientProblem, params: AllocationParams, brokers: int, bound: int
) -> None:
    """Raise if it can be proved that clients do not fit on so many of the brokers.

    Either no allocation has so few, or a client is too big for every broker, and then no number is
    enough.
    """
    if brokers < 1:
        raise InputError(Problem("brokers", f"{brokers} hold nobody", "Ask for at least 1"))
    least = least_impact(problem, params, clients_of(problem))
    if least.max(initial=0.0) > params.room(problem).max() * (1 + 1e-9):
        people = problem.publishers.to_pylist() + problem.subscribers.to_pylist()
        capacity = float(least.max()) / params.lcf
        what = f"client {people[int(least.argmax())]!r} is too big for every broker"
        remedy = f"Give a broker a capacity of {capacity:.6g} messages/s"
        raise InfeasibleError("capacity", capacity, Problem("brokers", what, remedy))
    if bound > brokers:
        what = f"{brokers} are not enough: no allocation has fewer than {bound}"
        remedy = f"Allow {bound} or more, or give brokers more capacity"
        raise InfeasibleError("brokers", bound, Problem("brokers", what, remedy))


def require_enough(found: Allocation, brokers: int, bound: int) -> None:
    """Raise if an allocation takes more brokers than were asked about; it says how many do."""
    if found.brokers > brokers:
        what = f"no allocation to {brokers} was found; {found.brokers} are enough"
        what += f", and it is proved that {bound} are needed"
        remedy = f"Allow {found.brokers}, search longer, or give brokers more capacity"
        raise InfeasibleError("brokers", found.brokers, Problem("brokers", what, remedy))
