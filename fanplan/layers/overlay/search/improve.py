"""Our tree: the best starts improved by swaps of links against the predicted ledger."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fanplan.core.errors import InfeasibleError
from fanplan.core.stop import Stop
from fanplan.layers.overlay.published.similar import SIMILAR
from fanplan.layers.overlay.search.common import common_trees
from fanplan.layers.overlay.search.descend import descend
from fanplan.layers.overlay.search.infeasible import not_found, require_changes, require_possible
from fanplan.layers.overlay.search.judge import ImproveParams, Judged, Search, judged, search_of
from fanplan.layers.overlay.search.limits import TreeLimits
from fanplan.layers.overlay.search.repair import repaired
from fanplan.layers.overlay.search.shallow import shallow_trees
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree

__all__ = ["ImproveParams", "Judged", "improved_tree"]

RELIEFS = 8
"""Times that overloaded brokers are given fewer links."""

STARTS = 2
"""Starts that are improved, the best first."""


def improved_tree(
    problem: OverlayProblem,
    params: ImproveParams,
    seed: int,
    stop: Stop,
    start: Tree | None = None,
) -> Judged:
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


def relieved(problem: OverlayProblem, limits: TreeLimits, best: Judged) -> TreeLimits | None:
    """Half as many links for every overloaded broker that forwards; None if there is none."""
    load = best.ledger.processed / problem.seconds
    forwards = best.tree.degrees > 1
    over = np.flatnonzero((load > problem.capacity * (1 + 1e-9)) & forwards)
    if not len(over):
        return None
    fewer = {int(broker): int(best.tree.degrees[broker]) // 2 for broker in over}
    return replace(limits, degrees=tuple((dict(limits.degrees) | fewer).items()))


def best_tree(
    problem: OverlayProblem, params: ImproveParams, seed: int, stop: Stop, start: Tree | None
) -> Judged:
    """The best tree found within the limits, whatever brokers can process."""
    require_possible(problem, params.limits)
    if start is not None:
        require_changes(problem, params, start)
    search = search_of(problem, params, seed, start)
    before = [] if start is None else [judged(search, repaired(problem, params.limits, start))]
    ranked = sorted(starts(search), key=lambda tree: tree.rank)
    chosen = [*before, *ranked[: STARTS - len(before)]]
    found = [
        judged(search, descend(search, one.tree, np.random.default_rng((seed, i)), stop))
        for i, one in enumerate(chosen)
    ]
    best = min((*found, *chosen), key=lambda tree: tree.rank)
    if best.excess.total:
        raise not_found(problem, params.limits, best)
    return best


def starts(search: Search) -> list[Judged]:
    """Trees to begin with, each once."""
    problem, rules = search.problem, search.rules
    trees = [make(problem) for make in SIMILAR.values()]
    trees += [*shallow_trees(problem, rules), *common_trees(problem, rules)]
    different = {tree.edges.tobytes(): tree for tree in trees}
    return [judged(search, tree) for tree in different.values()]
