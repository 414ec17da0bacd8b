"""Trees of similar brokers (Tajuddin 2011, section 5.3), and the random baseline."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse

from fanplan.core.arrays import NONE, Floats, Ints, values_at
from fanplan.core.errors import InputError, Problem
from fanplan.layers.overlay.params import ALPHA, Scale
from fanplan.layers.overlay.published.spanning import (
    branching,
    connected_parts,
    spanning_tree,
    without_cycles,
)
from fanplan.network.brokers import OverlayProblem
from fanplan.network.trees import Tree, tree_of, tree_of_parents

WeighedPairs = tuple[Ints, Ints, Floats]
"""Pairs from the first to the second, with their weights."""


def overlap_tree(problem: OverlayProblem) -> Tree:
    """Algorithm 1 with the overlap metric: the maximum spanning tree; ties by broker position."""
    return symmetric_tree(problem, problem.similarity.overlap)


def cover_tree(problem: OverlayProblem) -> Tree:
    """Algorithm 1 with the cover metric: the maximum arborescence with the best root."""
    return directed_tree(problem, problem.similarity.cover)


def interest_tree(problem: OverlayProblem) -> Tree:
    """Algorithm 2 with α = 1: the maximum arborescence of interest alone."""
    return directed_tree(problem, problem.similarity.interest)


def hybrid_tree(problem: OverlayProblem, alpha: float = ALPHA, scale: Scale = "all") -> Tree:
    """Algorithm 2: the maximum arborescence of the mixed similarity."""
    return directed_tree(problem, hybrid_similarity(problem, alpha, scale))


def hybrid_similarity(
    problem: OverlayProblem, alpha: float = ALPHA, scale: Scale = "all"
) -> scipy.sparse.csr_array:
    """H = α·I + (1 − α)·C, each divided by its maximum; I also by that of each advertising broker.

    The thesis says normalize() and no more.
    """
    divided = normalised if scale == "all" else normalised_rows
    mixed = alpha * divided(problem.similarity.interest)
    return mixed + (1 - alpha) * normalised(problem.similarity.overlap)


def normalised_rows(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Each row divided by its own maximum."""
    most = matrix.max(axis=1).toarray().ravel()
    return scipy.sparse.diags_array(1 / np.where(most > 0, most, 1.0)).tocsr() @ matrix


def normalised(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    most = matrix.max() if matrix.nnz else 0.0
    return matrix / most if most > 0 else matrix


def random_tree(problem: OverlayProblem, seed: int) -> Tree:
    """The baseline: the spanning tree of random weights (appendix 8.1.2, RANDOM).

    Links come in random order, and those that close no cycle are kept: of the given links, or of
    all pairs. There they are drawn until all brokers are connected, which gives the same law
    without a weight for every pair. O(n log n) on average.
    """
    random = np.random.default_rng(seed)
    links = problem.links
    if links is not None:
        require_connected(problem)
        return spanning_tree(links.a, links.b, random.random(len(links.a)), problem.size)
    ends = np.empty((2, 0), np.int32)
    while True:
        room = np.full(problem.size, problem.size, np.int64)
        kept = without_cycles(ends[0], ends[1], room)
        if len(kept) == max(problem.size - 1, 0):
            return tree_of(*ends[:, kept])
        more = random.integers(0, problem.size, (2, 4 * problem.size), np.int32)
        ends = np.concatenate((ends, more), axis=1)


def symmetric_tree(problem: OverlayProblem, matrix: scipy.sparse.csr_array) -> Tree:
    """The maximum spanning tree of the larger of both directions."""
    return spanning_tree(*weighed_pairs(problem, matrix), problem.size)


def weighed_pairs(problem: OverlayProblem, matrix: scipy.sparse.csr_array) -> WeighedPairs:
    """Pairs a < b that a tree may use, with the larger weight of both directions.

    A pair that the matrix lacks weighs 0. Of those, ties by position leave only links to broker 0.
    """
    a, b, weight = candidate_links(problem, matrix.maximum(matrix.T))
    if problem.links is None:
        rest = np.arange(1, problem.size, dtype=np.int32)
        a = np.concatenate((a, np.zeros_like(rest)))
        b = np.concatenate((b, rest))
        weight = np.concatenate((weight, np.zeros(len(rest))))
    keep = a < b
    return a[keep], b[keep], weight[keep]


def directed_tree(problem: OverlayProblem, matrix: scipy.sparse.csr_array) -> Tree:
    """The maximum arborescence; its links are used in both directions.

    Without given links every pair may be linked, and one that the matrix lacks weighs 0. Then the
    heaviest branching is as heavy as the heaviest arborescence: its roots only need links of weight
    0, and get them from the lowest root. With given links a root costs more than all else.
    """
    source, target, weight = candidate_links(problem, matrix)
    if problem.links is None:
        parent = branching(source, target, weight, problem.size, 0.0)
        roots = np.flatnonzero(parent == NONE)
        parent[roots[1:]] = roots[0]
        return tree_of_parents(parent)
    dear = -(weight.max(initial=0.0) + 1.0) * problem.size
    return tree_of_parents(branching(source, target, weight, problem.size, dear))


def candidate_links(problem: OverlayProblem, matrix: scipy.sparse.csr_array) -> WeighedPairs:
    """Pairs that a tree may use in one direction, with their weights."""
    if problem.links is None:
        found = scipy.sparse.coo_array(matrix)
        heavy = (found.data > 0) & (found.row != found.col)
        pairs = found.row[heavy].astype(np.int32), found.col[heavy].astype(np.int32)
        return *pairs, found.data[heavy].astype(np.float64)
    require_connected(problem)
    a = np.concatenate((problem.links.a, problem.links.b))
    b = np.concatenate((problem.links.b, problem.links.a))
    return a, b, values_at(matrix, a, b)


def require_connected(problem: OverlayProblem) -> None:
    """The given links must reach every broker."""
    links = problem.links
    if links is None:
        return
    apart = np.flatnonzero(connected_parts(links.a, links.b, problem.size))
    if len(apart):
        first, other = problem.brokers[0].as_py(), problem.brokers[int(apart[0])].as_py()
        what = f"no links lead from broker {first!r} to {other!r} ({len(apart)} are cut off)"
        raise InputError(Problem("links", what, "Add a link between the two parts"))


SIMILAR: dict[str, Callable[[OverlayProblem], Tree]] = {
    "overlap": overlap_tree,
    "cover": cover_tree,
    "hybrid": hybrid_tree,
    "interest": interest_tree,
}
"""The trees by similarity, by name."""
