"""Run-time planning: an older allocation is brought up to date with few clients moved."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import NONE, Longs
from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.layers.overlay.allocation.loads import (
    Clients,
    State,
    nobody_placed,
    place,
    place_all,
    remove,
)
from fanplan.layers.overlay.allocation.moves import Budget, moved
from fanplan.layers.overlay.allocation.packing import SAVING, Packing, counted, fill, largest_first
from fanplan.network.brokers import ClientProblem


def resumed(
    problem: ClientProblem, clients: Clients, packing: Packing, budget: Budget
) -> tuple[State, Longs]:
    """Old clients where they were as far as there is room, others where they save most.

    With it come the brokers used. An answer if that alone moves more clients than allowed.
    """
    check_origin(problem, clients, budget)
    state = nobody_placed(clients, len(packing.room))
    place_all(clients, state, budget.origin)
    for broker in np.flatnonzero(counted(state, packing) > packing.room * (1 + 1e-9)):
        relieve(clients, state, packing, int(broker))
    stack = largest_first(problem)
    used = stack[state.clients[stack] > 0]
    deploy = np.concatenate((used, stack[state.clients[stack] == 0]))
    order = np.argsort(-packing.impact, kind="stable")
    count = fill(clients, state, packing, order, deploy, len(used), SAVING, np.empty(0))
    needed = int(moved(budget, state))
    if needed > budget.most:
        what = f"{needed} clients must move for brokers to hold them"
        problem_found = Problem("most_moves", what, f"Allow {needed} moves")
        raise InfeasibleError("most_moves", needed, problem_found)
    return state, deploy[:count]


def check_origin(problem: ClientProblem, clients: Clients, budget: Budget) -> None:
    """One broker for each client, of those that there are, or NONE."""
    origin, brokers = budget.origin, len(problem.brokers)
    if len(origin) != len(clients.impact):
        what = f"{len(origin)} brokers are given for {len(clients.impact)} clients"
        raise InputError(Problem("start", what, "Give one for each client, NONE for new ones"))
    if ((origin < NONE) | (origin >= brokers)).any():
        what = f"a position is not one of the {brokers} brokers"
        raise InputError(Problem("start", what, "Use positions of brokers, NONE for new clients"))


def relieve(clients: Clients, state: State, packing: Packing, broker: int) -> None:
    """Clients leave a broker until the others fit or one is left: who relieves it most goes first.

    Nobody leaves who would be too big for any broker if somebody else can.
    """
    load = counted(state, packing)
    while load[broker] > packing.room[broker] and state.clients[broker] > 1:
        there = np.flatnonzero(state.broker == broker)
        gain = np.array([relief(clients, state, packing, int(client)) for client in there])
        fits = packing.impact[there] <= packing.room.max()
        remove(clients, state, int(there[np.lexsort((-gain, ~fits))[0]]))


def relief(clients: Clients, state: State, packing: Packing, client: int) -> float:
    """The load that would leave a broker with a client."""
    broker, load = state.broker[client], counted(state, packing)
    before = load[broker]
    remove(clients, state, client)
    gain = float(before - load[broker])
    place(clients, state, client, broker)
    return gain
