"""Our allocation: hubs and exact savings decide who shares a broker; local moves empty brokers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse.csgraph

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.errors import InfeasibleError, Problem
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.allocation import (
    SAVING,
    Allocation,
    AllocationParams,
    Placing,
    Ranking,
    best_fit,
    counted_load,
    fill_brokers,
    fillable,
    finished,
    largest_first,
    placing_of,
    ranked_allocation,
    ranked_clients,
)
from fanplan.layers.overlay.allocation.anneal import (
    FEWER_YET,
    FEWEST_BROKERS,
    annealed,
)
from fanplan.layers.overlay.allocation.bound import brokers_for
from fanplan.layers.overlay.allocation.cram import cram_allocation
from fanplan.layers.overlay.allocation.hubs import best_hubs
from fanplan.layers.overlay.allocation.loads import (
    Loads,
    nobody_placed,
    place_all,
    place_client,
    remove_client,
)
from fanplan.layers.overlay.params import Closeness
from fanplan.network.brokers import ClientProblem

RANKED: tuple[Ranking, ...] = ("gi", "gig")
"""Rankings of the thesis that are starts, as good as any without search."""
FILLED: tuple[Ranking, ...] = ("gig", "gli")
"""Orders in which brokers are filled by savings."""
CLUSTERED = 4000
"""Subscribers up to which clusters of CRAM are a start, by exact load."""
CLOSE: tuple[Closeness, ...] = ("ios", "intersect")
"""How their profiles are compared."""
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


class AllocationStart(NamedTuple):
    """An allocation to improve, and the brokers it uses in the order of their deployment."""

    placing: Placing
    used: Longs


def best_allocation(
    problem: ClientProblem,
    params: AllocationParams,
    seed: int,
    stop: Stop,
    *,
    start: Ints | None = None,
    most_moves: int | None = None,
) -> Allocation:
    """Least broker cost found, then least exact load.

    The best of several starts is improved: clients move to where they save most; brokers are
    emptied, a client making room for another if need be. If ``start`` is given (the broker of each
    client, NONE for new ones), it is the only start, and at most ``most_moves`` clients leave their
    broker. O(passes · routes of all clients · brokers per route).
    """
    empty = fillable(problem, placing_of(problem, params))
    random = np.random.default_rng((seed, 3))
    nobody, count = empty.state.broker, len(empty.impact)
    if start is None:
        budget = MoveBudget(nobody.copy(), count)
        first = best_start(problem, params, empty, seed, stop)
    else:
        most = count if most_moves is None else most_moves
        budget = MoveBudget(np.asarray(start, dtype=np.int32), most)
        first = resumed(problem, empty, budget)
    improve_by_moves(first.placing, budget, first.used, random, stop)
    for cooling in (FEWEST_BROKERS, FEWER_YET) if start is None and empty.exact else ():
        if proved_best(problem, first):
            break
        used = first.used[first.placing.state.clients[first.used] > 0]
        home = annealed(first.placing, problem.cost, used, seed, stop, cooling)
        other = settled(problem, placed(empty, home))
        improve_by_moves(other.placing, budget, other.used, random, stop)
        first = least(problem, [first, other])
    found = finished(problem, first.placing, first.used)
    return found if start is not None else on_cheaper_brokers(problem, first.placing, found)


# ---- starts


def best_start(
    problem: ClientProblem, params: AllocationParams, empty: Placing, seed: int, stop: Stop
) -> AllocationStart:
    """The start whose brokers cost least, of equal ones that with least exact load."""
    whole = start_of_parts(problem, empty)
    if whole and proved_best(problem, whole):
        return whole
    # Where parts fit as they are, they are the hubs, and no ranking comes near them.
    found = [whole] if whole else ranked_starts(problem, params, empty, seed)
    for stack in stacks(problem, empty):
        found += filled_starts(problem, empty, stack)
        found += [] if whole or empty.exact else hub_starts(problem, empty, stack, seed, stop)
    if not found:
        ranked_allocation(problem, "gli", params, seed)
    return least(problem, found)


def least(problem: ClientProblem, found: list[AllocationStart]) -> AllocationStart:
    """The one whose brokers cost least, of equal ones that with least exact load."""

    def worth(one: AllocationStart) -> tuple[float, float]:
        state = one.placing.state
        waiting = np.inf if (state.broker == NONE).any() else 0.0
        return waiting + problem.cost[state.clients > 0].sum(), state.exact.sum()

    return min(found, key=worth)


def start_of_parts(problem: ClientProblem, empty: Placing) -> AllocationStart | None:
    """Clients that hear each other, directly or by others, at one broker; None if that is too much.

    Such a part adds its publishers' rates and no more: all that its subscribers want is there.
    Parts are packed by first fit, the largest first.
    """
    clients = empty.clients
    count = len(clients.impact)
    near = scipy.sparse.csr_array(
        (np.ones(len(clients.near)), clients.near, clients.near_starts), (count, count)
    )
    parts, part = scipy.sparse.csgraph.connected_components(near, directed=False)
    load = np.bincount(part[: clients.publishers], clients.impact[: clients.publishers], parts)
    stack, home = largest_first(problem), np.empty(parts, np.int32)
    left = empty.room[stack].copy()
    for one in np.argsort(-load, kind="stable"):
        at = int(np.argmax(left >= load[one]))
        if left[at] < load[one]:
            return None
        home[one] = at
        left[at] -= load[one]
    return AllocationStart(
        placed(empty, stack[home[part]].astype(np.int32)), stack[np.unique(home)]
    )


def proved_best(problem: ClientProblem, start: AllocationStart) -> bool:
    """Whether publishers' rates alone fill as many brokers, all of one cost."""
    clients, room = start.placing.clients, np.sort(start.placing.room)[::-1]
    rates = float(clients.impact[: clients.publishers].sum())
    return bool(np.ptp(problem.cost) == 0) and len(start.used) <= brokers_for(rates, room)


def ranked_starts(
    problem: ClientProblem, params: AllocationParams, empty: Placing, seed: int
) -> list[AllocationStart]:
    found = []
    for ranking in RANKED:
        try:
            made = ranked_allocation(problem, ranking, params, seed)
        except InfeasibleError:
            continue
        found.append(AllocationStart(placed(empty, made.broker), made.used))
    for closeness in CLOSE if empty.exact and len(problem.subscribers) <= CLUSTERED else ():
        with suppress(InfeasibleError):
            made = cram_allocation(problem, closeness, params)
            found.append(AllocationStart(placed(empty, made.broker), made.used))
    return found


def placed(empty: Placing, broker: Ints) -> Placing:
    """With every client that has a broker there."""
    state = nobody_placed(empty.clients, len(empty.room))
    place_all(empty.clients, state, broker)
    return empty._replace(state=state)


def stacks(problem: ClientProblem, empty: Placing) -> list[Longs]:
    """Orders in which to deploy brokers: the largest first, and those with cheapest room first."""
    large = largest_first(problem)
    cheap = large[np.argsort((problem.cost / empty.room.clip(1e-9))[large], kind="stable")]
    return [large] if np.array_equal(large, cheap) else [large, cheap]


def filled_starts(problem: ClientProblem, empty: Placing, stack: Longs) -> list[AllocationStart]:
    """Brokers of a stack filled by savings, with nobody placed before."""
    plans = [(empty.state.broker, ranking) for ranking in FILLED]
    return [one for plan in plans for one in filled_start(problem, empty, stack, *plan)]


def hub_starts(
    problem: ClientProblem, empty: Placing, stack: Longs, seed: int, stop: Stop
) -> list[AllocationStart]:
    """Brokers of a stack filled by savings after hubs were formed."""
    hub = best_hubs(empty.clients, empty.room[stack], seed, stop)
    home = np.append(stack, NONE)[hub].astype(np.int32)
    return filled_start(problem, empty, stack, home, "gli")


def filled_start(
    problem: ClientProblem, empty: Placing, stack: Longs, home: Ints, ranking: Ranking
) -> list[AllocationStart]:
    """Those without a home join by savings in the order of a ranking; nothing if not all can."""
    placing = placed(empty, home)
    used = filled_by_savings(placing, ranked_clients(problem, empty.clients, ranking, 0), stack)
    done = (placing.state.broker != NONE).all()
    return [AllocationStart(placing, used)] if done else []


def filled_by_savings(placing: Placing, order: Longs, stack: Longs) -> Longs:
    """Place the clients that have no broker yet; the brokers used, those that had clients first."""
    clients = placing.state.clients[stack]
    deploy = np.concatenate((stack[clients > 0], stack[clients == 0]))
    used = fill_brokers(placing, order, deploy, int((clients > 0).sum()), SAVING, np.empty(0))
    return deploy[:used]


def on_cheaper_brokers(problem: ClientProblem, p: Placing, found: Allocation) -> Allocation:
    """Whole brokers are exchanged for cheaper ones with room, the most expensive first."""
    load = found.exact if p.exact else found.estimate
    swapped = np.arange(len(load))
    free = np.setdiff1d(swapped, found.used)
    for broker in found.used[np.argsort(-problem.cost[found.used], kind="stable")]:
        fits = free[(p.room[free] >= load[broker]) & (problem.cost[free] < problem.cost[broker])]
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


# ---- from an earlier allocation


def resumed(problem: ClientProblem, empty: Placing, budget: MoveBudget) -> AllocationStart:
    """Old clients where they were as far as there is room, others where they save most.

    With it come the brokers used. An answer if that alone moves more clients than allowed.
    """
    start = settled(problem, placed(empty, budget.origin))
    needed = int(moved(budget, start.placing.state))
    if needed > budget.most:
        what = f"{needed} clients must move for brokers to hold them"
        problem_found = Problem("most_moves", what, f"Allow {needed} moves")
        raise InfeasibleError("most_moves", needed, problem_found)
    return start


def settled(problem: ClientProblem, placing: Placing) -> AllocationStart:
    """Clients leave brokers that are too small for them; who has none goes where it saves most."""
    for broker in np.flatnonzero(counted_load(placing) > placing.room * (1 + 1e-9)):
        relieve(placing, int(broker))
    order = np.argsort(-placing.impact, kind="stable")
    return AllocationStart(placing, filled_by_savings(placing, order, largest_first(problem)))


def relieve(p: Placing, broker: int) -> None:
    """Clients leave a broker until the others fit or one is left: who relieves it most goes first.

    Nobody leaves who would be too big for any broker if somebody else can.
    """
    load = counted_load(p)
    while load[broker] > p.room[broker] and p.state.clients[broker] > 1:
        there = np.flatnonzero(p.state.broker == broker)
        gain = np.array([relief(p, int(client)) for client in there])
        fits = p.impact[there] <= p.room.max()
        remove_client(p.clients, p.state, int(there[np.lexsort((-gain, ~fits))[0]]))


def relief(p: Placing, client: int) -> float:
    """The load that would leave a broker with a client."""
    broker, load = p.state.broker[client], counted_load(p)
    before = load[broker]
    remove_client(p.clients, p.state, client)
    gain = float(before - load[broker])
    place_client(p.clients, p.state, client, broker)
    return gain


# ---- local moves: clients go where they save most, and brokers are emptied


@compiled
def moved(budget: MoveBudget, state: Loads) -> int:
    """Clients that had a broker and are not there."""
    result: int = ((budget.origin != NONE) & (budget.origin != state.broker)).sum()
    return result


def improve_by_moves(
    p: Placing, budget: MoveBudget, used: Longs, random: np.random.Generator, stop: Stop
) -> None:
    """Moves and emptying in turn until no broker can be emptied."""
    movable = np.flatnonzero(p.impact <= p.room.max())
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
    clients, state, load = p.clients, p.state, counted_load(p)
    count, left = 0, budget.most - moved(budget, state)
    for client in order:
        old, origin = state.broker[client], budget.origin[client]
        if left <= 0 and origin == old:
            continue
        remove_client(clients, state, client)
        new, score = best_fit(p, client, used, old)
        gain = score[new] - score[old] if new != NONE else 0.0
        # By the estimate a broker may be fuller without a publisher that many there listen to.
        holds = load[old] <= p.room[old]
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
    load, state, room = counted_load(p), p.state, p.room
    filled = used[state.clients[used] > 0]
    emptied = False
    for broker in filled[np.argsort(load[filled], kind="stable")]:
        if stop(float(len(filled))):
            return False
        # A cheap test that spares most attempts: all others must have room for the load together.
        others = filled[(state.clients[filled] > 0) & (filled != broker)]
        if np.maximum(room[others] - load[others], 0.0).sum() >= load[broker]:
            emptied = bool(empty(p, budget, used, broker)) or emptied
    return emptied


@compiled
def empty(p: Placing, budget: MoveBudget, used: Longs, broker: int) -> bool:
    """Move all clients of a broker elsewhere, the largest first, or none of them."""
    clients, state = p.clients, p.state
    before = state.broker.copy()
    leaving = np.flatnonzero(before == broker)
    if p.impact[leaving].max() > p.room.max():
        return False
    for client in leaving:
        remove_client(clients, state, client)
    done = True
    for client in leaving[np.argsort(-p.impact[leaving], kind="mergesort")]:
        new, _ = best_fit(p, client, used, broker)
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
def eject(p: Placing, used: Longs, avoid: int, client: int) -> bool:
    """Place a client where another one, that fits elsewhere, makes room for it."""
    clients, state, load, impact = p.clients, p.state, counted_load(p), p.impact
    tries = 0
    for other in range(len(state.broker)):
        home = state.broker[other]
        small = impact[other] < impact[client]
        if home == NONE or not small or state.clients[home] < 2 or tries == EJECTIONS:
            continue
        if load[home] + impact[client] - impact[other] > 1.2 * p.room[home]:
            continue
        tries += 1
        remove_client(clients, state, other)
        fits, _ = best_fit(p, client, np.array([home]), avoid)
        if fits == home:
            place_client(clients, state, client, home)
            new, _ = best_fit(p, other, used, avoid)
            if new != NONE:
                place_client(clients, state, other, new)
                return True
            remove_client(clients, state, client)
        place_client(clients, state, other, home)
    return False


@compiled
def put_back(p: Placing, before: Ints) -> None:
    """Undo all moves since ``before``."""
    other = np.flatnonzero(p.state.broker != before)
    for client in other:
        if p.state.broker[client] != NONE:
            remove_client(p.clients, p.state, client)
    for client in other:
        place_client(p.clients, p.state, client, before[client])
