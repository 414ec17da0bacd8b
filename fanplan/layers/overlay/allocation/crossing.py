"""Clients move between brokers that are linked, so that fewer messages cross the links.

A message crosses a link if somebody who has its route is on either side: its publisher counts as
much as its subscribers. So it is enough to know how many have a route below each broker of the
tree. No broker gets more than it has room for. Moves and a new tree take turns. By the estimate the
first moves are on a star about a hub that is no broker: what crosses its links are copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Ints, Longs
from fanplan.core.kernels import bare, compiled
from fanplan.core.stop import Stop
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Placing,
    finished,
    largest_first,
    placing_of,
)
from fanplan.layers.overlay.allocation.anneal import (
    CELLS,
    LARGE,
    LEAST_LOAD,
    SWAPS,
    Packing,
    annealed,
    chance,
    enter,
    leave,
    needed,
    packing_of,
    proposed,
)
from fanplan.layers.overlay.allocation.best import placed, settled
from fanplan.layers.overlay.allocation.loads import Clients
from fanplan.layers.overlay.allocation.phases import Deployed, Made
from fanplan.network.brokers import ClientProblem, Rooted
from fanplan.network.trees import hang

TURNS = 4
"""How often brokers are linked anew."""
TRIES = 300
"""Moves tried for each client and broker, on a tree."""
WORK = 200_000_000
"""Moves tried times routes of a client, at most, on a tree."""
ROUNDS = 200
"""Temperatures of a tree; ``stop`` is asked at each."""
HOT, COLD = 2.0, 0.2
"""First and last temperature, in mean rates of a route; each tree starts cooler than the last."""
STAR_HOT, STAR_MORE = 30.0, 4.0
"""First temperature of a star, where rates may differ much; and its moves for 1 of another tree."""


class Site(NamedTuple):
    """Brokers, ascending, and a tree of them; further nodes of it are no brokers. ``messages`` on
    links are what is told while clients move."""

    used: Longs
    tree: Rooted
    messages: float


class Crossed(NamedTuple):
    """A tree of brokers, and for each of them how many clients at it or below have each route.

    ``total`` is that of all. The root's parent is NONE.
    """

    parent: Ints
    depth: Ints
    below: np.ndarray
    total: Ints


def spread(
    problem: ClientProblem,
    params: AllocationParams,
    found: Allocation,
    brokers: int,
    seed: int,
    stop: Stop,
) -> Allocation:
    """With up to so many brokers the least exact load: brokers take up fewest copies of messages.

    As it was if nothing better is found.
    """
    stack = largest_first(problem)
    free = stack[~np.isin(stack, found.used)][: max(brokers - found.brokers, 0)]
    used = np.concatenate((found.used, free))
    p = placed(placing_of(problem, params), found.broker)
    if p.exact:
        home = annealed(p, problem.cost, used, seed, stop, LEAST_LOAD)
    else:
        copies = float(found.exact.sum() * problem.seconds)
        home = moved_on(p, star_of(np.sort(used), copies), STAR_HOT, STAR_MORE, seed, stop)
    start = settled(problem, placed(p, home))
    other = finished(problem, start.placing, start.used)
    better = other.brokers <= len(used) and other.exact.sum() < found.exact.sum()
    return other if better else found


def star_of(used: Longs, messages: float) -> Site:
    """All brokers at a hub that is none of them."""
    hub = len(used)
    links = np.column_stack((np.arange(hub), np.full(hub, hub)))
    return Site(used, hang(links, hub, hub + 1), messages)


def fewer_messages(
    problem: ClientProblem,
    made: Made,
    linked: Callable[[AllocationParams, Allocation], Made],
    params: AllocationParams,
    seed: int,
    stop: Stop,
) -> Made:
    """Move clients and link brokers anew, in turn; the turn with fewest messages on links."""
    for turn in range(TURNS):
        if len(made.allocation.used) < 2 or stop(made.ledger.link_messages):
            break
        hot = HOT * (COLD / HOT) ** (turn / TURNS)
        other = linked(params, rehomed(problem, params, made, hot, seed + turn, stop))
        if other.ledger.link_messages < made.ledger.link_messages:
            made = other
    return made


def rehomed(
    problem: ClientProblem,
    params: AllocationParams,
    made: Deployed,
    hot: float,
    seed: int,
    stop: Stop,
) -> Allocation:
    """Clients where fewer messages cross links of the tree."""
    used, p = np.sort(made.allocation.used), placing_of(problem, params)
    tree = hang(made.trees.links, 0, len(used))
    site = Site(used, tree, made.ledger.link_messages)
    home = moved_on(placed(p, made.allocation.broker), site, hot, 1.0, seed, stop)
    return finished(problem, placed(p, home), made.allocation.used)


def moved_on(p: Placing, site: Site, hot: float, more: float, seed: int, stop: Stop) -> Ints:
    """Where clients are in the end, with ``more`` times the moves; as they were if they are many.

    O(tries · routes of a client · links between two brokers); memory brokers used × routes.
    """
    home, clients = p.state.broker, p.clients
    if len(site.used) * len(clients.rate) > CELLS or len(home) > LARGE:
        return home
    nobody = np.full(len(home), NONE, np.int32)
    packing = packing_of(p, np.ones(len(p.room)), site.used, nobody, seed)
    crossed = crossed_by(clients, packing, site, home)
    each = max(len(clients.routes) / len(home), 1.0)
    pairs = len(packing.movable) * len(packing.brokers)
    tries = int(min(TRIES * pairs, WORK / each) * more / ROUNDS)
    mean = float(clients.rate.mean()) if len(clients.rate) else 0.0
    for turn in range(ROUNDS):
        if stop(site.messages):
            break
        heat = mean * hot * (COLD / hot) ** (turn / ROUNDS)
        move_on_tree(clients, packing, crossed, heat, tries)
    found = np.append(packing.brokers, NONE)[packing.home].astype(np.int32)
    return np.where(found == NONE, home, found)


def crossed_by(clients: Clients, k: Packing, site: Site, home: Ints) -> Crossed:
    """The tree with the brokers of a packing first, then those where nobody may move."""
    used, tree, _ = site
    size = len(tree.order)
    node = np.arange(size, dtype=np.int32)
    order = np.concatenate((k.brokers, np.setdiff1d(used, k.brokers)))
    node[np.searchsorted(used, order)] = np.arange(len(used))
    parent, depth = np.full(size, NONE, np.int32), np.empty(size, np.int32)
    parent[node[tree.order[1:]]] = node[tree.parent[tree.order[1:]]]
    depth[node] = tree.depth
    below = np.zeros((size, len(clients.rate)), np.int16)
    at = node[np.searchsorted(used, home)]
    np.add.at(below, (at[k.owner], clients.routes), 1)
    for broker in node[tree.order[:0:-1]]:
        below[parent[broker]] += below[broker]
    total = np.bincount(clients.routes, minlength=len(clients.rate)).astype(np.int32)
    return Crossed(parent, depth, below, total)


@compiled(_nrt=False)
def move_on_tree(c: Clients, k: Packing, tree: Crossed, heat: float, tries: int) -> None:
    """Try moves and swaps that brokers have room for; who does harm is kept by chance."""
    for _ in range(tries):
        client, other, new = proposed(c, k)
        if new == NONE:
            continue
        loss = -heat * np.log(chance(k))
        partner = k.first[new]
        if partner == NONE or chance(k) >= SWAPS:
            left = k.room[new] * (1 + 1e-9) - k.load[new]
            fits = needed(c, k, client, new, 0, left) <= left and may_leave(c, k, client)
            if fits and more_crossings(c, k, tree, client, new) <= loss:
                shift(c, k, tree, client, new)
            continue
        # Who is first at a broker takes turns.
        k.first[new] = k.after[partner]
        if partner != other:
            swap_on_tree(c, k, tree, client, partner, loss)


@bare
def may_leave(c: Clients, k: Packing, client: int) -> bool:
    """By the estimate a broker may be fuller without a publisher that many there listen to."""
    old = k.home[client]
    return k.exact or k.load[old] - needed(c, k, client, old, 1, np.inf) <= k.room[old] * (1 + 1e-9)


@bare
def swap_on_tree(
    c: Clients, k: Packing, tree: Crossed, client: int, partner: int, loss: float
) -> None:
    old, new = k.home[client], k.home[partner]
    change = more_crossings(c, k, tree, client, new)
    shift(c, k, tree, client, new)
    change += more_crossings(c, k, tree, partner, old)
    if change <= loss:
        shift(c, k, tree, partner, old)
        if max(k.load[old] - k.room[old], k.load[new] - k.room[new]) <= 1e-9 * k.room[new]:
            return
        shift(c, k, tree, partner, new)
    shift(c, k, tree, client, old)


@bare
def more_crossings(c: Clients, k: Packing, tree: Crossed, client: int, new: int) -> float:
    """Messages per second that cross links, more than before, if a client moves."""
    here, there, change = k.home[client], new, 0.0
    while here != there:
        if tree.depth[here] >= tree.depth[there]:
            for i in range(c.at[client], c.at[client + 1]):
                route = c.routes[i]
                count = tree.below[here, route]
                change += c.rate[route] * ((count == tree.total[route]) - int(count == 1))
            here = tree.parent[here]
        else:
            for i in range(c.at[client], c.at[client + 1]):
                route = c.routes[i]
                count = tree.below[there, route]
                change += c.rate[route] * ((count == 0) - int(count + 1 == tree.total[route]))
            there = tree.parent[there]
    return change


@bare
def shift(c: Clients, k: Packing, tree: Crossed, client: int, new: int) -> None:
    """A client moves: its ring, loads, and who is below the brokers on the way."""
    old = k.home[client]
    k.load[old] -= needed(c, k, client, old, 1, np.inf)
    leave(c, k, client, old)
    k.load[new] += needed(c, k, client, new, 0, np.inf)
    enter(c, k, client, new)
    here, there = old, new
    while here != there:
        if tree.depth[here] >= tree.depth[there]:
            for i in range(c.at[client], c.at[client + 1]):
                tree.below[here, c.routes[i]] -= 1
            here = tree.parent[here]
        else:
            for i in range(c.at[client], c.at[client + 1]):
                tree.below[there, c.routes[i]] += 1
            there = tree.parent[there]
