"""Our allocation: exact savings decide who shares a broker, and local moves empty brokers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.errors import InfeasibleError
from fanplan.kernels import compiled
from fanplan.planners.allocation.allocation import NONE, Allocation, AllocationParams
from fanplan.planners.allocation.greedy import finished, ranked_allocation
from fanplan.planners.allocation.loads import (
    Clients,
    State,
    clients_of,
    estimate_saved,
    exact_impact,
    exact_saved,
    nobody_placed,
    place,
    remove,
)
from fanplan.planners.allocation.ranking import Ranking, ranked
from fanplan.planners.stop import Stop
from fanplan.problem.interest import Floats, Longs
from fanplan.problem.overlay import ClientProblem

STARTS = 2
"""Starts that are improved, those with fewest brokers first."""
PASSES = 30
"""Rounds of moves between two attempts to empty brokers, at most."""
FEW = 0.01
"""Share of the clients that a round of moves must move for another one to follow."""
EJECTIONS = 50
"""Clients that are tried to be moved away to make room for one."""


class Packing(NamedTuple):
    """What stays the same while clients are moved: rooms, impacts, and which load counts."""

    room: Floats
    impact: Floats
    exact: bool


def best_allocation(
    problem: ClientProblem, params: AllocationParams, seed: int, stop: Stop
) -> Allocation:
    """Fewest brokers found, then least exact load, from several starts.

    The starts are the thesis' rankings and best fits by savings in two orders. Each is improved:
    clients move to where they save most; brokers are emptied, a client making room for another if
    need be. O(passes · routes of all clients · brokers per route).
    """
    clients = clients_of(problem)
    exact = params.load == "exact"
    impact = exact_impact(clients) if exact else clients.impact
    packing = Packing(params.room(problem), impact, exact)
    best: Allocation | None = None
    for state, used in starts(problem, params, clients, packing, seed)[:STARTS]:
        improve(clients, state, packing, used, np.random.default_rng((seed, 3)), stop)
        found = finished(problem, params, clients, state, used)
        if best is None or worth(problem, found) < worth(problem, best):
            best = found
        if stop(worth(problem, best)[0]):
            break
    assert best is not None
    return best


def worth(problem: ClientProblem, allocation: Allocation) -> tuple[float, float]:
    """Brokers by their cost, then messages."""
    return float(problem.cost[allocation.used].sum()), float(allocation.exact.sum())


def starts(
    problem: ClientProblem, params: AllocationParams, clients: Clients, packing: Packing, seed: int
) -> list[tuple[State, Longs]]:
    """Allocations to improve, those with fewest brokers first, each with the brokers it uses."""
    found = []
    stack = np.lexsort((problem.cost, -problem.capacity))
    rankings: tuple[Ranking, ...] = ("gig", "gli")
    for order in (ranked(problem, clients, ranking, seed) for ranking in rankings):
        state = nobody_placed(clients, len(stack))
        used = fill(clients, state, packing, order, stack)
        if (state.broker != NONE).all():
            found.append((state, stack[:used]))
    for ranking in ("gi", "gig"):
        try:
            made = ranked_allocation(problem, ranking, params, seed)
        except InfeasibleError:
            continue
        found.append((restored(clients, made, len(stack)), made.used))
    if not found:
        ranked_allocation(problem, "gli", params, seed)
    return sorted(found, key=lambda start: (len(start[1]), float(start[0].exact.sum())))


def restored(clients: Clients, allocation: Allocation, brokers: int) -> State:
    """A state in which everybody is where an allocation says."""
    state = nobody_placed(clients, brokers)
    place_all(clients, state, allocation.broker.astype(np.int64))
    return state


@compiled
def place_all(clients: Clients, state: State, broker: Longs) -> None:
    for client in range(len(broker)):
        place(clients, state, client, broker[client])


@compiled
def fill(clients: Clients, state: State, packing: Packing, order: Longs, stack: Longs) -> int:
    """Each client where it saves most, else a new broker; the number of brokers deployed."""
    used = 0
    for client in order:
        broker = best_fit(clients, state, packing, client, stack[:used], NONE)
        if broker == NONE:
            if used == len(stack):
                continue
            broker = stack[used]
            used += 1
        place(clients, state, client, broker)
    return used


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
    clients: Clients, state: State, packing: Packing, client: int, brokers: Longs, avoid: int
) -> int:
    """The broker with room where a client saves most; ties go to the one that gets fullest."""
    saved, score = savings(clients, state, packing, client)
    load = state.exact if packing.exact else state.estimate
    best, most, least = NONE, -1.0, np.inf
    for broker in brokers:
        left = packing.room[broker] - load[broker] - packing.impact[client] + saved[broker]
        if left < 0 or broker == avoid or state.clients[broker] == 0:
            continue
        if score[broker] > most or (score[broker] == most and left < least):
            best, most, least = broker, score[broker], left
    return best


def improve(
    clients: Clients,
    state: State,
    packing: Packing,
    used: Longs,
    random: np.random.Generator,
    stop: Stop,
) -> None:
    """Moves and emptying in turn until no broker can be emptied."""
    emptied = True
    while emptied:
        for _ in range(PASSES):
            order = random.permutation(len(state.broker))
            left = float((state.clients > 0).sum())
            if stop(left) or move_pass(clients, state, packing, order, used) <= FEW * len(order):
                break
        emptied = empty_any(clients, state, packing, used, stop)


@compiled
def move_pass(clients: Clients, state: State, packing: Packing, order: Longs, used: Longs) -> int:
    """Every client may move to where it saves more; how many did."""
    load = state.exact if packing.exact else state.estimate
    moved = 0
    for client in order:
        old = state.broker[client]
        remove(clients, state, client)
        _, score = savings(clients, state, packing, client)
        new = best_fit(clients, state, packing, client, used, old)
        gain = score[new] - score[old] if new != NONE else 0.0
        # By the estimate a broker may be fuller without a publisher that many there listen to.
        holds = load[old] <= packing.room[old]
        if new != NONE and holds and (gain > 1e-9 or state.clients[old] == 0):
            place(clients, state, client, new)
            moved += 1
        else:
            place(clients, state, client, old)
    return moved


def empty_any(clients: Clients, state: State, packing: Packing, used: Longs, stop: Stop) -> bool:
    """Try to empty each broker, the least loaded first; whether one was emptied."""
    load = state.exact if packing.exact else state.estimate
    filled = used[state.clients[used] > 0]
    emptied = False
    for broker in filled[np.argsort(load[filled], kind="stable")]:
        if stop(float(len(filled))):
            return False
        emptied = bool(empty(clients, state, packing, used, broker)) or emptied
    return emptied


@compiled
def empty(clients: Clients, state: State, packing: Packing, used: Longs, broker: int) -> bool:
    """Move all clients of a broker elsewhere, the largest first, or none of them."""
    before = state.broker.copy()
    leaving = np.flatnonzero(before == broker)
    if packing.impact[leaving].max() > packing.room.max():
        return False
    for client in leaving:
        remove(clients, state, client)
    for client in leaving[np.argsort(-packing.impact[leaving], kind="mergesort")]:
        new = best_fit(clients, state, packing, client, used, broker)
        if new != NONE:
            place(clients, state, client, new)
        elif not eject(clients, state, packing, used, broker, client):
            put_back(clients, state, before)
            return False
    return True


@compiled
def put_back(clients: Clients, state: State, before: Longs) -> None:
    """Undo all moves since ``before``."""
    moved = np.flatnonzero(state.broker != before)
    for client in moved:
        if state.broker[client] != NONE:
            remove(clients, state, client)
    for client in moved:
        place(clients, state, client, before[client])


@compiled
def eject(
    clients: Clients, state: State, packing: Packing, used: Longs, avoid: int, client: int
) -> bool:
    """Place a client where another one, that fits elsewhere, makes room for it."""
    load = state.exact if packing.exact else state.estimate
    tries = 0
    for other in range(len(state.broker)):
        home = state.broker[other]
        small = packing.impact[other] < packing.impact[client]
        if home == NONE or not small or state.clients[home] < 2 or tries == EJECTIONS:
            continue
        if load[home] + packing.impact[client] - packing.impact[other] > 1.2 * packing.room[home]:
            continue
        tries += 1
        remove(clients, state, other)
        if best_fit(clients, state, packing, client, np.array([home]), avoid) == home:
            place(clients, state, client, home)
            new = best_fit(clients, state, packing, other, used, avoid)
            if new != NONE:
                place(clients, state, other, new)
                return True
            remove(clients, state, client)
        place(clients, state, other, home)
    return False
