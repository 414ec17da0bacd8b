"""Our tree: the best starts improved by swaps of links against the predicted ledger."""

from __future__ import annotations

import numpy as np

from fanplan.planners.overlay.common import common_trees
from fanplan.planners.overlay.descend import descend
from fanplan.planners.overlay.infeasible import not_found, require_changes, require_possible
from fanplan.planners.overlay.judge import ImproveParams, Judged, Search, judged, search_of
from fanplan.planners.overlay.repair import repaired
from fanplan.planners.overlay.shallow import shallow_trees
from fanplan.planners.overlay.similar import SIMILAR
from fanplan.planners.overlay.tree import Tree
from fanplan.planners.stop import Stop
from fanplan.problem.overlay import OverlayProblem

__all__ = ["ImproveParams", "Judged", "improved_tree"]

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
    may be missing because brokers came or went.
    """
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
