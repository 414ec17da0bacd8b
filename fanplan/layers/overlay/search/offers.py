"""What a search over trees is given: traffic by its ends, and links at their price."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs
from fanplan.network.brokers import OverlayProblem, Routes
from fanplan.network.trees import Tree, tree_of


class TreeTraffic(NamedTuple):
    """Routes by their ends: the source and the destinations, each broker once.

    The ends of route i are ``ends[starts[i]:starts[i + 1]]``, the source first. ``at`` and
    ``routes`` list the routes of each broker.
    """

    starts: Longs
    ends: Ints
    messages: Floats
    at: Longs
    routes: Ints


class Offers(NamedTuple):
    """Links with something known of them: given ones, those of the start, those of other trees.

    ``most`` are messages over the window, ``price`` is what a link adds to the objective by being
    used. ``new`` marks changes since the start, ``shared`` links that another tree has: they take
    no room. ``at`` and ``near`` list the offers at each broker. If ``open``, any two other brokers
    may be linked too, with delay 1, at ``fresh``; if ``tracked``, that is a change.
    """

    a: Longs
    b: Longs
    latency: Floats
    most: Floats
    price: Floats
    new: Bools
    shared: Bools
    at: Longs
    near: Longs
    open: bool
    fresh: float
    tracked: bool


def traffic_of(routes: Routes, brokers: int) -> TreeTraffic:
    """Routes with a link to cross; the others cost nothing on any tree."""
    sizes = np.diff(routes.starts)
    row = np.repeat(np.arange(len(routes)), sizes)
    away = routes.brokers != routes.source[row]
    kept = np.flatnonzero(np.bincount(row[away], minlength=len(routes)) > 0)
    number = np.full(len(routes), NONE)
    number[kept] = np.arange(len(kept))
    rows = np.concatenate((np.arange(len(kept)), number[row[away]]))
    order = np.argsort(rows, kind="stable")
    ends = np.concatenate((routes.source[kept], routes.brokers[away]))[order].astype(np.int32)
    by_broker = np.argsort(ends, kind="stable")
    return TreeTraffic(
        starts_of(rows, len(kept)),
        ends,
        routes.messages[kept].astype(np.float64),
        starts_of(ends, brokers),
        rows[order][by_broker].astype(np.int32),
    )


def some_routes(routes: Routes, most_ends: int, seed: int) -> Routes:
    """All routes, or a random part of them with about so many ends and as many messages."""
    share = most_ends / max(len(routes.brokers) + len(routes), 1)
    if share >= 1:
        return routes
    chosen = np.random.default_rng((seed, 0)).random(len(routes)) < share
    part = chosen_routes(routes, chosen)
    return replace(part, messages=part.messages / share, deliveries=part.deliveries / share)


def chosen_routes(routes: Routes, chosen: NDArray[np.bool_]) -> Routes:
    """The routes with a mark."""
    sizes = np.diff(routes.starts)
    return Routes(
        routes.source[chosen],
        np.concatenate(([0], np.cumsum(sizes[chosen]))).astype(np.int64),
        routes.brokers[np.repeat(chosen, sizes)],
        routes.messages[chosen],
        routes.deliveries[chosen],
    )


def starts_of(keys: Ints, count: int) -> Longs:
    """Where each of ``count`` keys starts when sorted."""
    return np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=count)))).astype(np.int64)


def offers_of(
    problem: OverlayProblem,
    cost: float,
    change_price: float,
    start: Tree | None = None,
    shared: Tree | None = None,
) -> Offers:
    """What may be linked: the given links, or any two brokers, each of which costs 1 then.

    Links of the start cost no ``change_price``; links of other trees cost nothing at all.
    """
    size, links = problem.size, problem.links
    if links is None:
        a, b = merged_links(start, shared)
        latency = np.ones(len(a))
        most, price = np.full(len(a), np.inf), np.full(len(a), cost)
    else:
        a, b, latency = links.a, links.b, links.latency_ms.astype(np.float64)
        most, price = links.bandwidth * problem.seconds, cost * links.cost
    new = ~whether_in_tree(a, b, start, size) if start is not None else np.zeros(len(a), dtype=bool)
    common = whether_in_tree(a, b, shared, size)
    price = np.where(common, 0.0, price) + change_price * new
    ends = np.concatenate((a, b))
    near = np.argsort(ends, kind="stable") % max(len(a), 1)
    fresh = float(cost + (0.0 if start is None else change_price))
    at = starts_of(ends, size)
    return Offers(a.astype(np.int64), b.astype(np.int64), latency, most, price, new, common, at,
                  near, links is None, fresh, start is not None)  # fmt: skip


def merged_links(*trees: Tree | None) -> Tree:
    """The different links of some trees."""
    found = [tree.edges for tree in trees if tree is not None]
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int32), *found])
    pairs = np.unique(pairs, axis=0)
    return tree_of(pairs[:, 0], pairs[:, 1])


def whether_in_tree(a: Ints, b: Ints, tree: Tree | None, size: int) -> Bools:
    """Whether each of some links is one of a tree."""
    if tree is None:
        return np.zeros(len(a), dtype=bool)
    return np.isin(a.astype(np.int64) * size + b, tree.a.astype(np.int64) * size + tree.b)


def offer_positions(offers: Offers, tree: Tree) -> Longs:
    """Where the links of a tree stand among the offers; NONE where they are none of them."""
    if not len(offers.a):
        return np.full(len(tree.a), NONE, dtype=np.int64)
    size = max(int(offers.b.max()), int(tree.b.max(initial=0))) + 1
    key = offers.a.astype(np.int64) * size + offers.b
    wanted = tree.a.astype(np.int64) * size + tree.b
    order = np.argsort(key, kind="stable")
    at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
    return np.where(key[at] == wanted, at, NONE)


def link_price(offers: Offers, tree: Tree) -> float:
    """What the links of a tree add to the objective by being there."""
    offer = offer_positions(offers, tree)
    known = offer[offer != NONE]
    return float(offers.price[known].sum() + offers.fresh * (len(offer) - len(known)))


def changed_links(offers: Offers, tree: Tree) -> int:
    """How many links of a tree are not in the start; 0 without a start."""
    offer = offer_positions(offers, tree)
    known = offer[offer != NONE]
    return int(offers.new[known].sum()) + (len(offer) - len(known)) * offers.tracked


def own_degrees(offers: Offers, tree: Tree) -> Longs:
    """The links of each broker that no other tree has."""
    offer = offer_positions(offers, tree)
    own = np.ones(len(offer), dtype=bool)
    own[offer != NONE] = ~offers.shared[offer[offer != NONE]]
    ends = np.concatenate((tree.a[own], tree.b[own]))
    return np.bincount(ends, minlength=tree.size).astype(np.int64)
