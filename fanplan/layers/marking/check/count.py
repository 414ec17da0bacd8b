"""The check's own count of descriptors: along every way, without sums over subtrees.

Merged descriptors are counted link by link, from who is on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Ints, Longs
from fanplan.core.kernels import compiled
from fanplan.layers.marking.problem.covers import BothCovers, Covers
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree, SourceTrees
from fanplan.plan.walks import at_or_below, climbed

MOST_NODES = 300_000_000
"""Nodes on links that are looked at; if there are more, some links are counted for all."""


class Walked(NamedTuple):
    """Descriptors on each link, and the p-links that directly follow an s-link on some way."""

    sigma: Longs
    tau: Longs
    broken: Bools


Sides = Callable[[int], tuple[Longs, Longs]]
"""The publishing nodes before a link, and the nodes behind it."""


def walk_ways(problem: MarkingProblem, publish: Bools) -> Walked:
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
    return Walked(sigma, tau, turned_links(problem, publish))


def turned_links(problem: MarkingProblem, publish: Bools) -> Bools:
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


# ---- merged descriptors


def recount(problem: MarkingProblem, covers: BothCovers) -> tuple[Longs, tuple[Longs, Longs]]:
    """Links, all or evenly chosen ones, and their merged σ and τ."""
    if isinstance(problem.trees, SharedTree):
        sides, work = shared_sides(problem, problem.trees), problem.size * len(problem.nodes)
    else:
        sides, work = source_sides(problem, problem.trees)
    links = np.arange(0, problem.size, 1 + work // MOST_NODES)
    roles = [
        (many, by_home(own, len(problem.nodes)))
        for many, own in zip((problem.published, problem.subscribed), covers, strict=True)
    ]
    found = np.zeros((2, len(links)), np.int64)
    marked = np.zeros(len(problem.nodes), np.bool_)
    for at, link in enumerate(links.tolist()):
        for role, nodes in enumerate(sides(link)):
            many, (starts, rows) = roles[role]
            found[role, at] = joint(nodes, many, starts, rows, covers[role], marked)
    return links, (found[0], found[1])


def by_home(covers: Covers, nodes: int) -> tuple[Longs, Longs]:
    """Where the covered descriptors of each node are."""
    rows = np.argsort(covers.home, kind="stable")
    return np.searchsorted(covers.home[rows], np.arange(nodes + 1)), rows


@compiled
def joint(
    nodes: Longs, many: Longs, starts: Longs, rows: Longs, covers: Covers, marked: np.ndarray
) -> int:
    """Descriptors of some different nodes together; ``marked`` is empty, and left so."""
    total: int = many[nodes].sum()
    marked[nodes] = True
    for node in nodes:
        for row in rows[starts[node] : starts[node + 1]]:
            if marked[covers.nodes[covers.starts[row] : covers.starts[row + 1]]].any():
                total -= covers.many[row]
    marked[nodes] = False
    return total


def source_sides(problem: MarkingProblem, trees: SourceTrees) -> tuple[Sides, int]:
    """Roots of the trees that have a link, and all nodes below it in one of them."""
    end = ends_below(trees.above)
    root = np.repeat(trees.root, np.diff(trees.starts)).astype(np.int64)
    order = np.argsort(trees.link, kind="stable")
    first = np.searchsorted(trees.link[order], np.arange(problem.size + 1))
    head = problem.head[trees.link].astype(np.int64)

    def sides(link: int) -> tuple[Longs, Longs]:
        entries = order[first[link] : first[link + 1]]
        below = [head[entry : end[entry]] for entry in entries]
        return root[entries], np.unique(np.concatenate(below))

    return sides, int((end - np.arange(len(end))).sum())


@compiled
def ends_below(above: Longs) -> Longs:
    """The first entry after those below each entry."""
    end = np.arange(1, len(above) + 1)
    for entry in range(len(above) - 1, -1, -1):
        if above[entry] >= 0:
            end[above[entry]] = max(end[above[entry]], end[entry])
    return end


def shared_sides(problem: MarkingProblem, tree: SharedTree) -> Sides:
    """All nodes on the one side of a link, and all on the other."""
    order, parent = tree.order.astype(np.int64), tree.parent.astype(np.int64)

    def sides(link: int) -> tuple[Longs, Longs]:
        tail, head = int(problem.tail[link]), int(problem.head[link])
        falls = parent[head] == tail
        inside = at_or_below(order, parent, head if falls else tail)
        far, near = order[inside[order]], order[~inside[order]]
        return (near, far) if falls else (far, near)

    return sides
