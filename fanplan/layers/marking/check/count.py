"""The check's own count of descriptors: by walking along every way, without sums over subtrees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree, SourceTrees
from fanplan.plan.walks import climbed


class Walked(NamedTuple):
    """Descriptors on each link, and the p-links that directly follow an s-link on some way."""

    sigma: Longs
    tau: Longs
    broken: Bools


def walk(problem: MarkingProblem, publish: Bools) -> Walked:
    """σ and τ of all links (Ge et al. 2002, Eq. 3 and 6), and where Eq. 1 does not hold."""
    if isinstance(problem.trees, SharedTree):
        return walk_shared(problem, problem.trees, publish)
    return walk_sources(problem, problem.trees, publish)


def walk_sources(problem: MarkingProblem, trees: SourceTrees, publish: Bools) -> Walked:
    """From each subscriber up to each publisher. O(pairs of them × depth)."""
    node = problem.head[trees.link]
    entries = np.argsort(node, kind="stable")
    ends = np.searchsorted(node[entries], np.arange(len(problem.nodes) + 1))
    f = np.repeat(problem.published[trees.root], np.diff(trees.starts))
    return Walked(
        *climb_sources(publish, trees.link, trees.above, f, entries, ends, problem.subscribed)
    )


@compiled
def climb_sources(
    publish: Bools, link: Ints, above: Longs, f: Longs, entries: Longs, ends: Longs, g: Longs
) -> tuple[Longs, Longs, Bools]:
    """``f`` is per entry of a tree; ``entries[ends[n]:ends[n + 1]]`` are those that lead to n."""
    sigma, tau = np.zeros((2, len(publish)), np.int64)
    broken, used = np.zeros(len(publish), np.bool_), np.zeros(len(link), np.bool_)
    last = np.full(len(publish), -1, np.int64)
    for node in np.flatnonzero(g):
        for entry in entries[ends[node] : ends[node + 1]]:
            at, below = entry, link[entry]
            while at >= 0:
                here = link[at]
                broken[below] |= publish[below] and not publish[here]
                if last[here] != node:
                    last[here] = node
                    tau[here] += g[node]
                if not used[at]:
                    used[at] = True
                    sigma[here] += f[at]
                at, below = above[at], here
    return sigma, tau, broken


def walk_shared(problem: MarkingProblem, tree: SharedTree, publish: Bools) -> Walked:
    """From each publisher and each subscriber up to the core. O(those × depth)."""
    sigma, tau = np.zeros((2, problem.size), np.int64)
    for count, own, other in (
        (problem.published, sigma, (tree.up, tree.down)),
        (problem.subscribed, tau, (tree.down, tree.up)),
    ):
        below = climbed(tree.parent, count)
        for way, behind in zip(other, (below, count.sum() - below), strict=True):
            used = way >= 0
            own[way[used]] = behind[used]
    return Walked(sigma, tau, turned(problem, publish))


def turned(problem: MarkingProblem, publish: Bools) -> Bools:
    """On a shared tree every link follows all into its tail but the one from its own head."""
    tail, head = problem.tail.tolist(), problem.head.tolist()
    arriving: dict[int, set[int]] = {}
    for link in np.flatnonzero(~publish).tolist():
        arriving.setdefault(head[link], set()).add(tail[link])
    broken = np.zeros(problem.size, bool)
    for link in np.flatnonzero(publish).tolist():
        before = arriving.get(tail[link], set())
        broken[link] = len(before) > (head[link] in before)
    return broken
