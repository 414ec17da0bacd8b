"""Filling brokers one client after the other: the step that all methods share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Longs
from fanplan.core.errors import InfeasibleError, Problem
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.allocation.allocation import Allocation, AllocationParams
from fanplan.layers.overlay.allocation.loads import (
    Clients,
    State,
    estimate_saved,
    exact_impact,
    exact_saved,
    place,
    similarity_to,
)
from fanplan.network.brokers import ClientProblem

RANDOM, SIMILAR, SAVING = 0, 1, 2
"""How a broker is chosen among those with room."""


class Packing(NamedTuple):
    """What stays the same while clients are placed: rooms, impacts, and which load counts."""

    room: Floats
    impact: Floats
    exact: bool


def packing_of(problem: ClientProblem, params: AllocationParams, clients: Clients) -> Packing:
    exact = params.load == "exact"
    impact = exact_impact(clients) if exact else clients.impact
    return Packing(params.room(problem), impact, exact)


def largest_first(problem: ClientProblem) -> Longs:
    """Brokers by descending capacity (Algorithm 3, line 6), of equal ones the cheapest first."""
    return np.lexsort((problem.cost, -problem.capacity))


def finished(problem: ClientProblem, packing: Packing, state: State, used: Longs) -> Allocation:
    """The allocation of a state, with the clients that exceed their broker; all must be placed."""
    waiting = packing.impact[state.broker == NONE]
    if len(waiting):
        raise too_few(problem, waiting, packing.room)
    full = counted(state, packing) > packing.room * (1 + 1e-9)
    lone = np.flatnonzero(full[state.broker] & (state.clients[state.broker] == 1))
    kept = used[state.clients[used] > 0]
    return Allocation(state.broker, state.estimate, state.exact, lone, kept)


def too_few(problem: ClientProblem, waiting: Floats, room: Floats) -> InfeasibleError:
    """Brokers ran out. As many more as first fit takes would do: no load exceeds its impacts."""
    largest = int(np.argmax(room))
    more = first_fit(np.sort(waiting)[::-1], float(room[largest]))
    name, enough = problem.brokers[largest].as_py(), len(room) + more
    what = f"{len(room)} brokers leave {len(waiting)} clients without one"
    remedy = f"Give {more} more like {name!r} ({problem.capacity[largest]:g} messages/s)"
    return InfeasibleError("brokers", enough, Problem("brokers", what, remedy))


def first_fit(sizes: Floats, room: float) -> int:
    """Bins that first fit opens; one that is too big has a bin of its own."""
    left = np.full(len(sizes), room)
    for size in sizes:
        fits = (left >= size) | (left == room)
        left[int(np.argmax(fits))] -= size
    return int((left < room).sum())


@compiled
def counted(state: State, packing: Packing) -> Floats:
    """The loads that the rule looks at."""
    return state.exact if packing.exact else state.estimate


@compiled
def fill(
    clients: Clients,
    state: State,
    packing: Packing,
    order: Longs,
    stack: Longs,
    used: int,
    choose: int,
    draws: Floats,
) -> int:
    """Algorithm 3 of Tajuddin (2011); the number of brokers deployed from the stack.

    Clients that have a broker keep it. One too big for the next broker is deployed alone, and
    nobody joins it. If brokers run out, clients stay without one.
    """
    for i in range(len(order)):
        client, deployed = order[i], stack[:used]
        if state.broker[client] != NONE:
            continue
        if choose == SAVING:
            saved, score = savings(clients, state, packing, client)
            broker = best_fit(state, packing, client, saved, score, deployed, NONE)
        elif choose == SIMILAR:
            broker = most_similar(clients, state, packing, client, deployed)
        else:
            broker = any_with_room(state, packing, client, deployed, draws[i])
        if broker == NONE:
            if used == len(stack):
                continue
            broker = stack[used]
            used += 1
        place(clients, state, client, broker)
    return used


@compiled
def most_similar(
    clients: Clients, state: State, packing: Packing, client: int, deployed: Longs
) -> int:
    """Algorithm 4, where line 13 adds the similarity; ties go to the broker deployed first."""
    load, impact = counted(state, packing), packing.impact[client]
    total = np.zeros(len(load))
    similarity_to(clients, state, client, total)
    best, most = NONE, -1.0
    for broker in deployed:
        # Line 19: the whole impact, without the correction.
        if total[broker] > most and load[broker] + impact < packing.room[broker]:
            best, most = broker, total[broker]
    return best


@compiled
def any_with_room(state: State, packing: Packing, client: int, deployed: Longs, draw: float) -> int:
    """One of the brokers with room, all alike."""
    load, impact = counted(state, packing), packing.impact[client]
    fits = np.empty(len(deployed), dtype=np.int64)
    count = 0
    for broker in deployed:
        if load[broker] + impact < packing.room[broker]:
            fits[count] = broker
            count += 1
    return fits[int(draw * count)] if count else NONE


@compiled
def savings(clients: Clients, state: State, packing: Packing, client: int) -> tuple[Floats, Floats]:
    """Per broker: what a client saves of its impact, and the score to prefer brokers by."""
    score = np.zeros(len(state.clients))
    exact_saved(clients, state, client, score)
    if packing.exact:
        return score, score
    saved = np.zeros(len(state.clients))
    estimate_saved(clients, state, client, saved)
    return saved, score + saved


@compiled
def best_fit(
    state: State,
    packing: Packing,
    client: int,
    saved: Floats,
    score: Floats,
    brokers: Longs,
    avoid: int,
) -> int:
    """The broker with room where a client saves most; ties go to the one that gets fullest.

    Brokers without clients and ``avoid`` do not count.
    """
    load = counted(state, packing)
    best, most, least = NONE, -1.0, np.inf
    for broker in brokers:
        left = packing.room[broker] - load[broker] - packing.impact[client] + saved[broker]
        if left < 0 or broker == avoid or state.clients[broker] == 0:
            continue
        if score[broker] > most or (score[broker] == most and left < least):
            best, most, least = broker, score[broker], left
    return best
