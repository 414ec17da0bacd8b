"""What must hold of networks and trees that are marked; errors name what does not, and a remedy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from fanplan.core.arrays import NONE, Bools, Longs
from fanplan.core.errors import NAMED, InputError, Problem, similar
from fanplan.layers.marking.problem.marking import Network
from fanplan.network.trees import Rooted


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
    result: Longs = found.to_numpy().astype(np.int64)
    return result


def require_trees(network: Network, root: Longs, child: Longs) -> None:
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


def require_one_root(network: Network, root: Longs) -> None:
    roots = np.unique(root)
    if len(roots) != 1:
        what = f"there are {len(roots)}, of {network.named(roots)}" if len(roots) else "none"
        raise InputError(Problem("trees", what, "Give one, whose root is the core, or use given"))


def require_entered_once(network: Network, root: Longs, child: Longs) -> None:
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


def require_hung(network: Network, root: int, child: Longs, tree: Rooted) -> None:
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


def missed(wanted: Bools, tree: Rooted) -> Bools:
    """Wanted nodes that are not in a tree."""
    result: Bools = wanted & (tree.depth == NONE)
    return result


def require_none(network: Network, root: int, left: Bools) -> None:
    """An error that names nodes which the tree of a root misses, if there are any."""
    if left.any():
        what = (
            f"that of {network.name(root)!r} does not reach {network.named(np.flatnonzero(left))}"
        )
        raise InputError(Problem("trees", what, "Add the links that lead there"))
