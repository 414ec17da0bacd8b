"""Publishers at the broker that cuts most messages, on a given tree (Cheung, Jacobsen 2010)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fanplan.core.arrays import Floats, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.overlay.allocation.allocation import (
    Allocation,
    AllocationParams,
    Placing,
    counted_load,
    finished,
    placing_of,
)
from fanplan.layers.overlay.allocation.loads import place_all, place_client, remove_client
from fanplan.layers.overlay.allocation.phases import Deployed, Made
from fanplan.network.brokers import ClientProblem, Rooted
from fanplan.network.trees import hang

ROUNDS = 5
"""How often brokers are linked anew after publishers have moved, at most."""


def cut_messages(
    problem: ClientProblem, made: Made, linked: Callable[[AllocationParams, Allocation], Made],
    params: AllocationParams,
) -> Made:  # fmt: skip
    """Move publishers and link brokers anew, in turn, as long as fewer messages cross links."""
    for _ in range(ROUNDS):
        moved = moved_publishers(problem, params, made)
        if np.array_equal(moved.broker, made.allocation.broker):
            break
        other = linked(params, moved)
        if other.ledger.link_messages >= made.ledger.link_messages * (1 - 1e-9):
            break
        made = other
    return made


def moved_publishers(
    problem: ClientProblem, params: AllocationParams, made: Deployed
) -> Allocation:
    """Each publisher, those that gain most first, at the broker with room and fewest messages.

    O(routes · brokers).
    """
    used, p = np.sort(made.allocation.used), placing_of(problem, params)
    place_all(p.clients, p.state, made.allocation.broker)
    routes, tree = made.overlay.routes, hang(made.trees.links, 0, len(used))
    ways = (problem.routes.source, routes.starts, routes.brokers, routes.messages)
    costs = crossings(tree, *ways, len(problem.publishers))
    home = np.searchsorted(used, made.allocation.broker[: len(costs)])
    gain = costs[np.arange(len(costs)), home] - costs.min(axis=1)
    order = np.argsort(-gain, kind="stable")[: int((gain > 0).sum())]
    move_publishers(p, costs, used, order)
    return finished(problem, p, made.allocation.used)


@compiled
def crossings(
    tree: Rooted, publisher: Ints, starts: Longs, brokers: Ints, messages: Floats, publishers: int
) -> Floats:
    """Links that messages of each publisher cross from each broker to the nearest that is between
    their destinations: beyond that they cross as many wherever they enter.
    """
    size = len(tree.order)
    costs = np.zeros((publishers, size))
    ends, away = np.empty(size, np.int64), np.empty(size, np.int64)
    for route in range(len(publisher)):
        wanted = brokers[starts[route] : starts[route + 1]]
        if not len(wanted):
            continue
        ends[:], away[:] = 0, size
        ends[wanted], away[wanted] = 1, 0
        for i in range(size - 1, 0, -1):
            broker = tree.order[i]
            parent = tree.parent[broker]
            ends[parent] += ends[broker]
            # With ends on both sides of the way to the parent, both are between ends.
            if 0 < ends[broker] < len(wanted):
                away[broker] = away[parent] = 0
            away[parent] = min(away[parent], away[broker] + 1)
        for i in range(size):
            broker = tree.order[i]
            if i > 0:
                away[broker] = min(away[broker], away[tree.parent[broker]] + 1)
            costs[publisher[route], broker] += messages[route] * away[broker]
    return costs


@compiled
def move_publishers(p: Placing, costs: Floats, used: Longs, order: Longs) -> None:
    """Take publishers, in an order, to the cheapest broker that has room for them."""
    load = counted_load(p)
    for publisher in order:
        home = p.state.broker[publisher]
        remove_client(p.clients, p.state, publisher)
        # By the estimate a broker may be fuller without a publisher that many there listen to.
        if load[home] <= p.room[home]:
            for at in np.argsort(costs[publisher], kind="mergesort"):
                place_client(p.clients, p.state, publisher, used[at])
                if used[at] == home or load[used[at]] <= p.room[used[at]]:
                    break
                remove_client(p.clients, p.state, publisher)
        else:
            place_client(p.clients, p.state, publisher, home)
