"""Hubs: a few brokers with most publishers and the clients that hear little else.

By the estimate a subscriber costs a broker only what is published elsewhere. So all clients are
one broker's load of the publishers' rates, and a part of them is cheap if it hears mostly itself:
a hub of 750 messages/s may hold clients with impacts of 8,000. All other brokers are plain bins.
Which clients form hubs is searched by simulated annealing (Kirkpatrick et al. 1983).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Floats, Longs
from fanplan.core.kernels import compiled
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.loads import Clients

FEWEST, MOST = 2, 16
"""Hubs: so many more than the publishers' rates fill, and at most."""
RUNS = ((1, 1.0), (1, 0.6), (2, 1.0), (2, 0.6))
"""Times the brokers that the rates fill, and the price of load in hubs in savings."""
TRIES = 12_000
"""Moves tried per client and run."""
ROUNDS = 100
"""Temperatures; ``stop`` is asked at each."""
HOT, COLD = 1 / 75, 1 / 750
"""First and last temperature, as shares of the room of a broker."""


class Hubs(NamedTuple):
    """Where clients are: at a hub, or at the last position, which stands for all other brokers.

    ``saved[h, c]`` is the estimate's correction of client c at hub h, 0 in the last row.
    """

    home: Longs
    load: Floats
    room: Floats
    price: Floats
    saved: Floats


def best_hubs(clients: Clients, room: Floats, seed: int, stop: Stop) -> Longs:
    """The hub of each client, as a position in ``room``, or ``len(room)`` if at none.

    ``room`` has the brokers in the order in which they are to be used. Time O(tries + moves ×
    pairs of a client), memory hubs × clients.
    """
    fits = np.flatnonzero(clients.impact <= room.max())
    filled = clients.impact[: clients.publishers].sum() / room.max()
    best, most = np.full(len(clients.impact), len(room)), 0.0
    for run, (times, price) in enumerate(RUNS):
        count = min(len(room), MOST, FEWEST + int(times * np.ceil(filled)))
        hubs = no_hubs(len(clients.impact), room[:count], price)
        anneal_hubs(clients, hubs, fits, np.random.default_rng((seed, 4, run)), stop)
        saved = float(hubs.saved[hubs.home, np.arange(len(hubs.home))].sum())
        if saved > most:
            best, most = np.where(hubs.home < count, hubs.home, len(room)), saved
    return best


def no_hubs(clients: int, room: Floats, price: float) -> Hubs:
    count = len(room)
    return Hubs(
        np.full(clients, count),
        np.zeros(count + 1),
        np.append(room, np.inf),
        np.append(np.full(count, price), 0.0),
        np.zeros((count + 1, clients)),
    )


def anneal_hubs(
    clients: Clients, hubs: Hubs, fits: Longs, random: np.random.Generator, stop: Stop
) -> None:
    """Try random moves of the clients that fit, fewer and fewer of those that do harm."""
    tries = TRIES * len(fits) // ROUNDS
    for heat in np.geomspace(HOT, COLD, ROUNDS) * hubs.room[:-1].max():
        if stop(np.inf):
            return
        who = fits[random.integers(0, len(fits), tries)]
        where = random.integers(0, len(hubs.load), tries)
        # The rule of Metropolis: a loss d is accepted with probability exp(-d / heat).
        losses = heat * random.exponential(size=tries)
        try_moves(clients, hubs, who, where, losses)


@compiled
def try_moves(clients: Clients, hubs: Hubs, who: Longs, where: Longs, losses: Floats) -> None:
    """Make each move that keeps hubs within their room and loses no more than allowed."""
    for i in range(len(who)):
        client, new = who[i], where[i]
        old = hubs.home[client]
        leaves = clients.impact[client] - hubs.saved[old, client]
        comes = clients.impact[client] - hubs.saved[new, client]
        loss = comes * (1 + hubs.price[new]) - leaves * (1 + hubs.price[old])
        if new == old or loss > losses[i]:
            continue
        # A hub may also get fuller by a leaving publisher, which many there listen to.
        if hubs.load[new] + comes > hubs.room[new] or hubs.load[old] - leaves > hubs.room[old]:
            continue
        hubs.home[client] = new
        hubs.load[old] -= leaves
        hubs.load[new] += comes
        add_to_hub(clients, hubs, client, old, -1.0)
        add_to_hub(clients, hubs, client, new, 1.0)


@compiled
def add_to_hub(clients: Clients, hubs: Hubs, client: int, hub: int, sign: float) -> None:
    """Others save what they share with a client that comes to a hub (or leaves, if negative)."""
    if hub == len(hubs.load) - 1:
        return
    for k in range(clients.near_starts[client], clients.near_starts[client + 1]):
        hubs.saved[hub, clients.near[k]] += sign * clients.shared[k]
