"""Our allocation: hubs and exact savings decide who shares a broker; local moves empty brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.allocation import (
    SAVING,
    Allocation,
    AllocationParams,
    Packing,
    Placing,
    Ranking,
    counted_load,
    fill_brokers,
    finished,
    largest_first,
    packing_of,
    ranked_allocation,
    ranked_clients,
)
from fanplan.layers.overlay.allocation.hubs import best_hubs
from fanplan.layers.overlay.allocation.loads import (
    Clients,
    Loads,
    clients_of,
    nobody_placed,
    place_all,
    place_client,
    remove_client,
)
from fanplan.layers.overlay.allocation.moves import MoveBudget, improve_by_moves, moved, unlimited
from fanplan.network.brokers import ClientProblem

RANKED: tuple[Ranking, ...] = ("gi", "gig")
"""Rankings of the thesis that are starts, as good as any without search."""


FILLED: tuple[Ranking, ...] = ("gig", "gli")
"""Orders in which brokers are filled by savings."""


class AllocationStart(NamedTuple):
    """An allocation to improve, and the brokers it uses in the order of their deployment."""

    state: Loads
    used: Longs


def best_allocation(
    problem: ClientProblem,
    params: AllocationParams,
    seed: int,
    stop: Stop,
    *,
    start: Allocation | Ints | None = None,
    most_moves: int | None = None,
) -> Allocation:
    """Least broker cost found, then least exact load.

    The best of several starts is improved: clients move to where they save most; brokers are
    emptied, a client making room for another if need be. If ``start`` is given (an allocation, or
    the broker of each client, NONE for new ones), it is the only start, and at most ``most_moves``
    clients leave their broker. O(passes · routes of all clients · brokers per route).
    """
    clients = clients_of(problem)
    packing = packing_of(problem, params, clients)
    random = np.random.default_rng((seed, 3))
    budget = unlimited(clients)
    if start is None:
        first = best_start(problem, params, clients, packing, seed, stop)
    else:
        origin = start.broker if isinstance(start, Allocation) else start
        most = len(origin) if most_moves is None else most_moves
        budget = MoveBudget(np.asarray(origin, dtype=np.int32), most)
        first = resumed(problem, clients, packing, budget)
    placing = Placing(clients, first.state, packing)
    improve_by_moves(placing, budget, first.used, random, stop)
    found = finished(problem, placing, first.used)
    return found if start is not None else on_cheaper_brokers(problem, packing, found)


def worth(problem: ClientProblem, allocation: Allocation) -> tuple[float, float]:
    """Brokers by their cost, then messages."""
    return float(problem.cost[allocation.used].sum()), float(allocation.exact.sum())


def best_start(
    problem: ClientProblem,
    params: AllocationParams,
    clients: Clients,
    packing: Packing,
    seed: int,
    stop: Stop,
) -> AllocationStart:
    """The start whose brokers cost least, of equal ones that with least exact load."""
    found = ranked_starts(problem, params, clients, seed)
    for stack in stacks(problem, packing):
        found += filled_starts(problem, clients, packing, stack, seed, stop)
    if not found:
        ranked_allocation(problem, "gli", params, seed)
    return min(found, key=lambda s: (problem.cost[s.used].sum(), s.state.exact.sum()))


def ranked_starts(
    problem: ClientProblem, params: AllocationParams, clients: Clients, seed: int
) -> list[AllocationStart]:
    found = []
    for ranking in RANKED:
        try:
            made = ranked_allocation(problem, ranking, params, seed)
        except InfeasibleError:
            continue
        state = nobody_placed(clients, len(problem.brokers))
        place_all(clients, state, made.broker)
        found.append(AllocationStart(state, made.used))
    return found


def stacks(problem: ClientProblem, packing: Packing) -> list[Longs]:
    """Orders in which to deploy brokers: the largest first, and those with cheapest room first."""
    large = largest_first(problem)
    cheap = large[np.argsort((problem.cost / packing.room.clip(1e-9))[large], kind="stable")]
    return [large] if np.array_equal(large, cheap) else [large, cheap]


def filled_starts(
    problem: ClientProblem,
    clients: Clients,
    packing: Packing,
    stack: Longs,
    seed: int,
    stop: Stop,
) -> list[AllocationStart]:
    """Brokers of a stack filled by savings, with nobody placed before or with hubs."""
    nobody = np.full(len(clients.impact), NONE, dtype=np.int32)
    plans = [(nobody, ranking) for ranking in FILLED]
    if not packing.exact:
        plans.append((at_hubs(clients, packing, stack, seed, stop), "gli"))
    found = []
    for broker, ranking in plans:
        state = nobody_placed(clients, len(stack))
        place_all(clients, state, broker)
        hubs = stack[state.clients[stack] > 0]
        deploy = np.concatenate((hubs, stack[state.clients[stack] == 0]))
        order = ranked_clients(problem, clients, ranking, seed)
        used = fill_brokers(
            Placing(clients, state, packing), order, deploy, len(hubs), SAVING, np.empty(0)
        )
        if (state.broker != NONE).all():
            found.append(AllocationStart(state, deploy[:used]))
    return found


def at_hubs(clients: Clients, packing: Packing, stack: Longs, seed: int, stop: Stop) -> Ints:
    """The broker of each client that is at a hub, NONE for all others."""
    hub = best_hubs(clients, packing.room[stack], seed, stop)
    return np.append(stack, NONE)[hub].astype(np.int32)


def on_cheaper_brokers(problem: ClientProblem, packing: Packing, found: Allocation) -> Allocation:
    """Whole brokers are exchanged for cheaper ones with room, the most expensive first."""
    load = found.exact if packing.exact else found.estimate
    swapped = np.arange(len(load))
    free = np.setdiff1d(swapped, found.used)
    for broker in found.used[np.argsort(-problem.cost[found.used], kind="stable")]:
        fits = free[
            (packing.room[free] >= load[broker]) & (problem.cost[free] < problem.cost[broker])
        ]
        if len(fits):
            new = fits[np.argmin(problem.cost[fits])]
            swapped[[broker, new]] = new, broker
            free = free[free != new]
    return replace(
        found,
        broker=swapped[found.broker].astype(np.int32),
        estimate=found.estimate[swapped],
        exact=found.exact[swapped],
        used=swapped[found.used],
    )


def resumed(
    problem: ClientProblem, clients: Clients, packing: Packing, budget: MoveBudget
) -> AllocationStart:
    """Old clients where they were as far as there is room, others where they save most.

    With it come the brokers used. An answer if that alone moves more clients than allowed.
    """
    check_origin(problem, clients, budget)
    state = nobody_placed(clients, len(packing.room))
    placing = Placing(clients, state, packing)
    place_all(clients, state, budget.origin)
    for broker in np.flatnonzero(counted_load(placing) > packing.room * (1 + 1e-9)):
        relieve(placing, int(broker))
    stack = largest_first(problem)
    used = stack[state.clients[stack] > 0]
    deploy = np.concatenate((used, stack[state.clients[stack] == 0]))
    order = np.argsort(-packing.impact, kind="stable")
    count = fill_brokers(placing, order, deploy, len(used), SAVING, np.empty(0))
    needed = int(moved(budget, state))
    if needed > budget.most:
        what = f"{needed} clients must move for brokers to hold them"
        problem_found = Problem("most_moves", what, f"Allow {needed} moves")
        raise InfeasibleError("most_moves", needed, problem_found)
    return AllocationStart(state, deploy[:count])


def check_origin(problem: ClientProblem, clients: Clients, budget: MoveBudget) -> None:
    """One broker for each client, of those that there are, or NONE."""
    origin, brokers = budget.origin, len(problem.brokers)
    if len(origin) != len(clients.impact):
        what = f"{len(origin)} brokers are given for {len(clients.impact)} clients"
        raise InputError(Problem("start", what, "Give one for each client, NONE for new ones"))
    if ((origin < NONE) | (origin >= brokers)).any():
        what = f"a position is not one of the {brokers} brokers"
        raise InputError(Problem("start", what, "Use positions of brokers, NONE for new clients"))


def relieve(p: Placing, broker: int) -> None:
    """Clients leave a broker until the others fit or one is left: who relieves it most goes first.

    Nobody leaves who would be too big for any broker if somebody else can.
    """
    clients, state, packing = p
    load = counted_load(p)
    while load[broker] > packing.room[broker] and state.clients[broker] > 1:
        there = np.flatnonzero(state.broker == broker)
        gain = np.array([relief(p, int(client)) for client in there])
        fits = packing.impact[there] <= packing.room.max()
        remove_client(clients, state, int(there[np.lexsort((-gain, ~fits))[0]]))


def relief(p: Placing, client: int) -> float:
    """The load that would leave a broker with a client."""
    clients, state = p.clients, p.state
    broker, load = state.broker[client], counted_load(p)
    before = load[broker]
    remove_client(clients, state, client)
    gain = float(before - load[broker])
    place_client(clients, state, client, broker)
    return gain
