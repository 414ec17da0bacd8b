"""Marking problems from a network: a core-based shared tree, shortest paths, or given trees."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from fanplan.core.arrays import NONE, Bools, Floats, Longs, listed_by, places_among
from fanplan.core.errors import NAMED, InputError, Problem, similar
from fanplan.layers.marking.problem.marking import (
    MarkedNetwork,
    MarkingProblem,
    SharedTree,
    SourceTrees,
)
from fanplan.network.brokers import Links, Rooted
from fanplan.network.paths import (
    Laid,
    LinksByTail,
    laid,
    preorder,
    pruned,
    shortest_tree,
    shortest_trees,
    ways_of,
)
from fanplan.plan.walks import climbed, descend
from fanplan.workload.tables import TREES


def shared_problem(network: MarkedNetwork, core: str) -> MarkingProblem:
    """All publishers and subscribers on one tree: their shortest paths to the core.

    O(links × log nodes). The two directions of a link are marked each on its own.
    """
    require_paths(network, core)
    root, member = core_position(network, core), members(network)
    tree = shortest_tree(root, network_ways(network), member)
    return with_core(network, directed(network), root, pruned(tree, member))


def given_shared_problem(network: MarkedNetwork, trees: pa.Table) -> MarkingProblem:
    """All publishers and subscribers on one given tree, as a table with one root, the core.

    Its links are used in both directions. O(rows × log rows).
    """
    root, parent, child = (node_positions(network, trees, name) for name in TREES.required)
    require_one_root(network, root)
    require_entered_once(network, root, child)
    ends = np.concatenate((parent, child)), np.concatenate((child, parent))
    links = directed(network) if network.links else any_links(*ends, network.size)
    core = int(root[0])
    tree = hang_along(core, parent, child, find_links(network, links, parent, child), network.size)
    require_hung(network, core, child, tree)
    require_none(network, core, missed(members(network), tree))
    return with_core(network, links, core, pruned(tree, members(network)))


def source_problem(network: MarkedNetwork) -> MarkingProblem:
    """A tree for each publishing node: its shortest paths to the subscribers by latency.

    Of equally long paths the one with fewer links, then the one whose last links come from nodes
    with lower positions. O(publishers × links × log nodes) at most.
    """
    require_paths(network)
    roots, wanted = np.flatnonzero(network.published), network.subscribed > 0
    trees = shortest_trees(roots, network_ways(network), wanted)
    return with_sources(network, directed(network), trees)


def given_problem(network: MarkedNetwork, trees: pa.Table) -> MarkingProblem:
    """A tree for each publishing node as given: columns root, parent, child with names of nodes.

    Trees of nodes that publish nothing are not used. O(rows × log rows).
    """
    root, parent, child = (node_positions(network, trees, name) for name in TREES.required)
    require_trees(network, root, child)
    links = directed(network) if network.links else any_links(parent, child, network.size)
    way = find_links(network, links, parent, child)
    ends, order = listed_by(root, network.size)
    wanted, found = network.subscribed > 0, []
    for publisher in np.flatnonzero(network.published).tolist():
        rows = order[ends[publisher] : ends[publisher + 1]]
        tree = hang_along(publisher, parent[rows], child[rows], way[rows], network.size)
        require_hung(network, publisher, child[rows], tree)
        require_none(network, publisher, missed(wanted, tree))
        found.append(preorder(pruned(tree, wanted)))
    return with_sources(network, links, laid(found))


def only_tree(network: MarkedNetwork, trees: pa.Table) -> MarkedNetwork:
    """The network with the links of one given tree alone: its shortest paths are the tree."""
    parent, child = (node_positions(network, trees, name) for name in ("parent", "child"))
    if network.links is None:
        a, b, ones = parent.astype(np.int32), child.astype(np.int32), np.ones(len(parent))
        return replace(network, links=Links(a, b, ones, np.inf * ones, ones))
    own = np.minimum(parent, child) * network.size + np.maximum(parent, child)
    a, b = network.links.a.astype(np.int64), network.links.b.astype(np.int64)
    kept = np.isin(np.minimum(a, b) * network.size + np.maximum(a, b), own)
    links = network.links.only(kept)
    sending = None if network.sending is None else network.sending[kept]
    return replace(network, links=links, sending=sending)


# ---- directed links


class Directed(NamedTuple):
    """Directed links that trees may use, and the price of a descriptor on each."""

    tail: Longs
    head: Longs
    sending: Floats


def directed(network: MarkedNetwork) -> Directed:
    """Each link of the network in both directions: first all as given, then all back."""
    if network.links is None:
        raise InputError(Problem("links", "there are none", "Give links, or trees"))
    sending = np.ones(len(network.links.a)) if network.sending is None else network.sending
    return Directed(*network.links.both_ways(), np.tile(sending, 2))


def any_links(parent: Longs, child: Longs, nodes: int) -> Directed:
    """Whatever links trees name, at the price 1."""
    tail, head = np.divmod(np.unique(parent * nodes + child), nodes)
    return Directed(tail, head, np.ones(len(tail)))


def network_ways(network: MarkedNetwork) -> LinksByTail:
    links = directed(network)
    assert network.links is not None
    return ways_of(links.tail, links.head, np.tile(network.links.latency_ms, 2), network.size)


def find_links(network: MarkedNetwork, links: Directed, tail: Longs, head: Longs) -> Longs:
    """Where directed links stand among those at hand; an error that names one that is missing."""
    key, wanted = links.tail * network.size + links.head, tail * network.size + head
    at = places_among(key, wanted)
    for row in np.flatnonzero(at == NONE)[:1]:
        ends = f"{network.name(tail[row])!r} to {network.name(head[row])!r}"
        raise InputError(Problem("trees", f"no link leads from {ends}", "Add it to the links"))
    return at


def hang_along(root: int, parent: Longs, child: Longs, way: Longs, nodes: int) -> Rooted:
    """The part of a table of a tree that hangs below its root; its links are directed ``way``s.

    Each child is there once, and the root is none.
    """
    above, link = np.full((2, nodes), NONE, np.int32)
    above[child], link[child] = parent, way
    order, depth = descend(root, above)
    above[depth == NONE] = link[depth == NONE] = NONE
    return Rooted(order, above, link, depth)


# ---- problems


def members(network: MarkedNetwork) -> Bools:
    """The nodes that publish or subscribe."""
    return (network.published > 0) | (network.subscribed > 0)


def with_core(network: MarkedNetwork, links: Directed, root: int, tree: Rooted) -> MarkingProblem:
    """A problem with one tree for all; only links on which something can travel are kept."""
    f, g = (climbed(tree.parent, many) for many in (network.published, network.subscribed))
    order = tree.order[1:].astype(np.int64)
    # A link is used if somebody publishes before it and somebody subscribes behind it.
    falls = order[(network.published.sum() > f[order]) & (g[order] > 0)]
    rises = order[(f[order] > 0) & (network.subscribed.sum() > g[order])]
    down, up = np.full((2, network.size), NONE, np.int32)
    down[falls] = np.arange(len(falls))
    up[rises] = len(falls) + np.arange(len(rises))
    shape = SharedTree(root, tree.order, tree.parent, down, up)
    back = find_links(network, links, rises, tree.parent[rises])
    return with_links(network, links, np.concatenate((tree.link[falls], back)), shape)


def with_sources(network: MarkedNetwork, links: Directed, trees: Laid) -> MarkingProblem:
    """A problem with a tree per publisher; only links in trees are kept, in their order."""
    in_use = np.zeros(len(links.tail), bool)
    in_use[trees.way] = True
    link = (np.cumsum(in_use) - 1)[trees.way].astype(np.int32)
    roots = np.flatnonzero(network.published).astype(np.int32)
    shape = SourceTrees(roots, trees.starts, link, trees.above)
    return with_links(network, links, np.flatnonzero(in_use), shape)


def with_links(
    network: MarkedNetwork, links: Directed, used: Longs, trees: SourceTrees | SharedTree
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


# ---- names as positions


def core_position(network: MarkedNetwork, core: str) -> int:
    found = pc.index(network.nodes, core).as_py()
    if found < 0:
        remedy = similar(core, network.nodes.to_pylist()) or "Name a node of the network"
        raise InputError(Problem("core", f"there is no node {core!r}", remedy))
    return int(found)


def node_positions(network: MarkedNetwork, trees: pa.Table, column: str) -> Longs:
    """Names of nodes as positions; an error that tells those that are unknown."""
    names = trees[column].combine_chunks()
    found = pc.index_in(names, network.nodes)
    if found.null_count:
        unknown = names.filter(pc.is_null(found)).unique().to_pylist()[:NAMED]
        remedy = "Name a node of the network"
        raise InputError(Problem("trees", f"{column} {n!r} is not a node", remedy) for n in unknown)
    result: Longs = found.to_numpy().astype(np.int64)
    return result


# ---- what must hold of trees


def require_paths(network: MarkedNetwork, core: str = "") -> None:
    """Links must lead from the core to all, or without one from all publishers to subscribers."""
    directed(network)
    if core:
        require_islands_joined(network, np.array([core_position(network, core)]), members(network))
    else:
        require_islands_joined(network, np.flatnonzero(network.published), network.subscribed > 0)


def require_islands_joined(network: MarkedNetwork, roots: Longs, wanted: Bools) -> None:
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


def require_trees(network: MarkedNetwork, root: Longs, child: Longs) -> None:
    """Every publishing node has a tree, in which no node has two parents and the root none."""
    treeless = network.published > 0
    treeless[root] = False
    # The only publisher may also be the only subscriber; then there is nothing to link.
    treeless &= (network.subscribed > 0).sum() > (network.subscribed > 0)
    problems = [
        Problem("trees", f"publishing node {network.name(node)!r} has none", "Give one")
        for node in np.flatnonzero(treeless)[:NAMED]
    ]
    if problems:
        raise InputError(problems)
    require_entered_once(network, root, child)


def require_entered_once(network: MarkedNetwork, root: Longs, child: Longs) -> None:
    """No node of a tree has two parents, and the root none."""
    _, first, times = np.unique(root * network.size + child, True, return_counts=True)
    problems = [
        Problem(
            "trees",
            f"{network.name(child[row])!r} is entered again in that of {network.name(root[row])!r}",
            "Give each node one parent, and the root none",
        )
        for row in first[(times > 1) | (root == child)[first]][:NAMED]
    ]
    if problems:
        raise InputError(problems)


def require_one_root(network: MarkedNetwork, root: Longs) -> None:
    roots = np.unique(root)
    if len(roots) != 1:
        what = f"there are {len(roots)}, of {network.named(roots)}" if len(roots) else "none"
        raise InputError(Problem("trees", what, "Give one, whose root is the core, or use given"))


def require_hung(network: MarkedNetwork, root: int, child: Longs, tree: Rooted) -> None:
    loose = np.setdiff1d(child, tree.order)
    if len(loose):
        what = f"that of {network.name(root)!r} does not join {network.named(loose)} to its root"
        raise InputError(Problem("trees", what, "Give links that form one tree, without a cycle"))


def missed(wanted: Bools, tree: Rooted) -> Bools:
    """Wanted nodes that are not in a tree."""
    result: Bools = wanted & (tree.depth == NONE)
    return result


def require_none(network: MarkedNetwork, root: int, left: Bools) -> None:
    """An error that names nodes which the tree of a root misses, if there are any."""
    if left.any():
        what = (
            f"that of {network.name(root)!r} does not reach {network.named(np.flatnonzero(left))}"
        )
        raise InputError(Problem("trees", what, "Add the links that lead there"))
