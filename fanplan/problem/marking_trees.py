"""Marking problems from a network: a core-based shared tree, shortest paths, or given trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from numpy.typing import NDArray

from fanplan.errors import InputError, Problem
from fanplan.problem.interest import Floats, Longs
from fanplan.problem.marking import NAMED, NONE, MarkingProblem, Network, SharedTree, SourceTrees
from fanplan.problem.marking_paths import (
    Hung,
    Laid,
    Ways,
    hang,
    laid,
    preorder,
    pruned,
    shortest_tree,
    shortest_trees,
    sums_below,
    ways_of,
)
from fanplan.problem.names import similar
from fanplan.workload.tables import TREES

Bools = NDArray[np.bool_]


def shared_problem(network: Network, core: str) -> MarkingProblem:
    """All publishers and subscribers on one tree: their shortest paths to the core.

    O(links × log nodes). The two directions of a link are marked each on its own.
    """
    root = position(network, core)
    member = (network.published > 0) | (network.subscribed > 0)
    ways = network_ways(network)
    require_joined(network, np.array([root]), member)
    tree = pruned(shortest_tree(root, ways, member), member)
    f, g = (sums_below(tree, many) for many in (network.published, network.subscribed))
    order = tree.order
    # A link is used if somebody publishes before it and somebody subscribes behind it.
    falls = order[(network.published.sum() > f[order]) & (g[order] > 0)]
    rises = order[(f[order] > 0) & (network.subscribed.sum() > g[order])]
    down, up = np.full((2, network.size), NONE, np.int32)
    down[falls] = np.arange(len(falls))
    up[rises] = len(falls) + np.arange(len(rises))
    parent = np.full(network.size, NONE, np.int32)
    parent[order] = tree.parent[order]
    shape = SharedTree(root, np.concatenate(([root], order)).astype(np.int32), parent, down, up)
    used = np.concatenate((tree.way[falls], opposite(tree.way[rises], network)))
    return with_links(network, directed(network), used, shape)


def source_problem(network: Network) -> MarkingProblem:
    """A tree for each publishing node: its shortest paths to the subscribers by latency.

    Of equally long paths the one with fewer links, then the one whose last links come from nodes
    with lower positions. O(publishers × links × log nodes) at most.
    """
    roots, wanted = np.flatnonzero(network.published), network.subscribed > 0
    ways = network_ways(network)
    require_joined(network, roots, wanted)
    return with_sources(network, directed(network), shortest_trees(roots, ways, wanted))


def given_problem(network: Network, trees: pa.Table) -> MarkingProblem:
    """A tree for each publishing node as given: columns root, parent, child with names of nodes.

    Trees of nodes that publish nothing are not used. O(rows × log rows).
    """
    root, parent, child = (positions(network, trees, name) for name in TREES.required)
    require_trees(network, root, parent, child)
    links = directed(network) if network.links else any_links(parent, child, network.size)
    way = find(network, links, parent, child)
    order = np.argsort(root, kind="stable")
    ends = np.searchsorted(root[order], np.arange(network.size + 1))
    wanted, found = network.subscribed > 0, []
    for publisher in np.flatnonzero(network.published).tolist():
        rows = order[ends[publisher] : ends[publisher + 1]]
        tree = hang(publisher, parent[rows], child[rows], way[rows], network.size)
        require_hung(network, publisher, child[rows], tree)
        missed = wanted.copy()
        missed[tree.order], missed[publisher] = False, False
        require_none(network, publisher, missed)
        found.append(preorder(publisher, pruned(tree, wanted)))
    return with_sources(network, links, laid(found))


# ---- directed links


class Directed(NamedTuple):
    """Directed links that trees may use, and the price of a descriptor on each."""

    tail: Longs
    head: Longs
    sending: Floats


def directed(network: Network) -> Directed:
    """Each link of the network in both directions: first all as given, then all back."""
    if network.links is None:
        raise InputError(Problem("links", "there are none", "Give links, or trees"))
    a, b = network.links.a.astype(np.int64), network.links.b.astype(np.int64)
    sending = np.ones(len(a)) if network.sending is None else network.sending
    return Directed(np.concatenate((a, b)), np.concatenate((b, a)), np.tile(sending, 2))


def opposite(way: Longs, network: Network) -> Longs:
    """The same links of the network in the other direction."""
    assert network.links is not None
    half = len(network.links.a)
    return (way + half) % (2 * half) if half else way


def network_ways(network: Network) -> Ways:
    links = directed(network)
    assert network.links is not None
    return ways_of(links.tail, links.head, np.tile(network.links.latency_ms, 2), network.size)


def any_links(parent: Longs, child: Longs, nodes: int) -> Directed:
    """Whatever links trees name, at the price 1."""
    tail, head = np.divmod(np.unique(parent * nodes + child), nodes)
    return Directed(tail, head, np.ones(len(tail)))


def find(network: Network, links: Directed, tail: Longs, head: Longs) -> Longs:
    """Where directed links stand among those at hand; an error that names one that is missing."""
    key, wanted = links.tail * network.size + links.head, tail * network.size + head
    for row in np.flatnonzero(~np.isin(wanted, key))[:1]:
        ends = f"{network.name(tail[row])!r} to {network.name(head[row])!r}"
        raise InputError(Problem("trees", f"no link leads from {ends}", "Add it to the links"))
    order = np.argsort(key, kind="stable")
    return order[np.searchsorted(key, wanted, sorter=order)]


# ---- problems


def with_sources(network: Network, links: Directed, trees: Laid) -> MarkingProblem:
    """A problem with a tree per publisher; only links in trees are kept, in their order."""
    in_use = np.zeros(len(links.tail), bool)
    in_use[trees.way] = True
    link = (np.cumsum(in_use) - 1)[trees.way].astype(np.int32)
    roots = np.flatnonzero(network.published).astype(np.int32)
    shape = SourceTrees(roots, trees.starts, link, trees.above)
    return with_links(network, links, np.flatnonzero(in_use), shape)


def with_links(
    network: Network, links: Directed, used: Longs, trees: SourceTrees | SharedTree
) -> MarkingProblem:
    return MarkingProblem(
        nodes=network.nodes,
        published=network.published,
        subscribed=network.subscribed,
        tail=links.tail[used].astype(np.int32),
        head=links.head[used].astype(np.int32),
        sending=links.sending[used],
        storing=np.zeros(network.size) if network.storing is None else network.storing,
        trees=trees,
    )


# ---- names and what must hold


def position(network: Network, core: str) -> int:
    found = pc.index(network.nodes, core).as_py()
    if found < 0:
        remedy = similar(core, network.nodes.to_pylist()) or "Name a node of the network"
        raise InputError(Problem("core", f"there is no node {core!r}", remedy))
    return int(found)


def positions(network: Network, trees: pa.Table, column: str) -> Longs:
    """Names of nodes as positions; an error that tells those that are unknown."""
    names = trees[column].combine_chunks()
    found = pc.index_in(names, network.nodes)
    if found.null_count:
        unknown = names.filter(pc.is_null(found)).unique().to_pylist()[:NAMED]
        remedy = "Name a node of the network"
        raise InputError(Problem("trees", f"{column} {n!r} is no node", remedy) for n in unknown)
    return found.to_numpy().astype(np.int64)


def require_trees(network: Network, root: Longs, parent: Longs, child: Longs) -> None:
    """Every publishing node has a tree, in which no node has two parents and the root none."""
    treeless = network.published > 0
    treeless[root] = False
    # The only publisher may also be the only subscriber; then there is nothing to link.
    treeless &= (network.subscribed > 0).sum() > (network.subscribed > 0)
    problems = [
        Problem("trees", f"publishing node {network.name(node)!r} has none", "Give one")
        for node in np.flatnonzero(treeless)[:NAMED]
    ]
    _, first, times = np.unique(root * network.size + child, True, return_counts=True)
    for row in first[(times > 1) | (root == child)[first]][:NAMED]:
        what = (
            f"{network.name(child[row])!r} is entered again in that of {network.name(root[row])!r}"
        )
        problems.append(Problem("trees", what, "Give each node one parent, and the root none"))
    if problems:
        raise InputError(problems)


def require_hung(network: Network, root: int, child: Longs, tree: Hung) -> None:
    loose = np.setdiff1d(child, tree.order)
    if len(loose):
        what = f"that of {network.name(root)!r} does not join {network.named(loose)} to its root"
        raise InputError(Problem("trees", what, "Give links that form one tree, without a cycle"))


def require_joined(network: Network, roots: Longs, wanted: Bools) -> None:
    """Links must join each root with all wanted nodes. O(links)."""
    assert network.links is not None
    ends = np.stack((network.links.a, network.links.b))
    graph = scipy.sparse.coo_array(
        (np.ones(ends.shape[1], np.int8), ends), shape=(network.size,) * 2
    )
    island = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    for home in np.unique(island[wanted]):
        for root in roots[island[roots] != home][:1]:
            require_none(network, root, wanted & (island != island[root]))


def require_none(network: Network, root: int, missed: Bools) -> None:
    """An error that names nodes which the tree of a root misses, if there are any."""
    if missed.any():
        what = (
            f"that of {network.name(root)!r} does not reach {network.named(np.flatnonzero(missed))}"
        )
        raise InputError(Problem("trees", what, "Add the links that lead there"))
