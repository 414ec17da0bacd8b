"""Clients of a few brokers that share messages are taken off and placed again, over and over.

Large neighbourhood search (Shaw 1998) for packing with overlaps. A broker that is used costs what
it costs, less its free share, and less the square of it. The first rewards load that is shed
because fewer brokers process the same messages; the second, free room that gathers at few brokers,
until one is empty.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import NONE, Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.allocation import Placing, client_savings, counted_load
from fanplan.layers.overlay.allocation.loads import place_client, remove_client

TRIES = 60
"""Attempts for each client."""
WORK = 400_000_000
"""Attempts times clients, at most: each attempt looks through all clients once."""
AT_ONCE = 500
"""Attempts between two questions whether to stop."""
FEWEST, MOST = 2, 5
"""Brokers whose clients are placed again."""
NOISE = 0.3
"""How far scores of brokers are off, so that attempts differ."""
GATHERED = 1.0
"""Weight of the square of a free share, for 1 of the share itself."""
WARM = 0.02
"""What an attempt may cost at first, in brokers; in the end nothing."""


def reshuffle(p: Placing, cost: Floats, used: Longs, seed: int, stop: Stop) -> Longs:
    """Improve an allocation in place; the brokers used in the end."""
    clients, filled = len(p.impact), used[p.state.clients[used] > 0]
    tries = min(TRIES * clients, WORK // max(clients, 1))
    if len(filled) < FEWEST:
        return used
    best, least = p.state.broker.copy(), spent(p, cost, filled)
    for first in range(0, tries, AT_ONCE):
        if stop(float(len(filled))):
            break
        heat = WARM * float(cost.mean()) * (1 - first / tries)
        reshuffle_some(p, cost, filled, heat, (seed + first) % 2**32)
        filled = filled[p.state.clients[filled] > 0]
        now = spent(p, cost, filled)
        if now < least:
            best, least = p.state.broker.copy(), now
    put_back(p, best)
    return used[p.state.clients[used] > 0]


@compiled
def spent(p: Placing, cost: Floats, used: Longs) -> float:
    """What brokers cost, less for their free room; an empty one costs nothing."""
    total, load = 0.0, counted_load(p)
    for broker in used:
        if p.state.clients[broker] > 0:
            free = max(1 - load[broker] / p.room[broker], 0.0)
            total += cost[broker] * (1 - (free + GATHERED * free * free) / (1 + GATHERED))
    return total


@compiled
def reshuffle_some(p: Placing, cost: Floats, used: Longs, heat: float, seed: int) -> None:
    """So many attempts; each is kept if it costs no more, or a little more by chance."""
    np.random.seed(seed)
    chosen, before = np.empty(MOST, np.int64), np.empty(len(p.impact), np.int32)
    value = spent(p, cost, used)
    for _ in range(AT_ONCE):
        count = choose_near(p, chosen, np.random.randint(FEWEST, MOST + 1))
        if count < FEWEST:
            continue
        before[:] = p.state.broker
        again = place_again(p, used, chosen[:count])
        now = spent(p, cost, used) if again else np.inf
        if now <= value - heat * np.log(np.random.random()):
            value = now
        else:
            put_back(p, before)


@compiled
def choose_near(p: Placing, chosen: Longs, most: int) -> int:
    """Brokers, by chance, that have routes in common with the first; none that is overfull."""
    clients, state, load = p.clients, p.state, counted_load(p)
    count = 0
    client = np.random.randint(0, len(p.impact))
    for _ in range(4 * most):
        broker = state.broker[client]
        known = load[broker] > p.room[broker] * (1 + 1e-9)
        for i in range(count):
            known = known or chosen[i] == broker
        if not known:
            chosen[count] = broker
            count += 1
            if count == most:
                break
        # From a client by one of its routes to another that has it.
        at, end = clients.at[client], clients.at[client + 1]
        if at < end:
            route = clients.routes[np.random.randint(at, end)]
            start, stop = clients.starts[route], clients.starts[route + 1]
            if start < stop:
                near = np.random.randint(start, stop + 1)
                source = clients.source[route]
                client = source if near == stop else clients.subscribers[near] + clients.publishers
                continue
        client = np.random.randint(0, len(p.impact))
    return count


@compiled
def place_again(p: Placing, used: Longs, chosen: Longs) -> bool:
    """Take the clients of some brokers off and place them, large ones earlier; whether all fit."""
    state = p.state
    total = 0
    for broker in chosen:
        total += state.clients[broker]
    leaving, rank = np.empty(total, np.int64), np.empty(total)
    count = 0
    for client in range(len(state.broker)):
        for broker in chosen:
            if state.broker[client] == broker:
                leaving[count] = client
                rank[count] = -p.impact[client] * (0.4 + np.random.random())
                count += 1
    for gone in leaving:
        remove_client(p.clients, state, gone)
    opened = 0
    for i in np.argsort(rank):
        client = leaving[i]
        broker = noisy_fit(p, client, used)
        if broker == NONE:
            while opened < len(chosen) and state.clients[chosen[opened]] > 0:
                opened += 1
            if opened == len(chosen) or p.impact[client] > p.room[chosen[opened]]:
                return False
            broker = chosen[opened]
        place_client(p.clients, state, client, broker)
    return True


@compiled
def noisy_fit(p: Placing, client: int, used: Longs) -> int:
    """The broker with room where a client saves most, more or less."""
    saved, score = client_savings(p, client)
    load = counted_load(p)
    best, most = NONE, -1.0
    for broker in used:
        if p.state.clients[broker] == 0:
            continue
        left = p.room[broker] - load[broker] - p.impact[client] + saved[broker]
        if left < 0:
            continue
        value = score[broker] * (1 + NOISE * (np.random.random() - 0.5))
        # Where nothing is saved, the fuller broker.
        value += 1e-6 * (1 - left / p.room[broker])
        if value > most:
            best, most = broker, value
    return best


@compiled
def put_back(p: Placing, before: Ints) -> None:
    """Undo all moves since ``before``."""
    other = np.flatnonzero(p.state.broker != before)
    for client in other:
        if p.state.broker[client] != NONE:
            remove_client(p.clients, p.state, client)
    for client in other:
        place_client(p.clients, p.state, client, before[client])
