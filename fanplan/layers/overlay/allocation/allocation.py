"""An allocation of clients to brokers, and how brokers are filled one client after the other.

Algorithms 3 and 4 of Tajuddin (2011); our search fills brokers by the same step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.errors import InfeasibleError, InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.allocation.loads import (
    Clients,
    Loads,
    clients_of,
    estimate_saved,
    exact_impact,
    exact_saved,
    nobody_placed,
    place_client,
    similarity_to,
)
from fanplan.network.brokers import ClientProblem

RANDOM, SIMILAR, SAVING = 0, 1, 2
"""How a broker is chosen among those with room."""

Load = Literal["estimate", "exact"]
Ranking = Literal["gli", "gi", "gig", "baseline"]


@dataclass(frozen=True, eq=False)
class AllocationParams:
    """How full brokers may be: up to ``lcf`` × capacity less what is reserved (messages/s).

    ``load`` says how it is measured: by the estimate of Tajuddin (2011, Eq. 6.2), or exactly, where
    each message counts once at a broker however many of its clients want it.
    """

    lcf: float = 0.75
    load: Load = "estimate"
    reserved: Floats | None = None

    def room(self, problem: ClientProblem) -> Floats:
        """Messages per second of clients that each broker may process."""
        without = np.nonzero(~(problem.capacity > 0))[0]
        if len(without):
            name = problem.brokers[int(without[0])].as_py()
            what = f"broker {name!r} has no capacity"
            raise InputError(Problem("brokers", what, "Give a capacity above 0, or leave it out"))
        left = problem.capacity * self.lcf
        return left if self.reserved is None else np.maximum(left - self.reserved, 0.0)


@dataclass(frozen=True, eq=False)
class Allocation:
    """The broker of each client, as positions; clients are the publishers, then the subscribers.

    ``estimate`` and ``exact`` are the loads of all brokers (messages/s). ``lone`` are clients too
    big for the broker they are at: alone there, as no broker left could take them.
    """

    broker: Ints
    estimate: Floats
    exact: Floats
    lone: Longs
    used: Longs
    """brokers with clients, in the order in which they were deployed"""

    @property
    def brokers(self) -> int:
        """Number of brokers used."""
        return len(self.used)

    def moved_from(self, origin: Ints) -> int:
        """Clients that had a broker in ``origin`` (NONE: had none) and are not there."""
        return int(((origin != NONE) & (origin != self.broker)).sum())


class Placing(NamedTuple):
    """Clients on their way to brokers: who they are, and who is where by now.

    ``room`` is that of each broker, ``impact`` the load of each client by itself. Loads are
    ``exact``, or those of the estimate.
    """

    clients: Clients
    state: Loads
    room: Floats
    impact: Floats
    exact: bool


def placing_of(problem: ClientProblem, params: AllocationParams) -> Placing:
    """Nobody is placed yet."""
    clients, exact = clients_of(problem), params.load == "exact"
    impact = exact_impact(clients) if exact else clients.impact
    nobody = nobody_placed(clients, len(problem.brokers))
    return Placing(clients, nobody, params.room(problem), impact, exact)


def fillable(problem: ClientProblem, p: Placing) -> Placing:
    """With no more room than loads can fill: if messages are whole numbers, so are exact loads.

    They are multiples of what divides all messages, so a rest of room less than that is never used.
    Annealing would take it for room: with a rest of 0.9, a load that is 0.1 too much looks cheap.
    """
    messages = np.concatenate((p.clients.rate, p.impact)) * problem.seconds
    whole = np.rint(messages)
    if not p.exact or not whole.any() or (np.abs(messages - whole) > 1e-6).any():
        return p
    unit = np.gcd.reduce(whole.astype(np.int64)) / problem.seconds
    filled = np.floor(p.room / unit * (1 + 1e-9)) * unit
    return p._replace(room=np.minimum(p.room, filled * (1 + 1e-9)))


def ranked_allocation(
    problem: ClientProblem, ranking: Ranking, params: AllocationParams, seed: int
) -> Allocation:
    """Allocate in the order of a ranking; a new broker, largest first, when none has room.

    The baseline takes clients and brokers at random and chooses any broker with room, so that
    similarity has no part in it. O(similar pairs + clients × brokers used).
    """
    placing = placing_of(problem, params)
    order = ranked_clients(problem, placing.clients, ranking, seed)
    stack, choose = largest_first(problem), SIMILAR
    if ranking == "baseline":
        stack, choose = np.random.default_rng((seed, 1)).permutation(len(stack)), RANDOM
    draws = np.random.default_rng((seed, 2)).random(len(order))
    used = fill_brokers(placing, order, stack, 0, choose, draws)
    return finished(problem, placing, stack[:used])


def ranked_clients(problem: ClientProblem, clients: Clients, ranking: Ranking, seed: int) -> Longs:
    """All clients once, first to be allocated first.

    Equal load impacts go by position. Many interests are equal, namely 1 where all is wanted: by
    position neighbours would gather at a broker, so these ties are drawn.
    """
    if ranking == "gli":
        return np.argsort(-clients.impact, kind="stable")
    if ranking == "baseline":
        return np.random.default_rng((seed, 0)).permutation(len(clients.impact))
    pairs = problem.interest.tocoo()
    publisher, value = pairs.row.astype(np.int64), pairs.data
    subscriber = pairs.col.astype(np.int64) + clients.publishers
    greatest = np.zeros(clients.publishers)
    np.maximum.at(greatest, publisher, value)
    random = np.random.default_rng((seed, 0))
    ties, places = random.random(len(value)), random.permutation(clients.publishers)
    # GI ranks pairs by interest; GIg ranks groups by their greatest interest, then inside.
    groups = (places[publisher], -greatest[publisher]) if ranking == "gig" else ()
    order = np.lexsort((ties, -value, *groups))
    listed = np.stack((publisher[order], subscriber[order]), axis=1).ravel()
    # Clients that share nothing with anybody are in no pair; they come last.
    listed = np.concatenate((listed, np.arange(len(clients.impact))))
    # A client is allocated once: where it appears first.
    _, first = np.unique(listed, return_index=True)
    return listed[np.sort(first)]


def largest_first(problem: ClientProblem) -> Longs:
    """Brokers by descending capacity (Algorithm 3, line 6), of equal ones the cheapest first."""
    return np.lexsort((problem.cost, -problem.capacity))


@compiled
def fill_brokers(
    p: Placing, order: Longs, stack: Longs, used: int, choose: int, draws: Floats
) -> int:
    """Algorithm 3 of Tajuddin (2011); the number of brokers deployed from the stack.

    Clients that have a broker keep it. One too big for the next broker is deployed alone, and
    nobody joins it. If brokers run out, clients stay without one.
    """
    for i in range(len(order)):
        client, deployed = order[i], stack[:used]
        if p.state.broker[client] != NONE:
            continue
        if choose == SAVING:
            broker, _ = best_fit(p, client, deployed, NONE)
        elif choose == SIMILAR:
            broker = most_similar(p, client, deployed)
        else:
            broker = any_with_room(p, client, deployed, draws[i])
        if broker == NONE:
            if used == len(stack):
                continue
            broker = stack[used]
            used += 1
        place_client(p.clients, p.state, client, broker)
    return used


@compiled
def most_similar(p: Placing, client: int, deployed: Longs) -> int:
    """Algorithm 4, where line 13 adds the similarity; ties go to the broker deployed first."""
    load, impact = counted_load(p), p.impact[client]
    total = np.zeros(len(load))
    similarity_to(p.clients, p.state, client, total)
    best, most = NONE, -1.0
    for broker in deployed:
        # Line 19: the whole impact, without the correction.
        if total[broker] > most and load[broker] + impact < p.room[broker]:
            best, most = broker, total[broker]
    return best


@compiled
def any_with_room(p: Placing, client: int, deployed: Longs, draw: float) -> int:
    """One of the brokers with room, all alike."""
    load, impact = counted_load(p), p.impact[client]
    fits = np.empty(len(deployed), dtype=np.int64)
    count = 0
    for broker in deployed:
        if load[broker] + impact < p.room[broker]:
            fits[count] = broker
            count += 1
    return fits[int(draw * count)] if count else NONE


@compiled
def client_savings(p: Placing, client: int) -> tuple[Floats, Floats]:
    """Per broker: what a client saves of its impact, and the score to prefer brokers by."""
    clients, state = p.clients, p.state
    score = np.zeros(len(state.clients))
    exact_saved(clients, state, client, score)
    if p.exact:
        return score, score
    saved = np.zeros(len(state.clients))
    estimate_saved(clients, state, client, saved)
    return saved, score + saved


@compiled
def best_fit(p: Placing, client: int, brokers: Longs, avoid: int) -> tuple[int, Floats]:
    """The broker with room where a client saves most; ties go to the one that gets fullest.

    Brokers without clients and ``avoid`` do not count. With it comes the score of every broker.
    """
    saved, score = client_savings(p, client)
    load = counted_load(p)
    best, most, least = NONE, -1.0, np.inf
    for broker in brokers:
        left = p.room[broker] - load[broker] - p.impact[client] + saved[broker]
        if left < 0 or broker == avoid or p.state.clients[broker] == 0:
            continue
        if score[broker] > most or (score[broker] == most and left < least):
            best, most, least = broker, score[broker], left
    return best, score


@compiled
def counted_load(p: Placing) -> Floats:
    """The loads that the rule looks at."""
    return p.state.exact if p.exact else p.state.estimate


def finished(problem: ClientProblem, p: Placing, used: Longs) -> Allocation:
    """The allocation of a state, with the clients that exceed their broker; all must be placed."""
    state = p.state
    waiting = p.impact[state.broker == NONE]
    if len(waiting):
        raise too_few(problem, waiting, p.room)
    full = counted_load(p) > p.room * (1 + 1e-9)
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
