"""An earlier tree made a tree again after brokers, or links that may be used, came or went."""

from __future__ import annotations

import numpy as np

from fanplan.core.errors import InputError, Problem
from fanplan.layers.overlay.published.similar import candidates
from fanplan.layers.overlay.published.spanning import spanning_tree
from fanplan.layers.overlay.search.limits import TreeLimits, rules_of
from fanplan.layers.overlay.search.offers import among, merged
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree


def repaired(problem: OverlayProblem, limits: TreeLimits, start: Tree) -> Tree:
    """The links of the start that may still be used, and the most similar ones for what is apart.

    Degree limits hold as far as similar links allow it; the search sees to the rest.
    """
    kept = kept_links(problem, start)
    alike = problem.similarity.overlap
    a, b, weight = candidates(problem, alike.maximum(alike.T))
    rest = np.arange(1, problem.size if problem.links is None else 1, dtype=np.int32)
    a, b = np.concatenate((a, 0 * rest)), np.concatenate((b, rest))
    weight = np.concatenate((weight, np.zeros(len(rest))))[a < b]
    a, b = a[a < b], b[a < b]
    room = rules_of(limits, problem.size).degree
    for degree in (room, None):
        heavy = np.full(len(kept.a), np.inf)
        links = np.concatenate((kept.a, a)), np.concatenate((kept.b, b))
        kept = spanning_tree(*links, np.concatenate((heavy, weight)), problem.size, degree)
    return kept


def kept_links(problem: OverlayProblem, start: Tree) -> Tree:
    """The links of an earlier tree that may still be used."""
    require_positions(problem, start)
    links = problem.links
    if links is None:
        return merged(start)
    offered = among(start.a, start.b, Tree(links.a, links.b), problem.size)
    return merged(Tree(start.a[offered], start.b[offered]))


def require_positions(problem: OverlayProblem, start: Tree) -> None:
    """The start must link brokers of the problem, a before b."""
    wrong = np.flatnonzero((start.a < 0) | (start.a >= start.b) | (start.b >= problem.size))
    if len(wrong):
        one, other = int(start.a[wrong[0]]), int(start.b[wrong[0]])
        what = f"it links positions {one} and {other}, but there are {problem.size} brokers"
        remedy = "Leave out links of brokers that are gone, and give the lower position first"
        raise InputError(Problem("start", what, remedy))
