"""Local moves: clients go where they save most, and brokers are emptied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.allocation import (
    Placing,
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
    p: Placing, budget: MoveBudget, used: Longs, random: np.random.Generator, stop: Stop
) -> None:
    """Moves and emptying in turn until no broker can be emptied."""
    movable = np.flatnonzero(p.packing.impact <= p.packing.room.max())
    emptied = True
    while emptied:
        for _ in range(PASSES):
            order = random.permutation(movable)
            if move_round(p, budget, order, used, stop) <= FEW * len(order):
                break
        emptied = empty_any(p, budget, used, stop)


def move_round(p: Placing, budget: MoveBudget, order: Longs, used: Longs, stop: Stop) -> int:
    """Every client may move once; how many did, or 0 if told to stop."""
    count = 0
    for first in range(0, len(order), BETWEEN):
        if stop(float((p.state.clients > 0).sum())):
            return 0
        some = order[first : first + BETWEEN]
        count += move_pass(p, budget, some, used)
    return count


@compiled
def move_pass(p: Placing, budget: MoveBudget, order: Longs, used: Longs) -> int:
    """Every client may move to where it saves more; how many did."""
    clients, state, packing = p
    load = counted_load(p)
    count, left = 0, budget.most - moved(budget, state)
    for client in order:
        old, origin = state.broker[client], budget.origin[client]
        if left <= 0 and origin == old:
            continue
        remove_client(clients, state, client)
        saved, score = client_savings(p, client)
        new = best_fit(p, client, saved, score, used, old)
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


def empty_any(p: Placing, budget: MoveBudget, used: Longs, stop: Stop) -> bool:
    """Try to empty each broker, the least loaded first; whether one was emptied."""
    load, state, packing = counted_load(p), p.state, p.packing
    filled = used[state.clients[used] > 0]
    emptied = False
    for broker in filled[np.argsort(load[filled], kind="stable")]:
        if stop(float(len(filled))):
            return False
        free = np.maximum(packing.room[filled] - load[filled], 0.0)[state.clients[filled] > 0]
        # A cheap test that spares most attempts: all others must have room for the load together.
        if free.sum() - max(packing.room[broker] - load[broker], 0.0) >= load[broker]:
            emptied = bool(empty(p, budget, used, broker)) or emptied
    return emptied


@compiled
def empty(p: Placing, budget: MoveBudget, used: Longs, broker: int) -> bool:
    """Move all clients of a broker elsewhere, the largest first, or none of them."""
    clients, state, packing = p
    before = state.broker.copy()
    leaving = np.flatnonzero(before == broker)
    if packing.impact[leaving].max() > packing.room.max():
        return False
    for client in leaving:
        remove_client(clients, state, client)
    done = True
    for client in leaving[np.argsort(-packing.impact[leaving], kind="mergesort")]:
        saved, score = client_savings(p, client)
        new = best_fit(p, client, saved, score, used, broker)
        if new != NONE:
            place_client(clients, state, client, new)
        elif not eject(p, used, broker, client):
            done = False
            break
    if not done or moved(budget, state) > budget.most:
        put_back(p, before)
        return False
    return True


@compiled
def put_back(p: Placing, before: Ints) -> None:
    """Undo all moves since ``before``."""
    clients, state = p.clients, p.state
    other = np.flatnonzero(state.broker != before)
    for client in other:
        if state.broker[client] != NONE:
            remove_client(clients, state, client)
    for client in other:
        place_client(clients, state, client, before[client])


@compiled
def eject(p: Placing, used: Longs, avoid: int, client: int) -> bool:
    """Place a client where another one, that fits elsewhere, makes room for it."""
    clients, state, packing = p
    load, impact = counted_load(p), packing.impact
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
        saved, score = client_savings(p, client)
        if best_fit(p, client, saved, score, np.array([home]), avoid) == home:
            place_client(clients, state, client, home)
            saved, score = client_savings(p, other)
            new = best_fit(p, other, saved, score, used, avoid)
            if new != NONE:
                place_client(clients, state, other, new)
                return True
            remove_client(clients, state, client)
        place_client(clients, state, other, home)
    return False
