"""Algorithms 3 and 4 of Tajuddin (2011): clients one by one to the most similar broker."""

from __future__ import annotations

import numpy as np

from fanplan.errors import InfeasibleError, Problem
from fanplan.kernels import compiled
from fanplan.planners.allocation.allocation import NONE, Allocation, AllocationParams
from fanplan.planners.allocation.loads import (
    Clients,
    State,
    clients_of,
    exact_impact,
    nobody_placed,
    place,
    similarity_to,
)
from fanplan.planners.allocation.ranking import Ranking, ranked
from fanplan.problem.interest import Floats, Longs
from fanplan.problem.overlay import ClientProblem

RANDOM, SIMILAR = 0, 1


def ranked_allocation(
    problem: ClientProblem, ranking: Ranking, params: AllocationParams, seed: int
) -> Allocation:
    """Allocate in the order of a ranking; a new broker, largest first, when none has room.

    The baseline takes clients and brokers at random and chooses any broker with room, so that
    similarity has no part in it. O(similar pairs + clients × brokers used).
    """
    clients = clients_of(problem)
    order = ranked(problem, clients, ranking, seed)
    stack = np.lexsort((problem.cost, -problem.capacity))
    if ranking == "baseline":
        stack = np.random.default_rng((seed, 1)).permutation(len(stack))
    state = nobody_placed(clients, len(problem.brokers))
    draws = np.random.default_rng((seed, 2)).random(len(order))
    choose = RANDOM if ranking == "baseline" else SIMILAR
    exact = params.load == "exact"
    impact = exact_impact(clients) if exact else clients.impact
    used = allocate(
        clients, state, order, stack, params.room(problem), impact, draws, choose, exact
    )
    return finished(problem, params, clients, state, stack[:used])


def finished(
    problem: ClientProblem, params: AllocationParams, clients: Clients, state: State, used: Longs
) -> Allocation:
    """The allocation of a state, with the clients that exceed their broker; all must be placed."""
    waiting = int((state.broker == NONE).sum())
    if waiting:
        what = f"{len(problem.brokers)} brokers leave {waiting} clients without one"
        remedy = "Give more or larger brokers, or a higher lcf"
        raise InfeasibleError("brokers", len(problem.brokers), Problem("brokers", what, remedy))
    load = state.exact if params.load == "exact" else state.estimate
    full = load > params.room(problem) * (1 + 1e-9)
    lone = np.flatnonzero(full[state.broker] & (state.clients[state.broker] == 1))
    kept = used[state.clients[used] > 0]
    return Allocation(state.broker, state.estimate, state.exact, lone, kept)


@compiled
def allocate(
    clients: Clients,
    state: State,
    order: Longs,
    stack: Longs,
    room: Floats,
    impact: Floats,
    draws: Floats,
    choose: int,
    exact: bool,
) -> int:
    """Algorithm 3; the number of brokers deployed from the stack.

    A client too big for the next broker is deployed alone, and nobody joins it.
    """
    used = 0
    load = state.exact if exact else state.estimate
    for i in range(len(order)):
        client = order[i]
        deployed = stack[:used]
        if choose == SIMILAR:
            broker = most_similar(clients, state, client, deployed, load, room, impact[client])
        else:
            broker = any_with_room(deployed, load, room, impact[client], draws[i])
        if broker == NONE:
            if used == len(stack):
                continue
            broker = stack[used]
            used += 1
        place(clients, state, client, broker)
    return used


@compiled
def most_similar(
    clients: Clients,
    state: State,
    client: int,
    deployed: Longs,
    load: Floats,
    room: Floats,
    impact: float,
) -> int:
    """Algorithm 4, where line 13 adds the similarity; ties go to the broker deployed first."""
    total = np.zeros(len(room))
    similarity_to(clients, state, client, total)
    best, most = NONE, -1.0
    for broker in deployed:
        # Line 19: the whole impact, without the correction.
        if total[broker] > most and load[broker] + impact < room[broker]:
            best, most = broker, total[broker]
    return best


@compiled
def any_with_room(deployed: Longs, load: Floats, room: Floats, impact: float, draw: float) -> int:
    """One of the brokers with room, all alike."""
    fits = np.empty(len(deployed), dtype=np.int64)
    count = 0
    for broker in deployed:
        if load[broker] + impact < room[broker]:
            fits[count] = broker
            count += 1
    return fits[int(draw * count)] if count else NONE
