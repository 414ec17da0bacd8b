"""What clients add to the load of brokers, by the thesis' estimate and exactly.

Clients are numbered: publishers first, then subscribers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fanplan.core.arrays import NONE, Floats, Ints, Longs, Position
from fanplan.core.kernels import compiled
from fanplan.network.brokers import ClientProblem


class Clients(NamedTuple):
    """A client problem as compiled code reads it; all rates in messages per second.

    ``near`` lists the clients on the other side that a client shares messages with, and ``shared``
    their number. ``alike`` lists for a subscriber the similar ones, for a publisher those that are
    interested. The routes of a client are its own if it is a publisher, else those it wants.
    """

    publishers: int
    impact: Floats
    near_starts: Longs
    near: Ints
    shared: Floats
    alike_starts: Longs
    alike: Ints
    similarity: Floats
    source: Ints
    starts: Longs
    subscribers: Ints
    rate: Floats
    at: Longs
    routes: Ints


class Loads(NamedTuple):
    """Who is where. ``holders`` are the brokers that hold subscribers of each route, in the places
    of the route's subscribers, with the number of them; ``held`` is how many brokers there are.
    """

    broker: Ints
    clients: Longs
    estimate: Floats
    exact: Floats
    held: Ints
    holders: Ints
    counts: Ints


def clients_of(problem: ClientProblem) -> Clients:
    """Prepare the arrays. A publisher's load is its rate, or what its routes carry if that is more.

    O(n log n) in the entries of interest, similarity and routes.
    """
    publishers, subscribers = len(problem.publishers), len(problem.subscribers)
    rates, routes = problem.rates, problem.routes
    rate = routes.messages / problem.seconds
    interest = problem.interest.tocoo()
    shared = interest.data * rates[interest.row]
    wanted = np.bincount(interest.col, shared, subscribers)
    sent = np.bincount(routes.source, rate, publishers)
    own, other = interest.row, interest.col + publishers
    both = np.concatenate((own, other)), np.concatenate((other, own))
    near = listed_by(*both, np.concatenate((shared, shared)), publishers + subscribers)
    common = problem.common.tocoo()
    alike = listed_by(
        np.concatenate((own, common.row + publishers)),
        np.concatenate((other, common.col + publishers)),
        np.concatenate((interest.data, common.data)),
        publishers + subscribers,
    )
    row = np.repeat(np.arange(len(routes)), np.diff(routes.starts))
    users = np.concatenate((routes.source, routes.brokers + publishers))
    numbers = np.concatenate((np.arange(len(routes)), row))
    at, listed, _ = listed_by(users, numbers, np.zeros(len(numbers)), publishers + subscribers)
    return Clients(
        publishers,
        np.concatenate((np.maximum(rates, sent), wanted)),
        *near,
        *alike,
        routes.source,
        routes.starts,
        routes.brokers,
        rate,
        at,
        listed,
    )


def listed_by(
    key: NDArray[Any], other: NDArray[Any], value: Floats, count: int
) -> tuple[Longs, Ints, Floats]:
    """Lists of (other, value) for each key, others ascending; each pair comes once."""
    others = int(other.max(initial=0)) + 1
    lists = scipy.sparse.coo_array((value, (key, other)), shape=(count, others)).tocsr()
    lists.sort_indices()
    starts, found = lists.indptr.astype(np.int64), lists.indices.astype(np.int32)
    return starts, found, lists.data.astype(np.float64)


def exact_impact(clients: Clients) -> Floats:
    """The exact load of each client on a broker of its own."""
    impact = clients.impact.copy()
    row = np.repeat(np.arange(len(clients.rate)), np.diff(clients.starts))
    subscribers = len(impact) - clients.publishers
    wanted = np.bincount(clients.subscribers, clients.rate[row], subscribers)
    impact[clients.publishers :] = wanted
    return impact


def nobody_placed(clients: Clients, brokers: int) -> Loads:
    return Loads(
        np.full(len(clients.impact), NONE, dtype=np.int32),
        np.zeros(brokers, dtype=np.int64),
        np.zeros(brokers),
        np.zeros(brokers),
        np.zeros(len(clients.rate), dtype=np.int32),
        np.full(len(clients.subscribers), NONE, dtype=np.int32),
        np.zeros(len(clients.subscribers), dtype=np.int32),
    )


@compiled
def place_client(clients: Clients, state: Loads, client: Position, broker: int) -> None:
    """Put a client at a broker and add its load, both ways."""
    state.estimate[broker] += estimate_there(clients, state, client, broker)
    state.broker[client] = broker
    state.clients[broker] += 1
    if client < clients.publishers:
        state.exact[broker] += publisher_there(clients, state, client, broker)
        return
    for k in range(clients.at[client], clients.at[client + 1]):
        route = clients.routes[k]
        if hold(clients, state, route, broker) and state.broker[clients.source[route]] != broker:
            state.exact[broker] += clients.rate[route]


@compiled
def place_all(clients: Clients, state: Loads, broker: Ints) -> None:
    """Put every client that has a broker there."""
    for client in range(len(broker)):
        if broker[client] != NONE:
            place_client(clients, state, client, broker[client])


@compiled
def remove_client(clients: Clients, state: Loads, client: Position) -> None:
    """Take a client from its broker and its load with it."""
    broker = state.broker[client]
    state.broker[client] = NONE
    state.clients[broker] -= 1
    state.estimate[broker] -= estimate_there(clients, state, client, broker)
    if client < clients.publishers:
        state.exact[broker] -= publisher_there(clients, state, client, broker)
    else:
        for k in range(clients.at[client], clients.at[client + 1]):
            route = clients.routes[k]
            gone = release(clients, state, route, broker)
            if gone and state.broker[clients.source[route]] != broker:
                state.exact[broker] -= clients.rate[route]
    if state.clients[broker] == 0:
        state.estimate[broker] = state.exact[broker] = 0.0


@compiled
def estimate_there(clients: Clients, state: Loads, client: Position, broker: int) -> float:
    """What a client adds to the estimate of a broker that it is not counted at (Eq. 6.2)."""
    load: float = clients.impact[client]
    for k in range(clients.near_starts[client], clients.near_starts[client + 1]):
        if state.broker[clients.near[k]] == broker:
            load -= clients.shared[k]
    return load


@compiled
def publisher_there(clients: Clients, state: Loads, client: Position, broker: int) -> float:
    """What a publisher adds to a broker: its messages that no subscriber there wants."""
    load: float = clients.impact[client]
    for k in range(clients.at[client], clients.at[client + 1]):
        route = clients.routes[k]
        first = clients.starts[route]
        for j in range(first, first + state.held[route]):
            if state.holders[j] == broker:
                load -= clients.rate[route]
                break
    return load


@compiled
def hold(clients: Clients, state: Loads, route: int, broker: int) -> bool:
    """One more subscriber of a route is at a broker; whether it is the first there."""
    first = clients.starts[route]
    for k in range(first, first + state.held[route]):
        if state.holders[k] == broker:
            state.counts[k] += 1
            return False
    state.holders[first + state.held[route]] = broker
    state.counts[first + state.held[route]] = 1
    state.held[route] += 1
    return True


@compiled
def release(clients: Clients, state: Loads, route: int, broker: int) -> bool:
    """One subscriber of a route fewer is at a broker; whether it was the last there."""
    first = clients.starts[route]
    last = first + state.held[route] - 1
    for k in range(first, last + 1):
        if state.holders[k] == broker:
            state.counts[k] -= 1
            if state.counts[k] > 0:
                return False
            state.holders[k], state.counts[k] = state.holders[last], state.counts[last]
            state.held[route] -= 1
            return True
    return False


@compiled
def estimate_saved(clients: Clients, state: Loads, client: int, saved: Floats) -> None:
    """Add per broker the correction of Eq. 6.2: what is published and matched there."""
    for k in range(clients.near_starts[client], clients.near_starts[client + 1]):
        broker = state.broker[clients.near[k]]
        if broker != NONE:
            saved[broker] += clients.shared[k]


@compiled
def exact_saved(clients: Clients, state: Loads, client: int, saved: Floats) -> None:
    """Add per broker the messages of a client that it has to process anyway."""
    for k in range(clients.at[client], clients.at[client + 1]):
        route = clients.routes[k]
        first, rate = clients.starts[route], clients.rate[route]
        home = NONE
        if client >= clients.publishers:
            home = state.broker[clients.source[route]]
            if home != NONE:
                saved[home] += rate
        for j in range(first, first + state.held[route]):
            if state.holders[j] != home:
                saved[state.holders[j]] += rate


@compiled
def similarity_to(clients: Clients, state: Loads, client: int, total: Floats) -> None:
    """Add per broker the similarity of a client to the subscribers there (Algorithm 4)."""
    for k in range(clients.alike_starts[client], clients.alike_starts[client + 1]):
        broker = state.broker[clients.alike[k]]
        if broker != NONE:
            total[broker] += clients.similarity[k]
