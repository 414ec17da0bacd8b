"""Groups from exact routes, or from cells of a grid; trees from links or from tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fanplan.core.arrays import NONE, Bools, Floats, Ints, Longs, starts_of
from fanplan.core.errors import NAMED, InputError, Problem
from fanplan.data.build import equal_audiences
from fanplan.data.interest import take_audiences
from fanplan.layers.groups.problem.groups import BrokerTrees, GroupsProblem
from fanplan.network.brokers import Routes

NOWHERE = ""
"""The one place where all traffic enters, in a workload without brokers."""


class MarkedCells(NamedTuple):
    """Cells of a grid and the brokers that marked them (Zhang & Hu 2005, section 3.1.1).

    ``route[i]`` is the cell of route i: traffic of one cell with one set of destinations. Cell c
    is marked by ``leaves[starts[c]:starts[c + 1]]``, ascending. ``whole[c]``: all of them want all
    of the cell, and nobody else wants any of it. By *full* cover only such cells may be in a
    group, as another would miss somebody. By *overlap* all may, and local filters drop the rest.
    """

    route: Ints
    starts: Longs
    leaves: Ints
    whole: Bools | None = None


def exact_groups(
    brokers: pa.Array, trees: BrokerTrees, routes: Routes, least: float = 0.0
) -> GroupsProblem:
    """Groups of observed traffic with the same tree and destinations: nothing is unwanted.

    The destinations of a route are the signature of its group. Traffic with ``least`` messages or
    fewer stays with default routing. O(ends of routes), apart from a sort of the routes.
    """
    own = np.arange(len(routes), dtype=np.int32)
    return cell_groups(
        brokers, trees, routes, MarkedCells(own, routes.starts, routes.brokers), least
    )


def cell_groups(
    brokers: pa.Array, trees: BrokerTrees, routes: Routes, cells: MarkedCells, least: float = 0.0
) -> GroupsProblem:
    """Cells that the same brokers marked are one group on each tree.

    ``least`` is the density threshold: a cell with that many messages from a root, or fewer, is
    left to default routing there.
    """
    tree = trees.of(routes.source)
    require_entering(brokers, trees, routes, tree)
    first, alike = equal_audiences(cells.starts, cells.leaves, np.arange(len(cells.starts) - 1))
    may = eligible(tree, routes.messages, cells, least)
    key = tree[may].astype(np.int64) * len(first) + alike[cells.route[may]]
    found, member = np.unique(key, return_inverse=True)
    group = np.full(len(routes), NONE, np.int32)
    group[may] = member
    rows = first[found % max(len(first), 1)]
    sizes = np.diff(cells.starts)[rows]
    return GroupsProblem(
        brokers=brokers,
        trees=trees,
        routes=routes,
        tree=tree,
        group=group,
        span=(found // max(len(first), 1)).astype(np.int32),
        starts=starts_of(sizes),
        members=take_audiences(cells.starts, cells.leaves, rows),
    )


def require_entering(brokers: pa.Array, trees: BrokerTrees, routes: Routes, tree: Ints) -> None:
    """All that is sent must enter at a root, and something must be sent."""
    for broker in routes.source[tree == NONE][:1]:
        what = f"broker {brokers[int(broker)].as_py()!r} sends, but is not a root"
        raise InputError(Problem("trees", what, "Give a tree for every broker that sends"))
    if not routes.messages.any():
        if brokers.to_pylist() == [NOWHERE]:
            what = "there is no traffic: nothing is published, or nobody wants what is"
            raise InputError(Problem("publications", what, "Add publications that are wanted"))
        roots = ", ".join(repr(brokers[int(root)].as_py()) for root in trees.root[:NAMED])
        what = f"nothing is published at {roots or 'any root'}"
        raise InputError(Problem("trees", what, "Give a root where publications enter"))


def eligible(tree: Ints, messages: Floats, cells: MarkedCells, least: float) -> Bools:
    """Routes in cells that are marked, dense enough, and wholly covered where that is asked."""
    count = len(cells.starts) - 1
    _, place = np.unique(tree.astype(np.int64) * count + cells.route, return_inverse=True)
    density = np.bincount(place, messages)[place] if len(place) else messages
    marked = np.diff(cells.starts)[cells.route] > 0
    may: Bools = marked & (density > least)
    return may if cells.whole is None else may & cells.whole[cells.route]
