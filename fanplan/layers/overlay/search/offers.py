"""Links that a search may use, each at its price; beside them perhaps any others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs
from fanplan.layers.overlay.search.traffic import starts_of
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree, tree_of


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
        a, b = merged(start, shared)
        latency = np.ones(len(a))
        most, price = np.full(len(a), np.inf), np.full(len(a), cost)
    else:
        a, b, latency = links.a, links.b, links.latency_ms.astype(np.float64)
        most, price = links.bandwidth * problem.seconds, cost * links.cost
    new = ~among(a, b, start, size) if start is not None else np.zeros(len(a), dtype=bool)
    common = among(a, b, shared, size)
    price = np.where(common, 0.0, price) + change_price * new
    ends = np.concatenate((a, b))
    near = np.argsort(ends, kind="stable") % max(len(a), 1)
    fresh = float(cost + (0.0 if start is None else change_price))
    at = starts_of(ends, size)
    return Offers(a.astype(np.int64), b.astype(np.int64), latency, most, price, new, common, at,
                  near, links is None, fresh, start is not None)  # fmt: skip


def merged(*trees: Tree | None) -> Tree:
    """The different links of some trees."""
    found = [tree.edges for tree in trees if tree is not None]
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int32), *found])
    pairs = np.unique(pairs, axis=0)
    return tree_of(pairs[:, 0], pairs[:, 1])


def among(a: Ints, b: Ints, tree: Tree | None, size: int) -> Bools:
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


def changes(offers: Offers, tree: Tree) -> int:
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
