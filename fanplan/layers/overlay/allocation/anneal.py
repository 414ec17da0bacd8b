"""Clients move and swap between brokers, at first also where it does harm: simulated annealing.

Packing with overlaps: a broker is the set of routes that its clients have, each counted once
(pagination; Grange, Kacem, Martin 2018). Brokers may be a little overfull on the way, at a price
that rises. A broker costs its load at first, so that clients gather who have much in common; later
free room that has gathered at few brokers is worth more and more, until some are empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from fanplan.core.arrays import NONE, Floats, Ints, Longs, Position
from fanplan.core.kernels import bare, compiled
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.allocation import Placing, counted_load
from fanplan.layers.overlay.allocation.loads import Clients

TRIES = 1_000
"""Moves tried for each client and broker, if brokers are few."""
FEW, MANY = 5, 40
"""Brokers from which tries grow with their number, and to which: many settle more slowly."""
WORK = 4_000_000_000
"""Moves tried times routes of a client, at most."""
CELLS = 200_000_000
"""Brokers times routes, at most."""
ROUNDS = 500
"""Temperatures; ``stop`` is asked at each."""
LENIENT, STRICT = 10.0, 20.0
"""First and last price of overload, for 1 of load."""
BEYOND = 1.15
"""Share of the room that no broker exceeds."""
SWAPS = 0.3
"""Share of the tries that swap two clients."""
ANYWHERE = 0.01
"""Share of the tries with any broker, also an empty one, instead of one with a common route."""
LARGE = 30_000
"""Clients, at most: counts by broker and route are short numbers, which are quicker."""


class Cooling(NamedTuple):
    """First and last temperature, in brokers; the last weight of the square of a free share, for 1
    of the share itself; and the share of the tries that are made."""

    hot: float
    cold: float
    gathered: float
    tries: float


FEWEST_BROKERS, FEWER_YET = Cooling(0.06, 0.004, 3.0, 1.0), Cooling(0.008, 0.002, 3.0, 0.5)
"""To empty brokers; and once more, much cooler, from the best there is by then: where a client adds
little to a broker, the first is too hot and decides nothing."""
LEAST_LOAD = Cooling(0.03, 0.004, 0.0, 0.25)
"""To lower the load of an allocation that is good already."""


class Packing(NamedTuple):
    """Who is where, for clients that fit a broker and brokers that are not overfull.

    ``movable`` are the clients and ``brokers`` the brokers; ``cost`` is for a mean of 1. ``owner``
    is the client of each place in the lists of routes. Who has a ``host`` goes where that goes, and
    has no home here. ``own`` is what a client adds besides its routes. ``counts`` are clients by
    broker and route. The clients of a broker are a ring: one ``first`` there, with the one
    ``after`` and ``before`` each. ``random`` is the last random number. ``load`` is by the
    exact rule if ``exact``, else by the estimate.
    """

    movable: Longs
    owner: Longs
    brokers: Longs
    home: Ints
    host: Ints
    own: Floats
    counts: np.ndarray
    load: Floats
    room: Floats
    cost: Floats
    first: Ints
    after: Ints
    before: Ints
    random: np.ndarray
    exact: bool


class Terms(NamedTuple):
    """What is asked of a move: the temperature, the price of overload, and what gathered room is
    worth for 1 of room."""

    heat: float
    price: float
    gathered: float


def annealed(
    p: Placing, cost: Floats, used: Longs, seed: int, stop: Stop, cooling: Cooling
) -> Ints:
    """Where clients are in the end; a broker may be a little overfull.

    As they were if counts would be too large. O(tries · routes of a client); memory brokers used ×
    routes.
    """
    home, clients = p.state.broker, p.clients
    if len(used) * len(clients.rate) > CELLS or len(home) > LARGE:
        return home
    packing = packing_of(p, cost, used, hosts(p), seed)
    each = max(len(clients.routes) / max(len(home), 1), 1.0)
    more = min(max(len(packing.brokers), FEW), MANY) / FEW
    pairs = len(packing.movable) * len(packing.brokers)
    tries = int(min(TRIES * more * pairs, WORK / each) * cooling.tries / ROUNDS)
    for turn in range(ROUNDS):
        if stop(float(len(used))):
            break
        done = turn / ROUNDS
        heat = cooling.hot * (cooling.cold / cooling.hot) ** done
        price = LENIENT * (STRICT / LENIENT) ** done
        move_some(clients, packing, Terms(heat, price, cooling.gathered * done), tries)
    found = np.append(packing.brokers, NONE)[packing.home].astype(np.int32)
    found = np.where(found == NONE, home, found)
    return np.where(packing.host == NONE, found, found[packing.host])


def packing_of(p: Placing, cost: Floats, used: Longs, host: Ints, seed: int) -> Packing:
    """Clients and brokers as they are, but for those that are too much for their broker."""
    state, clients = p.state, p.clients
    holds = (counted_load(p) <= p.room * (1 + 1e-9)) & (p.room > 0)
    brokers = used[holds[used]]
    number = np.full(len(p.room), NONE, np.int32)
    number[brokers] = np.arange(len(brokers))
    own = unwanted(p)
    home = np.where(host == NONE, number[state.broker], NONE).astype(np.int32)
    counts = np.zeros((len(brokers), len(clients.rate)), np.int16)
    ends = np.full(len(brokers), NONE, np.int32)
    ring = np.arange(len(home), dtype=np.int32)
    price = np.maximum(cost / max(float(cost.mean()), 1e-9), 1e-9)
    rooms = (np.zeros(len(brokers)), p.room[brokers], price[brokers])
    owner = np.repeat(np.arange(len(home)), np.diff(clients.at))
    packing = Packing(
        np.flatnonzero(home != NONE),
        owner,
        brokers,
        home,
        host,
        own,
        counts,
        *rooms,
        ends,
        ring,
        ring.copy(),
        np.random.default_rng((seed, 4)).integers(1, 2**63, 1, dtype=np.uint64),
        p.exact,
    )
    enter_all(clients, packing)
    if not p.exact:
        packing.load[:] = state.estimate[brokers]
    return packing


def unwanted(p: Placing) -> Floats:
    """What a publisher sends on none of its routes; 0 for subscribers."""
    carried = np.bincount(p.clients.source, p.clients.rate, len(p.impact))
    publishes = np.arange(len(p.impact)) < p.clients.publishers
    return np.where(publishes, p.impact - carried, 0.0).clip(0)


def hosts(p: Placing) -> Ints:
    """A subscriber that fits a broker and wants all that a publisher sends, NONE if there is none.

    Beside it the publisher adds nothing. So it need not be moved: it would only hold its routes
    where their subscribers have left.
    """
    clients, own = p.clients, unwanted(p)
    row = np.repeat(np.arange(len(clients.rate)), np.diff(clients.starts))
    shape = (clients.publishers, len(own) - clients.publishers)
    pairs = (clients.source[row], clients.subscribers)
    wanted = scipy.sparse.coo_array((np.ones(len(row)), pairs), shape).tocsr().tocoo()
    sent = np.bincount(clients.source, minlength=clients.publishers)
    subscriber = wanted.col + clients.publishers
    whole = (wanted.data == sent[wanted.row]) & (own[wanted.row] <= 1e-9)
    whole &= p.impact[subscriber] <= p.room.max()
    host = np.full(len(own), NONE, np.int32)
    host[wanted.row[whole]] = subscriber[whole]
    return host


@compiled(_nrt=False)
def enter_all(c: Clients, k: Packing) -> None:
    for client in k.movable:
        k.load[k.home[client]] += added(c, k, client, k.home[client], 0, np.inf)
        enter(c, k, client, k.home[client])


@compiled(_nrt=False)
def move_some(c: Clients, k: Packing, terms: Terms, tries: int) -> None:
    """Try moves and swaps; who does harm is kept by chance (the rule of Metropolis)."""
    for _ in range(tries):
        client, other, new = proposed(c, k)
        if new == NONE:
            continue
        loss = -terms.heat * np.log(chance(k))
        if k.first[new] == NONE or chance(k) >= SWAPS:
            try_move(c, k, terms, client, new, loss)
            continue
        # Who is first at a broker takes turns.
        partner = k.first[new]
        k.first[new] = k.after[partner]
        if partner != other:
            try_swap(c, k, terms, client, partner, loss)


@bare
def proposed(c: Clients, k: Packing) -> tuple[int, int, int]:
    """A client, one that it may follow, and the broker to try; NONE if that is not worth a try."""
    client, other = companions(c, k)
    old, new = k.home[client], k.home[other]
    if client == other:
        new = drawn(k, len(k.brokers))
    apart = min(old, new) == NONE or new == old
    if apart or (client != other and not has_another(c, k, client, new)):
        return client, other, NONE
    return client, other, new


@bare
def companions(c: Clients, k: Packing) -> tuple[int, int]:
    """Two clients with a route in common; or one client twice, now and then.

    Who has many routes comes more often: most publishers add nothing and need few moves.
    """
    if chance(k) < ANYWHERE or len(c.routes) == 0:
        client = k.movable[drawn(k, len(k.movable))]
        return client, client
    at = drawn(k, len(c.routes))
    route = c.routes[at]
    near = c.starts[route] + drawn(k, c.starts[route + 1] - c.starts[route] + 1)
    if near == c.starts[route + 1]:
        return k.owner[at], c.source[route]
    return k.owner[at], c.subscribers[near] + c.publishers


@bare
def has_another(c: Clients, k: Packing, client: int, broker: int) -> bool:
    """Whether a broker has one more route of a client, drawn: the more it has, the likelier."""
    at, end = c.at[client], c.at[client + 1]
    return at < end and bool(k.counts[broker, c.routes[at + drawn(k, end - at)]] > 0)


@bare
def drawn(k: Packing, count: int) -> int:
    return int(chance(k) * count)


@bare
def chance(k: Packing) -> float:
    """A number from 0 to 1 (xorshift, Marsaglia 2003): numba's own takes a third of all time."""
    x = k.random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    k.random[0] = x
    return float(np.int64(x >> np.uint64(11))) * 2.0**-53


@bare
def try_move(c: Clients, k: Packing, terms: Terms, client: int, new: int, loss: float) -> None:
    old = k.home[client]
    left = 0.0 if k.after[client] == client else k.load[old] - added(c, k, client, old, 1, np.inf)
    budget = loss + spent(k, terms, old) + spent(k, terms, new) - spent_at(k, terms, old, left)
    more = added(c, k, client, new, 0, most_load(k, terms, new, budget) - k.load[new])
    if spent_at(k, terms, new, k.load[new] + more) <= budget:
        leave(c, k, client, old)
        enter(c, k, client, new)
        k.load[old] = left
        k.load[new] += more


@bare
def try_swap(c: Clients, k: Packing, terms: Terms, client: int, partner: int, loss: float) -> None:
    old, new = k.home[client], k.home[partner]
    left = k.load[old] - added(c, k, client, old, 1, np.inf)
    free = k.load[new] - added(c, k, partner, new, 1, np.inf)
    budget = loss + spent(k, terms, old) + spent(k, terms, new)
    count_routes(c, k, client, old, -1)
    most = most_load(k, terms, old, budget - spent_at(k, terms, new, free))
    left += added(c, k, partner, old, 0, most - left)
    count_routes(c, k, client, old, 1)
    budget -= spent_at(k, terms, old, left)
    if budget < 0:
        return
    count_routes(c, k, partner, new, -1)
    free += added(c, k, client, new, 0, most_load(k, terms, new, budget) - free)
    count_routes(c, k, partner, new, 1)
    if spent_at(k, terms, new, free) <= budget:
        leave(c, k, client, old)
        leave(c, k, partner, new)
        enter(c, k, client, new)
        enter(c, k, partner, old)
        k.load[old], k.load[new] = left, free


@bare
def added(c: Clients, k: Packing, client: int, broker: int, beside: int, most: float) -> float:
    """What a client adds to a broker where ``beside`` clients have a route; if more than ``most``,
    no matter how much."""
    total: float = k.own[client]
    for i in range(c.at[client], c.at[client + 1]):
        if k.counts[broker, c.routes[i]] == beside:
            total += c.rate[c.routes[i]]
            if total > most:
                return np.inf
    return total


@bare
def needed(c: Clients, k: Packing, client: int, broker: int, beside: int, most: float) -> float:
    """What a client adds to a broker by the rule that counts: by the estimate, its impact less what
    is published and wanted there (Eq. 6.2)."""
    if k.exact:
        return added(c, k, client, broker, beside, most)
    load: float = c.impact[client]
    for i in range(c.near_starts[client], c.near_starts[client + 1]):
        if k.home[c.near[i]] == broker:
            load -= c.shared[i]
    return load


@bare
def spent(k: Packing, terms: Terms, broker: int) -> float:
    return spent_at(k, terms, broker, k.load[broker])


@bare
def spent_at(k: Packing, terms: Terms, broker: int, load: float) -> float:
    """What a broker costs with a load: less for free room, more for overload, 0 if empty."""
    free = 1 - load / k.room[broker]
    if free < -1e-9:
        share = 1 - terms.price * free if 1 - free <= BEYOND else np.inf
    else:
        share = 1 - (free + terms.gathered * free * free) / (1 + terms.gathered)
    return float(k.cost[broker] * share)


@bare
def most_load(k: Packing, terms: Terms, broker: int, budget: float) -> float:
    """A load with which a broker costs the budget or more."""
    over = max(budget / k.cost[broker] - 1, 0.0) / terms.price
    return float(k.room[broker] * min(1 + over + 1e-6, BEYOND))


@bare
def count_routes(c: Clients, k: Packing, client: Position, broker: int, change: int) -> None:
    for i in range(c.at[client], c.at[client + 1]):
        k.counts[broker, c.routes[i]] += change


@bare
def enter(c: Clients, k: Packing, client: Position, broker: int) -> None:
    """A client joins a broker's ring and has its routes there."""
    count_routes(c, k, client, broker, 1)
    first = k.first[broker]
    if first == NONE:
        k.first[broker] = first = k.before[client] = k.after[client] = client
    last = k.before[first]
    k.after[last] = k.before[first] = client
    k.before[client], k.after[client] = last, first
    k.home[client] = broker


@bare
def leave(c: Clients, k: Packing, client: Position, broker: int) -> None:
    """A client leaves a broker's ring."""
    count_routes(c, k, client, broker, -1)
    last, following = k.before[client], k.after[client]
    k.after[last], k.before[following] = following, last
    if k.first[broker] == client:
        k.first[broker] = NONE if following == client else following
