"""What a marking costs, and whether it is valid (Ge et al. 2002, section 2.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.bits import mix
from fanplan.core.kernels import compiled
from fanplan.layers.marking.problem.marking import MarkingProblem, SharedTree, SourceTrees
from fanplan.network.trees import sums_below


class DescriptorCounts(NamedTuple):
    """Descriptors on each link: ``sigma`` if all are p-links, ``tau`` if all are s-links."""

    sigma: Longs
    tau: Longs


def descriptor_counts(problem: MarkingProblem) -> DescriptorCounts:
    """σ(M^P) and τ(M^S) of every link (Eq. 3 and 6).

    Linear in the total size of the trees, and in that of the parts in which they disagree about
    who is behind a link.
    """
    if isinstance(problem.trees, SharedTree):
        return shared_counts(problem, problem.trees)
    return source_counts(problem, problem.trees)


def link_costs(problem: MarkingProblem, counts: DescriptorCounts) -> tuple[Floats, Floats]:
    """What each link costs as a p-link, and as an s-link."""
    return counts.sigma * problem.publication_price, counts.tau * problem.subscription_price


def cost_of_marks(problem: MarkingProblem, counts: DescriptorCounts, publish: Bools) -> float:
    """The cost of a valid marking (Eq. 2); ``publish`` tells the p-links.

    By Lemma 1 a link of a valid marking has the descriptors it has if all links are marked like it.
    """
    return float(np.where(publish, *link_costs(problem, counts)).sum())


def pub_everywhere(problem: MarkingProblem, counts: DescriptorCounts) -> float:
    """The cost of broadcasting publications (PubE): all links are p-links."""
    return float(link_costs(problem, counts)[0].sum())


def sub_everywhere(problem: MarkingProblem, counts: DescriptorCounts) -> float:
    """The cost of broadcasting subscriptions (SubE): all links are s-links."""
    return float(link_costs(problem, counts)[1].sum())


def violations(problem: MarkingProblem, publish: Bools) -> Longs:
    """The p-links with an s-link directly before them in a tree: none if the marking is valid.

    That is Eq. 1, as it holds for all pairs on a path if it holds for neighbours.
    """
    trees = problem.trees
    if isinstance(trees, SourceTrees):
        inner = np.flatnonzero(trees.above >= 0)
        link, before = trees.link[inner], trees.link[trees.above[inner]]
        return np.unique(link[publish[link] & ~publish[before]]).astype(np.int64)
    # On a shared tree a link is behind all links into its tail but its own other direction.
    tail, head, size = problem.tail.astype(np.int64), problem.head, len(problem.nodes)
    arriving = np.bincount(head[~publish], minlength=size)
    back = np.isin(tail * size + head, (head * size + tail)[~publish])
    return np.flatnonzero(publish & (arriving[tail] > back))


# ---- shared tree


def shared_counts(problem: MarkingProblem, tree: SharedTree) -> DescriptorCounts:
    f, g = (
        sums_below(tree.order, tree.parent, many)
        for many in (problem.published, problem.subscribed)
    )
    sigma, tau = np.zeros((2, problem.size), np.int64)
    falls, rises = np.flatnonzero(tree.down >= 0), np.flatnonzero(tree.up >= 0)
    sigma[tree.down[falls]] = f[tree.core] - f[falls]
    sigma[tree.up[rises]] = f[rises]
    tau[tree.down[falls]] = g[falls]
    tau[tree.up[rises]] = g[tree.core] - g[rises]
    return DescriptorCounts(sigma, tau)


# ---- trees per source


class Behind(NamedTuple):
    """Who is behind the links: subscribers below each entry of the trees, and the most for a link.

    ``key`` tells which subscribers are below an entry: a sum of random words, one for each. Other
    subscribers have another key but for a chance of 2⁻⁶⁴. ``end`` is the first entry after those
    below. ``most`` is the entry of each link with the most descriptors below it, and ``others`` are
    entries whose subscribers may differ from those.
    """

    key: NDArray[np.uint64]
    end: Longs
    most: Longs
    others: Longs


def source_counts(problem: MarkingProblem, trees: SourceTrees) -> DescriptorCounts:
    """A subscriber counts once for a link, in however many trees it is behind it (Eq. 6)."""
    head, g = problem.head, problem.subscribed
    f = problem.published[trees.root]
    sigma, tau, behind = scan_tree(trees.starts, trees.link, trees.above, head, f, g)
    most, key = behind.most[trees.link[behind.others]], behind.key[behind.others]
    order = np.lexsort((key, most))
    most, key = most[order], key[order]
    new = np.ones(len(order), bool)
    new[1:] = (most[1:] != most[:-1]) | (key[1:] != key[:-1])
    unite_behind(behind.others[order[new]], trees.starts, trees.link, behind, head, g, tau)
    return DescriptorCounts(sigma, tau)


@compiled
def scan_tree(
    starts: Longs, link: Ints, above: Longs, head: Ints, f: Longs, g: Longs
) -> tuple[Longs, Longs, Behind]:
    """σ of each link, τ by the tree with the most behind it, and who is behind it elsewhere."""
    sigma, tau, last = np.zeros((3, len(head)), np.int64)
    most = np.full(len(head), -1, np.int64)
    count, end = np.zeros((2, len(link)), np.int64)
    key = np.zeros(len(link), np.uint64)
    others = [0 for _ in range(0)]
    for tree in range(len(f)):
        for e in range(starts[tree + 1] - 1, starts[tree] - 1, -1):
            t, up = link[e], above[e]
            if g[head[t]] > 0:
                count[e] += g[head[t]]
                key[e] += mixed(head[t])
            end[e] = max(end[e], e + 1)
            if up >= 0:
                count[up] += count[e]
                key[up] += key[e]
                end[up] = max(end[up], end[e])
            sigma[t] += f[tree]
            if most[t] < 0:
                most[t], last[t], tau[t] = e, e, count[e]
            elif count[e] > tau[t]:
                others.append(most[t])
                most[t], tau[t] = e, count[e]
            elif key[e] != key[most[t]] and key[e] != key[last[t]]:
                others.append(e)
                last[t] = e
    return sigma, tau, Behind(key, end, most, np.array(others, np.int64))


@compiled
def mixed(node: int) -> np.uint64:
    """A random word for a node."""
    return mix(np.uint64(node + 1) * np.uint64(0x9E3779B97F4A7C15))


@compiled
def unite_behind(
    entries: Longs, starts: Longs, link: Ints, behind: Behind, head: Ints, g: Longs, tau: Longs
) -> None:
    """Add to τ the subscribers that only further trees have behind a link.

    Entries come by the tree with the most behind their link. ``where`` has the entry of that tree
    that leads to each node.
    """
    where, seen = np.full(len(g), -1, np.int64), np.full(len(g), -1, np.int64)
    tree = -1
    for entry in entries:
        t = link[entry]
        if tree < 0 or behind.most[t] >= starts[tree + 1]:
            where[:] = -1
            tree = np.searchsorted(starts, behind.most[t], "right") - 1
            for e in range(starts[tree], starts[tree + 1]):
                where[head[link[e]]] = e
        tau[t] += added_behind(entry, link, behind, where, seen, head, g)


@compiled
def added_behind(
    entry: int, link: Ints, behind: Behind, where: Longs, seen: Longs, head: Ints, g: Longs
) -> int:
    """Descriptors below an entry that are not below the one with the most, nor seen for its link.

    What is the same below a node in both trees is not walked through.
    """
    stamp, e, total = link[entry], entry, 0
    most = behind.most[stamp]
    while e < behind.end[entry]:
        node = head[link[e]]
        known = most <= where[node] < behind.end[most]
        if known and behind.key[where[node]] == behind.key[e]:
            e = behind.end[e]
            continue
        if not known and seen[node] != stamp:
            seen[node] = stamp
            total += g[node]
        e += 1
    return total
