"""Descriptors on links if one that another covers on the same link does not travel there.

In a valid marking it is plain who is on a p-link, and who on an s-link (Lemma 1 of Ge et al. 2002):
it does not depend on the other marks. So neither does what is covered there, and the best marking
is found from these counts as it is from σ and τ.
"""

from __future__ import annotations

import numpy as np

from fanplan.core.arrays import Ints, Longs, Words, listed_by
from fanplan.core.bits import set_bit
from fanplan.core.errors import InputError, Problem
from fanplan.core.kernels import compiled
from fanplan.layers.marking.ledger import DescriptorCounts, descriptor_counts
from fanplan.layers.marking.problem.covers import PLAIN, BothCovers, Covers
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree, SourceTrees
from fanplan.network.trees import depths

STEPS = 10_000_000_000
"""The most steps along trees: some minutes."""


def merged_counts(problem: MarkingProblem, covers: BothCovers) -> DescriptorCounts:
    """σ and τ of every link without descriptors that another one on it covers."""
    counts = descriptor_counts(problem)
    if isinstance(problem.trees, SharedTree):
        lost = shared_lost(problem, problem.trees, covers)
    else:
        lost = source_lost(problem, problem.trees, covers)
    return DescriptorCounts(counts.sigma - lost.sigma, counts.tau - lost.tau)


def require_steps(steps: float) -> None:
    """Refuse what would take hours."""
    if steps > STEPS:
        what = f"up to {steps:.1e} steps along trees are more than {STEPS:.0e}"
        raise InputError(Problem("merge", what, PLAIN))


# ---- trees per source


def source_lost(
    problem: MarkingProblem, trees: SourceTrees, covers: BothCovers
) -> DescriptorCounts:
    """What is covered on each link. O(covered sets × tree + pairs × trees × depth)."""
    place = np.full(len(problem.nodes), -1, np.int64)
    place[trees.root] = np.arange(len(trees.root))
    node = problem.head[trees.link]
    ends, entries = listed_by(node, len(problem.nodes))
    size = np.diff(trees.starts)[place[covers.published.home]].sum()
    depth = np.bincount(node, entry_depths(trees.above), minlength=len(problem.nodes))
    require_steps(size + depth[covers.subscribed.home].sum() + depth[covers.subscribed.nodes].sum())
    sigma = lost_downstream(trees.starts, trees.link, problem.size, place, covers.published)
    tau = lost_upstream(trees.link, trees.above, problem.size, entries, ends, covers.subscribed)
    return DescriptorCounts(sigma, tau)


@compiled
def entry_depths(above: Longs) -> Longs:
    """Links from the root to the end of each entry."""
    depth = np.ones(len(above), np.int64)
    for entry in range(len(above)):
        if above[entry] >= 0:
            depth[entry] += depth[above[entry]]
    return depth


@compiled
def lost_downstream(starts: Longs, link: Ints, links: int, place: Longs, covers: Covers) -> Longs:
    """Covered descriptors of publishers on each link, for those whose trees both have it."""
    users = trees_with_link(starts, link, links)
    lost = np.zeros(links, np.int64)
    wanted = np.zeros(users.shape[1], np.uint64)
    for k in range(len(covers.home)):
        coverers = place[covers.nodes[covers.starts[k] : covers.starts[k + 1]]]
        wanted[:] = 0
        for other in coverers:
            set_bit(wanted, other)
        words = np.flatnonzero(wanted)
        tree = place[covers.home[k]]
        for entry in range(starts[tree], starts[tree + 1]):
            for word in words:
                if users[link[entry], word] & wanted[word]:
                    lost[link[entry]] += covers.many[k]
                    break
    return lost


@compiled
def trees_with_link(starts: Longs, link: Ints, links: int) -> Words:
    """For each link the trees that have it, a bit for each."""
    trees = len(starts) - 1
    users = np.zeros((links, (trees + 63) >> 6), np.uint64)
    for tree in range(trees):
        for entry in range(starts[tree], starts[tree + 1]):
            set_bit(users[link[entry]], tree)
    return users


@compiled
def lost_upstream(
    link: Ints, above: Longs, links: int, entries: Longs, ends: Longs, covers: Covers
) -> Longs:
    """Covered descriptors of subscribers on each link, for those that are both behind it.

    ``entries[ends[n]:ends[n + 1]]`` are the entries of trees that lead to node n.
    """
    lost = np.zeros(links, np.int64)
    walked, met = np.full(len(link), -1, np.int64), np.full(links, -1, np.int64)
    for k in range(len(covers.home)):
        for node in covers.nodes[covers.starts[k] : covers.starts[k + 1]]:
            for entry in entries[ends[node] : ends[node + 1]]:
                at = entry
                while at >= 0 and walked[at] != 2 * k:
                    walked[at], met[link[at]] = 2 * k, 2 * k
                    at = above[at]
        home = covers.home[k]
        for entry in entries[ends[home] : ends[home + 1]]:
            at = entry
            while at >= 0 and walked[at] != 2 * k + 1:
                walked[at] = 2 * k + 1
                if met[link[at]] == 2 * k:
                    met[link[at]] += 1
                    lost[link[at]] += covers.many[k]
                at = above[at]
    return lost


# ---- shared tree


def shared_lost(problem: MarkingProblem, tree: SharedTree, covers: BothCovers) -> DescriptorCounts:
    """What is covered on each link. O(pairs × depth)."""
    depth = depths(tree.parent)
    require_steps(3 * sum(int(depth[own.nodes].sum() + depth[own.home].sum()) for own in covers))
    sigma, tau = np.zeros((2, problem.size), np.int64)
    for own, lost, (away, home) in (
        (covers.published, sigma, (tree.up, tree.down)),
        (covers.subscribed, tau, (tree.down, tree.up)),
    ):
        below, beyond = lost_on_sides(tree.order, tree.parent, depth, own)
        for way, many in ((away, below), (home, beyond)):
            used = way >= 0
            lost[way[used]] = many[used]
    return DescriptorCounts(sigma, tau)


@compiled
def lost_on_sides(order: Ints, parent: Ints, depth: Ints, covers: Covers) -> tuple[Longs, Longs]:
    """Covered descriptors among those at and below each node, and among all others.

    Below a node both are if the node lies at or above where their ways to the core meet, for the
    coverer that meets first. Not below it are all but those at or below it, and those whose
    coverers are all below it: if it lies above these and not above the descriptor.
    """
    below, gone = np.zeros((2, len(parent)), np.int64)
    for k in range(len(covers.home)):
        home, nodes = covers.home[k], covers.nodes[covers.starts[k] : covers.starts[k + 1]]
        deepest, all_ = order[0], nodes[0]
        for node in nodes:
            place = meeting(parent, depth, home, node)
            if depth[place] > depth[deepest]:
                deepest = place
            all_ = meeting(parent, depth, all_, node)
        below[deepest] += covers.many[k]
        gone[home] += covers.many[k]
        gone[all_] += covers.many[k]
        gone[meeting(parent, depth, all_, home)] -= covers.many[k]
    for node in order[:0:-1]:
        below[parent[node]] += below[node]
        gone[parent[node]] += gone[node]
    return below, covers.many.sum() - gone


@compiled
def meeting(parent: Ints, depth: Ints, one: int, other: int) -> int:
    """Where the ways of two nodes to the core meet."""
    while one != other:
        if depth[one] >= depth[other]:
            one = parent[one]
        else:
            other = parent[other]
    return one
