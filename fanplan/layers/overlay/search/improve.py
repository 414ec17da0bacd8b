"""Our tree: the best starts improved by swaps of links against the predicted ledger."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fanplan.core.arrays import NONE, Longs
from fanplan.core.errors import InfeasibleError
from fanplan.core.stop import Stop
from fanplan.layers.overlay.search.infeasible import (
    not_found,
    require_changes,
    require_possible_tree,
)
from fanplan.layers.overlay.search.judge import (
    NO_LIMIT,
    ImproveParams,
    JudgedTree,
    TreeLimits,
    TreeSearch,
    changed_links,
    judge_tree,
    search_of,
)
from fanplan.layers.overlay.search.movable import movable_of
from fanplan.layers.overlay.search.starts import judged_starts, repaired
from fanplan.layers.overlay.search.swap import Swap, make_swap, next_swap, promise
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree, tree_of

RELIEFS = 8
"""Times that overloaded brokers are given fewer links."""
STARTS = 2
"""Starts that are improved, the best first."""
VISITS = 16
"""Links that are visited before the search asks again whether to stop."""


def improved_tree(
    problem: OverlayProblem,
    params: ImproveParams,
    seed: int,
    stop: Stop,
    start: Tree | None = None,
) -> JudgedTree:
    """The best tree found from the most promising starts; an error if none obeys the limits.

    Starts are the trees by similarity, by common traffic, and the shallowest with busy brokers
    inside. ``start`` is an earlier tree to keep near to: links between positions, of which some
    may be missing because brokers came or went. Brokers process no more than their capacity if a
    tree is found in which that is so; else the one that comes nearest to it.
    """
    best = best_tree(problem, params, seed, stop, start)
    for _ in range(RELIEFS):
        eased = relieved(problem, params.limits, best)
        if eased is None or stop(best.objective):
            break
        try:
            found = best_tree(problem, replace(params, limits=eased), seed, stop, start)
        except InfeasibleError:
            break
        params = replace(params, limits=eased)
        best = min(best, found, key=lambda tree: tree.rank)
    return best


def best_tree(
    problem: OverlayProblem, params: ImproveParams, seed: int, stop: Stop, start: Tree | None
) -> JudgedTree:
    """The best tree found within the limits, whatever brokers can process."""
    require_possible_tree(problem, params.limits)
    if start is not None:
        require_changes(problem, params, start)
    search = search_of(problem, params, seed, start)
    before = [] if start is None else [judge_tree(search, repaired(problem, params.limits, start))]
    ranked = sorted(judged_starts(search), key=lambda tree: tree.rank)
    chosen = [*before, *ranked[: STARTS - len(before)]]
    found = [
        judge_tree(search, descend(search, one.tree, np.random.default_rng((seed, i)), stop))
        for i, one in enumerate(chosen)
    ]
    best = min((*found, *chosen), key=lambda tree: tree.rank)
    if sum(best.excess):
        raise not_found(problem, params.limits, best)
    return best


def relieved(problem: OverlayProblem, limits: TreeLimits, best: JudgedTree) -> TreeLimits | None:
    """Half as many links for every overloaded broker that forwards; None if there is none."""
    load = best.ledger.processed / problem.seconds
    forwards = best.tree.degrees > 1
    over = np.flatnonzero((load > problem.capacity * (1 + 1e-9)) & forwards)
    if not len(over):
        return None
    fewer = {int(broker): int(best.tree.degrees[broker]) // 2 for broker in over}
    return replace(limits, degrees=tuple((dict(limits.degrees) | fewer).items()))


def descend(search: TreeSearch, start: Tree, random: np.random.Generator, stop: Stop) -> Tree:
    """Swap links as long as a swap helps, visiting the links in random order.

    Each visit finds the best link in place of one; see ``halves`` for what it takes.
    """
    hung = movable_of(start, search.offers, search.rules.degree)
    tree, objective = start, judge_tree(search, start).objective
    least = 1e-9 * (1.0 + objective)
    queue = first_visits(search, start, random)
    at, left = 0, len(queue)
    spare = spare_changes(search, start)
    while left > 0 and not stop(objective):
        turn = queue[at : at + min(VISITS, left)]
        visited, swap = next_swap(hung, search.terms, turn, spare, least)
        at = (at + visited) % len(queue)
        left -= visited
        if swap.x != NONE and carries(search, tree, swap):
            make_swap(hung, search.offers, swap)
            tree, objective, left = Tree(hung.a, hung.b), objective + swap.change, len(queue)
            spare = spare_changes(search, tree)
    return tree_of(tree.a, tree.b)


def first_visits(search: TreeSearch, start: Tree, random: np.random.Generator) -> Longs:
    """Links in random order; where changes are limited, those with the best swaps first."""
    queue = random.permutation(len(start.a))
    if search.rules.changes == NO_LIMIT:
        return queue
    hung = movable_of(start, search.offers, search.rules.degree)
    gain = promise(hung, search.terms, queue)
    return queue[np.argsort(gain, kind="stable")]


def spare_changes(search: TreeSearch, tree: Tree) -> int:
    """How many more links may change."""
    if search.rules.changes == NO_LIMIT:
        return NO_LIMIT
    return search.rules.changes - changed_links(search.offers, tree)


def carries(search: TreeSearch, old: Tree, swap: Swap) -> bool:
    """Whether a swap leaves no more links crowded than before, also links it does not replace."""
    if not np.isfinite(search.offers.most).any():
        return True
    new = with_link_replaced(old, swap.link, swap.x, swap.y)
    return sum(judge_tree(search, new).excess) <= sum(judge_tree(search, old).excess)


def with_link_replaced(tree: Tree, link: int, x: int, y: int) -> Tree:
    """The tree with another link at the same place; places are kept until the search ends."""
    a, b = tree.a.copy(), tree.b.copy()
    a[link], b[link] = min(x, y), max(x, y)
    return Tree(a, b)
