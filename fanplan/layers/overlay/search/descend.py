"""Swaps of links, as long as they lower the predicted ledger."""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import NONE, Longs
from fanplan.core.stop import Stop
from fanplan.layers.overlay.search.judge import Search, judged
from fanplan.layers.overlay.search.limits import NO_LIMIT
from fanplan.layers.overlay.search.movable import movable_of
from fanplan.layers.overlay.search.offers import changes
from fanplan.layers.overlay.search.swap import Swap, make_swap, next_swap, promise
from fanplan.network.trees import Tree, tree_of

VISITS = 16
"""Links that are visited before the search asks again whether to stop."""


def descend(search: Search, start: Tree, random: np.random.Generator, stop: Stop) -> Tree:
    """Swap links as long as a swap helps, visiting the links in random order.

    Each visit finds the best link in place of one; see ``halves`` for what it takes.
    """
    hung = movable_of(start, search.offers, search.rules.degree)
    known = (search.traffic, search.rules, search.prices, search.offers)
    tree, objective = start, judged(search, start).objective
    least = 1e-9 * (1.0 + objective)
    queue = first_visits(search, start, random)
    at, left = 0, len(queue)
    spare = spare_changes(search, start)
    while left > 0 and not stop(objective):
        turn = queue[at : at + min(VISITS, left)]
        visited, swap = next_swap(hung, *known, turn, spare, least)
        at = (at + visited) % len(queue)
        left -= visited
        if swap.x != NONE and carries(search, tree, swap):
            make_swap(hung, search.offers, swap)
            tree, objective, left = Tree(hung.a, hung.b), objective + swap.change, len(queue)
            spare = spare_changes(search, tree)
    return tree_of(tree.a, tree.b)


def spare_changes(search: Search, tree: Tree) -> int:
    """How many more links may change."""
    if search.rules.changes == NO_LIMIT:
        return NO_LIMIT
    return search.rules.changes - changes(search.offers, tree)


def first_visits(search: Search, start: Tree, random: np.random.Generator) -> Longs:
    """Links in random order; where changes are limited, those with the best swaps first."""
    queue = random.permutation(len(start.a))
    if search.rules.changes == NO_LIMIT:
        return queue
    hung = movable_of(start, search.offers, search.rules.degree)
    gain = promise(hung, search.traffic, search.rules, search.prices, search.offers, queue)
    return queue[np.argsort(gain, kind="stable")]


def carries(search: Search, old: Tree, swap: Swap) -> bool:
    """Whether a swap leaves no more links crowded than before, also links it does not replace."""
    if not np.isfinite(search.offers.most).any():
        return True
    new = replaced(old, swap.link, swap.x, swap.y)
    return judged(search, new).excess.total <= judged(search, old).excess.total


def replaced(tree: Tree, link: int, x: int, y: int) -> Tree:
    """The tree with another link at the same place; places are kept until the search ends."""
    a, b = tree.a.copy(), tree.b.copy()
    a[link], b[link] = min(x, y), max(x, y)
    return Tree(a, b)
