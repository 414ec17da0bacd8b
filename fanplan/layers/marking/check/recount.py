"""The check's own count of merged descriptors: link by link, from who is on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fanplan.core.arrays import Longs
from fanplan.core.kernels import compiled
from fanplan.layers.marking.problem.covers import BothCovers, Covers
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree, SourceTrees
from fanplan.plan.walks import at_or_below

MOST = 300_000_000
"""Nodes on links that are looked at; if there are more, some links are counted for all."""

Sides = Callable[[int], tuple[Longs, Longs]]
"""The publishing nodes before a link, and the nodes behind it."""


def recount(problem: MarkingProblem, covers: BothCovers) -> tuple[Longs, tuple[Longs, Longs]]:
    """Links, all or evenly chosen ones, and their merged σ and τ."""
    if isinstance(problem.trees, SharedTree):
        sides, work = shared_sides(problem, problem.trees), problem.size * len(problem.nodes)
    else:
        sides, work = source_sides(problem, problem.trees)
    links = np.arange(0, problem.size, 1 + work // MOST)
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
    end = ends_of(trees.above)
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
def ends_of(above: Longs) -> Longs:
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
