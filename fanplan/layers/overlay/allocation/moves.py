"""Local moves: clients go where they save most, and brokers are emptied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.allocation import (
    Packing,
    best_fit,
    client_savings,
    counted_load,
)
from fanplan.layers.overlay.allocation.loads import Clients, Loads, place_client, remove_client

PASSES = 30
"""Rounds of moves between two attempts to empty brokers, at most."""
FEW = 0.01
"""Share of the clients that a round of moves must move for another one to follow."""
EJECTIONS = 50
"""Clients that are tried to be moved away to make room for one."""
BETWEEN = 200
"""Clients between two questions whether to stop."""


class MoveBudget(NamedTuple):
    """Where clients were before (NONE: new ones), and how many of them may be elsewhere."""

    origin: Ints
    most: int


def unlimited(clients: Clients) -> MoveBudget:
    """Nobody was anywhere before."""
    return MoveBudget(np.full(len(clients.impact), NONE, dtype=np.int32), len(clients.impact))


@compiled
def moved(budget: MoveBudget, state: Loads) -> int:
    """Clients that had a broker and are not there."""
    result: int = ((budget.origin != NONE) & (budget.origin != state.broker)).sum()
    return result


def improve_by_moves(
    clients: Clients,
    state: Loads,
    packing: Packing,
    budget: MoveBudget,
    used: Longs,
    random: np.random.Generator,
    stop: Stop,
) -> None:
    """Moves and emptying in turn until no broker can be emptied."""
    movable = np.flatnonzero(packing.impact <= packing.room.max())
    emptied = True
    while emptied:
        for _ in range(PASSES):
            order = random.permutation(movable)
            if move_round(clients, state, packing, budget, order, used, stop) <= FEW * len(order):
                break
        emptied = empty_any(clients, state, packing, budget, used, stop)


def move_round(
    clients: Clients,
    state: Loads,
    packing: Packing,
    budget: MoveBudget,
    order: Longs,
    used: Longs,
    stop: Stop,
) -> int:
    """Every client may move once; how many did, or 0 if told to stop."""
    count = 0
    for first in range(0, len(order), BETWEEN):
        if stop(float((state.clients > 0).sum())):
            return 0
        some = order[first : first + BETWEEN]
        count += move_pass(clients, state, packing, budget, some, used)
    return count


@compiled
def move_pass(
    clients: Clients, state: Loads, packing: Packing, budget: MoveBudget, order: Longs, used: Longs
) -> int:
    """Every client may move to where it saves more; how many did."""
    load = counted_load(state, packing)
    count, left = 0, budget.most - moved(budget, state)
    for client in order:
        old, origin = state.broker[client], budget.origin[client]
        if left <= 0 and origin == old:
            continue
        remove_client(clients, state, client)
        saved, score = client_savings(clients, state, packing, client)
        new = best_fit(state, packing, client, saved, score, used, old)
        gain = score[new] - score[old] if new != NONE else 0.0
        # By the estimate a broker may be fuller without a publisher that many there listen to.
        holds = load[old] <= packing.room[old]
        if new != NONE and holds and (gain > 1e-9 or state.clients[old] == 0):
            place_client(clients, state, client, new)
            count += 1
            if origin != NONE:
                left += int(new == origin) - int(old == origin)
        else:
            place_client(clients, state, client, old)
    return count


def empty_any(
    clients: Clients, state: Loads, packing: Packing, budget: MoveBudget, used: Longs, stop: Stop
) -> bool:
    """Try to empty each broker, the least loaded first; whether one was emptied."""
    load = counted_load(state, packing)
    filled = used[state.clients[used] > 0]
    emptied = False
    for broker in filled[np.argsort(load[filled], kind="stable")]:
        if stop(float(len(filled))):
            return False
        free = np.maximum(packing.room[filled] - load[filled], 0.0)[state.clients[filled] > 0]
        # A cheap test that spares most attempts: all others must have room for the load together.
        if free.sum() - max(packing.room[broker] - load[broker], 0.0) >= load[broker]:
            emptied = bool(empty(clients, state, packing, budget, used, broker)) or emptied
    return emptied


@compiled
def empty(
    clients: Clients, state: Loads, packing: Packing, budget: MoveBudget, used: Longs, broker: int
) -> bool:
    """Move all clients of a broker elsewhere, the largest first, or none of them."""
    before = state.broker.copy()
    leaving = np.flatnonzero(before == broker)
    if packing.impact[leaving].max() > packing.room.max():
        return False
    for client in leaving:
        remove_client(clients, state, client)
    done = True
    for client in leaving[np.argsort(-packing.impact[leaving], kind="mergesort")]:
        saved, score = client_savings(clients, state, packing, client)
        new = best_fit(state, packing, client, saved, score, used, broker)
        if new != NONE:
            place_client(clients, state, client, new)
        elif not eject(clients, state, packing, used, broker, client):
            done = False
            break
    if not done or moved(budget, state) > budget.most:
        put_back(clients, state, before)
        return False
    return True


@compiled
def put_back(clients: Clients, state: Loads, before: Ints) -> None:
    """Undo all moves since ``before``."""
    other = np.flatnonzero(state.broker != before)
    for client in other:
        if state.broker[client] != NONE:
            remove_client(clients, state, client)
    for client in other:
        place_client(clients, state, client, before[client])


@compiled
def eject(
    clients: Clients, state: Loads, packing: Packing, used: Longs, avoid: int, client: int
) -> bool:
    """Place a client where another one, that fits elsewhere, makes room for it."""
    load, impact = counted_load(state, packing), packing.impact
    tries = 0
    for other in range(len(state.broker)):
        home = state.broker[other]
        small = impact[other] < impact[client]
        if home == NONE or not small or state.clients[home] < 2 or tries == EJECTIONS:
            continue
        if load[home] + impact[client] - impact[other] > 1.2 * packing.room[home]:
            continue
        tries += 1
        remove_client(clients, state, other)
        saved, score = client_savings(clients, state, packing, client)
        if best_fit(state, packing, client, saved, score, np.array([home]), avoid) == home:
            place_client(clients, state, client, home)
            saved, score = client_savings(clients, state, packing, other)
            new = best_fit(state, packing, other, saved, score, used, avoid)
            if new != NONE:
                place_client(clients, state, other, new)
                return True
            remove_client(clients, state, client)
        place_client(clients, state, other, home)
    return False
