"""The per-source algorithm of Ge et al. (2002), Figure 6: to compare with, not to plan with.

It runs a maximum flow for each link that gains. As printed it may give an invalid marking: pairs
on the same tree do not tell all that a link requires, which may go on along another tree.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from fanplan.core.arrays import Bools, Longs
from fanplan.core.errors import InputError, Problem
from fanplan.layers.marking.ledger import descriptor_counts
from fanplan.layers.marking.problem.marking import MarkingProblem, SourceTrees
from fanplan.layers.marking.search.marking import whole_gains
from fanplan.layers.marking.search.requirements import required_by, requirements_of

ENDLESS = 2**30
"""More than all gains together; capacities have 32 bits."""


def printed_marking(problem: MarkingProblem) -> Bools:
    """Figure 6 as it is printed: the p-links of a marking that may be invalid."""
    gain = whole_gains(problem, descriptor_counts(problem))
    return algorithm_of_figure_6(gain, printed_pairs(problem, gain))


def repaired_marking(problem: MarkingProblem) -> Bools:
    """Figure 6 with L from the transitive closure of all trees together: a best marking."""
    gain = whole_gains(problem, descriptor_counts(problem))
    return algorithm_of_figure_6(gain, repaired_pairs(problem, gain))


def printed_pairs(problem: MarkingProblem, gain: Longs) -> Longs:
    """L as printed: gains and losses behind them on the same tree, as rows of two links."""
    trees = problem.trees
    if not isinstance(trees, SourceTrees):
        raise InputError(Problem("trees", "Figure 6 is for a tree per source", "Use the greedy"))
    found = set()
    for entry in np.flatnonzero(gain[trees.link] < 0).tolist():
        up = trees.above[entry]
        while up >= 0:
            if gain[trees.link[up]] >= 0:
                found.add((int(trees.link[up]), int(trees.link[entry])))
            up = trees.above[up]
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def repaired_pairs(problem: MarkingProblem, gain: Longs) -> Longs:
    """Gains, and losses that they require directly or not, as rows of two links."""
    relation = requirements_of(problem)
    rows = [np.zeros((0, 2), np.int64)]
    for link in np.flatnonzero(gain >= 0):
        behind = np.flatnonzero(required_by(relation, np.arange(len(gain)) == link) & (gain < 0))
        rows.append(np.stack((np.full(len(behind), link), behind), axis=1))
    return np.concatenate(rows)


def algorithm_of_figure_6(gain: Longs, pairs: Longs) -> Bools:
    """Steps 4 to 19 of the figure; the comments give its lines."""
    if np.abs(gain).sum() >= ENDLESS:
        raise InputError(Problem("prices", "too large for 32 bits", "Give smaller ones"))
    flow = max_flow(gain, pairs)  # 4 to 7
    publish = gain < 0  # 15; the links that gain are decided next
    for link in np.flatnonzero(gain >= 0):  # 8 to 14
        more = gain + (np.arange(len(gain)) == link)
        publish[link] = max_flow(more, pairs) != flow
    publish[pairs[~publish[pairs[:, 0]], 1]] = False  # 16 to 18
    return publish


def max_flow(gain: Longs, pairs: Longs) -> int:
    """From a source to gains, along pairs, and from losses to a sink."""
    source, sink = len(gain), len(gain) + 1
    wins, loses = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0)
    tail = np.concatenate((np.full(len(wins), source), pairs[:, 0], loses))
    head = np.concatenate((wins, pairs[:, 1], np.full(len(loses), sink)))
    room = np.concatenate((gain[wins], np.full(len(pairs), ENDLESS), -gain[loses]))
    graph = scipy.sparse.csr_array((room.astype(np.int32), (tail, head)), shape=(sink + 1,) * 2)
    return int(scipy.sparse.csgraph.maximum_flow(graph, source, sink).flow_value)
